"""Specialists for a quantile of a number: each minimises the pinball loss at its level."""

from __future__ import annotations

from functools import partial

from lightgbm import LGBMRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.pipeline import make_pipeline

from softlearning.library.learners import CapCategories
from softlearning.library.specialist import Cost, Library, Shape, Specialist

PROGRAMME = "the linear programme of a quantile grows with the rows"


def boosted(shape: Shape, level: float) -> LGBMRegressor:
    """LightGBM on small, slow trees; leaves of few rows have no quantile."""
    leaf = max(5, min(40, shape.rows // 25))
    return LGBMRegressor(
        objective="quantile", alpha=level, n_estimators=200, learning_rate=0.05, num_leaves=15, min_child_samples=leaf,
        subsample=0.8, subsample_freq=1, colsample_bytree=0.8, n_jobs=1, verbose=-1,
    )  # fmt: skip


def histogram(shape: Shape, level: float):
    """scikit-learn's boosting, whose leaves are quantiles of their rows."""
    boosting = HistGradientBoostingRegressor(
        loss="quantile", quantile=level, max_iter=100, learning_rate=0.08, max_leaf_nodes=15, early_stopping=False,
        min_samples_leaf=max(5, min(20, shape.rows // 25)), categorical_features=list(shape.categorical) or None,
    )  # fmt: skip
    return make_pipeline(CapCategories(shape.categorical), boosting) if shape.categorical else boosting


def linear(shape: Shape, level: float) -> QuantileRegressor:
    """Linear quantile regression, with a small L1 penalty."""
    return QuantileRegressor(quantile=level, alpha=1e-3)


def constant(shape: Shape, level: float) -> DummyRegressor:
    """The quantile of the training rows."""
    return DummyRegressor(strategy="quantile", quantile=level)


def quantile_rows(level: float) -> Library:
    """The specialists for one level, which their names tell."""
    flat = partial(Specialist, trusted=True, piecewise_constant=True, needs="native", sparse=False)
    name = "{}_q" + f"{level:g}"
    return Library((
        flat(name.format("lightgbm"), "tree", partial(boosted, level=level), cost=Cost(0.15)),
        flat(name.format("histogram"), "tree", partial(histogram, level=level), cost=Cost(0.3)),
        Specialist(name.format("linear"), "linear", partial(linear, level=level), max_rows=5_000, reason=PROGRAMME,
                   cost=Cost(0.1, 1.5), sparse=False, trusted=True),
        flat(name.format("constant"), "baseline", partial(constant, level=level), cost=Cost(0.001)),
    ))  # fmt: skip
