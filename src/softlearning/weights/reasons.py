"""Why this weight: reasons and intervals, from out-of-fold predictions alone. Nothing is refitted.

P (n, K, C) out-of-fold predictions, target (n, C), alpha (K,) on the simplex. For the squared loss
everything about weights is in the Gram matrix of the errors, G = sum over rows and classes of (y - f_k)(y
- f_j): the blend's risk is alpha' G alpha.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from softlearning.weights import errors, gram, solve_weights

MEMORY = 3 * 10**7  # numbers that a bootstrap may keep
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
    return gram(errors(P, target, row_weight))


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


@dataclass(frozen=True)
class WeightIntervals:
    """Bootstrap of the weights over rows: quantiles (K,), and how often each specialist got any weight."""

    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray
    share_positive: np.ndarray
    draws: np.ndarray


def bootstrap_weights(
    P: np.ndarray,
    target: np.ndarray,
    *,
    rule: str = "simplex",
    loss: str = "squared",
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    folds: np.ndarray | None = None,
    draws: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> WeightIntervals:
    """How far the weights depend on which rows were drawn; whole groups are drawn where groups are given.

    It resamples the stored predictions, so it shows the chance in choosing weights, not that in fitting specialists.
    """
    rng = np.random.default_rng(seed)
    base = np.ones(len(P)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    solve = _solver(P, target, rule, loss, folds)
    drawn = np.array([solve(base * _row_counts(rng, len(P), groups)) for _ in range(draws)])
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return WeightIntervals(low, high, drawn.mean(axis=0), (drawn > 0).mean(axis=0), drawn)


def _solver(
    P: np.ndarray, target: np.ndarray, rule: str, loss: str, folds: np.ndarray | None
) -> Callable[[np.ndarray], np.ndarray]:
    """Row weights -> specialists' weights; through Gram matrices where they say all."""
    if rule == "simplex" and loss == "squared":
        gram = _gram_by_rows(P, target)
        return lambda row_weight: weights_from_gram(gram(row_weight))
    return lambda row_weight: (
        solve_weights(P, target, rule=rule, loss=loss, sample_weight=row_weight, folds=folds).weights
    )


def _gram_by_rows(P: np.ndarray, target: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Row weights -> Gram matrix: a product with the Gram matrices of single rows, where these fit in memory."""
    n, K, _ = P.shape
    if n * K * K > MEMORY:
        return lambda row_weight: gram_matrix(P, target, row_weight)
    each = target[:, None, :] - P
    rows = (each @ each.transpose(0, 2, 1)).reshape(n, K * K)
    return lambda row_weight: (row_weight @ rows / row_weight.sum()).reshape(K, K)


def _row_counts(rng: np.random.Generator, n: int, groups: np.ndarray | None) -> np.ndarray:
    """How often each row is in one bootstrap sample; rows of a group come together."""
    if groups is None:
        return rng.multinomial(n, np.full(n, 1 / n)).astype(float)
    _, member = np.unique(groups, return_inverse=True)
    G = member.max() + 1
    return rng.multinomial(G, np.full(G, 1 / G)).astype(float)[member]
