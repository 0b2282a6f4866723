"""The numbers of a report, without a page."""

import json

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import TimeSeriesSplit

from softlearning import SoftClassifier, SoftRegressor
from softlearning.report import summarise_model, to_html


def test_a_summary_is_plain_data(summary):
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_the_score_is_that_of_rows_never_seen_with_an_interval_around_it(classified, class_summary):
    model, _, _ = classified
    a = class_summary["answer"]
    assert a["low"] < a["score"] < a["high"]
    assert a["loss"] == pytest.approx(model.cv_risk_)
    assert a["score"] == 1 - class_summary["confusion"]["wrong"] / class_summary["confusion"]["rows"]


def test_gains_are_differences_of_losses_and_verdicts_follow_their_intervals(summary):
    for c in summary["comparisons"]:
        assert c["gain"] == pytest.approx(c["loss"] - summary["answer"]["loss"])
        assert (c["low"] > 0) == (c["verdict"] == "better")
        assert (c["high"] < 0) == (c["verdict"] == "worse")
    assert summary["comparisons"][-1]["verdict"] == "better"  # than always the same answer


def test_the_best_specialist_is_the_one_with_the_least_cross_validated_risk(summary):
    board = {line["specialist"]: line["cv_risk"] for line in summary["leaderboard"]}
    best = min(board, key=board.__getitem__)
    assert summary["comparisons"][0]["name"] == f"best single specialist in hindsight ({best})"
    assert summary["comparisons"][0]["loss"] == pytest.approx(board[best])
    assert summary["comparisons"][1]["loss"] >= board[best] - 1e-12  # picked without the fold it is scored on


def test_weights_come_with_intervals_and_reasons(summary):
    assert sum(w["weight"] for w in summary["weights"]) == pytest.approx(1)
    assert sum(f["weight"] for f in summary["families"]) == pytest.approx(1)
    assert all(0 <= w["low"] <= w["high"] <= 1 and w["reason"] for w in summary["weights"])


def test_the_column_that_makes_the_outcome_matters_most_and_noise_hardly(summary):
    importance = {c["column"]: c["mean"] for c in summary["importance"]["columns"]}
    assert max(importance, key=importance.__getitem__) == "age"
    assert importance["noise"] < 0.2 * importance["age"]


def test_without_rows_there_is_no_importance(regressed):
    assert summarise_model(regressed[0])["importance"] is None


def test_what_failed_and_what_was_left_out_is_told(rng):
    class Refuses:
        def get_params(self, deep=False):
            return {}

        def set_params(self):
            return self

        def fit(self, X, y):
            raise RuntimeError("no licence\nsecond line")

        def __sklearn_clone__(self):
            return self

    X = rng.normal(size=(60, 2))
    with pytest.warns(UserWarning, match="failed"):
        model = SoftRegressor(["ridge", ("refuses", Refuses())]).fit(X, X[:, 0])
    failures = summarise_model(model)["failures"]
    assert failures[0]["specialist"] == "refuses"
    assert "no licence" in failures[0]["why"]
    assert "\n" not in failures[0]["why"]


def test_one_specialist_has_no_disagreement_to_report(rng):
    X = rng.normal(size=(40, 2))
    summary = summarise_model(SoftRegressor(["ridge"]).fit(X, X[:, 0] + rng.normal(size=40)))
    assert summary["doubt"] is None
    assert summary["weights"][0]["reason"] == "the only specialist"


def test_rows_without_weight_change_no_score(classified):
    model, X, y = classified
    rows = np.arange(len(y)) < 120
    weight = rows.astype(float)
    names = ["logistic", "naive_bayes"]
    splits = [(train[train < 120], test[test < 120]) for train, test in model.folds_]
    weighted = SoftClassifier(names, cv=splits, column_types={}).fit(X, y, sample_weight=weight)
    plain = SoftClassifier(names, cv=splits, column_types={}).fit(X[:120], y[:120])
    assert summarise_model(weighted)["answer"]["score"] == pytest.approx(summarise_model(plain)["answer"]["score"])


def test_a_model_must_be_fitted():
    with pytest.raises(NotFittedError):
        summarise_model(SoftClassifier())


def test_a_constant_target_has_no_r2_and_a_page_all_the_same(rng):
    X = rng.normal(size=(40, 2))
    summary = summarise_model(SoftRegressor(["ridge", "dummy"]).fit(X, np.full(40, 5.0)))
    assert summary["answer"]["score"] is None
    assert "nothing to explain" in to_html(summary)


@pytest.mark.parametrize("make", [lambda X: X, sparse.csr_matrix, lambda X: pl.DataFrame(X, schema=["a", "b"])])
def test_any_kind_of_table_can_be_asked_for_its_columns(rng, make):
    X = rng.normal(size=(60, 2))
    y = X[:, 1] + 0.1 * rng.normal(size=60)
    found = summarise_model(SoftRegressor(["ridge"]).fit(make(X), y), X=make(X), y=y)["importance"]["columns"]
    assert found[0]["column"] in ("x1", "b")


@pytest.mark.parametrize(
    "settings", [{"rule": "uniform"}, {"loss": "log"}, {"refit": False}, {"cv": TimeSeriesSplit(3)}]
)
def test_every_way_of_fitting_can_be_summarised(rng, settings):
    X = rng.normal(size=(80, 2))
    model = SoftClassifier(["logistic", "knn_5"], **settings).fit(X, (X[:, 0] + rng.normal(size=80) > 0).astype(int))
    summary = summarise_model(model)
    assert 0.3 < summary["answer"]["score"] <= 1
    assert to_html(summary)
