"""What is solved: checked rows, and the matrix that a loss makes of them.

Order never matters: columns are sorted by their content and equal ones are merged before anything is solved.
So permuting the specialists permutes the weights bit for bit, and duplicates share equally.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softlearning.weights.solvers import Floats, Indices, triangle

FLOOR = 1e-15  # smaller predicted probabilities count as this: the log loss stays finite, and convex
BLOCK = 8192  # rows of the error matrix held at a time


@dataclass(frozen=True)
class Rows:
    """Checked input. share (n,) is each row's part of the total weight: sum 1, and 0 means absent."""

    predictions: Floats
    target: Floats
    share: Floats
    sample_weight: Floats | None
    folds: NDArray[Any] | None

    @property
    def live(self) -> Indices:
        return np.flatnonzero(self.share)

    def without(self, held: NDArray[np.bool_]) -> Rows:
        share = np.where(held, 0.0, self.share)
        if not share.any():
            raise ValueError("no row of positive weight remains when a fold is held out; use at least two folds")
        return replace(self, share=share / share.sum())


@dataclass(frozen=True)
class Problem:
    """Minimise risk(matrix @ alpha) * unit^2 over the simplex.

    matrix : (m, G), one column for each *different* specialist, in an order that depends on content alone.
    mass : (m,) weight of each row of the matrix (ones for the squared loss, where it is already inside).
    group : (K,) the column of each specialist; count : (G,) how many specialists share a column.
    keep : (G,) one specialist of each column.
    """

    rows: Rows
    loss: str
    matrix: Floats
    mass: Floats
    unit: float
    group: Indices
    count: Floats
    keep: Indices

    def spread(self, alpha: Floats) -> Floats:
        """Weights of the columns (G,) as weights of the specialists (K,): duplicates share equally."""
        return (alpha / self.count)[self.group]


def build_squared(rows: Rows) -> Problem:
    """Errors in units of the best column's norm, reduced to at most K rows by QR, block by block."""
    live, K = rows.live, rows.predictions.shape[1]
    keep, group, count, norms = canonical(lambda k: error_block(rows, live, np.array([k]), 1.0)[:, 0], K)
    unit = max(float(min(norms[norms > 0], default=1.0)), float(norms.max()) * 1e-290)  # nothing overflows
    matrix = stream(partial(error_block, rows, keep=keep, unit=unit), rows)
    return Problem(rows, "squared", matrix, np.ones(len(matrix)), unit, group, count, keep)


def build_log(rows: Rows) -> Problem:
    """Probabilities given to what happened: a row for each (row, class) of positive target."""
    i, c = np.nonzero((rows.target > 0) & (rows.share > 0)[:, None])
    mass = rows.share[i] * rows.target[i, c]
    root = np.sqrt(mass)

    def likelihood(k: int) -> Floats:
        return np.clip(rows.predictions[i, k, c], FLOOR, 1.0)

    keep, group, count, _ = canonical(lambda k: root * likelihood(k), rows.predictions.shape[1])
    matrix = np.stack([likelihood(k) for k in keep]).T
    return Problem(rows, "log", matrix, mass, 1.0, group, count, keep)


def canonical(column: Callable[[int], Floats], K: int) -> tuple[Indices, Indices, Floats, Floats]:
    """Sort K columns by content and merge equal ones: keep (G,), group (K,), count (G,), norms kept (G,)."""
    norms = np.array([_norm(column(k)) for k in range(K)])
    values, times = np.unique(norms, return_counts=True)
    repeated = set(values[times > 1].tolist())

    def key(k: int) -> tuple[float, bytes]:  # content is read in full only where norms are equal
        return norms[k], blake2b((column(k) + 0.0).tobytes()).digest() if norms[k] in repeated else b""

    keys = [key(k) for k in range(K)]
    order = np.array(sorted(range(K), key=keys.__getitem__), dtype=np.intp)
    new = np.array([i == 0 or keys[order[i]] != keys[order[i - 1]] for i in range(K)])
    group = np.empty(K, dtype=np.intp)
    group[order] = np.cumsum(new) - 1
    keep = order[new]
    return keep, group, np.bincount(group).astype(float), norms[keep]


def _norm(vector: Floats) -> float:
    largest = float(np.abs(vector).max())
    if largest == 0:
        return 0.0
    vector = vector / largest
    return largest * float(np.sqrt(vector @ vector))


def error_block(rows: Rows, index: Indices, keep: Indices, unit: float) -> Floats:
    """(len(index) * C, len(keep)) weighted errors of some rows and specialists, divided by unit."""
    block = rows.target[index][:, :, None] - rows.predictions[np.ix_(index, keep)].transpose(0, 2, 1)
    block *= np.sqrt(rows.share[index])[:, None, None]
    return np.ascontiguousarray(block.reshape(-1, len(keep))) / unit


def regression_block(rows: Rows, index: Indices, keep: Indices, unit: float) -> Floats:
    """Like `error_block`, but predictions, and the target as last column."""
    both = [rows.predictions[np.ix_(index, keep)].transpose(0, 2, 1), rows.target[index][:, :, None]]
    block = np.concatenate(both, axis=2) * np.sqrt(rows.share[index])[:, None, None]
    return block.reshape(-1, block.shape[2]) / unit


def stream(block: Callable[..., Floats], rows: Rows) -> Floats:
    """Triangular factor of all blocks of rows: same column products, at most K rows, one block in memory."""
    factor: Floats | None = None
    live, size = rows.live, max(1, BLOCK // rows.target.shape[1])
    for start in range(0, len(live), size):
        part = block(index=live[start : start + size])
        factor = triangle(part if factor is None else np.vstack([factor, part]))
    assert factor is not None
    return factor


def check_rows(
    predictions: ArrayLike,
    target: ArrayLike,
    sample_weight: ArrayLike | None = None,
    folds: ArrayLike | None = None,
) -> Rows:
    """Arrays of the right shape and range, or a ValueError that names the cause."""
    P = np.asarray(predictions, dtype=np.float64)
    Y = np.asarray(target, dtype=np.float64)
    if P.ndim != 3 or 0 in P.shape:
        raise ValueError(f"predictions must be a non-empty array (rows, specialists, classes), got {P.shape}")
    n, _, C = P.shape
    if Y.shape != (n, C):
        raise ValueError(f"target must have shape {(n, C)} to match predictions, got {Y.shape}")
    for name, values in (("predictions", P), ("target", Y)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} contains NaN or infinity")
    if max(P.max(), Y.max()) > 1e300 or min(P.min(), Y.min()) < -1e300:
        raise ValueError("predictions and target must stay within 1e300 in absolute value")
    weight = None if sample_weight is None else _vector(sample_weight, n, "sample_weight")
    fold_of_row = None if folds is None else np.asarray(folds)
    if fold_of_row is not None and fold_of_row.shape != (n,):
        raise ValueError(f"folds must have shape ({n},), got {fold_of_row.shape}")
    return Rows(P, Y, shares(weight, n), weight, fold_of_row)


def _vector(values: ArrayLike, n: int, name: str) -> Floats:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {vector.shape}")
    if not np.isfinite(vector).all() or vector.min() < 0:
        raise ValueError(f"{name} must be finite and non-negative")
    if not vector.any():
        raise ValueError(f"{name} is zero in every row; at least one row must count")
    return vector


def shares(weight: Floats | None, n: int) -> Floats:
    """(n,) each row's part of the total weight."""
    if weight is None:
        return np.full(n, 1 / n)
    weight = weight / weight.max()
    return weight / weight.sum()
