"""What a table holds: the type of every column and how its cells are read.

    infer_schema(X) -> Schema       guess_task(y) -> Guess       describe(schema) -> text

`validation.validate` brings a table into the canonical form of a schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd
import scipy.sparse as sp

from softlearning.data.inputs import checked_sparse, frame_or_array, has_names, is_frame, largest, numbered_frame
from softlearning.data.messages import nearest, printable
from softlearning.data.values import (
    Cells,
    as_words,
    date_style,
    has_both_orders,
    number_style,
    read_cells,
    read_dates,
    read_numbers,
)

COLUMN_TYPES = {
    "number": "a measurement",
    "boolean": "true or false",
    "category": "one of several values",
    "date": "a date or a moment",
    "text": "prose",
    "identifier": "a name of the row: dropped",
    "constant": "the same in every row: dropped",
    "empty": "no value in any row: dropped",
}  # type -> what it means
DROPPED = ("identifier", "constant", "empty")  # types that no specialist sees
NUMBERS = ("number", "boolean")  # types held as float64

FEW = 20  # up to here a category is one-hot material
MAX_CATEGORIES = 10_000  # rarer categories share the place of the unseen
ENOUGH_ROWS = 20  # fewer rows cannot tell an identifier from a measurement


@dataclass(frozen=True)
class Column:
    """What one column is and how its cells are read."""

    name: str
    type: str
    reason: str = ""
    missing: int = 0
    distinct: int | None = None
    categories: tuple[str, ...] = ()  # most frequent first, or in the given order when `ordered`
    unseen: str = ""  # name of the category for what was not seen
    ordered: bool = False
    style: str = "plain"  # how strings become numbers or dates; "span" for durations (seconds)
    low: float | None = None
    high: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the specialists see this column."""
        return self.type not in DROPPED

    @property
    def many(self) -> bool:
        """Whether it is a category with many values."""
        return len(self.categories) > FEW

    @cached_property
    def codes(self) -> dict[str, int]:
        """Position of each category."""
        return {category: code for code, category in enumerate(self.categories)}

    @cached_property
    def dtype(self) -> pd.CategoricalDtype:
        """Pandas type of a category column: the fitted categories, then the unseen."""
        return pd.CategoricalDtype([*self.categories, self.unseen])


@dataclass(frozen=True)
class Schema:
    """What a table is, as plain data.

    form     "array" (the canonical table is a float64 array), "sparse" (csr) or "table" (a pandas frame)
    columns  one entry per column; empty for numeric arrays and sparse matrices, where all are numbers and kept
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


# --- inferring


def infer_schema(X: Any, column_types: Mapping[str, str] | None = None) -> Schema:
    """Say what every column of X is.

    Parameters
    ----------
    X : array, sparse matrix, pandas or polars frame (any eager frame that narwhals knows), or list of rows
    column_types : column name -> type, where the user overrules the guess. A type is one of `COLUMN_TYPES`;
        "date:%d/%m/%Y" also says how dates are read.

    Numeric arrays are looked at only for missing values: none of their columns is ever dropped.
    """
    if sp.issparse(X):
        matrix = checked_sparse(X, least_rows=1)
        return Schema("sparse", matrix.shape[0], matrix.shape[1], largest=largest(matrix.data))
    data = frame_or_array(X, least_rows=1)
    if isinstance(data, pd.DataFrame):
        return _infer_frame(data, dict(column_types or {}), has_names(X))
    if column_types:
        return _infer_frame(numbered_frame(data), dict(column_types), named=False)
    return Schema("array", len(data), data.shape[1], missing=int(np.isnan(data).sum()), largest=largest(data))


def _infer_frame(frame: pd.DataFrame, types: dict[str, str], named: bool) -> Schema:
    _check_types(types, list(frame.columns))
    series = cast(Iterable[tuple[str, pd.Series]], frame.items())
    columns = tuple(_infer_column(read_cells(s, name), name, types.get(name)) for name, s in series)
    kept = [column for column in columns if column.kept]
    if not kept:
        reasons = "; ".join(f"`{printable(c.name)}`: {c.reason}" for c in columns[:5])
        raise ValueError(f"no column carries information ({reasons}); keep one with column_types={{name: 'number'}}")
    form = "array" if all(column.type in NUMBERS for column in kept) else "table"
    missing = sum(column.missing for column in columns)
    top = max((max(abs(c.low), abs(c.high)) for c in kept if c.low is not None and c.high is not None), default=0.0)
    return Schema(form, len(frame), frame.shape[1], missing, named, columns, top)


def _check_types(types: Mapping[str, str], names: Sequence[str]) -> None:
    for name, given in types.items():
        if name not in names:
            raise ValueError(f"column_types names {name!r}, which is no column of the table; {nearest(name, names)}")
        if (base := str(given).split(":")[0]) not in COLUMN_TYPES:
            what = f"the type of {name!r} is {given!r}, which is no column type"
            raise ValueError(f"{what}; {nearest(base, COLUMN_TYPES)}")


def _infer_column(cells: Cells, name: str, asked: str | None) -> Column:
    """The asked type, or the guessed one."""
    if asked is None:
        return _guess(cells, name)
    type_, _, style = asked.partition(":")
    if type_ in DROPPED:
        return Column(name, type_, "dropped on request", missing=cells.missing)
    if type_ == "date":
        return _as_date(cells, name, "as given", style)
    if type_ in NUMBERS:
        return _as_number(cells, name, "as given", type_)
    return (_as_text if type_ == "text" else _as_category)(cells, name, "as given")


def _guess(cells: Cells, name: str) -> Column:
    if cells.missing == cells.rows:
        return Column(name, "empty", "every cell is missing", missing=cells.missing)
    if cells.rows > 1 and not cells.missing and bool((cells.data == cells.data[0]).all()):
        return Column(name, "constant", "every cell is the same", distinct=1)
    if cells.form == "values":
        return _guess_words(cells, name)
    if cells.form == "time":
        return _as_date(cells, name, "stored as dates")
    if cells.whole and (reason := _key_like(cells.data, name)):
        return Column(name, "identifier", reason, distinct=cells.rows)
    return _as_number(cells, name, "stored as numbers", "boolean" if cells.form == "flag" else "number")


def _guess_words(cells: Cells, name: str) -> Column:
    """Strings and mixed objects: numbers, dates, true/false, identifiers, text, categories, in this order."""
    words = cells.filled
    if cells.categorical:
        return _as_category(cells, name, "stored as a category")
    if style := number_style(words):
        return _guess_numbers(cells, name, style)
    if style := date_style(words):
        formats = style.replace("|", " and ")
        return _as_date(cells, name, f"read as dates ({formats})", style)
    if {word.casefold() for word in words} == {"true", "false"}:
        return _as_number(cells, name, "strings true and false", "boolean")
    if reason := _code_like(words, cells, name):
        return Column(name, "identifier", reason, missing=cells.missing, distinct=len(words))
    if _is_prose(words, cells):
        return _as_text(cells, name, "several words per cell, seldom repeated")
    reason = f"{len(words)} distinct values"
    if has_both_orders(words):
        reason += "; dates, but with day and month in both orders"
    return _as_category(cells, name, reason)


def _guess_numbers(cells: Cells, name: str, style: str) -> Column:
    """A column of strings that all read as numbers is judged as numbers are."""
    data = read_numbers(cells, name, style)
    whole = bool(np.all(np.isnan(data) | (data == np.floor(data))))
    column = _guess(Cells("number", data, whole=whole), name)
    if column.type != "number":
        return column
    return _as_number(cells, name, f"read as numbers, such as {cells.filled[0]!r}", style=style)


TIME_NAME = re.compile(r"years?|month|week|day|date|time|timestamp|hour|quarter|step|period|epoch|age|t")
KEY_NAME = re.compile(r"ids?|idx|index|key|uuid|guid|row|rownames|unnamed|record|nr|no|number")


def _speaks_of(name: str, words: re.Pattern) -> bool:
    """Whether a word of the name is one of these; `PassengerId` and `passenger_id` are both passenger and id."""
    return any(words.fullmatch(word.lower()) for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+", name))


def _key_like(data: np.ndarray, name: str) -> str:
    """Why unique whole numbers look like row numbers or keys; empty when they may measure something.

    A running sequence from 0 or 1, any unique whole numbers under a name such as `id`, or long ones of about the same
    number of digits, spread over their range. A name that speaks of time is left alone: a trend is information.
    """
    n, named = len(data), _speaks_of(name, KEY_NAME)
    if n < ENOUGH_ROWS or (_speaks_of(name, TIME_NAME) and not named) or np.isnan(data).any():
        return ""
    low, high = data.min(), data.max()
    running = low in (0, 1) and high - low == n - 1
    long = low >= 1e8 and high > 2 * low and np.mean(data >= 10 ** np.floor(np.log10(np.median(data)))) > 0.8
    if not (running or long or named) or len(np.unique(data)) < n:
        return ""
    why = "a running number" if running else "unique numbers, and the name" if named else "long unique numbers"
    return f"looks like an identifier: {why}"


def _code_like(words: Sequence[str], cells: Cells, name: str) -> str:
    """Why unique strings look like keys: one token each, and a common shape with digits or a telling name."""
    unique = len(words) == cells.rows - cells.missing and len(words) >= ENOUGH_ROWS
    if not unique or any(" " in word for word in words):
        return ""
    if _speaks_of(name, KEY_NAME):
        return "looks like an identifier: unique strings, and the name"
    shapes = {re.sub(r"[A-Za-z]", "a", re.sub(r"\d", "9", word)) for word in words[:1000]}
    hexes = all(re.fullmatch(r"[0-9a-fA-F-]{8,}", word) for word in words[:1000])
    if hexes or (len(shapes) <= 3 and all("9" in shape for shape in shapes)):
        return "looks like an identifier: unique strings of one shape"
    return ""


def _is_prose(words: Sequence[str], cells: Cells) -> bool:
    """At least three words per cell and most cells different; shorter ones are names, and names are categories."""
    if len(words) <= FEW or 2 * len(words) < cells.rows - cells.missing:
        return False
    lengths = [len(word.split()) for word in words[:1000]]
    return sum(lengths) >= 3 * len(lengths)


def _as_number(cells: Cells, name: str, reason: str, type_: str = "number", style: str = "") -> Column:
    style = "span" if cells.form == "span" else style or number_style(cells.filled) or "plain"
    data = read_numbers(cells, name, style, flags=type_ == "boolean")
    seen = data[~np.isnan(data)]
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (None, None)
    distinct = len(np.unique(seen)) if len(seen) <= 100_000 else None  # sorting a million cells tells little
    return Column(name, type_, reason, len(data) - len(seen), distinct, style=style, low=low, high=high)


def _as_date(cells: Cells, name: str, reason: str, style: str = "") -> Column:
    style = style or date_style(cells.filled) or "ISO8601"
    moments = read_dates(cells, name, style)
    seen = moments[~np.isnat(moments)]
    return Column(name, "date", reason, len(moments) - len(seen), len(np.unique(seen)), style=style)


def _as_text(cells: Cells, name: str, reason: str) -> Column:
    cells = as_words(cells)
    return Column(name, "text", reason, cells.missing, len(cells.filled))


def _as_category(cells: Cells, name: str, reason: str) -> Column:
    """Categories most frequent first (ties by name), so that a cap keeps the frequent ones."""
    cells = as_words(cells)
    counts = np.bincount(cells.data[cells.data >= 0], minlength=len(cells.words))
    present = [k for k, word in enumerate(cells.words) if word is not None and counts[k]]
    if not cells.ordered:
        present.sort(key=lambda k: (-counts[k], cast(str, cells.words[k])))
    categories = tuple(cast(str, cells.words[k]) for k in present[:MAX_CATEGORIES])
    unseen = "(unseen)"
    while unseen in categories:
        unseen += "_"
    return Column(name, "category", reason, cells.missing, len(present), categories, unseen, ordered=cells.ordered)


# --- the target


@dataclass(frozen=True)
class Guess:
    """A guessed task and the reason in words."""

    task: str
    reason: str


def read_target(y: Any) -> pd.Series:
    """A target column; strings that are numbers in any spelling ("$297,000") become numbers."""
    column = _target_column(y)
    cells = read_cells(column, "target")
    style = "" if cells.form != "values" or cells.categorical else number_style(cells.filled)
    if not style:
        return column
    return pd.Series(read_numbers(cells, "target", style), index=column.index, name=column.name)


def guess_task(y: Any) -> Guess:
    """Classification or regression, and why.

    Words, flags and two values are classes; numbers with a fraction are measured; whole numbers are classes when
    there are at most 20 of them and ten rows for each.
    """
    cells = read_cells(read_target(y), "target")
    if cells.missing == cells.rows:
        raise ValueError("the target has no values")
    if cells.form == "time":
        raise ValueError("the target holds dates; predict a number or a class instead")
    if cells.form == "flag":
        return Guess("classification", "true or false")
    if ENOUGH_ROWS <= cells.rows == len(cells.words) and not cells.missing:
        raise ValueError(f"each of the {cells.rows} rows has a class of its own: an identifier cannot be predicted")
    if cells.form == "values":
        return Guess("classification", f"words, {_distinct(len(cells.filled))}")
    name = getattr(y, "name", None)
    if name is not None and cells.whole and (reason := _key_like(cells.data, str(name))):
        raise ValueError(f"the target {reason}, which cannot be predicted; where it measures something, say the task")
    return _guess_from_numbers(cells.data[~np.isnan(cells.data)])


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
        return Guess("regression", f"numbers with fractions, {_distinct(distinct)}")
    if distinct <= FEW and 10 * distinct <= len(values):
        return Guess("classification", f"whole numbers with only {_distinct(distinct)}")
    return Guess("regression", f"whole numbers with {_distinct(distinct)}")


def _distinct(number: int) -> str:
    return f"{number} distinct value{'s' if number != 1 else ''}"


# --- saying what was understood


def summary(schema: Schema) -> dict[str, Any]:
    """Plain data for reports: counts by type, missing cells, what was dropped and why, and every column."""
    types = [column.type for column in schema.columns] or ["number"] * schema.width
    told = ("name", "type", "reason", "missing", "distinct", "low", "high")
    return {
        "form": schema.form,
        "rows": schema.rows,
        "columns": schema.width,
        "missing": schema.missing,
        "types": {type_: types.count(type_) for type_ in COLUMN_TYPES if type_ in types},
        "dropped": {column.name: column.reason for column in schema.columns if not column.kept},
        "details": [
            {name: getattr(c, name) for name in told} | {"examples": list(c.categories[:5])} for c in schema.columns
        ],
    }


def describe(schema: Schema) -> str:
    """One page of what was understood; its first line is the short version."""
    facts = summary(schema)
    parts = [_count(number, type_) for type_, number in facts["types"].items() if type_ not in DROPPED]
    sentences = [f"{_count(facts['rows'], 'row')}, {_count(facts['columns'], 'column')}: {', '.join(parts)}"]
    if facts["missing"]:
        sentences.append(_count(facts["missing"], "missing cell"))
    if gone := [f"`{printable(name)}`" for name in facts["dropped"]]:
        sentences.append(f"dropped {', '.join(gone[:3])}" + (f" and {len(gone) - 3} more" if len(gone) > 3 else ""))
    width = min(28, max((len(printable(column.name)) for column in schema.columns), default=0))
    lines = ["; ".join(sentences), *(_line(column, width) for column in schema.columns[:40])]
    if len(schema.columns) > 40:
        lines.append(f"  .. and {len(schema.columns) - 40} more columns")
    return "\n".join(lines)


def _count(number: int, word: str) -> str:
    plural = word[:-1] + "ies" if word.endswith("y") else word + "s"
    return f"{number} {word if number == 1 else plural}"


def _line(column: Column, width: int) -> str:
    """Name, type, why and what is in it, cut to a screen of 80 columns."""
    facts = [column.reason]
    if column.missing and column.type != "empty":
        facts.append(f"{column.missing} missing")
    if column.low is not None and column.high is not None:
        facts.append(f"{_plain(column.low)} to {_plain(column.high)}")
    if column.categories:
        facts.append(", ".join(column.categories[:4]) + (", .." if len(column.categories) > 4 else ""))
    line = f"  {printable(column.name)[:width]:<{width}}  {column.type:<10}  {printable('; '.join(facts))}"
    return line if len(line) <= 80 else line[:77] + " .."


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e12 else f"{value:.4g}"
