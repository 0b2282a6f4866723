"""Arrays, lists, sparse matrices and frames of every make, brought to one form or refused with the cause."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from softlearning.data.inputs import is_table
from softlearning.data.schema import Schema, infer_schema
from softlearning.data.validation import validate
from tests.data.mixed import small

RNG = np.random.default_rng(7)

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
    schema = infer_schema(frame)
    again = infer_schema(other)
    assert [(c.name, c.type, c.missing, c.categories) for c in again.columns] == [
        (c.name, c.type, c.missing, c.categories) for c in schema.columns
    ]
    pd.testing.assert_frame_equal(validate(schema, other), validate(schema, frame))
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
    schema = infer_schema(frame)
    assert [c.type for c in schema.columns] == ["number", "date", "boolean", "number", "category"]
    canonical = validate(schema, frame)
    assert canonical["zoned"][0] == pd.Timestamp(2024, 1, 1, 3)
    assert canonical["span"][1] == 3600.0


def test_objects_and_lists_become_numbered_columns():
    rows = [[1.5, "a", None], [2.5, "b", True], [3.5, "a", False]]
    for X in (rows, np.array(rows, dtype=object), [tuple(row) for row in rows]):
        schema = infer_schema(X)
        assert [(c.name, c.type) for c in schema.columns] == [("x0", "number"), ("x1", "category"), ("x2", "boolean")]
        assert list(validate(schema, X)["x1"]) == ["a", "b", "a"]
        assert is_table(X)
    words = infer_schema(np.array([["1,5", "a"], ["2,5", "b"]]))
    assert [c.type for c in words.columns] == ["number", "category"]


def test_numeric_arrays_are_passed_on_without_a_copy():
    X = RNG.normal(size=(20, 3))
    schema = infer_schema(X)
    assert schema == Schema("array", 20, 3, largest=np.abs(X).max())
    assert validate(schema, X) is X


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
    table = validate(infer_schema(X), X)
    assert table.dtype == np.float64
    assert table.flags.c_contiguous
    assert not is_table(X) or isinstance(X, np.ndarray)


def test_masked_cells_are_missing_cells():
    X = np.ma.masked_array(np.arange(6.0).reshape(3, 2), mask=[[0, 1], [0, 0], [1, 0]])
    assert np.isnan(validate(infer_schema(X), X)).tolist() == [[False, True], [False, False], [True, False]]


@pytest.mark.parametrize(
    "make", [sp.csr_matrix, sp.csc_array, sp.coo_matrix, sp.lil_array, sp.dok_matrix, sp.bsr_matrix]
)
def test_sparse_matrices_of_any_format_become_csr(make):
    X = np.diag([1.0, 2.0, 3.0])
    schema = infer_schema(make(X))
    table = validate(schema, make(X))
    assert schema.form == "sparse"
    assert table.format == "csr"
    np.testing.assert_array_equal(table.toarray(), X)
    np.testing.assert_array_equal(validate(schema, X).toarray(), X)
    np.testing.assert_array_equal(validate(infer_schema(X), make(X)), X)


def test_repeated_entries_of_a_sparse_matrix_are_summed():
    X = sp.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert validate(infer_schema(X), X)[0, 1] == 3.0


REFUSED = {
    "complex": (np.ones((3, 2)) * 1j, ValueError, "Complex data not supported"),
    "complex frame": (pd.DataFrame({"z": [1j, 2j]}), ValueError, "column `z`: complex"),
    "bytes": (np.array([[b"1", b"2"]]), TypeError, "decode bytes"),
    "a number beyond floats": (
        pd.DataFrame({"z": pd.Series([10**400, 1], dtype=object)}),
        ValueError,
        "column `z`, row 0: .*infinity",
    ),
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
    "matrix": (np.ones((1, 2)).view(np.matrix), TypeError, "matrix"),
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
        infer_schema(X)
