"""Text tables in any spelling: delimiter, encoding, quotes, decimal sign and header are found out."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from softlearning.data.messages import printable
from softlearning.data.values import PATTERNS, number_style, parse_number, read_cells


class Dialect(NamedTuple):
    """How a text table is written."""

    encoding: str
    delimiter: str
    quote: str
    skip: int  # lines before the header (Excel's `sep=;`)
    header: bool
    row_names: bool  # one name fewer than cells: the first cell of a line is the row's name


class Header(NamedTuple):
    """What a first pass over all lines found."""

    names: list[str]
    used: list[str]  # without nameless columns in which no line has a value
    codes: list[str]  # columns with leading zeros, which are kept as text


BOMS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}  # byte order mark -> encoding
DELIMITERS = (",", ";", "\t", "|", "^", " ")


def read_delimited(path: Path, rows: int | None = None) -> Iterator[pd.DataFrame]:
    """The table, whole or in chunks of so many rows."""
    dialect = sniff(path)
    header = _check_lines(path, dialect)
    with open_text(path, dialect.encoding) as lines:
        read = pd.read_csv(
            lines,
            sep=r"\s+" if dialect.delimiter == " " else dialect.delimiter,
            quotechar=dialect.quote,
            skiprows=dialect.skip,
            header=0 if dialect.header else None,
            names=header.names,
            usecols=header.used,
            dtype=dict.fromkeys(header.codes, str),
            index_col=False,
            skipinitialspace=True,
            low_memory=False,
            chunksize=rows,
        )
        yield from [read] if isinstance(read, pd.DataFrame) else read


def read_local_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of strings that are numbers in a local spelling become numbers; units are left to the schema."""
    frame = frame.copy(deep=False)
    for place, (name, column) in enumerate(list(frame.items())):
        if column.dtype.kind == "O":
            cells = read_cells(column, name)
            style = number_style(cells.filled) if cells.form == "values" else ""
            if style in ("comma", "point", "thousands", "space"):
                values = [np.nan if word is None else parse_number(word, style) for word in cells.words]
                frame.isetitem(place, np.array([*values, np.nan])[cells.data])
    return frame


def open_text(path: Path, encoding: str) -> io.TextIOWrapper:
    """A text file, unpacked on the way."""
    return io.TextIOWrapper(cast(Any, open_bytes(path)), encoding=encoding, newline="")


def open_bytes(path: Path) -> Any:
    """The content of a file, unpacked whatever its ending."""
    with path.open("rb") as file:
        head = file.read(6)
    for magic, opened in PACKED.items():
        if head.startswith(magic):
            return opened(path)
    return path.open("rb")


def pyarrow_for(path: Path) -> Any:
    """The package that reads and writes files that end like this one."""
    try:
        import pyarrow as pa
        import pyarrow.feather
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise ValueError(f"{path.suffix or path.name} needs pyarrow: pip install 'softlearning[arrow]'") from None
    return pa


def open_zstd(path: Path, mode: str = "rb") -> Any:
    """A file packed by zstd, to read or write."""
    try:
        from compression import zstd  # Python 3.14
    except ImportError:
        pa = pyarrow_for(path)
        return (pa.input_stream if mode == "rb" else pa.output_stream)(str(path), compression="zstd")
    return zstd.open(path, mode)


PACKED: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": open_zstd,
}  # first bytes -> how to open


def sniff(path: Path) -> Dialect:
    """Encoding, delimiter, quotes and header of a text table."""
    encoding = _sniff_encoding(path)
    with open_text(path, encoding) as stream:
        head = [line.rstrip("\r\n") for line, _ in zip(stream, range(200))]
    head = [line for line in head if line.strip()]
    if not head:
        raise ValueError(f"{path} is empty")
    told = re.fullmatch(r'(?i)"?sep=(.)"?', head[0].strip())
    lines = head[1:] if told else head
    quote = _sniff_quote(lines)
    delimiter = told.group(1) if told else _sniff_delimiter(lines, quote)
    try:
        rows = list(_rows(lines, delimiter, quote))
    except csv.Error as error:
        raise ValueError(f"{path}: a line {_what(error)}") from None
    header = not all(PATTERNS["plain"].fullmatch(cell.strip()) for cell in rows[0] if cell.strip())
    row_names = header and {len(row) for row in rows[1:]} == {len(rows[0]) + 1}
    return Dialect(encoding, delimiter, quote, int(bool(told)), header, row_names)


def _sniff_encoding(path: Path) -> str:
    """The mark at the start, else UTF-8 if all of it decodes, else Windows-1252; binary content is refused."""
    with open_bytes(path) as stream:
        try:
            head = stream.read(1 << 16)
            marked = next((encoding for mark, encoding in BOMS.items() if head.startswith(mark)), "")
            if not marked and b"\x00" in head:
                raise ValueError(f"{path} looks binary, not like a table of text")
            return marked or _utf8_or_windows(stream, head)
        except (EOFError, OSError, lzma.LZMAError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from None


def _utf8_or_windows(stream: Any, block: bytes) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")()
    undefined = {0x81, 0x8D, 0x8F, 0x90, 0x9D}  # bytes without a meaning in Windows-1252
    utf8, windows = True, True
    while block and (utf8 or windows):
        windows = windows and not undefined & set(block)
        try:
            decoder.decode(block)
        except UnicodeDecodeError:
            utf8 = False
            decoder.reset()
        block = stream.read(1 << 20)
    return "utf-8" if utf8 and not decoder.getstate()[0] else "cp1252" if windows else "latin-1"


def _sniff_quote(lines: Sequence[str]) -> str:
    double = sum(line.count('"') for line in lines)
    single = sum(len(re.findall(r"(?:^|[,;\t|])'[^']*'(?=$|[,;\t|])", line)) for line in lines)
    return "'" if not double and 2 * single >= len(lines) else '"'


def _sniff_delimiter(lines: Sequence[str], quote: str) -> str:
    """The candidate that cuts most lines into the same number of cells; a comma for a single column.

    Agreement of the lines counts first; then the first in `DELIMITERS`; a blank only where nothing else cuts.
    """
    best, best_score = ",", 0.0
    for delimiter in DELIMITERS:
        try:
            widths = [len(row) for row in _rows(lines, delimiter, quote) if row]
        except csv.Error:  # it leaves a cell without end
            continue
        common = max(set(widths), key=widths.count)
        score = widths.count(common) / len(widths) + 0.5 * (widths[0] == common) - 0.5 * (delimiter == " ")
        if common > 1 and score > best_score + 1e-9:
            best, best_score = delimiter, score
    return best


def _rows(lines: Iterable[str], delimiter: str, quote: str) -> Iterator[list[str]]:
    if delimiter == " ":
        lines = (" ".join(line.split()) for line in lines)
    return csv.reader(lines, delimiter=delimiter, quotechar=quote, skipinitialspace=True)


def _check_lines(path: Path, dialect: Dialect) -> Header:
    """What the columns are called; a line with too many or too few cells is refused by number."""
    with open_text(path, dialect.encoding) as stream:
        for _ in range(dialect.skip):
            next(stream)
        reader: Any = _rows(stream, dialect.delimiter, dialect.quote)
        rows = (row for row in reader if row)
        names = _names(next(rows), dialect)
        codes: set[int] = set()
        nameless = {j for j, name in enumerate(names) if name.startswith("Unnamed: ")}
        try:
            for row in rows:
                if len(row) != len(names):
                    what = f"has {len(row)} cells where {len(names)} are expected (delimiter {dialect.delimiter!r})"
                    raise csv.Error(f"{what}; quote cells that hold the delimiter")
                codes.update(j for j, cell in enumerate(row) if cell[:1] == "0" and cell[1:2].isdigit())
                nameless.difference_update([j for j in nameless if row[j].strip()])
        except csv.Error as error:
            raise ValueError(f"{path}: line {reader.line_num + dialect.skip} {_what(error)}") from None
    used = [name for j, name in enumerate(names) if j not in nameless]
    return Header(names, used, [names[j] for j in sorted(codes - nameless)])


def _what(error: csv.Error) -> str:
    """What is wrong with a line."""
    endless = f"has a cell of more than {csv.field_size_limit():,} characters; a closing quote may be missing"
    return endless if "field larger" in str(error) else str(error)


def _names(first: Sequence[str], dialect: Dialect) -> list[str]:
    """Names of the columns, made unique, with a warning."""
    if not dialect.header:
        return [f"x{j}" for j in range(len(first))]
    names = ["row"] * dialect.row_names + [cell.strip() or f"Unnamed: {j}" for j, cell in enumerate(first)]
    repeats = [names[:j].count(name) for j, name in enumerate(names)]
    unique = [f"{name}.{repeat}" if repeat else name for name, repeat in zip(names, repeats)]
    if any(repeats):
        told = ", ".join(f"`{printable(new)}`" for new, repeat in zip(unique, repeats) if repeat)
        warnings.warn(f"a column name stands there more than once; the later ones are called {told}", stacklevel=2)
    return unique
