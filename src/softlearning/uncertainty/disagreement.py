"""How far the specialists disagree at a row, and which measure of uncertainty finds the errors.

Arrays in, values out. `P` is (row, specialist, class), regression has one class; `alpha` is a point of the
simplex, (K,). Nothing here needs a target except the functions that judge a measure against the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata


def blend(P: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """f(x) = sum_k alpha_k f_k(x); P (n, K, C) -> (n, C)."""
    return np.einsum("nkc,k->nc", P, alpha)


def disagreement(P: np.ndarray, alpha: np.ndarray, around: np.ndarray | None = None) -> np.ndarray:
    """V(x) = sum_k alpha_k |f_k(x) - f(x)|^2 of Definition S7; (n,). `around` is f (n, C) where it is not the blend."""
    f = blend(P, alpha) if around is None else around
    return np.einsum("nkc,k->n", (P - f[:, None, :]) ** 2, alpha)


def disagreement_pairwise(P: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """V(x) = 1/2 sum_{k,j} alpha_k alpha_j |f_k(x) - f_j(x)|^2, the second form of Definition S7; (n,)."""
    V = np.zeros(len(P))
    for k in range(1, P.shape[1]):  # each pair once, so the half is gone
        distance = ((P[:, k, None, :] - P[:, :k, :]) ** 2).sum(axis=2)
        V += alpha[k] * (distance @ alpha[:k])
    return V


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


@dataclass(frozen=True)
class Detector:
    """How well one measure of uncertainty tells wrong rows from right ones. `auc` 0.5 is no better than a coin."""

    name: str
    auc: float
    mean_wrong: float
    mean_right: float


def compare_measures(P: np.ndarray, alpha: np.ndarray, target: np.ndarray) -> tuple[Detector, ...]:
    """Disagreement, entropy and 1 - max probability as detectors of the blend's errors, best first.

    P (n, K, C) with C > 1, target (n, C) one-hot; a row is wrong when the blend's largest class is not its own.
    """
    p = blend(P, alpha)
    wrong = p.argmax(axis=1) != target.argmax(axis=1)
    scores = {
        "disagreement": disagreement(P, alpha),
        "entropy": entropy(p),
        "max_probability": max_probability_uncertainty(p),
    }
    rows = [judge_measure(name, score, wrong) for name, score in scores.items()]
    return tuple(sorted(rows, key=lambda row: -np.nan_to_num(row.auc, nan=-1.0)))


def judge_measure(name: str, score: np.ndarray, wrong: np.ndarray) -> Detector:
    """The AUC of a measure and its mean on wrong and on right rows (nan where there are none)."""
    mean = [float(score[rows].mean()) if rows.any() else float("nan") for rows in (wrong, ~wrong)]
    return Detector(name, detector_auc(score, wrong), mean[0], mean[1])
