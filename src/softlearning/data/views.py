"""The views of a canonical table that specialists ask for, fitted on training rows alone.

    native    categories as codes and gaps as NaN, for learners that handle both
    ordinal   no gaps: medians and indicators; categories in the order of their mean target
    scaled    no gaps, one-hot or target-encoded categories, every column standardised

Columns of a view stand in the order numbers, dates, texts, categories, indicators of gaps. A category column is always
a lookup: its code is the row of a small table of floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from softlearning.data.inputs import largest
from softlearning.data.schema import NUMBERS, Column, Schema

VIEWS = ("native", "ordinal", "scaled")

ONE_HOT_LIMIT = 50  # categories beyond this are target-encoded even when the user calls them few
SAMPLE_ROWS = 10_000  # medians and text components need no more rows than this
LARGEST = 1e30  # trees hold numbers in 32 bits: larger ones are cut, columns of larger or far smaller ones rescaled
FARTHEST = 1e6  # standardised values are cut here, so that no specialist overflows
CROSS_FOLDS = 5  # parts of the training rows that are target-encoded by the others
SMOOTH = 10.0  # rows of the overall mean that a category's own mean is mixed with


class View:
    """A fitted view: `transform` maps a canonical table to a float64 matrix (or csr).

    name         one of `VIEWS`
    categorical  positions of the columns that hold integer category codes (native view only): 0..m-1 by falling
                 frequency in the training rows, m = not seen there, NaN = missing
    levels       number of codes of each of these columns, the one for the unseen included
    features     names of the columns of the matrix; empty for arrays and sparse matrices
    """

    def __init__(self, name: str):
        self.name = name
        self.categorical: tuple[int, ...] = ()
        self.levels: tuple[int, ...] = ()
        self.features: tuple[str, ...] = ()
        self.numbers: list[str] = []
        self.dates: list[dict[str, Any]] = []  # name, parts, origin (days)
        self.texts: list[dict[str, Any]] = []  # name, idf (buckets,), components (buckets, k)
        self.lookups: list[dict[str, Any]] = []  # name, table (levels + 2, width): .., unseen, missing
        self.fill: np.ndarray | None = None  # (p,) what stands for NaN
        self.gaps: np.ndarray | None = None  # columns that get an indicator of NaN
        self.unit: np.ndarray | None = None  # (p,) largest absolute value, or 1
        self.centre: np.ndarray | None = None  # (p,) mean, in units
        self.spread: np.ndarray | None = None  # (p,) standard deviation, in units

    def transform(self, X: Any) -> Any:
        """Matrix of a canonical table, rows unseen in training."""
        if sp.issparse(X):
            return divide_columns(X, self.unit, FARTHEST if self.name == "scaled" else LARGEST)
        matrix = X if isinstance(X, np.ndarray) else self._columns(X)
        if self.fill is not None and self.gaps is not None:
            matrix = fill_gaps(matrix, self.fill, self.gaps)
        if self.unit is not None and self.centre is not None and self.spread is not None:
            return standardise(matrix, self.unit, self.centre, self.spread, overwrite=matrix is not X)
        return within_range(matrix, self.unit)

    def _columns(self, X: pd.DataFrame) -> np.ndarray:
        blocks = [X[self.numbers].to_numpy(np.float64)] if self.numbers else []
        blocks += [date_parts(X[d["name"]].to_numpy(), d["parts"], d["origin"]) for d in self.dates]
        blocks += [text_components(X[t["name"]], t["idf"], t["components"]) for t in self.texts]
        blocks += [look["table"][codes_of(X, look["name"])] for look in self.lookups]
        return np.hstack(blocks)


def fit_view(
    name: str,
    schema: Schema,
    X: Any,
    y: Any,
    *,
    task: str,
    seed: int = 0,
    sample_weight: np.ndarray | None = None,
) -> tuple[View, Any]:
    """Fit a view on training rows and transform them.

    Parameters
    ----------
    X : canonical table of the training rows, as `admit` returned it
    y : (n,) labels or values, or (n, C) one-hot target
    task : "classification" or "regression"

    Returns
    -------
    The view and the (n, p) matrix of the training rows, in which no row's target encoding has seen its own target.
    Where nothing is to be done (numbers without gaps; native, ordinal), the matrix is X itself.
    """
    if name not in VIEWS:
        raise ValueError(f"there is no view {name!r}; the views are {', '.join(VIEWS)}")
    view = View(name)
    if sp.issparse(X):
        top = column_tops(X)
        view.unit = np.where(top == 0, 1.0, top) if name == "scaled" else extreme_units(top)
        return view, view.transform(X)
    matrix = X
    if not isinstance(X, np.ndarray):
        weight = np.ones(len(X)) if sample_weight is None else sample_weight / sample_weight.max()
        matrix = _fit_columns(view, schema, X, _target(y, task), weight, seed)
    if name != "native":
        matrix = _fit_gaps(view, matrix)
    if name == "scaled":
        return view, _fit_scale(view, matrix, sample_weight, overwrite=matrix is not X)
    view.unit = extreme_units(column_tops(matrix))
    matrix = within_range(matrix, view.unit)
    spared = matrix is X and ((name == "ordinal" and schema.missing) or schema.largest > LARGEST)
    return view, X.copy() if spared else matrix  # "itself" would say that held-out rows need nothing either


# --- columns of a frame


def _fit_columns(
    view: View, schema: Schema, X: pd.DataFrame, target: np.ndarray, weight: np.ndarray, seed: int
) -> np.ndarray:
    """Fit dates, texts and lookups; the matrix of the training rows, gaps still NaN."""
    view.numbers = [c.name for c in schema.kept if c.kind in NUMBERS]
    view.dates = [_fit_date(X[c.name].to_numpy(), c.name) for c in schema.kept if c.kind == "datetime"]
    view.texts = [_fit_text(X[c.name], c.name, seed) for c in schema.kept if c.kind == "text"]
    columns = [c for c in schema.kept if c.bucket]
    fitted = [_fit_lookup(view.name, c, codes_of(X, c.name), target, weight, seed) for c in columns]
    view.lookups = [lookup for lookup, _ in fitted]
    _name_features(view)
    matrix = view._columns(X)
    start = matrix.shape[1] - sum(len(lookup["features"]) for lookup in view.lookups)
    for lookup, crossed in fitted:
        if crossed is not None:
            matrix[:, start : start + crossed.shape[1]] = crossed
        start += len(lookup["features"])
    return matrix


def _name_features(view: View) -> None:
    names = list(view.numbers)
    names += [f"{d['name']}:{part}" for d in view.dates for part in d["parts"]]
    names += [f"{t['name']}:text{k}" for t in view.texts for k in range(t["components"].shape[1])]
    if view.name == "native":
        view.categorical = tuple(range(len(names), len(names) + len(view.lookups)))
        view.levels = tuple(look["levels"] for look in view.lookups)
    names += [feature for look in view.lookups for feature in look["features"]]
    view.features = tuple(names)


def codes_of(X: pd.DataFrame, name: str) -> np.ndarray:
    """Codes of a canonical category column: position in the fitted categories, m = unseen, -1 = missing."""
    return X[name].array.codes


Lookup = tuple[dict[str, Any], np.ndarray | None]  # the lookup; what stands in its place for the training rows


def _fit_lookup(
    view: str, column: Column, codes: np.ndarray, target: np.ndarray, weight: np.ndarray, seed: int
) -> Lookup:
    if view == "native":
        return _native_lookup(column, codes), None
    if column.kind == "high_cardinality" or len(column.categories) > ONE_HOT_LIMIT:
        return _target_lookup(column, codes, target, weight, seed)
    if view == "ordinal":
        return _ordinal_lookup(column, codes, target), None
    return _one_hot_lookup(column, codes), None


def _counts(column: Column, codes: np.ndarray) -> np.ndarray:
    """Training rows of each category, of the unseen and of the missing: (m + 2,)."""
    m = len(column.categories)
    return np.bincount(np.where(codes < 0, m + 1, codes), minlength=m + 2)


def _native_lookup(column: Column, codes: np.ndarray) -> dict[str, Any]:
    """Code by falling frequency in these rows; categories not in them join the bucket of the unseen."""
    counts = _counts(column, codes)[:-2]
    seen = np.flatnonzero(counts)
    order = seen[np.argsort(-counts[seen], kind="stable")]
    table = np.full((len(counts) + 2, 1), float(len(order)))
    table[order, 0] = np.arange(len(order))
    table[-1] = np.nan
    return {"name": column.name, "table": table, "levels": len(order) + 1, "features": (column.name,)}


def _one_hot_lookup(column: Column, codes: np.ndarray) -> dict[str, Any]:
    """One column a category seen in these rows, and one for missing; the unseen are all zeros."""
    counts = _counts(column, codes)
    counts[-2] = 0
    seen = np.flatnonzero(counts)
    table = np.zeros((len(counts), len(seen)))
    table[seen, np.arange(len(seen))] = 1.0
    words = [*column.categories, column.bucket, "missing"]
    return {"name": column.name, "table": table, "features": tuple(f"{column.name}={words[k]}" for k in seen)}


def _ordinal_lookup(column: Column, codes: np.ndarray, target: np.ndarray) -> dict[str, Any]:
    """Rank of a category by its mean target, or its own order; the unseen get the middle.

    With several classes the ranks follow the first principal direction of the mean targets.
    """
    counts = _counts(column, codes)
    seen = np.flatnonzero(counts)
    if column.ordered:
        score = np.arange(len(counts), dtype=float)
    else:
        score = _principal(_mean_targets(codes, counts, target), counts)
    table = np.full((len(counts), 1), (len(seen) - 1) / 2)
    table[seen[np.argsort(score[seen], kind="stable")], 0] = np.arange(len(seen))
    return {"name": column.name, "table": table, "features": (column.name,)}


def _mean_targets(codes: np.ndarray, counts: np.ndarray, target: np.ndarray) -> np.ndarray:
    """(m + 2, C) mean target of each category, shrunk to the overall mean."""
    rows = np.where(codes < 0, len(counts) - 1, codes)
    sums = np.column_stack([np.bincount(rows, weights=t, minlength=len(counts)) for t in target.T])
    return (sums + SMOOTH * target.mean(axis=0)) / (counts[:, None] + SMOOTH)


def _principal(means: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """First principal direction of the rows of `means`, weighted by counts; its largest loading is positive."""
    centred = means - np.average(means, axis=0, weights=counts)
    direction = np.linalg.svd(centred * np.sqrt(counts)[:, None], full_matrices=False)[2][0]
    return centred @ (direction * np.sign(direction[np.argmax(np.abs(direction))]))


def _target_lookup(column: Column, codes: np.ndarray, target: np.ndarray, weight: np.ndarray, seed: int) -> Lookup:
    """Mean target of a category (a column a class; one for two classes) and the logarithm of its frequency.

    The means of the training rows are cross-fitted: a row's mean counts only the rows of the other folds. Both kinds of
    means are mixed with the same overall mean, as of m rows; one of its own in each fold would tell the fold, and with
    it which targets were left out. The frequency counts the other rows: a category that a training row has to itself
    looks like one that a new row is the first to have.
    """
    counts = _counts(column, codes)
    level = np.where(codes < 0, len(counts) - 1, codes)
    overall = np.average(target, axis=0, weights=weight)
    fold = np.random.default_rng(seed).permutation(np.arange(len(codes)) % CROSS_FOLDS)
    cell = fold * len(counts) + level
    sums = np.stack([_sums(cell, weight * t, CROSS_FOLDS, len(counts)) for t in target.T], axis=2)
    rows = _sums(cell, weight, CROSS_FOLDS, len(counts))[:, :, None]
    m = _mixing(sums.sum(axis=0), rows.sum(axis=0), target, weight, level)
    table = _mixed_means(sums.sum(axis=0), rows.sum(axis=0), overall, m)
    crossed = _mixed_means(sums.sum(axis=0) - sums, rows.sum(axis=0) - rows, overall, m)[fold, level]
    features = (*(f"{column.name}~mean{c}" for c in range(target.shape[1])), f"{column.name}~frequency")
    table = np.hstack([table, np.log1p(counts)[:, None]])
    crossed = np.hstack([crossed, np.log1p(counts - 1.0, where=counts > 0, out=np.zeros(len(counts)))[level, None]])
    return {"name": column.name, "table": table, "features": features}, crossed


def _sums(cell: np.ndarray, values: np.ndarray, folds: int, levels: int) -> np.ndarray:
    """(folds, levels) sum of the values in each fold and level."""
    return np.bincount(cell, weights=values, minlength=folds * levels).reshape(folds, levels)


def _mixed_means(sums: np.ndarray, rows: np.ndarray, overall: np.ndarray, m: np.ndarray) -> np.ndarray:
    """(sums + m overall) / (rows + m): means of the levels, drawn to the overall mean; all the way for infinite m."""
    share = 1.0 / (1.0 + rows / m)
    return share * overall + (1.0 - share) * sums / np.maximum(rows, 1e-300)


def _mixing(
    sums: np.ndarray, rows: np.ndarray, target: np.ndarray, weight: np.ndarray, level: np.ndarray
) -> np.ndarray:
    """(C,) variance within categories over variance between them, in rows: how much a single row tells.

    Moments of the one-way random effects model; infinite where the categories explain nothing, at least 1.
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


def _target(y: Any, task: str) -> np.ndarray:
    """(n, C) float64 target for encodings: standardised values, one indicator for two classes, else one a class."""
    y = np.asarray(y)
    if task == "regression":
        values = y.reshape(-1).astype(np.float64)
        values = values / (np.abs(values).max() or 1.0)
        values = values - values.mean()
        return (values / (values.std() or 1.0))[:, None]
    if y.ndim == 2 and y.shape[1] > 1:
        y = y.argmax(axis=1)
    classes, labels = np.unique(y.reshape(-1), return_inverse=True)
    onehot = np.eye(len(classes))[labels]
    return onehot[:, 1:] if len(classes) == 2 else onehot


# --- dates

DATE_PARTS = {
    "year": lambda t: t.astype("datetime64[Y]").astype(np.int64) + 1970,
    "month": lambda t: t.astype("datetime64[M]").astype(np.int64) % 12 + 1,
    "day": lambda t: (t.astype("datetime64[D]") - t.astype("datetime64[M]")).astype(np.int64) + 1,
    "weekday": lambda t: (t.astype("datetime64[D]").astype(np.int64) + 3) % 7,  # 1 January 1970 was a Thursday
    "hour": lambda t: (t - t.astype("datetime64[D]")).astype(np.int64) / 3.6e9,
}
DAY = 8.64e10  # microseconds


def _fit_date(moments: np.ndarray, name: str) -> dict[str, Any]:
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
NGRAMS = (3, 4, 5)


def _fit_text(column: pd.Series, name: str, seed: int) -> dict[str, Any]:
    """Inverse document frequencies of n-grams and the leading right singular vectors of the TF-IDF matrix."""
    occurrences, words = _words(column.iloc[:: -(-len(column) // SAMPLE_ROWS) or 1])
    counts = ngram_counts(words)
    n = occurrences.shape[0]
    idf = np.log((1 + n) / (1 + (occurrences @ counts).getnnz(axis=0))) + 1.0
    weighted, length = _weigh(counts, idf)
    rows = (occurrences @ weighted).tocsr()
    rows.data /= np.repeat(_lengths(occurrences, length), np.diff(rows.indptr))
    number = max(1, min(n - 1, int(np.clip(len(column) // 200, *COMPONENTS))))
    with threadpool_limits(1):  # the same numbers whatever the machine; small products lose by threads
        _, _, vectors = randomized_svd(rows, number, n_iter=4, random_state=seed)
    return {"name": name, "idf": idf, "components": np.ascontiguousarray(vectors.T)}


def text_components(column: pd.Series, idf: np.ndarray, components: np.ndarray) -> np.ndarray:
    """(n, k) texts in the directions of `components`.

    n-grams lie within a word, so a text is the sum of its words: each word is projected once.
    """
    occurrences, words = _words(column)
    weighted, length = _weigh(ngram_counts(words), idf)
    return (occurrences @ (weighted @ components)) / _lengths(occurrences, length)[:, None]


def _words(column: pd.Series) -> tuple[sp.csr_matrix, list[str]]:
    """(n, words) how often each text holds each word, and the words."""
    index: dict[str, int] = {}
    positions: list[int] = []
    ends = [0]
    for text in column.to_numpy(object):
        if isinstance(text, str):
            positions += [index.setdefault(word, len(index)) for word in text[:LONGEST_TEXT].lower().split()]
        ends.append(len(positions))
    shape = (len(ends) - 1, max(1, len(index)))
    occurrences = sp.csr_matrix((np.ones(len(positions)), positions, ends), shape=shape)
    occurrences.sum_duplicates()
    return occurrences, list(index) or [""]


def _weigh(counts: sp.csr_matrix, idf: np.ndarray) -> tuple[sp.csr_matrix, np.ndarray]:
    """Counts times idf, and the squared length of each word."""
    weighted = counts.copy()
    weighted.data *= idf[weighted.indices]
    return weighted, np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel()


def _lengths(occurrences: sp.csr_matrix, length: np.ndarray) -> np.ndarray:
    """Length of each text, were all its words orthogonal; 1 for an empty one."""
    total = np.sqrt(occurrences @ length)
    return np.where(total == 0, 1.0, total)


def ngram_counts(words: Sequence[str]) -> sp.csr_matrix:
    """(words, BUCKETS) hashed counts of the character 3- to 5-grams of each word with a blank on either side.

    All words stand in one array of code points, and the hash of every position is one expression.
    """
    padded = [f" {word} " for word in words]
    points = np.frombuffer("".join(padded).encode("utf-32-le", "replace"), dtype=np.uint32)
    owner = np.repeat(np.arange(len(padded), dtype=np.int32), [len(word) for word in padded])
    starts = [_ngram_starts(owner, n) for n in NGRAMS]
    rows = np.concatenate([owner[start] for start in starts])
    buckets = np.concatenate([_hash(points, start, n) for start, n in zip(starts, NGRAMS)])
    counts = sp.csr_matrix((np.ones(len(rows)), (rows, buckets)), shape=(len(words), BUCKETS))
    counts.sum_duplicates()
    return counts


def _ngram_starts(owner: np.ndarray, n: int) -> np.ndarray:
    """Positions where n characters of one word begin."""
    if len(owner) < n:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(owner[: len(owner) - n + 1] == owner[n - 1 :])


def _hash(points: np.ndarray, start: np.ndarray, n: int) -> np.ndarray:
    """Bucket of the n-gram at each start: a polynomial in the code points modulo 2^64, its high bits."""
    h = np.full(len(start), n, dtype=np.uint64)
    for k in range(n):
        h = (h + points[start + k]) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return (h >> np.uint64(52)).astype(np.int32)


# --- gaps and scale


def _fit_gaps(view: View, matrix: np.ndarray) -> np.ndarray:
    """Medians for all columns (a gap may come later), indicators for those with gaps now."""
    sample = matrix[:: -(-len(matrix) // SAMPLE_ROWS) or 1]
    missing = _columns_with_gaps(matrix)
    view.fill = np.median(sample, axis=0) if not len(missing) else _medians(matrix, sample, missing)
    view.gaps = missing if not view.dates else _leading(view, missing)
    if view.features:
        view.features += tuple(f"{view.features[j]} missing" for j in view.gaps)
    return fill_gaps(matrix, view.fill, view.gaps)


def _columns_with_gaps(matrix: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = np.flatnonzero(~np.isfinite(matrix.sum(axis=0)))
    return np.array([j for j in suspects if np.isnan(matrix[:, j]).any()], dtype=np.intp)


def _medians(matrix: np.ndarray, sample: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Medians of what is there; 0 for a column that is empty in these rows."""
    fill = np.zeros(matrix.shape[1])
    whole = np.setdiff1d(np.arange(matrix.shape[1]), missing)
    fill[whole] = np.median(sample[:, whole], axis=0)
    for j in missing:
        seen = matrix[~np.isnan(matrix[:, j]), j]
        fill[j] = np.median(seen) if len(seen) else 0.0
    return fill


def _leading(view: View, missing: np.ndarray) -> np.ndarray:
    """All parts of a date are missing together: one indicator is enough."""
    start = len(view.numbers)
    later: list[int] = []
    for date in view.dates:
        later += range(start + 1, start + len(date["parts"]))
        start += len(date["parts"])
    return np.setdiff1d(missing, later).astype(np.intp)


def fill_gaps(matrix: np.ndarray, fill: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    """NaN replaced by `fill`, and a 0/1 column for each of `gaps`; the matrix itself when there is nothing to do."""
    missing = _columns_with_gaps(matrix)
    if not len(missing) and not len(gaps):
        return matrix
    n, p = matrix.shape
    out = np.empty((n, p + len(gaps)))
    out[:, :p] = matrix
    for i, j in enumerate(gaps):
        out[:, p + i] = np.isnan(matrix[:, j])
    for j in missing:
        out[np.isnan(out[:, j]), j] = fill[j]
    return out


def _fit_scale(view: View, matrix: np.ndarray, weight: np.ndarray | None, overwrite: bool) -> np.ndarray:
    """Units first, so that no square overflows; constant columns keep a spread of one and become zero."""
    counted = matrix if weight is None or (weight > 0).all() else matrix[weight > 0]
    high, low = counted.max(axis=0), counted.min(axis=0)
    view.unit = np.maximum(np.abs(high), np.abs(low))
    view.unit[view.unit == 0] = 1.0
    scaled = np.divide(matrix, view.unit, out=matrix if overwrite else None)
    share = None if weight is None else weight / weight.sum()
    view.centre = scaled.mean(axis=0) if share is None else share @ scaled
    view.centre = np.where(high == low, high / view.unit, view.centre)
    scaled -= view.centre
    share = np.full(len(scaled), 1 / len(scaled)) if share is None else share
    squares = np.einsum("i,ij,ij->j", share, scaled, scaled)  # no copy of the matrix
    view.spread = np.where((high == low) | (squares == 0), 1.0, np.sqrt(squares))
    scaled /= view.spread
    return np.clip(scaled, -FARTHEST, FARTHEST, out=scaled)


def standardise(
    matrix: np.ndarray, unit: np.ndarray, centre: np.ndarray, spread: np.ndarray, *, overwrite: bool
) -> np.ndarray:
    """(matrix / unit - centre) / spread, cut at +-FARTHEST."""
    with np.errstate(over="ignore"):
        scaled = np.divide(matrix, unit, out=matrix if overwrite else None)
        scaled -= centre
        scaled /= spread
    return np.clip(scaled, -FARTHEST, FARTHEST, out=scaled)


def column_tops(X: Any) -> np.ndarray:
    """Largest absolute value of each column; 0 where there is none."""
    if not sp.issparse(X):
        return np.nan_to_num(np.maximum(np.fmax.reduce(X, axis=0), -np.fmin.reduce(X, axis=0)))
    top = np.zeros(X.shape[1])
    np.maximum.at(top, X.indices, np.abs(X.data))
    return top


def extreme_units(top: np.ndarray) -> np.ndarray | None:
    """What to divide columns by whose numbers 32 bits do not hold; None where all are held."""
    extreme = (top > LARGEST) | ((top > 0) & (top < 1 / LARGEST))
    return np.where(extreme, top, 1.0) if extreme.any() else None


def within_range(matrix: np.ndarray, unit: np.ndarray | None) -> np.ndarray:
    """The matrix in these units, cut at +-LARGEST; itself when there is nothing to do."""
    with np.errstate(over="ignore"):
        matrix = matrix if unit is None else matrix / unit
    return np.clip(matrix, -LARGEST, LARGEST) if largest(matrix) > LARGEST else matrix


def divide_columns(X: Any, unit: np.ndarray | None, most: float) -> sp.csr_matrix:
    """A sparse matrix with every column divided by its unit, still csr, cut at +-most; itself if that is the same."""
    with np.errstate(over="ignore"):
        data = X.data if unit is None else X.data / unit[X.indices]
    if data is X.data and largest(data) <= most:
        return X
    return sp.csr_matrix((np.clip(data, -most, most), X.indices, X.indptr), shape=X.shape)
