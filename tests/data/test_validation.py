"""Input validation: new rows that have drifted give the right answer, a finite one where that is all one can ask, or
an error that names the cause; never a wrong answer in silence, whichever specialist reads them."""

import datetime as dt
import decimal
import pickle
import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from softlearning import SoftClassifier, SoftRegressor
from softlearning.data.messages import CellError
from softlearning.data.schema import infer_schema
from softlearning.data.validation import validate
from softlearning.library import every_row
from tests.data.mixed import small

TASKS = ("classification", "regression")
FAST = {"classification": ("logistic", "hist_gradient_boosting"), "regression": ("ridge", "extra_trees")}


@cache
def training() -> pd.DataFrame:
    """Every kind of column; the numbers are whole eighths, so that float32 holds them exactly."""
    rng = np.random.default_rng(5)
    n = 120
    frame = pd.DataFrame(
        {
            "row_id": np.arange(n),
            "size": np.round(rng.normal(size=n) * 8) / 8,
            "weight": np.where(rng.random(n) < 0.2, np.nan, np.round(rng.normal(50, 9, size=n) * 8) / 8),
            "count": rng.integers(1, 9, n),
            "flag": rng.random(n) < 0.5,
            "colour": rng.choice(["red", "green", "blue"], n),
            "town": rng.choice([f"town{i}" for i in range(25)], n),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D"),
            "note": [
                f"{a} house with {b} windows, lot {i}" for i, (a, b) in enumerate(rng.choice(["old", "new"], (n, 2)))
            ],
        }
    )
    return frame


@cache
def fitted(task, specialist):
    frame = training()
    score = frame["size"] + (frame["colour"] == "red") + 0.3 * frame["count"]
    if task == "regression":
        return SoftRegressor(library=[specialist], cv=2, rule="simplex").fit(frame, score)
    return SoftClassifier(library=[specialist], cv=2, rule="simplex").fit(
        frame, pd.cut(score, 3, labels=["low", "mid", "high"])
    )


def answer(model, X):
    return model.predict(X) if hasattr(model, "predict_interval") else model.predict_proba(X)


def rows() -> pd.DataFrame:
    return training().iloc[20:28]


def cast(**dtypes):
    return lambda f: f.astype(dtypes)


def with_(**values):
    return lambda f: f.assign(**{name: make(f) for name, make in values.items()})


SAME = {
    "columns reversed": lambda f: f[f.columns[::-1]],
    "columns sorted": lambda f: f[sorted(f.columns)],
    "identifier left out": lambda f: f.drop(columns="row_id"),
    "another index": lambda f: f.set_axis([f"r{i}" for i in range(len(f))]),
    "categories in another order": cast(colour=pd.CategoricalDtype(["green", "blue", "red"])),
    "categories never seen declared": cast(colour=pd.CategoricalDtype(["pink", "red", "green", "blue"])),
    "categories as objects": cast(colour=object, town=object, note=object),
    "categories with blanks around": with_(colour=lambda f: " " + f["colour"] + "  "),
    "floats as strings": with_(size=lambda f: f["size"].astype(str), weight=lambda f: f["weight"].astype(str)),
    "floats as objects": cast(size=object, weight=object),
    "floats as float32": cast(size="float32", weight="float32"),
    "floats as nullable": cast(size="Float64", weight="Float64"),
    "integers as floats": cast(count=float),
    "integers as strings": cast(count=str),
    "integers as small ones": cast(count="uint8"),
    "integers as nullable": cast(count="Int64"),
    "booleans as integers": cast(flag=int),
    "booleans as words": with_(flag=lambda f: f["flag"].map({True: "TRUE", False: "false"})),
    "booleans as nullable": cast(flag="boolean"),
    "dates as strings": with_(when=lambda f: f["when"].dt.strftime("%Y-%m-%d")),
    "dates as date objects": with_(when=lambda f: f["when"].dt.date),
    "dates with a zone": with_(when=lambda f: f["when"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")),
    "dates in another unit": cast(when="datetime64[s]"),
    "arrow-backed": lambda f: f.convert_dtypes(dtype_backend="pyarrow"),
    "nullable throughout": lambda f: f.convert_dtypes(),
    "a polars frame": lambda f: pl.from_pandas(f),
    "a pyarrow table": lambda f: pa.Table.from_pandas(f, preserve_index=False),
}  # the same values in another dress: the same answer
FINITE = {
    "an unseen category": with_(colour=lambda f: "pink"),
    "unseen values of many": with_(town=lambda f: "elsewhere"),
    "a category gone missing": with_(colour=lambda f: None),
    "numbers gone missing": with_(size=lambda f: np.nan, count=lambda f: np.nan),
    "dates gone missing": with_(when=lambda f: pd.NaT),
    "text gone missing": with_(note=lambda f: ""),
    "text in another script": with_(note=lambda f: "日本語 のテキスト"),
    "numbers far away": with_(size=lambda f: 1e30, weight=lambda f: -1e300),
    "dates far away": with_(when=lambda f: pd.Timestamp("2260-01-01")),
    "everything missing": lambda f: f.assign(**dict.fromkeys(f.columns, None)),
}  # new values: a finite answer
REFUSED = {
    "a column missing": (lambda f: f.drop(columns="size"), "missing: `size`"),
    "a column renamed": (lambda f: f.rename(columns={"colour": "color"}), "`colour` .did you mean 'color'"),
    "a column twice": (lambda f: pd.concat([f, f[["size"]]], axis=1), "unique.*size"),
    "infinity": (with_(size=lambda f: np.inf), "column `size`, row 0: infinity"),
    "words for numbers": (with_(size=lambda f: "large"), "column `size`, row 0: 'large' is not a number"),
    "a decimal comma": (with_(size=lambda f: "1,5"), "column `size`, row 0: '1,5' is not a number"),
    "dates for numbers": (with_(size=lambda f: f["when"]), "column `size`: holds dates"),
    "numbers for dates": (with_(when=lambda f: 5.0), "column `when`: holds numbers"),
    "dates of another spelling": (with_(when=lambda f: "31/12/2024"), "column `when`, row 0: '31/12/2024'"),
    "numbers for booleans": (with_(flag=lambda f: 7), "column `flag`, row 0: 7"),
    "bytes": (with_(colour=lambda f: [b"red"] * len(f)), "column `colour`, row 0: .*bytes"),
    "lists in cells": (with_(size=lambda f: [[1.0]] * len(f)), "column `size`, row 0: .*list"),
    "complex numbers": (cast(size=complex), "column `size`: complex"),
    "an array without names": (lambda f: f.to_numpy(object), "named columns"),
    "a row of its own": (lambda f: f.iloc[0], "2-dimensional|Reshape|named columns"),
}  # no answer can be right: an error with the cause


def cases():
    return [
        pytest.param(task, specialist, marks=[] if specialist in FAST[task] else [pytest.mark.slow])
        for task in TASKS
        for specialist in every_row(task).level(1).names
    ]


def test_there_are_at_least_thirty_kinds_of_drift():
    assert len(SAME) + len(FINITE) + len(REFUSED) >= 30


@pytest.mark.parametrize(("task", "specialist"), cases())
def test_the_same_values_in_another_dress_get_the_same_answer(task, specialist):
    model = fitted(task, specialist)
    expected = answer(model, rows())
    for name, drift in SAME.items():
        np.testing.assert_allclose(answer(model, drift(rows())), expected, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(("task", "specialist"), cases())
def test_new_values_get_a_finite_answer(task, specialist):
    model = fitted(task, specialist)
    for name, drift in FINITE.items():
        given = answer(model, drift(rows()))
        assert len(given) == len(rows()), name
        assert np.isfinite(given).all(), name


@pytest.mark.parametrize(("task", "specialist"), cases())
def test_what_has_no_right_answer_is_refused_with_the_cause(task, specialist):
    model = fitted(task, specialist)
    for name, (drift, message) in REFUSED.items():
        with pytest.raises((ValueError, TypeError), match=message):
            print(name, answer(model, drift(rows())))


@pytest.mark.parametrize(("task", "specialist"), cases())
def test_rows_are_answered_one_by_one_as_together(task, specialist):
    model = fitted(task, specialist)
    together = answer(model, rows())
    order = np.random.default_rng(0).permutation(len(rows()))
    np.testing.assert_allclose(answer(model, rows().iloc[order]), together[order], rtol=1e-6, atol=1e-9)
    single = np.concatenate([answer(model, rows().iloc[[i]]) for i in range(len(rows()))])
    np.testing.assert_allclose(single, together, rtol=1e-6, atol=1e-9)
    assert len(answer(model, rows().iloc[:0])) == 0


@pytest.mark.parametrize(("task", "specialist"), cases())
def test_extra_columns_are_ignored_with_one_warning(task, specialist):
    model = fitted(task, specialist)
    with pytest.warns(UserWarning, match=r"1 column\(s\) unknown to the model ignored: `target`") as caught:
        given = answer(model, rows().assign(target=1.0))
    assert len(caught) == 1
    np.testing.assert_array_equal(given, answer(model, rows()))


# --- the canonical table


@pytest.fixture
def known():
    frame = small()
    return infer_schema(frame), frame


def test_columns_are_matched_by_name(known):
    schema, frame = known
    pd.testing.assert_frame_equal(validate(schema, frame[frame.columns[::-1]]), validate(schema, frame))


def test_a_missing_column_is_named_with_the_nearest_one_there(known):
    schema, frame = known
    with pytest.raises(ValueError, match=r"1 column\(s\) missing: `visits` \(did you mean 'visit'\?\)"):
        validate(schema, frame.rename(columns={"visits": "visit"}))
    with pytest.raises(ValueError, match=r"missing: `[^(]*; there are: q$"):  # what is there, once for all that miss
        validate(schema, frame[["visits"]].set_axis(["q"], axis=1))


def test_extra_columns_of_any_number_give_one_warning(known):
    schema, frame = known
    with pytest.warns(UserWarning, match=r"2 column\(s\) unknown to the model ignored: `y`, `z`") as caught:
        table = validate(schema, frame.assign(y=1, z="a"))
    assert len(caught) == 1
    pd.testing.assert_frame_equal(table, validate(schema, frame))


def test_dropped_columns_may_be_absent_at_prediction():
    frame = small().assign(customer_id=range(30))
    schema = infer_schema(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pd.testing.assert_frame_equal(validate(schema, small()), validate(schema, frame))


def test_unseen_categories_go_to_the_bucket(known):
    schema, frame = known
    table = validate(schema, frame.head(3).assign(sex=["x", "m", None]))
    assert list(table["sex"].astype(object).where(table["sex"].notna(), None)) == ["(unseen)", "m", None]


def test_a_category_named_like_the_bucket_keeps_its_own_place():
    frame = pd.DataFrame({"a": ["(unseen)", "b"] * 30})
    table = validate(infer_schema(frame), pd.DataFrame({"a": ["(unseen)", "c"]}))
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
def test_the_same_values_in_another_dress_are_the_same(known, column, values):
    schema, frame = known
    given = validate(schema, frame.head(3).assign(**{column: values}))
    pd.testing.assert_frame_equal(given, validate(schema, frame.head(3)))


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
def test_a_cell_that_does_not_fit_is_named_with_row_and_value(known, column, values, message):
    schema, frame = known
    with pytest.raises((ValueError, TypeError), match=message):
        validate(schema, frame.head(3).assign(**{column: values}))


def test_a_table_with_names_takes_no_array(known):
    schema, frame = known
    with pytest.raises(ValueError, match="named columns; give a frame with age, sex"):
        validate(schema, frame.to_numpy(object))


def test_a_frame_of_numbers_takes_an_array_of_the_same_width():
    frame = pd.DataFrame(np.arange(27.0).reshape(9, 3) ** 0.5, columns=list("abc"))
    schema = infer_schema(frame)
    np.testing.assert_array_equal(validate(schema, frame.to_numpy()), frame.to_numpy())
    with pytest.raises(ValueError, match="X has 2 features, but the model is expecting 3 features"):
        validate(schema, frame.to_numpy()[:, :2])


def test_rare_categories_share_the_bucket_beyond_the_limit(monkeypatch):
    monkeypatch.setattr("softlearning.data.schema.MAX_CATEGORIES", 2)
    frame = pd.DataFrame({"a": ["x"] * 30 + ["y"] * 20 + ["z"] * 10})
    table = validate(infer_schema(frame), frame)
    assert table["a"].value_counts().to_dict() == {"x": 30, "y": 20, "(unseen)": 10}


def test_a_refused_cell_is_told_in_fields_too(known):
    schema, frame = known
    with pytest.raises(CellError) as caught:
        validate(schema, frame.head(3).assign(age=["22", "old", "26"]))
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.column, error.row, error.value, error.expected) == ("age", 1, "old", "a number")
    assert str(error) == "column `age`, row 1: 'old' is not a number"
    with pytest.raises(CellError) as caught:
        validate(schema, frame.head(3).assign(born=[1, 2, 3]))
    assert (caught.value.column, caught.value.row) == ("born", None)


@pytest.mark.parametrize("word", ["now", "today", "NOW"])
def test_dates_are_never_read_from_the_clock(known, word):
    schema, frame = known
    with pytest.raises(CellError, match=f"column `born`, row 1: '{word}' is not a date"):
        validate(schema, frame.head(2).assign(born=["2001-05-01", word]))
