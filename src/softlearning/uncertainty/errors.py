"""Standard errors of means over rows that may come in groups, and intervals of shares."""

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


def wilson_interval(share: float, error: float, units: float, reach: float = 1.959964) -> tuple[float, float]:
    """Wilson's interval of a share, for as many rows as would have this standard error; 95 % unless `reach` differs.

    Sensible at 0, at 1 and for few rows: without an error (all rows alike) `units` rows or groups count.
    """
    n = share * (1 - share) / error**2 if error > 1e-9 else units  # below, it is rounding
    centre = (share + reach**2 / (2 * n)) / (1 + reach**2 / n)
    half = reach / (1 + reach**2 / n) * np.sqrt(max(share * (1 - share), 0.0) / n + reach**2 / (4 * n**2))
    return float(max(centre - half, 0.0)), float(min(centre + half, 1.0))
