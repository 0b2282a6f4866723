"""Quantiles of new rows: from held-out residuals of the blend, and from specialists of the levels that were asked for.

Residual route: f(x) + s(x) times the conformal quantile of held-out residuals in units of the scale s; it needs no
further fit. Specialists of a level are cross-fitted, weighted by their pinball loss, mixed with the residual route by
the same loss, and moved by what held-out rows say; between levels values rise as the residual route does, and beyond
them it goes on. Every step keeps quantiles in the order of their levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softlearning.method.record import Record
from softlearning.uncertainty.conformal import calibrate_quantiles, conformal_quantile, fit_scale, quantiles
from softlearning.weights import solve_weights

Specialists = Callable[[Record], np.ndarray]


@dataclass(frozen=True)
class QuantileFit:
    """One level: the record of its specialists, their share beside the residual route, and what is added in the end."""

    level: float
    record: Record
    share: float
    offset: float


def checked_levels(q) -> np.ndarray:
    """(L,) numbers above 0 and below 1, or an error."""
    levels = np.atleast_1d(np.asarray(q, dtype=float))
    if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"quantiles are numbers above 0 and below 1; got {q!r}")
    return levels


def residual_route(record: Record, f: np.ndarray, V: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """(n, L) quantiles around predictions f (n,) with disagreement V (n,), from the blend's held-out residuals."""
    held = record.held_out
    mean, y = held.blend[:, 0], held.target[:, 0]
    scale = fit_scale(y - mean, held.disagreement)
    repeated = np.repeat(mean[:, None], len(levels), axis=1)
    given = {"sample_weight": held.weight, "groups": held.groups}
    offsets = calibrate_quantiles(repeated, y, levels, scale(held.disagreement), **given)
    return quantiles(np.repeat(f[:, None], len(levels), axis=1), levels, offsets, scale(V))


def fit_level(main: Record, record: Record, level: float) -> QuantileFit:
    """The share of the specialists of a level by pinball loss, on rows that neither saw; and the last correction."""
    held, levels = main.held_out, np.array([level])
    route = residual_route(main, held.blend[:, 0], held.disagreement, levels)
    theirs = record.held_out.blend
    if not np.isfinite(route).all():
        return QuantileFit(level, record, 1.0, 0.0)
    both = np.stack([theirs, route], axis=1)
    weights = solve_weights(both, held.target, loss=("pinball", level), sample_weight=held.weight).weights
    mixed = both[:, :, 0] @ weights
    given = {"sample_weight": held.weight, "groups": held.groups}
    offset = float(calibrate_quantiles(mixed[:, None], held.target[:, 0], levels, **given)[0])
    return QuantileFit(level, record, float(weights[0]), offset if np.isfinite(offset) else 0.0)


def predict_levels(
    main: Record, fits: tuple[QuantileFit, ...], f: np.ndarray, V: np.ndarray, specialists: Specialists, q: np.ndarray
) -> np.ndarray:
    """(n, L) quantiles at the levels q, from the blend f (n,), its disagreement V (n,) and the specialists' values.

    specialists : record of a level -> (n,) what its specialists say of the same rows.
    """
    route = residual_route(main, f, V, q)
    if not fits:
        return route
    known = np.array([fit.level for fit in fits])
    at_known = residual_route(main, f, V, known)
    values = [
        fit.share * specialists(fit.record) + (1 - fit.share) * at_known[:, j] + fit.offset
        if fit.share < 1
        else specialists(fit.record) + fit.offset
        for j, fit in enumerate(fits)
    ]
    grid = np.sort(np.column_stack(values), axis=1)
    inside = np.column_stack([between(known, grid, at_known, level, route[:, j]) for j, level in enumerate(q)])
    low, high = q < known[0], q > known[-1]
    inside[:, low] = grid[:, :1] + route[:, low] - at_known[:, :1]
    inside[:, high] = grid[:, -1:] + route[:, high] - at_known[:, -1:]
    return inside


def between(
    levels: np.ndarray, values: np.ndarray, route: np.ndarray, level: float, at_level: np.ndarray
) -> np.ndarray:
    """(n,) values (n, L) at levels (L,), which rise; in between they rise as the residual route (n, L) does."""
    right = int(np.clip(np.searchsorted(levels, level), min(1, len(levels) - 1), len(levels) - 1))
    left = max(right - 1, 0)
    step = route[:, right] - route[:, left]
    part = np.divide(at_level - route[:, left], step, out=np.zeros_like(step), where=np.isfinite(step) & (step > 0))
    return values[:, left] + np.clip(part, 0, 1) * (values[:, right] - values[:, left])


def held_out_levels(main: Record, fits: tuple[QuantileFit, ...], q: np.ndarray) -> np.ndarray:
    """(n, L) the same for the held-out rows."""
    held = main.held_out
    theirs = lambda record: record.held_out.blend[:, 0]
    return predict_levels(main, fits, held.blend[:, 0], held.disagreement, theirs, q)


def widening(main: Record, fits: tuple[QuantileFit, ...], coverage: float) -> tuple[float, float]:
    """How far to widen the interval between two quantiles to keep the coverage, and its mean width on held-out rows."""
    held, q = main.held_out, np.array([(1 - coverage) / 2, (1 + coverage) / 2])
    low, high = held_out_levels(main, fits, q).T
    y = held.target[:, 0]
    beyond = np.maximum(low - y, y - high)
    more = conformal_quantile(beyond, coverage, sample_weight=held.weight, groups=held.groups)
    return more, float(np.average(np.maximum(high - low + 2 * more, 0), weights=held.weight))
