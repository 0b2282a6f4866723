"""Weights held near prior shares: certified, scale-free, strong on few rows and nothing on many."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from softlearning.weights import row_losses, solve_weights
from softlearning.weights.certificates import value_at
from softlearning.weights.losses import checked, problem_of
from softlearning.weights.shrinkage import PSEUDO_ROWS, approached, nats, penalised_gap, prior_shares, shrunk
from tests.weights.solver_problems import (
    LOG_KINDS,
    SQUARED_KINDS,
    count_problem,
    infeasibility,
    log_problem,
    softmax,
    squared_problem,
)


def problem(P, Y, loss="squared", **given):
    return problem_of(*checked(P, Y, loss, **given))


def noisy(seed, n, K, noise=1.0):
    """K specialists of equal merit: the truth plus independent noise."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(n, 1))
    return y[:, None] + noise * rng.normal(size=(n, K, 1)), y


def kullback_leibler(alpha, rho):
    used = alpha > 0
    return float(alpha[used] @ np.log(alpha[used] / rho[used]))


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_the_penalised_problem_is_solved_with_a_proof(loss):
    kinds, make = (LOG_KINDS, log_problem) if loss == "log" else (SQUARED_KINDS, squared_problem)
    for seed, kind in enumerate(kinds):
        P, Y, weight = make(seed, kind, 4 + 2 * seed)
        found = problem(P, Y, loss, sample_weight=weight)
        alpha = shrunk(found)
        assert infeasibility(alpha) <= 1e-12
        assert penalised_gap(found, alpha) <= 1e-6 * value_at(found, alpha), kind


@pytest.mark.parametrize("loss", ["squared", "log", "huber:1", "poisson"])
def test_no_other_weights_are_better_under_the_penalty_by_more_than_the_gap(loss):
    P, Y, _ = log_problem(1, "plain", 5) if loss == "log" else count_problem(1, "plain", 5)
    found, rng = problem(P, Y, loss), np.random.default_rng(0)
    rho, tau = prior_shares(found), nats(found)
    alpha = approached(found, rho, tau)
    penalised = lambda a: value_at(found, a) + tau * kullback_leibler(a, rho)
    near = np.vstack([rng.dirichlet(np.ones(5), 200), 0.99 * alpha + 0.01 * rng.dirichlet(np.ones(5), 200)])
    gap = penalised_gap(found, alpha)
    assert min(penalised(a) for a in near) >= penalised(alpha) - gap - 1e-12
    assert gap <= 1e-9 * penalised(alpha)


def test_a_stronger_penalty_means_closer_to_the_prior():
    P, Y = noisy(1, 60, 6)
    found = problem(P, Y)
    rho = prior_shares(found)
    distance = [kullback_leibler(approached(found, rho, tau), rho) for tau in (1.0, 0.1, 0.01, 0.001)]
    assert (np.diff(distance) > 0).all()


def test_the_prior_is_divided_as_given_in_any_unit_and_order():
    P, Y = noisy(2, 30, 4)
    found = problem(P, Y, prior=[2, 2, 2, 6])
    assert_allclose(found.spread(prior_shares(found)), [1 / 6, 1 / 6, 1 / 6, 1 / 2])
    order = [3, 1, 0, 2]
    turned = problem(P[:, order], Y, prior=np.array([2, 2, 2, 6])[order])
    assert_array_equal(turned.spread(shrunk(turned)), found.spread(shrunk(found))[order])


def test_a_nat_is_one_over_rows_of_the_log_loss_and_free_of_the_targets_unit():
    P, Y, _ = log_problem(1, "plain", 5)
    assert_allclose(nats(problem(P, Y, "log")), PSEUDO_ROWS / len(Y))
    P, Y = noisy(3, 50, 4)
    small, large = (solve_weights(unit * P, unit * Y, rule="guarded").weights for unit in (1.0, 1e6))
    assert_allclose(small, large, atol=1e-9)


def test_a_hopeless_specialist_has_no_place_in_the_prior():
    P, Y = noisy(3, 30, 4)
    P[:, 2] = 1e9
    assert solve_weights(P, Y, rule="guarded").weights[2] == 0


def test_a_perfect_specialist_takes_all():
    P, Y = noisy(3, 30, 4)
    P[:, 1] = Y
    assert_array_equal(solve_weights(P, Y, rule="guarded").weights, [0, 1, 0, 0])


def test_no_weight_is_too_small_to_keep_a_model_for():
    for seed in range(10):
        P, Y = noisy(seed, 300, 12, noise=np.linspace(0.2, 3, 12)[None, :, None])
        weights = solve_weights(P, Y, rule="guarded").weights
        assert weights[weights > 0].min() > 0.01


def test_specialists_of_equal_merit_get_nearly_equal_weights_on_few_rows():
    risks = {"simplex": [], "guarded": [], "uniform": []}
    for seed in range(20):
        P, Y = noisy(seed, 420, 8)
        for rule, found in risks.items():
            found.append(row_losses(P[20:], Y[20:], solve_weights(P[:20], Y[:20], rule=rule).weights).mean())
    mean = {rule: np.mean(found) for rule, found in risks.items()}
    assert mean["guarded"] < mean["uniform"] + 0.5 * (mean["simplex"] - mean["uniform"])


def test_with_many_rows_next_to_nothing_is_lost_against_the_optimum():
    P, Y = noisy(4, 4000, 5)
    P[:, 0] = Y + 0.2 * (P[:, 0] - Y)
    guarded, optimum = (solve_weights(P, Y, rule=rule).objective for rule in ("guarded", "simplex"))
    assert guarded <= 1.002 * optimum


def test_the_solution_tells_the_shrinkage_and_both_gaps():
    P, Y = noisy(6, 200, 5)
    P[:, 0] = Y + 0.5 * (P[:, 0] - Y)
    solution = solve_weights(P, Y, rule="guarded")
    assert solution.shrinkage > 0
    assert solution.penalised_gap <= 1e-9 * solution.objective
    assert solution.gap > solution.penalised_gap  # of the plain problem, which these weights do not minimise
    plain = solve_weights(P, Y)
    assert (plain.shrinkage, plain.penalised_gap) == (0.0, 0.0)


def test_guarded_weights_of_few_rows_lie_on_the_simplex():
    assert infeasibility(solve_weights(*noisy(7, 24, 4), rule="guarded").weights) <= 1e-12


def test_classes_are_shrunk_too():
    rng = np.random.default_rng(8)
    Y = np.eye(3)[rng.integers(0, 3, 60)]
    P = softmax(2 * Y[:, None] + rng.normal(size=(60, 10, 3)))
    guarded, plain = (solve_weights(P, Y, rule=rule, loss="log").weights for rule in ("guarded", "simplex"))
    assert (guarded > 0).sum() > (plain > 0).sum()
