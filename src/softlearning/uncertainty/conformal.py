"""Intervals and sets with a stated coverage, from out-of-fold predictions that are already there: no extra fit.

Regression. A row's score is |y - f(x)| / s(x); the interval of a new row is f(x) -+ q s(x), q the conformal
quantile of the scores. The scale s(x) grows with the disagreement V(x) as far as the data say that it should.
Classification. A class enters the set when its score, 1 - p, is at most the conformal quantile of the scores of the
true classes; the likeliest class is always in, so no set is empty.

What is guaranteed, with n rows and wanted coverage 1 - a, rows exchangeable:

- Scores of rows that played no part in fitting f: at least 1 - a, and below 1 - a + 1 / (n + 1) when no two
  scores are equal (split conformal, exact for every n).
- Out-of-fold scores with the refitted blend (`calibrate_interval`, `calibrate_set`; the default of the
  estimators): no finite-sample theorem without a stability condition. The refitted blend has seen more
  rows than the models behind the scores, which makes intervals slightly too wide, and the weights were
  solved on the same rows, which makes them slightly too narrow; `leave_fold_out_blend` removes the second
  effect. tests/claims/test_coverage.py measures what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softlearning.uncertainty.disagreement import blend, disagreement

FLOORS = np.append(np.geomspace(0.01, 0.8, 12), 1.0)  # shares of the scale that do not depend on the row


def conformal_quantile(
    scores: np.ndarray,
    coverage: float,
    *,
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> float:
    """Smallest score q such that scores <= q hold `coverage` of the weight, a new row's own weight counted above.

    Plain rows: the ceil((n + 1) coverage)-th smallest score, infinite when that exceeds n.
    `sample_weight`: rows count by weight and the new row by the mean weight. `groups`: each group counts
    once, so that the guarantee is for a row of a new group; rows within a group may depend on each other.
    """
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage is a share, above 0 and at most 1; got {coverage!r}")
    scores = np.asarray(scores, dtype=float)
    weight = np.ones(len(scores)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    new_row = weight.mean() if len(weight) else 1.0
    if groups is not None:
        weight, new_row = _each_group_once(weight, groups), 1.0
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum(weight[order])
    needed = coverage * (weight.sum() + new_row)
    position = int(np.searchsorted(reached, needed * (1 - 1e-12)))
    return float(scores[order][position]) if position < len(scores) else math.inf


def _each_group_once(weight: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Row weights that sum to one within every group."""
    _, member = np.unique(groups, return_inverse=True)
    return weight / np.bincount(member, weights=weight)[member]


def leave_fold_out_blend(
    P: np.ndarray,
    folds: np.ndarray,
    solve: Callable[[np.ndarray], np.ndarray],
    effective: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Blend and disagreement of each row under weights that its own fold did not help to choose: (n, C), (n,).

    P (n, K, C) out-of-fold predictions, folds (n,) ints; `solve(rows)` returns the weights (K,) learnt from the rows
    where the boolean mask `rows` (n,) is true, and `effective` turns them into those whose disagreement counts. One
    small convex problem per fold; nothing is refitted.
    """
    f, V = np.empty((len(P), P.shape[2])), np.empty(len(P))
    for fold in np.unique(folds):
        held_out = folds == fold
        alpha = solve(~held_out)
        f[held_out] = blend(P[held_out], alpha)
        V[held_out] = disagreement(P[held_out], effective(alpha), around=f[held_out])
    return f, V


@dataclass(frozen=True)
class ResidualScale:
    """s(x) = sqrt(floor + (1 - floor) V(x) / unit): floor 1 means that V says nothing about the size of errors."""

    floor: float
    unit: float

    def __call__(self, V: np.ndarray) -> np.ndarray:
        if self.floor == 1.0:
            return np.ones(len(V))
        return np.sqrt(self.floor + (1 - self.floor) * V / self.unit)


def fit_scale(residual: np.ndarray, V: np.ndarray) -> ResidualScale:
    """The share of constant width under which residuals (n,) are likeliest, given disagreements V (n,).

    Laplace likelihood with scale proportional to s(x): minimise mean log s + log mean(|residual| / s) over 13
    shares. One number from n rows, found without looking at the quantile that the scores will be cut at.
    """
    residual, V = np.abs(np.asarray(residual, dtype=float)), np.asarray(V, dtype=float)
    unit = float(V.mean()) if len(V) else 0.0
    if unit <= 0 or not np.any(residual > 0):
        return ResidualScale(1.0, 1.0)
    rules = [ResidualScale(float(floor), unit) for floor in FLOORS]
    cost = [np.mean(np.log(s)) + np.log(np.mean(residual / s)) for s in (rule(V) for rule in rules)]
    return rules[int(np.argmin(cost))]


def calibrate_interval(
    oof_blend: np.ndarray,
    y: np.ndarray,
    oof_scale: np.ndarray,
    coverage: float,
    *,
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> float:
    """Conformal quantile of |y - f| / s over out-of-fold rows; all arrays (n,). Infinite when n is too small."""
    scores = np.abs(np.asarray(y) - np.asarray(oof_blend)) / oof_scale
    return conformal_quantile(scores, coverage, sample_weight=sample_weight, groups=groups)


def interval(blend: np.ndarray, scale: np.ndarray, quantile: float) -> tuple[np.ndarray, np.ndarray]:
    """(f - q s, f + q s), each (n,)."""
    return blend - quantile * scale, blend + quantile * scale


def calibrate_quantiles(
    oof_quantiles: np.ndarray,
    y: np.ndarray,
    levels: np.ndarray,
    oof_scale: np.ndarray | None = None,
    *,
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """(L,) what to add, in units of the scale, so that y stays below each quantile as often as its level says.

    oof_quantiles (n, L) predicted out of fold (the blend in every column will do), y and oof_scale (n,), levels (L,) in
    (0, 1). Above the median the offset is the conformal quantile of (y - prediction) / scale; below, of its negative:
    a new y exceeds a high quantile, or falls below a low one, at most as often as it should, for rows exchangeable.
    Infinite where rows are too few for the level.
    """
    levels = np.asarray(levels, dtype=float)
    if not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"quantiles are numbers above 0 and below 1; got {levels.tolist()}")
    scale = np.ones(len(y)) if oof_scale is None else np.asarray(oof_scale)
    scores = (np.asarray(y)[:, None] - oof_quantiles) / scale[:, None]
    sign = np.where(levels >= 0.5, 1.0, -1.0)
    cut = [
        conformal_quantile(s * scores[:, j], q if s > 0 else 1 - q, sample_weight=sample_weight, groups=groups)
        for j, (q, s) in enumerate(zip(levels, sign))
    ]
    return sign * np.array(cut)


def quantiles(
    predicted: np.ndarray, levels: np.ndarray, offsets: np.ndarray, scale: np.ndarray | None = None
) -> np.ndarray:
    """(n, L) predicted + offset * scale, in the order of the levels: rearranged within a row, so that none cross."""
    width = np.ones(len(predicted)) if scale is None else scale
    values = np.sort(predicted + width[:, None] * offsets, axis=1)
    return values[:, np.argsort(np.argsort(levels, kind="stable"), kind="stable")]


def calibrate_set(
    oof_probability: np.ndarray,
    label: np.ndarray,
    coverage: float,
    *,
    per_class: bool = False,
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Conformal quantile of the true classes' scores, (C,); oof_probability (n, C), label (n,) ints in 0..C-1.

    One quantile for all classes guarantees coverage over all rows, and may buy it with the frequent classes
    alone; `per_class` takes a quantile of each class and guarantees coverage within each, with larger sets.
    """
    scores = 1.0 - oof_probability[np.arange(len(label)), label]
    if not per_class:
        quantile = conformal_quantile(scores, coverage, sample_weight=sample_weight, groups=groups)
        return np.full(oof_probability.shape[1], quantile)
    of_class = [np.flatnonzero(label == c) for c in range(oof_probability.shape[1])]
    pick = lambda values, rows: None if values is None else np.asarray(values)[rows]
    return np.array(
        [
            conformal_quantile(
                scores[rows], coverage, sample_weight=pick(sample_weight, rows), groups=pick(groups, rows)
            )
            for rows in of_class
        ]
    )


def predict_set(probability: np.ndarray, quantile: np.ndarray) -> np.ndarray:
    """Which classes are in each row's set: boolean (n, C); quantile (C,) from `calibrate_set`. The
    likeliest is always in.
    """
    inside = 1.0 - probability <= quantile
    inside[np.arange(len(probability)), probability.argmax(axis=1)] = True
    return inside
