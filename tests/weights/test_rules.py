import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from softlearning.weights import RULES, row_losses, solve_weights
from tests.weights.solver_problems import SQUARED_KINDS, infeasibility, softmax, squared_problem

LOSSES = ("squared", "log")


@pytest.fixture
def classes():
    rng = np.random.default_rng(7)
    Y = np.eye(3)[rng.integers(0, 3, 90)]
    P = softmax(rng.uniform(0.5, 3, (1, 6, 1)) * Y[:, None] + rng.normal(size=(90, 6, 3)))
    return P, Y


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_rule_returns_a_point_of_the_simplex_and_a_true_bound(rule, loss, weighted, classes):
    P, Y = classes
    sample_weight = np.arange(len(Y)) % 3.0 if weighted else None
    solution = solve_weights(P, Y, rule=rule, loss=loss, sample_weight=sample_weight)
    optimum = solve_weights(P, Y, loss=loss, sample_weight=sample_weight)
    assert infeasibility(solution.weights) <= 1e-12
    assert -1e-12 <= solution.objective - optimum.objective <= solution.gap + 1e-12
    rows = row_losses(P, Y, solution.weights, loss)
    assert_allclose(solution.objective, np.average(rows, weights=sample_weight), rtol=1e-10)
    assert (solution.rule, solution.loss) == (rule, loss)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", sorted(set(RULES) - {"guarded"}))
def test_a_weight_counts_rows(rule, loss, classes):
    P, Y = classes
    times = np.random.default_rng(1).integers(0, 3, len(Y))
    weighted = solve_weights(P, Y, rule=rule, loss=loss, sample_weight=times)
    again = np.arange(len(Y)).repeat(times)
    repeated = solve_weights(P[again], Y[again], rule=rule, loss=loss)
    assert_allclose(weighted.weights, repeated.weights, atol=1e-5)
    assert_allclose(weighted.objective, repeated.objective)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", SQUARED_KINDS)
def test_every_rule_survives_degenerate_input(rule, kind):
    P, Y, weight = squared_problem(2, kind, 5)
    solution = solve_weights(P, Y, rule=rule, sample_weight=weight)
    assert infeasibility(solution.weights) <= 1e-12
    assert solution.gap >= 0


def test_uniform_and_best_are_what_they_say(classes):
    P, Y = classes
    risks = [row_losses(P, Y, np.eye(6)[k]).mean() for k in range(6)]
    assert_array_equal(solve_weights(P, Y, rule="uniform").weights, np.full(6, 1 / 6))
    assert_array_equal(solve_weights(P, Y, rule="best").weights, np.eye(6)[np.argmin(risks)])


def test_nnls_is_the_normalised_regression_of_target_on_predictions_and_not_the_optimum(classes):
    P, Y = classes
    u, _ = nnls(P.transpose(0, 2, 1).reshape(-1, 6), Y.ravel())
    solution = solve_weights(P, Y, rule="nnls")
    assert_allclose(solution.weights, u / u.sum(), atol=1e-12)
    assert solution.objective > solve_weights(P, Y).objective


def test_nnls_without_any_positive_coefficient_falls_back_to_the_best_specialist():
    P, Y = np.array([[[-1.0], [-3.0]]]), np.array([[2.0]])
    assert solve_weights(P, Y, rule="nnls").weights.tolist() == [1, 0]


@pytest.mark.parametrize("loss", LOSSES)
def test_greedy_weights_are_fiftieths_and_at_least_as_good_as_the_best_specialist(loss, classes):
    greedy = solve_weights(*classes, rule="greedy", loss=loss)
    fiftieths = greedy.weights * 50
    assert_allclose(fiftieths, fiftieths.round(), atol=1e-12)
    assert greedy.objective <= solve_weights(*classes, rule="best", loss=loss).objective


def test_a_callable_is_a_rule_and_sees_only_rows_that_count(classes):
    P, Y = classes
    seen = []

    def last(predictions, target, sample_weight):
        seen.append((len(predictions), len(target), sample_weight.min()))
        return np.eye(predictions.shape[1])[-1]

    solution = solve_weights(P, Y, rule=last, sample_weight=np.arange(90) % 2)
    assert solution.weights.tolist() == [0, 0, 0, 0, 0, 1]
    assert solution.rule == "last"
    assert seen == [(45, 45, 1)]


@pytest.mark.parametrize(
    ("answer", "message"), [([0.5, 0.5], "shape"), ([2, -1, 0, 0, 0, 0], "simplex"), ([np.nan] * 6, "simplex")]
)
def test_a_callable_that_leaves_the_simplex_is_refused(answer, message, classes):
    with pytest.raises(ValueError, match=message):
        solve_weights(*classes, rule=lambda P, Y, w: answer)


def test_the_table_of_rules_describes_itself():
    assert list(RULES) == ["simplex", "guarded", "slsqp", "greedy", "nnls", "uniform", "best"]
    assert all(name == rule.name and rule.description for name, rule in RULES.items())


def many_useless_specialists(seed, n=30, K=60):
    """Equally good specialists with independent noise: equal weights are right, and optimisation overfits."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(n, 1))
    return y[:, None] + rng.normal(size=(n, K, 1)), y


def test_the_guard_shrinks_where_pure_optimisation_overfits():
    for seed in range(5):
        P, y = many_useless_specialists(seed)
        new_P, new_y = many_useless_specialists(seed + 100, n=4000)
        guarded, exact = (solve_weights(P, y, rule=rule).weights for rule in ("guarded", "simplex"))
        assert row_losses(new_P, new_y, guarded).mean() < 0.8 * row_losses(new_P, new_y, exact).mean()


def test_the_guard_keeps_the_exact_weights_where_they_generalise():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(3000, 1))
    P = y[:, None] + rng.normal(size=(3000, 4, 1)) * np.array([0.5, 0.7, 2, 9])[None, :, None]
    guarded, exact = solve_weights(P, y, rule="guarded"), solve_weights(P, y)
    assert_allclose(guarded.weights, exact.weights, atol=0.01)
