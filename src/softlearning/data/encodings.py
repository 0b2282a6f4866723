"""Columns that are not numbers, as numbers: categories, dates and texts.

A category column is a lookup: the level of a row (its position among the fitted categories, then one level for the
unseen, then one for the missing) is the row of a small table of floats. What a lookup, a date or a text has learnt is
plain data: a dict of names, numbers and arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from threadpoolctl import threadpool_limits

from softlearning.data.schema import Column

CROSS_FOLDS = 5  # parts of the training rows that are target-encoded by the others
MOST_CLASSES = 10  # classes that have a mean of their own in a target encoding

Lookup = dict[str, Any]  # names, width (levels of the second of two names), keys, table, features


# --- categories


def levels_of(X: pd.DataFrame, names: Sequence[str], width: int = 1) -> np.ndarray:
    """Level of each row: 0..m-1 the fitted categories, m unseen, m + 1 missing; of two names, the pair of levels."""
    level = np.zeros(len(X), dtype=np.int64)
    for name in names:
        values: Any = X[name].array
        codes = values.codes.astype(np.int64)
        level = level * width + np.where(codes < 0, len(values.categories), codes)
    return level


def look_up(X: pd.DataFrame, lookup: Lookup) -> np.ndarray:
    """The rows of the lookup's table that the rows of X ask for; a pair that was never seen asks for the last."""
    level = levels_of(X, lookup["names"], lookup["width"])
    keys = lookup["keys"]
    if keys is not None:
        place = np.minimum(np.searchsorted(keys, level), len(keys) - 1)
        level = np.where(keys[place] == level, place, len(keys))
    return lookup["table"][level]


def native_lookup(column: Column, level: np.ndarray) -> Lookup:
    """Code by falling frequency in these rows; categories not in them join the unseen, missing stays missing."""
    counts = np.bincount(level, minlength=len(column.categories) + 2)[:-2]
    seen = np.flatnonzero(counts)
    order = seen[np.argsort(-counts[seen], kind="stable")]
    table = np.full((len(counts) + 2, 1), float(len(order)))
    table[order, 0] = np.arange(len(order))
    table[-1] = np.nan
    return _lookup((column.name,), table, (column.name,)) | {"levels": len(order) + 1}


def one_hot_lookup(column: Column, level: np.ndarray) -> Lookup:
    """One column per category seen in these rows, and one for missing; the unseen are all zeros."""
    counts = np.bincount(level, minlength=len(column.categories) + 2)
    counts[-2] = 0
    seen = np.flatnonzero(counts)
    table = np.zeros((len(counts), len(seen)))
    table[seen, np.arange(len(seen))] = 1.0
    words = [*column.categories, column.unseen, "missing"]
    return _lookup((column.name,), table, tuple(f"{column.name}={words[k]}" for k in seen))


def order_lookup(column: Column) -> Lookup:
    """The position of an ordered category; the unseen get the middle, the missing come last."""
    m = len(column.categories)
    return _lookup((column.name,), np.array([*range(m), (m - 1) / 2, m], dtype=float)[:, None], (column.name,))


def _lookup(names: tuple[str, ...], table: np.ndarray, features: tuple[str, ...]) -> Lookup:
    return {"names": names, "width": 1, "keys": None, "table": table, "features": features}


class TargetEncoder:
    """Encodings by the mean target of a level, cross-fitted: no training row's mean has seen its own target.

    target  (n, C): standardised values, one indicator for two classes, else one per class (the most frequent ones)
    """

    def __init__(self, target: np.ndarray, weight: np.ndarray, seed: int):
        self.target = target
        self.weight = weight
        self.seed = seed
        self.fold = np.random.default_rng(seed).permutation(np.arange(len(target)) % CROSS_FOLDS)

    def means(self, level: np.ndarray, levels: int, target: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(levels, C) mean target of each level and (n, C) that of the training rows.

        The means of a training row count only the rows of the other folds. Both kinds are mixed with the same overall
        mean, as of m rows; one of its own in each fold would tell the fold, and with it which targets were left out.
        """
        target = self.target if target is None else target
        overall = np.average(target, axis=0, weights=self.weight)
        cell = self.fold * levels + level
        total = lambda values: np.bincount(cell, weights=values, minlength=CROSS_FOLDS * levels).reshape(-1, levels)
        sums = np.stack([total(self.weight * t) for t in target.T], axis=2)
        rows = total(self.weight)[:, :, None]
        m = mixing(sums.sum(axis=0), rows.sum(axis=0), target, self.weight, level)
        table = mixed_means(sums.sum(axis=0), rows.sum(axis=0), overall, m)
        crossed = mixed_means(sums.sum(axis=0) - sums, rows.sum(axis=0) - rows, overall, m)
        return table, crossed[self.fold, level]

    def lookup(self, names: tuple[str, ...], level: np.ndarray, levels: int) -> tuple[Lookup, np.ndarray]:
        """Mean target of a level (a column per class; one for two classes) and the logarithm of its frequency.

        The frequency counts the other rows: a level that a training row has to itself looks like one that a new row is
        the first to have.
        """
        table, crossed = self.means(level, levels)
        counts = np.bincount(level, minlength=levels)
        others = np.log1p(np.maximum(counts - 1.0, 0.0))[level]
        name = " x ".join(names)
        features = (*(f"{name}~mean{c}" for c in range(table.shape[1])), f"{name}~frequency")
        lookup = _lookup(names, np.column_stack([table, np.log1p(counts)]), features)
        return lookup, np.column_stack([crossed, others])

    def single(self, column: Column, level: np.ndarray) -> tuple[Lookup, np.ndarray]:
        """One column: the mean target; of several classes, in the direction in which categories differ most."""
        levels = len(column.categories) + 2
        target = self.target
        if target.shape[1] > 1:
            means, counts = self.means(level, levels)[0], np.bincount(level, minlength=levels)
            target = target @ principal_direction(means, counts)[:, None]
        table, crossed = self.means(level, levels, target)
        return _lookup((column.name,), table, (column.name,)), crossed

    def cross(self, X: pd.DataFrame, first: Column, second: Column) -> tuple[Lookup, np.ndarray]:
        """The pairs of levels of two categories that these rows hold, encoded like the levels of one."""
        width, names = len(second.categories) + 2, (first.name, second.name)
        keys, level = np.unique(levels_of(X, names, width), return_inverse=True)
        lookup, crossed = self.lookup(names, level, len(keys) + 1)
        return lookup | {"width": width, "keys": keys}, crossed


def mixed_means(sums: np.ndarray, rows: np.ndarray, overall: np.ndarray, m: np.ndarray) -> np.ndarray:
    """(sums + m overall) / (rows + m): means of the levels, drawn to the overall mean; all the way for infinite m."""
    share = 1.0 / (1.0 + rows / m)
    return share * overall + (1.0 - share) * sums / np.maximum(rows, 1e-300)


def mixing(sums: np.ndarray, rows: np.ndarray, target: np.ndarray, weight: np.ndarray, level: np.ndarray) -> np.ndarray:
    """(C,) variance within levels over variance between them, in rows: how much a single row tells.

    Moments of the one-way random effects model; infinite where the levels explain nothing, at least 1.
    """
    used = rows[:, 0] > 0
    n, K = weight.sum(), used.sum()
    means = sums / np.maximum(rows, 1e-300)
    within = (weight[:, None] * (target - means[level]) ** 2).sum(axis=0) / max(n - K, 1e-300)
    between = (rows * (means - sums.sum(axis=0) / n) ** 2)[used].sum(axis=0) / max(K - 1, 1)
    typical = (n - (rows**2).sum() / n) / max(K - 1, 1)
    effect = (between - within) / max(typical, 1e-300)
    if n <= K:
        return np.full(target.shape[1], np.inf)
    return np.where(effect > 0, np.maximum(1.0, within / np.where(effect > 0, effect, 1.0)), np.inf)


def principal_direction(means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """First principal direction of the rows of `means`, weighted by counts; its largest loading is positive."""
    centred = means - np.average(means, axis=0, weights=counts)
    direction = np.linalg.svd(centred * np.sqrt(counts)[:, None], full_matrices=False)[2][0]
    return direction * np.sign(direction[np.argmax(np.abs(direction))])


def encoding_target(y: Any, task: str) -> np.ndarray:
    """(n, C) float64: standardised values, one indicator for two classes, else one for each of the most frequent."""
    y = np.asarray(y)
    if task == "regression":
        values = y.reshape(-1).astype(np.float64)
        values = values / (np.abs(values).max() or 1.0)
        values = values - values.mean()
        return (values / (values.std() or 1.0))[:, None]
    if y.ndim == 2 and y.shape[1] > 1:
        y = y.argmax(axis=1)
    classes, labels, counts = np.unique(y.reshape(-1), return_inverse=True, return_counts=True)
    if len(classes) == 2:
        return (labels == 1).astype(float)[:, None]
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MOST_CLASSES])
    return (labels[:, None] == frequent).astype(float)


# --- dates

DATE_PARTS = {
    "year": lambda t: t.astype("datetime64[Y]").astype(np.int64) + 1970,
    "month": lambda t: t.astype("datetime64[M]").astype(np.int64) % 12 + 1,
    "day": lambda t: (t.astype("datetime64[D]") - t.astype("datetime64[M]")).astype(np.int64) + 1,
    "weekday": lambda t: (t.astype("datetime64[D]").astype(np.int64) + 3) % 7,  # 1 January 1970 was a Thursday
    "hour": lambda t: (t - t.astype("datetime64[D]")).astype(np.int64) / 3.6e9,
}
DAY = 8.64e10  # microseconds


def fit_date(moments: np.ndarray, name: str) -> dict[str, Any]:
    """Which parts a date has: hours only where some moment is not midnight; days are counted from the first."""
    seen = moments[~np.isnat(moments)]
    parts = [part for part in DATE_PARTS if part != "hour" or (seen != seen.astype("datetime64[D]")).any()]
    origin = float(seen.min().astype(np.int64)) / DAY if len(seen) else 0.0
    return {"name": name, "parts": (*parts, "elapsed"), "origin": origin}


def date_parts(moments: np.ndarray, parts: Sequence[str], origin: float) -> np.ndarray:
    """(n, parts) year, month, day, weekday (Monday 0), hour, days elapsed since the origin; NaN where missing."""
    out = np.full((len(moments), len(parts)), np.nan)
    there = ~np.isnat(moments)
    seen = moments[there]
    for j, part in enumerate(parts):
        out[there, j] = seen.astype(np.int64) / DAY - origin if part == "elapsed" else DATE_PARTS[part](seen)
    return out


# --- texts

BUCKETS = 4096  # hashed character n-grams
COMPONENTS = (5, 30)  # of a text: few in a small table, one for 200 rows, not more than that
LONGEST_TEXT = 2000  # characters read of a cell
TEXT_ROWS = 5_000  # the components need no more rows than this
HASHING = HashingVectorizer(
    analyzer="char_wb", ngram_range=(3, 5), n_features=BUCKETS, norm=None, alternate_sign=False, dtype=np.float64
)


def fit_text(column: pd.Series, name: str, seed: int) -> dict[str, Any]:
    """Inverse document frequencies of n-grams and the leading components of the TF-IDF matrix."""
    counts = ngram_counts(column.iloc[:: -(-len(column) // TEXT_ROWS) or 1])
    tfidf = TfidfTransformer().fit(counts)
    number = max(1, min(counts.shape[0] - 1, int(np.clip(len(column) // 200, *COMPONENTS))))
    # one thread: the same numbers whatever the machine; a column of one text has no variance to divide by
    with threadpool_limits(1), np.errstate(invalid="ignore"):
        svd = TruncatedSVD(number, random_state=seed).fit(tfidf.transform(counts))
    return {"name": name, "idf": tfidf.idf_, "components": np.ascontiguousarray(svd.components_.T)}


def text_components(column: pd.Series, idf: np.ndarray, components: np.ndarray) -> np.ndarray:
    """(n, k) texts in the directions of `components`."""
    weighted = ngram_counts(column).multiply(idf).tocsr()
    length = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    return (weighted @ components) / np.where(length == 0, 1.0, length)[:, None]


def ngram_counts(column: pd.Series) -> Any:
    """(n, BUCKETS) sparse counts of character n-grams.

    They lie within words, so a text is the sum of its words, and each distinct word is taken apart once.
    """
    counter = CountVectorizer(analyzer=_words)
    occurrences = counter.fit_transform(["", *("" if pd.isna(text) else text for text in column)])[1:]
    return (occurrences @ HASHING.transform(counter.get_feature_names_out())).tocsr()


def _words(text: str) -> list[str]:
    return ["", *text[:LONGEST_TEXT].lower().split()]  # the empty word has no n-grams, and no vocabulary is empty
