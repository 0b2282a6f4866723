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


def test_shares_are_over_cells_that_have_all_methods(tmp_path, monkeypatch):
    lines = [
        {"table": t, "seed": 0, "metric": "f1", "method": m, "score": s, "seconds": 1, "note": ""}
        for t, scores in (("a", (0.4, 0.5, 0.3)), ("b", (0.4, 0.4, 0.6)), ("c", (0.1, 0.2)))
        for m, s in zip(aims.METHODS, scores)
    ]
    pd.DataFrame(lines).to_csv(tmp_path / "aims.csv", index=False)
    monkeypatch.setattr(aims, "FILE", tmp_path / "aims.csv")
    shown = aims.show().set_index("against")
    assert shown.loc["default", ["cells", "better", "no worse"]].tolist() == [2, 0.5, 1.0]
    assert shown.loc["catboost", "better"] == 0.5
