"""How weights are chosen: a table of rules.

A rule first looks at a whole problem (which specialist is best on held-out rows? how much shrinkage?) and returns a
plain function from problems to weights, so that what was chosen can be tried on other parts of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from softlearning.weights.certificates import certify, corner_risks, risks_of, tied, whitened
from softlearning.weights.evidence import HeldOut, Solve
from softlearning.weights.losses import problem_of
from softlearning.weights.problems import Problem, Rows, regression_block, stream
from softlearning.weights.shrinkage import Shrunk, tune_strength
from softlearning.weights.slsqp import slsqp_from
from softlearning.weights.solvers import Floats, Indices, column_norms, corner, normalised, smallest_norm

RuleLike = str | Callable[[Floats, Floats, Floats | None], ArrayLike]

ROUNDS = 50  # of greedy selection
GUARDS = ("simplex", "best", "uniform")  # what "guarded" compares on held-out folds
PRUNING = 0.1  # standard errors by which the held-out risk may rise when specialists are removed


def exact(problem: Problem) -> Floats:
    """The optimum on the simplex; of several, the one of smallest norm."""
    perfect = ~problem.matrix.any(axis=0)  # no error at all: one column, which perfect specialists share
    if perfect.any():
        return perfect.astype(float)
    alpha = problem.optimum[0]
    settled = smallest_norm(whitened(problem, alpha), alpha, tied(problem, alpha), problem.count)
    before, after = certify(problem, alpha)[1], certify(problem, settled)[1]
    return settled if after <= max(2 * before, 1e-12) else alpha  # a proof lost is worse than a tie unsettled


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


# ----------------------------------------------------------------------------------- rules that look at held-out rows


def _guarded(problem: Problem) -> Solve:
    """The exact optimum, unless the best specialist or equal weights do better on folds that they are learnt without.

    Then the point of least risk on these folds between the exact optimum and the better of the two. A single
    specialist, with whom nobody disagrees, must be better by more than one standard error of the paired difference.
    """
    held_out = HeldOut(problem.rows, problem.loss)
    if not held_out.parts:
        return _uniform  # a single row is no evidence for anything else
    choices: list[Solve] = [RULES[name].tune(problem) for name in GUARDS]
    blends = np.stack([held_out.blends(choice) for choice in choices], axis=1)
    judged = replace(problem.rows, predictions=blends, families=None)
    winner = int(_best_of(judged, problem).argmax())  # of a tie, the first: the exact weights
    if winner == 0 or (GUARDS[winner] == "best" and not _beyond_noise(held_out, blends[:, [0, winner]])):
        return exact
    pair = problem_of(replace(judged, predictions=blends[:, [0, winner]]), problem.loss)
    return partial(_between, choices=(exact, choices[winner]), trust=pair.spread(exact(pair)))


def _best_of(judged: Rows, problem: Problem) -> Floats:
    trial = problem_of(judged, problem.loss)
    return trial.spread(_best(trial))


def _between(problem: Problem, choices: tuple[Solve, Solve], trust: Floats) -> Floats:
    return normalised(trust @ np.array([choice(problem) for choice in choices]))


def _beyond_noise(held_out: HeldOut, pair: Floats) -> bool:
    """Whether the second of two predictions (n, 2, C) has the smaller loss by more than one standard error."""
    gain, error = held_out.mean_and_error(held_out.losses(pair[:, 0]) - held_out.losses(pair[:, 1]))
    return bool(gain > error)


def _shrunk(problem: Problem) -> Solve:
    return tune_strength(problem, exact)


@dataclass(frozen=True)
class Rule:
    """A row of the table of weight rules; tune turns a Problem into a function from problems to their weights."""

    name: str
    tune: Callable[[Problem], Solve]
    description: str


def _plain(solve: Solve) -> Callable[[Problem], Solve]:
    return lambda problem: solve


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("simplex", _plain(exact), "the exact optimum on the simplex; of several, the one of smallest norm"),
        Rule("guarded", _guarded, "exact weights, unless held-out folds speak for the best or for equal ones"),
        Rule("shrunk", _shrunk, "exact weights, drawn to equal shares of the families as far as held-out folds allow"),
        Rule("slsqp", _plain(_slsqp), "the paper's solver: sequential quadratic programming from K + 2 starts"),
        Rule("greedy", _plain(_greedy), f"greedy selection with replacement, {ROUNDS} rounds"),
        Rule("nnls", _plain(_nnls), "non-negative least squares of target on predictions, divided by its sum"),
        Rule("uniform", _plain(_uniform), "equal weights"),
        Rule("best", _plain(_best), "all weight on the best specialist (the discrete Super Learner)"),
    )
}


# ------------------------------------------------------------------------------------------------------- applying one


@dataclass(frozen=True)
class Chosen:
    """weights (K,); of the rule "shrunk", tau in units of the loss and the gap of the penalised problem."""

    weights: Floats
    shrinkage: float = 0.0
    penalised_gap: float = 0.0


def apply(rule: RuleLike, problem: Problem, prune: bool = False) -> Chosen:
    """Weights of the specialists under a rule, without those that held-out risk does not miss if `prune`."""
    if not isinstance(rule, str):
        if not callable(rule):
            raise ValueError(f"rule must be a name or a callable, got {type(rule).__name__}")
        return Chosen(_called(rule, problem.rows))
    if rule not in RULES:
        raise ValueError(f"unknown rule {rule!r}; choose one of {', '.join(RULES)} or pass a callable")
    solve = RULES[rule].tune(problem)
    kept = pruned(problem, solve) if prune else np.arange(len(problem.group))
    smaller = problem.only(kept) if len(kept) < len(problem.group) else problem
    alpha = solve(smaller)
    weights = np.zeros(len(problem.group))
    weights[kept] = smaller.spread(alpha)
    if not isinstance(solve, Shrunk):
        return Chosen(weights)
    return Chosen(weights, problem.in_units(solve.tau(smaller)), problem.in_units(solve.gap(smaller, alpha)))


def pruned(problem: Problem, solve: Solve) -> Indices:
    """Specialists that remain when as many of the smallest weights are removed as held-out rows do not miss.

    The weights are solved again without them, and the leave-one-fold-out risk may rise by `PRUNING` standard errors of
    that risk. How many can go is found by bisection.
    """
    held_out, everyone = HeldOut(problem.rows, problem.loss), np.arange(len(problem.group))
    order = np.argsort(solve(problem), kind="stable")  # of the columns, which duplicates share
    if not held_out.parts:
        return everyone
    risk, error = held_out.mean_and_error(held_out.losses(held_out.blends(solve)))

    def without(number: int) -> Indices:
        return np.flatnonzero(~np.isin(problem.group, order[:number]))

    def harmless(number: int) -> bool:
        losses = held_out.losses(held_out.blends(solve, without(number)))
        return held_out.mean_and_error(losses)[0] <= risk + PRUNING * error

    low, high = 0, len(order) - 1  # `low` can go
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if harmless(middle) else (low, middle - 1)
    return without(low)


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
    """The name of a rule, or of the callable that serves as one."""
    return rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__)
