"""Standard errors of means over rows that may come in groups, and intervals of shares."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t


def mean_and_error(
    values: NDArray, weight: NDArray | None = None, groups: NDArray | None = None
) -> tuple[float, float]:
    """Weighted mean of values (n,) and its standard error; rows of a group may depend on each other (sandwich).

    The error is NaN for a single row or group: nothing shows how far the mean may move.
    """
    values = np.asarray(values, dtype=np.float64)
    share = np.full(len(values), 1 / len(values)) if weight is None else np.asarray(weight) / np.sum(weight)
    mean = float(share @ values)
    parts = share * (values - mean)
    if groups is not None:
        parts = np.bincount(np.unique(groups, return_inverse=True)[1], weights=parts)
    m = len(parts)
    return mean, float(np.sqrt(m / (m - 1) * (parts @ parts))) if m > 1 else float("nan")


def drawn_again(rows: int, weight: NDArray | None, groups: NDArray | None, draws: int) -> Iterator[NDArray]:
    """Weights (n,) of rows, or of whole groups, drawn again with replacement, so many times: for bootstraps."""
    unit = np.arange(rows) if groups is None else np.unique(groups, return_inverse=True)[1]
    units, random = unit.max() + 1, np.random.default_rng(0)
    for _ in range(draws):
        times = random.multinomial(units, np.full(units, 1 / units))[unit]
        yield times if weight is None else weight * times


def reach(rows: int, groups: NDArray | None = None, level: float = 0.95) -> float:
    """How many standard errors an interval of a mean reaches to either side: Student's, wide where units are few.

    Units are the rows, or the groups where there are some; infinite for a single one.
    """
    units = rows if groups is None else len(np.unique(groups))
    return float(t.ppf((1 + level) / 2, units - 1)) if units > 1 else float("inf")


def difference_and_error(values: NDArray, inside: NDArray, groups: NDArray | None = None) -> tuple[float, float, int]:
    """Mean of values (n,) where `inside` (n,) is true minus the mean elsewhere, its standard error, and its units.

    Units are the rows, or groups, of the smaller side; with fewer than two of them the error is NaN.
    """
    values, inside = np.asarray(values, dtype=np.float64), np.asarray(inside, dtype=bool)
    member = np.arange(len(values)) if groups is None else np.unique(groups, return_inverse=True)[1]
    parts, means = np.zeros(len(values)), []
    for side, sign in ((inside, 1.0), (~inside, -1.0)):
        means.append(float(values[side].sum() / max(side.sum(), 1)))
        parts[side] = sign * (values[side] - means[-1]) / max(side.sum(), 1)
    units = min(len(np.unique(member[side])) for side in (inside, ~inside))
    by_unit = np.bincount(member, weights=parts)
    error = np.sqrt(units / (units - 1) * (by_unit @ by_unit)) if units > 1 else float("nan")
    return means[0] - means[1], float(error), units


def wilson_interval(share: float, error: float, units: float, reach: float = 1.959964) -> tuple[float, float]:
    """Wilson's interval of a share, for as many rows as would have this standard error; 95 % unless `reach` differs.

    Sensible at 0, at 1 and for few rows: without an error (all rows alike, or a single one) `units` rows or groups
    count.
    """
    n = share * (1 - share) / error**2 if error > 1e-9 else units  # below, it is rounding
    centre = (share + reach**2 / (2 * n)) / (1 + reach**2 / n)
    half = reach / (1 + reach**2 / n) * np.sqrt(max(share * (1 - share), 0.0) / n + reach**2 / (4 * n**2))
    return float(max(centre - half, 0.0)), float(min(centre + half, 1.0))
