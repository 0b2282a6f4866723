"""What is told of the columns is what the model does along them, on rows of its own."""

import numpy as np
import pandas as pd
import pytest

from softlearning.report import columns


def test_answers_along_a_column_are_means_of_predictions(regressed):
    model, X, y = regressed
    (line,) = columns.along(model, X, y, ["age"])
    sample = X.iloc[np.sort(np.random.default_rng(1).permutation(len(X))[: columns.FEWER])]
    for part in line["parts"]:
        assert part["answer"] == pytest.approx(model.predict(sample.assign(age=part["at"])).mean())
    assert sum(part["rows"] for part in line["parts"]) == len(X)
    error = np.asarray(y) - model.predict(X)
    assert np.average([p["error"] for p in line["parts"]], weights=[p["rows"] for p in line["parts"]]) == pytest.approx(
        error.mean()
    )


def test_words_are_parts_of_their_own_and_classes_name_the_one_that_moves(classified):
    model, X, y = classified
    age, town = columns.along(model, X, y, ["age", "town"])
    assert age["number"]
    assert age["of"] in ("low", "high")
    assert {p["name"] for p in town["parts"]} == {"Riga", "Bonn", "Lima"}
    assert all(0 <= p["low"] <= p["error"] <= p["high"] <= 1 for p in town["parts"])
    assert all(p["low"] < p["high"] for p in town["parts"])  # also where no row is wrong


def test_rows_that_the_model_was_fitted_on_tell_nothing(regressed):
    model, X, _ = regressed
    y = model.record_.training.target[:, 0]
    assert columns.along(model, X[: len(y)], y, ["age"]) == []
    assert columns.importance(model, X[: len(y)], y)["why"] == columns.SEEN


def test_what_takes_too_long_is_left_out(regressed, monkeypatch):
    model, X, y = regressed
    monkeypatch.setattr(columns, "PATIENCE", 0.0)
    assert columns.along(model, X, y, ["age"]) == []
    assert "too long" in columns.importance(model, X, y)["why"]


def test_parts_of_a_column():
    numbers = columns.parts_of(pd.Series([*np.arange(100.0), None]))
    assert len(numbers) == columns.PLACES
    assert sum(p["rows"].sum() for p in numbers) == 100
    few = columns.parts_of(pd.Series([2, 1, 1, 2, 3]))
    assert [p["value"] for p in few] == [1, 2, 3]
    assert columns.parts_of(pd.Series([f"Mr {k}" for k in range(40)])) == []
    words = columns.parts_of(pd.Series(["a"] * 9 + ["b"] * 5 + ["c"] * 4))
    assert [p["name"] for p in words] == ["a", "b"]
    assert columns.value_like(pd.Series([1, 2]), 1.6) == 2


def test_slices_are_those_of_the_model_and_need_rows(regressed, monkeypatch):
    model, X, y = regressed
    known = model.error_slices(X, y)
    assert [line["slice"] for line in columns.slices(model, X, y)] == known["slice"].tolist()[: columns.MOST_SLICES]
    assert columns.slices(model, X[:50], y[:50]) == []
