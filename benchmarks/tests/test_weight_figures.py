"""Weights by family: level 2 stands apart, and every name has one meaning."""

import pytest

from benchmarks.tests.fake import fake_cells
from softlearning_bench.summary import summarise
from softlearning_bench.weight_figures import LEVEL_2_AT, named, our_weights


@pytest.fixture(scope="module")
def summary():
    return summarise(fake_cells(["A02_wine", "C05_energy"]))


def test_level_2_has_bars_of_its_own(summary):
    cells = summary.cells.copy()
    ours = cells["method"] == "softlearning"
    cells.loc[ours, "weights"] = '{"log_pool": 0.6, "ridge": 0.4}'
    axes = our_weights(summarise(cells)).axes[0]
    begin = {round(bar.get_x(), 3) for bar in axes.patches if round(bar.get_width(), 3) == 0.6}
    assert begin == {LEVEL_2_AT}


def test_the_papers_method_is_called_so():
    assert named("Soft Learning") == "Soft Learning (paper)"
    assert named("softlearning") == "softlearning"
    assert named("stacker") == "level 2 (stackers)"
