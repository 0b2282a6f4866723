"""How far a blend of probabilities is to be sharpened.

The mean of calibrated probabilities is itself too cautious: where specialists err apart, the mean lies nearer to the
middle than what they know together (Ranjan and Gneiting, 2010). So each speaks in the blend as

    softmax(beta log P_k),     f = sum over k of alpha_k softmax(beta log P_k),

with one beta >= 1 for all: the blend stays a convex combination. beta maximises the likelihood, less `PULL`
(beta - 1)^2 nats, so that few rows sharpen little.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from softlearning.uncertainty.calibration import FLOOR, Floats

PULL = 4.0  # nats; chosen on real tables, like the rows that the prior of the weights is worth
MOST = 3.0  # largest beta
ENOUGH = 5_000  # rows that one number is learnt from


def sharpened(P: Floats, beta: float | Floats) -> Floats:
    """softmax(beta log P) over the last axis of P (..., C), as P is where beta is 1; beta broadcasts over P."""
    if np.all(beta == 1):
        return P
    return softmax(np.log(np.clip(P, FLOOR, 1.0)) * beta, axis=-1)


def fit_sharpness(P: Floats, target: Floats, weights: Floats, sample_weight: Floats | None = None) -> float:
    """beta in [1, 3] for predictions (n, K, C), best held out, under weights (K,); target (n, C) is one-hot.

    Examples
    --------
    >>> import numpy as np
    >>> from softlearning.uncertainty.sharpening import fit_sharpness
    >>> P = np.tile([[[0.9, 0.1], [0.7, 0.3]]], (1000, 1, 1))  # the mean is .8, which is too little:
    >>> target = np.eye(2)[[0] * 900 + [1] * 100]
    >>> round(fit_sharpness(P, target, np.array([0.5, 0.5])), 1)
    1.6
    """
    step = max(1, len(P) // ENOUGH)
    used = weights > 0
    logs, target = np.log(np.clip(P[::step, used], FLOOR, 1.0)), target[::step]
    share = np.ones(len(logs)) if sample_weight is None else sample_weight[::step]
    if not share.any():
        return 1.0
    rows, share = share.sum() ** 2 / (share @ share), share / share.sum()

    def cost(beta: float) -> float:
        blend = np.einsum("nkc,k->nc", softmax(logs * beta, axis=-1), weights[used])
        likelihood = np.clip((blend * target).sum(axis=1), FLOOR, 1.0)
        return float(-(share @ np.log(likelihood)) + PULL / rows * (beta - 1) ** 2)

    found = minimize_scalar(cost, bounds=(1.0, MOST), method="bounded", options={"xatol": 1e-4})
    return float(found.x) if found.fun < cost(1.0) else 1.0
