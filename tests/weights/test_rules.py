import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from softlearning.weights import RULES, held_out_risk, row_losses, slsqp_starts, solve_weights
from softlearning.weights.evidence import HeldOut
from softlearning.weights.losses import checked, loss_named
from softlearning.weights.rules import _beyond_noise
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
    times, folds = np.random.default_rng(1).integers(0, 3, len(Y)), np.arange(len(Y)) % 4
    weighted = solve_weights(P, Y, rule=rule, loss=loss, sample_weight=times, folds=folds, groups=np.arange(len(Y)))
    again = np.arange(len(Y)).repeat(times)
    repeated = solve_weights(P[again], Y[again], rule=rule, loss=loss, folds=folds[again], groups=again)
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


@pytest.mark.parametrize("loss", LOSSES)
def test_slsqp_on_a_scaled_objective_reaches_the_optimum(loss, classes):
    slsqp = solve_weights(*classes, rule="slsqp", loss=loss)
    assert_allclose(slsqp.weights, solve_weights(*classes, loss=loss).weights, atol=1e-4)


def test_slsqp_runs_from_two_more_starts_than_specialists(classes):
    starts = slsqp_starts(*classes)
    assert starts.weights.shape == (8, 6)
    assert_allclose(starts.objectives, [row_losses(*classes, w).mean() for w in starts.weights])
    with pytest.raises(ValueError, match="reading"):
        slsqp_starts(*classes, reading="median")


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
    assert list(RULES) == ["simplex", "guarded", "shrunk", "slsqp", "greedy", "nnls", "uniform", "best"]
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


def test_the_guard_splits_rows_where_there_are_not_two_folds(classes):
    P, Y = classes
    own = solve_weights(P, Y, rule="guarded").weights
    assert_array_equal(own, solve_weights(P, Y, rule="guarded", folds=np.arange(90) % 5).weights)
    assert_array_equal(solve_weights(P[:1], Y[:1], rule="guarded").weights, np.full(6, 1 / 6))
    assert_array_equal(own, solve_weights(P, Y, rule="guarded", folds=np.zeros(90)).weights)


def pair_of(y, first, second, groups=None):
    predictions = np.stack([first, second], axis=1)
    return HeldOut(checked(predictions, y, "squared", groups=groups)[0], loss_named("squared")), predictions


def test_a_single_specialist_is_taken_only_when_it_is_better_beyond_noise():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(200, 1))
    noisy, close, right = (y + scale * rng.normal(size=(200, 1)) for scale in (0.50, 0.49, 0.1))
    assert not _beyond_noise(*pair_of(y, noisy, noisy))
    assert _beyond_noise(*pair_of(y, noisy, right))
    assert not _beyond_noise(*pair_of(y[:20], close[:20], noisy[:20]))


def test_noise_is_measured_by_groups_where_there_are_groups():
    rng = np.random.default_rng(1)
    taken = {"rows": 0, "groups": 0}
    groups = np.repeat(np.arange(12), 30)
    for _ in range(60):  # two specialists of equal merit, whose errors go with the group
        y = rng.normal(size=(360, 1))
        first, second = (y + np.repeat(rng.normal(size=(12, 1)), 30, axis=0) for _ in range(2))
        taken["rows"] += _beyond_noise(*pair_of(y, first, second))
        taken["groups"] += _beyond_noise(*pair_of(y, first, second, groups))
    assert taken["groups"] <= 20 < taken["rows"] + 5


# ------------------------------------------------------------------------------------------------------------ pruning


def with_useless_ones(seed, n, useless):
    """Two good specialists, and some whose predictions are noise about the mean."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(n, 1))
    good = [y + 0.3 * rng.normal(size=(n, 1)) for _ in range(2)]
    return np.stack([*good, *(rng.normal(size=(n, 1)) for _ in range(useless))], axis=1), y


@pytest.mark.parametrize("rule", ["shrunk", "guarded", "simplex"])
def test_pruning_removes_what_held_out_rows_do_not_miss(rule):
    P, Y = with_useless_ones(0, 300, 10)
    weights = solve_weights(P, Y, rule=rule, prune=True, folds=np.arange(300) % 5).weights
    assert (weights[:2] > 0).all()
    assert (weights[2:] > 0).sum() <= 2
    assert infeasibility(weights) <= 1e-12


def test_pruning_raises_the_held_out_risk_by_no_more_than_it_may():
    P, Y = with_useless_ones(1, 200, 6)
    folds = np.arange(200) % 5
    whole = held_out_risk(P, Y, folds, rule="shrunk")
    kept = solve_weights(P, Y, rule="shrunk", prune=True, folds=folds).weights > 0
    few = held_out_risk(P[:, kept], Y, folds, rule="shrunk")
    assert few.mean() <= whole.mean() + 0.5 * whole.std() / np.sqrt(200)


def test_pruning_does_not_depend_on_the_order_of_specialists():
    P, Y = with_useless_ones(2, 150, 8)
    order = np.random.default_rng(0).permutation(10)
    weights = solve_weights(P, Y, rule="shrunk", prune=True).weights
    assert_array_equal(solve_weights(P[:, order], Y, rule="shrunk", prune=True).weights, weights[order])


def test_specialists_that_are_all_needed_stay():
    rng = np.random.default_rng(3)
    y = rng.normal(size=(400, 1))
    parts = rng.normal(size=(400, 4, 1))
    P = y[:, None] + parts - parts.mean(axis=1, keepdims=True)  # only all four together are right
    assert (solve_weights(P, y, rule="shrunk", prune=True).weights > 0).all()
