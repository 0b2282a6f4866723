"""Why this weight: reasons, from out-of-fold predictions alone. Nothing is refitted.

P (n, K, C) out-of-fold predictions, target (n, C), alpha (K,) on the simplex. For the squared loss
everything about weights is in the Gram matrix of the errors, G = sum over rows and classes of (y - f_k)(y
- f_j): the blend's risk is alpha' G alpha.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softlearning.weights.problems import check_rows, error_block

DUPLICATE = 1e-6  # squared distance of two specialists, as a share of the better one's squared error


@dataclass(frozen=True)
class Reason:
    """Why a specialist has its weight.

    `word`: "only" (there is no other), "earns" (has weight), "duplicate" of `other`, "dominated" by `other` (in a blend
    of the two it would get nothing) or "not needed" (the blend of several others leaves it nothing).
    """

    specialist: str
    word: str
    other: str = ""


def gram_matrix(P: np.ndarray, target: np.ndarray, row_weight: np.ndarray | None = None) -> np.ndarray:
    """G_kj = weighted mean over rows of (y - f_k).(y - f_j); (K, K)."""
    rows = check_rows(P, target, row_weight)
    errors = error_block(rows, np.arange(len(P)), np.arange(P.shape[1]), 1.0)
    return errors.T @ errors


def why_these_weights(
    names: Sequence[str],
    P: np.ndarray,
    target: np.ndarray,
    alpha: np.ndarray,
    *,
    sample_weight: np.ndarray | None = None,
) -> tuple[Reason, ...]:
    """One Reason per specialist, in the order of names and P."""
    if len(names) == 1:
        return (Reason(names[0], "only"),)
    G = gram_matrix(P, target, sample_weight)
    return tuple(
        Reason(name, "earns") if alpha[k] > 0 else _why_nothing(k, names, G, alpha) for k, name in enumerate(names)
    )


def _why_nothing(k: int, names: Sequence[str], G: np.ndarray, alpha: np.ndarray) -> Reason:
    """Duplicate or dominated by which specialist with weight, the heaviest first."""
    support = [j for j in np.argsort(-alpha, kind="stable") if alpha[j] > 0]
    for j in support:
        distance = G[k, k] + G[j, j] - 2 * G[k, j]
        if distance <= DUPLICATE * min(G[k, k], G[j, j]):
            return Reason(names[k], "duplicate", names[j])
    for j in support:
        if G[j, j] <= G[k, j]:  # the slope towards k, in a blend that is all j, is not downhill
            return Reason(names[k], "dominated", names[j])
    return Reason(names[k], "not needed")
