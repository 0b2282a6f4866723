"""The suite of real tables, on a folder of two small ones."""

import contextlib
import json
import sys

import numpy as np
import pandas as pd
import psutil
import pytest
from click.testing import CliRunner

from softlearning.cli import main
from softlearning_bench.external import Reply, run_within
from softlearning_bench.real import (
    COLUMNS,
    MEGA,
    data_folder,
    measured,
    over_classes,
    read_real,
    real_tables,
    run_real,
    split,
)


@pytest.fixture
def folder(tmp_path):
    """120 rows with words, dates and missing values, and 90 rows of numbers."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=120)
    messy = pd.DataFrame(
        {
            "size [m]": np.where(rng.random(120) < 0.1, np.nan, size),
            "colour": pd.Categorical(rng.choice(["red", "green", None], 120)),
            "name": pd.array(rng.choice(["ann", "bo", "cy"], 120), dtype="string"),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 120), unit="D"),
            "flag": rng.random(120) < 0.5,
            "target": np.where(size > 0, "big", "small"),
        }
    )
    messy.loc[3, "day"] = pd.NaT
    X = rng.normal(size=(90, 3))
    plain = pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0] * 2 + rng.normal(size=90) / 10)
    place = tmp_path / "tables"
    place.mkdir()
    messy.to_parquet(place / "messy.parquet")
    plain.to_parquet(place / "plain.parquet")
    index = {"name": ["messy", "plain"], "task": ["binary", "regression"], "part": ["choose", "choose"]}
    pd.DataFrame(index | {"rows": [120, 90]}).to_csv(place / "index.csv", index=False)
    return place


def test_tables_come_small_ones_first_by_name_and_by_part(folder):
    assert [t.name for t in real_tables(folder)] == ["plain", "messy"]
    assert [t.name for t in real_tables(folder, names=["messy"])] == ["messy"]
    with pytest.raises(ValueError, match=r"no real table is called 'mess'.*messy"):
        real_tables(folder, names=["mess"])


def test_tables_kept_for_confirmation_are_run_only_when_that_part_is_asked_for(folder):
    index = pd.read_csv(folder / "index.csv").replace({"part": {"choose": "confirm"}})
    index.to_csv(folder / "index.csv", index=False)
    assert real_tables(folder) == []
    assert [t.name for t in real_tables(folder, part="confirm")] == ["plain", "messy"]
    with pytest.raises(ValueError, match="plain is of part confirm: it is run with --part confirm alone"):
        real_tables(folder, names=["plain"])


def test_a_folder_without_tables_is_said_in_words(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTLEARNING_REAL", str(tmp_path))
    with pytest.raises(ValueError, match=r"no real tables in .*SOFTLEARNING_REAL"):
        data_folder()


def test_a_split_is_stratified_seeded_and_capped(folder):
    frame = pd.read_parquet(folder / "messy.parquet")
    train, test = split(frame, "classification", seed=1, max_rows=1000)
    assert len(train) == 84
    assert len(test) == 36
    share = lambda part: (part["target"] == "big").mean()
    assert abs(share(train) - share(test)) < 0.03
    assert split(frame, "classification", 1, 1000)[0].index.equals(train.index)
    assert not split(frame, "classification", 2, 1000)[0].index.equals(train.index)
    few, same = split(frame, "classification", 1, 20)
    assert len(few) == 20
    assert set(few.index) < set(train.index)
    assert same.index.equals(test.index)


def test_every_cell_is_a_line_and_a_second_run_adds_none(folder, tmp_path, capsys):
    out = tmp_path / "out"
    asked = {"data": folder, "methods": ["catboost", "lightgbm", "histgb"], "seeds": 1, "time_limit": 60}
    path = run_real(out, **asked)
    cells = read_real(path)
    assert tuple(cells.columns) == COLUMNS
    assert cells["failure"].eq("").all()
    assert cells["table"].tolist() == ["plain"] * 3 + ["messy"] * 3
    numbers = cells[cells["table"] == "plain"]
    words = cells[cells["table"] == "messy"]
    assert (numbers["score"] > 0.5).all()
    assert numbers["auc"].isna().all()
    assert (words["auc"] > 0.8).all()
    assert (words["loss"] < np.log(2)).all()
    assert (cells["rows"] + cells["test_rows"] == cells["table"].map({"plain": 90, "messy": 120})).all()
    assert (cells[["fit_seconds", "predict_seconds", "cpu_seconds", "peak_memory", "model_size"]] > 0).all(axis=None)
    assert json.loads(cells["settings"][0]) == {"time_limit": 60, "cores": 2, "max_rows": 10_000}
    capsys.readouterr()
    run_real(out, **asked)
    assert capsys.readouterr().out == ""
    assert len(read_real(path)) == 6


def test_a_system_that_fails_is_a_line_with_its_words(folder, tmp_path):
    home = tmp_path / "nothing"
    path = run_real(
        tmp_path / "out", data=folder, tables=["plain"], methods=["flaml"], external={"flaml": str(home)}, seeds=1
    )
    line = read_real(path).iloc[0]
    assert "nothing is not an environment" in line["failure"]
    assert np.isnan(line["loss"])
    with pytest.raises(ValueError, match=r"no method is called 'catbost'.*catboost"):
        run_real(tmp_path / "out", data=folder, methods=["catbost"])


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path):
    child = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    code = f"import subprocess, sys; p = subprocess.Popen({child}); print(p.pid, flush=True); p.wait()"
    with pytest.raises(RuntimeError, match="ended after 3 s"):
        run_within([sys.executable, "-c", code], tmp_path, 3, None)
    pid = int((tmp_path / "said").read_text())
    with contextlib.suppress(psutil.NoSuchProcess, psutil.TimeoutExpired):
        psutil.Process(pid).wait(20)  # the signal is sent; the kernel takes its time on a busy machine
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_class_that_training_lacked_costs_the_floor():
    reply = Reply(np.array([[0.9, 0.1], [0.2, 0.8]]), ["b", "a"], 1.0, 0.1, "x 1", 2_000_000, 1.0, 10)
    assert over_classes(reply, ["a", "b", "c"]).tolist() == [[0.1, 0.9, 0.0], [0.8, 0.2, 0.0]]
    line = measured(reply, pd.Series(["a", "b"]), pd.Series(["b", "c"]), "classification")
    assert line["score"] == 0.5
    assert line["loss"] == pytest.approx(-(np.log(0.9) + np.log(1e-15)) / 2)
    assert np.isnan(line["auc"])
    assert line["model_size"] == 2_000_000 / MEGA


def test_predictions_that_are_not_finite_are_a_failure():
    reply = Reply(np.array([[np.nan]]), None, 1.0, 0.1, "x 1", None, 1.0, 10)
    with pytest.raises(ValueError, match="not finite"):
        measured(reply, pd.Series([1.0]), pd.Series([1.0]), "regression")


def test_the_command_runs_and_reports(folder, tmp_path):
    out = str(tmp_path / "out")
    words = f"bench run --suite real --data {folder} --tables plain --methods histgb --seeds 1 --out {out}"
    said = CliRunner().invoke(main, words.split())
    assert said.exit_code == 0
    assert "plain seed 0 histgb: loss" in said.output
    said = CliRunner().invoke(main, [*words.replace("--seeds 1", "--seeds 0-1").split()])
    assert "1/1 plain seed 1 histgb: loss" in said.output
    said = CliRunner().invoke(main, ["bench", "report", out])
    assert said.exit_code == 0
    assert "real.md" in said.output
    said = CliRunner().invoke(main, ["bench", "run", "--suite", "paper", "--part", "choose", "--out", out])
    assert said.exit_code != 0
    assert "suite paper has no option --part" in said.output
