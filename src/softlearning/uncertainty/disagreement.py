"""How far the specialists disagree at a row, and which measure of uncertainty finds the errors.

Arrays in, values out. `P` is (row, specialist, class), regression has one class; `alpha` is a point of the
simplex, (K,). Nothing here needs a target except the functions that judge a measure against the truth.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata


def blend(P: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """f(x) = sum_k alpha_k f_k(x); P (n, K, C) -> (n, C)."""
    return np.einsum("nkc,k->nc", P, alpha)


def disagreement(P: np.ndarray, alpha: np.ndarray, around: np.ndarray | None = None) -> np.ndarray:
    """V(x) = sum_k alpha_k |f_k(x) - f(x)|^2 of Definition S7; (n,). `around` is f (n, C) where it is not the blend."""
    f = blend(P, alpha) if around is None else around
    return np.einsum("nkc,k->n", (P - f[:, None, :]) ** 2, alpha)


def entropy(p: np.ndarray) -> np.ndarray:
    """-sum_c p_c log p_c of each row, in nats; p (n, C) -> (n,)."""
    return -np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=1)


def max_probability_uncertainty(p: np.ndarray) -> np.ndarray:
    """1 - max_c p_c of each row; p (n, C) -> (n,)."""
    return 1.0 - p.max(axis=1)


def detector_auc(score: np.ndarray, wrong: np.ndarray) -> float:
    """P(a wrong row scores above a right row), a tie counting one half; nan when only one kind is there."""
    wrong = np.asarray(wrong, dtype=bool)
    n_wrong, n_right = int(wrong.sum()), int((~wrong).sum())
    if n_wrong == 0 or n_right == 0:
        return float("nan")
    rank_sum = rankdata(score)[wrong].sum()
    return float((rank_sum - n_wrong * (n_wrong + 1) / 2) / (n_wrong * n_right))
