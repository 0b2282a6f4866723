"""Many methods on many datasets: ranks, tests, wins and first places.

Everything reads one array `scores` of shape (N, k): N datasets, k methods, larger is better.
References: Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7 (2006); Holm, Scand. J.
Statist. 6 (1979). Tolerances are stated by the caller; EPSILON only absorbs the rounding of decimal fractions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Array = NDArray[np.float64]
EPSILON = 1e-9


@dataclass(frozen=True)
class Friedman:
    """Omnibus test that all k methods have the same mean rank; `ties_corrected` is the statistic to report."""

    mean_ranks: Array
    chi2: float
    ties_corrected: float
    degrees: int
    p: float


@dataclass(frozen=True)
class Wilcoxon:
    """Signed-rank test of one method against another: is the first larger, smaller, or just different."""

    statistic: float
    used: int
    p_greater: float
    p_less: float
    p_two_sided: float


@dataclass(frozen=True)
class Record:
    """Wins, ties and losses of one method against another."""

    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class Places:
    """Of N datasets: alone first, first or level with the first, and among the best two (levels included)."""

    datasets: int
    alone_first: int
    first: int
    top_two: int
    mean_rank: float


def ranks(scores: ArrayLike) -> Array:
    """Rank 1 is the best method of a dataset; equal scores share the average of their ranks. (N, k)"""
    scores = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(scores).all():
        raise ValueError("ranks need a score for every method on every dataset; drop the incomplete ones first")
    return np.asarray(stats.rankdata(-scores, axis=1))


def friedman(scores: ArrayLike) -> Friedman:
    """Friedman's chi2 on k - 1 degrees, plain as in Demsar and divided by the share of rank variance left by ties."""
    R = ranks(scores)
    N, k = R.shape
    mean_ranks = R.mean(axis=0)
    chi2 = 12 * N / (k * (k + 1)) * float(((mean_ranks - (k + 1) / 2) ** 2).sum())
    variance_left = float(R.var(axis=1).mean()) / ((k**2 - 1) / 12)
    corrected = chi2 / variance_left if variance_left > 0 else 0.0
    return Friedman(mean_ranks, chi2, corrected, k - 1, float(stats.chi2.sf(corrected, k - 1)))


def nemenyi_distance(k: int, N: int, alpha: float = 0.05) -> float:
    """Mean ranks further apart than q_alpha sqrt(k (k + 1) / (6 N)) differ at level alpha."""
    q = stats.studentized_range.ppf(1 - alpha, k, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(k * (k + 1) / (6 * N)))


def wilcoxon(a: ArrayLike, b: ArrayLike) -> Wilcoxon:
    """Signed ranks of a - b over the datasets where they differ (equal scores are skipped and counted)."""
    difference = _snapped(a, b)
    difference = difference[difference != 0]
    if difference.size == 0:
        return Wilcoxon(0.0, 0, 1.0, 1.0, 1.0)
    sides = [stats.wilcoxon(difference, alternative=side) for side in ("greater", "less", "two-sided")]
    p_greater, p_less, p_two = (float(side.pvalue) for side in sides)
    return Wilcoxon(float(sides[0].statistic), int(difference.size), p_greater, p_less, p_two)


def holm(p: ArrayLike) -> Array:
    """Holm's step-down: the i-th smallest of m p-values times m - i + 1, made non-decreasing, at most 1."""
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def win_tie_loss(a: ArrayLike, b: ArrayLike, tolerance: float = 0.0) -> Record:
    """A win is a score more than `tolerance` higher; within the tolerance it is a tie."""
    difference = _snapped(a, b)
    wins = int((difference > tolerance + EPSILON).sum())
    losses = int((difference < -tolerance - EPSILON).sum())
    return Record(wins, difference.size - wins - losses, losses)


def win_matrix(scores: ArrayLike, tolerance: float = 0.0) -> NDArray[np.int64]:
    """Entry (i, j): on how many datasets method i beats method j by more than the tolerance. (k, k)"""
    columns = np.asarray(scores, dtype=np.float64).T
    return np.array([[win_tie_loss(a, b, tolerance).wins for b in columns] for a in columns])


def places(scores: ArrayLike, tolerance: float = 0.0) -> list[Places]:
    """For each method: first places alone (ahead of all by more than the tolerance), shared, and top two."""
    scores = np.asarray(scores, dtype=np.float64)
    mean_ranks = ranks(scores).mean(axis=0)
    return [_places_of(scores, j, tolerance, mean_ranks[j]) for j in range(scores.shape[1])]


def _places_of(scores: Array, j: int, tolerance: float, mean_rank: float) -> Places:
    own, others = scores[:, j], np.delete(scores, j, axis=1)
    better = (others > own[:, None] + tolerance + EPSILON).sum(axis=1)
    ahead = own > others.max(axis=1) + tolerance + EPSILON
    return Places(own.size, int(ahead.sum()), int((better == 0).sum()), int((better <= 1).sum()), float(mean_rank))


def breakdown(
    scores: ArrayLike, groups: Mapping[str, Sequence[str]], tolerance: float = 0.0
) -> dict[str, dict[str, list[Places]]]:
    """Places within each part of each grouping, e.g. {"task": ["classification", ...]} with a label a dataset."""
    scores = np.asarray(scores, dtype=np.float64)
    parts = {}
    for grouping, labels in groups.items():
        label = np.asarray(labels)
        parts[grouping] = {str(part): places(scores[label == part], tolerance) for part in dict.fromkeys(labels)}
    return parts


def _snapped(a: ArrayLike, b: ArrayLike) -> Array:
    """a - b with differences below EPSILON taken as 0: .947 - .946 and .954 - .953 are the same step."""
    return np.round(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64), 9)
