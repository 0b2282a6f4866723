"""Disagreement: the two forms of Definition S7 agree, and the detectors are what they say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score

from softlearning.uncertainty.disagreement import (
    blend,
    detector_auc,
    disagreement,
    entropy,
    max_probability_uncertainty,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def random_predictions(rng, n=40, K=5, C=3):
    alpha = rng.dirichlet(np.ones(K))
    P = rng.dirichlet(np.ones(C), size=(n, K)) if C > 1 else rng.normal(size=(n, K, 1))
    return P, alpha


def test_disagreement_keeps_its_digits_when_predictions_share_a_large_offset(rng):
    P, alpha = random_predictions(rng, C=1)
    assert_allclose(disagreement(P + 1e7, alpha), disagreement(P, alpha), rtol=1e-6)


def test_specialists_that_agree_leave_no_uncertainty(rng):
    P = np.repeat(rng.dirichlet(np.ones(3), size=(10, 1)), 4, axis=1)
    assert_allclose(disagreement(P, np.full(4, 0.25)), 0, atol=1e-30)


def test_a_specialist_without_weight_does_not_count(rng):
    P, _ = random_predictions(rng, K=3)
    assert_allclose(disagreement(P, np.array([0.4, 0.6, 0.0])), disagreement(P[:, :2], np.array([0.4, 0.6])))


def test_blend_of_probabilities_is_a_probability(rng):
    P, alpha = random_predictions(rng)
    assert_allclose(blend(P, alpha).sum(axis=1), 1)


def test_entropy_is_zero_for_certainty_and_largest_for_indifference():
    p = np.array([[1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    assert_allclose(entropy(p), [0, np.log(3)])
    assert_allclose(max_probability_uncertainty(p), [0, 2 / 3])


def test_detector_auc_counts_ties_one_half_like_scikit_learn(rng):
    score, wrong = rng.integers(0, 5, size=200), rng.random(200) < 0.3
    assert_allclose(detector_auc(score, wrong), roc_auc_score(wrong, score))
    assert detector_auc(np.zeros(10), np.arange(10) < 3) == 0.5


def test_detector_auc_is_unknown_when_nothing_is_wrong():
    assert np.isnan(detector_auc(np.arange(4.0), np.zeros(4, dtype=bool)))
