"""Tables in files: read in any usual format, whole or in chunks, and written whole or not at all."""

from __future__ import annotations

import bz2
import csv
import errno
import gzip
import io
import json
import lzma
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
import pandas as pd

from softlearning.data.delimited import open_text, open_zstd, pyarrow_for, read_delimited, read_local_numbers
from softlearning.data.messages import nearest

ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".feather", ".arrow", ".ipc"),
    "lines": (".jsonl", ".ndjson"),
    "json": (".json",),
    "excel": (".xlsx", ".xlsm", ".xls"),
}  # format -> how its names end; text with delimiters has any other ending
FORMATS = {ending: format for format, endings in ENDINGS.items() for ending in endings}
OLD_EXCEL = b"\xd0\xcf\x11\xe0"  # its first bytes
MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "arrow",
    b"PK\x03\x04": "excel",
    OLD_EXCEL: "excel",
    b"%PDF": "pdf",
    b"\x89HDF": "hdf5",
    b"{": "lines",
}  # first bytes -> format
PACKED_ENDINGS = (".gz", ".bz2", ".xz", ".zst")


# --- reading


def read_table(path: str | Path) -> pd.DataFrame:
    """A table as a pandas frame: text (csv, tsv, ..), parquet, feather, arrow, json lines, Excel; `-` is stdin.

    Delimiter, encoding, decimal comma, quotes and header of a text file are found out; it may be packed (gz, bz2, xz,
    zst). A column with leading zeros is a code and stays text.
    """
    (frame,) = read_chunks(path, None)
    return frame


def read_chunks(path: str | Path, rows: int | None = 100_000) -> Iterator[pd.DataFrame]:
    """The same in chunks of so many rows; text, json lines and parquet are never in memory as a whole."""
    with _local_file(path) as file:
        format = _format(file)
        if format not in READERS:
            raise ValueError(f"{path} is {UNREADABLE[format]}")
        names: list[str] = []
        total = 0
        for frame in READERS[format](file, rows):
            names, total = [str(name) for name in frame.columns[:5]], total + len(frame)
            if len(frame):
                yield read_local_numbers(frame)
        if not total:
            raise ValueError(f"{path} has a header ({', '.join(names)}) but no rows")


@contextmanager
def _local_file(path: str | Path) -> Iterator[Path]:
    """The file; standard input is kept in one for the while, since it is looked at more than once."""
    with ExitStack() as stack:
        if str(path) == "-":
            path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "standard input"
            path.write_bytes(sys.stdin.buffer.read())
        _check_file(path := Path(path))
        yield path


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a table")
    if not path.exists():
        beside = sorted(p.name for p in path.parent.glob("*"))
        raise ValueError(f"there is no file {path}; {nearest(path.name, beside, most=5)}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")


def _format(path: Path) -> str:
    """What the ending says, else what the first bytes say."""
    suffix = _ending(path)
    if suffix in FORMATS:
        return FORMATS[suffix]
    with path.open("rb") as file:
        head = file.read(8)
    return next((format for magic, format in MAGIC.items() if head.startswith(magic)), "text")


def _ending(path: Path) -> str:
    return (path.with_suffix("") if path.suffix.lower() in PACKED_ENDINGS else path).suffix.lower()


def _read_parquet(path: Path, rows: int | None) -> Iterator[pd.DataFrame]:
    pa = pyarrow_for(path)
    try:
        if rows is None:
            yield pa.parquet.read_table(path).to_pandas()
        else:
            with pa.parquet.ParquetFile(path) as file:
                yield from (batch.to_pandas() for batch in file.iter_batches(batch_size=rows))
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is not a readable parquet file: {error}") from None


def _read_arrow(path: Path, rows: int | None) -> Iterator[pd.DataFrame]:
    pa = pyarrow_for(path)
    try:
        with path.open("rb") as source:
            framed = source.read(6).startswith((b"FEA1", b"ARROW1"))
            source.seek(0)
            table = pa.feather.read_table(source) if framed else pa.ipc.open_stream(source).read_all()
        yield from _parts(table.to_pandas(), rows)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is not a readable {_ending(path)[1:] or 'arrow'} file: {error}") from None


def _parts(frame: pd.DataFrame, rows: int | None) -> Iterator[pd.DataFrame]:
    step = rows or max(1, len(frame))
    return (frame.iloc[start : start + step] for start in range(0, max(1, len(frame)), step))


def _read_lines(path: Path, rows: int | None) -> Iterator[pd.DataFrame]:
    """One JSON object per line."""
    batch: list[dict] = []
    with open_text(path, "utf-8-sig") as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                batch.append(_read_object(line, f"{path}: line {number}"))
            if len(batch) == rows:
                yield pd.DataFrame(batch)
                batch = []
    if batch:
        yield pd.DataFrame(batch)


def _read_object(line: str, place: str) -> dict:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{place} is not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError(f'{place} is not an object; each line is to be one, such as {{"age": 22}}')
    return value


def _read_excel(path: Path, rows: int | None) -> Iterator[pd.DataFrame]:
    """Cells as they are: a code with leading zeros stays text."""
    with path.open("rb") as file:
        magic = file.read(4)
    engine = "xlrd" if magic == OLD_EXCEL else "openpyxl"  # today's files are zip archives
    try:
        frame = pd.read_excel(path, engine=engine, dtype=object).infer_objects()
    except ImportError:
        raise ValueError(f"{path.name} needs {engine}: pip install {engine}; or save the sheet as csv") from None
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a readable Excel file ({error}); save the sheet as csv") from None
    yield from _parts(frame, rows)


READERS: dict[str, Callable[[Path, int | None], Iterator[pd.DataFrame]]] = {
    "text": read_delimited,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
    "lines": _read_lines,
    "excel": _read_excel,
}
UNREADABLE = {
    "json": "a JSON document, not a table; write one object per line, in a file that ends in .jsonl",
    "pdf": "a PDF, not a table",
    "hdf5": "an HDF5 file; save the table as parquet or csv",
}


# --- writing


@contextmanager
def whole_file(path: str | Path, *, private: bool = False, mark: str = "") -> Iterator[Path]:
    """A name in the same folder to write to; it becomes `path` at the end, and vanishes when anything goes wrong.

    A link at `path` stays, and what it points to is replaced, if it is a file. A private file is for its owner alone
    (mode 0600). A process that is killed leaves the other name, which begins with a point and the `mark`.
    """
    try:
        real = Path(os.path.realpath(path))
        if real.exists() and not real.is_file():  # a device, say, which whoever may would replace
            raise FileExistsError(errno.EEXIST, "it is not a file, and not replaced", os.fspath(path))
        handle, name = tempfile.mkstemp(prefix=f".{mark}", suffix=f".part{real.suffix}", dir=real.parent)
        os.close(handle)
        try:
            yield Path(name)
            if not private:
                os.chmod(name, 0o666 & ~_umask())
            os.replace(name, real)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        if error.errno and ".part" in str(error.filename or ".part"):  # a full disk, a folder that is not there
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def _umask() -> int:
    """The mask of this process; reading it means setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def write_table(frames: pd.DataFrame | Iterable[pd.DataFrame], path: str | Path) -> int:
    """Write a frame, or chunks of one, in the format that the name says; the number of rows.

    Names that end in .parquet, .feather, .arrow, .jsonl, .xlsx or .tsv are taken at their word, all else is csv; .gz,
    .bz2, .xz and .zst pack it. `-` is csv on standard output. The file is there as a whole or not at all.
    """
    frames = [frames] if isinstance(frames, pd.DataFrame) else frames
    if str(path) == "-":
        return _write_csv(frames, sys.stdout)
    path = Path(path)
    format = FORMATS.get(_ending(path), "csv")
    if format == "json" or _ending(path) in (".xls", ".xlsm"):
        raise ValueError(f"{path.name}: tables are written as csv, parquet, feather, jsonl or xlsx")
    with whole_file(path) as part:
        if format == "excel":
            return _write_excel(frames, part)
        if format in ("parquet", "arrow"):
            return _write_arrow(frames, part, format)
        with _open_for_writing(part, path.suffix.lower()) as stream:
            if format == "lines":
                return _write_lines(frames, stream)
            return _write_csv(frames, stream, "\t" if _ending(path) == ".tsv" else ",")


def _open_for_writing(part: Path, suffix: str) -> TextIO:
    opened: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": open_zstd}.get(suffix, open)
    return io.TextIOWrapper(opened(part, "wb"), encoding="utf-8", errors="replace", newline="")


def _write_excel(frames: Iterable[pd.DataFrame], part: Path) -> int:
    """One sheet, strings guarded; the whole table is in memory for it."""
    frame = pd.concat(list(frames), ignore_index=True)
    safe = pd.DataFrame({guarded(str(name)): _guarded_column(column) for name, column in frame.items()})
    try:
        safe.to_excel(part, index=False, engine="openpyxl")
    except ImportError:
        raise ValueError("Excel files need openpyxl: pip install openpyxl; or write csv") from None
    return len(frame)


def _write_arrow(frames: Iterable[pd.DataFrame], part: Path, format: str) -> int:
    pa = pyarrow_for(part)
    begin = pa.parquet.ParquetWriter if format == "parquet" else pa.ipc.new_file
    rows, schema, writer = 0, None, cast(Any, None)
    with ExitStack() as stack:
        for frame in frames:
            table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
            if writer is None:
                schema = table.schema
                writer = stack.enter_context(begin(str(part), schema))
            writer.write_table(table)
            rows += len(frame)
    return rows


def _write_lines(frames: Iterable[pd.DataFrame], stream: TextIO) -> int:
    rows = 0
    for frame in frames:
        frame.to_json(stream, orient="records", lines=True, force_ascii=False, double_precision=15, date_format="iso")
        rows += len(frame)
    return rows


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "＝", "＋", "－", "＠")


def guarded(text: object) -> object:
    """A string that a spreadsheet would run gets a leading apostrophe; numbers stay as they are."""
    return f"'{text}" if isinstance(text, str) and text.startswith(FORMULA_STARTS) else text


def _write_csv(frames: Iterable[pd.DataFrame], stream: TextIO, between: str = ",") -> int:
    """Text with delimiters, names and strings guarded."""
    rows = 0
    for number, frame in enumerate(frames):
        out = pd.DataFrame({name: _guarded_column(column) for name, column in frame.items()})
        out.columns = pd.Index([guarded(str(name)) for name in frame.columns])
        # a lone carriage return ends a line for some readers, and Python's writer quotes it only when told to
        quoting = csv.QUOTE_NONNUMERIC if _holds_return(out) else csv.QUOTE_MINIMAL
        out.to_csv(stream, sep=between, index=False, header=number == 0, lineterminator="\n", quoting=quoting)
        rows += len(frame)
    return rows


def _guarded_column(column: pd.Series) -> pd.Series | np.ndarray:
    return column if column.dtype.kind in "biuf" else np.array([guarded(value) for value in column], dtype=object)


def _holds_return(frame: pd.DataFrame) -> bool:
    words = [*frame.columns, *(v for name in frame.select_dtypes(exclude="number") for v in frame[name].unique())]
    return any("\r" in str(word) for word in words)
