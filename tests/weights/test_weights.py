import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from softlearning.weights import RULES, row_losses, solve_weights
from tests.weights.solver_problems import (
    LOG_KINDS,
    SQUARED_KINDS,
    infeasibility,
    log_gap,
    log_problem,
    optimality_gap,
    softmax,
    squared_gap,
    squared_problem,
)

LOSSES = ("squared", "log")
SIZES = (1, 2, 3, 5, 8, 15, 16, 40, 120)


@pytest.fixture
def classes():
    rng = np.random.default_rng(7)
    Y = np.eye(3)[rng.integers(0, 3, 90)]
    P = softmax(rng.uniform(0.5, 3, (1, 6, 1)) * Y[:, None] + rng.normal(size=(90, 6, 3)))
    return P, Y


def column(*values):
    """Predictions of one row of regression with target 0: the error of specialist k is -values[k]."""
    return np.array(values, dtype=float).reshape(1, -1, 1), np.zeros((1, 1))


# ---------------------------------------------------------------------------------------------- the exact solution


@pytest.mark.parametrize("kind", SQUARED_KINDS)
@pytest.mark.parametrize("K", SIZES)
def test_least_squares_weights_are_feasible_and_certified(kind, K):
    P, Y, weight = squared_problem(3, kind, K)
    solution = solve_weights(P, Y, sample_weight=weight)
    assert infeasibility(solution.weights) <= 1e-12
    assert squared_gap(P, Y, weight, solution.weights) <= 1e-10
    assert 0 <= solution.gap <= solution.objective


@pytest.mark.parametrize("kind", LOG_KINDS)
@pytest.mark.parametrize("K", SIZES)
def test_log_loss_weights_are_feasible_and_certified(kind, K):
    P, Y, weight = log_problem(3, kind, K)
    solution = solve_weights(P, Y, loss="log", sample_weight=weight)
    assert infeasibility(solution.weights) <= 1e-12
    assert log_gap(P, Y, weight, solution.weights) <= 1e-9
    assert solution.gap <= 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_one_specialist_gets_all_the_weight(loss, classes):
    P, Y = classes
    solution = solve_weights(P[:, :1], Y, loss=loss)
    assert solution.weights.tolist() == [1.0]
    assert solution.unique
    assert_allclose(solution.objective, row_losses(P[:, :1], Y, [1.0], loss).mean())


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e9, 1e150])
@pytest.mark.parametrize("rule", RULES)
def test_the_unit_of_the_target_does_not_matter(rule, scale):
    P, Y, _ = squared_problem(1, "plain", 6)
    Y, P = Y / np.abs(Y).max(), P / np.abs(Y).max()
    assert_allclose(
        solve_weights(P * scale, Y * scale, rule=rule).weights, solve_weights(P, Y, rule=rule).weights, atol=1e-5
    )


@pytest.mark.parametrize("values", [(1e-150, 1e200), (5e-324, 1), (1e300, -1e300), (1e-200, 0, 1e250)])
@pytest.mark.parametrize("rule", RULES)
def test_errors_at_the_ends_of_floating_point_break_nothing(values, rule):
    P, _ = column(*values)
    solution = solve_weights(np.concatenate([P, P / 2]), np.zeros((2, 1)), rule=rule)
    assert infeasibility(solution.weights) <= 1e-12
    assert solution.gap >= 0


@given(arrays(np.int8, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(-2, 2)), st.randoms())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_small_integer_errors_full_of_ties_are_certified_and_equivariant(E, random):
    P, Y = E[:, :, None].astype(float), np.zeros((len(E), 1))
    order = random.sample(range(E.shape[1]), E.shape[1])
    solution = solve_weights(P, Y)
    assert infeasibility(solution.weights) <= 1e-12
    assert squared_gap(P, Y, None, solution.weights) <= 1e-12
    assert_array_equal(solve_weights(P[:, order], Y).weights, solution.weights[order])


# -------------------------------------------------------------------------------------------- order, ties, uniqueness


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", RULES)
def test_permuting_the_specialists_permutes_the_weights_bit_for_bit(rule, loss, classes):
    P, Y = classes
    P = P[:, [0, 1, 2, 3, 4, 5, 2, 0]]
    order = np.random.default_rng(0).permutation(8)
    plain = solve_weights(P, Y, rule=rule, loss=loss)
    permuted = solve_weights(P[:, order], Y, rule=rule, loss=loss)
    assert_array_equal(permuted.weights, plain.weights[order])
    assert permuted.objective == plain.objective


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", RULES)
def test_duplicates_share_equally(rule, loss, classes):
    P, Y = classes
    weights = solve_weights(P[:, [0, 1, 2, 3, 4, 5, 5, 0, 5]], Y, rule=rule, loss=loss).weights
    assert weights[0] == weights[7]
    assert weights[5] == weights[6] == weights[8]


def test_perfect_specialists_share_the_weight_and_leave_nothing_to_gain():
    solution = solve_weights(*column(0, 2, 0, -2))
    assert solution.weights.tolist() == [0.5, 0, 0.5, 0]
    assert solution.objective == solution.gap == 0


# ------------------------------------------------------------------------------------------------- helpers and input


def test_the_gap_is_that_of_the_errors_and_vanishes_at_the_optimum(classes):
    P, Y = classes
    E = (Y[:, None] - P).transpose(0, 2, 1).reshape(-1, 6) / np.sqrt(90)
    alpha = np.full(6, 1 / 6)
    assert_allclose(np.sum((E @ alpha) ** 2), row_losses(P, Y, alpha).mean())
    assert optimality_gap(E, solve_weights(P, Y).weights) <= 1e-14
    assert_allclose(optimality_gap(E, alpha), solve_weights(P, Y, rule="uniform").gap)


def test_an_event_that_all_call_impossible_costs_a_finite_loss():
    P = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.9, 0.1], [0.6, 0.4]]])
    solution = solve_weights(P, np.eye(2)[[1, 0]], loss="log")
    assert solution.weights.tolist() == [1, 0]
    assert_allclose(solution.objective, -(np.log(1e-15) + np.log(0.9)) / 2)
