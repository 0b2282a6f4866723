"""How weights are chosen: a table of rules, each a function from a problem to the weights of its columns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from softlearning.weights.certificates import certify, corner_risks, risks_of, tied, whitened
from softlearning.weights.problems import Problem, Rows, regression_block, stream
from softlearning.weights.shrinkage import nats, penalised_gap, shrunk
from softlearning.weights.slsqp import slsqp
from softlearning.weights.solvers import Floats, column_norms, corner, normalised, smallest_norm

Solve = Callable[[Problem], Floats]  # weights (G,) of the columns of a problem
RuleLike = str | Callable[[Floats, Floats, Floats | None], ArrayLike]

ROUNDS = 50  # of greedy selection


def exact(problem: Problem) -> Floats:
    """The optimum on the simplex; of several, the one of smallest norm."""
    perfect = ~problem.matrix.any(axis=0)  # no error at all: one column, which perfect specialists share
    if perfect.any():
        return perfect.astype(float)
    alpha = problem.optimum[0]
    settled = smallest_norm(whitened(problem, alpha), alpha, tied(problem, alpha), problem.count)
    before, after = certify(problem, alpha)[1], certify(problem, settled)[1]
    return settled if after <= max(2 * before, 1e-12) else alpha  # a proof lost is worse than a tie unsettled


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


def _guarded(problem: Problem) -> Floats:
    """Weights drawn to the prior where rows are few; of a loss with kinks the exact ones."""
    if problem.loss.kinked or not problem.matrix.any(axis=0).all():
        return exact(problem)
    return shrunk(problem)


@dataclass(frozen=True)
class Rule:
    """A row of the table of weight rules; solve turns a Problem into the weights (G,) of its columns."""

    name: str
    solve: Solve
    description: str


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("simplex", exact, "the exact optimum on the simplex; of several, the one of smallest norm"),
        Rule("guarded", _guarded, "exact weights, drawn to prior shares as far as few rows overfit; no tiny weights"),
        Rule("slsqp", slsqp, "the paper's solver: sequential quadratic programming from K + 2 starts"),
        Rule("greedy", _greedy, f"greedy selection with replacement, {ROUNDS} rounds"),
        Rule("nnls", _nnls, "non-negative least squares of target on predictions, divided by its sum"),
        Rule("uniform", _uniform, "equal weights"),
        Rule("best", _best, "all weight on the best specialist (the discrete Super Learner)"),
    )
}


# ------------------------------------------------------------------------------------------------------- applying one


@dataclass(frozen=True)
class Chosen:
    """weights (K,); of the guarded rule, tau in units of the loss and the gap of the penalised problem."""

    weights: Floats
    shrinkage: float = 0.0
    penalised_gap: float = 0.0


def apply(rule: RuleLike, problem: Problem) -> Chosen:
    """Weights of the specialists under a rule."""
    if not isinstance(rule, str):
        if not callable(rule):
            raise ValueError(f"rule must be a name or a callable, got {type(rule).__name__}")
        return Chosen(_called(rule, problem.rows))
    if rule not in RULES:
        raise ValueError(f"unknown rule {rule!r}; choose one of {', '.join(RULES)} or pass a callable")
    alpha = RULES[rule].solve(problem)
    weights = problem.spread(alpha)
    if rule != "guarded" or problem.loss.kinked:
        return Chosen(weights)
    return Chosen(weights, problem.in_units(nats(problem)), problem.in_units(penalised_gap(problem, alpha)))


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
