"""Files that are either whole or not there, and tables that no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "＝", "＋", "－", "＠")


@contextmanager
def whole_file(path: str | Path, *, private: bool = False) -> Iterator[Path]:
    """A name in the same folder to write to; it becomes `path` at the end, and vanishes when anything goes wrong.

    A link at `path` stays, and what it points to is replaced. A private file is for its owner alone (mode 0600).
    """
    path = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(prefix=".", suffix=f".part{path.suffix}", dir=path.parent)
    os.close(handle)
    try:
        yield Path(name)
        if not private:
            os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def _umask() -> int:
    """The mask of this process; reading it means setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def guarded(text: object) -> object:
    """A string that a spreadsheet would run gets a leading apostrophe; numbers stay as they are."""
    return f"'{text}" if isinstance(text, str) and text.startswith(FORMULA_STARTS) else text


def write_csv(frame: pd.DataFrame, path: str | Path) -> None:
    """Comma-separated UTF-8, names and strings guarded, whole or not at all."""
    out = pd.DataFrame({name: _guarded_column(column) for name, column in frame.items()})
    out.columns = pd.Index([guarded(str(name)) for name in frame.columns])
    # a lone carriage return ends a line for some readers, and Python's writer quotes it only when told to
    quoting = csv.QUOTE_NONNUMERIC if _holds_return(out) else csv.QUOTE_MINIMAL
    with whole_file(path) as part:
        out.to_csv(part, index=False, encoding="utf-8", lineterminator="\n", quoting=quoting, errors="replace")


def _guarded_column(column: pd.Series) -> pd.Series | np.ndarray:
    return column if column.dtype.kind in "biuf" else np.array([guarded(value) for value in column], dtype=object)


def _holds_return(frame: pd.DataFrame) -> bool:
    words = [*frame.columns, *(v for name in frame.select_dtypes(exclude="number") for v in frame[name].unique())]
    return any("\r" in str(word) for word in words)
