"""What rows say: means with their standard errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
