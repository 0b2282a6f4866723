"""The paper's definitions: two forms of the disagreement, the ambiguity identity, the corollary on diversity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from softlearning.uncertainty.disagreement import disagreement
from tests.claims.theory import (
    ambiguity_decomposition,
    ambiguity_rows,
    compare_measures,
    disagreement_pairwise,
    diversity_bound,
    pairwise_distance,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def classifiers(rng, n=200, K=4, C=3, spread=1.0):
    return rng.dirichlet(np.full(C, spread), size=(n, K)), rng.dirichlet(np.ones(K))


@pytest.mark.parametrize("C", [1, 2, 7])
def test_both_forms_of_the_definition_agree_for_both_tasks(rng, C):
    P, alpha = classifiers(rng, n=40, K=5, C=C)
    P = P if C > 1 else rng.normal(size=P.shape)
    assert_allclose(disagreement(P, alpha), disagreement_pairwise(P, alpha), rtol=1e-12, atol=1e-15)


def test_the_measure_that_finds_the_errors_comes_first(rng):
    # two specialists who each say 0.9: they agree when right, contradict each other when the blend is wrong
    n = 300
    truth = rng.integers(0, 2, n)
    odd = rng.random(n) < 0.2
    first, second = np.where(odd, 1 - truth, truth), truth
    P = 0.1 + 0.8 * np.stack([np.eye(2)[first], np.eye(2)[second]], axis=1)
    table = compare_measures(P, np.array([0.6, 0.4]), np.eye(2)[truth])
    best = table[0]
    assert best.auc == 1.0
    assert best.mean_wrong > best.mean_right
    assert {row.name for row in table} == {"disagreement", "entropy", "max_probability"}


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


def test_the_corollary_is_an_equality_for_specialists_that_name_a_class(rng):
    P = np.eye(4)[rng.integers(0, 4, size=(300, 5))]
    bound = diversity_bound(P, rng.dirichlet(np.ones(5)))
    assert bound.holds
    assert_allclose([bound.paper_bound, bound.margin_bound], bound.ambiguity)


def test_the_corollary_fails_for_underconfident_specialists_and_the_margin_bound_does_not():
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
