"""The curves of a report, from held-out rows: a `HeldOut` in, plain data that json can hold out.

Intervals are of 95 %; rows of a group count as one in all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import precision_recall_fscore_support

from softlearning.evaluation.scoring import score_interval
from softlearning.method.decisions import sweep
from softlearning.method.prediction import conformal_interval, conformal_set
from softlearning.method.record import HeldOut
from softlearning.method.training import entries
from softlearning.uncertainty.disagreement import detector_auc
from softlearning.uncertainty.errors import difference_and_error, mean_and_error, reach, wilson_interval
from softlearning.uncertainty.selective import risk_coverage_curve

BINS = 10
MOST_CLASSES = 12  # a larger confusion matrix cannot be read
MOST_STEPS = 120  # points of a ROC curve
MOST_POINTS = 600  # dots in a scatter plot
COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
GRID = np.linspace(0.05, 1, 96)  # shares of the rows answered
NORMAL = 1.959964  # standard errors to either side, where the error is that of a share of independent rows


def share(hits: np.ndarray, weight: np.ndarray | None, groups: np.ndarray | None) -> dict[str, float]:
    """Weighted share of hits (n,) of 0 and 1, with its interval."""
    mean, error = mean_and_error(hits, weight, groups)
    counting = hits if weight is None else hits[weight > 0]
    units, far = (len(counting), NORMAL) if groups is None else (len(np.unique(groups)), reach(len(hits), groups))
    low, high = wilson_interval(mean, error, units, far) if np.isfinite(far) else (0.0, 1.0)
    return {"value": mean, "low": low, "high": high}


def r2(held: HeldOut) -> dict[str, float]:
    """R2 = 1 - A / B, A the mean squared residual and B the variance of the target; interval by influence function."""
    y, residual = held.target[:, 0], held.target[:, 0] - held.blend[:, 0]
    spread = (y - np.average(y, weights=held.weight)) ** 2
    A, B = np.average(residual**2, weights=held.weight), np.average(spread, weights=held.weight)
    if not B > 0:
        return dict.fromkeys(("value", "low", "high"), float("nan"))
    influence = 1 - A / B - (residual**2 - A) / B + A * (spread - B) / B**2
    value, error = mean_and_error(influence, held.weight, held.groups)
    return interval_of("r2", value, error, held)


def interval_of(name: str, value: float, error: float, held: HeldOut) -> dict[str, float]:
    """A score with its interval, within the range that the score can have."""
    units = len(held.target) if held.groups is None else len(np.unique(held.groups))
    low, high = score_interval(name, value, error, units, 0.95)
    return {"value": value, "low": float(low), "high": float(high)}


def with_interval(values: np.ndarray, weight: np.ndarray | None, groups: np.ndarray | None) -> dict[str, float]:
    """Weighted mean of values (n,), with its interval."""
    mean, error = mean_and_error(values, weight, groups)
    half = reach(len(values), groups) * error
    return {"value": mean, "low": mean - half, "high": mean + half}


def rmse(held: HeldOut) -> dict[str, float]:
    """Root mean squared error, in the target's unit, with its interval."""
    squared = (held.target[:, 0] - held.blend[:, 0]) ** 2
    mean, error = mean_and_error(squared, held.weight, held.groups)
    found = interval_of("neg_mean_squared_error", -mean, error, held)
    return {"value": np.sqrt(mean), "low": float(np.sqrt(-found["high"])), "high": float(np.sqrt(-found["low"]))}


def calibration(held: HeldOut) -> dict[str, Any]:
    """How often events of stated probability happen: of the second of two classes, or of the likeliest of many."""
    p, Y = held.blend, held.target
    if Y.shape[1] == 2:
        stated, happened = p[:, 1], Y[:, 1]
    else:
        stated, happened = p.max(axis=1), (p.argmax(axis=1) == Y.argmax(axis=1)).astype(float)
    w = np.ones(len(p)) if held.weight is None else held.weight
    place = np.clip((stated * BINS).astype(int), 0, BINS - 1)
    members = [place == b for b in range(BINS) if w[place == b].sum() > 0]
    bins = [
        share(happened[rows], w[rows], entries(held.groups, rows))
        | {"stated": float(np.average(stated[rows], weights=w[rows])), "rows": int(rows.sum())}
        | {"share": float(w[rows].sum() / w.sum())}
        for rows in members
    ]
    counts, edges = np.histogram(stated, bins=2 * BINS, range=(0, 1))
    return {
        "bins": bins,
        "error": float(sum(b["share"] * abs(b["stated"] - b["value"]) for b in bins)),
        "counts": counts.tolist(),
        "edges": edges.tolist(),
    }


def confusion(held: HeldOut, said: np.ndarray, classes: list[str]) -> dict[str, Any]:
    """Rows of each true class (first axis) given each class; of many classes, those with the most errors.

    said : (n,) places of the labels answered.
    """
    C = len(classes)
    pairs = held.target.argmax(axis=1) * C + said
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


def per_class(held: HeldOut, said: np.ndarray, classes: list[str]) -> list[dict[str, Any]]:
    """Precision, recall and F1 of each class, its rows, and how often it was the answer; rarest class first."""
    true, names = held.target.argmax(axis=1), ("precision", "recall", "f1")
    weighted: Any = {"labels": range(len(classes)), "sample_weight": held.weight, "zero_division": np.nan}
    found = precision_recall_fscore_support(true, said, **weighted)[:3]
    rows, answers = (np.bincount(places, minlength=len(classes)).tolist() for places in (true, said))
    lines = [
        {"class": name, "rows": rows[c], "answers": answers[c]} | {n: float(v[c]) for n, v in zip(names, found)}
        for c, name in enumerate(classes)
    ]
    return sorted(lines, key=lambda line: line["rows"])


def ranking(held: HeldOut, threshold: float | None) -> dict[str, Any] | None:
    """ROC and precision-recall of the second of two classes, thinned, and where the threshold of the answers lies.

    None where all held-out rows are of one class.
    """
    w = np.ones(len(held.target)) if held.weight is None else held.weight
    p, true = held.blend[:, 1], held.target[:, 1] > 0.5
    if not 0 < w @ true < w.sum():
        return None
    cuts, counts, _ = sweep(p, true, w)
    hits, false = counts[:, 0], counts[:, 1]
    recall, fall_out = np.append(0.0, hits / hits[-1]), np.append(0.0, false / false[-1])
    precision = hits / (hits + false)
    thin = np.unique(np.linspace(0, len(precision) - 1, MOST_STEPS).astype(int))
    cut = 0.5 if threshold is None else threshold
    at = int(np.clip(np.searchsorted(-cuts, -cut, side="right") - 1, 0, len(precision) - 1))
    return {
        "roc": {"x": fall_out[np.append(0, thin + 1)].tolist(), "y": recall[np.append(0, thin + 1)].tolist()},
        "precision_recall": {"x": recall[1:][thin].tolist(), "y": precision[thin].tolist()},
        "auc": float(np.trapezoid(recall, fall_out)),
        "average_precision": float(np.sum(np.diff(recall) * precision)),
        "prevalence": float(np.average(true, weights=w)),
        "threshold": float(cut),
        "chosen": {"fall_out": fall_out[at + 1], "recall": recall[at + 1], "precision": precision[at]},
    }


def residuals(held: HeldOut) -> dict[str, Any]:
    """Predicted against true values (a sample of the rows), and the histogram of the errors."""
    f, y = held.blend[:, 0], held.target[:, 0]
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_POINTS])
    counts, edges = np.histogram(y - f, bins=min(24, max(4, len(y) // 10)))
    return {
        "predicted": f[rows].tolist(),
        "true": y[rows].tolist(),
        "counts": counts.tolist(),
        "edges": edges.tolist(),
        "bias": float(np.mean(y - f)),
        "median": float(np.median(np.abs(y - f))),
    }


def row_errors(held: HeldOut, said: np.ndarray) -> np.ndarray:
    """1 where the class `said` (n,) is wrong, else 0; for numbers the absolute error; (n,)."""
    if held.target.shape[1] == 1:
        return np.abs(held.target[:, 0] - held.blend[:, 0])
    return (said != held.target.argmax(axis=1)).astype(float)


def uncertainty(held: HeldOut, said: np.ndarray) -> dict[str, Any] | None:
    """The error among the rows answered when the most uncertain are not, by each measure of uncertainty that varies.

    Measures are the disagreement of the specialists and, for classes, how far the top probability is from 1. None when
    neither varies. "warns": whether rows of the upper half by disagreement have more error beyond noise.
    """
    error = row_errors(held, said)
    measures = {"disagreement": held.disagreement}
    if held.target.shape[1] > 1:
        measures["top_probability"] = 1 - held.blend.max(axis=1)
    measures = {name: values for name, values in measures.items() if np.ptp(values) > 0}
    if not measures:
        return None
    running = np.cumsum(np.sort(error)) / np.arange(1, len(error) + 1)
    at = np.clip(np.ceil(GRID * len(error) - 1e-9).astype(int) - 1, 0, len(error) - 1)
    more, noise, units = difference_and_error(error, held.disagreement > np.median(held.disagreement), held.groups)
    return {
        "measures": {name: _selective(values, error) for name, values in measures.items()},
        "bins": _tenths(held.disagreement, error) if "disagreement" in measures else [],
        "grid": GRID.tolist(),
        "best": running[at].tolist(),
        "all": float(error.mean()),
        "warns": bool(more > reach(units) * noise),
    }


def _selective(values: np.ndarray, error: np.ndarray) -> dict[str, Any]:
    """Risk against coverage; `auc`: how often a row of the worse half (a wrong one) has the larger uncertainty."""
    bad = error > np.median(error) if set(np.unique(error)) - {0.0, 1.0} else error > 0
    curve = risk_coverage_curve(values, error)
    at = np.minimum(np.searchsorted(curve.coverage, GRID - 1e-12), len(curve.coverage) - 1)
    return {
        "auc": detector_auc(values, bad),
        "coverage": curve.coverage[at].tolist(),
        "risk": curve.risk[at].tolist(),
        "area": curve.area,
    }


def _tenths(values: np.ndarray, error: np.ndarray) -> list[dict[str, Any]]:
    """Mean error in ten equal groups of rows by rising uncertainty."""
    tenth = np.argsort(np.argsort(values, kind="stable"), kind="stable") * BINS // len(values)
    members = [tenth == b for b in range(BINS) if (tenth == b).any()]
    return [{"error": float(error[rows].mean()), "rows": int(rows.sum())} for rows in members]


def coverage(held: HeldOut) -> list[dict[str, Any]]:
    """Nominal against empirical: each fold is judged with intervals or sets calibrated on the other folds."""
    judge = _interval_hits if held.target.shape[1] == 1 else _set_hits
    lines = []
    for nominal in COVERAGES:
        hit, size = np.zeros(len(held.fold)), np.zeros(len(held.fold))
        for v in np.unique(held.fold):
            rows = held.fold == v
            hit[rows], size[rows] = judge(held.part(~rows), held.part(rows), nominal)
        mean_size = float(np.average(size, weights=held.weight))
        found = share(hit, held.weight, held.groups)
        lines.append({"nominal": nominal, **found, "size": mean_size if np.isfinite(mean_size) else None})
    return lines


def _interval_hits(others: HeldOut, mine: HeldOut, nominal: float) -> tuple[np.ndarray, np.ndarray]:
    low, high = conformal_interval(others, mine.blend[:, 0], mine.disagreement, nominal)
    y = mine.target[:, 0]
    return (low <= y) & (y <= high), high - low


def _set_hits(others: HeldOut, mine: HeldOut, nominal: float) -> tuple[np.ndarray, np.ndarray]:
    inside = conformal_set(others, mine.blend, nominal)
    return inside[np.arange(len(inside)), mine.target.argmax(axis=1)], inside.sum(axis=1)
