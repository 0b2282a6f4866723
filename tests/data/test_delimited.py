"""Files as they are: delimiter, encoding, decimal sign, quotes and header are found out, or the file is refused."""

import bz2
import csv
import gzip
import itertools
import lzma

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from softlearning.data.files import read_chunks, read_table

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
    for packed in (
        gzip.compress(text),
        bz2.compress(text),
        lzma.compress(text),
        pa.compress(text, "zstd", asbytes=True),
    ):
        for name in ("t.csv.gz", "t.csv"):
            (tmp_path / name).write_bytes(packed)
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
    "leading zeros": ("zip,n\n08125,0\n10001,0.5\n", {"zip": ["08125", "10001"], "n": [0.0, 0.5]}),
    "thousands": ('a,b\n"1,200",x\n"15,000",y\n', {"a": [1200.0, 15000.0], "b": ["x", "y"]}),
    "commas in words, semicolons between": ("a;b\nx, y;1\nz, w, v;2\n", {"a": ["x, y", "z, w, v"], "b": [1, 2]}),
    "a date with colons": ("t|v\n10:30|1\n11:45|2\n", {"t": ["10:30", "11:45"], "v": [1, 2]}),
    "no line end at the end": ("a,b\n1,2", {"a": [1], "b": [2]}),
    "missing cells": ("a,b\n,x\n2,\n", {"a": [np.nan, 2], "b": ["x", np.nan]}),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_read_as_a_person_would(tmp_path, name):
    text, expected = TEXTS[name]
    path = tmp_path / "t.csv"
    path.write_text(text)
    pd.testing.assert_frame_equal(read_table(path), pd.DataFrame(expected))


def test_names_that_repeat_are_told(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,a,a\n1,2,3,4\n")
    with pytest.warns(UserWarning, match=r"more than once; the later ones are called `a.1`, `a.2`"):
        assert list(read_table(tmp_path / "t.csv").columns) == ["a", "b", "a.1", "a.2"]


def test_a_cell_without_end_is_refused_with_its_line(tmp_path):
    (tmp_path / "t.csv").write_text('a,b\n1,2\n3,"' + "x\n" * csv.field_size_limit())
    with pytest.raises(ValueError, match=r"more than 131,072 characters; a closing quote may be missing"):
        read_table(tmp_path / "t.csv")


def test_chunks_put_together_are_the_table(tmp_path):
    path = write(tmp_path / "t.csv", sep=";", decimal=",")
    chunks = list(read_chunks(path, rows=7))
    assert [len(chunk) for chunk in chunks] == [7, 7, 7, 3]
    pd.testing.assert_frame_equal(pd.concat(chunks), FRAME)


def test_a_nameless_column_is_dropped_in_chunks_only_if_it_is_empty_in_all(tmp_path):
    (tmp_path / "t.csv").write_text("a,,\n1,,\n2,,\n3,x,\n")
    assert [list(chunk.columns) for chunk in read_chunks(tmp_path / "t.csv", rows=2)] == [["a", "Unnamed: 1"]] * 2


@pytest.mark.parametrize("line", [1, 400])
def test_a_cell_without_end_is_named_wherever_it_stands(tmp_path, line):
    lines = ["a,b", *(f"{k},x" for k in range(500))]
    lines[line] = '1,"' + "x" * 200_000
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="a cell of more than 131,072 characters; a closing quote may be missing"):
        read_table(tmp_path / "t.csv")


def test_lines_longer_than_the_longest_cell_are_read(tmp_path):
    cells = ["123456789"] * 15_000
    (tmp_path / "t.csv").write_text(
        "\n".join([",".join(f"c{k}" for k in range(15_000)), ",".join(cells), ",".join(cells)])
    )
    assert read_table(tmp_path / "t.csv").shape == (2, 15_000)
