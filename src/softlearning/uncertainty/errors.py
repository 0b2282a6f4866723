"""Standard errors of means over rows that may come in groups."""

from __future__ import annotations

import numpy as np


def mean_and_error(values: np.ndarray, weight: np.ndarray | None = None, groups: np.ndarray | None = None):
    """Weighted mean of values (n,) and its standard error; rows of a group count as one."""
    share = np.full(len(values), 1 / len(values)) if weight is None else weight / weight.sum()
    mean = float(share @ values)
    parts = share * (values - mean)
    if groups is not None:
        _, member = np.unique(groups, return_inverse=True)
        parts = np.bincount(member, weights=parts)
    m = max(len(parts), 2)
    return mean, float(np.sqrt(m / (m - 1) * (parts**2).sum()))
