"""The page: one file, from the table alone, safe to open, the same content in both formats."""

import re

import pandas as pd
import pytest

from benchmarks.tests.fake import fake_cells
from softlearning_bench.report import (
    external,
    markdown_table,
    over_seeds,
    page,
    report_suite,
    spent,
    what_ran,
    where_time_goes,
)
from softlearning_bench.summary import summarise


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    cells = fake_cells()
    cells.loc[0, ["status", "reason"]] = ["failed", "MemoryError: <script>alert(1)</script> | pipe"]
    cells.to_csv(folder / "results.csv", index=False)
    report_suite(folder)
    return folder


def test_the_page_is_one_file_that_loads_nothing(folder):
    html = (folder / "report.html").read_text()
    sources = re.findall(r'(?:src|href)="([^"]{0,12})', html)
    assert sources
    assert all(source.startswith(("data:image", "#")) for source in sources)


def test_what_a_failure_says_is_escaped(folder):
    html = (folder / "report.html").read_text()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_both_formats_have_the_same_sections(folder):
    markdown = re.findall(r"^## (.*)$", (folder / "report.md").read_text(), re.MULTILINE)
    html = re.findall(r"<h2>(.*?)</h2>", (folder / "report.html").read_text())
    assert [title.replace("&#39;", "'") for title in html] == markdown
    assert {"Goals of this project", "The ledger of claims", "What each change adds", "Not run"} <= set(markdown)


def test_every_figure_of_the_markdown_exists(folder):
    for file in re.findall(r"\]\((figures/.*?)\)", (folder / "report.md").read_text()):
        assert (folder / file).exists()


def test_a_pipe_does_not_break_a_table(folder):
    lines = [line for line in (folder / "report.md").read_text().splitlines() if line.startswith("| A01_iris")]
    assert lines
    assert "\\| pipe" in lines[0]


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match="run the benchmark first"):
        report_suite(tmp_path)


def test_many_seeds_get_a_section_of_their_own():
    cells = fake_cells(["A02_wine", "C10_tiny_regression"])
    assert over_seeds(summarise(cells)) is None
    more = pd.concat([cells, cells.assign(seed=43)], ignore_index=True)
    section = over_seeds(summarise(more))
    assert section.table["standard deviation over seeds"].eq(0).all()
    assert "but the section Over seeds is of seed 42" in what_ran(summarise(more)).text


def test_seeds_are_compared_on_the_datasets_that_have_them_all():
    cells = fake_cells(["A02_wine", "B18_tiny_100", "C10_tiny_regression"])
    few = cells[cells["dataset"] != "B18_tiny_100"].assign(seed=43)
    section = over_seeds(summarise(pd.concat([cells, few], ignore_index=True)))
    assert section.text == "2 seeds of the outer folds of A02_wine, C10_tiny_regression."
    assert section.table["standard deviation over seeds"].eq(0).all()


def test_a_foreign_system_is_shown_beside_ours_where_it_ran():
    cells = fake_cells(["A02_wine", "C10_tiny_regression"])
    assert external(summarise(cells)) is None
    ours = cells["method"] == "softlearning"
    cells.loc[ours & (cells["dataset"] == "A02_wine"), "log_loss"] = 0.2
    theirs = cells[ours & (cells["dataset"] == "A02_wine")].assign(
        method="FLAML", log_loss=0.1, reason="flaml 2, told 9 s"
    )
    section = external(summarise(pd.concat([cells, theirs], ignore_index=True)))
    assert section.table["dataset"].tolist() == ["A02_wine"]
    assert section.table["FLAML"][0].endswith(" / 0.1")
    assert "seconds of the clock" in spent(summarise(pd.concat([cells, theirs]))).text
    assert "flaml 2, told 9 s. Least loss: softlearning 0, FLAML 1 of 1 datasets" in section.text


def test_a_run_of_one_method_has_a_page():
    cells = fake_cells(["A02_wine"])
    titles = [section.title for section in page(summarise(cells[cells["method"] == "CatBoost"]), [])]
    assert titles[0] == "What was run"
    assert "Goals of this project" not in titles


def test_a_dataset_with_fewer_folds_is_named():
    few = fake_cells(["A02_wine", "C10_tiny_regression"])
    cells = pd.concat([few[few["fold"] == 0].assign(fold=fold) for fold in range(5)], ignore_index=True)
    assert "fewer" not in what_ran(summarise(cells)).text
    short = cells[(cells["dataset"] != "A02_wine") | (cells["fold"] < 3)]
    assert "but fewer on: A02_wine 3." in what_ran(summarise(short)).text


def test_the_time_of_the_ten_methods_counts_shared_fits_once():
    cells = fake_cells(["A02_wine", "C10_tiny_regression"]).assign(fit_seconds=60.0)
    section = where_time_goes(summarise(cells))
    assert section.text.startswith("The paper's ten methods share the fits of Soft Learning: 40 minutes")
    assert section.table["all ten"].tolist() == [20.0, 20.0]


def test_a_markdown_table_has_a_line_a_row():
    assert markdown_table(pd.DataFrame({"a": [1], "b": ["x|y"]})) == ["| a | b |", "| --- | --- |", "| 1 | x\\|y |"]
