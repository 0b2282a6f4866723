"""What a table holds: say what every column is, and let only what fits through one gate.

    read_table(path) -> pandas frame        understand(X)  -> Schema
    admit(schema, X) -> canonical table     guess_task(y)  -> Guess

A canonical table is a C-contiguous float64 array (NaN = missing), a csr float64 matrix, or a pandas frame whose
columns are float64, Categorical (fitted categories and a bucket for the unseen), datetime64[us] or str.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd
import scipy.sparse as sp

from softlearning.data.files import read_table
from softlearning.data.inputs import (
    checked_sparse,
    count_gaps,
    first_infinity,
    frame_or_array,
    has_names,
    is_frame,
    is_table,
    largest,
    numbered_frame,
)
from softlearning.data.messages import nearest
from softlearning.data.values import (
    MISSING_MARKS,
    Cells,
    as_words,
    date_style,
    number_style,
    parse_dates,
    parse_number,
    read_cells,
)

__all__ = [
    "KINDS",
    "Column",
    "Guess",
    "Schema",
    "admit",
    "describe",
    "guess_task",
    "is_table",
    "read_table",
    "summary",
    "understand",
]

KINDS = {
    "numeric": "numeric",
    "boolean": "yes/no",
    "category": "category",
    "high_cardinality": "category with many values",
    "datetime": "date",
    "text": "text",
    "constant": "constant",
    "all_missing": "empty",
    "identifier": "identifier",
}  # kind -> the word for it in a sentence
DROPPED = ("constant", "all_missing", "identifier")  # kinds that no specialist sees
NUMBERS = ("numeric", "boolean")  # kinds held as float64

LOW_CARDINALITY = 20  # up to here a category is one-hot material
MAX_CATEGORIES = 10_000  # rarer categories share the bucket of the unseen
WIDE = 1000  # frames of floats with more columns are looked at all at once
SAME, EMPTY = "every cell is the same", "every cell is missing"
ENOUGH_ROWS = 20  # fewer rows cannot tell an identifier from a measurement


@dataclass(frozen=True)
class Column:
    """What one column is and how its cells are read."""

    name: str
    kind: str
    reason: str = ""
    missing: int = 0
    distinct: int | None = None
    categories: tuple[str, ...] = ()  # most frequent first, or in the given order when `ordered`
    bucket: str = ""  # name of the category for what was not seen
    ordered: bool = False
    style: str = "plain"  # how strings become numbers or dates; "span" for durations (seconds)
    low: float | None = None
    high: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the specialists see this column."""
        return self.kind not in DROPPED

    @cached_property
    def codes(self) -> dict[str, int]:
        """Position of each category."""
        return {category: code for code, category in enumerate(self.categories)}

    @cached_property
    def dtype(self) -> pd.CategoricalDtype:
        """Pandas type of a category column: the fitted categories, then the bucket."""
        return pd.CategoricalDtype([*self.categories, self.bucket])


@dataclass(frozen=True)
class Schema:
    """What a table is: plain data, so that it can be written as JSON.

    form     "array" (the canonical table is a float64 array), "sparse" (csr) or "table" (a pandas frame)
    columns  one entry a column; empty for numeric arrays and sparse matrices, where all are numeric and kept
    """

    form: str
    rows: int
    width: int
    missing: int = 0
    named: bool = False
    columns: tuple[Column, ...] = ()
    largest: float = 0.0  # largest absolute number in the table

    @cached_property
    def kept(self) -> tuple[Column, ...]:
        """The columns that specialists see, in canonical order."""
        return tuple(column for column in self.columns if column.kept)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the canonical columns."""
        if self.columns:
            return tuple(column.name for column in self.kept)
        return tuple(f"x{j}" for j in range(self.width))

    @property
    def categorical(self) -> bool:
        """Whether any canonical column is a category."""
        return any(column.categories for column in self.kept)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` wrote."""
        columns = tuple(Column(**{**c, "categories": tuple(c["categories"])}) for c in data["columns"])
        return cls(**{**data, "columns": columns})


@dataclass(frozen=True)
class Guess:
    """A guessed task and the reason in words."""

    task: str
    reason: str


# --- understanding


def understand(X: Any, kinds: Mapping[str, str] | None = None) -> Schema:
    """Say what every column of X is.

    Parameters
    ----------
    X : array, sparse matrix, pandas or polars frame (any eager frame that narwhals knows), or list of rows
    kinds : column name -> kind, where the user overrules the guess. A kind is one of `KINDS`;
        "datetime:%d/%m/%Y" also says how dates are read, "numeric:comma" how numbers are.

    Numeric arrays are looked at only for gaps: none of their columns is ever dropped.
    """
    if sp.issparse(X):
        matrix = checked_sparse(X, least_rows=1)
        return Schema("sparse", matrix.shape[0], matrix.shape[1], largest=largest(matrix.data))
    data = frame_or_array(X, least_rows=1)
    if isinstance(data, pd.DataFrame):
        return _understand_frame(data, dict(kinds or {}), has_names(X))
    if kinds:
        return _understand_frame(numbered_frame(data), dict(kinds), named=False)
    return Schema("array", data.shape[0], data.shape[1], missing=count_gaps(data), largest=largest(data))


def _understand_frame(frame: pd.DataFrame, kinds: dict[str, str], named: bool) -> Schema:
    _check_kinds(kinds, list(frame.columns))
    if not kinds and _is_wide(frame):
        columns = _understand_wide(frame)
    else:
        series = cast(Iterable[tuple[str, pd.Series]], frame.items())
        columns = tuple(_understand_column(read_cells(s, name), name, kinds.get(name)) for name, s in series)
    kept = [column for column in columns if column.kept]
    if not kept:
        reasons = "; ".join(f"`{c.name}`: {c.reason}" for c in columns[:5])
        raise ValueError(f"no column carries information ({reasons}); keep one with kinds={{name: 'numeric'}}")
    form = "array" if all(column.kind in NUMBERS for column in kept) else "table"
    missing = sum(column.missing for column in columns)
    top = max((max(abs(c.low), abs(c.high)) for c in kept if c.low is not None and c.high is not None), default=0.0)
    return Schema(form, len(frame), frame.shape[1], missing, named, columns, top)


def _is_wide(frame: pd.DataFrame) -> bool:
    """Many columns and all of them floats: worth looking at all at once."""
    return frame.shape[1] > WIDE and all(dtype == np.float64 for dtype in frame.dtypes)


def _understand_wide(frame: pd.DataFrame) -> tuple[Column, ...]:
    """What `_guess` says of float columns, without a loop over their cells."""
    data = frame.to_numpy()
    _refuse_infinity(data, frame.columns)
    missing = np.isnan(data).sum(axis=0)
    low, high = np.fmin.reduce(data, axis=0), np.fmax.reduce(data, axis=0)
    same = (low == high) & (missing == 0) & (len(data) > 1)
    reasons = {"numeric": "stored as numbers", "constant": SAME, "all_missing": EMPTY}
    kinds = np.where(missing == len(data), "all_missing", np.where(same, "constant", "numeric")).tolist()
    facts = zip(frame.columns, kinds, missing.tolist(), low.tolist(), high.tolist())
    return tuple(
        Column(name, kind, reasons[kind], gaps, low=lo, high=hi)
        if kind == "numeric"
        else Column(name, kind, reasons[kind], gaps, distinct=1 if kind == "constant" else None)
        for name, kind, gaps, lo, hi in facts
    )


def _refuse_infinity(data: np.ndarray, names: Any) -> None:
    bad = first_infinity(data)
    if bad is not None:
        raise ValueError(_infinity(names[bad[1]], bad[0]))


def _infinity(name: str, row: int) -> str:
    return f"column `{name}`, row {row}: infinity; give a number or leave the cell empty"


def _check_kinds(kinds: Mapping[str, str], names: Sequence[str]) -> None:
    for name, kind in kinds.items():
        if name not in names:
            raise ValueError(f"kinds names {name!r}, which is no column of the table; {nearest(name, names)}")
        base = str(kind).split(":")[0]
        if base not in KINDS:
            raise ValueError(f"kinds[{name!r}] is {kind!r}, which is no kind of column; {nearest(base, KINDS)}")


def _understand_column(cells: Cells, name: str, asked: str | None) -> Column:
    """The asked kind, or the guessed one."""
    if asked is None:
        return _guess(cells, name)
    kind, _, style = asked.partition(":")
    if kind in DROPPED:
        return Column(name, kind, "dropped on request", missing=cells.missing)
    make = {"numeric": _as_numeric, "boolean": _as_numeric, "datetime": _as_date, "text": _as_text}
    return make.get(kind, _as_category)(cells, name, "as told", kind=kind, style=style)


def _guess(cells: Cells, name: str) -> Column:
    if cells.missing == cells.rows:
        return Column(name, "all_missing", EMPTY, missing=cells.missing)
    if cells.form == "values":
        return _guess_values(cells, name)
    if _is_constant(cells):
        return Column(name, "constant", SAME, distinct=1)
    if cells.form == "time":
        return _as_date(cells, name, "stored as dates")
    if cells.whole and (reason := _row_number(cells.data, name)):
        return Column(name, "identifier", reason, distinct=cells.rows)
    kind = "boolean" if cells.form == "flag" else "numeric"
    return _as_numeric(cells, name, "stored as numbers", kind=kind)


def _guess_values(cells: Cells, name: str) -> Column:
    """Strings and mixed objects: numbers, dates, true/false, identifiers, text, categories, in this order."""
    words = cells.filled
    if _is_constant(cells):
        return Column(name, "constant", SAME, distinct=1)
    if cells.categorical:
        return _as_category(cells, name, "stored as a category")
    if style := number_style(words):
        return _guess_numbers(cells, name, style)
    if style := date_style(words):
        return _as_date(cells, name, f"strings read as dates ({style})", style=style)
    if {word.casefold() for word in words} == {"true", "false"}:
        return _as_numeric(cells, name, "strings true and false", kind="boolean")
    if reason := _code_like(words, cells, name):
        return Column(name, "identifier", reason, missing=cells.missing, distinct=len(words))
    if _is_prose(words, cells):
        return _as_text(cells, name, "several words a cell, seldom repeated")
    return _as_category(cells, name, f"{len(words)} distinct values")


def _guess_numbers(cells: Cells, name: str, style: str) -> Column:
    """A column of strings that all read as numbers is judged as numbers are."""
    data = _read_numbers(cells, Column(name, "numeric", style=style))
    whole = bool(np.all(np.isnan(data) | (data == np.floor(data))))
    column = _guess(Cells("number", data, whole=whole), name)
    if column.kind != "numeric":
        return column
    return _as_numeric(cells, name, f"strings read as numbers ({style})", style=style)


def _is_constant(cells: Cells) -> bool:
    """One value in every cell; a single row tells nothing."""
    return cells.rows > 1 and not cells.missing and bool((cells.data == cells.data[0]).all())


TIME_WORDS = frozenset(
    ("year", "years", "month", "week", "day", "date", "time", "hour", "quarter", "step", "period", "epoch", "age", "t")
)
ID_WORDS = frozenset(
    ("id", "ids", "idx", "index", "key", "uuid", "guid", "row", "rownames", "unnamed", "record", "nr", "no", "number")
)


def _name_words(name: str) -> set[str]:
    """`PassengerId` and `passenger_id` are both passenger and id."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+", name)}


def _row_number(data: np.ndarray, name: str) -> str:
    """Why unique whole numbers look like row numbers or keys; empty when they may measure something.

    A running sequence from 0 or 1, or any unique whole numbers under a name such as `id`. A name that speaks of
    time is left alone: a trend is information.
    """
    n = len(data)
    words = _name_words(name)
    if n < ENOUGH_ROWS or (words & TIME_WORDS and not words & ID_WORDS) or np.isnan(data).any():
        return ""
    running = data.min() in (0, 1) and data.max() - data.min() == n - 1
    if not (running or words & ID_WORDS) or len(np.unique(data)) < n:
        return ""
    return "looks like an identifier: " + ("a running number" if running else "unique numbers, and the name")


def _code_like(words: Sequence[str], cells: Cells, name: str) -> str:
    """Why unique strings look like keys: one token each, and a common shape with digits or a telling name."""
    unique = len(words) == cells.rows - cells.missing and len(words) >= ENOUGH_ROWS
    if not unique or any(" " in word for word in words):
        return ""
    if _name_words(name) & ID_WORDS:
        return "looks like an identifier: unique strings, and the name"
    shapes = {re.sub(r"[A-Za-z]", "a", re.sub(r"\d", "9", word)) for word in words[:1000]}
    hexes = all(re.fullmatch(r"[0-9a-fA-F-]{8,}", word) for word in words[:1000])
    if hexes or (len(shapes) <= 3 and all("9" in shape for shape in shapes)):
        return "looks like an identifier: unique strings of one shape"
    return ""


def _is_prose(words: Sequence[str], cells: Cells) -> bool:
    """At least three words a cell and most cells different; shorter ones are names, and names are categories."""
    if len(words) <= LOW_CARDINALITY or 2 * len(words) < cells.rows - cells.missing:
        return False
    lengths = [len(word.split()) for word in words[:1000]]
    return sum(lengths) >= 3 * len(lengths)


def _as_numeric(cells: Cells, name: str, reason: str, *, kind: str = "numeric", style: str = "") -> Column:
    style = "span" if cells.form == "span" else style or number_style(cells.filled) or "plain"
    data = _read_numbers(cells, Column(name, kind, style=style))
    seen = data[~np.isnan(data)]
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (None, None)
    distinct = len(np.unique(seen)) if len(seen) <= 100_000 else None  # sorting a million cells tells little
    return Column(name, kind, reason, len(data) - len(seen), distinct, style=style, low=low, high=high)


def _as_date(cells: Cells, name: str, reason: str, *, kind: str = "datetime", style: str = "") -> Column:
    style = style or date_style(cells.filled) or "ISO8601"
    moments = _read_dates(cells, Column(name, kind, style=style))
    seen = moments[~np.isnat(moments)]
    return Column(name, kind, reason, len(moments) - len(seen), len(np.unique(seen)), style=style)


def _as_text(cells: Cells, name: str, reason: str, *, kind: str = "text", style: str = "") -> Column:
    cells = as_words(cells)
    return Column(name, kind, reason, cells.missing, len(cells.filled))


def _as_category(cells: Cells, name: str, reason: str, *, kind: str = "", style: str = "") -> Column:
    """Categories most frequent first (ties by name), so that a cap keeps the frequent ones."""
    cells = as_words(cells)
    counts = np.bincount(cells.data[cells.data >= 0], minlength=len(cells.words))
    present = [k for k, word in enumerate(cells.words) if word is not None and counts[k]]
    if not cells.ordered:
        present.sort(key=lambda k: (-counts[k], cast(str, cells.words[k])))
    categories = tuple(cast(str, cells.words[k]) for k in present[:MAX_CATEGORIES])
    kind = kind or ("category" if len(present) <= LOW_CARDINALITY else "high_cardinality")
    bucket = "(unseen)"
    while bucket in categories:
        bucket += "_"
    return Column(name, kind, reason, cells.missing, len(present), categories, bucket, ordered=cells.ordered)


# --- the gate


def admit(schema: Schema, X: Any) -> Any:
    """Bring X, for training or prediction, into the canonical table of the schema, or refuse it.

    Columns are matched by name where there are names: a missing one is an error, extra ones are ignored with one
    warning. A cell that does not fit is an error with column, row and value. No rows give an empty table.
    """
    if schema.form == "sparse":
        return _admit_sparse(schema, X)
    data = frame_or_array(cast(Any, X).toarray() if sp.issparse(X) else X)
    if not schema.columns:
        return _admit_array(schema, data)
    if not has_names(X):
        data = _named_by_position(schema, data)
    return _admit_frame(schema, cast(pd.DataFrame, data))


def _admit_array(schema: Schema, data: np.ndarray | pd.DataFrame) -> np.ndarray:
    """For a schema that was fitted on a numeric array: columns by position."""
    _check_width(data.shape[1], schema.width)
    if isinstance(data, np.ndarray):
        return data
    columns = [Column(name, "numeric") for name in data.columns]
    cells = (read_cells(series, str(name)) for name, series in data.items())
    return _stack(len(data), schema.width, map(_read_numbers, cells, columns))


def _check_width(width: int, expected: int) -> None:
    if width != expected:
        raise ValueError(f"X has {width} features, but the model is expecting {expected} features as input")


def _named_by_position(schema: Schema, data: np.ndarray | pd.DataFrame) -> pd.DataFrame:
    """Give an array the fitted names, where that cannot mislead: all columns numeric, or never named."""
    if schema.named and schema.form == "table":
        wanted = ", ".join(schema.names[:8])
        raise ValueError(f"the model was fitted on a table with named columns; give a frame with {wanted}")
    _check_width(data.shape[1], schema.width)
    names = [column.name for column in schema.columns]
    return pd.DataFrame(data, columns=names) if isinstance(data, np.ndarray) else data.set_axis(names, axis=1)


def _admit_frame(schema: Schema, frame: pd.DataFrame) -> np.ndarray | pd.DataFrame:
    _check_present(schema, dict.fromkeys(frame.columns))
    if schema.form == "array" and _is_wide(frame) and all(c.kind == "numeric" for c in schema.kept):
        data = np.ascontiguousarray(frame[list(schema.names)].to_numpy())
        _refuse_infinity(data, schema.names)
        return data
    series = dict(frame.items())
    columns = (_cast(c, read_cells(series[c.name], c.name)) for c in schema.kept)
    if schema.form == "array":
        return _stack(len(frame), len(schema.kept), columns)
    return pd.DataFrame(dict(zip(schema.names, columns)), copy=False)


def _check_present(schema: Schema, present: Mapping[Any, Any]) -> None:
    absent = [name for name in schema.names if name not in present]
    if absent:
        listed = ", ".join(f"`{name}` ({nearest(name, present)})" for name in absent[:5])
        more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
        raise ValueError(f"{len(absent)} column(s) missing: {listed}{more}")
    known = {column.name for column in schema.columns}
    extra = [name for name in present if name not in known]
    if extra:
        listed = ", ".join(f"`{name}`" for name in extra[:5])
        warnings.warn(f"{len(extra)} column(s) unknown to the model ignored: {listed}", stacklevel=4)


def _stack(rows: int, width: int, columns: Iterable[np.ndarray]) -> np.ndarray:
    """Columns side by side, filled one at a time: one copy of the data."""
    out = np.empty((rows, width))
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


def _cast(column: Column, cells: Cells) -> Any:
    """Cells as the fitted type, or an error with column, row and value."""
    if column.kind in NUMBERS:
        return _read_numbers(cells, column)
    if column.kind == "datetime":
        return _read_dates(cells, column)
    if column.kind == "text":
        return _read_text(cells)
    return _read_categories(cells, column)


def _read_numbers(cells: Cells, column: Column) -> np.ndarray:
    """Float64, NaN = missing; infinities are refused, and for a boolean all but 0 and 1."""
    if cells.form == "values":
        data = _numbers_from_words(cells, column)
    else:
        _check_unit(cells, column)
        data = cells.data if cells.form != "time" else np.full(cells.rows, np.nan)
    bad = np.isinf(data)
    if bad.any():
        raise ValueError(_infinity(column.name, int(bad.argmax())))
    if column.kind == "boolean":
        _check_flags(data, column.name)
    return data


def _check_flags(data: np.ndarray, name: str) -> None:
    other = ~(np.isnan(data) | (data == 0) | (data == 1))
    if other.any():
        row = int(other.argmax())
        raise ValueError(f"column `{name}`, row {row}: {data[row]:g} is neither true nor false")


def _check_unit(cells: Cells, column: Column) -> None:
    """Durations are seconds: they never stand for plain numbers, nor plain numbers for them; dates for neither."""
    wanted = "span" if column.style == "span" else "number"
    given = "number" if cells.form == "flag" else cells.form
    if given != wanted and cells.missing < cells.rows:
        words = {"span": "durations", "number": "numbers", "time": "dates"}
        raise ValueError(f"column `{column.name}`: holds {words[given]}, and {words[wanted]} are expected")


def _numbers_from_words(cells: Cells, column: Column) -> np.ndarray:
    values = np.full(len(cells.words) + 1, np.nan)  # the last is for code -1, missing
    flags = {"true": 1.0, "false": 0.0} if column.kind == "boolean" else {}
    style = "plain" if column.style == "span" else column.style
    for k, word in enumerate(cells.words):
        if word is None:
            continue
        try:
            flag = flags.get(word.casefold())
            values[k] = parse_number(word, style) if flag is None else flag
        except ValueError:
            if (cells.data == k).any():
                raise ValueError(_misfit(cells, column, k, "a number")) from None
    return values[cells.data]


def _misfit(cells: Cells, column: Column, k: int, wanted: str) -> str:
    row = int(np.argmax(cells.data == k))
    return f"column `{column.name}`, row {row}: {cells.words[k]!r} is not {wanted}"


def _read_dates(cells: Cells, column: Column) -> np.ndarray:
    """Datetime64[us], NaT = missing."""
    if cells.form == "time":
        return cells.data
    if cells.form != "values":
        if cells.missing == cells.rows:
            return np.full(cells.rows, "NaT", dtype="datetime64[us]")
        raise ValueError(f"column `{column.name}`: holds numbers, and dates are expected")
    words = ["" if word is None or word.casefold() in MISSING_MARKS else word for word in cells.words]
    moments = parse_dates(words, column.style)
    for k in np.flatnonzero(np.isnat(moments)):
        if words[k] and (cells.data == k).any():
            raise ValueError(_misfit(cells, column, int(k), f"a date ({column.style})"))
    return np.append(moments, np.datetime64("NaT"))[cells.data]


def _read_text(cells: Cells) -> pd.Series:
    cells = as_words(cells)
    words = np.array([*cells.words, None], dtype=object)
    return pd.Series(words[cells.data], dtype="str")


def _read_categories(cells: Cells, column: Column) -> pd.Categorical:
    """Known words get their code, others the bucket's, missing ones -1."""
    cells, bucket = as_words(cells), len(column.categories)
    code = [-1 if word is None else column.codes.get(word, bucket) for word in cells.words]
    return pd.Categorical.from_codes(np.array([*code, -1], dtype=np.intp)[cells.data], dtype=column.dtype)


def _admit_sparse(schema: Schema, X: Any) -> sp.csr_matrix:
    if not sp.issparse(X):
        data = frame_or_array(X)
        X = sp.csr_matrix(data if isinstance(data, np.ndarray) else _admit_array(schema, data))
    matrix = checked_sparse(X)
    _check_width(matrix.shape[1], schema.width)
    return matrix


# --- the task


def guess_task(y: Any) -> Guess:
    """Classification or regression, and why.

    Words, flags and two values are classes; numbers with a fraction are measured; whole numbers are classes when
    there are at most 20 of them and ten rows for each.
    """
    cells = read_cells(_target_column(y), "target")
    if cells.missing == cells.rows:
        raise ValueError("the target has no values")
    if cells.form == "time":
        raise ValueError("the target holds dates; predict a number or a class instead")
    if cells.form == "flag":
        return Guess("classification", "true or false")
    style = "" if cells.categorical else number_style(cells.filled)
    if cells.form == "values" and not style:
        return Guess("classification", f"words, {_distinct(len(cells.filled))}")
    data = _read_numbers(cells, Column("target", "numeric", style="span" if cells.form == "span" else style or "plain"))
    return _guess_from_numbers(data[~np.isnan(data)])


def _target_column(y: Any) -> pd.Series:
    if isinstance(y, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        return pd.Series(y)
    if is_frame(y):
        y = cast(pd.DataFrame, frame_or_array(y)).to_numpy(object)
    values = np.asarray(y if not hasattr(y, "to_list") else y.to_list())
    return pd.Series(values.ravel())


def _guess_from_numbers(values: np.ndarray) -> Guess:
    distinct = len(np.unique(values))
    if distinct <= 2:
        return Guess("classification", _distinct(distinct))
    if (values != np.floor(values)).any():
        return Guess("regression", f"float with {_distinct(distinct)}")
    if distinct <= LOW_CARDINALITY and 10 * distinct <= len(values):
        return Guess("classification", f"whole numbers with only {_distinct(distinct)}")
    return Guess("regression", f"whole numbers with {_distinct(distinct)}")


def _distinct(number: int) -> str:
    return f"{number} distinct value{'s' if number != 1 else ''}"


# --- saying what was understood


def summary(schema: Schema) -> dict[str, Any]:
    """Plain data for reports: counts by kind, missing cells, what was dropped and why, and every column."""
    counts: dict[str, int] = {} if schema.columns else {"numeric": schema.width}
    for column in schema.columns:
        counts[column.kind] = counts.get(column.kind, 0) + 1
    return {
        "form": schema.form,
        "rows": schema.rows,
        "columns": schema.width,
        "missing": schema.missing,
        "kinds": {kind: counts[kind] for kind in KINDS if kind in counts},
        "dropped": {column.name: column.reason for column in schema.columns if not column.kept},
        "details": [_detail(column) for column in schema.columns],
    }


def _detail(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "kind": column.kind,
        "reason": column.reason,
        "missing": column.missing,
        "distinct": column.distinct,
        "low": column.low,
        "high": column.high,
        "examples": list(column.categories[:5]),
    }


def describe(schema: Schema) -> str:
    """One page of what was understood; its first line is the short version."""
    facts = summary(schema)
    parts = [_count(number, KINDS[kind]) for kind, number in facts["kinds"].items() if kind not in DROPPED]
    sentences = [f"{facts['rows']} rows, {facts['columns']} columns: {', '.join(parts)}"]
    if facts["missing"]:
        sentences.append(f"{facts['missing']} missing cell{'s' if facts['missing'] != 1 else ''}")
    sentences += [f"dropped `{name}`, {reason}" for name, reason in list(facts["dropped"].items())[:10]]
    if len(facts["dropped"]) > 10:
        sentences.append(f"dropped {len(facts['dropped']) - 10} more")
    lines = ["; ".join(sentences), *(_line(column) for column in schema.columns[:40])]
    if len(schema.columns) > 40:
        lines.append(f"  .. and {len(schema.columns) - 40} more columns")
    return "\n".join(lines)


def _count(number: int, word: str) -> str:
    if number == 1 or word in ("numeric", "yes/no"):
        return f"{number} {word}"
    return f"{number} " + (word.replace("category", "categories") if "category" in word else word + "s")


def _line(column: Column) -> str:
    facts = [column.reason]
    if column.low is not None and column.high is not None:
        facts.append(f"{column.low:g} to {column.high:g}")
    if column.categories:
        facts.append(", ".join(column.categories[:4]) + (", .." if len(column.categories) > 4 else ""))
    if column.missing:
        facts.append(f"{column.missing} missing")
    return f"  {column.name[:28]:<28} {KINDS[column.kind]:<26} {'; '.join(facts)}"
