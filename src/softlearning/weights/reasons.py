"""Why this weight: reasons, from out-of-fold predictions alone. Nothing is refitted.

P (n, K, C) out-of-fold predictions, target (n, C), alpha (K,) on the simplex. For the squared loss
everything about weights is in the Gram matrix of the errors, G = sum over rows and classes of (y - f_k)(y
- f_j): the blend's risk is alpha' G alpha.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from softlearning.weights import solve_weights
from softlearning.weights.problems import check_rows, error_block

DUPLICATE = 1e-6  # squared distance of two specialists, as a share of the better one's squared error


@dataclass(frozen=True)
class Reason:
    """Why a specialist has its weight.

    `word`: "earns" (has weight), "duplicate" of `other`, "dominated" by `other` (in a blend of the two it would get
    nothing), "not needed" (the blend of several others leaves it nothing), or the status of one that did not finish.
    `slope`: rise of the risk per unit of weight moved to it from the blend; 0 for one with weight, at the optimum.
    `worth`: rise of the risk when it is dropped and the weights are solved again.
    """

    specialist: str
    weight: float
    word: str
    other: str = ""
    slope: float = float("nan")
    worth: float = float("nan")

    def __str__(self) -> str:
        return f"{self.specialist}: {self.word}{f' ({self.other})' if self.other else ''}, weight {self.weight:.3f}"


def gram_matrix(P: np.ndarray, target: np.ndarray, row_weight: np.ndarray | None = None) -> np.ndarray:
    """G_kj = weighted mean over rows of (y - f_k).(y - f_j); (K, K)."""
    rows = check_rows(P, target, row_weight)
    errors = error_block(rows, np.arange(len(P)), np.arange(P.shape[1]), 1.0)
    return errors.T @ errors


def weights_from_gram(gram: np.ndarray) -> np.ndarray:
    """Point of the simplex minimising alpha' G alpha: K rows with the same Gram matrix stand for the data."""
    value, vector = np.linalg.eigh(gram)
    root = np.sqrt(np.clip(value, 0, None))[:, None] * vector.T
    return solve_weights(root[:, :, None], np.zeros((len(gram), 1))).weights


def why_these_weights(
    names: Sequence[str],
    P: np.ndarray,
    target: np.ndarray,
    alpha: np.ndarray,
    *,
    unfinished: Mapping[str, str] | None = None,
    sample_weight: np.ndarray | None = None,
) -> tuple[Reason, ...]:
    """One Reason per specialist, heaviest first; `names` in the order of P, `unfinished` maps others to a status."""
    G = gram_matrix(P, target, sample_weight)
    finished = [_reason(k, names, G, alpha) for k in np.argsort(-alpha, kind="stable")]
    others = [Reason(name, 0.0, status) for name, status in (unfinished or {}).items()]
    return (*finished, *others)


def _reason(k: int, names: Sequence[str], G: np.ndarray, alpha: np.ndarray) -> Reason:
    """The reason of specialist k among the finished ones."""
    risk = float(alpha @ G @ alpha)
    slope = float(2 * (G[k] @ alpha - risk))
    if alpha[k] > 0:
        return Reason(names[k], float(alpha[k]), "earns", slope=slope, worth=_worth(k, G, risk))
    word, other = _why_nothing(k, G, alpha)
    return Reason(names[k], 0.0, word, names[other] if other is not None else "", slope, 0.0)


def _worth(k: int, G: np.ndarray, risk: float) -> float:
    """Rise of the risk when k is dropped; infinite when it is all there is."""
    rest = np.delete(np.arange(len(G)), k)
    if len(rest) == 0:
        return float("inf")
    beta = weights_from_gram(G[np.ix_(rest, rest)])
    return float(beta @ G[np.ix_(rest, rest)] @ beta) - risk


def _why_nothing(k: int, G: np.ndarray, alpha: np.ndarray) -> tuple[str, int | None]:
    """Duplicate or dominated by which specialist with weight, the heaviest first."""
    support = [j for j in np.argsort(-alpha, kind="stable") if alpha[j] > 0]
    for j in support:
        distance = G[k, k] + G[j, j] - 2 * G[k, j]
        if distance <= DUPLICATE * min(G[k, k], G[j, j]):
            return "duplicate", int(j)
    for j in support:
        if G[j, j] <= G[k, j]:  # the slope towards k, in a blend that is all j, is not downhill
            return "dominated", int(j)
    return "not needed", None
