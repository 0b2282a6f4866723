"""What the paper defines and the product does not need: measured here, to test what the paper says of it."""

from dataclasses import dataclass

import numpy as np

from softlearning.uncertainty.disagreement import (
    blend,
    detector_auc,
    disagreement,
    entropy,
    max_probability_uncertainty,
)


def disagreement_pairwise(P: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """V(x) = 1/2 sum_{k,j} alpha_k alpha_j |f_k(x) - f_j(x)|^2, the second form of Definition S7; (n,)."""
    V = np.zeros(len(P))
    for k in range(1, P.shape[1]):  # each pair once, so the half is gone
        distance = ((P[:, k, None, :] - P[:, :k, :]) ** 2).sum(axis=2)
        V += alpha[k] * (distance @ alpha[:k])
    return V


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
