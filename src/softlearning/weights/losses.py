"""What the weights minimise: a table of losses, and the proof that comes with each point of the simplex.

For convex f with gradient g, f(alpha) - min f <= alpha.g - min(g): the gap that `certify` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softlearning.weights.problems import FLOOR, Problem, Rows, build_log, build_squared, check_rows
from softlearning.weights.solvers import (
    Floats,
    Indices,
    column_norms,
    null_space,
    simplex_least_squares,
    simplex_log_loss,
    triangle,
    unit_columns,
)


@dataclass(frozen=True)
class Loss:
    """A row of the table of losses, as functions of the blended column matrix @ alpha.

    build : Rows -> Problem; risks : columns (m, J), mass (m,) -> (J,); slope : derivative of the risk (m,);
    minimise : Problem -> one optimum (G,); check : predictions and target -> ValueError where they do not fit.
    """

    build: Callable[[Rows], Problem]
    risks: Callable[[Floats, Floats], Floats]
    slope: Callable[[Floats, Floats], Floats]
    minimise: Callable[[Problem], Floats]
    check: Callable[[Floats, Floats], None] = lambda P, Y: None


def _check_probabilities(P: Floats, Y: Floats) -> None:
    if Y.shape[1] < 2:
        raise ValueError("log loss needs a column for each class (two or more); regression needs loss='squared'")
    if P.min() < -1e-6 or P.max() > 1 + 1e-6:
        raise ValueError("log loss needs predictions that are probabilities, between 0 and 1")
    if Y.min() < 0 or np.abs(Y.sum(axis=1) - 1).max() > 1e-6:
        raise ValueError("log loss needs target rows that are non-negative and sum to 1 (one-hot)")


LOSSES: dict[str, Loss] = {
    "squared": Loss(
        build_squared,
        risks=lambda columns, mass: np.einsum("ij,ij->j", columns, columns),
        slope=lambda blend, mass: 2 * blend,
        minimise=lambda problem: simplex_least_squares(problem.matrix),
    ),
    "log": Loss(
        build_log,
        risks=lambda columns, mass: -(mass @ np.log(np.maximum(columns, FLOOR))),
        slope=lambda blend, mass: -mass / np.maximum(blend, FLOOR),
        minimise=lambda problem: simplex_log_loss(problem.matrix, problem.mass)[0],
        check=_check_probabilities,
    ),
}


def row_losses(predictions: ArrayLike, target: ArrayLike, weights: ArrayLike, loss: str = "squared") -> Floats:
    """(n,) loss of the blend in each row: sum_c (Y - P alpha)^2, or -sum_c Y log(max(P, 1e-15) alpha)."""
    P, Y, alpha = (np.asarray(a, dtype=np.float64) for a in (predictions, target, weights))
    floor = FLOOR if known_loss(loss) == "log" else -np.inf
    blend = np.zeros(Y.shape)
    for k in np.flatnonzero(alpha):
        blend += alpha[k] * np.maximum(P[:, k], floor)
    return ((Y - blend) ** 2).sum(axis=1) if loss == "squared" else -cross_entropy(Y, blend)


def cross_entropy(target: Floats, blend: Floats) -> Floats:
    """(n,) sum over classes of target * log(blend), with 0 log 0 = 0."""
    return np.where(target > 0, target * np.log(np.clip(blend, FLOOR, 1.0)), 0.0).sum(axis=1)


def checked(
    predictions: ArrayLike,
    target: ArrayLike,
    loss: str,
    sample_weight: ArrayLike | None = None,
    folds: ArrayLike | None = None,
) -> Rows:
    """Rows that fit together and fit the loss, or a ValueError that names the cause."""
    rows = check_rows(predictions, target, sample_weight, folds)
    LOSSES[known_loss(loss)].check(rows.predictions, rows.target)
    return rows


def known_loss(loss: str) -> str:
    """The name of a loss in the table, or a ValueError."""
    if loss not in LOSSES:
        raise ValueError(f"unknown loss {loss!r}; choose one of {', '.join(LOSSES)}")
    return loss


def risks_of(problem: Problem, columns: Floats) -> Floats:
    with np.errstate(over="ignore"):  # a hopeless specialist may have an infinite risk
        return LOSSES[problem.loss].risks(columns, problem.mass)


def corner_risks(problem: Problem) -> Floats:
    return risks_of(problem, problem.matrix)


def value_at(problem: Problem, alpha: Floats) -> float:
    return float(risks_of(problem, (problem.matrix @ alpha)[:, None])[0])


def gradient_at(problem: Problem, alpha: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return problem.matrix.T @ LOSSES[problem.loss].slope(problem.matrix @ alpha, problem.mass)


def certify(problem: Problem, alpha: Floats) -> tuple[float, float]:
    """Objective and gap, in units of unit^2. No loss is negative, so the objective bounds the gap too."""
    value, gradient = value_at(problem, alpha), gradient_at(problem, alpha)
    used = alpha > 0  # 0 * inf is not a number
    with np.errstate(over="ignore", invalid="ignore"):
        gap = float(alpha[used] @ gradient[used] - gradient.min())
    return value, min(max(gap, 0.0), value) if np.isfinite(gap) else value


def whitened(problem: Problem, alpha: Floats) -> Floats:
    """A matrix of few rows that maps weights to equal points exactly when their blends are equal."""
    if problem.loss == "squared":
        return problem.matrix
    return triangle(problem.matrix * (np.sqrt(problem.mass) / (problem.matrix @ alpha))[:, None])


def tied(problem: Problem, alpha: Floats) -> Indices:
    """Columns that may carry weight in some optimum: those of smallest gradient, within rounding."""
    slope = LOSSES[problem.loss].slope(problem.matrix @ alpha, problem.mass)
    gradient = problem.matrix.T @ slope
    rounding = column_norms(problem.matrix) * (1e-8 * float(np.linalg.norm(slope)) + 1e-12)
    return np.flatnonzero((gradient - gradient.min() <= rounding) | (alpha > 0))


def is_unique(problem: Problem, alpha: Floats) -> bool:
    """True when no direction leads from the optimum alpha to another one.

    Such a direction d has matrix @ d = 0 and sum 0, lives on the tied columns, and is non-negative where alpha
    is zero. If the support is independent, d must use the idle columns, so a convex combination of them lies in
    the span of the support: the distance of that combination is again `simplex_least_squares`.
    """
    if problem.count[alpha > 0].max() > 1:
        return False
    candidates = tied(problem, alpha)
    unit, ones = unit_columns(whitened(problem, alpha)[:, candidates])
    lifted = np.vstack([unit, ones])
    used = alpha[candidates] > 0
    if null_space(lifted[:, used]).shape[1]:
        return False
    if used.all():
        return True
    basis = np.linalg.qr(lifted[:, used])[0]
    idle = lifted[:, ~used] - basis @ (basis.T @ lifted[:, ~used])
    return bool(np.linalg.norm(idle @ simplex_least_squares(idle)) > 1e-9)
