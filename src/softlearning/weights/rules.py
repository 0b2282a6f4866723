"""How weights are chosen: a table of rules, each turning a `Problem` into weights of its columns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from softlearning.weights.losses import LOSSES, certify, corner_risks, risks_of, row_losses, tied, whitened
from softlearning.weights.problems import Problem, Rows, regression_block, shares, stream
from softlearning.weights.slsqp import slsqp_from
from softlearning.weights.solvers import Floats, column_norms, corner, normalised, smallest_norm

RuleLike = str | Callable[[Floats, Floats, Floats | None], ArrayLike]

ROUNDS = 50  # of greedy selection
GUARDS = ("simplex", "best", "uniform")  # what "guarded" compares on held-out folds


def exact(problem: Problem) -> Floats:
    alpha = LOSSES[problem.loss].minimise(problem)
    if not column_norms(problem.matrix).all():  # perfect specialists share the weight among themselves
        return alpha
    settled = smallest_norm(whitened(problem, alpha), alpha, tied(problem, alpha), problem.count)
    before, after = certify(problem, alpha)[1], certify(problem, settled)[1]
    return settled if after <= max(2 * before, 1e-12) else alpha  # a proof lost is worse than a tie unsettled


def _guarded(problem: Problem) -> Floats:
    """The exact optimum, unless the best specialist or equal weights do better on folds that they are learnt without.

    Then the point of least risk on these folds between the exact optimum and the better of the two. A single
    specialist, with whom nobody disagrees, must be better by more than one standard error of the paired difference.
    """
    rows, live = problem.rows, problem.rows.live
    folds = rows.folds if rows.folds is not None else np.arange(len(rows.share)) % 5
    if len(np.unique(folds[live])) < 2:
        if rows.folds is None:
            return RULES["uniform"].function(problem)  # a single row is no evidence for anything else
        raise ValueError("rule 'guarded' needs at least two folds with rows of positive weight")
    held_out = np.empty((len(live), len(GUARDS), rows.target.shape[1]))
    for fold in np.unique(folds[live]):
        learnt = LOSSES[problem.loss].build(rows.without(folds == fold))
        held = folds[live] == fold
        for j, name in enumerate(GUARDS):
            weights = learnt.spread(RULES[name].function(learnt))
            held_out[held, j] = blend(rows.predictions[live[held]], weights, learnt)
    weight = None if rows.sample_weight is None else rows.sample_weight[live]
    judged = Rows(held_out, rows.target[live], shares(weight, len(live)), weight, None)
    winner = int(
        apply("best", LOSSES[problem.loss].build(judged))[0].argmax()
    )  # of a tie, the first: the exact weights
    single = GUARDS[winner] == "best"
    if winner == 0 or (single and not _beyond_noise(held_out[:, [0, winner]], rows.target[live], problem.loss, weight)):
        return RULES["simplex"].function(problem)
    trust, _ = apply("simplex", LOSSES[problem.loss].build(replace(judged, predictions=held_out[:, [0, winner]])))
    return normalised(trust @ np.array([RULES[GUARDS[j]].function(problem) for j in (0, winner)]))


def _beyond_noise(pair: Floats, target: Floats, loss: str, weight: Floats | None) -> bool:
    """Whether the second of two predictions (n, 2, C) has the smaller loss by more than one standard error."""
    with np.errstate(over="ignore", invalid="ignore"):  # losses beyond floating point settle nothing
        first, second = (row_losses(pair, target, corner, loss) for corner in np.eye(2))
        share = np.full(len(target), 1 / len(target)) if weight is None else weight / weight.sum()
        gain = share @ (first - second)
        return bool(gain > np.sqrt(share**2 @ (first - second - gain) ** 2))


def _slsqp(problem: Problem) -> Floats:
    weights, values, _ = slsqp_from(problem, 1 / (float(corner_risks(problem).min()) or 1.0), exact=True)
    return weights[int(values.argmin())]


def _greedy(problem: Problem) -> Floats:
    """Caruana's selection with replacement: a round adds the column that helps most; weight = share of rounds."""
    chosen = np.zeros(problem.matrix.shape[1])
    total = np.zeros(len(problem.matrix))
    for size in range(1, ROUNDS + 1):
        k = int(risks_of(problem, (total[:, None] + problem.matrix) / size).argmin())
        chosen[k] += 1
        total += problem.matrix[:, k]
    return chosen / ROUNDS


def _nnls(problem: Problem) -> Floats:
    """Target on predictions with non-negative coefficients, divided by their sum; if all are zero, best."""
    rows = problem.rows
    scale = max(float(np.abs(a[rows.live]).max()) for a in (rows.predictions, rows.target)) or 1.0
    both = stream(partial(regression_block, rows, keep=problem.keep, unit=scale), rows)
    P, y = both[:, :-1], both[:, -1]
    norms = column_norms(P)
    norms[norms == 0] = 1.0
    with suppress(RuntimeError):
        u = nnls(P / norms, y, maxiter=10 * len(norms) + 50)[0] / norms
        if u.any():
            return normalised(u)
    return _best(problem)


def _uniform(problem: Problem) -> Floats:
    return problem.count / problem.count.sum()


def _best(problem: Problem) -> Floats:
    risks = corner_risks(problem)
    return corner(int(risks.argmin()), len(risks))


@dataclass(frozen=True)
class Rule:
    """A row of the table of weight rules; function turns a Problem into the weights of its columns."""

    name: str
    function: Callable[[Problem], Floats]
    description: str


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("simplex", exact, "the exact optimum on the simplex; of several, the one of smallest norm"),
        Rule("guarded", _guarded, "exact weights, unless held-out folds speak for the best or for equal ones"),
        Rule("slsqp", _slsqp, "the paper's solver: sequential quadratic programming from K + 2 starts"),
        Rule("greedy", _greedy, f"greedy selection with replacement, {ROUNDS} rounds"),
        Rule("nnls", _nnls, "non-negative least squares of target on predictions, divided by its sum"),
        Rule("uniform", _uniform, "equal weights"),
        Rule("best", _best, "all weight on the best specialist (the discrete Super Learner)"),
    )
}


def apply(rule: RuleLike, problem: Problem) -> tuple[Floats, Floats]:
    """Weights of the specialists (K,) and of the columns (G,) under a rule."""
    if isinstance(rule, str):
        if rule not in RULES:
            raise ValueError(f"unknown rule {rule!r}; choose one of {', '.join(RULES)} or pass a callable")
        alpha = RULES[rule].function(problem)
        return problem.spread(alpha), alpha
    if not callable(rule):
        raise ValueError(f"rule must be a name or a callable, got {type(rule).__name__}")
    weights = _called(rule, problem.rows)
    return weights, np.bincount(problem.group, weights).astype(float)


def _called(rule: Callable[[Floats, Floats, Floats | None], ArrayLike], rows: Rows) -> Floats:
    live = rows.live
    given = None if rows.sample_weight is None else rows.sample_weight[live]
    weights = np.asarray(rule(rows.predictions[live], rows.target[live], given), dtype=np.float64)
    K = rows.predictions.shape[1]
    if weights.shape != (K,):
        raise ValueError(f"the rule returned shape {weights.shape}, expected ({K},)")
    if not (np.isfinite(weights).all() and weights.min() >= 0 and abs(weights.sum() - 1) <= 1e-6):
        raise ValueError("the rule returned weights off the simplex: they must be finite, >= 0 and sum to 1")
    return normalised(weights)


def rule_name(rule: RuleLike) -> str:
    return rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__)


def blend(predictions: Floats, weights: Floats, problem: Problem) -> Floats:
    """(n, C) weighted sum of the predictions, in the problem's order so that the library's does not matter."""
    blend = np.zeros((predictions.shape[0], predictions.shape[2]))
    for k in np.argsort(problem.group, kind="stable"):
        blend += weights[k] * predictions[:, k]
    return blend
