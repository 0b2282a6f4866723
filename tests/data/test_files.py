"""Files as they are: delimiter, encoding, decimal sign, quotes and header are found out, or the file is refused."""

import gzip
import itertools
import sys

import numpy as np
import pandas as pd
import pytest

from softlearning.data.files import read_table

TOWNS = ["Zürich", "Malmö", "São Paulo", "Besançon, Doubs", 'the "old" town', "Köln; Mitte"]
FRAME = pd.DataFrame(
    {
        "town": TOWNS * 4,
        "price": [1.5, -2.25, 1000.125, np.nan, 0.5, 7.0] * 4,
        "rooms": [1, 2, 3, 4, 5, 6] * 4,
        "sold": ["2024-01-31", "2024-02-01"] * 12,
    }
)


def write(path, frame=FRAME, **options):
    frame.to_csv(path, **{"index": False, **options})
    return path


@pytest.mark.parametrize(
    ("sep", "encoding", "decimal"),
    [
        (sep, encoding, decimal)
        for sep, encoding, decimal in itertools.product(
            [",", ";", "\t", "|"], ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-32"], [".", ","]
        )
        if sep != decimal
    ],
)
def test_delimiter_encoding_and_decimal_sign_are_found_out(tmp_path, sep, encoding, decimal):
    path = write(tmp_path / "t.csv", sep=sep, encoding=encoding, decimal=decimal)
    pd.testing.assert_frame_equal(read_table(path), FRAME)


@pytest.mark.parametrize("quoting", [0, 1, 2])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_quotes_and_line_ends_do_not_matter(tmp_path, quoting, end):
    path = write(tmp_path / "t.txt", quoting=quoting, lineterminator=end)
    pd.testing.assert_frame_equal(read_table(path), FRAME)


def test_compressed_text_is_read_whatever_its_ending(tmp_path):
    text = FRAME.to_csv(index=False).encode()
    for name in ("t.csv.gz", "t.csv"):
        (tmp_path / name).write_bytes(gzip.compress(text))
        pd.testing.assert_frame_equal(read_table(tmp_path / name), FRAME)


TEXTS = {
    "Excel's first line": ("sep=;\na;b\n1;2\n", {"a": [1], "b": [2]}),
    "blank lines": ("\n\na,b\n\n1,2\n\n3,4\n\n", {"a": [1, 3], "b": [2, 4]}),
    "blanks after delimiters": ("a, b\n1, x\n2, y\n", {"a": [1, 2], "b": ["x", "y"]}),
    "blanks as delimiter": ("a   b  c\n1  2 3\n4    5   6\n", {"a": [1, 4], "b": [2, 5], "c": [3, 6]}),
    "single quotes": ("a,b\n'x, y',1\n'z',2\n", {"a": ["x, y", "z"], "b": [1, 2]}),
    "apostrophes are no quotes": ("a,b\nit's,1\nhe's,2\n", {"a": ["it's", "he's"], "b": [1, 2]}),
    "line breaks in quotes": ('a,b\n"x\ny",1\nz,2\n', {"a": ["x\ny", "z"], "b": [1, 2]}),
    "one column": ("a\n1\n2\n", {"a": [1, 2]}),
    "no header": ("1,2.5\n3,4.5\n", {"x0": [1, 3], "x1": [2.5, 4.5]}),
    "row names": ("a,b\nr1,1,2\nr2,3,4\n", {"row": ["r1", "r2"], "a": [1, 3], "b": [2, 4]}),
    "a delimiter at the end": ("a;b;\n1;2;\n3;4;\n", {"a": [1, 3], "b": [2, 4]}),
    "a name twice": ("a,a\n1,2\n", {"a": [1], "a.1": [2]}),
    "thousands": ('a,b\n"1,200",x\n"15,000",y\n', {"a": [1200.0, 15000.0], "b": ["x", "y"]}),
    "commas in words, semicolons between": ("a;b\nx, y;1\nz, w, v;2\n", {"a": ["x, y", "z, w, v"], "b": [1, 2]}),
    "a date with colons": ("t|v\n10:30|1\n11:45|2\n", {"t": ["10:30", "11:45"], "v": [1, 2]}),
    "no line end at the end": ("a,b\n1,2", {"a": [1], "b": [2]}),
    "missing cells": ("a,b\n,x\n2,\n", {"a": [np.nan, 2], "b": ["x", None]}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_read_as_a_person_would(tmp_path, name):
    text, expected = TEXTS[name]
    path = tmp_path / "t.csv"
    path.write_text(text)
    pd.testing.assert_frame_equal(read_table(path), pd.DataFrame(expected))


@pytest.mark.parametrize("ending", ["parquet", "pq", "feather", "arrow", "ipc"])
def test_arrow_files_are_read(tmp_path, ending):
    pytest.importorskip("pyarrow")
    path = tmp_path / f"t.{ending}"
    (FRAME.to_parquet if ending in ("parquet", "pq") else FRAME.to_feather)(path)
    pd.testing.assert_frame_equal(read_table(path), FRAME)


def test_arrow_streams_are_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pandas(FRAME)
    with pa.ipc.new_stream(tmp_path / "t.arrow", table.schema) as stream:
        stream.write_table(table)
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.arrow"), FRAME)


def test_without_pyarrow_the_remedy_is_named(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"softlearning\[arrow\]"):
        read_table(tmp_path / "t.parquet")


BROKEN = {
    "empty": ("t.csv", b"", "is empty"),
    "blank": ("t.csv", b"\n \n", "is empty"),
    "only a header": ("t.csv", b"a,b\n", r"header \(a, b\) but no rows"),
    "binary": ("t.csv", bytes(range(256)) * 8, "looks binary"),
    "a spreadsheet": ("t.csv", b"PK\x03\x04rest", "save the sheet as csv"),
    "parquet called csv": ("t.csv", b"PAR1rest", r"\.parquet"),
    "csv called parquet": ("t.parquet", b"a,b\n1,2\n", "not a readable parquet file"),
    "csv called feather": ("t.feather", b"a,b\n1,2\n", "not a readable feather file"),
    "csv called arrow": ("t.arrow", b"a,b\n1,2\n", "not a readable arrow file"),
    "a line too long": ("t.csv", b"a,b\n1,2\n3,4,5\n6,7\n", r"line 3 has 3 cells where 2 are expected"),
    "a line too short": ("t.csv", b"a,b\n1,2\n3\n4,5\n", r"line 3 has 1 cells where 2 are expected"),
    "a cut gzip file": ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99)[:-12], "cannot be read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_its_cause(tmp_path, name):
    file, content, message = BROKEN[name]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / file)


def test_a_file_that_is_not_there_is_named_with_the_nearest(tmp_path):
    write(tmp_path / "titanic.csv")
    with pytest.raises(ValueError, match=r"no file .*titanc\.csv; did you mean 'titanic.csv'"):
        read_table(tmp_path / "titanc.csv")
    with pytest.raises(ValueError, match="folder"):
        read_table(tmp_path)
