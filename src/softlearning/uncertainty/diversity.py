"""How different the specialists are, and what that is worth to the blend.

P (n, K, C) predictions, target (n, C) one-hot or the column y, alpha (K,) on the simplex; K x K results
are in the order of the specialists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softlearning.uncertainty.disagreement import blend, disagreement


@dataclass(frozen=True)
class Ambiguity:
    """blend_error = average_error - ambiguity, exactly (equation 3)."""

    blend_error: float
    average_error: float
    ambiguity: float


def ambiguity_rows(P: np.ndarray, target: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, ...]:
    """Each row's |f - y|^2, sum_k alpha_k |f_k - y|^2 and V; the first is the second minus the third; (n,) each."""
    blend_error = ((blend(P, alpha) - target) ** 2).sum(axis=1)
    average_error = np.einsum("nkc,k->n", (P - target[:, None, :]) ** 2, alpha)
    return blend_error, average_error, disagreement(P, alpha)


def ambiguity_decomposition(
    P: np.ndarray, target: np.ndarray, alpha: np.ndarray, sample_weight: np.ndarray | None = None
) -> Ambiguity:
    """Krogh and Vedelsby's identity, averaged over rows: blend error = average error - ambiguity."""
    means = (float(np.average(part, weights=sample_weight)) for part in ambiguity_rows(P, target, alpha))
    return Ambiguity(*means)


def pairwise_distance(P: np.ndarray) -> np.ndarray:
    """D_kj = mean over rows of |f_k - f_j|^2; (K, K), both tasks."""
    K = P.shape[1]
    D = np.zeros((K, K))
    for k in range(K):
        D[k] = ((P - P[:, k, None, :]) ** 2).sum(axis=2).mean(axis=0)
    return D


def label_disagreement(P: np.ndarray) -> np.ndarray:
    """rho_kj = share of rows where specialists k and j name different classes; (K, K)."""
    label = P.argmax(axis=2)
    return np.mean(label[:, :, None] != label[:, None, :], axis=0)


def double_fault(P: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Share of rows that specialists k and j both get wrong; the diagonal is each one's error rate; (K, K)."""
    wrong = (P.argmax(axis=2) != target.argmax(axis=1)[:, None]).astype(float)
    return wrong.T @ wrong / len(wrong)


def error_correlation(P: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Correlation of the errors f_k - y over rows and classes; (K, K).

    A specialist whose error never varies has correlation 0 with the others and 1 with itself.
    """
    errors = (P - target[:, None, :]).transpose(0, 2, 1).reshape(-1, P.shape[1])
    size = np.linalg.norm(errors, axis=0)
    errors = errors - errors.mean(axis=0)
    norm = np.linalg.norm(errors, axis=0)
    varies = norm > 1e-12 * size  # less is rounding
    unit = np.where(varies, errors, 0.0) / np.where(varies, norm, 1.0)
    correlation = np.clip(unit.T @ unit, -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def effective_specialists(alpha: np.ndarray) -> float:
    """1 / sum_k alpha_k^2: how many equal weights the weights amount to, from 1 to K."""
    return float(1.0 / np.sum(np.square(alpha)))


def effective_opinions(correlation: np.ndarray) -> float:
    """K^2 / sum_kj correlation_kj^2 (participation ratio): K for uncorrelated errors, 1 for identical ones."""
    return float(np.trace(correlation) ** 2 / np.sum(np.square(correlation)))


@dataclass(frozen=True)
class DiversityBound:
    """Both sides of the corollary on diversity. `holds` says whether its second inequality holds on these rows."""

    ambiguity: float
    paper_bound: float
    margin_bound: float

    @property
    def holds(self) -> bool:
        return self.ambiguity >= self.paper_bound * (1 - 1e-12)


def diversity_bound(P: np.ndarray, alpha: np.ndarray) -> DiversityBound:
    """The ambiguity A of classifiers, the paper's lower bound on it, and one that always holds.

    The corollary says A >= sum_{k != j} alpha_k alpha_j rho_kj. Its first step is an equality, A = 1/2 sum alpha_k
    alpha_j E|f_k - f_j|^2. Its second needs |f_k - f_j|^2 >= 2 wherever the named classes differ: true of one-hot
    predictions (then the two sides are equal) and false of probabilities in general. With m the lead of the named
    class over the runner-up, |f_k - f_j|^2 >= (m_k + m_j)^2 / 2 wherever the classes differ, which gives
    `margin_bound` = 1/2 sum alpha_k alpha_j E[(m_k + m_j)^2 / 2; classes differ] <= A.
    """
    label, lead = P.argmax(axis=2), _lead(P)
    differ = label[:, :, None] != label[:, None, :]
    squared_leads = (lead[:, :, None] + lead[:, None, :]) ** 2 / 2
    return DiversityBound(
        ambiguity=float(disagreement(P, alpha).mean()),
        paper_bound=float(alpha @ differ.mean(axis=0) @ alpha),
        margin_bound=float(alpha @ (differ * squared_leads).mean(axis=0) @ alpha / 2),
    )


def _lead(P: np.ndarray) -> np.ndarray:
    """Largest minus second largest probability of each specialist at each row; (n, K)."""
    top = np.partition(P, -2, axis=2)[:, :, -2:]
    return top[:, :, 1] - top[:, :, 0]
