import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from softlearning.weights import solve_weights
from softlearning.weights.solvers import (
    column_norms,
    null_space,
    pinball_programme,
    simplex_least_squares,
    simplex_log_loss,
    simplex_newton,
    smallest_norm,
)
from tests.weights.solver_problems import LOG_KINDS, infeasibility, log_problem, optimality_gap, squared_problem


def column(*values):
    """Predictions of one row of regression with target 0: the error of specialist k is -values[k]."""
    return np.array(values, dtype=float).reshape(1, -1, 1), np.zeros((1, 1))


def test_newton_needs_few_steps_for_the_log_loss():
    for kind in LOG_KINDS:
        P, Y, _ = log_problem(5, kind, 30)
        likelihood = np.clip((P * Y[:, None]).sum(axis=2), 1e-15, 1)
        _, steps = simplex_log_loss(likelihood, np.full(len(Y), 1 / len(Y)))
        assert steps <= 20


def test_two_opposite_errors_are_balanced():
    solution = solve_weights(*column(-1, 3))
    assert_allclose(solution.weights, [0.75, 0.25], atol=1e-13)
    assert solution.objective <= 1e-26


def test_a_specialist_a_million_times_worse_still_gets_its_tiny_share_when_it_cancels_the_error():
    P, Y = column(1, -1e6)
    solution = solve_weights(P, Y)
    assert_allclose(solution.weights, [1 - 1e-6, 1e-6], rtol=1e-5)
    assert solution.objective < 1e-20


def test_of_several_optima_the_one_of_smallest_norm_is_taken():
    solution = solve_weights(*column(-1, 1, 3))
    smallest = np.linalg.pinv([[1.0, 1, 1], [-1, 1, 3]]) @ [1, 0]
    assert_allclose(solution.weights, smallest, atol=1e-12)
    assert not solution.unique


def test_the_smallest_norm_respects_non_negativity():
    without_bounds = np.linalg.pinv([[1.0, 1, 1, 1], [-1, 10, 11, 12]]) @ [1, 0]
    assert without_bounds[3] < 0
    on_the_first_three = np.linalg.pinv([[1.0, 1, 1], [-1, 10, 11]]) @ [1, 0]
    assert_allclose(solve_weights(*column(-1, 10, 11, 12)).weights, [*on_the_first_three, 0], atol=1e-12)


def test_settling_a_tie_leaves_no_specialist_with_a_weight_of_rounding_size():
    for seed in range(20):
        for kind in ("collinear", "near_duplicates", "fewer_rows_than_specialists"):
            weights = solve_weights(*squared_problem(seed, kind, 12)[:2]).weights
            assert np.all((weights == 0) | (weights > 1e-12))


# ------------------------------------------------------------------------------------------- the solvers by themselves


def test_least_squares_on_the_simplex_is_where_the_gap_vanishes():
    for seed in range(20):
        E = np.random.default_rng(seed).normal(size=(30, 7)) + 0.5
        alpha = simplex_least_squares(E)
        assert infeasibility(alpha) <= 1e-14
        assert optimality_gap(E, alpha) <= 1e-12 * np.sum((E @ alpha) ** 2)


def test_the_general_newton_method_finds_what_the_one_for_the_log_loss_finds():
    for seed in range(10):
        P, Y, _ = log_problem(seed, "plain", 8)
        likelihood = np.clip((P * Y[:, None]).sum(axis=2), 1e-15, 1)
        alpha = simplex_newton(
            likelihood,
            value=lambda b: -np.log(b).mean(),
            slope=lambda b: -1 / b / len(b),
            curvature=lambda b: b**-2.0 / len(b),
        )
        assert_allclose(alpha, simplex_log_loss(likelihood, np.full(len(Y), 1 / len(Y)))[0], atol=1e-7)


def test_newton_crosses_regions_where_the_loss_is_straight():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(60, 5)) + 3 * rng.normal(size=(1, 5))  # nearly all errors lie beyond the width
    slope = lambda b: np.clip(b, -0.01, 0.01)
    value = lambda b: float(np.where(np.abs(b) <= 0.01, b**2 / 2, 0.01 * (np.abs(b) - 0.005)).sum())
    alpha = simplex_newton(M, value, slope, lambda b: (np.abs(b) <= 0.01).astype(float))
    gradient = M.T @ slope(M @ alpha)
    assert alpha @ gradient - gradient.min() <= 1e-9 * value(M @ alpha)


@pytest.mark.parametrize("seed", range(8))
def test_the_slopes_of_the_linear_programme_prove_its_weights(seed):
    rng = np.random.default_rng(seed)
    M, mass = rng.normal(size=(40, 6)) + rng.normal(size=(40, 1)), rng.dirichlet(np.ones(40))
    alpha, slope = pinball_programme(M, mass, 0.3, 0.7)
    r = M @ alpha
    assert ((slope >= -0.3 * mass) & (slope <= 0.7 * mass)).all()
    assert_allclose(mass @ np.maximum(-0.3 * r, 0.7 * r), (M.T @ slope).min(), rtol=1e-10)


def test_norms_neither_overflow_nor_underflow():
    assert_allclose(column_norms(np.array([[3e200, 3e-200, 0], [4e200, 4e-200, 0]])), [5e200, 5e-200, 0])


def test_the_null_space_is_what_a_matrix_sends_to_zero():
    rng = np.random.default_rng(1)
    A = rng.normal(size=(6, 3)) @ rng.normal(size=(3, 5))
    N = null_space(A)
    assert N.shape == (5, 2)
    assert_allclose(A @ N, 0, atol=1e-12)
    assert null_space(rng.normal(size=(6, 5))).shape == (5, 0)


def test_the_smallest_norm_counts_duplicates_as_several_specialists():
    matrix = np.zeros((1, 2))  # two columns that nothing tells apart, the first shared by three specialists
    alpha = smallest_norm(matrix, np.array([1.0, 0.0]), np.arange(2), np.array([3.0, 1.0]))
    assert_array_equal(alpha.round(12), [0.75, 0.25])
