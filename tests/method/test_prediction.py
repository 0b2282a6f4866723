"""One pass over the rows says the same as the estimator's methods, one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from softlearning import SoftClassifier, SoftRegressor


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(80, 3))
    return X, X[:, 0] + 0.5 * np.sin(3 * X[:, 1]) + 0.3 * rng.normal(size=80)


def test_numbers(rows):
    X, y = rows
    model = SoftRegressor(["ridge", "knn_5"]).fit(X, y)
    reply = model.predict_full(X, coverage=0.8)
    assert_array_equal(reply.value, model.predict(X))
    assert_array_equal(reply.disagreement, model.disagreement(X))
    assert_allclose((reply.low, reply.high), model.predict_interval(X, 0.8))


def test_classes(rows):
    X, y = rows
    model = SoftClassifier(["logistic", "knn_5"]).fit(X, np.digitize(y, [-0.5, 0.5]))
    reply = model.predict_full(X, coverage=0.8)
    assert_array_equal(reply.value, model.predict(X))
    assert_array_equal(reply.probability, model.predict_proba(X))
    assert_array_equal(reply.inside, model.predict_set(X, 0.8))
    assert list(model.predict_full(X).table()) == [
        "prediction",
        "probability_0",
        "probability_1",
        "probability_2",
        "disagreement",
    ]
