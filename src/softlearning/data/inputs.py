"""Arrays, lists, sparse matrices and frames of any make, brought to a pandas frame, a float64 array or csr."""

from __future__ import annotations

import numbers
from collections import Counter
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import check_array

from softlearning.data.values import is_cell


def is_table(X: Any) -> bool:
    """Whether X has a column that is not numeric, so that columns are matched by name.

    All else (arrays, sparse matrices, frames of numbers alone) follows scikit-learn's own contract.
    """
    if sp.issparse(X):
        return False
    if not is_frame(X):
        return isinstance(frame_or_array(X), pd.DataFrame)
    if isinstance(X, pd.DataFrame):
        _check_names([str(name) for name in X.columns], X.shape)
        return not all(getattr(dtype, "kind", "O") in "buifc" for dtype in X.dtypes)
    frame = nw.from_native(X, eager_only=True)
    return not all(dtype.is_numeric() or dtype == nw.Boolean for dtype in frame.schema.values())


def is_frame(X: Any) -> bool:
    """Whether X is an eager frame of pandas, polars or another library that narwhals knows."""
    if isinstance(X, pd.DataFrame):
        return True
    if isinstance(X, np.ndarray | list | tuple):
        return False
    native: Any = nw.from_native(X, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise TypeError("X is a lazy frame; call .collect() first")
    return isinstance(native, nw.DataFrame)


def has_names(X: Any) -> bool:
    """Whether the columns of X carry names."""
    return is_frame(X) or (isinstance(X, np.ndarray) and X.dtype.names is not None)


def frame_or_array(X: Any, least_rows: int = 0) -> pd.DataFrame | np.ndarray:
    """A pandas frame with string names, or a float64 array without infinities."""
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        X = pd.DataFrame.from_records(X)
    if is_frame(X):
        return _checked_frame(X if isinstance(X, pd.DataFrame) else _from_narwhals(X), least_rows)
    X = _keep_types(_unmask(X))
    if _holds_words(X):
        return _checked_frame(numbered_frame(X), least_rows)
    return _checked_array(X, least_rows)


def numbered_frame(values: np.ndarray) -> pd.DataFrame:
    """An array as a frame with the columns x0, x1, .."""
    return pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])


def _checked_frame(frame: pd.DataFrame, least_rows: int) -> pd.DataFrame:
    names = [str(name) for name in frame.columns]
    _check_names(names, frame.shape)
    if len(frame) < least_rows:
        raise ValueError(f"0 sample(s) (shape={frame.shape}) while a minimum of {least_rows} is required.")
    return frame if all(isinstance(name, str) for name in frame.columns) else frame.set_axis(names, axis=1)


def _check_names(names: list[str], shape: tuple[int, int]) -> None:
    if not names:
        raise ValueError(f"0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if len(set(names)) < len(names):
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        raise ValueError(f"column names must be unique; seen more than once: {', '.join(twice[:5])}")


def _from_narwhals(X: Any) -> pd.DataFrame:
    frame = nw.from_native(X, eager_only=True)
    return pd.DataFrame({name: _from_narwhals_column(frame[name]) for name in frame.columns})


def _from_narwhals_column(column: nw.Series) -> Any:
    """What pandas would hold, without asking for pyarrow."""
    dtype = column.dtype
    if dtype == nw.Decimal:
        return column.cast(nw.Float64).to_numpy()
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        return column.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy()
    if dtype.is_numeric() or isinstance(dtype, nw.Datetime | nw.Date | nw.Duration):
        return column.to_numpy()
    if isinstance(dtype, nw.String | nw.Categorical | nw.Enum):
        return pd.Series(column.to_list(), dtype="str")
    if isinstance(dtype, nw.Boolean) and not column.is_null().any():
        return column.to_numpy()
    return pd.Series(column.to_list(), dtype=object)


def _unmask(X: Any) -> Any:
    """Masked cells are missing cells; numpy would silently show what is under the mask."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    blank: Any = X.astype(np.float64 if X.dtype.kind in "buif" else object)
    return blank.filled(np.nan if X.dtype.kind in "buif" else None)


def _keep_types(X: Any) -> Any:
    """Rows of lists as an array that keeps the types of the cells; ragged rows are refused by number."""
    if not isinstance(X, list | tuple) or not len(X) or not all(isinstance(row, list | tuple) for row in X):
        return X
    for i, row in enumerate(X):
        if len(row) != len(X[0]):
            raise ValueError(f"ragged rows: row {i} has {len(row)} values, row 0 has {len(X[0])}")
    numeric = all(isinstance(value, numbers.Number) for row in X for value in row)
    return np.asarray(X) if numeric else np.array(X, dtype=object)


def _holds_words(X: Any) -> bool:
    """Whether X is a 2-d array of strings, dates or mixed values, and not of numbers alone."""
    values = X if isinstance(X, np.ndarray) else np.asarray(X)
    if values.ndim == 1 and values.dtype.kind in "OUMm":
        raise ValueError(f"Expected 2D array, got 1D {type(X).__name__} instead. Reshape your data: one row is X[[0]]")
    if values.dtype.kind in "SV":
        raise TypeError(f"X is of dtype {values.dtype}; decode bytes to str or numbers first")
    if isinstance(X, np.matrix) or values.ndim != 2 or values.dtype.kind not in "OUMm":
        return False
    if values.dtype.kind != "O":
        return True
    try:
        values.astype(np.float64)
        return False
    except (TypeError, ValueError, OverflowError):
        return all(is_cell(value) for value in values.ravel())


def _checked_array(X: Any, least_rows: int) -> np.ndarray:
    """Scikit-learn's conventions for numeric arrays; infinities are refused with row and column."""
    array = check_array(
        X, dtype=np.float64, order="C", ensure_all_finite=False, ensure_min_samples=least_rows, input_name="X"
    )
    if not np.isfinite(array.min(initial=0.0) + array.max(initial=0.0)):  # NaN, or infinity
        for row, column in np.argwhere(np.isinf(array))[:1]:
            raise ValueError(
                f"Input X contains infinity: row {row}, column {column}; give a number, or NaN for missing"
            )
    return array


def largest(array: np.ndarray) -> float:
    """Largest absolute value; 0 when there is none."""
    if not array.size:
        return 0.0
    top = max(np.fmax.reduce(array, axis=None), -np.fmin.reduce(array, axis=None))
    return float(top) if top == top else 0.0


def checked_sparse(X: Any, least_rows: int = 0) -> sp.csr_matrix:
    """Csr float64 without duplicates; missing values and infinities are refused with row and column."""
    matrix = sp.csr_matrix(
        check_array(X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, ensure_min_samples=least_rows)
    )
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        what = "NaN, a missing cell" if np.isnan(matrix.data[bad[0]]) else "infinity"
        place = f"row {row}, column {matrix.indices[bad[0]]}"
        raise ValueError(f"Input X contains {what}: {place} of a sparse matrix; sparse matrices must be finite")
    return matrix
