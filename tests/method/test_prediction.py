"""One pass over the rows says the same as the estimator's methods, one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from softlearning import SoftClassifier, SoftRegressor
from softlearning.method.prediction import MEASURES, selective_choice
from softlearning.uncertainty.selective import risk_coverage_curve


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
    assert_allclose(reply.table()["disagreement"], model.predict(X, return_std=True)[1])  # in the target's unit


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


def test_a_risk_that_no_rows_can_guarantee_is_said_with_the_smallest_that_they_can(rng):
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + 1.5 * rng.normal(size=80) > 0, "a", "b")
    model = SoftClassifier(["logistic", "naive_bayes"]).fit(X, y)
    with pytest.warns(
        UserWarning, match=r"no row is accepted: these 80 held-out rows .* the smallest that they can is"
    ):
        _, accepted = model.predict_selective(X, risk=0.01)
    assert not accepted.any()


@pytest.mark.parametrize(
    ("wrong", "message"), [({"risk": 5}, "risk"), ({"coverage": 3}, "coverage"), ({"measure": "x"}, "x")]
)
def test_what_is_no_share_or_no_measure_is_refused(rows, wrong, message):
    X, y = rows
    model = SoftClassifier(["logistic"]).fit(X, y > 0)
    with pytest.raises(ValueError, match=message):
        model.predict_selective(X, **wrong)


def test_the_measure_that_finds_most_errors_on_held_out_rows_is_taken(rng):
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    model = SoftClassifier(["logistic", "knn_15", "decision_tree"], rule="uniform").fit(X, y)
    held = model.record_.held_out
    wrong = held.blend.argmax(axis=1) != held.target.argmax(axis=1)
    areas = {n: risk_coverage_curve(m(held.blend, held.disagreement), wrong).area for n, m in MEASURES.items()}
    chosen = selective_choice(held, held.blend.argmax(axis=1), "auto", 0.8, None, 0.9)
    assert areas[chosen.measure] == min(areas.values())


@pytest.mark.parametrize("threshold", [0.05, "auto", [[0, 1], [20, 0]]])
def test_a_risk_is_that_of_the_labels_that_are_given(threshold):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 2))
    y = (rng.random(3_000) < 1 / (1 + np.exp(3 - 2 * X[:, 0]))).astype(int)
    model = SoftClassifier(["naive_bayes"], threshold=threshold).fit(X[:800], y[:800])
    labels, accepted = model.predict_selective(X[800:], risk=0.1)
    assert (labels != y[800:]).mean() > 0.15
    assert accepted.any()
    assert (labels != y[800:])[accepted].mean() < 0.12
