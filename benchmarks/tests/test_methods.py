"""What the methods of the benchmark are: shared fits give what each method alone would give."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression, RidgeCV

from softlearning import SoftClassifier, SoftRegressor
from softlearning_bench.datasets import dataset
from softlearning_bench.methods import (
    METHODS,
    Skipped,
    TreeBeside,
    bins_note,
    deep_network,
    fit_alone,
    gradient_boosting,
    held_out,
    member,
    methods_for,
    neuro_symbolic,
    random_forest,
    settings_note,
    softlearning_default,
    specialist_rows,
    stacked,
    stacking_columns,
    weighted,
)
from softlearning_bench.paper import METHODS as PAPER_METHODS
from softlearning_bench.shared import LIBRARIES, Part, Specialists, fold_seconds, outer_fold

CHEAP = {
    "classification": ["logistic", "knn_5", "decision_tree", "naive_bayes", "spline_logistic"],
    "regression": ["ridge", "lasso", "knn_5", "decision_tree", "spline_ridge"],
}


def use(monkeypatch, names):
    """Both libraries are these few: the sharing is the same."""
    for name in LIBRARIES:
        monkeypatch.setitem(LIBRARIES, name, names)


def specialists(name, fold=0):
    row = dataset(name)
    return Specialists(outer_fold(row, row.table(), fold, seed=42))


@pytest.fixture
def wine(monkeypatch):
    use(monkeypatch, CHEAP["classification"])
    return specialists("A02_wine")


@pytest.fixture
def tiny(monkeypatch):
    use(monkeypatch, CHEAP["regression"])
    return specialists("C10_tiny_regression")


def test_of_two_classes_stacking_reads_the_second_like_scikit_learn():
    P = np.array([[[0.2, 0.8], [0.6, 0.4]]])
    assert_allclose(stacking_columns(P), [[0.8, 0.4]])


def test_a_tree_stands_beside_the_columns():
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 3
    wide = TreeBeside("classification").fit(X, y).transform(X)
    assert_array_equal(wide[:, :3], X)
    assert_allclose(wide[:, 3:].sum(axis=1), 1)


def test_a_combiner_is_the_estimator_and_has_its_weights(wine):
    part = wine.part
    model = SoftClassifier(CHEAP["classification"], rule="simplex", loss="squared", refit=True, random_state=42).fit(
        part.X, part.y
    )
    answer = weighted(wine, rule="simplex", calibrate=True)
    assert_allclose(answer.prediction, model.predict_proba(part.X_test), atol=1e-12)
    assert_allclose([answer.weights[name] for name in model.weights_.index], model.weights_, atol=1e-9)


def test_ours_is_the_estimator_with_its_defaults(tiny):
    model = SoftRegressor(CHEAP["regression"]).fit(tiny.part.X, tiny.part.y)
    assert_array_equal(softlearning_default(tiny).prediction[:, 0], model.predict(tiny.part.X_test))


@pytest.mark.parametrize("name", ["A02_wine", "C10_tiny_regression"])
def test_stacking_is_scikit_learns_final_model_on_the_same_predictions(monkeypatch, name):
    use(monkeypatch, CHEAP[dataset(name).task])
    shared = specialists(name)
    part, model = shared.part, shared.paper("uniform")
    P = model.specialist_predictions(part.X_test)
    if part.task == "classification":
        final = LogisticRegression().fit(held_out(model).reshape(len(part.y), -1), part.y)
        expected = final.predict_proba(P.reshape(len(P), -1))
    else:
        expected = RidgeCV().fit(held_out(model)[:, :, 0], part.y).predict(P[:, :, 0])[:, None]
    assert_allclose(stacked(shared).prediction, expected)


def test_held_out_predictions_stand_in_the_order_of_the_specialists(wine):
    """Each specialist's column of held-out predictions has the accuracy that its line of the leaderboard says."""
    model = wine.paper("uniform")
    board = model.leaderboard_.set_index("specialist")["cv_score"]
    found = [(P.argmax(axis=1) == wine.part.y).mean() for P in held_out(model).transpose(1, 0, 2)]
    assert_allclose(found, board[list(model.specialists_)])


def test_a_combiner_pays_for_the_whole_library_and_a_member_for_itself(wine):
    blend, one = weighted(wine, rule="best"), member(wine, "decision_tree")
    assert blend.fit_seconds > fold_seconds(wine.paper("uniform")) > one.fit_seconds
    every = weighted(wine, rule="best", refit_all=True)
    assert sum(blend.weights.values()) == pytest.approx(1)
    assert every.weights == blend.weights


def test_a_member_is_the_specialist_by_itself(wine):
    part = wine.part
    model = SoftClassifier(["naive_bayes"], calibrate=False, refit=True, random_state=42).fit(part.X, part.y)
    assert_allclose(member(wine, "naive_bayes").prediction, model.predict_proba(part.X_test))


def test_a_specialist_above_its_limit_of_rows_is_skipped_with_the_reason(monkeypatch):
    use(monkeypatch, ["ridge", "svr_rbf"])
    X, y = np.random.default_rng(0).normal(size=(2_001, 1)), np.arange(2_001.0)
    shared = Specialists(Part("regression", 1, X, y, X[:5], y[:5], 42))
    with pytest.raises(Skipped, match="2,000 rows"):
        member(shared, "svr_rbf")


def part_of(rows, columns, classes):
    empty = np.zeros((rows, columns))
    return Part("classification", classes, empty, np.zeros(rows, int), empty, np.zeros(rows, int), 42)


def test_a_wide_table_with_many_classes_says_what_catboost_was_set_to():
    assert "32 borders and 0.02 of the columns" in settings_note(part_of(320, 4096, 40))
    assert "histogram boosting with 32 bins" in settings_note(part_of(320, 4096, 40))
    assert bins_note(part_of(4800, 500, 10)) == "histogram boosting with 32 bins"
    assert bins_note(part_of(2400, 200, 4)) == ""
    assert "32 borders and 1.00 of the columns" in settings_note(part_of(4_000, 50, 5))
    assert settings_note(part_of(4_000, 40, 5)) == ""


def test_networks_have_the_papers_layers():
    part = part_of(100, 4, 2)
    numbers = Part("regression", 1, part.X, part.y, part.X_test, part.y_test, 42)
    assert deep_network(part).hidden_layer_sizes == deep_network(numbers).hidden_layer_sizes == (256,) * 4
    assert neuro_symbolic(part).steps[-1][1].hidden_layer_sizes == (64, 32)


@pytest.mark.parametrize("make", [random_forest, gradient_boosting, neuro_symbolic])
@pytest.mark.parametrize("name", ["A02_wine", "C10_tiny_regression"])
def test_models_of_their_own_answer_both_tasks(make, name):
    part = specialists(name).part
    assert fit_alone(part, make).prediction.shape == (len(part.y_test), part.classes)


def test_the_papers_ten_are_there_and_best_of_3_is_derived():
    rows = [method.name for method in METHODS if method.group == "paper"]
    assert [*rows, "Best-of-3"] == list(PAPER_METHODS)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_method_has_one_name(task):
    names = [method.name for method in methods_for(task)]
    assert len(names) == len(set(names)) == len(METHODS) + len(specialist_rows(task))


def test_names_can_be_listed_with_commas_on_a_command_line():
    assert not any("," in method.name for method in METHODS)
