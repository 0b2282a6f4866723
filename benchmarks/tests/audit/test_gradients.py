"""Analytic slopes of every learner in the table are those of central differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, SplineTransformer, StandardScaler
from sklearn.svm import SVR

from softlearning.library.learners import PlattSVC
from softlearning_bench.audit.gradients import PULL_BACK, by_differences, outputs, pull_back

pytestmark = pytest.mark.filterwarnings("ignore:Stochastic Optimizer")

MLP = {"hidden_layer_sizes": (12, 8), "max_iter": 60, "random_state": 0}
CLASSIFIERS = {
    "logistic": LogisticRegression(),
    "relu": MLPClassifier(**MLP),
    "tanh": MLPClassifier(activation="tanh", **MLP),
    "sigmoid": MLPClassifier(activation="logistic", **MLP),
    "naive_bayes": GaussianNB(),
    "svm": PlattSVC(random_state=0),
    "knn": KNeighborsClassifier(5, weights="distance"),
    "spline": make_pipeline(StandardScaler(), SplineTransformer(n_knots=4), LogisticRegression()),
    "other_pipeline": make_pipeline(MinMaxScaler(), LogisticRegression()),
}
REGRESSORS = {
    "ridge": Ridge(),
    "relu": MLPRegressor(**MLP),
    "svr": SVR(C=10),
    "linear_svr": SVR(kernel="linear"),
    "knn": KNeighborsRegressor(5, weights="distance"),
    "spline": make_pipeline(SplineTransformer(n_knots=4), Ridge()),
    "unknown": GaussianProcessRegressor(alpha=1.0),
}


def rows(classes=3):
    return make_classification(150, 4, n_informative=4, n_redundant=0, n_classes=classes, random_state=1)


def check(model, Z, u):
    exact, numeric = pull_back(model, Z, u), by_differences(model, Z, u)
    assert np.abs(numeric).max() > 1e-4
    assert_allclose(exact, numeric, atol=2e-5 * np.abs(numeric).max())


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_slopes_of_classifiers(name, classes):
    X, y = rows(classes)
    model = CLASSIFIERS[name].fit(X[:100], y[:100])
    check(model, X[100:], np.random.default_rng(0).normal(size=(50, classes)))


@pytest.mark.parametrize("name", REGRESSORS)
def test_slopes_of_regressors(name):
    X, _ = rows()
    model = REGRESSORS[name].fit(X[:100], np.sin(X[:100]).sum(axis=1))
    check(model, X[100:], np.full((50, 1), 2.0))


def test_trees_and_plain_neighbours_give_no_slope():
    X, y = rows()
    for model in (RandomForestClassifier(5, random_state=0), KNeighborsClassifier(5)):
        assert not pull_back(model.fit(X, y), X[:10], np.ones((10, 3))).any()


def test_a_row_of_the_training_set_has_no_slope_under_distance_weights():
    X, y = rows()
    model = KNeighborsClassifier(5, weights="distance").fit(X, y)
    assert not pull_back(model, X[:10], np.eye(3)[y[:10]]).any()


def test_a_spline_is_constant_beyond_its_knots():
    X, y = rows()
    model = make_pipeline(SplineTransformer(n_knots=4), LogisticRegression()).fit(X, y)
    far = np.full((1, 4), 100.0)
    assert not pull_back(model, far, np.array([[1.0, 0, 0]])).any()
    assert_allclose(outputs(model, far), outputs(model, 2 * far))


def test_every_row_of_the_table_is_a_class_name():
    assert all(name.isidentifier() and callable(row) for name, row in PULL_BACK.items())
