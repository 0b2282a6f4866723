"""Limits, progress and callbacks at the level of a whole fit; nothing here measures time."""

import os
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_diabetes, load_iris

from softlearning import SoftClassifier, SoftRegressor
from softlearning.estimators import TimeLimitWarning
from softlearning.execution.shared import stored
from softlearning.library import classifiers, resolve
from softlearning.method.crossfit import crowding, refit_seconds, seconds_after


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_without_time_the_dummy_stands_in_and_all_others_say_why(iris):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TimeLimitWarning)  # a slow machine
        model = SoftClassifier(["logistic", "naive_bayes"], time_limit=1e-9).fit(*iris)
    status = model.leaderboard_.set_index("specialist")["status"]
    assert model.weights_["dummy"] == 1
    assert (status[["logistic", "naive_bayes"]] == "skipped: the time limit was reached").all()
    assert model.failures_.empty
    assert model.predict_proba(iris[0]).shape == (150, 3)


def test_with_time_enough_a_limit_changes_no_number(iris):
    free, limited = (SoftClassifier("fast", time_limit=t).fit(*iris) for t in (None, 1_000))
    assert np.array_equal(free.predict_proba(iris[0]), limited.predict_proba(iris[0]))


def test_a_refit_that_does_not_finish_is_replaced_by_the_models_of_the_folds(iris):
    model = SoftClassifier([("late", LateInRefit()), "naive_bayes"], rule="uniform", time_limit=500).fit(*iris)
    assert len(model.record_.ensemble.members["late"]) == 5
    assert model.score(*iris) > 0.8


class LateInRefit(ClassifierMixin, BaseEstimator):
    """Fails when it sees all rows, as a refit does that runs out of time."""

    def fit(self, X, y):
        from sklearn.naive_bayes import GaussianNB

        if len(y) == 150:
            raise RuntimeError("out of time")
        self.model_ = GaussianNB().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def test_who_watches_hears_of_every_task(iris):
    events = []
    SoftClassifier(["logistic", "naive_bayes"], progress=events.append).fit(*iris)
    finished = [(e.specialist, e.fold) for e in events if e.kind == "finished"]
    assert set(finished) >= {(name, fold) for name in ("logistic", "naive_bayes") for fold in range(5)}


def test_the_live_view_is_drawn_on_stderr(iris, capsys):
    SoftClassifier(["naive_bayes"], progress=True).fit(*iris)
    assert "naive_bayes" in capsys.readouterr().err


class Counting:
    """A scikit-learn callback that counts what it hears, and may ask to stop."""

    def __init__(self, stop_after=np.inf):
        self.begun = self.ended = 0
        self.closed = False
        self.stop_after = stop_after

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self.begun += 1

    def on_fit_task_end(self, estimator, context):
        self.ended += 1
        return self.ended >= self.stop_after

    def teardown(self, estimator, context):
        self.closed = True


def test_scikit_learns_callbacks_hear_of_the_fit_and_of_every_task(iris):
    counting = Counting()
    model = SoftClassifier(["logistic", "naive_bayes"], refit=True).set_callbacks(counting).fit(*iris)
    refits = len(model.specialists_)
    assert counting.begun == counting.ended == 1 + 2 * 5 + refits
    assert counting.closed


def test_a_callback_may_stop_the_fit_which_ends_with_a_model(iris):
    model = SoftClassifier(classifiers("fast")).set_callbacks(Counting(stop_after=12)).fit(*iris)
    assert "skipped: the fit was asked to stop" in set(model.leaderboard_["status"])
    assert model.predict(iris[0]).shape == (150,)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_bulky_table_has_its_views_in_files_and_the_same_model(monkeypatch, n_jobs):
    X, y = load_diabetes(return_X_y=True)
    fit = lambda: SoftRegressor(["ridge", "decision_tree", "knn_5"], n_jobs=n_jobs).fit(X, y)
    expected = fit()
    kept = []
    monkeypatch.setattr("softlearning.method.crossfit.BULKY", 0)
    monkeypatch.setattr("softlearning.execution.shared.stored", lambda d, path: kept.append(path) or stored(d, path))
    model = fit()
    assert kept
    assert not any(os.path.exists(path) for path in kept)
    np.testing.assert_array_equal(model.oof_, expected.oof_)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_a_limit_that_is_too_short_for_the_table_says_what_it_needs():
    model = SoftClassifier(["dummy"], time_limit=10)
    model._warn_of_time(before=1.0, taken=11.9)  # within two seconds
    with pytest.warns(TimeLimitWarning, match=r"took 30 s, its time limit is 10 s: .* needs about 18 s"):
        model._warn_of_time(before=8.0, taken=30.0)
    with pytest.warns(TimeLimitWarning, match=r"took 30 s, its time limit is 10 s: what follows the last specialist"):
        model._warn_of_time(before=1.0, taken=30.0)


def test_time_is_kept_for_what_follows_the_tasks(monkeypatch):
    t = SimpleNamespace(classes=2)
    done = SimpleNamespace(predicted=np.ones(50_000, bool), library=())
    library = resolve("default", "classification")
    monkeypatch.setattr("softlearning.method.crossfit.crowding", lambda: 1.0)
    first, second = seconds_after(1, library, done, t), seconds_after(2, library.level(2), done, t)
    assert first == 2 * second > 0
    small = SimpleNamespace(predicted=np.ones(500, bool), library=())
    assert seconds_after(1, library, small, t) == pytest.approx(first / 100)
    monkeypatch.setattr("softlearning.method.crossfit.crowding", lambda: 3.0)
    assert seconds_after(1, library, done, t) == pytest.approx(3 * first)


def test_a_machine_that_others_use_is_slower_by_their_number(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    for load, expected in ((0.5, 1.0), (20.0, 5.0)):
        monkeypatch.setattr("os.getloadavg", lambda load=load: (load, 0.0, 0.0), raising=False)
        assert crowding() == expected
    monkeypatch.delattr("os.getloadavg")
    assert crowding() == 1.0


def test_the_refits_of_what_earns_weight_are_owed_before_level_2():
    done = SimpleNamespace(splits=[()] * 5, seconds={"a": (10.0, 1.0), "b": (99.0, 1.0)}, alone={"a": 0.7, "b": 0.0})
    assert refit_seconds(done) == pytest.approx(2.5)  # two seconds a fold, from four fifths of the rows
