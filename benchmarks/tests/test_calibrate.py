"""Reconstruction: the search ranks settings, the confirmation is what the paper's protocol gives, both resume."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.tests.fake import fake_cells
from softlearning_bench import calibrate
from softlearning_bench.calibrate import (
    BASELINES,
    GRIDS,
    adopt,
    confirm,
    cross_validated,
    free_parameters,
    latest,
    points,
    search,
)
from softlearning_bench.datasets import DATASETS, dataset
from softlearning_bench.paper import paper_results
from softlearning_bench.results import append

COMMITTED = Path(__file__).parents[1] / "calibration.csv"
MADE = [row.name for row in DATASETS if row.source == "synthetic"]


@pytest.fixture
def small_grid(monkeypatch):
    monkeypatch.setitem(GRIDS, "C10_tiny_regression", {"decay": (0.2, 0.9), "noise": (0.001,)})


def test_points_change_the_free_parameters_and_keep_the_rest(small_grid):
    found = [parameters for parameters, _ in points(dataset("C10"))]
    assert [parameters["decay"] for parameters in found] == [0.2, 0.9]
    assert {parameters["informative"] for parameters in found} == {free_parameters(dataset("C10"))["informative"]}


def test_settings_that_a_generator_refuses_are_passed_over(monkeypatch):
    monkeypatch.setitem(GRIDS, "B18_tiny_100", {"informative": (1, 5)})  # 4 clusters do not fit 2 corners
    assert [parameters["informative"] for parameters, _ in points(dataset("B18"))] == [5]


def test_a_search_ranks_settings_by_distance_and_does_not_repeat_itself(small_grid, tmp_path):
    path = tmp_path / "search.csv"
    found = search(dataset("C10"), path)
    assert len(found) == 2
    assert found["distance"].is_monotonic_increasing
    search(dataset("C10"), path)
    assert len(pd.read_csv(path)) == 2


def test_a_confirmation_is_the_papers_protocol_and_resumes(tmp_path, monkeypatch):
    cheap = {name: BASELINES[name] for name in ("Logistic/Ridge", "Gradient Boosting")}
    monkeypatch.setattr(calibrate, "BASELINES", cheap)
    path, row = tmp_path / "calibration.csv", dataset("C10")
    confirm(row, path)
    confirm(row, path)
    table = pd.read_csv(path)
    assert table["method"].tolist() == list(cheap)
    assert table["paper"].tolist() == [paper_results().loc[row.name, name] for name in cheap]
    ours = cross_validated(row, row.table(), cheap["Logistic/Ridge"])
    assert table["ours"][0] == pytest.approx(ours, abs=1e-4)


def test_a_finished_run_gives_the_same_lines(tmp_path):
    fake_cells(["C10_tiny_regression", "A02_wine"]).to_csv(tmp_path / "results.csv", index=False)
    adopt(tmp_path / "results.csv", tmp_path / "calibration.csv")
    table = latest(tmp_path / "calibration.csv")
    assert table["method"].tolist() == list(BASELINES)
    np.testing.assert_allclose(table["difference"], 0, atol=1e-4)  # the made-up run repeats the printed numbers


@pytest.fixture
def committed():
    return latest(COMMITTED)


def test_every_confirmed_set_has_all_four_baselines(committed):
    assert set(committed["dataset"]) <= set(MADE)
    assert committed.groupby("dataset")["method"].nunique().eq(len(BASELINES)).all()


def test_baselines_on_the_reconstructed_sets_lie_near_the_printed_ones(committed):
    np.testing.assert_allclose(committed["difference"], committed["ours"] - committed["paper"], atol=1e-9)
    assert committed["difference"].abs().mean() <= 0.03


def test_a_value_far_from_the_printed_one_is_explained(committed):
    far = committed[committed["difference"].abs() > 0.05]
    assert far["note"].str.len().gt(0).all()


def test_adopting_a_run_keeps_the_confirmations_of_what_it_lacks(tmp_path):
    path, results = tmp_path / "calibration.csv", tmp_path / "results.csv"
    append(path, line := calibrate.confirmation(dataset("B18"), "Random Forest", 0.5), tuple(line))
    append(path, line := calibrate.confirmation(dataset("C10"), "Random Forest", 0.5), tuple(line))
    for fold in range(5):
        line = {"dataset": "C10_tiny_regression", "method": "Random Forest", "fold": fold, "seed": 42}
        append(results, line | {"score": 0.75, "status": "ok"})
    calibrate.adopt(results, path)
    ours = pd.read_csv(path).set_index("dataset")["ours"].to_dict()
    assert ours == {"B18_tiny_100": 0.5, "C10_tiny_regression": 0.75}
