"""Quantiles: ordered, covering, better by pinball loss where the spread follows the columns, and stored."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_pinball_loss

from softlearning import SoftRegressor, load
from softlearning.library.quantiles import quantile_rows
from softlearning.method.quantiles import between

LEVELS = (0.05, 0.5, 0.95)


def uneven(n, seed):
    """Numbers whose spread grows with a column."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.uniform(0, 1, n), "kind": rng.choice(["a", "b"], n)})
    y = 2 * frame["x"] + (frame["kind"] == "b") + (0.1 + 2 * frame["x"]) * rng.normal(0, 1, n)
    return frame, y.to_numpy()


@pytest.fixture(scope="module")
def new():
    return uneven(2_000, 1)


@pytest.fixture(scope="module")
def plain():
    return SoftRegressor(["ridge", "dummy"], cv=3).fit(*uneven(600, 0))


@pytest.fixture(scope="module")
def fitted():
    return SoftRegressor(["ridge", "dummy"], cv=3, quantiles=LEVELS, n_jobs=1).fit(*uneven(600, 0))


@pytest.mark.parametrize("which", ["plain", "fitted"])
def test_quantiles_rise_with_their_level_and_hold_their_share(which, request, new):
    model, (X, y) = request.getfixturevalue(which), new
    levels = np.array([0.02, 0.05, 0.2, 0.5, 0.7, 0.95, 0.98])
    values = model.predict_quantile(X, levels)
    assert (np.diff(values, axis=1) >= 0).all()
    assert np.abs((y[:, None] <= values).mean(axis=0) - levels).max() < 0.06
    np.testing.assert_allclose(model.predict_quantile(X, 0.7), values[:, 4])


def test_specialists_of_a_level_have_less_pinball_loss_where_the_spread_varies(plain, fitted, new):
    X, y = new
    for q in (0.05, 0.95):
        theirs, ours = (mean_pinball_loss(y, m.predict_quantile(X, q), alpha=q) for m in (plain, fitted))
        assert ours < theirs


def test_the_narrower_interval_is_taken_and_keeps_its_coverage(fitted, new):
    X, y = new
    widths = {}
    for method in ("conformal", "quantile", "auto"):
        low, high = fitted.predict_interval(X, 0.9, method=method)
        assert abs(((low <= y) & (y <= high)).mean() - 0.9) < 0.05
        widths[method] = (high - low).mean()
    assert widths["auto"] == widths["quantile"] < widths["conformal"]
    with pytest.raises(ValueError, match="'conformal'"):
        fitted.predict_interval(X, method="best")


def test_quantiles_are_saved_and_survive_another_rule(fitted, new, tmp_path):
    X = new[0].iloc[:20]
    fitted.save(tmp_path / "model")
    expected = fitted.predict_quantile(X, LEVELS)
    np.testing.assert_array_equal(load(tmp_path / "model").predict_quantile(X, LEVELS), expected)
    assert fitted.recombine(rule="simplex").predict_quantile(X, LEVELS).shape == (20, 3)


def test_weights_of_a_level_are_certified(fitted):
    for fit in fitted.quantile_fits_:
        assert fit.record.solution.gap <= 1e-8 * fit.record.solution.objective
        assert 0 <= fit.share <= 1


@pytest.mark.parametrize("q", [0, 1.5, []])
def test_what_is_no_level_is_refused(plain, new, q):
    with pytest.raises(ValueError, match="above 0 and below 1"):
        plain.predict_quantile(new[0], q)


def test_levels_in_between_rise_as_the_residuals_do():
    levels, values, route = np.array([0.1, 0.5, 0.9]), np.array([[0.0, 1.0, 3.0]]), np.array([[-1.0, 0.0, 4.0]])
    found = [
        between(levels, values, route, q, np.array([r]))[0] for q, r in ((0.1, -1), (0.3, -0.5), (0.8, 1), (0.9, 4))
    ]
    np.testing.assert_allclose(found, [0, 0.5, 1.5, 3], atol=1e-12)


def test_a_named_library_is_joined_by_specialists_of_the_aim():
    model = SoftRegressor("fast", metric="mae")
    assert set(quantile_rows(0.5).names) <= set(model._library(model._aim()).names)
    assert SoftRegressor(["ridge"], metric="mae")._library(model._aim()).names == ("ridge",)
