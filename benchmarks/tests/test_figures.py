"""Figures are drawn from the results alone, all of them, the same every time."""

import matplotlib as mpl
import numpy as np
import pytest

from benchmarks.tests.fake import fake_cells
from softlearning_bench.drawing import STYLE
from softlearning_bench.figures import (
    FIGURES,
    draw_all,
    heatmap,
    mean_ranks,
    pairwise_wins,
    trade_off,
)
from softlearning_bench.summary import FIELD, summarise


@pytest.fixture(scope="module")
def summary():
    return summarise(fake_cells())


@pytest.fixture(scope="module")
def drawn(summary, tmp_path_factory):
    return draw_all(summary, tmp_path_factory.mktemp("figures"))


def test_every_figure_of_the_paper_is_there(drawn):
    numbers = {row.number for row in FIGURES}
    assert {"2a", "2b", "2c", "3a", "3b", "3c", "4", "5", "S1", "S2", "S3"} <= numbers
    assert set(drawn) == {row.file for row in FIGURES}


def test_a_figure_is_the_same_file_every_time(summary, drawn, tmp_path):
    again = draw_all(summary, tmp_path)
    assert all(again[name].read_bytes() == drawn[name].read_bytes() for name in drawn)


def test_words_in_a_figure_are_text_that_can_be_searched(drawn):
    assert ">softlearning<" in drawn["mean_ranks"].read_text()


def test_the_heatmap_shows_every_score(summary):
    with mpl.rc_context(STYLE):
        shown = [text.get_text() for text in heatmap(summary).axes[0].texts]
    assert len(shown) == 37 * len(FIELD)
    assert f"{summary.scores.loc['B08_hastie', 'KAN-like']:.3f}"[1:] in shown


def test_the_rank_figure_prints_the_ranks_it_draws(summary):
    axes = mean_ranks(summary).axes[0]
    drawn = np.sort(axes.collections[0].get_offsets()[:, 0])
    assert [f"{x:.2f}" for x in drawn] == [text.get_text() for text in axes.texts]


def test_the_win_figure_counts_wins(summary):
    shown = [text.get_text() for text in pairwise_wins(summary).axes[0].texts]
    assert shown.count("-") == len(FIELD)
    assert max(int(text) for text in shown if text != "-") == 37  # ours is ahead everywhere in this table


def test_a_run_with_few_methods_draws_what_it_can(tmp_path):
    cells = fake_cells(["A02_wine", "C10_tiny_regression"])
    few = cells[cells["method"].isin(["CatBoost", "Random Forest"])]
    assert "heatmap" in draw_all(summarise(few), tmp_path)


def test_our_name_and_the_papers_are_never_confused(drawn):
    for path in drawn.values():
        assert ">Soft Learning<" not in path.read_text()
    assert ">Soft Learning (paper)<" in drawn["mean_ranks"].read_text()


def test_every_figure_is_readable_on_a_dark_page_and_a_telephone(drawn):
    for path in drawn.values():
        text = path.read_text()
        assert "prefers-color-scheme: dark" in text
        assert float(text.partition('width="')[2].partition("pt")[0]) <= 480


def test_names_beside_the_trade_off_do_not_overlap(summary):
    heights = sorted(text.xyann[1] for text in trade_off(summary).axes[0].texts)
    assert len(heights) == len(FIELD)
    assert np.diff(heights).min() > 0.05  # of the height of the axes: a line of text
