"""Features made of two columns: sums, differences, products and ratios of numbers, crosses of categories.

Which ones is decided on the training rows: a pair is made where it tells more of the target than either of its parents.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

STRONGEST = 12  # numeric columns that are paired
MOST_PAIRS = 60  # features made of them
STRONGEST_CATEGORIES = 6  # category columns that are crossed
MOST_CROSSES = 6
SCORED_ROWS = 4_000  # rows that choose
BINS = 16  # quantile bins of a number when its relevance is judged
NOISE = 10.0  # over the rows: a share of the variance that the best of many random features may explain

OPERATIONS: dict[str, Any] = {
    "-": np.subtract,
    "+": np.add,
    "*": np.multiply,
    "/": lambda a, b: np.divide(a, b, out=a * 0.0, where=b != 0),
}

Pair = tuple[str, int, int]  # operation, positions of the two columns


def arithmetic(matrix: np.ndarray, pairs: Sequence[Pair], most: float) -> np.ndarray:
    """(n, pairs) float32, cut at +-most; NaN where either column is missing, 0 for a division by 0."""
    out = np.empty((len(matrix), len(pairs)), dtype=np.float32)
    with np.errstate(over="ignore"):
        for k, (operation, a, b) in enumerate(pairs):
            made = OPERATIONS[operation](matrix[:, a].astype(np.float64), matrix[:, b].astype(np.float64))
            out[:, k] = np.clip(made, -most, most)
    return out


def choose_pairs(matrix: np.ndarray, columns: Sequence[int], target: np.ndarray, weight: np.ndarray) -> list[Pair]:
    """The pairs of the most relevant columns that tell more than their parents, the best first.

    A pair counts by the larger of two shares: what it explains of the target beyond the better of its columns, and what
    it explains of the rest that a sum of functions of single columns leaves.
    """
    rows = slice(None, None, max(1, len(matrix) // SCORED_ROWS))
    sample, target, weight = matrix[rows].astype(np.float64), target[rows], weight[rows]
    bins = {j: quantile_bins(sample[:, j]) for j in columns}
    single = {j: explained(bins[j], target, weight) for j in columns}
    strongest = sorted(sorted(single, key=lambda j: (-single[j], j))[:STRONGEST])
    rest = additive_rest([bins[j] for j in strongest], target, weight)
    scored = []
    for a, b in combinations(strongest, 2):
        for pair in [*((operation, a, b) for operation in OPERATIONS), ("/", b, a)]:
            made = quantile_bins(arithmetic(sample, [pair], most=1e30)[:, 0])
            gain = explained(made, target, weight) - max(single[a], single[b], 0.0)
            scored.append((-max(gain, explained(made, rest, weight)), pair))
    return [pair for score, pair in sorted(scored)[:MOST_PAIRS] if -score > NOISE / len(sample)]


def additive_rest(groups: Sequence[np.ndarray], target: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """What a sum of functions of single columns leaves of the target: two passes of backfitting on bins."""
    rest = target - weight @ target / (weight.sum() or 1.0)
    for group in [*groups, *groups]:
        rows = np.bincount(group, weights=weight)[:, None] + 1.0  # as if one row more had no effect
        rest = rest - (np.column_stack([np.bincount(group, weights=weight * t) for t in rest.T]) / rows)[group]
    return rest


def choose_crosses(levels: Sequence[np.ndarray], target: np.ndarray, weight: np.ndarray) -> list[tuple[int, int]]:
    """Which two of the categories explain more of the target together than either does."""
    rows = slice(None, None, max(1, len(target) // SCORED_ROWS))
    target, weight = target[rows], weight[rows]
    single = [explained(level[rows], target, weight) for level in levels]
    strongest = sorted(np.argsort([-s for s in single], kind="stable")[:STRONGEST_CATEGORIES].tolist())
    scored = []
    for a, b in combinations(strongest, 2):
        both = levels[a][rows] * (levels[b].max() + 1) + levels[b][rows]
        gain = explained(np.unique(both, return_inverse=True)[1], target, weight) - max(single[a], single[b], 0.0)
        scored.append((-gain, (a, b)))
    return [pair for score, pair in sorted(scored)[:MOST_CROSSES] if -score > NOISE / len(target)]


def quantile_bins(values: np.ndarray) -> np.ndarray:
    """Bin of each value, BINS of about equal size; equal values share one, and so do the missing."""
    missing = np.isnan(values)
    if missing.all():
        return np.zeros(len(values), dtype=np.intp)
    edges = np.unique(np.nanquantile(values, np.arange(1, BINS) / BINS))
    return np.where(missing, len(edges) + 1, np.searchsorted(edges, values, side="left"))


def explained(group: np.ndarray, target: Any, weight: np.ndarray) -> float:
    """Share of the target's variance between groups, less what as many random groups would explain."""
    levels, n = int(group.max()) + 1, weight.sum() or 1.0
    rows = np.bincount(group, weights=weight, minlength=levels)
    used = rows > 0
    centred = target - weight @ target / n
    total = float((weight[:, None] * centred**2).sum())
    sums = np.column_stack([np.bincount(group, weights=weight * t, minlength=levels)[used] for t in centred.T])
    between = float((sums**2 / rows[used, None]).sum())
    count = len(weight)
    if total <= 0 or count <= used.sum():
        return 0.0
    return 1.0 - (1.0 - between / total) * (count - 1) / (count - used.sum())
