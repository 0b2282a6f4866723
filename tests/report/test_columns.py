"""What is told of the columns is what the model does along them, on rows of its own."""

import numpy as np
import pandas as pd
import pytest

from softlearning import SoftRegressor
from softlearning.report import columns, words


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


def test_errors_of_few_rows_are_not_called_clear(regressed, classified):
    model, X, y = regressed
    few = X.assign(town=np.where(np.arange(len(X)) == 0, "Oslo", "Riga"))
    (line,) = columns.along(model, few, y, ["town"])
    oslo = next(p for p in line["parts"] if p["name"] == "Oslo")
    assert oslo["low"] == oslo["high"] == oslo["error"] != 0
    assert not oslo["clear"]
    model, X, y = classified
    for part in columns.along(model, X, model.predict(X), ["town"])[0]["parts"]:  # not one error, among some rows
        assert part["error"] == part["low"] == 0 < part["high"] < 0.2


def test_words_are_parts_of_their_own_and_classes_name_the_one_that_moves(classified):
    model, X, y = classified
    age, town = columns.along(model, X, y, ["age", "town"])
    assert age["number"]
    assert age["of"] in ("low", "high")
    assert {p["name"] for p in town["parts"]} == {"Riga", "Bonn", "Lima"}
    assert all(0 <= p["error"] <= 1 for p in town["parts"])


def test_rows_that_the_model_was_fitted_on_tell_nothing(regressed):
    model, X, _ = regressed
    y = model.record_.training.target[:, 0]
    assert columns.along(model, X[: len(y)], y, ["age"]) == []
    assert columns.importance(model, X[: len(y)], y)["why"] == columns.SEEN


def test_noise_makes_no_column_important(rng):
    make = lambda n: pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    for learners in (["dummy"], ["ridge", "knn_15"]):
        model = SoftRegressor(learners).fit(make(60), rng.normal(size=60))
        found = columns.importance(model, make(60), rng.normal(size=60))
        said = words.importance({"importance": found, "answer": {"loss_name": "loss"}})
        assert "none does beyond noise" in said


def test_importance_tells_how_sure_it_is_over_rows(regressed):
    model, X, y = regressed
    first = columns.importance(model, X, y)["columns"][0]
    assert first["column"] == "age"
    losses = lambda table: (np.asarray(y) - model.predict(table)) ** 2
    order = np.random.default_rng(3).permutation(len(X))
    rise = losses(columns.shuffled(X, list(X.columns).index("age"), order)) - losses(X)
    assert first["mean"] == pytest.approx(rise.mean(), rel=0.3)
    assert 0.3 < first["error"] / (rise.std() / np.sqrt(len(X))) < 1  # several shuffles average out a part


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
    assert columns.value_like(pd.Series([1, 2]), 1.6) == 2


def test_slices_are_those_of_the_model_and_need_rows(regressed, monkeypatch):
    model, X, y = regressed
    known = model.error_slices(X, y)
    assert [line["slice"] for line in columns.slices(model, X, y)] == known["slice"].tolist()[: columns.MOST_SLICES]
    assert columns.slices(model, X[:50], y[:50]) == []
