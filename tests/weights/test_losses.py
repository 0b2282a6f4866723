import clarabel
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import approx_fprime, linprog, minimize
from sklearn.metrics import mean_pinball_loss, mean_poisson_deviance, mean_tweedie_deviance

from softlearning.weights import row_losses, solve_weights
from softlearning.weights.certificates import least_curvature
from softlearning.weights.losses import LOSSES, checked, loss_named, problem_of
from tests.weights.solver_problems import (
    COUNT_KINDS,
    ERROR_KINDS,
    OF_ERRORS,
    count_problem,
    error_problem,
    infeasibility,
    problem_of_loss,
    tweedie_problem,
)

NUMBERS = (*OF_ERRORS, "poisson", "tweedie:1.5")


@pytest.mark.parametrize("loss", [*OF_ERRORS, "poisson"])
def test_a_hundred_generated_problems_are_certified(loss):
    """Gaps in shares of the objective; where specialists interpolate all rows, of their best one's risk."""
    for seed in range(100):
        P, Y, weight = problem_of_loss(seed, loss)
        solution = solve_weights(P, Y, loss=loss, sample_weight=weight)
        best = solve_weights(P, Y, loss=solution.loss, sample_weight=weight, rule="best").objective
        assert infeasibility(solution.weights) <= 1e-12
        assert solution.objective <= best * (1 + 1e-12) + 1e-14
        assert solution.gap <= 1e-8 * solution.objective + 1e-12 * best, (loss, seed)


def test_the_tweedie_deviance_is_certified_where_specialists_differ_moderately():
    for seed in range(100):
        solution = solve_weights(*tweedie_problem(seed, spread=0.1), loss="tweedie:1.5")
        assert solution.gap <= 1e-8 * solution.objective


def test_where_the_tweedie_deviance_may_not_be_convex_the_gap_is_still_a_bound():
    rng = np.random.default_rng(0)
    bent = 0
    for seed in range(40):
        P, Y, _ = count_problem(seed, "mostly_zeros", 3, power=1.5)
        rows, loss = checked(P, Y, "tweedie:1.5")
        solution = solve_weights(P, Y, loss="tweedie:1.5")
        bent += least_curvature(problem_of(rows, loss)) < 0
        tried = min(row_losses(P, Y, alpha, "tweedie:1.5").mean() for alpha in rng.dirichlet(np.ones(3), 300))
        assert tried >= solution.objective - solution.gap - 1e-12
    assert bent > 10


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("q", [0.5, 0.9])
def test_pinball_weights_agree_with_the_primal_linear_programme(q, seed):
    P, Y, _ = error_problem(seed, ERROR_KINDS[seed % len(ERROR_KINDS)], K=6)
    E = (Y[:, None] - P).transpose(0, 2, 1).reshape(-1, 6)
    m = len(E)  # E a = u - v with u, v >= 0 costs q u + (1 - q) v
    cost = np.concatenate([np.zeros(6), np.full(m, q), np.full(m, 1 - q)]) / len(Y)
    equal = np.block([[E, -np.eye(m), np.eye(m)], [np.ones((1, 6)), np.zeros((1, 2 * m))]])
    other = linprog(cost, A_eq=equal, b_eq=np.append(np.zeros(m), 1.0), method="highs").fun
    scale = np.abs(E).max()
    assert_allclose(solve_weights(P, Y, loss=("pinball", q)).objective, other, rtol=1e-8, atol=1e-9 * scale)


@pytest.mark.parametrize("seed", range(9))
def test_poisson_weights_agree_with_clarabel(seed):
    P, Y, _ = count_problem(seed, COUNT_KINDS[seed % 7], K=5)
    M, y = P[:, :, 0], Y[:, 0]
    n, K = M.shape
    A = [np.append(np.ones(K), np.zeros(n)), *np.hstack([-np.eye(K), np.zeros((K, n))])]  # variables (alpha, t)
    b = [1.0] + [0.0] * K
    for i in range(n):  # t_i <= log(M_i alpha)
        A += [np.append(np.zeros(K), -np.eye(n)[i]), np.zeros(K + n), np.append(-M[i], np.zeros(n))]
        b += [0.0, 1.0, 0.0]
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(K), *[clarabel.ExponentialConeT()] * n]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    q = np.append(2 * M.mean(axis=0), -2 * y / n)
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((K + n, K + n)), q, sparse.csc_matrix(np.array(A)), np.array(b), cones, settings
    )
    other = np.maximum(np.array(solver.solve().x)[:K], 0)
    theirs = row_losses(P, Y, other / other.sum(), "poisson").mean()
    assert_allclose(solve_weights(P, Y, loss="poisson").objective, theirs, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("loss", ["huber:0.7", "tweedie:1.3"])
def test_smooth_losses_agree_with_sequential_quadratic_programming(loss):
    P, Y = tweedie_problem(3, spread=0.3)
    K = P.shape[1]
    other = minimize(
        lambda a: row_losses(P, Y, np.abs(a) / np.abs(a).sum(), loss).mean(),
        np.full(K, 1 / K),
        bounds=[(0, 1)] * K,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
        options={"ftol": 1e-12},
    ).fun
    assert_allclose(solve_weights(P, Y, loss=loss).objective, other, rtol=1e-6)


# ------------------------------------------------------------------------------------------------ what they measure


def test_losses_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    y, f = rng.poisson(3.0, 50).astype(float), rng.gamma(3.0, size=50)
    loss = lambda name: row_losses(f[:, None, None], y[:, None], np.ones(1), name).mean()
    assert_allclose(loss("pinball:0.8"), mean_pinball_loss(y, f, alpha=0.8))
    assert_allclose(loss("absolute"), np.abs(y - f).mean())
    assert_allclose(loss("poisson"), mean_poisson_deviance(y, f))
    assert_allclose(loss("tweedie:1.6"), mean_tweedie_deviance(y, f, power=1.6))
    assert_allclose(loss("huber:1e9"), ((y - f) ** 2).mean() / 2)
    assert_allclose(loss("huber:1e-9") / 1e-9, np.abs(y - f).mean(), rtol=1e-6)


@pytest.mark.parametrize("name", ["squared", "log", "huber:0.8", "poisson", "tweedie:1.4"])
def test_slope_and_curvature_are_the_derivatives(name):
    loss, b = loss_named(name), np.array([0.3, 0.6, 0.95, 0.2])
    y = np.array([1.0, 0.0, 0.4, 0.9])
    for k in range(4):
        at = lambda x, k=k: loss.pointwise(y[[k]], x)[0]
        slope = lambda x, k=k: loss.slope(y[[k]], x)[0]
        assert_allclose(loss.slope(y, b)[k], approx_fprime(b[[k]], at)[0], atol=1e-5)
        assert_allclose(loss.curvature(y, b)[k], approx_fprime(b[[k]], slope)[0], atol=1e-4)


def test_pinball_weights_follow_the_quantile():
    rng = np.random.default_rng(2)
    y = rng.normal(size=(500, 1))
    P = np.stack([np.full((500, 1), level) for level in (-2.0, 0.0, 2.0)], axis=1)
    for q in (0.1, 0.5, 0.9):
        weights = solve_weights(P, y, loss=("pinball", q)).weights
        assert_allclose(P[0, :, 0] @ weights, np.quantile(y, q), atol=0.02)


def test_a_few_wild_rows_do_not_move_absolute_and_huber_weights_as_they_move_squared_ones():
    rng = np.random.default_rng(3)
    y = rng.normal(size=(300, 1))
    P = np.stack([y + 0.3 * rng.normal(size=(300, 1)), y + 0.5 * rng.normal(size=(300, 1))], axis=1)
    wild = y.copy()
    wild[:3] = P[:3, 1] + 80 * np.sign(P[:3, 1] - P[:3, 0])
    moved = {
        loss: np.abs(solve_weights(P, wild, loss=loss).weights - solve_weights(P, y, loss=loss).weights).max()
        for loss in ("squared", "absolute", "huber")
    }
    assert max(moved["absolute"], moved["huber"]) < 0.1 < moved["squared"]


@pytest.mark.parametrize("loss", NUMBERS)
def test_the_order_of_specialists_does_not_matter_and_duplicates_share(loss):
    P, Y, _ = count_problem(5, "plain", 6)
    P = P[:, [0, 1, 2, 3, 4, 5, 2]]
    order = np.random.default_rng(0).permutation(7)
    weights = solve_weights(P, Y, loss=loss).weights
    assert np.array_equal(solve_weights(P[:, order], Y, loss=loss).weights, weights[order])
    assert weights[2] == weights[6]


@pytest.mark.parametrize("loss", NUMBERS)
def test_the_scale_of_sample_weights_does_not_matter(loss):
    P, Y, _ = count_problem(6, "plain", 4)
    weight = np.random.default_rng(0).uniform(0.1, 3, len(Y))
    first, second = (solve_weights(P, Y, loss=loss, sample_weight=weight * c).weights for c in (1.0, 1e-4))
    assert_allclose(first, second, atol=1e-8)


# ------------------------------------------------------------------------------------------------------------- names


def test_a_number_may_be_written_behind_the_name_or_beside_it():
    P, Y, _ = count_problem(7, "plain", 3)
    assert solve_weights(P, Y, loss=("pinball", 0.9)).loss == solve_weights(P, Y, loss="pinball:0.9").loss
    assert loss_named("pinball").name == "pinball:0.5"


def test_the_width_of_a_huber_loss_comes_from_the_errors_and_is_told():
    P, Y, _ = count_problem(8, "plain", 3)
    told = solve_weights(P, Y, loss="huber").loss
    assert_allclose(solve_weights(P * 7, Y * 7, loss="huber").weights, solve_weights(P, Y, loss="huber").weights)
    assert_allclose(float(solve_weights(P * 7, Y * 7, loss="huber").loss.split(":")[1]), 7 * float(told.split(":")[1]))
    assert_allclose(solve_weights(P, Y, loss=told).weights, solve_weights(P, Y, loss="huber").weights)


@pytest.mark.parametrize(
    ("loss", "reason"),
    [
        ("hinge", "unknown loss 'hinge'; choose one of squared, log"),
        ("squared:2", "unknown loss"),
        ("pinball:1.5", "quantile between 0 and 1"),
        ("huber:-1", "positive width"),
        ("tweedie:3", "power between 1 and 2"),
        ("poisson", "never negative; its smallest value is -1"),
        ("log", "two or more"),
    ],
)
def test_a_loss_that_does_not_fit_is_refused_in_words(loss, reason):
    with pytest.raises(ValueError, match=reason):
        solve_weights(np.ones((3, 2, 1)), np.array([[1.0], [2.0], [-1.0]]), loss=loss)


def test_every_row_of_the_table_has_a_name():
    assert list(LOSSES) == ["squared", "log", "absolute", "pinball", "huber", "poisson", "tweedie"]
    assert all(loss_named((name, 0.5) if name == "huber" else name).name.startswith(name) for name in LOSSES)
