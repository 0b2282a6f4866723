"""One temperature per specialist, for probabilities that are over- or underconfident.

    P_T = softmax(log(P) / T),     T > 1 softens, T < 1 sharpens, T = 1 changes nothing.

The log loss of P_T is convex in 1/T, so a safeguarded Newton iteration in one variable finds the best T. A penalty
shrink / 2 (1/T - 1)^2 on the total log loss keeps T near 1 where few rows speak: without it a specialist that makes no
mistake on them is sharpened without bound, and the first mistake afterwards costs dearly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

FLOOR = 1e-15  # a probability of exactly zero is taken as this, so that its logarithm is finite
SHARPNESS = (0.02, 50.0)  # bounds of 1/T
ROUNDING = 1e-12  # a derivative of the log loss by log T below this is zero: nothing measurable to gain


def fit_temperature(
    P: ArrayLike, target: ArrayLike, sample_weight: ArrayLike | None = None, *, shrink: float = 0.0
) -> float:
    """Temperature T > 0 minimising the sum over rows of -sum_c target log softmax(log(P) / T) + shrink/2 (1/T - 1)^2.

    Parameters
    ----------
    P : (n, C) probabilities, best predicted out of fold.
    target : (n, C) one-hot classes, or rows of probabilities.
    sample_weight : (n,) non-negative; only ratios matter.
    shrink : strength of the penalty, in nats: sharpening to T = 1/2 costs half of it.

    Returns
    -------
    float in [0.02, 50]; 1.0 when the temperature makes no measurable difference.

    Examples
    --------
    >>> import numpy as np
    >>> from softlearning.uncertainty.temperature import fit_temperature
    >>> P = np.array([[0.99, 0.01]] * 10)
    >>> target = np.eye(2)[[0] * 8 + [1] * 2]  # right in 8 cases of 10, not in 99 of 100
    >>> round(fit_temperature(P, target), 3)
    3.315
    """
    P, target, share, rows = checked(P, target, sample_weight)
    logs = _logs(P)
    pull = shrink / rows
    low, high = SHARPNESS
    beta = 1.0
    for _ in range(100):
        slope, curvature = _derivatives(beta, logs, target, share)
        slope, curvature = slope + pull * (beta - 1), curvature + pull
        if abs(slope) * beta <= ROUNDING or high - low <= 1e-9 * beta:
            break
        low, high = (beta, high) if slope < 0 else (low, beta)
        newton = beta - slope / curvature if curvature > 0 else np.inf
        beta = newton if low < newton < high else _towards(slope, low, high)
    return 1 / beta


def apply_temperature(P: ArrayLike, T: float) -> Floats:
    """(n, C) softmax(log(P) / T): rows sum to 1; rows that already do are returned as they are for T = 1."""
    P = np.asarray(P, dtype=np.float64)
    if not (np.isfinite(T) and T > 0):
        raise ValueError(f"the temperature must be positive and finite, got {T!r}")
    if T == 1:
        total = P.sum(axis=1, keepdims=True)
        return np.where(np.abs(total - 1) <= 1e-12, P, P / np.where(total > 0, total, 1.0))
    return softmax(_logs(P) / T)


def _towards(slope: float, low: float, high: float) -> float:
    """Where to look when Newton leaves the bracket: an end not yet tried, else the geometric middle."""
    end = high if slope < 0 else low
    return end if end in SHARPNESS else float(np.sqrt(low * high))


def _derivatives(beta: float, logs: Floats, target: Floats, share: Floats) -> tuple[float, float]:
    """First and second derivative of the log loss in beta = 1/T: mean minus observed log, variance of the log."""
    Q = softmax(beta * logs)
    mean = (Q * logs).sum(axis=1)
    observed = (target * logs).sum(axis=1)
    variance = (Q * (logs - mean[:, None]) ** 2).sum(axis=1)
    return float(share @ (mean - observed)), float(share @ variance)


def _logs(P: Floats) -> Floats:
    return np.log(np.clip(P, FLOOR, 1.0))


def softmax(logits: Floats) -> Floats:
    """Rows of exp(logits) divided by their sums."""
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def checked(P: ArrayLike, target: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Floats, Floats, Floats, int]:
    """Probabilities, target, each row's share of the weight, and the number of rows that have any."""
    P, target = np.asarray(P, dtype=np.float64), np.asarray(target, dtype=np.float64)
    if P.ndim != 2 or 0 in P.shape or target.shape != P.shape:
        raise ValueError(f"P and target must be (rows, classes) of one shape, got {P.shape} and {target.shape}")
    if not (np.isfinite(P).all() and np.isfinite(target).all()):
        raise ValueError("P or target contains NaN or infinity")
    if P.min() < -1e-6 or P.max() > 1 + 1e-6:
        raise ValueError("P must hold probabilities, between 0 and 1")
    if target.min() < 0 or np.abs(target.sum(axis=1) - 1).max() > 1e-6:
        raise ValueError("target rows must be non-negative and sum to 1 (one-hot)")
    weight = np.ones(len(P)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (len(P),) or not np.isfinite(weight).all() or weight.min() < 0 or not weight.any():
        raise ValueError(f"sample_weight must be {len(P)} finite, non-negative numbers, not all zero")
    weight = weight / weight.max()
    return P, target, weight / weight.sum(), int((weight > 0).sum())
