"""Values of a problem at a point of the simplex, and the proof how far it is from the optimum.

A loss is a convex function of the blend b = matrix @ alpha, so any slope s of it gives a lower bound on its minimum,
and f(alpha) minus that bound is the gap of `certify`. For smooth losses s is the derivative at alpha's own blend and
the gap is alpha.g - min(g), g = matrix' s; for absolute and pinball losses s is the dual of a linear programme, and
the bound is min(g). The Tweedie deviance is not convex everywhere: there the gap also pays for what may bend the
wrong way.
"""

from __future__ import annotations

import numpy as np

from softlearning.weights.problems import Problem
from softlearning.weights.solvers import (
    Floats,
    Indices,
    column_norms,
    null_space,
    simplex_least_squares,
    triangle,
    unit_columns,
)


def risks_of(problem: Problem, columns: Floats) -> Floats:
    """(J,) risk of each of the blended columns (m, J)."""
    with np.errstate(over="ignore", invalid="ignore"):  # a hopeless specialist may have an infinite risk
        return problem.mass @ problem.loss.pointwise(problem.y[:, None], columns)


def corner_risks(problem: Problem) -> Floats:
    """(G,) risk of each column by itself."""
    return risks_of(problem, problem.matrix)


def value_at(problem: Problem, alpha: Floats) -> float:
    """Risk of the blend, in units of the problem."""
    return float(risks_of(problem, (problem.matrix @ alpha)[:, None])[0])


def slope_at(problem: Problem, alpha: Floats) -> Floats:
    """(m,) derivative of the risk by each entry of the blend."""
    return problem.mass * problem.loss.slope(problem.y, problem.matrix @ alpha)


def gradient_at(problem: Problem, alpha: Floats) -> Floats:
    """(G,) derivative of the risk by the weights."""
    with np.errstate(over="ignore", invalid="ignore"):
        return problem.matrix.T @ slope_at(problem, alpha)


def hessian_at(problem: Problem, alpha: Floats) -> Floats:
    """(G, G) second derivative of the risk by the weights; what bends the wrong way counts as straight."""
    curvature = problem.mass * np.maximum(problem.loss.curvature(problem.y, problem.matrix @ alpha), 0.0)
    return problem.matrix.T @ (curvature[:, None] * problem.matrix)


def proof_slope(problem: Problem, alpha: Floats) -> Floats:
    """(m,) slope of the risk that `certify` argues with: the derivative at alpha, or the dual of the optimum."""
    dual = problem.optimum[1] if problem.loss.kinked else None
    return slope_at(problem, alpha) if dual is None else dual


def certify(problem: Problem, alpha: Floats) -> tuple[float, float]:
    """Objective and gap, in the problem's unit. No loss is negative, so the objective bounds the gap too."""
    value = value_at(problem, alpha)
    with np.errstate(over="ignore", invalid="ignore"):
        gap = value - _lower_bound(problem, alpha, value)
    return value, max(min(gap, value), 0.0) if np.isfinite(gap) else value


def _lower_bound(problem: Problem, alpha: Floats, value: float) -> float:
    """A number that the objective is nowhere below."""
    gradient, used = problem.matrix.T @ proof_slope(problem, alpha), alpha > 0  # 0 * inf is not a number
    if problem.loss.kinked:
        return float(gradient.min())
    rise = gradient - alpha[used] @ gradient[used]
    if problem.loss.least is not None:  # at worst the curvature is that small on the way to each corner
        rise = rise + 0.5 * least_curvature(problem) * (1 - 2 * alpha + alpha @ alpha)
    return float(value + rise.min())


def least_curvature(problem: Problem) -> float:
    """At most 0: no second derivative of the risk, anywhere on the simplex and along any direction in it, is below.

    In row i the blend lies between the smallest and the largest prediction, so its curvature is at least some c_i, and
    the Hessian is never below sum_i c_i m_i m_i', m_i being the row.
    """
    assert problem.loss.least is not None
    least = problem.loss.least(problem.y, problem.matrix.min(axis=1), problem.matrix.max(axis=1))
    centred = problem.matrix - problem.matrix.mean(axis=1, keepdims=True)  # directions within the simplex have sum 0
    return min(0.0, float(np.linalg.eigvalsh(centred.T @ ((problem.mass * least)[:, None] * centred))[0]))


def whitened(problem: Problem, alpha: Floats) -> Floats:
    """A matrix of few rows that maps weights to equal points when their blends are equal wherever that matters.

    Of a kinked loss, it matters in the rows whose slope lies strictly between its ends: every optimum fits them.
    """
    if problem.loss.name == "squared":
        return problem.matrix
    if problem.loss.kinked:
        slope = proof_slope(problem, alpha) / problem.mass
        inside = (slope > slope.min() + 1e-9) & (slope < slope.max() - 1e-9)
        return triangle(problem.matrix[inside]) if inside.any() else np.zeros((1, problem.matrix.shape[1]))
    curvature = problem.mass * np.maximum(problem.loss.curvature(problem.y, problem.matrix @ alpha), 0.0)
    return triangle(problem.matrix * np.sqrt(curvature)[:, None])


def tied(problem: Problem, alpha: Floats) -> Indices:
    """Columns that may carry weight in some optimum: those of smallest gradient, within rounding."""
    slope = proof_slope(problem, alpha)
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
