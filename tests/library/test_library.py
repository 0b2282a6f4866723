"""A library is a table of rows: the paper's, a user's own, and what `+`, `-` and `[names]` make of them."""

import pytest
from sklearn.linear_model import LogisticRegression

from softlearning.library import Shape, classifiers, every_row, regressors, resolve

CLASSIFICATION = Shape("classification", rows=300, columns=10, classes=3, rarest=100)


def test_the_papers_libraries_have_15_and_16_rows_of_six_families():
    assert (len(classifiers("paper")), len(regressors("paper"))) == (15, 16)
    families = {"linear", "instance", "tree", "kernel", "neural", "complementary"}
    assert {s.family for s in classifiers("paper")} == {s.family for s in regressors("paper")} == families


@pytest.mark.parametrize("library", [classifiers, regressors])
@pytest.mark.parametrize("name", ["paper", "fast", "default"])
def test_every_named_library_is_made_of_rows_that_ship(library, name):
    rows = every_row("classification" if library is classifiers else "regression")
    assert all(specialist in tuple(rows) for specialist in library(name))


def test_the_papers_parameters():
    row = {s.name: s.make(CLASSIFICATION) for s in classifiers("paper")}
    assert row["logistic"].C == 1.0
    assert row["logistic_strong"].C == 0.1
    assert (row["knn_5"].n_neighbors, row["knn_15"].n_neighbors, row["knn_5"].weights) == (5, 15, "distance")
    assert (row["decision_tree"].max_depth, row["decision_tree"].min_samples_leaf) == (10, 5)
    assert (row["catboost"].get_param("iterations"), row["catboost"].get_param("depth")) == (300, 6)
    assert row["mlp_small"].hidden_layer_sizes == (64, 32)
    assert (row["mlp_large"].batch_size, row["mlp_large"].max_iter) == (256, 300)
    assert row["naive_bayes"].var_smoothing == 1e-9


@pytest.mark.parametrize(
    ("library", "error", "message"),
    [
        ("papre", ValueError, "did you mean 'paper'"),
        (["catbost"], ValueError, "did you mean 'catboost'"),
        ([], ValueError, "empty"),
        (3, TypeError, "give a name"),
        ([3], TypeError, "not a specialist"),
        (["logistic", "logistic"], ValueError, "repeated: logistic"),
        ([("x", "y")], TypeError, "not a scikit-learn estimator"),
    ],
)
def test_a_wrong_library_says_what_is_wrong(library, error, message):
    with pytest.raises(error, match=message):
        resolve(library, "classification")


def test_rows_that_ship_here_are_trusted_and_a_users_are_not():
    assert all(s.trusted for s in classifiers("default"))
    assert not any(s.trusted for s in resolve([LogisticRegression()], "classification"))
