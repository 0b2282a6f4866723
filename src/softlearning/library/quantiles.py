"""Specialists for a quantile of a number: by pinball loss, or moved from the mean by out-of-fold residuals."""

from __future__ import annotations

from functools import partial

import numpy as np
from lightgbm import LGBMRegressor
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.utils.validation import check_is_fitted

from softlearning.library import recipes
from softlearning.library.specialist import Cost, Library, Shape, Specialist

FOLDS = 3  # for residuals
PROGRAMME = "the linear programme of a quantile grows with the rows"


class ShiftedRegressor(RegressorMixin, BaseEstimator):
    """A regressor whose predictions are moved by a quantile of its own out-of-fold residuals.

    Parameters
    ----------
    regressor : of the mean.
    level : the quantile.
    random_state : of the three folds.
    """

    def __init__(self, regressor, level, random_state=None):
        self.regressor = regressor
        self.level = level
        self.random_state = random_state

    def fit(self, X, y):
        """Fit on folds for the residuals, then on all rows."""
        y = np.asarray(y, dtype=float)
        folds = KFold(FOLDS, shuffle=True, random_state=self.random_state)
        residual = y - cross_val_predict(self.regressor, X, y, cv=folds)
        self.shift_ = float(np.quantile(residual, self.level))
        self.regressor_ = clone(self.regressor).fit(X, y)
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        """The regressor's predictions, moved."""
        check_is_fitted(self)
        return np.ravel(self.regressor_.predict(X)) + self.shift_


def leaf_of(shape: Shape, level: float) -> int:
    """Rows of a leaf at least: few rows tell a median, but little of a quantile off it."""
    return max(5, min(40, shape.rows // 25)) if level == 0.5 else max(5, min(60, shape.rows // 12))


class PinballLightGBM(RegressorMixin, BaseEstimator):
    """LightGBM by pinball loss, on small trees.

    Parameters
    ----------
    level : the quantile.
    leaf : rows of a leaf at least.
    random_state : int or None.
    """

    def __init__(self, level, leaf=20, random_state=None):
        self.level = level
        self.leaf = leaf
        self.random_state = random_state

    def fit(self, X, y):
        """200 rounds of 15 leaves for the median, 120 of 8 for others, which boosting soon passes by."""
        rounds, leaves = (200, 15) if self.level == 0.5 else (120, 8)
        self.model_ = LGBMRegressor(
            objective="quantile", alpha=self.level, n_estimators=rounds, learning_rate=0.05, num_leaves=leaves,
            reg_lambda=1.0, min_child_samples=self.leaf, subsample=0.8, subsample_freq=1, colsample_bytree=0.8,
            n_jobs=1, verbose=-1, random_state=self.random_state,
        ).fit(X, y)  # fmt: skip
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        """The quantile of each row."""
        check_is_fitted(self)
        return self.model_.predict(X)


def boosted(shape: Shape, level: float) -> ShiftedRegressor:
    """LightGBM by pinball loss, moved to where its held-out rows say that the quantile is."""
    return ShiftedRegressor(PinballLightGBM(level, leaf_of(shape, level)), level)


def linear(shape: Shape, level: float) -> QuantileRegressor:
    """Linear quantile regression, with a small L1 penalty."""
    return QuantileRegressor(quantile=level, alpha=1e-3)


def constant(shape: Shape, level: float) -> DummyRegressor:
    """The quantile of the training rows."""
    return DummyRegressor(strategy="quantile", quantile=level)


def shifted(shape: Shape, level: float, make) -> ShiftedRegressor:
    """A recipe of the mean, moved to a quantile."""
    return ShiftedRegressor(make(shape), level)


def aimed_rows(level: float) -> Library:
    """What joins a library that aims at a quantile: its specialists and, off the median, those of the mean, moved."""
    if level == 0.5:
        return quantile_rows(level)
    kinds = (("lightgbm", "tree", recipes.lightgbm, "native"), ("wide_trees", "tree", recipes.wide_trees, "ordinal"),
             ("spline_ridge", "complementary", recipes.spline, "scaled"))  # fmt: skip
    moved = tuple(
        Specialist(f"{name}_to_q{level:g}", family, partial(shifted, level=level, make=make), needs=view,
                   cost=Cost(1.0, 1.1), sparse=False, trusted=True)
        for name, family, make, view in kinds
    )  # fmt: skip
    return Library((*quantile_rows(level), *moved))


def quantile_rows(level: float) -> Library:
    """The specialists for one level, which their names tell."""
    flat = partial(Specialist, trusted=True, piecewise_constant=True, needs="native", sparse=False)
    name = "{}_q" + f"{level:g}"
    return Library((
        flat(name.format("lightgbm"), "tree", partial(boosted, level=level), cost=Cost(0.4)),
        Specialist(name.format("linear"), "linear", partial(linear, level=level), max_rows=5_000, reason=PROGRAMME,
                   cost=Cost(0.1, 1.5), sparse=False, trusted=True),
        flat(name.format("constant"), "baseline", partial(constant, level=level), cost=Cost(0.001)),
    ))  # fmt: skip
