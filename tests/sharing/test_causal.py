"""Causal users get predictions on their folds, and propensities that stay away from 0 and 1."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from softlearning import SoftClassifier, SoftRegressor
from softlearning.sharing.causal import (
    ClippedPropensity,
    cross_predictions,
    external_predictions,
    partially_linear_effect,
)

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def simulated(n, seed, effect=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    d = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    return X, d, effect * d + np.sin(X[:, 0]) + X[:, 1] + rng.normal(size=n)


def test_the_effect_of_a_treatment_is_found_from_out_of_fold_predictions():
    X, d, y = simulated(600, 0)
    folds = [list(KFold(3, shuffle=True, random_state=r).split(X)) for r in range(2)]
    outcome, treatment = SoftRegressor(["ridge"], cv=2), SoftClassifier(["logistic"], cv=2)
    given = external_predictions(outcome, treatment, X, y, d, folds)["d"]
    assert given["ml_l"].shape == given["ml_m"].shape == (600, 2)
    assert given["ml_m"].min() >= 0.01
    effect, error = partially_linear_effect(y, d, given["ml_l"][:, 0], given["ml_m"][:, 0])
    assert abs(effect - 0.5) < 3 * error
    naive = y[d == 1].mean() - y[d == 0].mean()
    assert abs(naive - 0.5) > 3 * error


def test_no_row_is_predicted_by_a_model_that_saw_it():
    X, _, y = simulated(90, 1)
    folds = list(KFold(3).split(X))
    found = cross_predictions(SoftRegressor(["ridge"], cv=2), X, y, folds)
    train, test = folds[1]
    np.testing.assert_allclose(found[test], SoftRegressor(["ridge"], cv=2).fit(X[train], y[train]).predict(X[test]))
    with pytest.raises(ValueError, match="partitions"):
        cross_predictions(SoftRegressor(["ridge"], cv=2), X, y, folds[:2])


def test_propensities_are_clipped():
    X, d, _ = simulated(200, 2)
    model = ClippedPropensity(SoftClassifier(["logistic"], cv=2), clip=0.2).fit(5 * X, d)
    P = model.predict_proba(5 * X)
    assert P.min() == pytest.approx(0.2)
    assert P.sum(axis=1) == pytest.approx(1)
    assert (model.predict(5 * X) == d).mean() > 0.6


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_intervals_of_a_known_effect_cover_over_200_simulations():
    lines = []
    for seed in range(200):
        X, d, y = simulated(300, seed)
        folds = list(KFold(3, shuffle=True, random_state=seed).split(X))
        outcome = cross_predictions(SoftRegressor(["ridge", "spline_ridge"], cv=2), X, y, folds)
        treatment = cross_predictions(SoftClassifier(["logistic"], cv=2), X, d, folds)
        effect, error = partially_linear_effect(y, d, outcome, treatment)
        lines.append(
            {"simulation": seed, "effect": effect, "std_error": error, "naive": y[d == 1].mean() - y[d == 0].mean()}
        )
    found = pd.DataFrame(lines).round(6)
    found["inside"] = (found["effect"] - 0.5).abs() <= 1.96 * found["std_error"]
    found.to_csv(RESULTS / "effect_coverage.csv", index=False)
    assert 0.92 <= found["inside"].mean() <= 0.98
    assert abs(found["effect"].mean() - 0.5) < 0.03 < abs(found["naive"].mean() - 0.5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["LinearDML", "LinearDRLearner"])
def test_econml_takes_the_models_as_nuisance_estimators(method):
    econml = pytest.importorskip(f"econml.{'dml' if method == 'LinearDML' else 'dr'}", reason="a package of its own")
    X, d, y = simulated(500, 0)
    outcome, treatment = SoftRegressor(["ridge"], cv=2), ClippedPropensity(SoftClassifier(["logistic"], cv=2))
    if method == "LinearDML":
        found = econml.LinearDML(model_y=outcome, model_t=treatment, discrete_treatment=True, cv=3, random_state=0)
    else:
        found = econml.LinearDRLearner(model_regression=outcome, model_propensity=treatment, cv=3, random_state=0)
    found.fit(y, d, X=X, sample_weight=np.ones(len(y)))
    low, high = found.ate_interval(X)
    assert low < 0.5 < high
    assert high - low < 0.6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_doubleml_takes_the_predictions():
    doubleml = pytest.importorskip("doubleml", reason="an optional package of its own")
    X, d, y = simulated(400, 3)
    data = doubleml.DoubleMLData.from_arrays(X, y, d)
    from doubleml.utils import DMLDummyClassifier, DMLDummyRegressor

    plr = doubleml.DoubleMLPLR(data, DMLDummyRegressor(), DMLDummyClassifier(), n_folds=3)
    given = external_predictions(SoftRegressor(["ridge"], cv=2), SoftClassifier(["logistic"], cv=2), X, y, d, plr.smpls)
    plr.fit(external_predictions=given)
    effect, error = partially_linear_effect(y, d, given["d"]["ml_l"][:, 0], given["d"]["ml_m"][:, 0])
    np.testing.assert_allclose([plr.coef[0], plr.se[0]], [effect, error], rtol=1e-6)
