"""The calculators: they follow their formulas, move the right way, and hold in a simulation."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from softlearning_bench.audit.guarantees import (
    DEVIATIONS,
    cost_ratio,
    crossover_rows,
    deep_operations,
    estimation_error,
    gram_deviation,
    oracle_bound,
    paper_deviation,
    rows_needed,
    soft_operations,
    specialist_excess,
    stated_bound,
)


@pytest.mark.parametrize("method", DEVIATIONS)
def test_a_bound_falls_with_rows_and_grows_with_specialists_and_confidence(method):
    excess = lambda n=1000, K=15, delta=0.05: oracle_bound(n, K, delta=delta, method=method).excess
    assert excess(n=4000) < excess() < excess(K=100) < excess(K=100, delta=0.001)


def test_the_gram_bound_beats_the_covering_of_the_simplex():
    for n in (100, 1000, 100_000):
        assert oracle_bound(n, 15).excess < oracle_bound(n, 15, method="paper").excess


def test_the_paper_s_bound_says_nothing_at_a_thousand_rows_and_the_calculator_admits_it():
    bound = oracle_bound(1000, 15, method="paper")
    assert bound.worth == 0
    assert "says nothing" in str(bound)
    assert "rules out" in str(oracle_bound(100_000, 15))


def test_rows_needed_inverts_the_bound():
    n = rows_needed(0.1, 15)
    assert oracle_bound(n, 15).excess <= 0.1
    assert oracle_bound(int(0.99 * n), 15).excess > 0.1
    assert rows_needed(0.1, 15, method="paper") > 10 * n


@pytest.mark.parametrize("signed", [False, True])
def test_the_gram_deviation_is_exceeded_in_at_most_delta_of_the_simulations(signed):
    rng = np.random.default_rng(0)
    n, K, V, delta, exceeded = 100, 4, 2, 0.2, 0
    for _ in range(300):  # errors +-1: the largest spread that M = 1 allows; independent, so the means are known
        errors = rng.choice([-1.0, 1.0], size=(n, K)) if signed else rng.choice([0.0, 1.0], size=(n, K))
        mean = np.eye(K) if signed else (np.eye(K) + 1) / 4
        deviation = np.abs(errors.T @ errors / n - mean).max()
        exceeded += deviation > gram_deviation(n, K, V, 1.0, delta, signed=signed)
    assert exceeded <= delta * 300


def test_the_deviation_of_the_paper_is_its_formula():
    expected = math.sqrt((3 * math.log(300) + math.log(2 * 2 / 0.1)) / 100) + 1 / 100
    assert_allclose(paper_deviation(100, 3, 2, 1.0, 0.1, 1.0), expected)


def test_the_stated_form_vanishes_with_the_oracle_risk_and_the_proved_one_does_not():
    assert stated_bound(0.0, 10**6, 15) < 1e-4
    assert oracle_bound(10**6, 15, method="paper").excess > 1e-2


def test_sample_efficiency_follows_its_formulas():
    assert_allclose(estimation_error(5, 104), 0.2193, atol=1e-4)  # the paper's iris example: 0.22 and 4.9
    assert_allclose(estimation_error(2500, 104), 4.9029, atol=1e-4)
    n = crossover_rows(0.1, 5, 2500)
    assert_allclose(0.1 + estimation_error(5, n), estimation_error(2500, n))
    assert crossover_rows(0.0, 5, 2500) == math.inf
    assert specialist_excess(0.1, 5, 15, 100) > 0.1


def test_costs_follow_the_formulas_of_theorem_2():
    assert_allclose(deep_operations(10_000), 2.62e11, rtol=2e-3)
    one = soft_operations(900, 10, V=3, C=2, operations={"naive_bayes": lambda n, d: n * d})
    assert_allclose(one["naive_bayes"], 3 * 600 * 10 + 900 * 10)
    assert one["weights"] == 900 * 2


def test_the_cost_ratio_counts_every_specialist():
    assert cost_ratio(10_000, 100) > cost_ratio(10_000, 100, operations={"knn": lambda n, d: n * d})
