"""Input validation: the one check of every cell, in front of training and of prediction.

A canonical table is a C-contiguous float64 array (NaN = missing), a csr float64 matrix, or a pandas frame whose columns
are float64, Categorical (the fitted categories and one for the unseen), datetime64[us] or str.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
import pandas as pd
import scipy.sparse as sp

from softlearning.data.inputs import checked_sparse, frame_or_array, has_names
from softlearning.data.messages import closest, nearest, printable
from softlearning.data.schema import NUMBERS, Column, Schema
from softlearning.data.values import Cells, as_words, read_cells, read_dates, read_numbers


def validate(schema: Schema, X: Any) -> Any:
    """Bring X, for training or prediction, into the canonical table of the schema, or refuse it.

    Columns are matched by name where there are names: a missing one is an error, extra ones are ignored with one
    warning. A cell that does not fit is a `CellError` with column, row and value. No rows give an empty table.
    """
    if schema.form == "sparse":
        return _validate_sparse(schema, X)
    data = frame_or_array(cast(Any, X).toarray() if sp.issparse(X) else X)
    if not schema.columns:
        return _validate_array(schema, data)
    if not has_names(X):
        data = _named_by_position(schema, data)
    return _validate_frame(schema, cast(pd.DataFrame, data))


def _validate_array(schema: Schema, data: np.ndarray | pd.DataFrame) -> np.ndarray:
    """For a schema that was fitted on a numeric array: columns by position."""
    _check_width(data.shape[1], schema.width)
    if isinstance(data, np.ndarray):
        return data
    named = ((str(name), series) for name, series in data.items())
    return _stack(len(data), schema.width, (read_numbers(read_cells(s, name), name) for name, s in named))


def _validate_sparse(schema: Schema, X: Any) -> sp.csr_matrix:
    if not sp.issparse(X):
        data = frame_or_array(X)
        X = sp.csr_matrix(data if isinstance(data, np.ndarray) else _validate_array(schema, data))
    matrix = checked_sparse(X)
    _check_width(matrix.shape[1], schema.width)
    return matrix


def _check_width(width: int, expected: int) -> None:
    if width != expected:
        raise ValueError(f"X has {width} features, but the model is expecting {expected} features as input")


def _named_by_position(schema: Schema, data: np.ndarray | pd.DataFrame) -> pd.DataFrame:
    """Give an array the fitted names, where that cannot mislead: all columns numbers, or never named."""
    if schema.named and schema.form == "table":
        wanted = ", ".join(schema.names[:8])
        raise ValueError(f"the model was fitted on a table with named columns; give a frame with {wanted}")
    _check_width(data.shape[1], schema.width)
    names = [column.name for column in schema.columns]
    return pd.DataFrame(data, columns=names) if isinstance(data, np.ndarray) else data.set_axis(names, axis=1)


def _validate_frame(schema: Schema, frame: pd.DataFrame) -> np.ndarray | pd.DataFrame:
    _check_present(schema, dict.fromkeys(frame.columns))
    series = dict(frame.items())
    columns = (_cast(c, read_cells(series[c.name], c.name)) for c in schema.kept)
    if schema.form == "array":
        return _stack(len(frame), len(schema.kept), columns)
    return pd.DataFrame(dict(zip(schema.names, columns)), copy=False)


def _check_present(schema: Schema, present: Mapping[Any, Any]) -> None:
    absent = [name for name in schema.names if name not in present]
    if absent:
        meant = {name: closest(name, present) for name in absent[:5]}
        listed = ", ".join(f"`{printable(n)}`" + (f" (did you mean {m!r}?)" if m else "") for n, m in meant.items())
        more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
        there = "" if all(meant.values()) else f"; {nearest('', present)}"
        raise ValueError(f"{len(absent)} column(s) missing: {listed}{more}{there}")
    known = {column.name for column in schema.columns}
    extra = [name for name in present if name not in known]
    if extra:
        listed = ", ".join(f"`{printable(name)}`" for name in extra[:5])
        warnings.warn(f"{len(extra)} column(s) unknown to the model ignored: {listed}", stacklevel=4)


def _stack(rows: int, width: int, columns: Iterable[np.ndarray]) -> np.ndarray:
    """Columns side by side, filled one at a time: one copy of the data."""
    out = np.empty((rows, width))
    for j, column in enumerate(columns):
        out[:, j] = column
    return out


def _cast(column: Column, cells: Cells) -> Any:
    """Cells as the fitted type, or an error with column, row and value."""
    if column.type in NUMBERS:
        return read_numbers(cells, column.name, column.style, flags=column.type == "boolean")
    if column.type == "date":
        return read_dates(cells, column.name, column.style)
    cells = as_words(cells)
    if column.type == "text":
        return pd.Series(np.array([*cells.words, None], dtype=object)[cells.data], dtype="str")
    unseen = len(column.categories)
    code = [-1 if word is None else column.codes.get(word, unseen) for word in cells.words]
    return pd.Categorical.from_codes(np.array([*code, -1], dtype=np.intp)[cells.data], dtype=column.dtype)
