"""The views of a canonical table that specialists ask for, fitted on training rows alone.

    native    categories as codes and missing values as NaN, for learners that handle both
    ordinal   no missing values: medians and indicators; categories by their cross-fitted mean target
    pairs     missing values as NaN; categories by mean targets per class and frequencies, crosses, pairs of numbers
    scaled    no missing values, one-hot or target-encoded categories, every column standardised

Columns of a view stand in the order numbers, dates, texts, categories, indicators of missing values, pairs.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd
import scipy.sparse as sp

from softlearning.data import encodings
from softlearning.data.encodings import Lookup, TargetEncoder, encoding_target, levels_of
from softlearning.data.inputs import largest
from softlearning.data.pairs import arithmetic, choose_crosses, choose_pairs
from softlearning.data.schema import NUMBERS, Column, Schema

VIEWS = ("native", "ordinal", "pairs", "scaled")

SAMPLE_ROWS = 10_000  # medians need no more rows than this
LARGEST = 1e30  # trees hold numbers in 32 bits: larger ones are cut, columns of larger or far smaller ones rescaled
FARTHEST = 1e6  # standardised values are cut here, so that no specialist overflows
MANY_ROWS = 20_000  # from here on a view of a frame is held in 32 bits where that loses nothing
FINE = 1e-4  # standard deviation over largest value from which 32 bits lose nothing


class View:
    """A fitted view: `transform` maps a canonical table to a matrix of floats (or csr).

    name         one of `VIEWS`
    categorical  positions of the columns that hold integer category codes (native view only): 0..m-1 by falling
                 frequency in the training rows, m = not seen there, NaN = missing
    levels       number of codes of each of these columns, the one for the unseen included
    features     names of the columns of the matrix; empty for arrays and sparse matrices
    dtype        "float64" or "float32"
    """

    def __init__(self, name: str):
        self.name = name
        self.categorical: tuple[int, ...] = ()
        self.levels: tuple[int, ...] = ()
        self.features: tuple[str, ...] = ()
        self.dtype = "float64"
        self.numbers: list[str] = []
        self.dates: list[dict[str, Any]] = []  # name, parts, origin (days)
        self.texts: list[dict[str, Any]] = []  # name, idf (buckets,), components (buckets, k)
        self.lookups: list[Lookup] = []  # categories and crosses
        self.fill: np.ndarray | None = None  # (p,) what stands for NaN
        self.missing: np.ndarray | None = None  # columns that get an indicator of NaN
        self.unit: np.ndarray | None = None  # (p,) largest absolute value, or 1
        self.centre: np.ndarray | None = None  # (p,) mean, in units
        self.spread: np.ndarray | None = None  # (p,) standard deviation, in units
        self.pairs: list[tuple[str, int, int]] = []  # operation and two positions

    def transform(self, X: Any) -> Any:
        """Matrix of a canonical table, rows unseen in training."""
        if sp.issparse(X):
            return divide_columns(X, self.unit, FARTHEST if self.name == "scaled" else LARGEST)
        matrix = X if isinstance(X, np.ndarray) else self.columns(X)
        if self.fill is not None and self.missing is not None:
            matrix = fill_missing(matrix, self.fill, self.missing)
        if self.name == "scaled":
            return standardise(matrix, self, overwrite=matrix is not X)
        return self.finish(within_range(matrix, self.unit))

    def columns(self, X: pd.DataFrame) -> np.ndarray:
        """Numbers, dates, texts and categories of a canonical frame, missing values still NaN."""
        blocks = [(1, lambda name=name: X[[name]].to_numpy(np.float64)) for name in self.numbers]
        blocks += [
            (len(d["parts"]), lambda d=d: encodings.date_parts(X[d["name"]].to_numpy(), d["parts"], d["origin"]))
            for d in self.dates
        ]
        blocks += [
            (t["components"].shape[1], lambda t=t: encodings.text_components(X[t["name"]], t["idf"], t["components"]))
            for t in self.texts
        ]
        blocks += [(len(k["features"]), lambda k=k: encodings.look_up(X, k)) for k in self.lookups]
        return side_by_side(len(X), blocks)

    def finish(self, matrix: np.ndarray) -> np.ndarray:
        """The pairs beside the columns, in the view's precision."""
        narrow = matrix.astype(self.dtype, copy=False)
        return np.hstack([narrow, arithmetic(matrix, self.pairs, LARGEST)]) if self.pairs else narrow


def side_by_side(rows: int, blocks: list[tuple[int, Any]]) -> np.ndarray:
    """Blocks of so many columns, each made when it is its turn: there is one copy of them, and one block beside it."""
    out = np.empty((rows, sum(width for width, _ in blocks)))
    start = 0
    for width, make in blocks:
        out[:, start : start + width] = make()
        start += width
    return out


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
    X : canonical table of the training rows, as `validate` returned it
    y : (n,) labels or values, or (n, C) one-hot target
    task : "classification" or "regression"

    Returns
    -------
    The view and the (n, p) matrix of the training rows, in which no row's target encoding has seen its own target.
    Where nothing is to be done (numbers without missing values; native, ordinal), the matrix is X itself.
    """
    if name not in VIEWS:
        raise ValueError(f"there is no view {name!r}; the views are {', '.join(VIEWS)}")
    view = View(name)
    if sp.issparse(X):
        top = column_tops(X)
        view.unit = np.where(top == 0, 1.0, top) if name == "scaled" else extreme_units(top)
        return view, view.transform(X)
    weight = np.ones(len(X)) if sample_weight is None else sample_weight / sample_weight.max()
    target = encoding_target(y, task)
    matrix = X if isinstance(X, np.ndarray) else _fit_columns(view, schema, X, TargetEncoder(target, weight, seed))
    if name in ("ordinal", "scaled"):
        matrix = _fit_missing(view, matrix)
    if name == "scaled":
        return view, _fit_scale(view, matrix, sample_weight, overwrite=matrix is not X)
    view.unit = extreme_units(column_tops(matrix))
    matrix = within_range(matrix, view.unit)
    if name == "pairs":
        _fit_pairs(view, matrix, target, weight)
    elif matrix is X:  # "itself" says that held-out rows need nothing either
        return view, X.copy() if (name == "ordinal" and schema.missing) or schema.largest > LARGEST else X
    if name == "pairs" or (len(matrix) >= MANY_ROWS and fits_32_bits(matrix)):
        view.dtype = "float32"
    return view, view.finish(matrix)


# --- columns of a frame


def _fit_columns(view: View, schema: Schema, X: pd.DataFrame, encoder: TargetEncoder) -> np.ndarray:
    """Fit dates, texts and lookups; the matrix of the training rows, missing values still NaN."""
    of_type = lambda *types: [column.name for column in schema.kept if column.type in types]
    view.numbers = of_type(*NUMBERS)
    view.dates = [encodings.fit_date(X[name].to_numpy(), name) for name in of_type("date")]
    view.texts = [encodings.fit_text(X[name], name, int(encoder.seed)) for name in of_type("text")]
    fitted = _fit_lookups(view.name, [column for column in schema.kept if column.type == "category"], X, encoder)
    view.lookups = [lookup for lookup, _ in fitted]
    _name_features(view)
    matrix = view.columns(X)
    start = matrix.shape[1] - sum(len(lookup["features"]) for lookup in view.lookups)
    for lookup, crossed in fitted:
        if crossed is not None:
            matrix[:, start : start + crossed.shape[1]] = crossed
        start += len(lookup["features"])
    return matrix


def _fit_lookups(
    view: str, columns: list[Column], X: pd.DataFrame, encoder: TargetEncoder
) -> list[tuple[Lookup, np.ndarray | None]]:
    """Each category's lookup, and what stands in its place for the training rows; then the crosses."""
    levels = [levels_of(X, [column.name]) for column in columns]
    fitted = [_fit_lookup(view, column, level, encoder) for column, level in zip(columns, levels)]
    if view == "pairs":
        chosen = choose_crosses(levels, encoder.target, encoder.weight)
        fitted += [encoder.cross(X, columns[a], columns[b]) for a, b in chosen]
    return fitted


def _fit_lookup(
    view: str, column: Column, level: np.ndarray, encoder: TargetEncoder
) -> tuple[Lookup, np.ndarray | None]:
    if view == "native":
        return encodings.native_lookup(column, level), None
    if column.many or (view == "pairs" and not column.ordered):
        return encoder.lookup((column.name,), level, len(column.categories) + 2)
    if view == "scaled":
        return encodings.one_hot_lookup(column, level), None
    if column.ordered:
        return encodings.order_lookup(column), None
    return encoder.single(column, level)


def _name_features(view: View) -> None:
    names = list(view.numbers)
    names += [f"{d['name']}:{part}" for d in view.dates for part in d["parts"]]
    names += [f"{t['name']}:text{k}" for t in view.texts for k in range(t["components"].shape[1])]
    if view.name == "native":
        view.categorical = tuple(range(len(names), len(names) + len(view.lookups)))
        view.levels = tuple(lookup["levels"] for lookup in view.lookups)
    names += [feature for lookup in view.lookups for feature in lookup["features"]]
    view.features = tuple(names)


def _fit_pairs(view: View, matrix: np.ndarray, target: np.ndarray, weight: np.ndarray) -> None:
    """Pairs of number columns, by position; of an array, of any columns."""
    width = len(view.numbers) if view.features else matrix.shape[1]
    view.pairs = choose_pairs(matrix, range(width), target, weight)
    if view.features:
        view.features += tuple(f"{view.features[a]} {o} {view.features[b]}" for o, a, b in view.pairs)


def fits_32_bits(matrix: np.ndarray) -> bool:
    """Whether no column's values are so close together, far from zero, that 32 bits would merge them."""
    sample = matrix[:: max(1, len(matrix) // SAMPLE_ROWS)]
    with np.errstate(all="ignore"):
        spread = np.nanstd(sample, axis=0)
        return bool((~(spread > 0) | (spread >= FINE * np.nanmax(np.abs(sample), axis=0))).all())


# --- missing values and scale


def _fit_missing(view: View, matrix: np.ndarray) -> np.ndarray:
    """Medians for all columns (a missing value may come later), indicators for those with missing values now.

    Columns that are missing in the same rows, such as the parts of a date, share one indicator.
    """
    view.fill = _medians(matrix[:: -(-len(matrix) // SAMPLE_ROWS) or 1])
    patterns: dict[bytes, int] = {}
    for j in _columns_with_missing(matrix):
        patterns.setdefault(np.packbits(np.isnan(matrix[:, j])).tobytes(), j)
    view.missing = np.array(list(patterns.values()), dtype=np.intp)
    if view.features:
        view.features += tuple(f"{view.features[j]} missing" for j in view.missing)
    return fill_missing(matrix, view.fill, view.missing)


def _columns_with_missing(matrix: np.ndarray) -> list[int]:
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = np.flatnonzero(~np.isfinite(matrix.sum(axis=0)))
    return [int(j) for j in suspects if np.isnan(matrix[:, j]).any()]


def _medians(sample: np.ndarray) -> np.ndarray:
    """Medians of what is there; 0 for a column that is empty in these rows."""
    fill = np.median(sample, axis=0)
    for j in np.flatnonzero(np.isnan(fill)):
        seen = sample[~np.isnan(sample[:, j]), j]
        fill[j] = np.median(seen) if len(seen) else 0.0
    return fill


def fill_missing(matrix: np.ndarray, fill: np.ndarray, told: np.ndarray) -> np.ndarray:
    """NaN replaced by `fill`, and a 0/1 column for each of `told`; the matrix itself when there is nothing to do."""
    missing = _columns_with_missing(matrix)
    if not len(missing) and not len(told):
        return matrix
    n, p = matrix.shape
    out = np.empty((n, p + len(told)))
    out[:, :p] = matrix
    out[:, p:] = np.isnan(matrix[:, told])
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
    share = np.full(len(scaled), 1 / len(scaled)) if weight is None else weight / weight.sum()
    view.centre = np.where(high == low, high / view.unit, share @ scaled)
    scaled -= view.centre
    squares = np.einsum("i,ij,ij->j", share, scaled, scaled)  # no copy of the matrix
    view.spread = np.where((high == low) | (squares == 0), 1.0, np.sqrt(squares))
    scaled /= view.spread
    return np.clip(scaled, -FARTHEST, FARTHEST, out=scaled)


def standardise(matrix: np.ndarray, view: View, *, overwrite: bool) -> np.ndarray:
    """(matrix / unit - centre) / spread, cut at +-FARTHEST."""
    with np.errstate(over="ignore"):
        scaled = np.divide(matrix, cast(np.ndarray, view.unit), out=matrix if overwrite else None)
        scaled -= view.centre
        scaled /= view.spread
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
