"""Cost against size: cells, their tables, exponents; one tiny run as a slow test."""

import numpy as np
import pandas as pd
import pytest

from softlearning_bench import scale


def test_every_part_has_its_cells_and_the_limits_twenty_shapes():
    growth = scale.growth_cells(False, scale.SYSTEMS)
    assert {c.system for c in growth} == set(scale.SYSTEMS)
    assert {1_000, 1_000_000} <= {c.rows for c in growth}
    assert 2_000 in {c.columns for c in growth}
    assert 200 in {c.classes for c in growth}
    assert len(set(scale.limit_cells(False))) == 20
    assert scale.latency_cells(True)


@pytest.mark.parametrize(
    ("columns", "kind"), [(4, np.ndarray), (10, pd.DataFrame), (30, pd.DataFrame), (200, np.ndarray)]
)
def test_tables_have_the_shape_that_is_asked_for(columns, kind):
    X, y = scale.table("classification", 500, columns, 5)
    assert isinstance(X, kind)
    assert X.shape[0] == len(y) == 500
    assert set(y) == set(range(5))
    if columns == 30:
        assert X.shape[1] == 30
        assert (X.dtypes == "category").sum() == scale.CATEGORIES


def test_the_exponent_is_the_slope_of_the_logarithms():
    rows = [
        {"system": "a", "task": "regression", "rows": n, "columns": 5, "classes": 1,
         "fit_seconds": n**1.5, "peak_mb": 100, "predict_seconds": n}
        for n in (10, 100, 1000)
    ]  # fmt: skip
    [line] = scale.exponents(pd.DataFrame(rows)).to_dict("records")
    assert line["grows"] == "rows"
    assert [round(line[c], 6) for c in ("fit_seconds", "peak_mb", "predict_seconds")] == [1.5, 0, 1]


def test_a_line_that_is_there_is_not_measured_again_and_a_failed_one_is(tmp_path, monkeypatch):
    asked = []

    def measured(cell):
        asked.append(cell)
        status = "failed" if len(asked) == 1 else "ok"
        return scale.asdict(cell) | {"fit_seconds": 1.0, "peak_mb": 1, "predict_seconds": 1.0, "status": status}

    monkeypatch.setattr(scale, "measured", measured)
    for _ in range(2):
        scale.run_scale(tmp_path, ["limits"], quick=True)
    assert len(asked) == 3
    assert asked[0] == asked[2]
    assert "limits" in (tmp_path / "scale.md").read_text()


@pytest.mark.slow
def test_tiny_cells_of_every_system_run(tmp_path):
    scale.run_scale(tmp_path, quick=True)
    table = pd.read_csv(tmp_path / "scale.csv")
    assert set(table["status"]) == {"ok"}, table["reason"].dropna().tolist()
    assert set(scale.SYSTEMS) <= set(table["system"])
    assert (tmp_path / "scale.svg").exists()
