"""The gate: prediction input that has drifted gives the right answer, a finite one where that is all one can ask, or
an error that names the cause; never a wrong answer in silence, whichever the specialist behind the gate."""

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from softlearning import SoftClassifier, SoftRegressor
from softlearning.library import every_row

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
        return SoftRegressor(library=[specialist], cv=2).fit(frame, score)
    return SoftClassifier(library=[specialist], cv=2).fit(frame, pd.cut(score, 3, labels=["low", "mid", "high"]))


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
