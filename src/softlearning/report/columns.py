"""What rows that the model has not seen tell of the columns: importance, the answers along them, where it errs.

Plain data out, largest importance first; what would take too long gets the reason instead of numbers.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from softlearning.data.inputs import frame_or_array, is_frame
from softlearning.method.preparation import take
from softlearning.method.record import Record
from softlearning.report.curves import share, with_interval
from softlearning.uncertainty.errors import mean_and_error
from softlearning.weights import row_losses

SAMPLE = 300  # rows for the importance of columns
FEWER = 60  # rows that partial dependence is averaged over
PATIENCE = 15.0  # seconds for each of them
STRONGEST = 4  # columns that get curves
MOST_SLICES = 8
LEAST_ROWS = 100  # for slices, which are found on one half and judged on the other
PLACES = 8  # points along a column
SEEN = "the model was fitted on these rows; pass rows that it has not seen"


def rows_of(model, X, y) -> tuple[Any, np.ndarray]:
    """The table, and the target (n, C) as the record has it."""
    X, y = frame_or_array(X) if is_frame(X) else X, np.asarray(y)
    return X, (y[:, None] == model.classes_).astype(float) if model.record_.task == "classification" else y[:, None]


def seen(model, target: np.ndarray) -> bool:
    """Whether these are the rows that the model was fitted on, which it remembers."""
    return np.array_equal(target, model.record_.training.target)


def importance(model, X, y) -> dict[str, Any]:
    """Rise of the model's loss when a column is shuffled, on a sample of rows it has not seen; largest first.

    error : standard error of the mean over rows; that of shuffling is smaller and within it.
    """
    record: Record = model.record_
    X, target = rows_of(model, X, y)
    if seen(model, target):
        return {"columns": [], "rows": len(target), "why": SEEN}
    rows = np.sort(np.random.default_rng(0).permutation(len(target))[:SAMPLE])
    X, target = take(X, rows), target[rows]
    predict = getattr(model, "predict_proba", model.predict)
    repeats = int(min(5, PATIENCE / (seconds_of(predict, X) * X.shape[1])))
    if repeats < 1:
        return {"columns": [], "rows": len(rows), "why": f"{X.shape[1]} columns would take too long"}

    def losses(table: Any) -> np.ndarray:
        return row_losses(predict(table).reshape(len(target), 1, -1), target, np.ones(1), loss=record.loss)

    dense, random = X.toarray() if sparse.issparse(X) else X, np.random.default_rng(0)
    names, before, lines = list(getattr(X, "columns", [f"x{j}" for j in range(X.shape[1])])), losses(dense), []
    for j, name in enumerate(names):
        orders = [random.permutation(len(rows)) for _ in range(repeats)]
        mean, error = mean_and_error(np.mean([losses(shuffled(dense, j, o)) for o in orders], axis=0) - before)
        lines.append({"column": str(name), "mean": mean, "error": float(np.nan_to_num(error))})
    return {"columns": sorted(lines, key=lambda line: -line["mean"]), "rows": len(rows), "why": ""}


def shuffled(X: Any, j: int, order: np.ndarray) -> Any:
    """The table with the values of its column j in another order."""
    X = X.copy()
    if isinstance(X, pd.DataFrame):
        X.isetitem(j, X.iloc[order, j].array)
    else:
        X[:, j] = X[order, j]
    return X


def seconds_of(predict, X) -> float:
    """Seconds that one prediction of the table takes."""
    start = time.perf_counter()
    predict(X)
    return max(time.perf_counter() - start, 1e-6)


def along(model, X, y, strongest: list[str]) -> list[dict[str, Any]]:
    """For the strongest columns: the mean answer with the column set to some values, and the error of the rows there.

    The first is partial dependence, over a sample of rows; the second says in which part of a column the model errs,
    with 95 % intervals. Tables without names have neither.
    """
    X, target = rows_of(model, X, y)
    if not isinstance(X, pd.DataFrame) or seen(model, target):
        return []
    predict = getattr(model, "predict_proba", model.predict)
    sample = X.iloc[np.sort(np.random.default_rng(1).permutation(len(X))[:FEWER])]
    affordable = int(PATIENCE / (seconds_of(predict, sample) * PLACES))
    said = model.predict(X)  # true minus predicted for numbers; 1 where the class is wrong, else 0
    error = target[:, 0] - said if target.shape[1] == 1 else said != model.classes_[target.argmax(axis=1)]
    lines = []
    for name in [n for n in strongest if n in X.columns][: min(STRONGEST, affordable)]:
        parts = parts_of(X[name])
        if len(parts) > 1:
            answered = [predict(sample.assign(**{name: value_like(X[name], p["value"])})) for p in parts]
            means = np.array([a.reshape(len(sample), -1).mean(axis=0) for a in answered])
            shown = int(np.ptp(means, axis=0).argmax()) if means.shape[1] != 2 else 1  # the class that moves most
            lines.append(_line(model, name, parts, means[:, shown], shown, error))
    return lines


def slices(model, X, y) -> list[dict[str, Any]]:
    """Parts of the table where the model is worse than elsewhere beyond noise, worst first."""
    if len(y) < LEAST_ROWS:
        return []
    found = model.error_slices(X, y).head(MOST_SLICES)
    return [{str(name): value for name, value in line.items()} for line in found.to_dict("records")]


def _line(model, name: str, parts: list[dict[str, Any]], means: np.ndarray, shown: int, error) -> dict[str, Any]:
    classes = getattr(model, "classes_", None)
    told = share if classes is not None else with_interval
    errors = [told(np.asarray(error[p["rows"]], dtype=float), None, None) for p in parts]
    return {
        "column": name,
        "of": "" if classes is None else str(classes[shown]),
        "number": parts[0]["number"],
        "parts": [
            {
                "name": p["name"],
                "at": p["at"],
                "answer": float(mean),
                "error": e["value"],
                "low": e["low"] if np.isfinite(e["low"]) else e["value"],  # a single number shows no interval
                "high": e["high"] if np.isfinite(e["high"]) else e["value"],
                "clear": bool(e["low"] > 0 or e["high"] < 0),
                "rows": int(p["rows"].sum()),
            }
            for p, mean, e in zip(parts, means, errors)
        ],
    }


def parts_of(column: pd.Series) -> list[dict[str, Any]]:
    """Equal parts of a column of numbers by rank, each with its median; or its most frequent values."""
    numeric = column.dtype.kind in "iuf" and column.nunique() > PLACES
    if numeric:
        edges = np.unique(np.nanquantile(column.to_numpy(float), np.linspace(0, 1, PLACES + 1)))
        place = np.clip(np.searchsorted(edges, column.to_numpy(float), side="right") - 1, 0, len(edges) - 2)
        place = np.where(column.isna(), -1, place)
        members = [place == k for k in range(len(edges) - 1)]
        values = [column[rows].median() for rows in members]
    else:
        values = list(column.dropna().value_counts().index[:PLACES])
        values = sorted(values) if column.dtype.kind in "iufb" else values
        members = [(column == value).to_numpy() for value in values]
    return [
        {"name": str(v), "value": v, "at": float(v) if numeric else float(k), "rows": rows, "number": numeric}
        for k, (v, rows) in enumerate(zip(values, members))
        if rows.any()
    ]


def value_like(column: pd.Series, value: Any) -> Any:
    """The value in the type of its column."""
    return round(value) if column.dtype.kind in "iu" else value
