"""Read a table from a file: text in any spelling, parquet, feather, arrow."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from softlearning.data.messages import nearest
from softlearning.data.values import PATTERNS, number_style, parse_number, read_cells

ARROW_ENDINGS = (".parquet", ".pq", ".feather", ".arrow", ".ipc")


def read_table(path: str | Path) -> pd.DataFrame:
    """A csv, tsv or txt file (also .gz), parquet, feather or arrow, as a pandas frame.

    Delimiter, encoding, decimal comma, quotes and header of a text file are found out.
    """
    path = Path(path)
    _check_file(path)
    suffix = (path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix).lower()
    frame = _read_arrow(path, suffix) if suffix in ARROW_ENDINGS else _read_text(path)
    if not len(frame):
        raise ValueError(f"{path} has a header ({', '.join(map(str, frame.columns[:5]))}) but no rows")
    return frame


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a table")
    if not path.exists():
        beside = sorted(p.name for p in path.parent.glob("*"))
        raise ValueError(f"there is no file {path}; {nearest(path.name, beside, most=5)}")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty")


def _read_arrow(path: Path, suffix: str) -> pd.DataFrame:
    try:
        import pyarrow as pa
        import pyarrow.feather
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise ValueError(f"reading {path.name} needs pyarrow: pip install 'softlearning[arrow]'") from None
    try:
        if suffix in (".parquet", ".pq"):
            return pyarrow.parquet.read_table(path).to_pandas()
        if suffix == ".feather":
            return pyarrow.feather.read_table(path).to_pandas()
        with pa.OSFile(str(path)) as source:
            magic = source.read(6)
            source.seek(0)
            opened = pyarrow.ipc.open_file if magic == b"ARROW1" else pyarrow.ipc.open_stream
            return opened(source).read_all().to_pandas()
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is not a readable {suffix[1:]} file: {error}") from None


class Dialect(NamedTuple):
    """How a text table is written."""

    encoding: str
    delimiter: str
    quote: str
    skip: int  # lines before the header (Excel's `sep=;`)
    header: bool
    row_names: bool  # one name fewer than cells: the first cell of a line is the row's name


MAGIC = {
    b"PK\x03\x04": "a zip or Excel file; save the sheet as csv",
    b"PAR1": "a parquet file; give it the ending .parquet",
    b"ARROW1": "an arrow file; give it the ending .arrow",
    b"\x89HDF": "an HDF5 file",
    b"%PDF": "a PDF",
    b"\xd0\xcf\x11\xe0": "an old Excel file; save the sheet as csv",
}  # first bytes -> what the file is
BOMS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}  # byte order mark -> encoding
DELIMITERS = (",", ";", "\t", "|", "^", " ")


def _read_text(path: Path) -> pd.DataFrame:
    dialect = sniff(path)
    names = _check_lines(path, dialect)
    with _open(path, dialect.encoding) as lines:
        frame = pd.read_csv(
            lines,
            sep=r"\s+" if dialect.delimiter == " " else dialect.delimiter,
            quotechar=dialect.quote,
            skiprows=dialect.skip,
            header=0 if dialect.header else None,
            names=names,
            index_col=False,
            skipinitialspace=True,
            low_memory=False,
        )
    blank = [name for name in names if name.startswith("Unnamed: ") and frame[name].isna().all()]
    return _read_local_numbers(frame.drop(columns=blank))


def _read_local_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of strings that are numbers in a local spelling become numbers."""
    for name in frame.columns:
        if isinstance(frame[name].dtype, pd.StringDtype):
            cells = read_cells(frame[name], name)
            style = number_style(cells.filled)
            if style in ("comma", "point", "thousands", "space"):
                values = [np.nan if word is None else parse_number(word, style) for word in cells.words]
                frame[name] = np.array([*values, np.nan])[cells.data]
    return frame


def _open(path: Path, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(cast(Any, _open_bytes(path)), encoding=encoding, newline="")


def _open_bytes(path: Path) -> Any:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return (gzip.open if zipped else open)(path, "rb")


def sniff(path: Path) -> Dialect:
    """Encoding, delimiter, quotes and header of a text table."""
    encoding = _sniff_encoding(path)
    with _open(path, encoding) as stream:
        head = [line.rstrip("\r\n") for line, _ in zip(stream, range(200))]
    head = [line for line in head if line.strip()]
    if not head:
        raise ValueError(f"{path} is empty")
    told = re.fullmatch(r'(?i)"?sep=(.)"?', head[0].strip())
    lines = head[1:] if told else head
    quote = _sniff_quote(lines)
    delimiter = told.group(1) if told else _sniff_delimiter(lines, quote)
    rows = list(_rows(lines, delimiter, quote))
    header = not all(PATTERNS["plain"].fullmatch(cell.strip()) for cell in rows[0] if cell.strip())
    row_names = header and {len(row) for row in rows[1:]} == {len(rows[0]) + 1}
    return Dialect(encoding, delimiter, quote, int(bool(told)), header, row_names)


def _sniff_encoding(path: Path) -> str:
    """The mark at the start, else UTF-8 if all of it decodes, else Windows-1252; binary content is refused."""
    with _open_bytes(path) as stream:
        try:
            head = stream.read(1 << 16)
            for magic, what in MAGIC.items():
                if head.startswith(magic):
                    raise ValueError(f"{path} is {what}")
            marked = next((encoding for mark, encoding in BOMS.items() if head.startswith(mark)), "")
            if not marked and b"\x00" in head:
                raise ValueError(f"{path} looks binary, not like a table of text")
            return marked or _utf8_or_windows(stream, head)
        except (gzip.BadGzipFile, EOFError, OSError) as error:
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
        widths = [len(row) for row in _rows(lines, delimiter, quote) if row]
        common = max(set(widths), key=widths.count)
        score = widths.count(common) / len(widths) + 0.5 * (widths[0] == common) - 0.5 * (delimiter == " ")
        if common > 1 and score > best_score + 1e-9:
            best, best_score = delimiter, score
    return best


def _rows(lines: Iterable[str], delimiter: str, quote: str) -> Iterator[list[str]]:
    if delimiter == " ":
        lines = (" ".join(line.split()) for line in lines)
    return csv.reader(lines, delimiter=delimiter, quotechar=quote, skipinitialspace=True)


def _check_lines(path: Path, dialect: Dialect) -> list[str]:
    """Column names; a line with too many or too few cells is refused by number."""
    with _open(path, dialect.encoding) as stream:
        for _ in range(dialect.skip):
            next(stream)
        reader: Any = _rows(stream, dialect.delimiter, dialect.quote)
        rows = (row for row in reader if row)
        names = _names(next(rows), dialect)
        for row in rows:
            if len(row) != len(names):
                raise ValueError(
                    f"{path}: line {reader.line_num + dialect.skip} has {len(row)} cells where {len(names)} are "
                    f"expected (delimiter {dialect.delimiter!r}); quote cells that hold the delimiter"
                )
    return names


def _names(first: Sequence[str], dialect: Dialect) -> list[str]:
    """Names of the columns, made unique."""
    if not dialect.header:
        return [f"x{j}" for j in range(len(first))]
    names = ["row"] * dialect.row_names + [cell.strip() or f"Unnamed: {j}" for j, cell in enumerate(first)]
    repeats = [names[:j].count(name) for j, name in enumerate(names)]
    return [f"{name}.{repeat}" if repeat else name for name, repeat in zip(names, repeats)]
