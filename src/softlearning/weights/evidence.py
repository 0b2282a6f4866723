"""What held-out rows say: parts of the rows learnt from without each other, and means with their standard errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softlearning.weights.problems import Rows
from softlearning.weights.solvers import Indices

SPLITS = 5  # parts of the rows where no folds are known


def mean_and_error(
    values: NDArray, weight: NDArray | None = None, groups: NDArray | None = None
) -> tuple[float, float]:
    """Weighted mean of values (n,) and its standard error; rows of a group may depend on each other (sandwich).

    The error is zero for a single row or group: nothing shows how far the mean may move.
    """
    values = np.asarray(values, dtype=np.float64)
    share = np.full(len(values), 1 / len(values)) if weight is None else np.asarray(weight) / np.sum(weight)
    mean = float(share @ values)
    parts = share * (values - mean)
    if groups is not None:
        parts = np.bincount(np.unique(groups, return_inverse=True)[1], weights=parts)
    m = max(len(parts), 2)
    return mean, float(np.sqrt(m / (m - 1) * (parts @ parts)))


def parts_of(rows: Rows) -> list[Indices]:
    """All rows, fold by fold; parts of the groups, or of the rows, where fewer than two folds have rows of weight.

    No part has all the weight, except where a single row has it.
    """
    live = rows.live
    if rows.folds is not None and len(np.unique(rows.folds[live])) >= 2:
        code = np.unique(rows.folds, return_inverse=True)[1]
    else:
        code = np.zeros(len(rows.share), dtype=np.intp)
        units = np.arange(len(live)) if rows.groups is None else np.unique(rows.groups[live], return_inverse=True)[1]
        code[live] = (units if units.max() else np.arange(len(live))) % SPLITS
    return [np.flatnonzero(code == c) for c in range(code.max() + 1)]
