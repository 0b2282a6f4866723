"""Training input that is malformed, or only looks so, as a table: a name, what must happen, what is given.

What must happen is `MODEL` (a right model: finite, and true to the signal), `FINITE` (a finite model; the signal is
gone) or a pattern that the message of a ValueError or TypeError must match.
"""

import datetime as dt
import decimal
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold

N = 40
MODEL, FINITE = "a right model", "a finite model"
RNG = np.random.default_rng(11)
GOOD = np.round(RNG.normal(size=(N, 3)), 3)  # the first column carries the signal
LABEL = np.where(GOOD[:, 0] > 0, "yes", "no")
VALUE = 2 * GOOD[:, 0] + 1


@dataclass(frozen=True)
class Case:
    """One input; what is not given is good."""

    name: str
    expected: str
    X: Any = None
    y: Any = None
    task: str = "classification"
    fit: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)


def frame(**columns) -> pd.DataFrame:
    """A good column `signal` (of numbers) and others."""
    return pd.DataFrame({"signal": GOOD[:, 0], **columns})


def words(**columns) -> pd.DataFrame:
    """The same with a category beside, so that it is a table."""
    return frame(colour=cycle("red", "green", "blue"), **columns)


def cycle(*values):
    return [values[i % len(values)] for i in range(N)]


def put(value, dtype=object, row=5, column=1):
    X = GOOD.astype(dtype)
    X[row, column] = value
    return X


def structured(dtype=(("a", float), ("b", int))):
    X = np.zeros(N, dtype=list(dtype))
    X["a"], X["b"] = GOOD[:, 0], np.arange(N) % 3
    return X


def objects(*values):
    """A column of objects, one a cell, whatever they are."""
    column = np.empty(N, dtype=object)
    for i, value in enumerate(cycle(*values)):
        column[i] = value
    return pd.Series(column, dtype=object)


class Odd:
    pass


SPARSE = sp.csr_matrix(np.where(np.abs(GOOD) > 0.3, GOOD, 0))

# fmt: off
SHAPES = [
    ("None", "scalar|None", lambda: None),
    ("one dimension", "Reshape your data", lambda: GOOD[:, 0]),
    ("a series", "1D|2-dimensional|Reshape", lambda: pd.Series(GOOD[:, 0])),
    ("three dimensions", "dim 3", lambda: GOOD[:, :, None]),
    ("an empty list", "1D|Reshape|0 sample", lambda: []),
    ("a list of empty rows", r"0 feature\(s\)", lambda: [[] for _ in range(N)]),
    ("no rows", "0 sample", lambda: np.empty((0, 3))),
    ("no columns", r"0 feature\(s\)", lambda: np.empty((N, 0))),
    ("a frame without rows", "0 sample", lambda: words().iloc[:0]),
    ("a frame without columns", r"0 feature\(s\)", lambda: pd.DataFrame(index=range(N))),
    ("ragged lists", "ragged rows: row 7 has 2", lambda: [*GOOD[:7].tolist(), [1, 2], *GOOD[8:].tolist()]),
    ("too few rows", "inconsistent numbers of samples", lambda: GOOD[:-1]),
    ("too many rows", "inconsistent numbers of samples", lambda: np.vstack([GOOD, GOOD[:1]])),
    ("too few rows of a table", "inconsistent numbers of samples", lambda: words().iloc[1:]),
    ("rows and columns swapped", "inconsistent numbers of samples", lambda: GOOD.T),
    ("a dict", "scalar|1D|dict|must be", lambda: {"a": GOOD[:, 0]}),
    ("a generator", "scalar|1D|generator|must be", lambda: (row for row in GOOD)),
    ("a matrix", "matrix", lambda: GOOD.view(np.matrix)),
    ("one column", MODEL, lambda: GOOD[:, :1]),
    ("tuples", MODEL, lambda: tuple(map(tuple, GOOD))),
    ("a list of arrays", MODEL, lambda: list(GOOD)),
    ("more columns than rows", FINITE, lambda: np.hstack([GOOD, RNG.normal(size=(N, 500))])),
]
DTYPES = [
    *((f"{dtype} numbers", MODEL, lambda dtype=dtype: (GOOD * 20).astype(dtype))
      for dtype in ("float16", "float32", "longdouble", "int8", "int64", ">f8", "object")),
    ("unsigned numbers", FINITE, lambda: np.abs(GOOD * 20).astype(np.uint64)),
    ("booleans", MODEL, lambda: GOOD > 0),
    ("Fortran order", MODEL, lambda: np.asfortranarray(GOOD)),
    ("a masked array", MODEL, lambda: np.ma.masked_array(GOOD, mask=np.arange(N * 3).reshape(N, 3) % 7 == 1)),
    ("a structured array", MODEL, structured),
    ("numbers in strings", MODEL, lambda: GOOD.astype(str)),
    ("decimal commas in strings", MODEL, lambda: np.char.replace(GOOD.astype(str), ".", ",")),
    ("words in strings", MODEL, lambda: np.column_stack([GOOD.astype(str)[:, 0], cycle("a", "b")])),
    ("decimals", MODEL, lambda: np.vectorize(lambda v: decimal.Decimal(str(v)), otypes=[object])(GOOD)),
    ("None among objects", MODEL, lambda: put(None)),
    ("NA among objects", MODEL, lambda: put(pd.NA)),
    ("a word among objects", MODEL, lambda: put("unknown")),
    ("a flag among objects", MODEL, lambda: put(True)),
    ("a date among objects", MODEL, lambda: put(dt.datetime(2024, 1, 1))),
    ("dates", FINITE, lambda: (GOOD * 1000).astype("datetime64[D]")),
    ("durations", MODEL, lambda: (GOOD * 1000).astype("timedelta64[s]")),
    ("complex numbers", "Complex data not supported", lambda: GOOD * 1j),
    ("a complex number among objects", "complex|real number", lambda: put(1j)),
    ("byte strings", "decode bytes", lambda: GOOD.astype("S")),
    ("bytes among objects", "bytes|could not convert|must be", lambda: put(b"x")),
    ("a dict among objects", "argument must be .* string.* number", lambda: put({})),
    ("an integer too large for a float", "infinity|too large|int too", lambda: put(10**400)),
    ("a long double too large for a float", "infinity", lambda: put(np.longdouble("1e400"), np.longdouble)),
]
MISSING = [
    ("one missing value", MODEL, lambda: put(np.nan, float)),
    ("a missing value in every row", MODEL, lambda: np.column_stack([GOOD, np.where(np.eye(N, 5) > 0, np.nan, 1.0)])),
    ("a column of missing values", MODEL, lambda: np.column_stack([GOOD, np.full(N, np.nan)])),
    ("nothing but missing values", FINITE, lambda: np.full((N, 3), np.nan)),
    ("a table of missing values", "no column carries information", lambda: pd.DataFrame({"a": objects(None)})),
    ("infinity", "infinity", lambda: put(np.inf, float)),
    ("infinity in a table", "column `a`, row 1: infinity", lambda: words(a=cycle(1.0, np.inf))),
    ("infinity in words", "column `a`, row 1: infinity", lambda: words(a=cycle("1", "-inf"))),
    ("the largest number", MODEL, lambda: put(np.finfo(float).max, float)),
    ("the smallest number", MODEL, lambda: put(5e-324, float)),
    ("a huge scale", MODEL, lambda: GOOD * 1e300),
    ("a tiny scale", MODEL, lambda: GOOD * 1e-300),
    ("a far offset", MODEL, lambda: GOOD + 1e6),
    ("one far outlier", MODEL, lambda: put(1e200, float)),
]
SAMENESS = [
    ("a constant column", MODEL, lambda: np.column_stack([GOOD, np.ones(N)])),
    ("constant columns alone", FINITE, lambda: np.ones((N, 3))),
    ("a constant word alone", "no column carries information", lambda: pd.DataFrame({"a": cycle("x")})),
    ("a constant word beside", MODEL, lambda: words(a="x")),
    ("an identifier alone", "no column carries information", lambda: words(i=[f"A-{i:04d}" for i in range(N)])[["i"]]),
    ("an identifier beside", MODEL, lambda: words(customer_id=np.arange(N) * 3)),
    ("the same column twice", MODEL, lambda: np.column_stack([GOOD, GOOD])),
    ("the same row everywhere", FINITE, lambda: np.tile(GOOD[:1], (N, 1))),
    ("the target among the columns", MODEL, lambda: words(y=LABEL)),
    ("nearly constant", MODEL, lambda: np.column_stack([GOOD, np.eye(N, 1)])),
    ("equal but for rounding", MODEL, lambda: np.column_stack([GOOD, 0.1 + RNG.normal(size=N) * 1e-17])),
]
NAMES = [
    ("names twice", "unique.*a", lambda: pd.DataFrame(GOOD, columns=["a", "a", "b"])),
    ("names twice in a table", "unique.*colour", lambda: pd.concat([words(), words()[["colour"]]], axis=1)),
    ("names alike as text", "unique.*1|string", lambda: pd.DataFrame(GOOD.astype(str), columns=[1, "1", "b"])),
    ("numbers for names", MODEL, lambda: pd.DataFrame(GOOD, columns=[10, 20, 30])),
    ("names in two levels", MODEL, lambda: pd.DataFrame(GOOD, columns=pd.MultiIndex.from_product([["a"], [*"xyz"]]))),
    ("an empty name", MODEL, lambda: words(**{"": cycle(1.0, 2.0, 3.0)})),
    ("a name of markup", MODEL, lambda: words(**{"<script>alert(1)</script>": cycle(1.0, 2.0)})),
    ("a name with line breaks", MODEL, lambda: words(**{"a\nb\tc": cycle("x", "y")})),
    ("a name in another script", MODEL, lambda: words(**{"年齢 🎈": cycle("x", "y")})),
    ("names that LightGBM refuses", MODEL, lambda: words(**{'{"a": [1]}': cycle("x", "y")})),
    ("a very long name", MODEL, lambda: words(**{"a" * 10_000: cycle("x", "y")})),
    ("rows with one index", MODEL, lambda: words().set_axis([7] * N)),
    ("rows with dates for an index", MODEL, lambda: words().set_axis(pd.date_range("2024", periods=N))),
    ("rows with two indices", MODEL, lambda: words().set_axis(pd.MultiIndex.from_product([range(4), range(10)]))),
]
CELLS = [
    ("words", MODEL, lambda: words()),
    ("objects of words", MODEL, lambda: words().astype(object)),
    ("words and numbers mixed", MODEL, lambda: words(a=objects("x", 1, 2.5, None))),
    ("flags with missing values", MODEL, lambda: words(a=objects(True, None, False))),
    ("flags and numbers mixed", MODEL, lambda: words(a=objects(True, 1, 0, False, 2))),
    ("categories", MODEL, lambda: words(a=pd.Categorical(cycle("x", "y", None)))),
    ("ordered categories", MODEL, lambda: words(a=pd.Categorical(cycle("s", "l"), list("sml"), ordered=True))),
    ("categories of numbers", MODEL, lambda: words(a=pd.Categorical(cycle(1.5, 2.5)))),
    ("categories of dates", MODEL, lambda: words(a=pd.Categorical(pd.to_datetime(cycle("2024-01-01", "2024-02-01"))))),
    ("categories of both 1 and '1'", MODEL, lambda: words(a=pd.Categorical(cycle(1, "1", 2)))),
    ("intervals", MODEL, lambda: words(a=pd.cut(GOOD[:, 1], 4))),
    ("periods", MODEL, lambda: words(a=pd.period_range("2020-01", periods=N, freq="M"))),
    ("zoned dates", MODEL, lambda: words(a=pd.date_range("2024", periods=N, tz="Europe/Berlin"))),
    ("naive and zoned dates mixed", MODEL,
     lambda: words(a=objects(dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2, tzinfo=dt.UTC)))),
    ("the first and last dates there are", MODEL, lambda: words(a=cycle("0001-01-01", "9999-12-31", "2024-02-29"))),
    ("impossible dates", MODEL, lambda: words(a=cycle("2024-02-30", "2024-13-01", "2024-01-01"))),
    ("dates and words mixed", MODEL, lambda: words(a=cycle("2024-02-03", "soon", "2024-01-01"))),
    ("date objects, one missing", MODEL, lambda: words(a=objects(dt.date(2024, 1, 1), None, dt.date(2024, 5, 1)))),
    ("times of day", MODEL, lambda: words(a=objects(dt.time(8), dt.time(9, 30), None))),
    ("durations with missing values", MODEL, lambda: words(a=pd.to_timedelta(cycle("1h", "2h", None)))),
    ("nullable types", MODEL, lambda: words(a=pd.array(cycle(1, None, 3), dtype="Int64")).convert_dtypes()),
    ("arrow types", MODEL, lambda: words(a=cycle(1, 2, 3)).convert_dtypes(dtype_backend="pyarrow")),
    ("sparse columns", MODEL, lambda: words(a=pd.arrays.SparseArray(cycle(0.0, 0.0, 1.0)))),
    ("numbers with marks for missing values", MODEL, lambda: words(a=cycle("1.5", "?", "n/a", "-", "2"))),
    ("numbers with decimal commas", MODEL, lambda: words(a=cycle("1,5", "2,25"))),
    ("numbers that are no numbers", MODEL, lambda: words(a=cycle("1.2.3", "1_000", "0x1F"))),
    ("codes with leading zeros", MODEL, lambda: words(a=cycle("00501", "01234"))),
    ("empty strings", MODEL, lambda: words(a=cycle("", "  ", "x", "y"))),
    ("strings with NUL", MODEL, lambda: words(a=cycle("x\0y", "x", "\0"))),
    ("lone surrogates", MODEL, lambda: words(a=objects("\ud800", "x", "y\udfff"))),
    ("a word for every row", MODEL, lambda: words(a=[chr(97 + i % 26) + "x" * (i // 26) for i in range(N)])),
    ("a very long text", MODEL, lambda: words(a=["word " * 20_000, *[f"a short text {i}" for i in range(N - 1)]])),
    ("markup in cells", MODEL, lambda: words(a=cycle("<script>alert(1)</script>", "=1+1", "'; drop table"))),
    ("the name of the unseen", MODEL, lambda: words(a=cycle("(unseen)", "x"))),
    ("bytes in cells", "column `a`, row 0: .*bytes", lambda: words(a=objects(b"x", b"y"))),
    ("complex cells", "column `a`: complex", lambda: words(a=GOOD[:, 1] * 1j)),
    ("dicts in cells", "column `a`, row 0: .*dict", lambda: words(a=objects({}, {"b": 1}))),
    ("lists in cells", "column `a`, row 0: .*list", lambda: words(a=objects([1], [2]))),
    ("a list in one cell", "column `a`, row 2: .*list", lambda: words(a=objects(*["x", "y", [1]] * 13, "x"))),
    ("integers beyond 64 bits in cells", MODEL, lambda: words(a=objects(10**30, 1, 2))),
    ("integers beyond all floats in cells", "infinity|too large", lambda: words(a=objects(10**400, 1, 2))),
    ("a polars frame", MODEL, lambda: pl.from_pandas(words())),
    ("a polars frame of numbers", MODEL, lambda: pl.DataFrame(GOOD, schema=["a", "b", "c"])),
    ("a polars frame with an empty column", MODEL, lambda: pl.from_pandas(words()).with_columns(a=pl.lit(None))),
    ("a polars frame of lists", "column `a`, row 0: .*list",
     lambda: pl.from_pandas(words()).with_columns(a=pl.lit([1]))),
    ("a lazy frame", "collect", lambda: pl.from_pandas(words()).lazy()),
    ("a pyarrow table", MODEL, lambda: pa.Table.from_pandas(words())),
]
SPARSES = [
    *((f"{kind.__name__} of numbers", MODEL, lambda kind=kind: kind(SPARSE))
      for kind in (sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.lil_matrix, sp.dok_matrix, sp.dia_matrix,
                   sp.bsr_matrix, sp.csr_array, sp.coo_array)),
    ("sparse integers", MODEL, lambda: (SPARSE * 20).astype(np.int32)),
    ("sparse zeros alone", FINITE, lambda: sp.csr_matrix((N, 3))),
    ("zeros stored in a sparse matrix", MODEL, lambda: sp.csr_matrix((GOOD.ravel() * (np.abs(GOOD.ravel()) > 0.3),
                                                                     np.tile([0, 1, 2], N), np.arange(N + 1) * 3))),
    ("sparse entries twice", MODEL, lambda: sp.coo_matrix(
        (np.tile(GOOD.ravel() / 2, 2), (np.tile(np.repeat(np.arange(N), 3), 2), np.tile(np.tile([0, 1, 2], N), 2))))),
    ("sparse indices of 64 bits", MODEL, lambda: sp.csr_matrix(
        (SPARSE.data, SPARSE.indices.astype(np.int64), SPARSE.indptr.astype(np.int64)), shape=(N, 3))),
    ("sparse columns out of order", MODEL, lambda: sp.csr_matrix(
        (GOOD[:, ::-1].ravel(), np.tile([2, 1, 0], N), np.arange(N + 1) * 3), shape=(N, 3))),
    ("a sparse missing value", "NaN.*row 3, column 1", lambda: sp.csr_matrix(put(np.nan, float, row=3))),
]
LABELS = [
    ("no target", "y to be passed.*None", lambda: None),
    ("a number for a target", "1d|scalar|dimension|bad input", lambda: 1),
    ("an empty target", "inconsistent|0 sample|bad input", lambda: []),
    ("a target too short", "inconsistent numbers of samples", lambda: LABEL[:-1]),
    ("a target too long", "inconsistent numbers of samples", lambda: [*LABEL, "no"]),
    ("a target of two columns", "1d array|bad input", lambda: np.column_stack([LABEL, LABEL])),
    ("a target in one column", MODEL, lambda: LABEL[:, None]),
    ("a target in a frame", MODEL, lambda: pd.DataFrame({"y": LABEL})),
    ("a missing value in the target", "NaN|missing", lambda: np.where(np.arange(N) == 3, np.nan, GOOD[:, 0] > 0)),
    ("a missing value in the words of the target", "NaN|missing|None", lambda: [None, *LABEL[1:]]),
    ("NA in the target", "NaN|missing|NA", lambda: pd.array([pd.NA, *(GOOD[1:, 0] > 0)], dtype="boolean")),
    ("infinity in the target", "infinity", lambda: np.where(np.arange(N) == 3, np.inf, GOOD[:, 0] > 0)),
    ("numbers with fractions as classes", "continuous|regression", lambda: VALUE),
    ("one class", "one class|1 class", lambda: ["yes"] * N),
    ("a class of one row", FINITE, lambda: ["rare", *LABEL[1:]]),
    ("only one row of another class", FINITE, lambda: ["yes", *["no"] * (N - 1)]),
    ("a class for every row", FINITE, lambda: np.arange(N)),
    ("26 classes", FINITE, lambda: [chr(97 + i % 26) for i in range(N)]),
    ("flags", MODEL, lambda: GOOD[:, 0] > 0),
    ("nullable flags", MODEL, lambda: pd.array(GOOD[:, 0] > 0, dtype="boolean")),
    ("numbers as classes", MODEL, lambda: np.where(GOOD[:, 0] > 0, 10, -3)),
    ("floats as classes", MODEL, lambda: np.where(GOOD[:, 0] > 0, 1.0, 0.0)),
    ("huge numbers as classes", MODEL, lambda: np.where(GOOD[:, 0] > 0, 2**62, -(2**62))),
    ("categories as classes", MODEL, lambda: pd.Series(LABEL, dtype="category")),
    ("objects as classes", MODEL, lambda: LABEL.astype(object)),
    ("another index on the target", MODEL, lambda: pd.Series(LABEL, index=range(500, 500 + N))),
    ("a polars target", MODEL, lambda: pl.Series(LABEL)),
    ("labels of blanks and markup", MODEL, lambda: np.where(GOOD[:, 0] > 0, " ", "<b>")),
    ("words and numbers as classes", FINITE, lambda: cycle("a", 1)),
    ("bytes as classes", "bytes|string", lambda: LABEL.astype("S")),
    ("complex classes", "[Cc]omplex", lambda: (GOOD[:, 0] > 0) * 1j),
    ("a one-hot target", "1d array|bad input|multilabel", lambda: np.eye(2)[(GOOD[:, 0] > 0).astype(int)]),
    ("a sparse target", "[Ss]parse", lambda: sp.csr_matrix((GOOD[:, :1] > 0).astype(int))),
]
VALUES = [
    ("words as values", "no numbers|could not convert", lambda: LABEL),
    ("numbers in strings as values", MODEL, lambda: VALUE.astype(str)),
    ("objects as values", MODEL, lambda: VALUE.astype(object)),
    ("decimals as values", MODEL, lambda: [decimal.Decimal(str(v)) for v in VALUE]),
    ("a missing value in the values", "NaN|missing", lambda: np.where(np.arange(N) == 3, np.nan, VALUE)),
    ("None in the values", "NaN|None|missing|no numbers", lambda: [None, *VALUE[1:]]),
    ("infinity in the values", "infinity", lambda: np.where(np.arange(N) == 3, np.inf, VALUE)),
    ("complex values", "[Cc]omplex|no numbers|real", lambda: VALUE * 1j),
    ("dates as values", "no numbers|date", lambda: pd.date_range("2024", periods=N)),
    ("durations as values", "no numbers|duration", lambda: pd.to_timedelta(np.arange(N), unit="h")),
    ("values of two columns", "1d array|bad input", lambda: np.column_stack([VALUE, VALUE])),
    ("values too short", "inconsistent numbers of samples", lambda: VALUE[:-1]),
    ("flags as values", FINITE, lambda: GOOD[:, 0] > 0),
    ("whole numbers as values", MODEL, lambda: (VALUE * 10).astype(int)),
    ("constant values", FINITE, lambda: np.full(N, 7.0)),
    ("huge values", MODEL, lambda: VALUE * 1e100),
    ("values with a far offset", MODEL, lambda: VALUE + 1e6),
    ("one far value", FINITE, lambda: np.where(np.arange(N) == 3, 1e12, VALUE)),
    ("values of 32 bits", MODEL, lambda: VALUE.astype(np.float32)),
    ("nullable values", MODEL, lambda: pd.array(VALUE, dtype="Float64")),
]
WEIGHTS = [
    ("negative weights", "[Nn]egative", lambda: -np.ones(N)),
    ("one negative weight", "[Nn]egative", lambda: np.where(np.arange(N) == 3, -1.0, 1.0)),
    ("a missing value in the weights", "NaN", lambda: np.where(np.arange(N) == 3, np.nan, 1.0)),
    ("infinity in the weights", "infinity", lambda: np.where(np.arange(N) == 3, np.inf, 1.0)),
    ("zero weights alone", "zero", lambda: np.zeros(N)),
    ("words as weights", "could not convert|dtype|numeric", lambda: LABEL),
    ("weights too short", "shape", lambda: np.ones(N - 1)),
    ("weights of two columns", "1D|dimension|shape", lambda: np.ones((N, 2))),
    ("some zero weights", MODEL, lambda: np.where(np.arange(N) % 4 == 3, 0.0, 1.0)),
    ("weight on one class alone", "class", lambda: (LABEL == "yes").astype(float)),
    ("weight on two rows alone", FINITE,
     lambda: np.isin(np.arange(N), [np.argmax(LABEL == "yes"), np.argmax(LABEL == "no")]) * 1.0),
    ("huge weights", MODEL, lambda: np.full(N, 1e200)),
    ("tiny weights", FINITE, lambda: np.full(N, 1e-200)),
    ("weights in a list", MODEL, lambda: [2] * N),
    ("weights in a series", MODEL, lambda: pd.Series(np.ones(N), index=range(N, 2 * N))),
]
GROUPS = [
    ("groups too short", "groups has 39 entries", lambda: np.zeros(N - 1)),
    ("one group", "one group", lambda: np.zeros(N)),
    ("two groups", MODEL, lambda: np.arange(N) % 2),
    ("a group for every row", MODEL, lambda: np.arange(N)),
    ("words as groups", MODEL, lambda: cycle("a", "b", "c", "d", "e")),
    ("groups that are the classes", FINITE, lambda: LABEL),
    ("a missing value in the groups", "groups is missing .NaN. in row 3",
     lambda: np.where(np.arange(N) == 3, np.nan, np.arange(N) % 5)),
    ("groups of two columns", "groups has 2 dimensions", lambda: np.zeros((N, 2))),
]
FOLDS = [
    ("one fold", "2 folds", lambda: 1),
    ("more folds than rows", "rows", lambda: N + 1),
    ("a fold for every row", MODEL, lambda: N),
    ("a word for folds", "cv is 'five'", lambda: "five"),
    ("a broken number of folds", "cv is 2.5", lambda: 2.5),
    ("an empty list of folds", "cv gives no split", lambda: []),
    ("folds of rows that are not there", "row", lambda: [(np.arange(20), np.arange(20, N + 5))]),
    ("a fold without training rows", "train|empty|row", lambda: [(np.array([], int), np.arange(N))]),
    ("folds that train on what they test", "both|overlap|train",
     lambda: [(np.arange(N), np.arange(5)), (np.arange(N), np.arange(5, N))]),
    ("folds that are no pairs", "train, test|pair|unpack|fold", lambda: [np.arange(N)]),
    ("a splitter", MODEL, lambda: KFold(3)),
    ("a splitter class", "cv is the class KFold", lambda: KFold),
]
SETTINGS = [
    ("a library that is not there", "did you mean 'default'", {"library": "defualt"}),
    ("a specialist that is not there", "did you mean 'logistic'", {"library": ["logistik"]}),
    ("an empty library", "library", {"library": []}),
    ("no library", "library", {"library": None}),
    ("a class for a specialist", "instance|class|LogisticRegression", {"library": [LogisticRegression]}),
    ("a specialist twice", "each name once.*logistic", {"library": ["logistic", "logistic"]}),
    ("a learner of another task", "is a regressor .LinearRegression.; classif", {"library": [LinearRegression()]}),
    ("a learner of no task", "is a clusterer .KMeans.; classification needs", {"library": [KMeans()]}),
    ("a rule that is not there", "rule is 'simplx'.*simplex", {"rule": "simplx"}),
    ("a loss that is not there", "loss", {"loss": "cubic"}),
    ("no time", "time_limit", {"time_limit": 0}),
    ("no memory", "memory", {"memory_limit": 0}),
    ("a word for a seed", "seed|random_state", {"random_state": "lucky"}),
    ("types of columns that are not there", "did you mean 'x0'", {"column_types": {"x00": "number"}}),
    ("types that are not there", "did you mean 'number'", {"column_types": {"x0": "numer"}}),
]
# fmt: on


def cases() -> list[Case]:
    """All rows as one list."""
    tables = [SHAPES, DTYPES, MISSING, SAMENESS, NAMES, CELLS, SPARSES]
    rows = [Case(name, expected, X=make) for table in tables for name, expected, make in table]
    rows += [Case(name, expected, y=make) for name, expected, make in LABELS]
    rows += [Case(name, expected, y=make, task="regression") for name, expected, make in VALUES]
    rows += [Case(name, expected, fit={"sample_weight": make}) for name, expected, make in WEIGHTS]
    rows += [Case(name, expected, fit={"groups": make}) for name, expected, make in GROUPS]
    rows += [Case(name, expected, settings={"cv": make}) for name, expected, make in FOLDS]
    rows += [
        Case(name, expected, settings={k: (lambda v=v: v) for k, v in s.items()}) for name, expected, s in SETTINGS
    ]
    return rows
