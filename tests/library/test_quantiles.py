"""Specialists of a quantile: each leaves the right share of rows below it, and the library names them by level."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from softlearning.execution import one_thread
from softlearning.library.quantiles import ShiftedRegressor, aimed_rows, quantile_rows
from softlearning.library.specialist import Shape


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 2))
    return X, 2 * X[:, 0] + (0.2 + X[:, 1]) * rng.normal(size=400)


@pytest.mark.parametrize("row", aimed_rows(0.9), ids=lambda row: row.name)
def test_the_share_of_rows_below_is_the_level(row, rows):
    X, y = rows
    estimator = row.make(Shape("regression", 400, 2))
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    if row.name.startswith("wide"):
        estimator.set_params(regressor__n_estimators=20)
    with one_thread:
        below = y[300:] <= estimator.fit(X[:300], y[:300]).predict(X[300:])
    assert abs(below.mean() - 0.9) < 0.12


def test_a_shift_is_the_quantile_of_out_of_fold_residuals(rows):
    X, y = rows
    moved = [ShiftedRegressor(Ridge(), q, random_state=0).fit(X, y).shift_ for q in (0.1, 0.5, 0.9)]
    assert moved[0] < moved[1] < moved[2]
    assert abs(moved[1]) < 0.1


def test_names_tell_the_level_and_the_median_needs_no_shift():
    assert all(name.endswith("q0.25") for name in aimed_rows(0.25).names)
    assert aimed_rows(0.5).names == quantile_rows(0.5).names
