import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from softlearning.weights import (
    RULES,
    errors,
    gram,
    held_out_risk,
    optimality_gap,
    problems,
    row_losses,
    slsqp_starts,
    solve_weights,
)
from softlearning.weights.rules import _beyond_noise
from softlearning.weights.solvers import simplex_log_loss
from tests.weights.solver_problems import (
    LOG_KINDS,
    SQUARED_KINDS,
    infeasibility,
    log_gap,
    log_problem,
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


@pytest.mark.parametrize("loss", LOSSES)
def test_one_specialist_gets_all_the_weight(loss, classes):
    P, Y = classes
    solution = solve_weights(P[:, :1], Y, loss=loss)
    assert solution.weights.tolist() == [1.0]
    assert solution.unique
    assert_allclose(solution.objective, row_losses(P[:, :1], Y, [1.0], loss).mean())


def test_a_specialist_a_million_times_worse_still_gets_its_tiny_share_when_it_cancels_the_error():
    P, Y = column(1, -1e6)
    solution = solve_weights(P, Y)
    assert_allclose(solution.weights, [1 - 1e-6, 1e-6], rtol=1e-5)
    assert solution.objective < 1e-20


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


def test_perfect_specialists_share_the_weight_and_leave_nothing_to_gain():
    solution = solve_weights(*column(0, 2, 0, -2))
    assert solution.weights.tolist() == [0.5, 0, 0.5, 0]
    assert solution.objective == solution.gap == 0


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


# --------------------------------------------------------------------------------------------------------- the rules


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
    repeated = solve_weights(P.repeat(times, axis=0), Y.repeat(times, axis=0), rule=rule, loss=loss)
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
    assert list(RULES) == ["simplex", "guarded", "slsqp", "greedy", "nnls", "uniform", "best"]
    assert all(name == rule.name and rule.description for name, rule in RULES.items())


# ---------------------------------------------------------------------------------------- held-out risk and the guard


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", ["simplex", "greedy", "guarded"])
def test_held_out_risk_uses_weights_that_never_saw_the_row(rule, loss, classes):
    P, Y = classes
    folds = np.arange(90) % 3
    risk = held_out_risk(P, Y, folds, rule=rule, loss=loss)
    for fold in range(3):
        train, test = folds != fold, folds == fold
        weights = solve_weights(P[train], Y[train], rule=rule, loss=loss, folds=folds[train]).weights
        assert_allclose(risk[test], row_losses(P[test], Y[test], weights, loss), rtol=1e-7)


def test_held_out_risk_needs_two_folds(classes):
    with pytest.raises(ValueError, match="two folds"):
        held_out_risk(*classes, np.zeros(90))


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


def test_the_guard_makes_its_own_folds_and_says_when_given_ones_are_useless(classes):
    P, Y = classes
    own = solve_weights(P, Y, rule="guarded").weights
    assert_array_equal(own, solve_weights(P, Y, rule="guarded", folds=np.arange(90) % 5).weights)
    assert_array_equal(solve_weights(P[:1], Y[:1], rule="guarded").weights, np.full(6, 1 / 6))
    with pytest.raises(ValueError, match="two folds"):
        solve_weights(P, Y, rule="guarded", folds=np.zeros(90))


# ------------------------------------------------------------------------------------------------- helpers and input


def test_the_errors_explain_the_objective_and_their_gram_matrices_add_up(classes):
    P, Y = classes
    E, solution = errors(P, Y), solve_weights(P, Y)
    alpha = np.full(6, 1 / 6)
    assert_allclose(np.sum((E @ alpha) ** 2), row_losses(P, Y, alpha).mean())
    halves = gram(errors(P[:45], Y[:45])) + gram(errors(P[45:], Y[45:]))
    assert_allclose(gram(E), halves / 2)
    assert optimality_gap(E, solution.weights) <= 1e-14
    assert_allclose(optimality_gap(E, alpha), solve_weights(P, Y, rule="uniform").gap)


def test_blocks_of_rows_change_nothing(classes, monkeypatch):
    whole = solve_weights(*classes)
    monkeypatch.setattr(problems, "BLOCK", 20)
    assert_allclose(solve_weights(*classes).weights, whole.weights, atol=1e-12)
    assert_allclose(solve_weights(*classes).objective, whole.objective)


def test_soft_targets_enter_the_log_loss_by_their_probability(classes):
    P, Y = classes
    soft = 0.8 * Y + 0.1
    soft /= soft.sum(axis=1, keepdims=True)
    solution = solve_weights(P, soft, loss="log")
    assert_allclose(solution.objective, row_losses(P, soft, solution.weights, "log").mean())
    assert solution.gap <= 1e-12


def test_an_event_that_all_call_impossible_costs_a_finite_loss():
    P = np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.9, 0.1], [0.6, 0.4]]])
    solution = solve_weights(P, np.eye(2)[[1, 0]], loss="log")
    assert solution.weights.tolist() == [1, 0]
    assert_allclose(solution.objective, -(np.log(1e-15) + np.log(0.9)) / 2)


good_P, good_Y = np.full((4, 2, 2), 0.5), np.eye(2)[[0, 1, 0, 1]]


@pytest.mark.parametrize(
    ("P", "Y", "options", "message"),
    [
        (good_P[0], good_Y, {}, "predictions must be"),
        (good_P[:, :0], good_Y, {}, "predictions must be"),
        (good_P, good_Y[:3], {}, r"target must have shape \(4, 2\)"),
        (good_P * np.nan, good_Y, {}, "predictions contains NaN"),
        (good_P, np.full((4, 2), np.inf), {}, "target contains NaN or inf"),
        (good_P * 1e301, good_Y, {}, "1e300"),
        (good_P, good_Y, {"rule": "magic"}, "unknown rule 'magic'"),
        (good_P, good_Y, {"rule": 3}, "name or a callable"),
        (good_P, good_Y, {"loss": "hinge"}, "unknown loss 'hinge'"),
        (good_P[:, :, :1], good_Y[:, :1], {"loss": "log"}, "column for each class"),
        (good_P * 3, good_Y, {"loss": "log"}, "between 0 and 1"),
        (good_P, good_Y * 2, {"loss": "log"}, "sum to 1"),
        (good_P, good_Y, {"sample_weight": [1, 2]}, "sample_weight must have shape"),
        (good_P, good_Y, {"sample_weight": [1, 2, -1, 0]}, "non-negative"),
        (good_P, good_Y, {"sample_weight": np.zeros(4)}, "zero in every row"),
        (good_P, good_Y, {"folds": [0, 1]}, "folds must have shape"),
    ],
)
def test_bad_input_is_refused_with_its_cause(P, Y, options, message):
    with pytest.raises(ValueError, match=message):
        solve_weights(P, Y, **options)


def test_a_single_specialist_is_taken_only_when_it_is_better_beyond_noise(rng):
    y = rng.normal(size=(200, 1))
    noisy, close, right = (y + scale * rng.normal(size=(200, 1)) for scale in (0.50, 0.49, 0.1))
    assert not _beyond_noise(np.stack([noisy, noisy], axis=1), y, "squared", None)
    assert _beyond_noise(np.stack([noisy, right], axis=1), y, "squared", None)
    assert not _beyond_noise(np.stack([close, noisy], axis=1)[:20], y[:20], "squared", np.ones(20))
