"""What the methods of the benchmark are: shared fits give what each method alone would give."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression, RidgeCV

from softlearning import SoftClassifier, SoftRegressor
from softlearning.library import classifiers, regressors
from softlearning.method.fitting import fit_whole
from softlearning_bench import shared as shared_module
from softlearning_bench.datasets import dataset
from softlearning_bench.methods import (
    METHODS,
    LeftOut,
    TreeBeside,
    bins_note,
    deep_network,
    fit_alone,
    gradient_boosting,
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
from softlearning_bench.shared import Part, Specialists, outer_fold

CHEAP = {
    "classification": classifiers("paper")["logistic", "knn_5", "decision_tree", "naive_bayes", "spline_logistic"],
    "regression": regressors("paper")["ridge", "lasso", "knn_5", "decision_tree", "spline_ridge"],
}


@pytest.fixture
def cheap_library(monkeypatch):
    """The paper's library without its slow members: the sharing is the same."""
    monkeypatch.setattr(shared_module, "resolve", lambda library, task: CHEAP[task])


def specialists(name, fold=0):
    row = dataset(name)
    return Specialists(outer_fold(row, row.table(), fold, seed=42))


@pytest.fixture
def wine(cheap_library):
    return specialists("A02_wine")


@pytest.fixture
def tiny(cheap_library):
    return specialists("C10_tiny_regression")


def test_outer_folds_are_disjoint_stratified_and_cover_all_rows():
    row = dataset("A02_wine")
    table = row.table()
    parts = [outer_fold(row, table, fold, seed=42) for fold in range(5)]
    tested = np.vstack([part.X_test for part in parts])
    assert_array_equal(np.unique(tested, axis=0), np.unique(table[0], axis=0))
    shares = [np.bincount(part.y_test) / len(part.y_test) for part in parts]
    assert np.ptp(shares, axis=0).max() < 0.05


def test_another_seed_shuffles_otherwise():
    row = dataset("C10_tiny_regression")
    assert not np.array_equal(outer_fold(row, row.table(), 0, 42).y_test, outer_fold(row, row.table(), 0, 43).y_test)


def test_soft_learning_of_the_paper_is_the_estimator_as_the_paper_has_it(wine):
    part = wine.part
    model = SoftClassifier(library=CHEAP["classification"], rule="slsqp", calibrate=False).fit(part.X, part.y)
    answer = weighted(wine, rule="slsqp")
    assert_allclose(answer.prediction, model.predict_proba(part.X_test), atol=1e-12)
    assert_allclose([answer.weights[name] for name in model.weights_.index], model.weights_, atol=1e-9)


def test_shared_calibration_is_the_estimators(wine):
    part = wine.part
    model = SoftClassifier(library=CHEAP["classification"], rule="simplex", calibrate=True).fit(part.X, part.y)
    answer = weighted(wine, rule="simplex", calibrate=True)
    assert_allclose(answer.prediction, model.predict_proba(part.X_test), atol=1e-12)


@pytest.mark.parametrize(("name", "estimator"), [("A02_wine", SoftClassifier), ("C10_tiny_regression", SoftRegressor)])
def test_our_default_on_shared_fits_is_what_fit_gives(cheap_library, monkeypatch, name, estimator):
    monkeypatch.setattr("softlearning.estimators.resolve", lambda library, task: CHEAP[task])
    shared = specialists(name)
    model = estimator().fit(shared.part.X, shared.part.y)
    assert_allclose(shared.default.weights_, model.weights_)
    assert_array_equal(shared.default.predict(shared.part.X_test), model.predict(shared.part.X_test))


def test_nothing_is_fitted_twice(cheap_library, monkeypatch):
    fitted = []

    def noted(work):
        fitted.append((work.specialist.name, tuple(work.train)))
        return fit_whole(work)

    for module in ("fitting", "blend"):
        monkeypatch.setattr(f"softlearning.{module}.fit_whole", noted)
    shared = specialists("C10_tiny_regression")
    for rule in ("slsqp", "simplex", "uniform", "best"):
        weighted(shared, rule=rule)
    member(shared, "ridge")
    stacked(shared)
    softlearning_default(shared)
    assert len(fitted) == len(set(fitted)) == 5 * (5 + 1)


def test_stacking_is_scikit_learns_on_the_same_predictions(wine):
    part, names = wine.part, wine.crossed.library.names
    P = wine.tested
    ours = stacked(wine).prediction
    final = LogisticRegression().fit(wine.crossed.oof.reshape(len(part.y), -1), part.y)
    assert_allclose(ours, final.predict_proba(P.reshape(len(P), -1)))
    assert len(names) * 3 == final.n_features_in_


def test_of_two_classes_stacking_reads_the_second_like_scikit_learn():
    P = np.array([[[0.2, 0.8], [0.6, 0.4]]])
    assert_allclose(stacking_columns(P), [[0.8, 0.4]])


def test_stacking_of_numbers_is_ridge_on_predictions(tiny):
    P = tiny.tested
    final = RidgeCV().fit(tiny.crossed.oof[:, :, 0], tiny.part.y)
    assert_allclose(stacked(tiny).prediction[:, 0], final.predict(P[:, :, 0]))


def test_a_combiner_pays_for_the_whole_library_and_a_member_for_itself(wine):
    blend, one = weighted(wine, rule="best"), member(wine, "decision_tree")
    assert blend.fit_seconds > wine.library_seconds(wine.crossed.library) > one.fit_seconds


def test_a_specialist_above_its_limit_of_rows_is_left_out_with_the_reason():
    X, y = np.random.default_rng(0).normal(size=(2_001, 1)), np.arange(2_001.0)
    shared = Specialists(Part("regression", 1, X, y, X[:5], y[:5], 42))
    with pytest.raises(LeftOut, match="2,000 rows"):
        member(shared, "svr_rbf")


def test_a_tree_stands_beside_the_columns():
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 3
    wide = TreeBeside("classification").fit(X, y).transform(X)
    assert_array_equal(wide[:, :3], X)
    assert_allclose(wide[:, 3:].sum(axis=1), 1)


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
