"""Two numbers that calibrate a specialist's probabilities: a share of the prior, and a temperature.

    P' = softmax(log((1 - e) P + e prior) / T)

The share e lifts probabilities of zero off the floor: a class that a fold never saw, or that none of five neighbours
has, costs log(1 / (e prior)) instead of 34 nats, so a single such row no longer decides about the temperature. T > 1
then softens what is overconfident, T < 1 sharpens what is underconfident.

Both maximise the likelihood, penalised so that few rows say little: by shrink / 2 (1 / T - 1)^2 nats, by shrink / 10
pseudo-rows that P explains as it is, and by a quarter of a row that only the prior explains, so e is never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from softlearning.weights.losses import checked

Floats = NDArray[np.float64]

FLOOR = 1e-15  # a probability of exactly zero is taken as this, so that its logarithm is finite
SHARPNESS = (0.02, 50.0)  # bounds of 1/T
SHARE_PULL = 0.1  # pseudo-rows against the prior, per unit of shrink
PRIOR_ROWS = 0.25  # pseudo-rows that only the prior explains
SHARES = (1e-12, 0.5)  # bounds of e
STARTS = ((1.0, 1e-3), (1.0, 1e-2), (1.0, 1e-1), (3.0, 1e-9))  # (T, e): zeros on the floor, or plain overconfidence


@dataclass(frozen=True)
class Calibration:
    """temperature T > 0, prior_share e in [0, 1) and prior (C,); (1, 0) changes nothing."""

    temperature: float
    prior_share: float
    prior: Floats

    def mixed(self, P: Floats) -> Floats:
        """(n, C) the probabilities with the share of the prior."""
        return (1 - self.prior_share) * P + self.prior_share * self.prior


def fit_calibration(
    probabilities: ArrayLike, target: ArrayLike, sample_weight: ArrayLike | None = None, shrink: float = 50.0
) -> Calibration:
    """The share of the prior and the temperature under which the target is likeliest, shrunk where rows are few.

    Parameters
    ----------
    probabilities : (n, C), best predicted out of fold.
    target : (n, C) one-hot classes, or rows of probabilities.
    sample_weight : (n,) non-negative; only ratios matter.
    shrink : strength of the penalty, in nats: sharpening to T = 1/2 costs half of it.

    Examples
    --------
    >>> import numpy as np
    >>> from softlearning.uncertainty.calibration import apply_calibration, fit_calibration
    >>> P = np.eye(2)[[0] * 100]  # always certain of the first class ...
    >>> target = np.eye(2)[[0] * 90 + [1] * 10]  # ... and right in nine cases of ten
    >>> apply_calibration(P[:1], fit_calibration(P, target, shrink=0.0)).round(2)
    array([[0.9, 0.1]])
    """
    given = np.asarray(probabilities, dtype=np.float64)
    found, _ = checked(given[:, None], target, "log", sample_weight=sample_weight)
    P, target, share, rows = np.clip(given, 0.0, 1.0), found.target, found.share, len(found.live)
    counts = rows * (share @ target) + 0.5  # half a row per class: no class is impossible
    prior = counts / counts.sum()

    def cost(parameters: Floats) -> tuple[float, Floats]:
        return _penalised(parameters, P, target, share, prior, rows, shrink)

    starts = [np.log([1 / T, e]) for T, e in STARTS]
    near = min(starts[:-1], key=lambda start: cost(start)[0])
    search = partial(minimize, cost, jac=True, method="L-BFGS-B", bounds=np.log([SHARPNESS, SHARES]), tol=1e-7)
    beta, e = np.exp(min((search(start) for start in (near, starts[-1])), key=lambda end: end.fun).x)
    return Calibration(float(1 / beta), float(e), prior)


def apply_calibration(probabilities: ArrayLike, calibration: Calibration) -> Floats:
    """(n, C) softmax(log((1 - e) P + e prior) / T); rows sum to 1."""
    P = np.clip(np.asarray(probabilities, dtype=np.float64), 0.0, 1.0)
    return apply_temperature(calibration.mixed(P), calibration.temperature)


def apply_temperature(P: ArrayLike, T: float) -> Floats:
    """(n, C) softmax(log(P) / T): rows sum to 1; rows that already do are returned as they are for T = 1."""
    P = np.asarray(P, dtype=np.float64)
    if not (np.isfinite(T) and T > 0):
        raise ValueError(f"the temperature must be positive and finite, got {T!r}")
    if T == 1:
        total = P.sum(axis=1, keepdims=True)
        return np.where(np.abs(total - 1) <= 1e-12, P, P / np.where(total > 0, total, 1.0))
    return softmax(np.log(np.clip(P, FLOOR, 1.0)) / T, axis=1)


def _penalised(
    parameters: Floats, P: Floats, target: Floats, share: Floats, prior: Floats, rows: float, shrink: float
) -> tuple[float, Floats]:
    """Penalised mean log loss and its gradient in (log 1/T, log e)."""
    beta, e = np.exp(parameters)
    mix = (1 - e) * P + e * prior
    logs = np.log(mix)
    relative = logs - logs.max(axis=1, keepdims=True)
    odds = np.exp(beta * relative)
    total = odds.sum(axis=1, keepdims=True)
    surplus = odds / total - target
    loss = share @ (np.log(total[:, 0]) - beta * (target * relative).sum(axis=1))
    by_beta = share @ (surplus * logs).sum(axis=1)
    by_e = beta * (share @ (surplus * (prior - P) / mix).sum(axis=1))
    pull = shrink / rows
    cost = loss + pull * (0.5 * (beta - 1) ** 2 - SHARE_PULL * np.log1p(-e)) - PRIOR_ROWS / rows * np.log(e)
    gradient = [beta * (by_beta + pull * (beta - 1)), e * (by_e + SHARE_PULL * pull / (1 - e)) - PRIOR_ROWS / rows]
    return float(cost), np.array(gradient)
