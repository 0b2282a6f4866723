"""The page of the real tables, from lines whose comparison is known by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softlearning_bench.effects import effects
from softlearning_bench.real import COLUMNS, FILE, read_real
from softlearning_bench.real_report import all_pairs, compared, losses, protocol_tests, report_real, shown, table_means
from softlearning_bench.results import append

RESULTS = Path(__file__).parents[1] / "results"

# (table, part, task, seed, method, loss, score, seconds)
LINES = [
    ("one", "choose", "binary", 0, "softlearning", 0.2, 0.9, 10.0),
    ("one", "choose", "binary", 0, "catboost", 0.4, 0.8, 5.0),
    ("one", "choose", "binary", 1, "softlearning", 0.4, 0.8, 10.0),
    ("two", "choose", "regression", 0, "softlearning", 30.0, 0.5, 20.0),
    ("two", "choose", "regression", 0, "catboost", 15.0, 0.8, 5.0),
    ("three", "confirm", "binary", 0, "softlearning", 0.0, 1.0, 1.0),
    ("three", "confirm", "binary", 0, "catboost", 1e-6, 1.0, 1.0),
]


@pytest.fixture
def cells():
    names = ["table", "part", "task", "seed", "method", "loss", "score", "fit_seconds"]
    lines = pd.DataFrame(LINES, columns=names).reindex(columns=list(COLUMNS))
    lines = lines.assign(predict_seconds=0.1, version="1", failure="", settings="{}", rows=100)
    ours = lines["method"] == "softlearning"
    lines = lines.assign(peak_memory=np.where(ours, 500.0, 200.0), model_size=np.where(ours, np.nan, 1.0))
    lost = {"table": "one", "part": "choose", "task": "binary", "seed": 1, "method": "catboost", "failure": "it broke"}
    return pd.concat([lines, pd.DataFrame([lost])], ignore_index=True)


def test_ratios_are_of_the_seeds_that_both_finished(cells):
    lines = compared(cells, "softlearning", "catboost").set_index("table")
    assert lines.loc["one", "loss_ratio"] == pytest.approx(0.5)  # seed 1 failed for catboost
    assert lines.loc["two", "loss_ratio"] == pytest.approx(2.0)
    assert lines.loc["three", "loss_ratio"] == 1.0  # both are as good as no loss
    assert lines.loc["one", ["failures_a", "failures_b"]].tolist() == [0, 1]


def test_a_pair_counts_wins_and_losses_by_part(cells):
    pairs = all_pairs(cells).set_index("part")
    choose = pairs.loc["choose"]
    assert (choose["system"], choose["against"]) == ("softlearning", "catboost")
    assert (choose["lower_loss"], choose["tables"], choose["better_score"]) == (1, 2, 1)
    assert choose["mean_ratio"] == pytest.approx(1.0)
    assert (choose["worst_table"], choose["worst_ratio"]) == ("two", pytest.approx(2.0))
    assert (choose["farthest_table"], choose["ratio_without"]) == ("one", pytest.approx(2.0))
    assert choose["seconds"] == 15.0
    assert choose["their_seconds"] == 5.0
    assert choose[["memory", "their_memory", "failures", "their_failures"]].tolist() == [500, 200, 0, 1]
    assert pairs.loc["confirm", "tied_score"] == 1


def test_losses_and_failures_are_listed(cells):
    text = "\n".join(losses(cells))
    assert "softlearning against catboost: 1 of 3 tables lost" in text
    assert "softlearning against catboost: 2 of 3 tables not lost" in text
    costs = "0.1 / 0.1 | 500 / 200 | - / 1"
    assert f"| two | choose | regression | 2 | 30 / 15 | 0.5 / 0.8 | 20 / 5 | {costs} | 0 / 0 |" in text
    assert f"| one | choose | binary | 0.5 | 0.2 / 0.4 | 0.9 / 0.8 | 10 / 5 | {costs} | 0 / 1 |" in text
    assert "one, seed 1, catboost: it broke" in text
    assert "Failures: 1 of 8 cells" in text
    assert "- softlearning: 4 of 4 (one, two, three)" in text  # its models have no size here


def test_losses_of_our_other_libraries_are_listed_too(cells):
    fast = cells[cells["method"] == "softlearning"].assign(method="softlearning-fast")
    text = "\n".join(losses(pd.concat([cells, fast])))
    assert "softlearning against softlearning-fast: 0 of 3 tables lost" in text
    assert "softlearning-fast against catboost: 1 of 3 tables lost" in text
    assert "softlearning-fast against softlearning:" not in text
    assert "softlearning-fast against catboost: 2 of 3 tables not lost" not in text


def test_the_page_states_what_the_protocol_tests(cells):
    text = "\n".join(protocol_tests(effects(cells, "softlearning")))
    # ratios 1/2 and 2, one split each: their geometric mean is 1, and nothing is decided
    assert "| choose | loss | catboost | 2, 2 | 1.000 (" in text
    assert "| 1, 0, 1 | undecided |" in text
    assert protocol_tests(pd.DataFrame()) == []


def test_an_effect_on_the_loss_is_shown_as_a_ratio():
    assert shown("loss", np.log(2)) == "0.500"
    assert shown("loss", -np.log(2), np.log(4)) == "0.250 to 2.000"
    assert shown("accuracy", -0.01, 0.02) == "-0.0100 to +0.0200"


def test_means_are_over_seeds(cells):
    means = table_means(cells).set_index(["table", "method"])
    assert means.loc[("one", "softlearning"), "loss"] == pytest.approx(0.3)
    assert means.loc[("one", "catboost"), ["seeds", "failures"]].tolist() == [2, 1]


def test_the_page_its_tables_and_its_figure_are_written(cells, tmp_path):
    for line in cells.to_dict("records"):
        append(tmp_path / FILE, {k: "" if v is np.nan else v for k, v in line.items()}, COLUMNS)
    page = report_real(tmp_path).read_text()
    assert "| choose | softlearning | catboost | 1 of 2 | 1 of 2 | 1.000 | 2.000 one | 2.000 two |" in page
    assert (tmp_path / "real.svg").read_text().count("<path") > 3
    assert len(pd.read_csv(tmp_path / "real_pairs.csv")) == 2
    assert len(pd.read_csv(tmp_path / "real_tables.csv")) == 6
    written = {name: (tmp_path / name).read_bytes() for name in ("real.md", "real.svg", "real_pairs.csv")}
    report_real(tmp_path)
    assert written == {name: (tmp_path / name).read_bytes() for name in written}


@pytest.mark.parametrize("folder", ["confirmation_2", "confirmation", "real", "choose"])
def test_the_committed_pairs_are_those_of_the_committed_cells(folder):
    here = RESULTS / folder
    found = all_pairs(read_real(here / FILE)).round(6)
    pd.testing.assert_frame_equal(found, pd.read_csv(here / "real_pairs.csv"), check_dtype=False, atol=2e-6)


def test_no_results_are_said_in_words(tmp_path):
    (tmp_path / FILE).write_text("")
    with pytest.raises(ValueError, match="no results yet"):
        report_real(tmp_path)
