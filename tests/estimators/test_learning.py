"""What `fit` checks, and what a failed fit leaves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softlearning import SoftClassifier, SoftRegressor
from tests.estimators.models import QUICK_REGRESSION


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "hinge"}, "one of auto, squared, log"),
        ({"time_limit": -1}, "positive number"),
        ({"memory_limit": 0}, "no amount of memory"),
        ({"library": "papre"}, "did you mean 'paper'"),
        ({"cv": 1}, "at least 2 folds"),
        ({"rule": "simplx"}, "simplex"),
        ({"calibrate": "x"}, "calibrate is 'x'; give True or False"),
        ({"progress": "x"}, "a function of events"),
        ({"refit": "never"}, "True, False or 'auto'"),
    ],
)
def test_wrong_parameters_are_named(cancer, change, message):
    model = SoftClassifier(**{"library": ["naive_bayes"], **change})
    with pytest.raises(ValueError, match=message):
        model.fit(*cancer)
    assert not hasattr(model, "n_features_in_")


def test_a_failed_fit_leaves_nothing_behind(cancer):
    model = SoftClassifier(["naive_bayes"]).fit(*cancer)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(cancer[0], np.ones(569))
    assert not hasattr(model, "weights_")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("time_limit", v) for v in ("5", -1, float("nan"), True)),
        *(("memory_limit", v) for v in ("lots", -1, float("nan"))),
        *(("n_jobs", v) for v in ("two", 0, 1.5)),
        *(("cv", v) for v in ("x", 1, 2.5)),
        *(("rule", v) for v in ("nope", 3, ["best"])),
        *(("refit", "x"), ("loss", "x"), ("checkpoint", 3), ("column_types", [1]), ("library", []), ("library", "x")),
    ],
)
def test_every_parameter_is_checked_before_anything_runs(name, value, monkeypatch):
    def never(*_, **__):
        raise AssertionError("the work has begun")

    monkeypatch.setattr("softlearning.estimators.learning.cross_fit", never)
    X = np.arange(40.0).reshape(20, 2)
    settings = {"library": ["naive_bayes"], name: value}
    with pytest.raises((ValueError, TypeError), match=f"{name}|memory|library"):
        SoftClassifier(**settings).fit(X, np.arange(20) % 2)


def test_fold_models_are_averaged_without_a_refit(diabetes):
    X, y = diabetes
    model = SoftRegressor(QUICK_REGRESSION, refit=False).fit(X, y)
    assert all(len(models) == 5 for models in model.specialists_.values())
    assert model.score(X, y) > 0.4


def test_sample_weights_reach_specialists_and_weights(rng):
    """Two halves with opposite slopes: the half that weighs is the half that is learnt."""
    X = rng.normal(size=(200, 1))
    first = np.arange(200) < 100
    y = np.where(first, 1.0, -1.0) * X[:, 0]
    model = SoftRegressor(["ridge", "lasso"]).fit(X, y, sample_weight=np.where(first, 1.0, 1e-6))
    assert_allclose(model.predict(X[first]), y[first], atol=0.1)
    assert model.cv_risk_ < 0.01


def test_a_specialist_that_takes_no_weights_is_named_and_still_used(cancer):
    X, y = cancer
    board = SoftClassifier(["knn_5", "naive_bayes"]).fit(X, y, sample_weight=np.ones(len(y))).leaderboard_
    notes = board.set_index("specialist")["note"]
    assert "takes no sample weights" in notes["knn_5"]
    assert "takes no sample weights" not in notes["naive_bayes"]
    assert (board["status"] == "ok").all()


def test_metadata_routing_carries_weights_and_groups(cancer):
    from sklearn import config_context

    X, y = cancer
    with config_context(enable_metadata_routing=True):
        model = SoftClassifier(["naive_bayes"]).set_fit_request(sample_weight=True, groups=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipe.fit(X, y, sample_weight=np.ones(len(y)), groups=np.arange(len(y)) // 2)
    for train, test in pipe[-1].folds_:
        assert not set(train // 2) & set(test // 2)
