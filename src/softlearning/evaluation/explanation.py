"""What each column contributes to a row's prediction, and in which parts of a table a model is worse than overall.

Shapley values of the game in which absent columns take their values from background rows. Sampled are walks from a
background row to the row that is explained, one column at a time in a random order and then in the reverse order;
every background row begins as many walks as any other. So contributions add up to prediction minus base value exactly,
however few the walks, and what is additive in the columns (linear models) has no sampling error at all.

The trees' own Shapley values (TreeSHAP of LightGBM and CatBoost) are not mixed in: theirs is another game, in which
absent columns are averaged along the paths of a tree, on the scale of the trees and over the columns of their view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.tree import DecisionTreeRegressor

from softlearning.uncertainty.errors import difference_and_error

Predict = Callable[[Any], np.ndarray]
AT_ONCE = 50_000  # rows predicted at a time
FEW = 5  # columns up to which every set of columns is looked at
TWICE = 8  # background rows that are walked from at least twice, to know the error
LEAST_ROWS, LEAST_UNITS = 10, 5  # rows, and groups, within a slice and outside of it that tell them apart
LEVELS = 10  # most frequent values of a category that a slice may be made of


@dataclass(frozen=True)
class Shapley:
    """values (n, d) that add up to prediction - base, both (n,); error (n, d): standard errors of the sampling.

    Sampled are the orders; the background rows are taken as they are.
    """

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
    walks : walks from each background row, in pairs of an order and its reverse; from some rows at least two pairs. Up
        to `FEW` columns, every set of columns is looked at instead and there is no error.
    """
    columns = list(range(X.shape[1])) if columns is None else list(columns)
    n, B, d = X.shape[0], background.shape[0], len(columns)
    mixed = Mixed(predict, X, background, columns)
    if d <= FEW:
        return _every_set(mixed)
    rng, pairs = np.random.default_rng(seed), max(walks // 2, 1)
    values, base, known = np.zeros((n, d)), np.zeros(n), []
    for z in range(B):
        tried = [_there_and_back(mixed, z, rng.permutation(d)) for _ in range(max(pairs, 2) if z < TWICE else pairs)]
        base, prediction = base + tried[0][1] / B, tried[0][2]
        changes = np.array([t[0] for t in tried])
        values += changes.mean(axis=0) / B
        if len(tried) > 1:
            known.append(changes.var(axis=0, ddof=1) / len(tried))
    once = (B - len(known)) * 2 * np.mean(known, axis=0)  # rows walked from by one pair have twice the variance
    return Shapley(values, base, prediction, np.sqrt(np.sum(known, axis=0) + once) / B)


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

    def from_everywhere(self, present: np.ndarray) -> np.ndarray:
        """(B, m, n): the same from each of the background rows."""
        return np.array([self(present, np.full(len(present), z)) for z in range(self.others)])

    def _rows(self, index: dict[int, np.ndarray], rest: np.ndarray) -> Any:
        picked = [index.get(j, rest) for j in range(self.both.shape[1])]
        if isinstance(self.both, pd.DataFrame):
            made = {j: self.both.iloc[rows, j].array for j, rows in enumerate(picked)}
            frame = pd.DataFrame(made)
            frame.columns = self.both.columns
            return frame
        return np.column_stack([self.both[rows, j] for j, rows in enumerate(picked)])


def _there_and_back(mixed: Mixed, z: int, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A walk in an order and one in its reverse, averaged."""
    changes, start, end = _walk(mixed, z, order)
    return (changes + _walk(mixed, z, order[::-1])[0]) / 2, start, end


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
    d = len(mixed.columns)
    sets = ((np.arange(2**d)[:, None] >> np.arange(d)) & 1).astype(bool)
    f = mixed.from_everywhere(sets).mean(axis=0)
    values = np.zeros((mixed.rows, d))
    for s, present in enumerate(sets):
        for c in np.flatnonzero(~present):
            values[:, c] += (f[s + (1 << c)] - f[s]) / (d * comb(d - 1, int(present.sum())))
    return Shapley(values, f[0], f[-1], np.zeros_like(values))


# -- what columns do together -----------------------------------------------------------------------------------------


def interactions(predict: Predict, X: Any, background: Any, *, columns: list[int], strongest: int) -> pd.DataFrame:
    """How far the effect of two columns is more than the sum of their effects, for pairs of the strongest columns.

    From background rows z to rows x, the extra of a pair is f(x_i, x_j, z) - f(x_i, z) - f(x_j, z) + f(z), averaged
    over z: exactly zero where a model is additive in the two. Columns are the stronger the more f(x_i, z) differs from
    f(z) in mean square, so that a column whose effects cancel out is found too.

    Returns
    -------
    column, with (positions); strength, the standard deviation of the extra over the rows, in units of the prediction;
    std_error, by jackknife over rows and over background rows; share, of the standard deviation of what the two do
    together (Friedman's H). Strongest first.
    """
    mixed, alone = Mixed(predict, X, background, columns), np.eye(len(columns), dtype=bool)
    base = mixed.from_everywhere(np.zeros((1, len(columns)), dtype=bool))
    moved = mixed.from_everywhere(alone) - base
    chosen = np.sort(np.argsort(-np.mean(moved**2, axis=(0, 2)), kind="stable")[:strongest])
    pairs = list(combinations(chosen.tolist(), 2))
    lines = []
    for i, j in pairs:
        joint = (mixed.from_everywhere(alone[[i]] | alone[[j]]) - base)[:, 0]
        extra = joint - moved[:, i] - moved[:, j]
        strength, together = float(extra.mean(axis=0).std()), float(joint.mean(axis=0).std())
        lines.append((columns[i], columns[j], strength, _spread_error(extra), strength / together if together else 0.0))
    found = pd.DataFrame(lines, columns=["column", "with", "strength", "std_error", "share"])
    return found.sort_values("strength", ascending=False, kind="stable", ignore_index=True)


def _spread_error(extra: np.ndarray) -> float:
    """Jackknife standard error, over both axes, of the standard deviation over rows of the mean of extra (B, n)."""
    B, mean = len(extra), extra.mean(axis=0)
    without_background = ((B * mean - extra) / max(B - 1, 1)).std(axis=1)
    without_row = np.array([np.delete(mean, k).std() for k in range(len(mean))])
    return float(np.sqrt(sum((len(left) - 1) * left.var() for left in (without_background, without_row))))


# -- where a model is worse -------------------------------------------------------------------------------------------


def error_slices(
    X: pd.DataFrame, loss: np.ndarray, *, groups: np.ndarray | None = None, depth: int = 2, level: float = 0.05,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """The parts of a table where the loss of a model is larger than elsewhere, beyond noise; worst first.

    Parts are found by a small tree on half of the rows, or groups, and judged on the other half: a one-sided t test
    against the rows outside, p-values by Holm's rule.

    Parameters
    ----------
    X : (n, d) frame; numbers are cut, other columns compared with their most frequent values.
    loss : (n,) loss of held-out predictions, 0 and 1 for right and wrong labels.
    groups : (n,) rows of a group may depend on each other, and count as one.
    depth : conditions of a slice at most.
    level : largest p-value after Holm's rule.

    Returns
    -------
    slice (in words), rows, loss, overall, p; empty where nothing is worse beyond noise.
    """
    features, words = _conditions(X)
    member = np.arange(len(loss)) if groups is None else np.unique(groups, return_inverse=True)[1]
    units = member.max() + 1
    half = (np.random.default_rng(seed).permutation(units) < units // 2)[member]
    leaf = max(20, int(0.02 * len(loss)))
    tree = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=leaf, random_state=0)
    tree.fit(features[half], loss[half])
    reached = tree.decision_path(features).toarray().astype(bool)
    lines = []
    for node, text in _paths(tree.tree_, words).items():
        inside = reached[~half, node]
        more, error, units = difference_and_error(loss[~half], inside, member[~half])
        if min(inside.sum(), (~inside).sum()) >= LEAST_ROWS and units >= LEAST_UNITS:
            p = stats.t.sf(more / error, units - 1) if error > 0 else float(more <= 0)
            worse = float(loss[~half][inside].mean())
            lines.append({"slice": text, "rows": int(reached[:, node].sum()), "loss": worse, "p": p})
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
