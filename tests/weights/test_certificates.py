import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime

from softlearning.weights import solve_weights
from softlearning.weights.certificates import (
    certify,
    corner_risks,
    gradient_at,
    hessian_at,
    is_unique,
    least_curvature,
    value_at,
)
from softlearning.weights.losses import checked, problem_of
from softlearning.weights.rules import exact
from tests.weights.solver_problems import count_problem, log_problem, softmax

LOSSES = ("squared", "log")
SMOOTH = ("squared", "log", "huber:0.5", "poisson", "tweedie:1.5")


@pytest.fixture
def classes():
    rng = np.random.default_rng(7)
    Y = np.eye(3)[rng.integers(0, 3, 90)]
    P = softmax(rng.uniform(0.5, 3, (1, 6, 1)) * Y[:, None] + rng.normal(size=(90, 6, 3)))
    return P, Y


def column(*values):
    """Predictions of one row of regression with target 0: the error of specialist k is -values[k]."""
    return np.array(values, dtype=float).reshape(1, -1, 1), np.zeros((1, 1))


def problem(loss, seed=0, K=4):
    P, Y, weight = log_problem(seed, "plain", K) if loss == "log" else count_problem(seed, "plain", K)
    return problem_of(*checked(P, Y, loss, sample_weight=weight))


@pytest.mark.parametrize(
    ("values", "unique"),
    [((1, 2, 3), True), ((1, 1, 3), False), ((1, 3, 3), True), ((0, 1, 2), True), ((0, 1, -1), False)],
)
def test_uniqueness_is_reported_as_it_is(values, unique):
    assert solve_weights(*column(*values)).unique is unique


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_that_are_not_optimal_are_not_called_unique(loss, classes):
    assert not solve_weights(*classes, rule="uniform", loss=loss).unique
    assert solve_weights(*classes, rule="simplex", loss=loss).unique


@pytest.mark.parametrize("loss", SMOOTH)
def test_gradient_and_hessian_are_the_derivatives_of_the_value(loss):
    found, alpha = problem(loss), np.array([0.4, 0.3, 0.2, 0.1])
    assert_allclose(gradient_at(found, alpha), approx_fprime(alpha, lambda a: value_at(found, a)), rtol=1e-4, atol=1e-5)
    if loss not in ("huber:0.5", "tweedie:1.5"):  # kinks of the slope; rows that bend the wrong way count as straight
        turned = approx_fprime(alpha, lambda a: gradient_at(found, a))
        assert_allclose(hessian_at(found, alpha), turned, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("loss", [*SMOOTH, "absolute", "pinball:0.2"])
def test_no_point_of_the_simplex_lies_below_objective_minus_gap(loss):
    rng = np.random.default_rng(0)
    for seed in range(5):
        found = problem(loss, seed)
        lowest = min(value_at(found, a) for a in rng.dirichlet(np.ones(4), 200))
        for alpha in (*rng.dirichlet(np.ones(4), 5), np.eye(4)[0], exact(found)):
            value, gap = certify(found, alpha)
            assert 0 <= gap <= value
            assert lowest >= value - gap - 1e-9


@pytest.mark.parametrize("loss", [*SMOOTH, "absolute"])
def test_the_risk_of_a_corner_is_that_of_one_specialist(loss):
    found = problem(loss)
    assert_allclose(corner_risks(found), [value_at(found, corner) for corner in np.eye(4)])


def test_the_least_curvature_is_below_every_second_derivative_along_the_simplex():
    rng = np.random.default_rng(1)
    for seed in range(10):
        P, Y, _ = count_problem(seed, "mostly_zeros", 3, power=1.5)
        found = problem_of(*checked(P, Y, "tweedie:1.5"))
        least = least_curvature(found)
        for _ in range(20):
            alpha, d = rng.dirichlet(np.ones(3)), rng.normal(size=3)
            d = (d - d.mean()) / np.linalg.norm(d - d.mean())
            bend = found.mass * found.loss.curvature(found.y, found.matrix @ alpha)
            assert bend @ (found.matrix @ d) ** 2 >= least - 1e-9


def test_the_median_of_two_rows_is_not_unique_and_that_of_three_is():
    for n, unique in ((2, False), (3, True)):
        y = np.arange(float(n))[:, None]
        P = np.stack([np.zeros((n, 1)), np.full((n, 1), n - 1.0)], axis=1)  # any constant in between can be had
        assert solve_weights(P, y, loss="absolute").unique is unique


def test_a_direction_along_which_nothing_changes_is_found(classes):
    P, Y = classes
    found = problem_of(*checked(P[:, [0, 0]], Y, "squared"))
    assert not is_unique(found, exact(found))
