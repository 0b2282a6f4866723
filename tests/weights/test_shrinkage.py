import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from softlearning.weights import held_out_risk, row_losses, solve_weights
from softlearning.weights.certificates import value_at
from softlearning.weights.losses import checked, problem_of
from softlearning.weights.rules import exact
from softlearning.weights.shrinkage import STRENGTHS, Shrunk, reference, tune_strength
from tests.weights.solver_problems import (
    LOG_KINDS,
    SQUARED_KINDS,
    count_problem,
    infeasibility,
    log_problem,
    softmax,
    squared_problem,
)

INNER = [s for s in STRENGTHS if 0 < s < np.inf]


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


@pytest.mark.parametrize("strength", INNER)
@pytest.mark.parametrize("loss", ["squared", "log"])
def test_the_penalised_problem_is_solved_with_a_proof(loss, strength):
    kinds, make = (LOG_KINDS, log_problem) if loss == "log" else (SQUARED_KINDS, squared_problem)
    for seed, kind in enumerate(kinds):
        P, Y, weight = make(seed, kind, 4 + 2 * seed)
        found = problem(P, Y, loss, sample_weight=weight)
        rule = Shrunk(strength, exact)
        alpha = rule(found)
        assert infeasibility(alpha) <= 1e-12
        assert rule.gap(found, alpha) <= 1e-6 * value_at(found, alpha), kind


@pytest.mark.parametrize("loss", ["squared", "log", "huber:1", "poisson", "absolute"])
def test_no_other_weights_are_better_under_the_penalty_by_more_than_the_gap(loss):
    P, Y, _ = count_problem(1, "plain", 5)
    if loss == "log":
        P, Y, _ = log_problem(1, "plain", 5)
    found, rng = problem(P, Y, loss), np.random.default_rng(0)
    rule, rho = Shrunk(0.1, exact), reference(problem(P, Y, loss))
    alpha, tau = rule(found), Shrunk(0.1, exact).tau(found)
    penalised = lambda a: value_at(found, a) + tau * kullback_leibler(a, rho)
    near = np.vstack([rng.dirichlet(np.ones(5), 200), 0.99 * alpha + 0.01 * rng.dirichlet(np.ones(5), 200)])
    assert min(penalised(a) for a in near) >= penalised(alpha) - rule.gap(found, alpha) - 1e-12
    assert rule.gap(found, alpha) <= (2e-3 if loss == "absolute" else 1e-9) * penalised(alpha)


def test_the_ends_of_the_strengths_are_the_exact_optimum_and_the_reference():
    P, Y = noisy(0, 60, 4)
    found = problem(P, Y)
    assert_array_equal(Shrunk(0.0, exact)(found), exact(found))
    assert_array_equal(Shrunk(np.inf, exact)(found), np.full(4, 0.25))


def test_more_strength_means_closer_to_the_reference():
    P, Y = noisy(1, 60, 6)
    found = problem(P, Y)
    rho = reference(found)
    distance = [kullback_leibler(Shrunk(s, exact)(found), rho) for s in INNER]  # falling strengths
    assert (np.diff(distance) > 0).all()


def test_the_reference_gives_families_equal_shares():
    P, Y = noisy(2, 30, 4)
    families = ["tree", "tree", "tree", "linear"]
    found = problem(P, Y, families=families)
    assert_allclose(found.spread(reference(found)), [1 / 6, 1 / 6, 1 / 6, 1 / 2])
    order = [3, 1, 0, 2]
    turned = problem(P[:, order], Y, families=[families[k] for k in order])
    assert_array_equal(turned.spread(reference(turned)), found.spread(reference(found))[order])


def test_a_hopeless_specialist_has_no_place_in_the_reference():
    P, Y = noisy(3, 30, 4)
    P[:, 2] = 1e9
    assert solve_weights(P, Y, rule="shrunk").weights[2] == 0


def test_specialists_of_equal_merit_get_nearly_equal_weights_on_few_rows():
    risks = {"simplex": [], "shrunk": [], "uniform": []}
    for seed in range(20):
        P, Y = noisy(seed, 430, 8)
        for rule, found in risks.items():
            weights = solve_weights(P[:30], Y[:30], rule=rule, folds=np.arange(30) % 5).weights
            found.append(row_losses(P[30:], Y[30:], weights).mean())
    mean = {rule: np.mean(found) for rule, found in risks.items()}
    assert mean["shrunk"] < mean["simplex"]
    assert mean["shrunk"] < mean["uniform"] + 0.3 * (mean["simplex"] - mean["uniform"])


def test_with_many_rows_and_unequal_specialists_little_is_lost_against_the_optimum():
    P, Y = noisy(4, 4000, 5)
    P[:, 0] = Y + 0.2 * (P[:, 0] - Y)
    shrunk, optimum = (solve_weights(P, Y, rule=rule).objective for rule in ("shrunk", "simplex"))
    assert shrunk <= 1.02 * optimum


def test_the_largest_strength_within_one_standard_error_is_taken():
    P, Y = noisy(5, 80, 6)
    folds = np.arange(80) % 5
    found = problem(P, Y, folds=folds)
    chosen = tune_strength(found, exact).strength

    def risk(strength):
        rule = Shrunk(strength, exact)
        return held_out_risk(P, Y, folds, rule=lambda p, y, w: rule(problem(p, y)))  # columns are in their own order

    best = min(STRENGTHS, key=lambda s: risk(s).mean()) if chosen < np.inf else 0.0
    assert chosen >= best


def test_solution_tells_the_shrinkage_and_both_gaps():
    P, Y = noisy(6, 200, 5)
    P[:, 0] = Y + 0.5 * (P[:, 0] - Y)
    solution = solve_weights(P, Y, rule="shrunk")
    assert solution.shrinkage > 0
    assert solution.penalised_gap <= 1e-9 * solution.objective
    assert solution.gap > solution.penalised_gap  # of the plain problem, which these weights do not minimise
    plain = solve_weights(P, Y)
    assert (plain.shrinkage, plain.penalised_gap) == (0.0, 0.0)


@pytest.mark.parametrize("folds", [np.zeros(24), np.arange(24) % 2, None])
def test_few_folds_or_none_are_no_error(folds):
    P, Y = noisy(7, 24, 4)
    assert infeasibility(solve_weights(P, Y, rule="shrunk", folds=folds).weights) <= 1e-12
    if folds is not None:
        assert np.isfinite(held_out_risk(P, Y, folds, rule="shrunk")).all()


def test_classes_are_shrunk_too():
    rng = np.random.default_rng(8)
    Y = np.eye(3)[rng.integers(0, 3, 60)]
    P = softmax(2 * Y[:, None] + rng.normal(size=(60, 10, 3)))
    shrunk, plain = (solve_weights(P, Y, rule=rule, loss="log").weights for rule in ("shrunk", "simplex"))
    assert (shrunk > 0).sum() > (plain > 0).sum()
