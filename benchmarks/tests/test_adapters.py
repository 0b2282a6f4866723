"""Rivals that are more than one call: tuned boosters and scikit-learn's own ensembles, on messy columns."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from softlearning_bench import adapters

ASK = {"seconds": 1000.0, "cores": 1, "seed": 0, "trials": 2}


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):  # many threads on few rows wait for each other
        yield


@pytest.fixture
def table(rng):
    size = rng.normal(size=90)
    X = pd.DataFrame(
        {
            "size": np.where(rng.random(90) < 0.1, np.nan, size),
            "colour": pd.Categorical(rng.choice(["red", "green", None], 90)),
            "name": pd.array(rng.choice(["ann", "bo", None], 90), dtype="string"),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 90), unit="D"),
        }
    )
    return X, pd.Series(np.where(size > 0, "big", "small")), pd.Series(2 * size + rng.normal(size=90) / 10)


SLOW = pytest.param("catboost-tuned", marks=pytest.mark.slow)


@pytest.mark.parametrize("system", ["lightgbm-tuned", "histgb-tuned", SLOW])
def test_a_tuned_booster_has_settings_of_its_space(table, system):
    pytest.importorskip("optuna", reason="tuned rivals need Optuna")
    X, _, y = table
    fit, _, options = adapters.SYSTEMS[system]
    model, predict, classes = fit(X, y, ASK | {"task": "regression"}, **options)
    assert classes is None
    assert np.corrcoef(predict(X), y)[0, 1] > 0.8
    found, usual = model.get_params(), type(model)().get_params()
    space = getattr(adapters, f"{system.split('-')[0].upper()}_SPACE")
    chosen = {name: found[name] for name in space if name in found and found[name] != usual.get(name)}
    assert all(space[name][0] <= value <= space[name][1] for name, value in chosen.items())


def test_the_search_finds_what_the_folds_prefer_and_without_time_keeps_the_defaults(rng):
    pytest.importorskip("optuna", reason="tuned rivals need Optuna")
    from sklearn.linear_model import Ridge

    X = pd.DataFrame(rng.normal(size=(60, 40)))
    y = X[0] + pd.Series(rng.normal(size=60)) * 3
    space = {"alpha": (0.001, 1000.0, True)}
    ask = ASK | {"task": "regression"}
    found = adapters.tuned(Ridge, X, y, ask | {"trials": 30}, space)
    assert found["alpha"] > 5  # of noise little is believed
    assert adapters.tuned(Ridge, X, y, ask | {"seconds": 0.0}, space) == {}


def test_a_class_that_a_fold_lacked_costs_the_floor():
    class Sure:
        classes_ = np.array(["a", "b"])

        def predict_proba(self, X):
            return np.tile([0.5, 0.5], (len(X), 1))

    assert adapters.held_out_loss(Sure(), np.zeros((2, 1)), pd.Series(["a", "c"])) == pytest.approx(
        -(np.log(0.5) + np.log(1e-15)) / 2
    )


@pytest.mark.parametrize("system", ["sklearn-stacking", "sklearn-voting"])
def test_ensembles_of_scikit_learn_take_words_dates_and_missing_values(table, system, monkeypatch):
    from sklearn import ensemble

    sizes = {
        "RandomForest": {"n_estimators": 10},
        "ExtraTrees": {"n_estimators": 10},
        "HistGradientBoosting": {"max_iter": 10},
    }
    for name, smaller in sizes.items():
        kind = getattr(ensemble, f"{name}Classifier")
        monkeypatch.setattr(ensemble, kind.__name__, partial(kind, random_state=0, **smaller))
    X, y, _ = table
    fit, _, options = adapters.SYSTEMS[system]
    _, predict, classes = fit(X, y, ASK | {"task": "classification"}, **options)
    assert list(classes) == ["big", "small"]
    new = X.assign(colour=pd.Categorical(["blue"] * len(X)))  # a level that training lacked
    P = predict(new)
    assert P.sum(axis=1) == pytest.approx(1)
    assert (np.asarray(classes)[P.argmax(axis=1)] == y).mean() > 0.8
