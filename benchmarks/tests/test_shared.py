"""One outer fold and the models that share its fits."""

from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.naive_bayes import GaussianNB

from softlearning import SoftClassifier
from softlearning.library import Specialist
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


class Counted(GaussianNB):
    """Naive Bayes that notes how many rows it is fitted on."""

    fits: ClassVar[list[int]] = []

    def fit(self, X, y, sample_weight=None):
        Counted.fits.append(len(y))
        return super().fit(X, y, sample_weight)


def counted(shape):
    return Counted()


def test_a_specialist_that_a_folder_has_is_not_fitted_again_on_a_fold(part, tmp_path):
    library = [*ROWS, Specialist("counted", "custom", counted, trusted=True)]
    for settings in ({"calibrate": False}, {"calibrate": True, "rule": "uniform"}, {"loss": "squared"}):
        Specialists(part, tmp_path).model(library=library, refit=True, **settings)
    assert len([rows for rows in Counted.fits if rows < len(part.y)]) == 5


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
    shared = Specialists(part)  # its folder goes with it
    model = shared.model(library=ROWS, rule="uniform", refit=True)
    board = model.leaderboard_.set_index("specialist")
    assert fold_seconds(model) == pytest.approx(board["fit_seconds"].sum() + board["predict_seconds"].sum())
    assert refit_seconds(model) == pytest.approx(sum(refit_seconds(model, [name]) for name in ROWS))
    assert refit_seconds(model, ["logistic"]) > 0
    assert combining_seconds(model) > 0
