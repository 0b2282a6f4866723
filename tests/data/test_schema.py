"""Tables: what every column is, and the one gate in front of training and prediction."""

import datetime as dt
import decimal
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from softlearning.data.schema import (
    KINDS,
    Schema,
    admit,
    describe,
    guess_task,
    is_table,
    read_table,
    summary,
    understand,
)
from softlearning.data.values import date_style, number_style, parse_number

N = 60
RNG = np.random.default_rng(7)


def cycle(*values, n=N):
    return [values[i % len(values)] for i in range(n)]


def days(n=N):
    return [dt.datetime(2024, 1, 1) + dt.timedelta(days=i, hours=i % 5) for i in range(n)]


MANY = [f"town {chr(65 + i % 26)}{'xyz'[i % 3] * (i % 7)}" for i in range(N)]
COLUMNS = {
    "floats": (RNG.normal(size=N), "numeric"),
    "unique floats are a measurement": (np.arange(N) * 1.0, "numeric"),
    "floats with gaps": ([None, *RNG.normal(size=N - 1)], "numeric"),
    "integers": (cycle(3, 1, 2), "numeric"),
    "unique integers, not running": (np.arange(N) * 7 + 5, "numeric"),
    "year": (np.arange(N) + 1, "numeric"),
    "nullable integers": (pd.array(cycle(1, None, 5), dtype="Int64"), "numeric"),
    "nullable floats": (pd.array(cycle(1.5, None, 5), dtype="Float64"), "numeric"),
    "arrow integers": (pd.array(cycle(1, None, 5), dtype="int64[pyarrow]"), "numeric"),
    "sparse floats": (pd.arrays.SparseArray(cycle(0.0, 0.0, 2.0)), "numeric"),
    "decimals": (cycle(decimal.Decimal("1.5"), None, decimal.Decimal(2)), "numeric"),
    "numbers as strings": (cycle("1.5", "-2", "1e3", None), "numeric"),
    "numbers with marks for missing": (cycle("1.5", "?", "n/a", "2"), "numeric"),
    "decimal comma": (cycle("1,5", "-0,25", "3"), "numeric"),
    "thousands": (cycle("1,234", "950", "1,234,567.5"), "numeric"),
    "point for thousands": (cycle("1.234,5", "7,25", "1.234.567"), "numeric"),
    "blanks for thousands": (cycle("1 234,5", "7,25", "1 234 567"), "numeric"),
    "percent": (cycle("12%", "7.5 %", "100%"), "numeric"),
    "currency": (cycle("$1,200.50", "$7", "$12"), "numeric"),
    "timedeltas": (pd.to_timedelta(cycle(1, 5, None), unit="h"), "numeric"),
    "one value and gaps": (cycle(1.0, None), "numeric"),
    "booleans": (cycle(True, False), "boolean"),
    "nullable booleans": (pd.array(cycle(True, None, False), dtype="boolean"), "boolean"),
    "object booleans": (pd.Series(cycle(True, None, False), dtype=object), "boolean"),
    "true and false in words": (cycle("true", "FALSE"), "boolean"),
    "strings": (cycle("red", "green", None), "category"),
    "yes and no": (cycle("yes", "no"), "category"),
    "zip codes keep their zeros": (cycle("01234", "00501", "99999"), "category"),
    "categories": (pd.Categorical(cycle("a", "b", None)), "category"),
    "categories of numbers": (pd.Categorical(cycle(10, 20)), "category"),
    "intervals": (pd.cut(RNG.normal(size=N), 3), "category"),
    "mixed objects": (cycle("a", 1, 2.5, None), "category"),
    "names of two words": ([f"maker{i % 7} model{i}" for i in range(N)], "high_cardinality"),
    "many strings": (cycle(*[f"k{i}" for i in range(25)]), "high_cardinality"),
    "dates": (days(), "datetime"),
    "dates with a zone": (pd.to_datetime(days()).tz_localize("Asia/Tokyo"), "datetime"),
    "date objects": ([d.date() for d in days()], "datetime"),
    "periods": (pd.period_range("2020-01", periods=N, freq="M"), "datetime"),
    "dates as ISO strings": ([d.isoformat() for d in days()], "datetime"),
    "dates with gaps": ([None, *[str(d.date()) for d in days(N - 1)]], "datetime"),
    "German dates": ([d.strftime("%d.%m.%Y") for d in days()], "datetime"),
    "American dates": ([d.strftime("%m/%d/%Y") for d in days()], "datetime"),
    "dates with names of months": ([d.strftime("%d %b %Y") for d in days()], "datetime"),
    "prose": ([f"{word} is a nice place number {i}" for i, word in enumerate(MANY)], "text"),
    "constant number": (cycle(5.0), "constant"),
    "constant string": (cycle("x"), "constant"),
    "nothing": (cycle(None), "all_missing"),
    "NaN alone": (cycle(np.nan), "all_missing"),
    "blanks alone": (cycle("", "  "), "all_missing"),
    "running number": (np.arange(N) + 1, "identifier"),
    "shuffled running number": (RNG.permutation(N), "identifier"),
    "running number in strings": ([str(i) for i in range(N)], "identifier"),
    "customer_id": (np.arange(N) * 7 + 5, "identifier"),
    "codes of one shape": ([f"AB-{1000 + 3 * i}" for i in range(N)], "identifier"),
    "hashes": ([f"{hash((i, 1)) & 0xFFFFFFFFFF:010x}" for i in range(N)], "identifier"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_is_told_for_what_it_is(name):
    values, kind = COLUMNS[name]
    frame = pd.DataFrame({name: values, "other": RNG.normal(size=N)})
    schema = understand(frame)
    assert schema.columns[0].kind == kind, schema.columns[0]
    canonical = admit(schema, frame)
    assert canonical.shape == (N, 2 if schema.columns[0].kept else 1)
    missing = int(
        pd.isna(canonical if isinstance(canonical, pd.DataFrame) else pd.DataFrame(canonical)).to_numpy().sum()
    )
    assert missing == sum(column.missing for column in schema.kept)


def everything() -> pd.DataFrame:
    return pd.DataFrame({name: values for name, (values, _) in COLUMNS.items()})


def test_a_schema_survives_json():
    schema = understand(everything())
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    pd.testing.assert_frame_equal(admit(again, everything()), admit(schema, everything()))


def test_canonical_columns_have_canonical_types():
    canonical = admit(understand(everything()), everything())
    kinds = {name: kind for name, (_, kind) in COLUMNS.items()}
    expected = {"numeric": "float64", "boolean": "float64", "datetime": "datetime64[us]", "text": "str"}
    for name, dtype in canonical.dtypes.items():
        assert str(dtype) == expected.get(kinds[name], "category")


def test_rows_taken_one_at_a_time_are_the_rows_of_the_whole():
    frame = everything()
    schema = understand(frame)
    whole = admit(schema, frame)
    for i in (0, 1, 17, N - 1):
        pd.testing.assert_frame_equal(
            admit(schema, frame.iloc[[i]]), whole.iloc[[i]].reset_index(drop=True), check_freq=False
        )


def test_no_rows_give_an_empty_canonical_table():
    schema = understand(everything())
    empty = admit(schema, everything().iloc[:0])
    assert len(empty) == 0
    assert list(empty.dtypes) == list(admit(schema, everything()).dtypes)
    assert admit(understand(np.eye(3)), np.empty((0, 3))).shape == (0, 3)
    assert admit(understand(sp.eye(3)), sp.csr_matrix((0, 3))).shape == (0, 3)


# --- the user overrules


def test_the_user_overrules_each_guess():
    frame = pd.DataFrame({"id": np.arange(N), "code": cycle(1, 2, 3), "when": cycle("01/02/2024", "03/02/2024")})
    assert [c.kind for c in understand(frame).columns] == ["identifier", "numeric", "datetime"]
    kinds = {"id": "numeric", "code": "category", "when": "datetime:%m/%d/%Y"}
    schema = understand(frame, kinds)
    canonical = admit(schema, frame)
    assert [c.kind for c in schema.columns] == ["numeric", "category", "datetime"]
    assert canonical["when"][0] == pd.Timestamp(2024, 1, 2)
    assert list(canonical["code"].cat.categories) == ["1", "2", "3", "(unseen)"]
    assert not understand(frame, {"code": "identifier"}).columns[1].kept


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "boolean"])
def test_every_kind_can_be_asked_for(kind):
    frame = pd.DataFrame({"when": [f"2024-01-{i % 28 + 1:02d}" for i in range(N)], "x": RNG.normal(size=N)})
    if kind == "numeric":
        with pytest.raises(ValueError, match="column `when`, row 0: '2024-01-01' is not a number"):
            understand(frame, {"when": kind})
    else:
        assert understand(frame, {"when": kind}).columns[0].kind == kind


@pytest.mark.parametrize(
    ("kinds", "message"),
    [({"ag": "numeric"}, "did you mean 'age'"), ({"age": "nummeric"}, "did you mean 'numeric'")],
)
def test_a_misspelt_column_or_kind_is_refused_with_the_nearest_name(kinds, message):
    with pytest.raises(ValueError, match=message):
        understand(pd.DataFrame({"age": [1.0, 2.0], "sex": ["a", "b"]}), kinds)


def test_kinds_reach_arrays_by_number():
    X = np.column_stack([np.arange(N) % 3, RNG.normal(size=N)])
    schema = understand(X, {"x0": "category"})
    assert schema.form == "table"
    assert list(admit(schema, X[:3])["x0"]) == ["0", "1", "2"]


# --- containers


def small() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [22.0, np.nan, 26.0, 35.0, 41.0] * 6,
            "sex": ["m", "f", None, "f", "m"] * 6,
            "born": pd.to_datetime(["2001-05-01", "1999-12-31", None, "2000-02-29", "1980-07-07"] * 6),
            "smokes": [True, False, True, False, False] * 6,
            "visits": [1, 2, 3, 2, 1] * 6,
        }
    )


CONTAINERS = {
    "polars": pl.from_pandas,
    "polars with a category": lambda f: pl.from_pandas(f).with_columns(pl.col("sex").cast(pl.Categorical)),
    "pyarrow table": lambda f: pa.Table.from_pandas(f, preserve_index=False),
    "arrow-backed pandas": lambda f: f.convert_dtypes(dtype_backend="pyarrow"),
    "nullable pandas": lambda f: f.convert_dtypes(),
    "object pandas": lambda f: f.astype(object),
    "other index": lambda f: f.set_axis(range(100, 100 + len(f)), axis=0),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_frames_of_every_make_give_the_same_schema_and_table(name):
    frame = small()
    other = CONTAINERS[name](frame)
    schema = understand(frame)
    again = understand(other)
    assert [(c.name, c.kind, c.missing, c.categories) for c in again.columns] == [
        (c.name, c.kind, c.missing, c.categories) for c in schema.columns
    ]
    pd.testing.assert_frame_equal(admit(schema, other), admit(schema, frame))
    assert is_table(other)


def test_polars_special_types_are_read():
    frame = pl.DataFrame(
        {
            "price": pl.Series(["1.50", "2.25", None] * 10).cast(pl.Decimal(10, 2)),
            "zoned": pl.Series([dt.datetime(2024, 1, d, 12) for d in range(1, 31)]).dt.replace_time_zone("Asia/Tokyo"),
            "flag": [True, None, False] * 10,
            "span": [dt.timedelta(hours=h) for h in range(30)],
            "size": pl.Series(["s", "m", "l"] * 10, dtype=pl.Enum(["s", "m", "l"])),
        }
    )
    schema = understand(frame)
    assert [c.kind for c in schema.columns] == ["numeric", "datetime", "boolean", "numeric", "category"]
    canonical = admit(schema, frame)
    assert canonical["zoned"][0] == pd.Timestamp(2024, 1, 1, 3)
    assert canonical["span"][1] == 3600.0


def test_objects_and_lists_become_numbered_columns():
    rows = [[1.5, "a", None], [2.5, "b", True], [3.5, "a", False]]
    for X in (rows, np.array(rows, dtype=object), [tuple(row) for row in rows]):
        schema = understand(X)
        assert [(c.name, c.kind) for c in schema.columns] == [("x0", "numeric"), ("x1", "category"), ("x2", "boolean")]
        assert list(admit(schema, X)["x1"]) == ["a", "b", "a"]
        assert is_table(X)
    words = understand(np.array([["1,5", "a"], ["2,5", "b"]]))
    assert [c.kind for c in words.columns] == ["numeric", "category"]


def test_numeric_arrays_are_passed_on_without_a_copy():
    X = RNG.normal(size=(20, 3))
    schema = understand(X)
    assert schema == Schema("array", 20, 3, largest=np.abs(X).max())
    assert admit(schema, X) is X


@pytest.mark.parametrize(
    "X",
    [
        np.arange(12).reshape(4, 3),
        np.arange(12, dtype=np.float32).reshape(4, 3),
        np.asfortranarray(np.arange(12.0).reshape(4, 3)),
        np.arange(12).reshape(4, 3).astype(object),
        np.arange(12).reshape(4, 3).tolist(),
        pd.DataFrame(np.arange(12).reshape(4, 3) % 5 + 0.5),
        np.ma.masked_invalid(np.arange(12.0).reshape(4, 3)),
        np.zeros(4, dtype=[("a", float), ("b", int)]),
    ],
)
def test_whatever_is_numeric_becomes_a_contiguous_float_array(X):
    if isinstance(X, np.ndarray) and X.dtype.names:
        X["a"], X["b"] = [1, 2, 3, 4], [5, 5, 6, 7]
    table = admit(understand(X), X)
    assert table.dtype == np.float64
    assert table.flags.c_contiguous
    assert not is_table(X) or isinstance(X, np.ndarray)


def test_masked_cells_are_missing_cells():
    X = np.ma.masked_array(np.arange(6.0).reshape(3, 2), mask=[[0, 1], [0, 0], [1, 0]])
    assert np.isnan(admit(understand(X), X)).tolist() == [[False, True], [False, False], [True, False]]


@pytest.mark.parametrize(
    "make", [sp.csr_matrix, sp.csc_array, sp.coo_matrix, sp.lil_array, sp.dok_matrix, sp.bsr_matrix]
)
def test_sparse_matrices_of_any_format_become_csr(make):
    X = np.diag([1.0, 2.0, 3.0])
    schema = understand(make(X))
    table = admit(schema, make(X))
    assert schema.form == "sparse"
    assert table.format == "csr"
    np.testing.assert_array_equal(table.toarray(), X)
    np.testing.assert_array_equal(admit(schema, X).toarray(), X)
    np.testing.assert_array_equal(admit(understand(X), make(X)), X)


def test_repeated_entries_of_a_sparse_matrix_are_summed():
    X = sp.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert admit(understand(X), X)[0, 1] == 3.0


REFUSED = {
    "complex": (np.ones((3, 2)) * 1j, ValueError, "Complex data not supported"),
    "complex frame": (pd.DataFrame({"z": [1j, 2j]}), ValueError, "column `z`: complex"),
    "bytes": (np.array([[b"1", b"2"]]), TypeError, "decode bytes"),
    "a number beyond floats": (pd.DataFrame({"z": [10**400, 1]}), ValueError, "column `z`, row 0: .*infinity"),
    "a number beyond floats among words": (pd.DataFrame({"z": ["a", 10**400]}), ValueError, "`z`, row 1: .*infinity"),
    "bytes frame": (pd.DataFrame({"z": [b"a", b"b"]}), TypeError, "column `z`, row 0.*bytes"),
    "dict": (np.array([[1, {}], [2, 3]], dtype=object), TypeError, "argument must be .* string.* number"),
    "dict frame": (pd.DataFrame({"z": [{}, {"a": 1}]}), TypeError, "column `z`, row 0.*dict"),
    "list frame": (pd.DataFrame({"z": [[1], [2]]}), TypeError, "column `z`, row 0.*list"),
    "ragged": ([[1, 2], [3]], ValueError, "row 1 has 1 values, row 0 has 2"),
    "3-d": (np.zeros((2, 2, 2)), ValueError, "dim 3"),
    "1-d": (np.zeros(3), ValueError, "Reshape your data"),
    "series": (pd.Series([1.0, 2.0]), ValueError, "2-dimensional|Reshape"),
    "1-d words": (np.array(["a", "b"]), ValueError, "Reshape your data"),
    "a row of a frame": (pd.DataFrame({"a": [1], "b": ["x"]}).iloc[0], ValueError, "1D Series.*Reshape your data"),
    "scalar": (3.0, ValueError, "scalar"),
    "None": (None, ValueError, "scalar|None"),
    "string": ("table.csv", ValueError, "scalar|dtype|could not convert"),
    "matrix": (np.matrix([[1.0, 2.0]]), TypeError, "matrix"),
    "0 rows": (np.empty((0, 3)), ValueError, "0 sample"),
    "0 rows of a frame": (pd.DataFrame({"a": []}), ValueError, "0 sample"),
    "0 columns": (np.empty((3, 0)), ValueError, r"0 feature\(s\)"),
    "0 columns of a frame": (pd.DataFrame(index=range(3)), ValueError, r"0 feature\(s\)"),
    "infinity": (np.array([[1.0, 2.0], [3.0, -np.inf]]), ValueError, "infinity: row 1, column 1"),
    "infinity beside NaN": (np.array([[np.nan, 2.0], [3.0, np.inf]]), ValueError, "infinity: row 1, column 1"),
    "infinity in a frame": (pd.DataFrame({"a": [1.0, np.inf], "b": [1, 2]}), ValueError, "column `a`, row 1: infinity"),
    "infinity in words": (pd.DataFrame({"a": ["1", "inf"], "b": [1, 2]}), ValueError, "column `a`, row 1: infinity"),
    "infinity in sparse": (sp.csr_matrix([[0, np.inf]]), ValueError, "infinity: row 0, column 1"),
    "NaN in sparse": (sp.csr_matrix([[0, 1], [np.nan, 0]]), ValueError, "NaN.*row 1, column 0"),
    "names twice": (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "unique.*a"),
    "names alike": (pd.DataFrame([[1, 2]], columns=[1, "1"]), ValueError, "unique.*1"),
    "lazy": (pl.LazyFrame({"a": [1]}), TypeError, "collect"),
    "nothing to learn from": (pd.DataFrame({"a": [1, 1], "b": [None, None]}), ValueError, "no column carries.*`a`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_a_table_is_refused_with_its_cause(name):
    X, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        understand(X)


# --- the gate


@pytest.fixture
def gate():
    frame = small()
    return understand(frame), frame


def test_columns_are_matched_by_name(gate):
    schema, frame = gate
    pd.testing.assert_frame_equal(admit(schema, frame[frame.columns[::-1]]), admit(schema, frame))


def test_a_missing_column_is_named_with_the_nearest_one_there(gate):
    schema, frame = gate
    with pytest.raises(ValueError, match=r"1 column\(s\) missing: `visits` \(did you mean 'visit'\?\)"):
        admit(schema, frame.rename(columns={"visits": "visit"}))


def test_extra_columns_are_ignored_with_one_warning(gate):
    schema, frame = gate
    with pytest.warns(UserWarning, match=r"2 column\(s\) unknown to the model ignored: `y`, `z`") as caught:
        table = admit(schema, frame.assign(y=1, z="a"))
    assert len(caught) == 1
    pd.testing.assert_frame_equal(table, admit(schema, frame))


def test_dropped_columns_may_be_absent_at_prediction():
    frame = small().assign(customer_id=range(30))
    schema = understand(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pd.testing.assert_frame_equal(admit(schema, small()), admit(schema, frame))


def test_unseen_categories_go_to_the_bucket(gate):
    schema, frame = gate
    table = admit(schema, frame.head(3).assign(sex=["x", "m", None]))
    assert list(table["sex"].astype(object).where(table["sex"].notna(), None)) == ["(unseen)", "m", None]


def test_a_category_named_like_the_bucket_keeps_its_own_place():
    frame = pd.DataFrame({"a": cycle("(unseen)", "b")})
    table = admit(understand(frame), pd.DataFrame({"a": ["(unseen)", "c"]}))
    assert list(table["a"]) == ["(unseen)", "(unseen)_"]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("age", ["22", "?", "26.0"]),
        ("age", pd.Categorical([22.0, None, 26.0])),
        ("age", pd.array([22, None, 26], dtype="Int64")),
        ("age", np.array([22, np.nan, 26], dtype=np.float32)),
        ("sex", pd.Categorical(["m", "f", None], categories=["f", "x", "m"])),
        ("sex", [" m", "f ", ""]),
        ("smokes", ["True", "false", "TRUE"]),
        ("smokes", [1, 0, 1]),
        ("smokes", [1.0, 0.0, 1.0]),
        ("born", ["2001-05-01", "1999-12-31 00:00", None]),
        ("born", [dt.date(2001, 5, 1), dt.date(1999, 12, 31), None]),
        ("visits", ["1", "2", "3"]),
        ("visits", [decimal.Decimal(1), 2, 3.0]),
    ],
)
def test_the_same_values_in_another_dress_are_the_same(gate, column, values):
    schema, frame = gate
    given = admit(schema, frame.head(3).assign(**{column: values}))
    pd.testing.assert_frame_equal(given, admit(schema, frame.head(3)))


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("age", ["22", "old", "26"], "column `age`, row 1: 'old' is not a number"),
        ("age", ["22", "1,5", "26"], "column `age`, row 1: '1,5' is not a number"),
        ("age", [1.0, np.inf, 2.0], "column `age`, row 1: infinity"),
        ("age", [1.0, 2j, 2.0], "column `age`.*complex"),
        ("age", pd.to_datetime(["2020-01-01"] * 3), "column `age`: holds dates, and numbers are expected"),
        ("age", pd.to_timedelta([1, 2, 3], unit="h"), "column `age`: holds durations, and numbers are expected"),
        ("age", [[1], [2], [3]], "column `age`, row 0.*list"),
        ("smokes", ["true", "perhaps", "false"], "column `smokes`, row 1: 'perhaps' is not"),
        ("smokes", [0, 1, 2], "column `smokes`, row 2: 2 is neither true nor false"),
        ("born", ["2001-05-01", "soon", None], "column `born`, row 1: 'soon' is not a date"),
        ("born", [1, 2, 3], "column `born`: holds numbers, and dates are expected"),
        ("sex", [b"m", b"f", b"m"], "column `sex`, row 0.*bytes"),
    ],
)
def test_a_cell_that_does_not_fit_is_named_with_row_and_value(gate, column, values, message):
    schema, frame = gate
    with pytest.raises((ValueError, TypeError), match=message):
        admit(schema, frame.head(3).assign(**{column: values}))


def test_a_table_with_names_takes_no_array(gate):
    schema, frame = gate
    with pytest.raises(ValueError, match="named columns; give a frame with age, sex"):
        admit(schema, frame.to_numpy(object))


def test_a_frame_of_numbers_takes_an_array_of_the_same_width():
    frame = pd.DataFrame(RNG.normal(size=(9, 3)), columns=list("abc"))
    schema = understand(frame)
    np.testing.assert_array_equal(admit(schema, frame.to_numpy()), frame.to_numpy())
    with pytest.raises(ValueError, match="X has 2 features, but the model is expecting 3 features"):
        admit(schema, frame.to_numpy()[:, :2])


def test_rare_categories_share_the_bucket_beyond_the_limit(monkeypatch):
    monkeypatch.setattr("softlearning.data.schema.MAX_CATEGORIES", 2)
    frame = pd.DataFrame({"a": ["x"] * 30 + ["y"] * 20 + ["z"] * 10})
    table = admit(understand(frame), frame)
    assert table["a"].value_counts().to_dict() == {"x": 30, "y": 20, "(unseen)": 10}


def test_wide_frames_are_judged_as_narrow_ones_are(monkeypatch):
    frame = pd.DataFrame(RNG.normal(size=(9, 5)), columns=list("abcde")).assign(c=1.0, d=np.nan)
    frame.loc[2, "e"] = np.nan
    narrow = understand(frame)
    monkeypatch.setattr("softlearning.data.schema.WIDE", 2)
    wide = understand(frame)
    strip = lambda s: [(c.name, c.kind, c.reason, c.missing, c.low, c.high) for c in s.columns]
    assert strip(wide) == strip(narrow)
    np.testing.assert_array_equal(admit(wide, frame[list("edcba")]), frame[["a", "b", "e"]].to_numpy())
    with pytest.raises(ValueError, match="column `b`, row 3: infinity"):
        admit(wide, frame.assign(b=[0.0, 0, 0, np.inf, 0, 0, 0, 0, 0]))


# --- numbers and dates in words


@pytest.mark.parametrize(
    ("words", "style", "first"),
    [
        (["1", "-2.5", "1e-3", ".5", "7."], "plain", 1.0),
        (["1,5", "2"], "comma", 1.5),
        (["1,500", "2"], "thousands", 1500.0),
        (["0,500", "2"], "comma", 0.5),
        (["1.500,25", "2"], "point", 1500.25),
        (["1 500,25", "2"], "space", 1500.25),
        (["1'500.25", "2"], "space", 1500.25),
        (["50%", "2.5%"], "%plain", 0.5),
        (["50 %", "2,5 %"], "%comma", 0.5),
        (["$1,500", "$2"], "$thousands", 1500.0),
        (["2 €", "1.500,5 €"], "€point", 2.0),
        (["1_000", "2"], "", None),
        (["1", "two"], "", None),
        (["007", "010"], "", None),
        (["1,2,3", "4"], "", None),
        (["-", "?"], "", None),
        (["+", "1"], "", None),
        (["e5", "1"], "", None),
        (["1.2.3", "1"], "", None),
    ],
)
def test_numbers_in_local_spelling(words, style, first):
    assert number_style(words) == style
    if style:
        assert parse_number(words[0], style) == pytest.approx(first)


@pytest.mark.parametrize(
    ("words", "style"),
    [
        (["2024-01-31", "2024-02-01T10:00:00Z"], "ISO8601"),
        (["31/01/2024", "01/02/2024"], "%d/%m/%Y"),
        (["01/31/2024", "01/02/2024"], "%m/%d/%Y"),
        (["01/02/2024", "02/01/2024"], "%d/%m/%Y"),
        (["Jan 31, 2024", "Feb 1, 2024"], "%b %d, %Y"),
        (["31.01.2024 10:30", "01.02.2024 08:00"], "%d.%m.%Y %H:%M"),
        (["May 2024", "Jun 2024"], "%b %Y"),
        (["1/2/24 10:30", "13/2/24 08:00"], "%d/%m/%y %H:%M"),
        (["10:30:00", "11:45:10"], ""),
        (["2020/21", "2021/22"], ""),
        (["room 12", "room 13"], ""),
        (["2024-01-31", "soon 1"], ""),
        (["192.168.0.1", "10.0.0.12"], ""),
    ],
)
def test_dates_in_local_spelling(words, style):
    assert date_style(words) == style


# --- the task


@pytest.mark.parametrize(
    ("y", "task", "reason"),
    [
        ([0, 1] * 20, "classification", "2 distinct values"),
        ([1.5, 2.5] * 20, "classification", "2 distinct values"),
        (["a", "b", "c"], "classification", "words, 3 distinct values"),
        ([True, False], "classification", "true or false"),
        (pd.Categorical([1, 2, 3]), "classification", "words, 3 distinct values"),
        (pd.Categorical(["a", "b"]), "classification", "words, 2 distinct values"),
        (list(range(10)) * 20, "classification", "whole numbers with only 10 distinct values"),
        (list(range(10)) * 2, "regression", "whole numbers with 10 distinct values"),
        (np.arange(100), "regression", "whole numbers with 100 distinct values"),
        (np.arange(129) / 7, "regression", "float with 129 distinct values"),
        (["1,5", "2,5", "7,25"], "regression", "float with 3 distinct values"),
        (pl.Series([1.5, 2.5, 3.5]), "regression", "float with 3 distinct values"),
        (pd.Series([1, None, 0]), "classification", "2 distinct values"),
        (pd.DataFrame({"y": [1.5, 2.5, 3.5]}), "regression", "float with 3 distinct values"),
    ],
)
def test_the_task_is_guessed_and_the_reason_said(y, task, reason):
    guess = guess_task(y)
    assert (guess.task, guess.reason) == (task, reason)


@pytest.mark.parametrize("y", [[], [None, None], pd.to_datetime(["2020-01-01"]), [np.nan]])
def test_a_target_without_a_task_is_refused(y):
    with pytest.raises(ValueError, match="target"):
        guess_task(y)


# --- words


def test_the_description_says_what_was_understood(messy_tables):
    frame = read_table(messy_tables / "titanic.csv")
    schema = understand(frame.drop(columns="Survived"))
    first = describe(schema).splitlines()[0]
    assert first == (
        "891 rows, 11 columns: 5 numeric, 2 categories, 2 categories with many values, 1 text; 866 missing cells; "
        "dropped `PassengerId`, looks like an identifier: a running number"
    )
    assert len(describe(schema).splitlines()) == 12
    assert summary(schema)["dropped"] == {"PassengerId": "looks like an identifier: a running number"}
    assert json.loads(json.dumps(summary(schema))) == summary(schema)


@pytest.mark.parametrize(
    ("name", "target", "task", "kinds"),
    [
        ("titanic", "Survived", "classification", "i n t c n n n h n h c"),
        ("penguins", "species", "classification", "c n n n n c"),
        ("auto_mpg", "mpg", "regression", "n n n n n n c h"),
    ],
)
def test_real_tables_are_understood_from_the_file_alone(messy_tables, name, target, task, kinds):
    frame = read_table(messy_tables / f"{name}.csv")
    assert guess_task(frame.pop(target)).task == task
    schema = understand(frame)
    assert " ".join(column.kind[0] for column in schema.columns) == kinds
    assert len(admit(schema, frame)) == len(frame)


def test_the_description_of_an_array_is_one_line():
    assert describe(understand(np.array([[1.0, np.nan], [2.0, 3.0]]))) == "2 rows, 2 columns: 2 numeric; 1 missing cell"
