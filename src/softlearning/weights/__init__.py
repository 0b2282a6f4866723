"""Weights of the blend: convex problems on the simplex, each answered together with a proof.

Axis order is (row, specialist, class): predictions P (n, K, C), target Y (n, C), weights alpha (K,).

    objective(alpha) = mean over rows of |Y - P alpha|^2            (loss "squared")
                     = mean over rows of -sum_c Y log(P alpha)      (loss "log")

On the simplex Y - P alpha = (Y 1' - P) alpha, so the squared problem only reads the matrix of *errors*, and a
QR of it leaves at most K rows. The log problem only reads the probabilities given to what happened. Either way
the blend is ``matrix @ alpha`` and the objective a convex function of it: that is what a `Problem` holds, and
every row of the table `RULES` turns a `Problem` into weights.

Proof: for convex f and its gradient g, f(alpha) - min f <= alpha.g - min(g). That is `Solution.gap`.

Order never matters: columns are sorted by their content and equal ones are merged before anything is solved.
So permuting the specialists permutes the weights bit for bit, and duplicates share equally.

Tie rule: among several optima, the one of smallest Euclidean norm; specialists without any error come first.
"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from softlearning.weights.certificates import certify, is_unique
from softlearning.weights.losses import LOSSES, LossLike, checked, problem_of, row_losses
from softlearning.weights.problems import FLOOR
from softlearning.weights.rules import RULES, RuleLike, apply, rule_name
from softlearning.weights.solvers import Floats

__all__ = ["FLOOR", "LOSSES", "RULES", "Solution", "row_losses", "solve_weights"]


@dataclass(frozen=True)
class Solution:
    """Weights with their certificate.

    weights : (K,) point of the simplex.
    objective : weighted mean over rows of the loss of the blend.
    gap : upper bound on objective minus the smallest objective on the simplex.
    unique : True when the weights are shown to be the only optimum; False when there are others, or when the
        rule did not return an optimum.
    shrinkage : tau of the rule "guarded", which minimises objective + tau KL(weights | prior); else 0.
    penalised_gap : upper bound on that sum minus its minimum.
    """

    weights: Floats
    objective: float
    gap: float
    unique: bool
    rule: str
    loss: str
    shrinkage: float = 0.0
    penalised_gap: float = 0.0


def solve_weights(
    predictions: ArrayLike,
    target: ArrayLike,
    *,
    rule: RuleLike = "simplex",
    loss: LossLike = "squared",
    sample_weight: ArrayLike | None = None,
    prior: ArrayLike | None = None,
) -> Solution:
    """Weights on the simplex by a row of `RULES`, with objective, certified gap and uniqueness.

    Parameters
    ----------
    predictions : (n, K, C) out-of-fold predictions; probabilities when loss is "log".
    target : (n, C) the column y, or one-hot classes.
    rule : a name in `RULES`, or a callable(predictions, target, sample_weight) -> (K,) weights.
    loss : a name in `LOSSES`, with its number where it has one: "pinball:0.9" or ("pinball", 0.9).
    sample_weight : (n,) non-negative; only ratios matter, and a row of weight zero is as good as absent.
    prior : (K,) positive shares, in any unit, that the rule "guarded" leans to where rows are few; None is equal.

    Examples
    --------
    >>> import numpy as np
    >>> from softlearning.weights import solve_weights
    >>> y = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> too_low, too_high = y - 1, y + 3
    >>> solution = solve_weights(np.stack([too_low, too_high], axis=1), y)
    >>> solution.weights.round(6).tolist()
    [0.75, 0.25]
    """
    rows, found = checked(predictions, target, loss, sample_weight=sample_weight, prior=prior)
    problem = problem_of(rows, found)
    chosen = apply(rule, problem)
    alpha = problem.gathered(chosen.weights)
    value, gap = certify(problem, alpha)
    unique = gap <= 1e-9 and is_unique(problem, alpha)
    return Solution(
        chosen.weights,
        problem.in_units(value),
        problem.in_units(gap),
        unique,
        rule_name(rule),
        found.name,
        chosen.shrinkage,
        chosen.penalised_gap,
    )
