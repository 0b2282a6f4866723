"""Reasons for weights, and their intervals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from softlearning.uncertainty.disagreement import blend
from softlearning.weights.reasons import gram_matrix, why_these_weights


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def regression(rng):
    """Two good specialists with independent errors, a copy of the first, and a worse version of the second."""
    y = rng.normal(size=(400, 1))
    a, b = y + 0.5 * rng.normal(size=(400, 1)), y + 0.5 * rng.normal(size=(400, 1))
    worse = y + 1.5 * (b - y) + 0.3 * rng.normal(size=(400, 1))
    return np.stack([a, b, a + 1e-5 * rng.normal(size=a.shape), worse], axis=1), y


def test_gram_matrix_holds_the_risk_of_every_blend(rng):
    P, target, alpha = rng.normal(size=(30, 4, 3)), rng.normal(size=(30, 3)), rng.dirichlet(np.ones(4))
    risk = ((blend(P, alpha) - target) ** 2).sum(axis=1)
    assert_allclose(alpha @ gram_matrix(P, target) @ alpha, risk.mean())
    weight = rng.random(30)
    assert_allclose(alpha @ gram_matrix(P, target, weight) @ alpha, np.average(risk, weights=weight))


def test_every_specialist_gets_a_reason(regression):
    P, y = regression
    alpha = np.array([0.5, 0.5, 0.0, 0.0])
    reasons = why_these_weights(["a", "b", "copy", "worse"], P, y, alpha)
    words = {r.specialist: (r.word, r.other) for r in reasons}
    assert words == {
        "a": ("earns", ""),
        "b": ("earns", ""),
        "copy": ("duplicate", "a"),
        "worse": ("dominated", "b"),
    }


def test_a_specialist_that_only_a_blend_makes_superfluous_is_not_called_dominated(rng):
    # the errors of c are the mean of those of a and b plus noise: neither alone dominates it
    e = rng.normal(size=(2000, 2))
    c = e.mean(axis=1) + 0.6 * rng.normal(size=2000)
    P = np.stack([e[:, :1], e[:, 1:], c[:, None]], axis=1)
    alpha = np.array([0.5, 0.5, 0.0])
    reason = why_these_weights(["a", "b", "c"], P, np.zeros((2000, 1)), alpha)[-1]
    assert (reason.specialist, reason.word) == ("c", "not needed")


def test_the_only_specialist_cannot_be_dropped():
    P, y = np.zeros((3, 1, 1)), np.ones((3, 1))
    assert why_these_weights(["a"], P, y, np.ones(1))[0].word == "only"
