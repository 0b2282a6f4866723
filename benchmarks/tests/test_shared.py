"""One outer fold and the models that share its fits."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from softlearning import SoftClassifier
from softlearning_bench.datasets import dataset
from softlearning_bench.shared import LIBRARIES, Specialists, combining_seconds, fold_seconds, outer_fold, refit_seconds

ROWS = ["knn_5", "logistic", "naive_bayes"]


@pytest.fixture(scope="module")
def part():
    row = dataset("A02_wine")
    return outer_fold(row, row.table(), 0, seed=42)


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


def test_a_model_is_what_fit_gives_and_is_fitted_once(part):
    shared = Specialists(part)
    model = shared.model(library=ROWS)
    alone = SoftClassifier(ROWS, random_state=42).fit(part.X, part.y)
    assert_array_equal(model.predict_proba(part.X_test), alone.predict_proba(part.X_test))
    assert shared.model(library=ROWS) is model
    assert shared.model(library=ROWS, rule="uniform") is not model


def test_a_specialist_that_a_folder_has_is_not_fitted_again(part, tmp_path):
    """What another model leaves in the folder is read, not written a second time."""
    Specialists(part, tmp_path).model(library=ROWS, calibrate=False, rule="uniform", refit=True)
    before = {path.name for path in tmp_path.glob("*.task")}
    assert len(before) == len(ROWS) * (5 + 1)
    Specialists(part, tmp_path).model(library=ROWS, calibrate=True, rule="simplex", refit=True)
    assert {path.name for path in tmp_path.glob("*.task")} == before
    Specialists(part, tmp_path).model(library=[*ROWS, "decision_tree"], rule="uniform", refit=True)
    assert len(list(tmp_path.glob("*.task"))) == len(before) + 5 + 1


def test_the_paper_under_a_rule_is_the_estimator_with_that_rule(part, monkeypatch):
    monkeypatch.setitem(LIBRARIES, "paper", ROWS)
    shared = Specialists(part)
    ours = SoftClassifier(ROWS, rule="slsqp", loss="squared", calibrate=False, refit=True, random_state=42).fit(
        part.X, part.y
    )
    assert_array_equal(shared.paper("slsqp").predict_proba(part.X_test), ours.predict_proba(part.X_test))
    assert len(shared.paper("uniform").specialists_) == len(ROWS)


def test_everybody_answers_for_itself(part, monkeypatch):
    for name in LIBRARIES:
        monkeypatch.setitem(LIBRARIES, name, ROWS)
    shared = Specialists(part)
    assert sorted(shared.everybody.specialists_) == ROWS
    assert shared.predictions_of_everybody.shape == (len(part.y_test), 3, 3)


def test_seconds_are_those_of_folds_refits_and_the_models_own_work(part):
    model = Specialists(part).model(library=ROWS, rule="uniform", refit=True)
    board = model.leaderboard_.set_index("specialist")
    assert fold_seconds(model) == pytest.approx(board["fit_seconds"].sum() + board["predict_seconds"].sum())
    assert refit_seconds(model) == pytest.approx(sum(refit_seconds(model, [name]) for name in ROWS))
    assert refit_seconds(model, ["logistic"]) > 0
    assert combining_seconds(model) > 0
