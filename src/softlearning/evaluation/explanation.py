"""What each column contributes to a row's prediction, and in which parts of a table a model is worse than overall.

Shapley values of the game in which absent columns take their values from background rows. Sampled are walks from a
background row to the row that is explained, one column at a time in a random order and then in the reverse order;
every background row begins as many walks as any other. So contributions add up to prediction minus base value exactly,
however few the walks, and what is additive in the columns (linear models) has no sampling error at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.tree import DecisionTreeRegressor

Predict = Callable[[Any], np.ndarray]
AT_ONCE = 50_000  # rows predicted at a time
FEW = 5  # columns up to which every set of columns is looked at
LEVELS = 10  # most frequent values of a category that a slice may be made of


@dataclass(frozen=True)
class Shapley:
    """values (n, d) that add up to prediction - base, both (n,); error (n, d): standard errors of the sampling."""

    values: np.ndarray
    base: np.ndarray
    prediction: np.ndarray
    error: np.ndarray


def shapley(
    predict: Predict, X: Any, background: Any, *, columns: list[int] | None = None, walks: int = 2, seed: int = 0
) -> Shapley:
    """Shapley values of the columns of X for a prediction of one number per row.

    Parameters
    ----------
    predict : rows -> (m,).
    X, background : (n, d) frames or arrays of the same columns.
    columns : positions of the columns that count; all unless told. Others contribute nothing.
    walks : walks from each background row, in pairs of an order and its reverse. Up to `FEW` columns, every set of
        columns is looked at instead and there is no error.
    """
    columns = list(range(X.shape[1])) if columns is None else list(columns)
    n, B, d = X.shape[0], background.shape[0], len(columns)
    mixed = Mixed(predict, X, background, columns)
    if d <= FEW:
        return _every_set(mixed)
    rng = np.random.default_rng(seed)
    draws = np.empty((B * max(walks // 2, 1), n, d))
    base = np.zeros(n)
    for i in range(len(draws)):
        z, order = i % B, rng.permutation(d)
        forward, start, end = _walk(mixed, z, order)
        draws[i] = (forward + _walk(mixed, z, order[::-1])[0]) / 2
        base += start / len(draws)
    error = draws.std(axis=0, ddof=1) / np.sqrt(len(draws)) if len(draws) > 1 else np.full((n, d), np.nan)
    return Shapley(draws.mean(axis=0), base, end, error)


class Mixed:
    """Predictions of rows that take some columns from X and the others from a background row."""

    def __init__(self, predict: Predict, X: Any, background: Any, columns: list[int]):
        self.predict, self.columns = predict, columns
        self.rows, self.others = X.shape[0], background.shape[0]
        framed = hasattr(X, "iloc")
        self.both = pd.concat([X, background], ignore_index=True) if framed else np.concatenate([X, background])

    def __call__(self, present: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(m, n) predictions for m sets of columns, present (m, d) of bool, the rest from background row z (m,)."""
        m, n = len(present), self.rows
        own, given = np.tile(np.arange(n), m), np.repeat(n + z, n)
        index = {j: np.where(np.repeat(present[:, c], n), own, given) for c, j in enumerate(self.columns)}
        parts = []
        for start in range(0, m * n, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            parts.append(np.asarray(self.predict(self._rows({j: i[part] for j, i in index.items()}, given[part]))))
        return np.concatenate(parts).reshape(m, n)

    def _rows(self, index: dict[int, np.ndarray], rest: np.ndarray) -> Any:
        picked = [index.get(j, rest) for j in range(self.both.shape[1])]
        if isinstance(self.both, pd.DataFrame):
            made = {j: self.both.iloc[rows, j].array for j, rows in enumerate(picked)}
            frame = pd.DataFrame(made)
            frame.columns = self.both.columns
            return frame
        return np.column_stack([self.both[rows, j] for j, rows in enumerate(picked)])


def _walk(mixed: Mixed, z: int, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n, d) what each column changes when the columns come in this order; prediction before and after, (n,)."""
    d = len(order)
    present = np.zeros((d + 1, d), dtype=bool)
    for step, c in enumerate(order):
        present[step + 1 :, c] = True
    f = mixed(present, np.full(d + 1, z))
    changes = np.empty((mixed.rows, d))
    changes[:, order] = np.diff(f, axis=0).T
    return changes, f[0], f[-1]


def _every_set(mixed: Mixed) -> Shapley:
    """Shapley values by their definition: the mean over all orders, exact for these background rows."""
    d, B = len(mixed.columns), mixed.others
    sets = ((np.arange(2**d)[:, None] >> np.arange(d)) & 1).astype(bool)
    f = np.mean([mixed(sets, np.full(len(sets), z)) for z in range(B)], axis=0)
    values = np.zeros((mixed.rows, d))
    for s, present in enumerate(sets):
        for c in np.flatnonzero(~present):
            values[:, c] += (f[s + (1 << c)] - f[s]) / (d * comb(d - 1, int(present.sum())))
    return Shapley(values, f[0], f[-1], np.zeros_like(values))


# -- where a model is worse -------------------------------------------------------------------------------------------


def error_slices(
    X: pd.DataFrame, loss: np.ndarray, *, depth: int = 2, level: float = 0.05, seed: int = 0
) -> pd.DataFrame:
    """The parts of a table where the loss of a model is larger than elsewhere, beyond noise; worst first.

    Parts are found by a small tree on half of the rows and judged on the other half: a one-sided t test against the
    rows outside, p-values by Holm's rule.

    Parameters
    ----------
    X : (n, d) frame; numbers are cut, other columns compared with their most frequent values.
    loss : (n,) loss of held-out predictions, 0 and 1 for right and wrong labels.
    depth : conditions of a slice at most.
    level : largest p-value after Holm's rule.

    Returns
    -------
    slice (in words), rows, loss, overall, p; empty where nothing is worse beyond noise.
    """
    features, words = _conditions(X)
    half = np.random.default_rng(seed).permutation(len(loss)) < len(loss) // 2
    leaf = max(20, int(0.02 * len(loss)))
    tree = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=leaf, random_state=0)
    tree.fit(features[half], loss[half])
    reached = tree.decision_path(features).toarray().astype(bool)
    lines = []
    for node, text in _paths(tree.tree_, words).items():
        inside, outside = loss[~half & reached[:, node]], loss[~half & ~reached[:, node]]
        if min(len(inside), len(outside)) >= 10:
            p = stats.ttest_ind(inside, outside, equal_var=False, alternative="greater").pvalue
            lines.append({"slice": text, "rows": int(reached[:, node].sum()), "loss": float(inside.mean()), "p": p})
    found = pd.DataFrame(lines, columns=["slice", "rows", "loss", "p"])
    found["p"] = holm(found["p"].fillna(1.0).to_numpy(dtype=float))
    found.insert(3, "overall", float(loss[~half].mean()))
    return found[found["p"] <= level].sort_values("loss", ascending=False, ignore_index=True)


def holm(p: np.ndarray) -> np.ndarray:
    """p-values that hold for all of several tests at once."""
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def _conditions(X: pd.DataFrame) -> tuple[np.ndarray, list[tuple[str, str]]]:
    """(n, p) numbers a tree can cut, and for each the words of small and large values; {} stands for the cut."""
    columns, words = [], []
    for name, column in X.items():
        number = pd.to_numeric(column, errors="coerce") if column.dtype.kind in "biuf" else None
        if number is not None:
            filled = number.fillna(number.median()).fillna(0.0)
            columns.append(filled.to_numpy(dtype=float))
            words.append((f"{name} <= {{:.4g}}", f"{name} > {{:.4g}}"))
        else:
            text = column.astype("string")
            for value in text.value_counts().index[:LEVELS]:
                columns.append((text == value).fillna(False).to_numpy(dtype=float))
                words.append((f"{name} is not {value}", f"{name} = {value}"))
        if column.isna().any():
            columns.append(column.isna().to_numpy(dtype=float))
            words.append((f"{name} is given", f"{name} is missing"))
    return np.column_stack(columns), words


def _paths(tree: Any, words: list[tuple[str, str]]) -> dict[int, str]:
    """The conditions that lead to each node but the root, in words."""
    paths: dict[int, tuple[str, ...]] = {0: ()}
    for node in range(tree.node_count):
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left != right:
            small, large = words[tree.feature[node]]
            paths[left] = (*paths[node], small.format(tree.threshold[node]))
            paths[right] = (*paths[node], large.format(tree.threshold[node]))
    return {node: " and ".join(path) for node, path in paths.items() if path}
