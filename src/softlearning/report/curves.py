"""The curves of a report, from out-of-fold predictions: arrays in, plain data out.

p (n, C) the honest blend (each row under weights learnt without its fold), Y (n, C) the target, V (n,) disagreement,
fold (n,) ints, weight (n,) or None. Every function returns what json can hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from softlearning.uncertainty.conformal import calibrate_interval, calibrate_set, fit_scale, interval, predict_set
from softlearning.uncertainty.disagreement import detector_auc
from softlearning.uncertainty.selective import risk_coverage_curve

BINS = 10
MOST_CLASSES = 12  # a larger confusion matrix cannot be read
MOST_POINTS = 600  # dots in a scatter plot
COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
NORMAL_95 = 1.959964


def wilson(share: float, n: float) -> tuple[float, float]:
    """95 % interval of a share seen in n rows (Wilson's score interval): sensible at 0, at 1 and for few rows."""
    if n <= 0:
        return 0.0, 1.0
    z2 = NORMAL_95**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_95 * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))


def effective_rows(weight: np.ndarray | None, n: int) -> float:
    """How many equal rows the weighted ones amount to (Kish)."""
    return float(n) if weight is None else float(weight.sum() ** 2 / np.sum(weight**2))


def mean_interval(values: np.ndarray, weight: np.ndarray | None) -> tuple[float, float, float]:
    """Weighted mean and its 95 % interval from the spread of the rows."""
    mean = float(np.average(values, weights=weight))
    spread = float(np.average((values - mean) ** 2, weights=weight))
    half = NORMAL_95 * np.sqrt(spread / effective_rows(weight, len(values)))
    return mean, float(mean - half), float(mean + half)


def r2_interval(residual: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """95 % interval of R2 = 1 - A / B by its influence function, A = mean residual^2 and B = variance of y."""
    spread = (y - np.average(y, weights=weight)) ** 2
    A, B = np.average(residual**2, weights=weight), np.average(spread, weights=weight)
    if not B > 0:
        return float("nan"), float("nan")
    influence = 1 - A / B - (residual**2 - A) / B + A * (spread - B) / B**2
    return mean_interval(influence, weight)[1:]


def calibration(p: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> dict[str, Any]:
    """How often events of stated probability happen: of the second of two classes, or of the likeliest of many."""
    if Y.shape[1] == 2:
        stated, happened = p[:, 1], Y[:, 1]
    else:
        stated, happened = p.max(axis=1), (p.argmax(axis=1) == Y.argmax(axis=1)).astype(float)
    w = np.ones(len(p)) if weight is None else weight
    place = np.clip((stated * BINS).astype(int), 0, BINS - 1)
    members = [place == b for b in range(BINS) if w[place == b].sum() > 0]
    bins = [_bin(stated[rows], happened[rows], w[rows] / w.sum()) for rows in members]
    counts, edges = np.histogram(stated, bins=2 * BINS, range=(0, 1))
    return {
        "bins": bins,
        "error": float(sum(b["share"] * abs(b["stated"] - b["happened"]) for b in bins)),
        "counts": counts.tolist(),
        "edges": edges.tolist(),
    }


def _bin(stated: np.ndarray, happened: np.ndarray, weight: np.ndarray) -> dict[str, float]:
    share = float(np.average(happened, weights=weight))
    low, high = wilson(share, effective_rows(weight, len(weight)))
    middle = float(np.average(stated, weights=weight))
    return {
        "stated": middle,
        "happened": share,
        "low": low,
        "high": high,
        "rows": len(stated),
        "share": float(weight.sum()),
    }


def confusion(p: np.ndarray, Y: np.ndarray, classes: list[str]) -> dict[str, Any]:
    """Rows of each true class (first axis) given each class; of many classes, those with the most errors."""
    C = len(classes)
    pairs = Y.argmax(axis=1) * C + p.argmax(axis=1)
    counts = np.bincount(pairs, minlength=C * C).reshape(C, C)
    errors = counts.sum(axis=0) + counts.sum(axis=1) - 2 * np.diag(counts)
    shown = np.sort(np.argsort(-errors, kind="stable")[:MOST_CLASSES])
    return {
        "classes": [classes[c] for c in shown],
        "counts": counts[np.ix_(shown, shown)].tolist(),
        "all_classes": C,
        "wrong": int(counts.sum() - np.trace(counts)),
        "rows": int(counts.sum()),
    }


def residuals(f: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Predicted against true values (a sample of the rows), and the histogram of the errors; f and y (n,)."""
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_POINTS])
    counts, edges = np.histogram(y - f, bins=min(24, max(4, len(y) // 10)))
    return {
        "predicted": f[rows].tolist(),
        "true": y[rows].tolist(),
        "counts": counts.tolist(),
        "edges": edges.tolist(),
        "bias": float(np.mean(y - f)),
        "rmse": float(np.sqrt(np.mean((y - f) ** 2))),
        "median": float(np.median(np.abs(y - f))),
    }


def row_errors(p: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """1 where the class is wrong, else 0; for numbers the absolute error; (n,)."""
    if Y.shape[1] == 1:
        return np.abs(Y[:, 0] - p[:, 0])
    return (p.argmax(axis=1) != Y.argmax(axis=1)).astype(float)


def doubt(V: np.ndarray, error: np.ndarray) -> dict[str, Any] | None:
    """Error by tenths of the disagreement, and the error among the rows answered when the doubtful are left out.

    `auc`: how often a row of the worse half (a wrong one, for classes) has the larger disagreement. None when
    the specialists never disagree.
    """
    if not np.ptp(V) > 0:
        return None
    tenth = np.argsort(np.argsort(V, kind="stable"), kind="stable") * BINS // len(V)
    members = [tenth == b for b in range(BINS) if (tenth == b).any()]
    bins = [
        {"doubt": float(V[rows].mean()), "error": float(error[rows].mean()), "rows": int(rows.sum())}
        for rows in members
    ]
    bad = error > np.median(error) if set(np.unique(error)) - {0.0, 1.0} else error > 0
    curve = risk_coverage_curve(V, error)
    grid = np.linspace(0.05, 1, 96)
    at = np.minimum(np.searchsorted(curve.coverage, grid - 1e-12), len(curve.coverage) - 1)
    return {
        "bins": bins,
        "auc": detector_auc(V, bad),
        "coverage": curve.coverage[at].tolist(),
        "risk": curve.risk[at].tolist(),
        "best": _best_risk(error, grid).tolist(),
        "area": curve.area,
        "best_area": curve.best_area,
        "all": float(error.mean()),
    }


def _best_risk(error: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Mean error among the share `grid` of rows with the least error: what perfect doubt would give."""
    running = np.cumsum(np.sort(error)) / np.arange(1, len(error) + 1)
    return running[np.clip(np.ceil(grid * len(error)).astype(int) - 1, 0, len(error) - 1)]


def coverage(p: np.ndarray, Y: np.ndarray, V: np.ndarray, fold: np.ndarray, weight: np.ndarray | None) -> list[dict]:
    """Promised against kept: each fold is judged with intervals or sets calibrated on the other folds."""
    judge: Callable = _interval_hits if Y.shape[1] == 1 else _set_hits
    lines = []
    for wanted in COVERAGES:
        hit, size = np.zeros(len(p)), np.zeros(len(p))
        for v in np.unique(fold):
            held = fold == v
            hit[held], size[held] = judge(p, Y, V, held, wanted, None if weight is None else weight[~held])
        observed = float(np.average(hit, weights=weight))
        low, high = wilson(observed, effective_rows(weight, len(p)))
        mean_size = float(np.average(size, weights=weight))
        line = {"wanted": wanted, "observed": observed, "low": low, "high": high}
        lines.append({**line, "size": mean_size if np.isfinite(mean_size) else None})
    return lines


def _interval_hits(p, Y, V, held, wanted, weight):
    f, y, rest = p[:, 0], Y[:, 0], ~held
    scale = fit_scale(y[rest] - f[rest], V[rest])
    quantile = calibrate_interval(f[rest], y[rest], scale(V[rest]), wanted, sample_weight=weight)
    low, high = interval(f[held], scale(V[held]), quantile)
    return (low <= y[held]) & (y[held] <= high), high - low


def _set_hits(p, Y, V, held, wanted, weight):
    label = Y.argmax(axis=1)
    quantile = calibrate_set(p[~held], label[~held], wanted, sample_weight=weight)
    inside = predict_set(p[held], quantile)
    return inside[np.arange(held.sum()), label[held]], inside.sum(axis=1)
