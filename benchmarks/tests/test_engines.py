"""The arithmetic of a larger cluster, and one engine measured."""

import pandas as pd
import pytest

from softlearning_bench import engines


def test_a_larger_cluster_takes_its_longest_task_and_the_overhead():
    line = {"tasks": 10, "task_ms": 100.0, "shared_mb": 5.0, "ms_per_mb": 200.0, "longest": 7.0, "sum": 128.0}
    assert engines.model_of(line, 64)["fit_seconds"] == pytest.approx(7 + 1 + 1)
    assert engines.model_of(line, 2)["fit_seconds"] == pytest.approx(64 + 1 + 1)
    assert engines.model_of(line)["how"] == "arithmetic"


@pytest.mark.slow
def test_this_process_and_processes_are_measured(tmp_path):
    engines.main(str(tmp_path / "engines.csv"), "here", "processes")
    table = pd.read_csv(tmp_path / "engines.csv")
    assert table["engine"].tolist() == ["here", "processes", "processes"]
    assert (table["fit_seconds"] > table["longest"]).all()
