"""Cross-fitting: what is predicted was not seen, calibration is held out, failures exclude a specialist whole."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.model_selection import TimeSeriesSplit

from softlearning import SoftClassifier, SoftRegressor, Specialist
from softlearning.execution import Failure
from softlearning.library import every_row
from softlearning.method.crossfit import averaged, failed_and_skipped, mean_rounds, read_by


class Result:
    def __init__(self, specialist, fold, **value):
        self.specialist, self.fold, self.value = specialist, fold, value


class Target:
    rows, classes = 4, 1


def test_predictions_of_repeats_are_averaged_and_rows_never_held_out_are_missing():
    splits = [(np.array([2, 3]), np.array([0, 1])), (np.array([2, 3]), np.array([0]))]
    outcomes = [Result("a", 0, prediction=np.array([[1.0], [5.0]])), Result("a", 1, prediction=np.array([[3.0]]))]
    assert_array_equal(averaged(["a"], outcomes, splits, Target)[:, 0, 0], [2, 5, np.nan, np.nan])


def test_what_was_never_begun_is_skipped_and_what_ran_failed():
    error = Failure("a", 0, "ValueError: no", 0.1, kind="error")
    cancelled = Failure("a", 1, "not begun", 0.0, kind="cancelled")
    skipped = Failure("b", 0, "needs about 80 s", 0.0, kind="skipped")
    failed, reasons = failed_and_skipped([error, cancelled, skipped])
    assert failed == (error,)
    assert reasons == {"b": "needs about 80 s"}


def test_rounds_of_folds_are_averaged_with_a_little_more_for_more_rows():
    assert mean_rounds([Result("a", 0, rounds=100), Result("a", 1, rounds=200), Result("b", 0, rounds=0)]) == {"a": 165}


def test_boosting_on_all_rows_takes_the_rounds_of_its_folds(rng):
    X = rng.normal(size=(200, 3))
    model = SoftRegressor(["lightgbm"], refit=True).fit(X, X[:, 0] + 0.1 * rng.normal(size=200))
    assert model.specialists_["lightgbm"].rounds_ == model.record_.crossed.rounds["lightgbm"]


def test_a_stacker_never_reads_the_baseline():
    rows = every_row("regression")
    (stack,) = rows["signed_stack"]
    assert read_by(stack, rows["ridge", "dummy"]) == () or stack.reads == "support"
    assert read_by(Specialist("s", "stacker", stack.make, needs="", level=2), rows["ridge", "dummy"]) == ("ridge",)


def test_in_time_order_stackers_are_skipped_with_the_reason(rng):
    X = rng.normal(size=(120, 3))
    stack = Specialist(
        "stack", "stacker", every_row("regression")["signed_stack"].specialists[0].make, needs="", level=2
    )
    model = SoftRegressor(["ridge", "knn_5", stack], cv=TimeSeriesSplit(4)).fit(X, X[:, 0])
    status = model.leaderboard_.set_index("specialist")["status"]
    assert status["stack"].startswith("skipped: in the first fold nothing is predicted yet")


def test_a_held_out_row_is_calibrated_by_the_other_folds(rng):
    """Turning the labels of one fold around leaves that fold's own calibration, learnt elsewhere, as it was."""
    X, y = load_iris(return_X_y=True)
    model = SoftClassifier(["knn_5"], cv=3).fit(X, y)
    raw = SoftClassifier(["knn_5"], cv=3, calibrate=False).fit(X, y)
    assert (raw.oof_ == 0).any()
    assert (model.oof_ > 0).all()
    assert model.cv_risk_ < raw.cv_risk_


@pytest.mark.parametrize("scale", [1e-6, 1 / 442, 1_000.0])
def test_the_scale_of_sample_weights_changes_nothing(rng, scale):
    X = rng.normal(size=(90, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=90)
    plain, scaled = (SoftRegressor(["svr", "ridge"]).fit(X, y, sample_weight=np.full(90, w)) for w in (1.0, scale))
    assert_allclose(scaled.predict(X), plain.predict(X), rtol=1e-6)


def test_permuting_the_library_permutes_the_weights_bit_for_bit():
    X, y = load_iris(return_X_y=True)
    names = ["logistic", "knn_15", "decision_tree", "naive_bayes"]
    first, second = SoftClassifier(names).fit(X, y), SoftClassifier(names[::-1]).fit(X, y)
    assert_array_equal(first.weights_[names], second.weights_[names])
    assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def test_a_users_estimator_sees_the_users_labels():
    from sklearn.linear_model import LogisticRegression

    X, y = load_iris(return_X_y=True)
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    weighted = LogisticRegression(class_weight={"setosa": 1, "versicolor": 2, "virginica": 1}, max_iter=500)
    model = SoftClassifier([("weighted", weighted)]).fit(X, words)
    assert model.failures_.empty
    assert set(model.specialists_["weighted"].classes_) == set(words)
    assert model.score(X, words) > 0.9
