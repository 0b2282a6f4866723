"""Parts are taken away one at a time, and their worth is the loss without them over the loss with them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1

from softlearning import SoftRegressor
from softlearning_bench import ablation


@pytest.fixture(scope="module")
def fitted():
    X, y = make_friedman1(150, random_state=0)
    frame = pd.DataFrame(X).add_prefix("x").assign(y=y)
    model = SoftRegressor(["ridge", "knn_5", "wide_trees", "signed_stack"]).fit(frame.iloc[:100, :-1], y[:100])
    return model, frame


def test_what_is_taken_away_is_gone_and_the_rest_stays(fitted):
    model, frame = fitted
    X, y = frame.iloc[:100, :-1], frame["y"][:100]
    without = ablation.PARTS["trees that are not boosted"](model, X, y)
    assert set(without.weights_.index) == {"ridge", "knn_5", "signed_stack"} - set(model.record_.crossed.skipped)
    assert ablation.PARTS["the blend (best specialist)"](model, X, y).weights_.max() == 1
    assert ablation.PARTS["CatBoost"](model, X, y) is model


def test_the_loss_is_the_root_of_the_mean_squared_error(fitted):
    model, frame = fitted
    test = frame.iloc[100:]
    error = test["y"] - model.predict(test.iloc[:, :-1])
    assert ablation.loss_of(model, test, "regression") == pytest.approx(np.sqrt((error**2).mean()))


def test_a_table_counts_once_however_many_seeds_it_has():
    lines = pd.DataFrame(
        [("a", 0, "x", 2.0, 1.0), ("a", 1, "x", 2.0, 1.0), ("b", 0, "x", 0.5, 1.0)],
        columns=["table", "seed", "without", "loss", "full"],
    )
    line = ablation.summary(lines).loc["x"]
    assert (line["tables"], line["helps"], line["harms"]) == (2, 1, 1)
    assert line["ratio"] == pytest.approx(1)


def test_a_second_run_adds_nothing(tmp_path, monkeypatch):
    pd.DataFrame({"name": ["t"], "task": ["regression"], "part": ["choose"], "rows": [60]}).to_csv(
        tmp_path / "index.csv"
    )
    X, y = make_friedman1(60, random_state=0)
    pd.DataFrame(X).add_prefix("x").assign(y=y).to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(ablation, "SoftRegressor", lambda n_jobs: SoftRegressor(["ridge", "knn_5", "lightgbm"]))
    out = tmp_path / "out.csv"
    for _ in range(2):
        ablation.main(["run", "--data", str(tmp_path), "--out", str(out)])
    found = ablation.whole_csv(out, ablation.COLUMNS)
    assert sorted(found["without"]) == sorted(ablation.PARTS)
