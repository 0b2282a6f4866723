"""Files of every format: read whole or in chunks, or refused with the cause; written whole or not at all."""

import csv
import errno
import gzip
import io
import os
import stat
import sys

import pandas as pd
import pytest

from softlearning.data.files import FORMULA_STARTS, guarded, read_chunks, read_table, whole_file, write_table
from tests.data.test_delimited import FRAME
from tests.report.payloads import PAYLOADS


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
    "half of a parquet file": ("t.csv", b"PAR1rest", "not a readable parquet file"),
    "a JSON document": ("t.json", b'[{"a": 1}]', r"one object per line, in a file that ends in \.jsonl"),
    "a line that is not JSON": ("t.jsonl", b'{"a": 1}\n{"a": \n', "line 2 is not valid JSON"),
    "a line that is not an object": ("t.jsonl", b"[1]\n", "line 1 is not an object"),
    "a PDF": ("t.csv", b"%PDF-1.7", "a PDF, not a table"),
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
    write_table(FRAME, tmp_path / "titanic.csv")
    with pytest.raises(ValueError, match=r"no file .*titanc\.csv; did you mean 'titanic.csv'"):
        read_table(tmp_path / "titanc.csv")
    with pytest.raises(ValueError, match="folder"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    "ending",
    [
        "csv",
        "csv.gz",
        "csv.bz2",
        "csv.xz",
        "csv.zst",
        "jsonl.bz2",
        "txt",
        "parquet",
        "feather",
        "arrow",
        "jsonl",
        "xlsx",
    ],
)
def test_what_is_written_under_a_name_is_read_back_from_it(tmp_path, ending):
    if ending == "xlsx":
        pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    path = tmp_path / f"t.{ending}"
    halves = [FRAME.iloc[:10], FRAME.iloc[10:]]
    assert write_table(halves, path) == len(FRAME)
    pd.testing.assert_frame_equal(read_table(path), FRAME)
    pd.testing.assert_frame_equal(pd.concat(read_chunks(path, rows=5), ignore_index=True), FRAME)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("ending", ["xls", "json"])
def test_a_format_that_is_not_written_is_refused(tmp_path, ending):
    with pytest.raises(ValueError, match="csv, parquet, feather, jsonl or xlsx"):
        write_table(FRAME, tmp_path / f"t.{ending}")


def test_a_sheet_is_guarded_against_formulas(tmp_path):
    pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    write_table(pd.DataFrame({"=a": ["=1+1", "x"]}), tmp_path / "t.xlsx")
    table = pd.read_excel(tmp_path / "t.xlsx")
    assert table.columns.tolist() == ["'=a"]
    assert table["'=a"].tolist() == ["'=1+1", "x"]


def test_json_lines_keep_zeros_and_missing_keys(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"zip": "08125", "n": 1}\n\n{"zip": "10001", "note": "x"}\n')
    table = read_table(tmp_path / "t.jsonl")
    assert table["zip"].tolist() == ["08125", "10001"]
    assert table["n"].isna().tolist() == [False, True]


def test_excel_is_read_or_the_remedy_is_named(tmp_path):
    path = tmp_path / "t.xlsx"
    try:
        FRAME.to_excel(path, index=False)
    except ImportError:
        path.write_bytes(EMPTY_WORKBOOK)
        with pytest.raises(ValueError, match=r"needs openpyxl: pip install openpyxl; or save the sheet as csv"):
            read_table(path)
    else:
        pd.testing.assert_frame_equal(read_table(path), FRAME)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "xlsx", "parquet"])
def test_codes_and_numbers_in_a_local_spelling_are_the_same_in_every_format(tmp_path, ending):
    if ending == "xlsx":
        pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    table = pd.DataFrame({"zip": ["00012", "10001", "00007"], "paid": ["1,000", "(2,500)", "12,345"]})
    path = tmp_path / f"t.{ending}"
    {"csv": table.to_csv, "xlsx": table.to_excel, "parquet": table.to_parquet}.get(
        ending, lambda path, index: table.to_json(path, orient="records", lines=True)
    )(path, index=False)
    read = read_table(path)
    assert read["zip"].tolist() == ["00012", "10001", "00007"]
    assert read["paid"].tolist() == [1000.0, -2500.0, 12345.0]


def test_text_that_is_called_excel_is_told(tmp_path):
    pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    (tmp_path / "t.xlsx").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="not a readable Excel file"):
        read_table(tmp_path / "t.xlsx")


def test_tabs_are_written_where_the_name_says_so(tmp_path):
    write_table(pd.DataFrame({"a": [1], "b": ["x,y"]}), tmp_path / "t.tsv")
    assert (tmp_path / "t.tsv").read_text() == "a\tb\n1\tx,y\n"


EMPTY_WORKBOOK = b"PK\x05\x06" + bytes(18)  # a zip archive without members


class Standard:
    """Standard input of bytes."""

    def __init__(self, content):
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "jsonl"])
def test_a_hyphen_is_standard_input_in_any_format(tmp_path, monkeypatch, ending):
    write_table(FRAME, tmp_path / f"t.{ending}")
    monkeypatch.setattr(sys, "stdin", Standard((tmp_path / f"t.{ending}").read_bytes()))
    pd.testing.assert_frame_equal(read_table("-"), FRAME)


def test_a_hyphen_is_csv_on_standard_output(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert write_table(pd.DataFrame({"a": [1, 2], "b": ["x", "=y"]}), "-") == 2
    assert capsys.readouterr().out == "a,b\n1,x\n2,'=y\n"
    assert os.listdir(tmp_path) == []


# --- whole files


def write(path, text, **options):
    with whole_file(path, **options) as part:
        part.write_text(text)


def test_a_file_that_could_not_be_written_is_named(tmp_path, monkeypatch):
    with pytest.raises(OSError, match=r"No space left on device: '.*model\.soft'"), whole_file(tmp_path / "model.soft"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert os.listdir(tmp_path) == []
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError, match=r"model\.soft"):
        write("model.soft", "new")


def test_a_folder_that_is_not_there_is_told_by_the_name_of_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model\.soft'$"), whole_file(tmp_path / "no" / "model.soft"):
        raise AssertionError


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_is_not_a_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="not a file"), whole_file(tmp_path / "pipe"):
        raise AssertionError
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


@pytest.mark.skipif(os.name == "nt", reason="modes are a matter of POSIX systems")
def test_a_private_file_is_for_its_owner_alone(tmp_path):
    write(tmp_path / "private", "x", private=True)
    write(tmp_path / "public", "x")
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "public").stat().st_mode) & 0o400


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    write(tmp_path / "a", "old")
    with pytest.raises(TypeError):
        write(tmp_path / "a", 3)
    assert (tmp_path / "a").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_half_written_file_is_not_left_behind(tmp_path):
    (tmp_path / "page.html").write_text("old")
    with pytest.raises(UnicodeEncodeError), whole_file(tmp_path / "page.html") as part:
        part.write_text("half\ud800", encoding="utf-8")
    assert (tmp_path / "page.html").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\0=1", "＝1"])
def test_no_string_in_a_csv_can_be_taken_for_a_formula(tmp_path, text):
    write_table(pd.DataFrame({text: [text, "plain"], "number": [-1.5, 2.0]}), tmp_path / "out.csv")
    assert guarded(text) == "'" + text
    back = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    assert back["number"].tolist() == [-1.5, 2.0]
    assert all(str(cell).startswith("'") for cell in (back.columns[0], back.iloc[0, 0]))


def test_150_hostile_texts_come_back_from_a_csv_as_they_were_behind_an_apostrophe(tmp_path):
    texts = [start + text.replace("\ud800", "") for text in PAYLOADS for start in ("", "=", "@", "\t=", "-1+")]
    write_table(pd.DataFrame({"prediction": texts}), tmp_path / "out.csv")
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        cells = [row[0] for row in csv.reader(file)][1:]
    assert cells == [guarded(text) for text in texts]
    assert [cell.removeprefix("'") if cell not in texts else cell for cell in cells] == texts
    assert not any(cell.startswith(FORMULA_STARTS) for cell in cells)


def test_strings_that_are_no_formulas_are_written_as_they_are(tmp_path):
    words = ["a", "1", "", " x", "a=b", "'quoted'", 'say "so"', "two\nlines", "a,b;c"]
    write_table(pd.DataFrame({"prediction": words}), tmp_path / "out.csv")
    back = pd.read_csv(tmp_path / "out.csv", keep_default_na=False, dtype=str)
    assert back["prediction"].tolist() == words
