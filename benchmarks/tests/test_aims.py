"""The table of aims: fair answers of CatBoost, scores that grow with quality, shares by metric."""

import numpy as np
import pandas as pd
import pytest

from softlearning_bench import aims


def test_scores_are_larger_for_better_answers():
    y = np.array([0, 0, 1, 1])
    assert aims.measured("roc_auc", y, np.array([0.1, 0.2, 0.8, 0.9])) == 1.0
    assert aims.measured("pinball:0.9", y, y + 1.0) == pytest.approx(-0.1)
    assert aims.measured("neg_mean_absolute_error", y, y) == 0.0


def test_catboost_answers_every_metric_on_mixed_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "kind": pd.Categorical(rng.choice(["x", "y"], 200))})
    label = ((X["a"] > 0.5) | (rng.random(200) < 0.1)).astype(int).to_numpy()
    assert set(aims.catboost("f1", X, label, X)[0]) == {0, 1}
    quantile, _ = aims.catboost("pinball:0.9", X, X["a"].to_numpy(), X)
    assert (quantile >= X["a"]).mean() > 0.6


@pytest.fixture
def folder(tmp_path):
    """A folder of real tables: one that was chosen on, one other, one of many classes, one kept for a confirmation."""
    rows = [("yacht", "regression", "choose"), ("other", "binary", "choose"), ("many", "multiclass", "choose"),
            ("kept", "binary", "confirm")]  # fmt: skip
    index = pd.DataFrame(rows, columns=["name", "task", "part"]).assign(rows=60)
    index.to_csv(tmp_path / "index.csv", index=False)
    rng = np.random.default_rng(0)
    for name in index["name"]:
        x = rng.normal(size=60)
        y = x + rng.normal(size=60) if name == "yacht" else np.where(x + rng.normal(size=60) > 0.5, "yes", "no")
        pd.DataFrame({"x": x, "y": y}).to_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


def test_held_out_cells_are_other_splits_and_other_tables(folder, monkeypatch):
    monkeypatch.setattr(aims, "RARE", ())
    monkeypatch.setattr(aims, "NUMBERS", ("yacht",))
    chosen = {(table.name, seed) for table, seed in aims.cells(folder, 2)}
    held_out = {(table.name, seed) for table, seed in aims.cells(folder, 2, held_out=True)}
    assert chosen == {("yacht", 0), ("yacht", 1)}
    assert held_out == {(name, seed) for name in ("yacht", "other") for seed in (200, 201)}


def test_a_run_goes_on_where_it_was_ended(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(aims, "METHODS", ("catboost",))
    file, todo = tmp_path / "found.csv", list(aims.cells(folder, 1, held_out=True))
    aims.run(file, todo[:1])
    first = pd.read_csv(file)
    aims.run(file, todo)
    both = pd.read_csv(file)
    assert len(first) < len(both) == 5
    pd.testing.assert_frame_equal(both[: len(first)], first)


def test_shares_are_over_cells_that_have_all_methods(tmp_path):
    lines = [
        {"table": t, "seed": 0, "metric": "f1", "method": m, "score": s, "seconds": 1, "note": ""}
        for t, scores in (("a", (0.4, 0.5, 0.3)), ("b", (0.4, 0.4, 0.6)), ("c", (0.1, 0.2)))
        for m, s in zip(aims.METHODS, scores)
    ]
    pd.DataFrame(lines).to_csv(tmp_path / "aims.csv", index=False)
    shown = aims.show(tmp_path / "aims.csv").set_index("against")
    assert shown.loc["default", ["cells", "better", "no worse"]].tolist() == [2, 0.5, 1.0]
    assert shown.loc["catboost", "better"] == 0.5
