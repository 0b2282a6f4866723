"""Diversity: the ambiguity identity to rounding, measures that mean what they say, the corollary both ways."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import accuracy_score

from softlearning.uncertainty.diversity import (
    ambiguity_decomposition,
    ambiguity_rows,
    diversity_bound,
    double_fault,
    effective_opinions,
    effective_specialists,
    error_correlation,
    label_disagreement,
    pairwise_distance,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def classifiers(rng, n=200, K=4, C=3, spread=1.0):
    return rng.dirichlet(np.full(C, spread), size=(n, K)), rng.dirichlet(np.ones(K))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 30),
    K=st.integers(1, 8),
    C=st.integers(1, 5),
    unit=st.sampled_from([1e-12, 1.0, 1e12]),
)
def test_blend_error_is_average_error_minus_disagreement(seed, n, K, C, unit):
    rng = np.random.default_rng(seed)
    P, target, alpha = (
        unit * rng.normal(size=(n, K, C)),
        unit * rng.normal(size=(n, C)),
        rng.dirichlet(np.ones(K)),
    )
    blend_error, average_error, V = ambiguity_rows(P, target, alpha)
    assert_allclose(blend_error, average_error - V, atol=1e-13 * average_error.max())
    whole = ambiguity_decomposition(P, target, alpha, sample_weight=rng.random(n) + 0.1)
    assert abs(whole.blend_error - (whole.average_error - whole.ambiguity)) <= 1e-13 * whole.average_error


def test_ambiguity_is_half_the_weighted_sum_of_pairwise_distances(rng):
    P, alpha = classifiers(rng)
    A = ambiguity_decomposition(P, np.zeros((200, 3)), alpha).ambiguity
    assert_allclose(alpha @ pairwise_distance(P) @ alpha / 2, A)


def test_label_disagreement_and_double_fault_count_rows(rng):
    P, _ = classifiers(rng)
    target = np.eye(3)[rng.integers(0, 3, 200)]
    label = P.argmax(axis=2)
    assert_allclose(label_disagreement(P)[0, 1], np.mean(label[:, 0] != label[:, 1]))
    assert_allclose(np.diag(label_disagreement(P)), 0)
    error_rate = 1 - accuracy_score(target.argmax(1), label[:, 2])
    assert_allclose(double_fault(P, target)[2, 2], error_rate)
    assert np.all(double_fault(P, target) <= np.diag(double_fault(P, target))[:, None] + 1e-12)


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
    assert_allclose(effective_opinions(np.eye(6)), 6)
    assert_allclose(effective_opinions(np.ones((6, 6))), 1)


def test_the_corollary_is_an_equality_for_specialists_that_name_a_class(rng):
    P = np.eye(4)[rng.integers(0, 4, size=(300, 5))]
    bound = diversity_bound(P, rng.dirichlet(np.ones(5)))
    assert bound.holds
    assert_allclose([bound.paper_bound, bound.margin_bound], bound.ambiguity)


def test_the_corollary_fails_for_timid_specialists_and_the_margin_bound_does_not():
    P = np.array([[[0.51, 0.49], [0.49, 0.51]]])
    bound = diversity_bound(P, np.array([0.5, 0.5]))
    assert not bound.holds
    assert_allclose([bound.ambiguity, bound.paper_bound], [2e-4, 0.5])
    assert_allclose(bound.margin_bound, 2e-4)


@pytest.mark.parametrize("spread", [0.05, 0.5, 5.0])
def test_the_margin_bound_never_exceeds_the_ambiguity(rng, spread):
    for _ in range(20):
        bound = diversity_bound(*classifiers(rng, n=30, spread=spread))
        assert bound.margin_bound <= bound.ambiguity * (1 + 1e-12)
