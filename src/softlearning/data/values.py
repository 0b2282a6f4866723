"""A raw column in one of five forms, and strings that are numbers or dates."""

from __future__ import annotations

import datetime
import decimal
import numbers
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

MISSING_MARKS = frozenset(
    ("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "?", "-", "--", ".", "<na>", "nat")
)  # what stands for a missing cell in a column of numbers or dates


class Cells(NamedTuple):
    """A raw column.

    form    "number", "flag" (true/false), "span" (seconds): data is float64, NaN = missing
            "time": data is datetime64[us], NaT = missing
            "values": data are positions in `words` (-1 = missing); a word is a stripped string, None if empty
    """

    form: str
    data: np.ndarray
    words: Sequence[str | None] = ()
    whole: bool = False  # numbers stored as integers
    categorical: bool = False
    ordered: bool = False

    @property
    def rows(self) -> int:
        return len(self.data)

    @property
    def missing(self) -> int:
        if self.form == "values":
            empty = [-1, *(k for k, word in enumerate(self.words) if word is None)]
            return int(np.isin(self.data, empty).sum())
        return int(np.isnat(self.data).sum() if self.form == "time" else np.isnan(self.data).sum())

    @property
    def filled(self) -> list[str]:
        """The words that are not missing."""
        return [word for word in self.words if word is not None]


def read_cells(series: pd.Series, name: str) -> Cells:
    """Bring a pandas column into one of the five forms, or refuse it by name."""
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _category_cells(series, name)
    if isinstance(dtype, pd.PeriodDtype):
        return Cells("time", series.dt.to_timestamp().to_numpy("datetime64[us]"))
    if isinstance(dtype, pd.IntervalDtype):
        return _value_cells(series.astype(str).to_numpy(object), name)
    if isinstance(dtype, pd.StringDtype):
        return _string_cells(series)
    kind = getattr(dtype, "kind", "O")
    if kind == "M":
        return Cells("time", _naive(series))
    if kind == "m":
        return Cells("span", _seconds(series))
    if kind in "buif":
        return Cells("flag" if kind == "b" else "number", _floats(series), whole=kind in "ui")
    if kind == "c":
        raise ValueError(f"column `{name}`: complex data not supported")
    return _object_cells(series.to_numpy(object), name)


def _floats(series: pd.Series) -> np.ndarray:
    if isinstance(series.dtype, np.dtype):
        return series.to_numpy(np.float64)
    return series.to_numpy(np.float64, na_value=np.nan)


def _naive(series: pd.Series) -> np.ndarray:
    """Moments as datetime64[us]; a time zone is converted to UTC."""
    if getattr(series.dt, "tz", None) is not None:
        series = series.dt.tz_convert("UTC").dt.tz_localize(None)
    return series.to_numpy("datetime64[us]")


def _seconds(series: pd.Series) -> np.ndarray:
    spans = series.to_numpy("timedelta64[us]")
    return np.where(np.isnat(spans), np.nan, spans.astype(np.int64) / 1e6)


def _category_cells(series: pd.Series, name: str) -> Cells:
    values = cast(pd.Categorical, series.array)
    if values.categories.dtype.kind in "Mm":
        return read_cells(pd.Series(np.asarray(values)), name)
    words = [_word(value, name, row=0) for value in values.categories]
    cells = _merge(np.asarray(values.codes, dtype=np.intp), words)  # 1 and "1" are one category
    return cells._replace(categorical=True, ordered=bool(values.ordered))


def _string_cells(series: pd.Series) -> Cells:
    if len(series) <= 64:  # factorize costs more than it saves
        return _value_cells(series.to_numpy(object), str(series.name))
    codes, words = pd.factorize(series)
    return _merge(np.asarray(codes, dtype=np.intp), [word.strip() or None for word in words.tolist()])


def _merge(codes: np.ndarray, words: list[str | None]) -> Cells:
    """Words made unique again, after stripping."""
    index: dict[str | None, int] = {}
    position = np.array([index.setdefault(word, len(index)) for word in words] + [-1], dtype=np.intp)
    if len(index) == len(words):
        return Cells("values", codes, words)
    return Cells("values", position[codes], list(index))


OBJECT_FORMS = {
    "boolean": "flag",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "datetime": "time",
    "datetime64": "time",
    "date": "time",
    "timedelta": "span",
    "timedelta64": "span",
    "empty": "number",
}  # what pandas infers -> form of the cells


def _object_cells(values: np.ndarray, name: str) -> Cells:
    """Objects of one type become that type; mixed ones become words."""
    inferred = infer_dtype(values, skipna=True)
    form = OBJECT_FORMS.get(inferred, "values")
    if form == "time":
        return Cells("time", _naive(pd.Series(pd.to_datetime(values, utc=True))))
    if form == "span":
        return Cells("span", _seconds(pd.Series(pd.to_timedelta(values))))
    if form in ("number", "flag"):
        floats = [np.nan if is_missing(value) else _float(value, name, row) for row, value in enumerate(values)]
        return Cells(form, np.array(floats, dtype=np.float64), whole=inferred == "integer")
    return _value_cells(values, name)


def _float(value: Any, name: str, row: int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"column `{name}`, row {row}: a number too large, as good as infinity") from None


def is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)


def _value_cells(values: np.ndarray, name: str) -> Cells:
    index: dict[str | None, int] = {}
    codes = np.empty(len(values), dtype=np.intp)
    for row, value in enumerate(values):
        codes[row] = -1 if is_missing(value) else index.setdefault(_word(value, name, row), len(index))
    return Cells("values", codes, list(index))


MOMENTS = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def is_cell(value: Any) -> bool:
    """Whether a value can stand in a cell."""
    return isinstance(value, (str, numbers.Real, decimal.Decimal, *MOMENTS)) or is_missing(value)


def _word(value: Any, name: str, row: int) -> str | None:
    """The string under which a value is known: 1, 1.0 and "1" are one category."""
    if isinstance(value, str):
        value = value if value.isascii() else value.encode("utf-8", "replace").decode()  # no lone surrogates
        return value.strip() or None
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (numbers.Real, decimal.Decimal)):
        return _number_word(_float(value, name, row))
    if isinstance(value, (*MOMENTS, pd.Interval)):
        return str(value)
    what = f"column `{name}`, row {row}: a cell of type {type(value).__name__}"
    if isinstance(value, bytes):
        raise TypeError(f"{what}; decode bytes to str first")
    raise TypeError(f"{what}; the argument must be a string, a number, a date or missing")


def _number_word(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def as_words(cells: Cells) -> Cells:
    """Numbers, flags or dates as words, for a column that is a category or a text."""
    if cells.form == "values":
        return cells
    codes, unique = pd.factorize(cells.data)
    if cells.form == "time":
        words = [str(pd.Timestamp(value)) for value in unique]
    elif cells.form == "flag":
        words = [str(bool(value)) for value in unique]
    else:
        words = [_number_word(float(value)) for value in unique]
    return Cells("values", np.asarray(codes, dtype=np.intp), words)


_DIGITS = r"(?:0|[1-9]\d*)"  # no leading zeros: 00123 is a code
_EXP = r"(?:[eE][+-]?\d+)?"
_GAPS = " '’\u00a0\u202f"
NUMBER_STYLES = {
    "plain": (rf"{_DIGITS}?(?:\.\d*)?{_EXP}|(?i:inf|infinity)", ""),
    "thousands": (rf"[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?|{_DIGITS}(?:\.\d*)?{_EXP}", ","),
    "comma": (rf"{_DIGITS}?(?:,\d+)?{_EXP}", ""),
    "point": (rf"[1-9]\d{{0,2}}(?:\.\d{{3}})+(?:,\d+)?|{_DIGITS}(?:,\d+)?", "."),
    "space": (rf"[1-9]\d{{0,2}}(?:[{_GAPS}]\d{{3}})+(?:[.,]\d+)?|{_DIGITS}(?:[.,]\d+)?", _GAPS),
}  # style -> (pattern of the unsigned number, characters that group thousands)
_START = r"[+-]?(?=[.,]?\d|(?i:inf))"  # a sign, then a digit sooner than an exponent
PATTERNS = {style: re.compile(rf"{_START}(?:{pattern})") for style, (pattern, _) in NUMBER_STYLES.items()}
UNITS = {"%": 0.01, "$": 1.0, "€": 1.0, "£": 1.0, "¥": 1.0}  # sign before or after every number -> factor


def number_style(words: Sequence[str]) -> str:
    """How all words read as numbers ("plain", "comma", "%thousands" ..), or an empty string.

    A comma before three digits in every cell is read as thousands; were it decimal, only the unit would change.
    """
    words = [word for word in words if word.casefold() not in MISSING_MARKS]
    if not words:
        return ""
    unit = next((u for u in UNITS if all(w.endswith(u) or w.startswith(u) for w in words)), "")
    for style, pattern in PATTERNS.items():
        if all(pattern.fullmatch(w.strip(unit).strip() if unit else w) for w in _sample_then_all(words)):
            return unit + style
    return ""


def _sample_then_all(words: Sequence[str]) -> Iterator[str]:
    """A spread sample first: most wrong styles fail there."""
    yield from words[:: max(1, len(words) // 50)]
    yield from words


def parse_number(word: str, style: str) -> float:
    """The number that a word spells under a style; NaN for a missing mark, ValueError when it is none."""
    if word.casefold() in MISSING_MARKS:
        return np.nan
    unit = style[0] if style[0] in UNITS else ""
    style = style.removeprefix(unit)
    bare = word.strip(unit).strip() if unit else word
    if not PATTERNS[style].fullmatch(bare):
        if unit or not PATTERNS["plain"].fullmatch(bare):
            raise ValueError(f"{word!r} is not a number")
        return float(bare)  # a plain number is welcome in a column of any spelling
    for mark in NUMBER_STYLES[style][1]:
        bare = bare.replace(mark, "")
    return float(bare.replace(",", ".")) * (UNITS[unit] if unit else 1.0)


DATE_STYLES = (
    "ISO8601",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%Y/%m/%d",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d.%m.%y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%b %Y",
    "%B %Y",
    "%d/%m/%y %H:%M",
    "%m/%d/%y %H:%M",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %I:%M:%S %p",
    "%Y/%m/%d %H:%M:%S",
    "%a, %d %b %Y %H:%M:%S %z",
)  # tried in this order: where day and month cannot be told apart, the day comes first


def date_style(words: Sequence[str]) -> str:
    """The first style under which all words are dates, or an empty string."""
    words = [word for word in words if word.casefold() not in MISSING_MARKS]
    if not words or not all(6 <= len(word) <= 40 and any(c.isdigit() for c in word) for word in words):
        return ""
    sample = words[:: max(1, len(words) // 20)]
    fits = lambda style: not any(np.isnat(parse_dates(part, style)).any() for part in (sample, words))
    return next((style for style in DATE_STYLES if fits(style)), "")


def parse_dates(words: Sequence[str], style: str) -> np.ndarray:
    """Words as datetime64[us] (UTC when they carry an offset); NaT where a word does not fit the style."""
    parsed = pd.to_datetime(pd.Series(words, dtype="str"), format=style, errors="coerce", utc=True)
    return parsed.dt.tz_localize(None).to_numpy("datetime64[us]")
