"""Points of the simplex from matrices: least squares, log loss and ties, arrays in and arrays out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dtrcon
from scipy.optimize import linprog, nnls

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

MAX_STEPS = 50  # Newton steps for the log loss; single digits are usual


def simplex_least_squares(errors: Floats) -> Floats:
    """Point of the simplex minimising |errors @ alpha|^2; errors is (m, K), target minus prediction.

    Non-negative least squares |[E; 1'] u - [0; 1]| is homogeneous in E u, so u / sum(u) is exactly the optimum.
    Columns are divided by their norm: a specialist that is wrong by many orders of magnitude spoils nothing.
    """
    norms = column_norms(errors)
    if not norms.all():  # a perfect specialist: nothing can do better
        return normalised((norms == 0).astype(float))
    scaled, ones = errors / norms, np.maximum(norms.min() / norms, 1e-290)
    right = np.append(np.zeros(len(errors)), 1.0)
    alpha, smallest = corner(int(norms.argmin()), len(norms)), np.inf
    # The gradient along a column far longer than the best one drowns in rounding. A nudge of its entry in the
    # row of ones makes that gradient safely positive, and costs a gap of only about the nudge.
    for nudge in (1e-14, 1e-13, 1e-12, 1e-11):
        with suppress(RuntimeError):  # a degenerate problem can cycle; the nudged one does not
            u, _ = nnls(np.vstack([scaled, ones + nudge]), right, maxiter=10 * len(norms) + 50)
            candidate = normalised(u * ones)
            gap = _safe_gap(scaled, ones, candidate)
            if gap < smallest:
                alpha, smallest = candidate, gap
        if smallest <= 1e-13:
            break
    return alpha


def _safe_gap(scaled: Floats, ones: Floats, alpha: Floats) -> float:
    """Gap of the squared loss, plus what rounding may hide; errors are scaled / ones, the shortest of norm 1."""
    blend = scaled @ (alpha / ones)
    rounding = 4 * np.finfo(float).eps * np.linalg.norm(blend)
    gap = blend @ blend - ((blend @ scaled - rounding) / ones).min()
    return 2 * float(max(gap, 0.0))


def simplex_log_loss(likelihood: Floats, mass: Floats) -> tuple[Floats, int]:
    """Point of the simplex minimising -mass @ log(likelihood @ alpha), and the Newton steps it took.

    With J = likelihood / blend the quadratic model at alpha is mass @ (J v - 2)^2 / 2 up to a constant, and on
    the simplex J v - 2 = (J - 2) v: a Newton step is again `simplex_least_squares`, then a line search.
    """
    alpha = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    root = np.sqrt(mass)[:, None]
    best, smallest = alpha, np.inf
    for step in range(MAX_STEPS):
        J = likelihood / (likelihood @ alpha)[:, None]
        gap = float((mass @ J).max() - mass.sum())
        if gap < smallest:
            best, smallest = alpha, gap
        if gap <= 1e-13:
            return best, step
        newton = simplex_least_squares(triangle(root * (2 - J)))
        length = _line_minimum(J @ (newton - alpha), mass)
        if length * np.abs(newton - alpha).max() <= 1e-16:  # rounding is all that is left
            return best, step
        alpha = normalised((1 - length) * alpha + length * newton)
    return best, MAX_STEPS


def simplex_newton(
    matrix: Floats,
    value: Callable[[Floats], float],
    slope: Callable[[Floats], Floats],
    curvature: Callable[[Floats], Floats],
) -> Floats:
    """Point of the simplex minimising value(matrix @ alpha), for a smooth loss with the given derivatives by the blend.

    The quadratic model at alpha is g.v + (v - alpha)' (A + D) (v - alpha) / 2 with g = matrix' slope, A = matrix'
    curvature matrix, and a small diagonal D that bounds the step where the loss is straight. With A + D = L L' and
    w = L^-1 (g - (A + D) alpha) it is |(L' + w 1') v|^2 / 2 on the simplex: again `simplex_least_squares`.
    """
    alpha = np.full(matrix.shape[1], 1 / matrix.shape[1])
    best, smallest, damping, idle = alpha, np.inf, 1e-3, 0
    for _ in range(2 * MAX_STEPS):
        blend = matrix @ alpha
        now, by_entry = value(blend), slope(blend)
        gradient = matrix.T @ by_entry
        gap = float(alpha @ gradient - gradient.min())
        idle = 0 if gap < 0.5 * smallest else idle + 1
        if gap < smallest:
            best, smallest = alpha, gap
        if gap <= 1e-13 * abs(now) or (idle > 5 and smallest <= 1e-10 * abs(now)):  # rounding is all that is left
            break
        root = triangle(np.sqrt(np.maximum(curvature(blend), 0.0))[:, None] * matrix)
        target = _model_minimum(root.T @ root, gradient, alpha, damping)
        length = _descent(value, slope, blend, matrix @ (target - alpha), now)
        if length * np.abs(target - alpha).max() <= 1e-16:
            if damping >= 1e3:
                break
            damping *= 100
            continue
        damping = max(damping * 0.1, 1e-13) if length > 0.5 else min(damping * 4, 1e3)
        alpha = normalised((1 - length) * alpha + length * target)
    return best


def _model_minimum(A: Floats, gradient: Floats, alpha: Floats, damping: float) -> Floats:
    """Point of the simplex minimising g.v + (v - alpha)' (A + D) (v - alpha) / 2, D = damping times the diagonal."""
    diagonal = np.maximum(np.diag(A), 1e-12 * (np.diag(A).max() + np.ptp(gradient)))
    B = A + np.diag(damping * diagonal + 1e-300)
    scale = np.sqrt(np.diag(B))
    L = np.linalg.cholesky(B / scale[:, None] / scale + 1e-15 * np.eye(len(B))) * scale[:, None]
    w = solve_triangular(L, gradient - B @ alpha, lower=True)
    return simplex_least_squares(L.T + w[:, None])


def _descent(
    value: Callable[[Floats], float], slope: Callable[[Floats], Floats], blend: Floats, change: Floats, now: float
) -> float:
    """t in [0, 1] at which value(blend + t change) is least, by bisection of its derivative; 0 if nothing is gained."""

    def derivative(t: float) -> float:
        return float(slope(blend + t * change) @ change)

    t = _root(derivative, 1e-13 * abs(now))
    return t if value(blend + t * change) <= now * (1 + 1e-9) else 0.0  # where it is not convex


def pinball_programme(matrix: Floats, mass: Floats, low: float, high: float) -> tuple[Floats, Floats]:
    """Point of the simplex minimising mass @ max(-low r, high r), r = matrix @ alpha, and the slope that proves it.

    It is the largest t with matrix' s >= t in every column, for slopes s between -low mass and high mass: a linear
    programme of one row per column, whatever the number of rows; its multipliers are the weights.
    """
    m, G = matrix.shape
    limits = np.array([[-low, high]] * m + [[-np.inf, np.inf]])
    inequalities = np.hstack([-(mass[:, None] * matrix).T, np.ones((G, 1))])
    found = linprog(np.append(np.zeros(m), -1.0), A_ub=inequalities, b_ub=np.zeros(G), bounds=limits, method="highs")
    if found.x is None:
        raise ArithmeticError(f"the linear programme has no answer: {found.message}")
    return normalised(np.maximum(-found.ineqlin.marginals, 0.0)), mass * np.clip(found.x[:-1], -low, high)


def _line_minimum(slope: Floats, mass: Floats) -> float:
    """t in [0, 1] minimising -mass @ log(1 + t slope), by bisection of its derivative."""

    def derivative(t: float) -> float:
        return float(-mass @ (slope / (1 + t * slope)))

    return _root(derivative, 1e-14)


def _root(derivative: Callable[[float], float], rounding: float) -> float:
    """t in [0, 1] where a rising derivative vanishes, by bisection; 1 where it is close enough, or below rounding."""
    low, high = 0.0, 1.0
    if derivative(high) <= rounding - 0.1 * derivative(low):
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if derivative(middle) <= 0 else (low, middle)
    return high


def smallest_norm(matrix: Floats, alpha: Floats, active: Indices, count: Floats) -> Floats:
    """The point of smallest norm among the weights on `active` with the same sum and the same matrix @ alpha.

    The blend is the same for all optima, so they are alpha + N z >= 0 with N a basis of the null space of
    [matrix; 1']. With b = alpha / sqrt(count) the norm over all specialists is |b|, and the smallest
    |b0 + N z| with b0 + N z >= 0 is a least-distance problem: one more NNLS (Lawson and Hanson, chapter 23).
    """
    root = np.sqrt(count[active])
    unit, ones = unit_columns(matrix[:, active])
    null = null_space(np.vstack([unit, ones])) * ones[:, None] / root[:, None]
    if null.shape[1] == 0:
        return alpha
    N = np.linalg.qr(null)[0]
    b = alpha[active] / root
    b = b - N @ (N.T @ b)
    if b.min() < 0:
        system = np.vstack([N.T, -b])
        right = np.append(np.zeros(N.shape[1]), 1.0)
        try:
            residual = system @ nnls(system, right, maxiter=10 * len(b) + 50)[0] - right
        except RuntimeError:
            return alpha
        b = b - N @ residual[:-1] / residual[-1]
    result = np.zeros_like(alpha)
    result[active] = np.where(b * root > 1e-13 * ones, b * root, 0.0)  # no specialist lives on rounding alone
    return normalised(result)


def unit_columns(matrix: Floats) -> tuple[Floats, Floats]:
    """Columns divided by their norm, and the row of ones likewise (in units of the shortest column)."""
    norms = column_norms(matrix)
    norms[norms == 0] = norms[norms > 0].min() if norms.any() else 1.0
    return matrix / norms, np.maximum(norms.min() / norms, 1e-290)


def null_space(matrix: Floats) -> Floats:
    """(K, q) orthonormal basis of the vectors that matrix (m, K) sends to zero, up to rounding."""
    m, K = matrix.shape
    if m >= K and dtrcon(np.linalg.qr(matrix, mode="r"))[0] > 1e-10:  # far from singular: nothing to look for
        return np.empty((K, 0))
    Q, R, _ = qr(matrix.T, pivoting=True)
    pivots = np.abs(np.diag(R))
    rank = int((pivots > 10 * max(m, K) * np.finfo(float).eps * pivots[0]).sum())
    return Q[:, rank:]


def column_norms(matrix: Floats) -> Floats:
    """(K,) Euclidean norms that neither overflow nor underflow."""
    largest = np.abs(matrix).max(axis=0)
    safe = np.where(largest > 0, largest, 1.0)
    return largest * np.sqrt(((matrix / safe) ** 2).sum(axis=0))


def triangle(matrix: Floats) -> Floats:
    """R of the QR factorisation where that is smaller: R'R = matrix'matrix."""
    if matrix.shape[0] <= matrix.shape[1]:
        return matrix
    R: Floats = np.linalg.qr(matrix, mode="r")  # type: ignore[assignment]  # numpy's stub forgets mode="r"
    return R


def corner(k: int, K: int) -> Floats:
    return np.eye(1, K, k)[0]


def normalised(weights: Floats) -> Floats:
    weights = weights / weights.max()
    return weights / weights.sum()
