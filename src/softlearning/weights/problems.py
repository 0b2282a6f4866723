"""What is solved: checked rows, and the matrix that a loss makes of them.

Order never matters: columns are sorted by their content and equal ones are merged before anything is solved.
So permuting the specialists permutes the weights bit for bit, and duplicates share equally.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from softlearning.weights.solvers import Floats, Indices, triangle

if TYPE_CHECKING:
    from softlearning.weights.losses import Loss

FLOOR = 1e-15  # smaller predicted probabilities count as this: the log loss stays finite, and convex
BLOCK = 8192  # rows of the error matrix held at a time


@dataclass(frozen=True)
class Rows:
    """Checked input. share (n,) is each row's part of the total weight: sum 1, and 0 means absent."""

    predictions: Floats
    target: Floats
    share: Floats
    sample_weight: Floats | None
    prior: Floats | None = None  # (K,) share of each specialist before any row is seen, in any unit

    @property
    def live(self) -> Indices:
        return np.flatnonzero(self.share)


@dataclass(frozen=True)
class Problem:
    """Minimise mass @ loss(y, matrix @ alpha) * unit^degree over the simplex.

    matrix : (m, G), one column for each *different* specialist, in an order that depends on content alone.
    y : (m,) what the blend is compared with (zeros where the matrix holds errors).
    mass : (m,) weight of each row of the matrix (ones for the squared loss, where it is already inside).
    group : (K,) the column of each specialist; count : (G,) how many specialists share a column.
    keep : (G,) one specialist of each column.
    """

    rows: Rows
    loss: Loss
    matrix: Floats
    y: Floats
    mass: Floats
    unit: float
    degree: int
    group: Indices
    count: Floats
    keep: Indices

    def columns(self, used: Any) -> Problem:
        """The problem with some columns, for values and derivatives."""
        return replace(self, matrix=self.matrix[:, used])

    def spread(self, alpha: Floats) -> Floats:
        """Weights of the columns (G,) as weights of the specialists (K,): duplicates share equally."""
        return (alpha / self.count)[self.group]

    def gathered(self, weights: Floats) -> Floats:
        """Weights of the specialists (K,) as weights of the columns (G,)."""
        return np.bincount(self.group, weights, minlength=len(self.count)).astype(float)

    def in_units(self, value: float) -> float:
        """A value of the problem as one of the loss; unit^2 may underflow or overflow where value * unit does not."""
        for _ in range(self.degree):
            value *= self.unit
        return value

    @cached_property
    def optimum(self) -> tuple[Floats, Floats | None]:
        """An optimum (G,), and the slope (m,) that proves it where the derivative does not; solved once."""
        return self.loss.minimise(self)


def build_squared(rows: Rows, loss: Loss) -> Problem:
    """Errors in units of the best column's norm, reduced to at most K rows by QR, block by block."""
    live, K = rows.live, rows.predictions.shape[1]
    keep, group, count, norms = canonical(lambda k: error_block(rows, live, np.array([k]), 1.0)[:, 0], K)
    unit = max(float(min(norms[norms > 0], default=1.0)), float(norms.max()) * 1e-290)  # nothing overflows
    matrix = stream(partial(error_block, rows, keep=keep, unit=unit), rows)
    zeros, ones = np.zeros(len(matrix)), np.ones(len(matrix))
    return Problem(rows, loss, matrix, zeros, ones, unit, 2, group, count, keep)


def build_errors(rows: Rows, loss: Loss, scaled: bool = True) -> Problem:
    """Predictions minus target, a row for each (row, class); in units of the best column's mean size, if scaled."""
    live, K = rows.live, rows.predictions.shape[1]
    mass = np.repeat(rows.share[live], rows.target.shape[1])

    def error(k: int) -> Floats:
        return (rows.predictions[live, k] - rows.target[live]).ravel()

    keep, group, count, norms = canonical(lambda k: np.sqrt(mass) * error(k), K)
    unit = float(min(norms[norms > 0], default=1.0)) if scaled else 1.0
    matrix = np.stack([error(k) / unit for k in keep]).T
    return Problem(rows, loss, matrix, np.zeros(len(matrix)), mass, unit, 1, group, count, keep)


def build_positive(rows: Rows, loss: Loss) -> Problem:
    """Predictions that are at least the floor of the loss, a row for each (row, class)."""
    live, K = rows.live, rows.predictions.shape[1]
    mass = np.repeat(rows.share[live], rows.target.shape[1])

    def prediction(k: int) -> Floats:
        return np.maximum(rows.predictions[live, k], loss.floor).ravel()

    keep, group, count, _ = canonical(lambda k: np.sqrt(mass) * prediction(k), K)
    matrix = np.stack([prediction(k) for k in keep]).T
    return Problem(rows, loss, matrix, rows.target[live].ravel(), mass, 1.0, 1, group, count, keep)


def build_log(rows: Rows, loss: Loss) -> Problem:
    """Probabilities given to what happened: a row for each (row, class) of positive target."""
    i, c = np.nonzero((rows.target > 0) & (rows.share > 0)[:, None])
    mass = rows.share[i] * rows.target[i, c]
    root = np.sqrt(mass)

    def likelihood(k: int) -> Floats:
        return np.clip(rows.predictions[i, k, c], FLOOR, 1.0)

    keep, group, count, _ = canonical(lambda k: root * likelihood(k), rows.predictions.shape[1])
    matrix = np.stack([likelihood(k) for k in keep]).T
    return Problem(rows, loss, matrix, np.ones(len(mass)), mass, 1.0, 1, group, count, keep)


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
    prior: ArrayLike | None = None,
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
    return Rows(
        predictions=P,
        target=Y,
        share=shares(weight, n),
        sample_weight=weight,
        prior=None if prior is None else _vector(prior, P.shape[1], "prior"),
    )


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
