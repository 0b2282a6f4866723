"""Diversity: measures that mean what they say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from softlearning.uncertainty.diversity import (
    effective_errors,
    effective_specialists,
    error_correlation,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def classifiers(rng, n=200, K=4, C=3, spread=1.0):
    return rng.dirichlet(np.full(C, spread), size=(n, K)), rng.dirichlet(np.ones(K))


def test_error_correlation_of_regressors_is_the_plain_correlation(rng):
    P, y = rng.normal(size=(100, 3, 1)), rng.normal(size=(100, 1))
    assert_allclose(error_correlation(P, y), np.corrcoef((P - y[:, None])[:, :, 0], rowvar=False))


def test_a_specialist_with_a_constant_error_has_no_correlation_with_others(rng):
    y = rng.normal(size=(50, 1))
    P = np.stack([y + 1.0, y + rng.normal(size=(50, 1))], axis=1)
    assert_allclose(error_correlation(P, y), np.eye(2))


def test_effective_numbers_run_from_one_to_K():
    assert effective_specialists(np.array([1.0, 0, 0])) == 1
    assert_allclose(effective_specialists(np.full(5, 0.2)), 5)
    assert_allclose(effective_errors(np.eye(6)), 6)
    assert_allclose(effective_errors(np.ones((6, 6))), 1)
