"""Schemas: what every column is, what the target is, and how both are told."""

import datetime as dt
import decimal
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from softlearning import SoftRegressor
from softlearning.data.files import read_table
from softlearning.data.schema import COLUMN_TYPES, describe, guess_task, infer_schema, read_target, summary
from softlearning.data.validation import validate

N = 60
RNG = np.random.default_rng(7)


def cycle(*values, n=N):
    return [values[i % len(values)] for i in range(n)]


def days(n=N):
    return [dt.datetime(2024, 1, 1) + dt.timedelta(days=i, hours=i % 5) for i in range(n)]


MANY = [f"town {chr(65 + i % 26)}{'xyz'[i % 3] * (i % 7)}" for i in range(N)]
COLUMNS = {
    "floats": (RNG.normal(size=N), "number"),
    "unique floats are a measurement": (np.arange(N) * 1.0, "number"),
    "floats, some missing": ([None, *RNG.normal(size=N - 1)], "number"),
    "integers": (cycle(3, 1, 2), "number"),
    "unique integers, not running": (np.arange(N) * 7 + 5, "number"),
    "year": (np.arange(N) + 1, "number"),
    "nullable integers": (pd.array(cycle(1, None, 5), dtype="Int64"), "number"),
    "nullable floats": (pd.array(cycle(1.5, None, 5), dtype="Float64"), "number"),
    "arrow integers": (pd.array(cycle(1, None, 5), dtype="int64[pyarrow]"), "number"),
    "sparse floats": (pd.arrays.SparseArray(cycle(0.0, 0.0, 2.0)), "number"),
    "decimals": (cycle(decimal.Decimal("1.5"), None, decimal.Decimal(2)), "number"),
    "numbers as strings": (cycle("1.5", "-2", "1e3", None), "number"),
    "numbers with marks for missing": (cycle("1.5", "?", "n/a", "2"), "number"),
    "decimal comma": (cycle("1,5", "-0,25", "3"), "number"),
    "thousands": (cycle("1,234", "950", "1,234,567.5"), "number"),
    "point for thousands": (cycle("1.234,5", "7,25", "1.234.567"), "number"),
    "blanks for thousands": (cycle("1 234,5", "7,25", "1 234 567"), "number"),
    "percent": (cycle("12%", "7.5 %", "100%"), "number"),
    "currency": (cycle("$1,200.50", "$7", "$12"), "number"),
    "currency, the sign apart": (cycle("€ 1.234,50", "€ 7,00"), "number"),
    "abbreviated thousands": (cycle("1.4k", "900", "2M"), "number"),
    "losses in parentheses": (cycle("(1,999)", "2,000"), "number"),
    "numbers with a unit": (cycle("1,150 sqft", "900 sqft"), "number"),
    "numbers with two units": (cycle("12 km", "3 mi"), "category"),
    "timedeltas": (pd.to_timedelta(cycle(1, 5, None), unit="h"), "number"),
    "one value and missing ones": (cycle(1.0, None), "number"),
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
    "names of two words": ([f"maker{i % 7} model{i}" for i in range(N)], "category"),
    "many strings": (cycle(*[f"k{i}" for i in range(25)]), "category"),
    "dates": (days(), "date"),
    "dates with a zone": (pd.to_datetime(days()).tz_localize("Asia/Tokyo"), "date"),
    "date objects": ([d.date() for d in days()], "date"),
    "periods": (pd.period_range("2020-01", periods=N, freq="M"), "date"),
    "dates as ISO strings": ([d.isoformat() for d in days()], "date"),
    "dates, some missing": ([None, *[str(d.date()) for d in days(N - 1)]], "date"),
    "German dates": ([d.strftime("%d.%m.%Y") for d in days()], "date"),
    "American dates": ([d.strftime("%m/%d/%Y") for d in days()], "date"),
    "dates with names of months": ([d.strftime("%d %b %Y") for d in days()], "date"),
    "dates in two formats": ([d.strftime("%Y-%m-%d" if d.day % 2 else "%d %b %Y") for d in days()], "date"),
    "dates of either order": (cycle("12/31/2024", "31/12/2024"), "category"),
    "dates and the word now": (["now", *[str(d.date()) for d in days(N - 1)]], "category"),
    "prose": ([f"{word} is a nice place number {i}" for i, word in enumerate(MANY)], "text"),
    "constant number": (cycle(5.0), "constant"),
    "constant string": (cycle("x"), "constant"),
    "nothing": (cycle(None), "empty"),
    "NaN alone": (cycle(np.nan), "empty"),
    "blanks alone": (cycle("", "  "), "empty"),
    "running number": (np.arange(N) + 1, "identifier"),
    "shuffled running number": (RNG.permutation(N), "identifier"),
    "running number in strings": ([str(i) for i in range(N)], "identifier"),
    "customer_id": (np.arange(N) * 7 + 5, "identifier"),
    "long numbers": (RNG.choice(9 * 10**9, N, replace=False) + 10**9, "identifier"),
    "unix timestamp": (1_600_000_000 + np.arange(N) * 86_400, "number"),
    "revenue": (np.exp(RNG.normal(20, 1, N)).astype(np.int64), "number"),
    "codes of one shape": ([f"AB-{1000 + 3 * i}" for i in range(N)], "identifier"),
    "hashes": ([f"{hash((i, 1)) & 0xFFFFFFFFFF:010x}" for i in range(N)], "identifier"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_is_told_for_what_it_is(name):
    values, type_ = COLUMNS[name]
    frame = pd.DataFrame({name: values, "other": RNG.normal(size=N)})
    schema = infer_schema(frame)
    assert schema.columns[0].type == type_, schema.columns[0]
    canonical = validate(schema, frame)
    assert canonical.shape == (N, 2 if schema.columns[0].kept else 1)
    missing = int(
        pd.isna(canonical if isinstance(canonical, pd.DataFrame) else pd.DataFrame(canonical)).to_numpy().sum()
    )
    assert missing == sum(column.missing for column in schema.kept)


def everything() -> pd.DataFrame:
    return pd.DataFrame({name: values for name, (values, _) in COLUMNS.items()})


def test_canonical_columns_have_canonical_types():
    canonical = validate(infer_schema(everything()), everything())
    types = {name: type_ for name, (_, type_) in COLUMNS.items()}
    expected = {
        "number": "float64",
        "boolean": "float64",
        "date": "datetime64[us]",
        "text": str(pd.Series(["a"], dtype="str").dtype),
    }
    for name, dtype in canonical.dtypes.items():
        assert str(dtype) == expected.get(types[name], "category")


def test_rows_taken_one_at_a_time_are_the_rows_of_the_whole():
    frame = everything()
    schema = infer_schema(frame)
    whole = validate(schema, frame)
    for i in (0, 1, 17, N - 1):
        pd.testing.assert_frame_equal(
            validate(schema, frame.iloc[[i]]), whole.iloc[[i]].reset_index(drop=True), check_freq=False
        )


def test_no_rows_give_an_empty_canonical_table():
    schema = infer_schema(everything())
    empty = validate(schema, everything().iloc[:0])
    assert len(empty) == 0
    assert list(empty.dtypes) == list(validate(schema, everything()).dtypes)
    assert validate(infer_schema(np.eye(3)), np.empty((0, 3))).shape == (0, 3)
    assert validate(infer_schema(sp.eye(3)), sp.csr_matrix((0, 3))).shape == (0, 3)


# --- the user overrules


def test_the_user_overrules_each_guess():
    frame = pd.DataFrame({"id": np.arange(N), "code": cycle(1, 2, 3), "when": cycle("01/02/2024", "03/02/2024")})
    assert [c.type for c in infer_schema(frame).columns] == ["identifier", "number", "date"]
    types = {"id": "number", "code": "category", "when": "date:%m/%d/%Y"}
    schema = infer_schema(frame, types)
    canonical = validate(schema, frame)
    assert [c.type for c in schema.columns] == ["number", "category", "date"]
    assert canonical["when"][0] == pd.Timestamp(2024, 1, 2)
    assert list(canonical["code"].cat.categories) == ["1", "2", "3", "(unseen)"]
    assert not infer_schema(frame, {"code": "identifier"}).columns[1].kept


@pytest.mark.parametrize("type_", [type_ for type_ in COLUMN_TYPES if type_ != "boolean"])
def test_every_type_can_be_asked_for(type_):
    frame = pd.DataFrame({"when": [f"2024-01-{i % 28 + 1:02d}" for i in range(N)], "x": RNG.normal(size=N)})
    if type_ == "number":
        with pytest.raises(ValueError, match="column `when`, row 0: '2024-01-01' is not a number"):
            infer_schema(frame, {"when": type_})
    else:
        assert infer_schema(frame, {"when": type_}).columns[0].type == type_


@pytest.mark.parametrize(
    ("types", "message"),
    [({"ag": "number"}, "did you mean 'age'"), ({"age": "numer"}, "did you mean 'number'")],
)
def test_a_misspelt_column_or_type_is_refused_with_the_nearest_name(types, message):
    with pytest.raises(ValueError, match=message):
        infer_schema(pd.DataFrame({"age": [1.0, 2.0], "sex": ["a", "b"]}), types)


def test_types_reach_arrays_by_number():
    X = np.column_stack([np.arange(N) % 3, RNG.normal(size=N)])
    schema = infer_schema(X, {"x0": "category"})
    assert schema.form == "table"
    assert list(validate(schema, X[:3])["x0"]) == ["0", "1", "2"]


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
        (np.arange(129) / 7, "regression", "numbers with fractions, 129 distinct values"),
        (["1,5", "2,5", "7,25"], "regression", "numbers with fractions, 3 distinct values"),
        (pl.Series([1.5, 2.5, 3.5]), "regression", "numbers with fractions, 3 distinct values"),
        (pd.Series([1, None, 0]), "classification", "2 distinct values"),
        (pd.DataFrame({"y": [1.5, 2.5, 3.5]}), "regression", "numbers with fractions, 3 distinct values"),
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
    schema = infer_schema(frame.drop(columns="Survived"))
    first = describe(schema).splitlines()[0]
    assert first == ("891 rows, 11 columns: 5 numbers, 4 categories, 1 text; 866 missing cells; dropped `PassengerId`")
    assert len(describe(schema).splitlines()) == 12
    assert max(map(len, describe(schema).splitlines())) <= 97
    assert summary(schema)["dropped"] == {"PassengerId": "looks like an identifier: a running number"}
    assert json.loads(json.dumps(summary(schema))) == summary(schema)


@pytest.mark.parametrize(
    ("name", "target", "task", "types"),
    [
        ("titanic", "Survived", "classification", "i n t c n n n c n c c"),
        ("penguins", "species", "classification", "c n n n n c"),
        ("auto_mpg", "mpg", "regression", "n n n n n n c c"),
    ],
)
def test_real_tables_are_understood_from_the_file_alone(messy_tables, name, target, task, types):
    frame = read_table(messy_tables / f"{name}.csv")
    assert guess_task(frame.pop(target)).task == task
    schema = infer_schema(frame)
    assert " ".join(column.type[0] for column in schema.columns) == types
    assert len(validate(schema, frame)) == len(frame)


def test_the_description_of_an_array_is_one_line():
    assert (
        describe(infer_schema(np.array([[1.0, np.nan], [2.0, 3.0]]))) == "2 rows, 2 columns: 2 numbers; 1 missing cell"
    )


def test_no_internal_token_and_no_escape_reaches_the_screen():
    frame = pd.DataFrame({"price\x1b[31m": cycle("€1.234,50", "€7,00"), "share": cycle("7%", "8%")})
    page = describe(infer_schema(frame))
    assert "such as '€1.234,50'" in page
    assert "\x1b" not in page
    assert not any(token in page for token in ("point", "plain", "thousands"))


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (["$297,000", "$1,200.50", None], [297000.0, 1200.5, np.nan]),
        (["1.234,5 €", "7,25 €"], [1234.5, 7.25]),
        (["7%", "12.5 %"], [0.07, 0.125]),
    ],
)
def test_a_currency_target_is_read_like_a_currency_column(y, expected):
    np.testing.assert_allclose(read_target(pd.Series(y)), expected)


@pytest.mark.parametrize("y", [pd.Series(["a", "b"]), pd.Series([1, 2]), pd.Series(["007", "012"]), pd.Series([True])])
def test_any_other_target_is_left_as_it_is(y):
    pd.testing.assert_series_equal(read_target(y), y)


# --- the user overrules, in a model


@pytest.fixture
def zones(rng):
    table = pd.DataFrame({"id": range(60), "zone": rng.integers(0, 4, 60), "x": rng.normal(size=60)})
    return table, table["x"] + 5 * (table["zone"] == 2)


def test_a_number_said_to_be_a_category_gets_its_own_effect_per_value(zones):
    X, y = zones
    plain = SoftRegressor(["ridge"]).fit(X, y)
    given = SoftRegressor(["ridge"], column_types={"zone": "category"}).fit(X, y)
    assert "as given" in given.table_
    assert given.score(X, y) > plain.score(X, y) + 0.2


def test_column_types_have_numbers_understood_by_name_too(zones):
    X, y = zones
    model = SoftRegressor(["ridge"], column_types={}).fit(X, y)
    assert "dropped `id`" in model.table_
    np.testing.assert_array_equal(model.predict(X[["x", "zone"]]), model.predict(X))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("order_id", np.random.default_rng(0).permutation(100) + 5000),
        ("target", np.arange(1, 101)),
        ("who", [f"u-{k}" for k in range(100)]),
    ],
)
def test_an_identifier_is_no_target(name, values):
    with pytest.raises(ValueError, match="identifier"):
        guess_task(pd.Series(values, name=name))


def test_dates_in_both_orders_are_named(rng):
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 60), "D")
    words = [day.strftime("%d/%m/%Y" if k % 2 else "%m/%d/%Y") for k, day in enumerate(days)]
    [column] = infer_schema(pd.DataFrame({"when": words})).columns
    assert column.type == "category"
    assert column.reason.endswith("dates, but with day and month in both orders")
