"""The comparison on messy tables: same folds for both, lines that a second run keeps, a count of folds won."""

import numpy as np
import pandas as pd
import pytest

from softlearning_bench import messy


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Forty rows with words and gaps, in place of the real tables; both methods are made quick."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=40), "kind": rng.choice(["a", "b"], 40)})
    frame.loc[3, ["size", "kind"]] = None
    frame["label"] = np.where(frame["size"] > 0, "up", "down")
    frame.to_csv(tmp_path / "small.csv", index=False)
    monkeypatch.setenv("SOFTLEARNING_TABLES", str(tmp_path))
    monkeypatch.setattr(messy, "TABLES", (("small.csv", "label", "classification"), ("no.csv", "y", "regression")))
    monkeypatch.setattr(messy, "SEEDS", (0,))
    return frame


def constant(share):
    return lambda X, y, X_test, task: np.tile([1 - share, share], (len(X_test), 1))


def test_every_fold_of_every_method_is_a_line_and_a_second_run_adds_none(table, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(messy, "METHODS", {"softlearning": constant(0.5), "CatBoost": constant(0.9)})
    path = tmp_path / "messy.csv"
    messy.main(str(path))
    assert "no.csv is skipped" in capsys.readouterr().out
    lines = pd.read_csv(path)
    assert len(lines) == 10
    messy.main(str(path))
    assert len(pd.read_csv(path)) == 10
    assert messy.summary(lines)["folds with the smaller loss"].tolist() == ["5 of 5"]


def test_catboost_reads_words_and_gaps(table):
    X, y = table.drop(columns="label"), (table["label"] == "up").to_numpy().astype(int)
    P = messy.catboost(X, y, X, "classification")
    assert ((P.argmax(axis=1) == y).mean()) > 0.9


def test_ours_reads_them_too(table, monkeypatch):
    monkeypatch.setattr("softlearning_bench.messy.SoftClassifier", lambda column_types: messy_fast(column_types))
    X, y = table.drop(columns="label"), (table["label"] == "up").to_numpy().astype(int)
    assert ((messy.ours(X, y, X, "classification").argmax(axis=1) == y).mean()) > 0.9


def messy_fast(column_types):
    from softlearning import SoftClassifier

    return SoftClassifier("fast", column_types=column_types)
