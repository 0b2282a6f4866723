"""Radii read from fitted models: nothing moves within them; what is unknown says so."""

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from softlearning_bench.audit.cells import specialist_radius
from softlearning_bench.audit.gradients import outputs

CATBOOST = {"iterations": 20, "depth": 3, "verbose": False, "allow_writing_files": False, "thread_count": 1}
FLAT = {
    "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": RandomForestClassifier(4, max_depth=4, random_state=0),
    "extra": ExtraTreesRegressor(4, max_depth=4, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=5, random_state=0),
    "ada": AdaBoostClassifier(n_estimators=5, random_state=0),
    "histogram": HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=8),
    "catboost": CatBoostClassifier(**CATBOOST),
    "lightgbm": LGBMClassifier(n_estimators=5, num_leaves=6, verbose=-1, n_jobs=1),
    "neighbours": KNeighborsClassifier(3),
    "dummy": DummyClassifier(strategy="prior"),
    "pipeline": make_pipeline(DecisionTreeClassifier(max_depth=3, random_state=0)),
}


@pytest.fixture(scope="module")
def table():
    return make_classification(300, 4, n_informative=4, n_redundant=0, random_state=0)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", FLAT)
def test_nothing_moves_within_the_radius(name, table):
    X, y = table
    model = FLAT[name].fit(X[:200], y[:200])
    rows, rng = X[200:], np.random.default_rng(0)
    radius = specialist_radius(model, rows, np.ones(4))
    step = np.where(np.isfinite(radius), 0.999 * radius, 50.0)[:, None]
    for _ in range(40):
        moved = rows + step * rng.choice([-1.0, 1.0], size=rows.shape)
        assert np.array_equal(outputs(model, moved), outputs(model, rows))


@pytest.mark.parametrize("name", ["histogram", "catboost"])
def test_the_radius_is_not_smaller_than_it_must_be(name, table):
    X, y = table
    model = FLAT[name].fit(X[:200], y[:200])
    rows = X[200:]
    radius = specialist_radius(model, rows, np.ones(4))
    assert np.median(radius) > 1e-4
    steps = np.concatenate([np.eye(4), -np.eye(4)])
    moved = [outputs(model, rows + 1.01 * radius[:, None] * s + 1e-6 * s) for s in steps]
    changed = np.any([(m != outputs(model, rows)).any(axis=1) for m in moved], axis=0)
    assert changed.mean() > 0.9  # a neighbouring leaf may happen to give the same answer


def test_distance_weighted_neighbours_are_not_piecewise_constant(table):
    X, y = table
    model = KNeighborsClassifier(5, weights="distance").fit(X[:200], y[:200])
    radius = specialist_radius(model, X[200:], np.ones(4))
    mixed = outputs(model, X[200:]).max(axis=1) < 1
    assert mixed.any()
    assert not radius[mixed].any()
    assert (radius[~mixed] > 0).all()
    assert (outputs(model, X[200:][mixed] + 1e-6) != outputs(model, X[200:][mixed])).any(axis=1).all()


def test_other_metrics_than_the_euclidean_promise_nothing(table):
    X, y = table
    assert not specialist_radius(KNeighborsClassifier(3, p=1).fit(X, y), X[:5] + 0.1, np.ones(4)).any()


def test_units_stretch_the_radius(table):
    X, y = table
    model = FLAT["tree"].fit(X, y)
    assert np.allclose(specialist_radius(model, X, np.full(4, 3.0)), 3 * specialist_radius(model, X, np.ones(4)))


def test_smooth_and_categorical_models_are_unknown(table):
    X, y = table
    assert specialist_radius(LogisticRegression().fit(X, y), X, np.ones(4)) is None
    codes = X.copy()
    codes[:, 0] = np.digitize(X[:, 0], [-1, 0, 1])
    y = codes[:, 0] % 2
    histogram = HistGradientBoostingClassifier(max_iter=5, categorical_features=[0]).fit(codes, y)
    assert specialist_radius(histogram, codes, np.ones(4)) is None
    frame = pd.DataFrame(codes).astype({0: int})
    catboost = CatBoostClassifier(**CATBOOST, cat_features=[0]).fit(frame, y)
    assert specialist_radius(catboost, codes, np.ones(4)) is None
    light = LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(frame.astype({0: "category"}), y)
    assert specialist_radius(light, codes, np.ones(4)) is None
