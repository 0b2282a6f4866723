"""Two tables, and a quick model of each."""

import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from softlearning import SoftClassifier, SoftRegressor
from tests.estimators.models import QUICK, QUICK_REGRESSION


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def classifier(cancer):
    return SoftClassifier(QUICK, rule="simplex").fit(*cancer)


@pytest.fixture(scope="module")
def regressor(diabetes):
    return SoftRegressor(QUICK_REGRESSION, rule="simplex").fit(*diabetes)
