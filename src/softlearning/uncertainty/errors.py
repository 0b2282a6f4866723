"""Standard errors of means over rows that may come in groups, and intervals of shares."""

from __future__ import annotations

import numpy as np

from softlearning.weights.evidence import mean_and_error

__all__ = ["mean_and_error", "wilson_interval"]


def wilson_interval(share: float, error: float, units: float, reach: float = 1.959964) -> tuple[float, float]:
    """Wilson's interval of a share, for as many rows as would have this standard error; 95 % unless `reach` differs.

    Sensible at 0, at 1 and for few rows: without an error (all rows alike) `units` rows or groups count.
    """
    n = share * (1 - share) / error**2 if error > 1e-9 else units  # below, it is rounding
    centre = (share + reach**2 / (2 * n)) / (1 + reach**2 / n)
    half = reach / (1 + reach**2 / n) * np.sqrt(max(share * (1 - share), 0.0) / n + reach**2 / (4 * n**2))
    return float(max(centre - half, 0.0)), float(min(centre + half, 1.0))
