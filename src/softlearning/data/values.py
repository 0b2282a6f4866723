"""A raw column in one of five forms, and strings that are numbers or dates in one of many spellings."""

from __future__ import annotations

import datetime
import decimal
import numbers
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from softlearning.data.messages import CellError, printable

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
        raise CellError(name, None, None, "a real number", "complex data not supported")
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
    return Cells("values", cells.data, cells.words, categorical=True, ordered=bool(values.ordered))


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


# what pandas infers -> form of the cells
OBJECT_FORMS = dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal", "empty"), "number")
OBJECT_FORMS |= dict.fromkeys(("datetime", "datetime64", "date"), "time")
OBJECT_FORMS |= {
    "timedelta": "span",
    "timedelta64": "span",
    "boolean": "flag",
}


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
        raise CellError(name, row, value, "a number", "a number too large, as good as infinity") from None


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
    what = f"column `{printable(name)}`, row {row}: a cell of type {type(value).__name__}"
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
_BLANKS = " '’\u00a0\u202f"
SPELLINGS = {
    "plain": (rf"{_DIGITS}?(?:\.\d*)?{_EXP}|(?i:inf|infinity)", ""),
    "thousands": (rf"[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?|{_DIGITS}(?:\.\d*)?{_EXP}", ","),
    "comma": (rf"{_DIGITS}?(?:,\d+)?{_EXP}", ""),
    "point": (rf"[1-9]\d{{0,2}}(?:\.\d{{3}})+(?:,\d+)?|{_DIGITS}(?:,\d+)?", "."),
    "space": (rf"[1-9]\d{{0,2}}(?:[{_BLANKS}]\d{{3}})+(?:[.,]\d+)?|{_DIGITS}(?:[.,]\d+)?", _BLANKS),
}  # spelling -> (pattern of the unsigned number, characters that group thousands)
PATTERNS = {spelling: re.compile(rf"(?=[.,]?\d|(?i:inf))(?:{pattern})") for spelling, (pattern, _) in SPELLINGS.items()}
_CURRENCY = r"[$€£¥₹]|(?:USD|EUR|GBP|CHF|JPY)\b"
_AMOUNT = re.compile(
    rf"(?P<open>\()?(?P<sign>[+-]?)\s*(?P<before>{_CURRENCY})?\s*(?P<late>[+-]?)"
    rf"(?P<core>[.,]?\d[\d.,{_BLANKS}]*?{_EXP}|(?i:inf|infinity))"
    rf"(?:\s?(?P<times>[kKMB]|bn)(?![^\W\d_]))?"
    rf"(?:\s*(?P<after>%|{_CURRENCY}|[^\W\d_]{{2,10}}[²³]?)|\s(?P<unit>[^\W\d_]))?(?P<close>\))?"
)
FACTORS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "bn": 1e9}


class Amount(NamedTuple):
    """A word taken apart: the digits as they are spelt, what they are multiplied by, and the unit around them."""

    core: str
    factor: float
    unit: str


def take_apart(word: str) -> Amount | None:
    """`(1,999)`, `$ 1.4k`, `7 %` and `1,150 sqft` as amounts; None for other words."""
    if word.isascii() and word.isdigit():
        return Amount(word, 1.0, "")
    found = _AMOUNT.fullmatch(word)
    if found is None or bool(found["open"]) != bool(found["close"]) or (found["before"] and found["after"]):
        return None
    sign = -1.0 if found["open"] or "-" in (found["sign"], found["late"]) else 1.0
    unit = found["before"] or found["after"] or found["unit"] or ""
    return Amount(found["core"], sign * FACTORS[found["times"] or ""] * (0.01 if unit == "%" else 1.0), unit)


def number_style(words: Sequence[str]) -> str:
    """How all words read as numbers, as "spelling" or "spelling unit" ("plain", "comma", "thousands $"), or "".

    A comma before three digits in every cell is read as thousands; were it decimal, only the unit would change.
    """
    words = [word for word in words if word.casefold() not in MISSING_MARKS]
    first = take_apart(words[0]) if words else None
    if first is None or all(word.isalpha() for word in words):
        return ""
    fits = list(SPELLINGS)
    for word in [*words[:: max(1, len(words) // 50)], *words]:  # a sample first: most other words fail there
        amount = take_apart(word)
        fits = [s for s in fits if amount and amount.unit == first.unit and PATTERNS[s].fullmatch(amount.core)]
        if not fits:
            return ""
    return f"{fits[0]} {first.unit}".strip()


def parse_number(word: str, style: str) -> float:
    """The number that a word spells under a style; NaN for a missing mark, ValueError when it is none.

    A plain number is welcome in a column of any spelling and unit, but of percentages: there it may mean two things.
    """
    if word.casefold() in MISSING_MARKS:
        return np.nan
    spelling, _, unit = style.partition(" ")
    amount = take_apart(word)
    if amount is None or not (amount.unit == unit or (not amount.unit and unit != "%")):
        raise ValueError(f"{word!r} is not a number")
    spelling = next((s for s in (spelling, "plain") if PATTERNS[s].fullmatch(amount.core)), "")
    if not spelling:
        raise ValueError(f"{word!r} is not a number")
    core = amount.core.translate(str.maketrans("", "", SPELLINGS[spelling][1]))
    return float(core.replace(",", ".")) * amount.factor


_DAYS = ["%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y"]
_DAYS += ["%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %Y", "%B %Y"]
SWAPPED = str.maketrans("dm", "md")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M:%S %p")
# tried in this order: where day and month cannot be told apart, the day comes first
DATE_STYLES = ("ISO8601", *(day + time for time in _TIMES for day in _DAYS), "%a, %d %b %Y %H:%M:%S %z")


def date_style(words: Sequence[str]) -> str:
    """The first style under which all words are dates, two or three joined by "|" where formats mix, or ""."""
    words = [word for word in words if word.casefold() not in MISSING_MARKS]
    if not words or not all(6 <= len(word) <= 40 and any(c.isdigit() for c in word) for word in words):
        return ""
    sample = words[:: max(1, len(words) // 20)]
    fits = lambda style: not any(np.isnat(parse_dates(part, style)).any() for part in (sample, words))
    return next((style for style in DATE_STYLES if fits(style)), "") or _mixed_dates(words)


def _mixed_dates(words: Sequence[str]) -> str:
    """The styles that together read all words, the one for most words first; at most three.

    Never both 31/12 and 12/31: then no cell of the column can be trusted.
    """
    chosen: list[str] = []
    styles, left = list(DATE_STYLES), list(words)
    while left and len(chosen) < 3:
        if np.isnat(parse_dates(left[:1], "|".join(styles))).any():
            return ""
        read = {style: ~np.isnat(parse_dates(left, style)) for style in styles}
        best = max(styles, key=lambda style: read[style].sum())
        chosen.append(best)
        left = [word for word, there in zip(left, read[best]) if not there]
        swapped = best.translate(SWAPPED)
        styles = [style for style in styles if style not in (best, swapped)]
    return "" if left else "|".join(chosen)


def has_both_orders(words: Sequence[str]) -> bool:
    """Whether all words are dates, but some with the day and some with the month first: then none can be trusted."""
    words = [word for word in words if word.casefold() not in MISSING_MARKS]
    if not words or not all(8 <= len(word) <= 10 for word in words):
        return False
    styles = (f"{style}|{style.translate(SWAPPED)}" for style in ("%d/%m/%Y", "%d-%m-%Y"))
    return any(not np.isnat(parse_dates(words, style)).any() for style in styles)


def parse_dates(words: Sequence[str], style: str) -> np.ndarray:
    """Words as datetime64[us] (UTC when they carry an offset); NaT where a word does not fit the style.

    A word without a digit is no date: "now" and "today" would be read from the clock.
    """
    texts = pd.Series([word if any(c.isdigit() for c in word) else None for word in words], dtype="str")
    moments = np.full(len(words), "NaT", dtype="datetime64[us]")
    for format in style.split("|"):
        parsed = pd.to_datetime(texts, format=format, errors="coerce", utc=True).dt.tz_localize(None)
        moments = np.where(np.isnat(moments), parsed.to_numpy("datetime64[us]"), moments)
    return moments


# --- cells as numbers or dates


def read_numbers(cells: Cells, name: str, style: str = "plain", flags: bool = False) -> np.ndarray:
    """Float64, NaN = missing; infinities are refused, and for flags all but 0 and 1."""
    if cells.form == "values":
        data = _numbers_from_words(cells, name, style, flags)
    else:
        _check_unit(cells, name, "span" if style == "span" else "number")
        data = cells.data if cells.form != "time" else np.full(cells.rows, np.nan)
    if (bad := np.isinf(data)).any():
        raise CellError(name, int(bad.argmax()), "infinity", "a number", INFINITE)
    if flags and (other := ~(np.isnan(data) | (data == 0) | (data == 1))).any():
        row = int(other.argmax())
        raise CellError(name, row, data[row], "true or false", f"{data[row]:g} is neither true nor false")
    return data


INFINITE = "infinity; give a number or leave the cell empty"


def _check_unit(cells: Cells, name: str, wanted: str) -> None:
    """Durations are seconds: they never stand for plain numbers, nor plain numbers for them; dates for neither."""
    words = {"span": "durations", "number": "numbers", "flag": "numbers", "time": "dates"}
    if words[cells.form] != words[wanted] and cells.missing < cells.rows:
        problem = f"holds {words[cells.form]}, and {words[wanted]} are expected"
        raise CellError(name, None, None, words[wanted], problem)


def _numbers_from_words(cells: Cells, name: str, style: str, flags: bool) -> np.ndarray:
    values = np.full(len(cells.words) + 1, np.nan)  # the last is for code -1, missing
    known = {"true": 1.0, "false": 0.0} if flags else {}
    style = "plain" if style == "span" else style
    for k, word in enumerate(cells.words):
        if word is None:
            continue
        try:
            flag = known.get(word.casefold())
            values[k] = parse_number(word, style) if flag is None else flag
        except ValueError:
            _refuse(cells, k, name, "a number")
    return values[cells.data]


def read_dates(cells: Cells, name: str, style: str) -> np.ndarray:
    """Datetime64[us], NaT = missing."""
    if cells.form == "time":
        return cells.data
    if cells.form != "values":
        _check_unit(cells, name, "time")
        return np.full(cells.rows, "NaT", dtype="datetime64[us]")
    words = ["" if word is None or word.casefold() in MISSING_MARKS else word for word in cells.words]
    moments = parse_dates(words, style)
    for k in np.flatnonzero(np.isnat(moments)):
        if words[k]:
            _refuse(cells, int(k), name, f"a date ({style.replace('|', ' or ')})")
    return np.append(moments, np.datetime64("NaT"))[cells.data]


def _refuse(cells: Cells, k: int, name: str, expected: str) -> None:
    """An error at the first row that holds the k-th word; a word that no row holds does no harm."""
    rows = np.flatnonzero(cells.data == k)
    if len(rows):
        raise CellError(name, int(rows[0]), cells.words[k], expected)
