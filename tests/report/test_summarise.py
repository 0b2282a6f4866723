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
    assert a["low"] < a["value"] < a["high"]
    assert a["loss"] == pytest.approx(model.cv_risk_)
    assert a["value"] == pytest.approx(1 - class_summary["confusion"]["wrong"] / class_summary["confusion"]["rows"])


def test_gains_are_differences_of_losses_and_verdicts_follow_their_intervals(summary):
    assert list(summary["comparisons"]) == ["oracle", "pick", "uniform", "trivial"]
    for c in summary["comparisons"].values():
        assert c["gain"] == pytest.approx(c["loss"] - summary["answer"]["loss"])
        assert (c["low"] > 0) == c["better"]
        assert (c["high"] < 0) == c["worse"]
    assert summary["comparisons"]["trivial"]["better"]


def test_the_oracle_is_the_single_specialist_of_least_risk_and_the_pick_never_beats_it(summary):
    board = {line["specialist"]: line["cv_risk"] for line in summary["leaderboard"]}
    oracle = summary["comparisons"]["oracle"]
    assert oracle["rival"] == min(board, key=board.__getitem__)
    assert oracle["loss"] == pytest.approx(board[oracle["rival"]])
    assert summary["comparisons"]["pick"]["loss"] >= oracle["loss"] - 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_a_stacker_is_neither_oracle_nor_pick(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3))
    y = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.4 * rng.normal(size=150) > 0).astype(int)
    model = SoftClassifier(["logistic", "knn_15", "naive_bayes", "log_pool", "logistic_stack"]).fit(X, y)
    found = summarise_model(model, draws=0)["comparisons"]
    assert found["oracle"]["rival"] in ("logistic", "knn_15", "naive_bayes")
    assert found["oracle"]["gain"] == model.record_.comparison.gain
    assert found["pick"]["loss"] >= found["oracle"]["loss"] - 1e-12


def test_rows_of_a_group_count_as_one_in_every_interval(rng):
    X = np.repeat(rng.normal(size=(30, 2)), 20, axis=0)
    y = (X[:, 0] + np.repeat(rng.normal(size=30), 20) > 0).astype(int)
    names, groups = ["logistic", "naive_bayes"], np.arange(600) // 20
    splits = [(np.flatnonzero(groups % 5 != v), np.flatnonzero(groups % 5 == v)) for v in range(5)]
    alone = summarise_model(SoftClassifier(names, cv=splits).fit(X, y))
    grouped = summarise_model(SoftClassifier(names, cv=splits).fit(X, y, groups=groups))
    width = lambda line: line["high"] - line["low"]
    assert grouped["answer"]["groups"] == 30
    assert width(grouped["answer"]) > 3 * width(alone["answer"])
    assert grouped["comparisons"]["trivial"]["error"] > 3 * alone["comparisons"]["trivial"]["error"]
    assert width(grouped["coverage"][0]) > 3 * width(alone["coverage"][0])
    assert sum(map(width, grouped["calibration"]["bins"])) > sum(map(width, alone["calibration"]["bins"]))


def test_weights_come_with_intervals_and_reasons(summary):
    assert sum(w["weight"] for w in summary["weights"]) == pytest.approx(1)
    assert sum(f["weight"] for f in summary["families"]) == pytest.approx(1)
    assert all(0 <= w["low"] <= w["high"] <= 1 for w in summary["weights"])
    assert all(line["reason"] for line in summary["leaderboard"])
    assert sum(line["effective"] for line in summary["leaderboard"]) == pytest.approx(1)


def test_the_column_that_makes_the_outcome_matters_most_and_noise_hardly(summary):
    importance = {c["column"]: c["mean"] for c in summary["importance"]["columns"]}
    assert max(importance, key=importance.__getitem__) == "age"
    assert importance["noise"] < 0.2 * importance["age"]


def test_without_rows_there_is_no_importance(regressed):
    assert summarise_model(regressed[0], draws=0)["importance"] is None


def test_training_rows_tell_no_importance_and_the_page_says_why(rng):
    X = rng.normal(size=(60, 2))
    for model, y in ((SoftRegressor(["ridge"]), X[:, 0]), (SoftClassifier(["logistic"]), np.sign(X[:, 0]))):
        summary = summarise_model(model.fit(X, y), X=X, y=y, draws=0)
        assert summary["importance"]["columns"] == []
        assert "pass rows that it has not seen" in to_html(summary)


def test_a_bootstrap_is_drawn_only_when_asked_for(regressed, monkeypatch):
    monkeypatch.setattr("softlearning.report.summarise.weigh", lambda *_, **__: pytest.fail("drawn"))
    summary = summarise_model(regressed[0], draws=0)
    assert all(w["low"] is None for w in summary["weights"])
    assert "intervals when the rows are drawn" not in to_html(summary)


def test_the_guard_is_told_apart_from_the_proof(rng):
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + rng.normal(size=40)
    thirds = lambda P, Y, w: np.full(P.shape[1], 1 / 3)
    model = SoftRegressor(["ridge", "knn_5", "decision_tree"], rule=thirds).fit(X, y)
    c = summarise_model(model, draws=0)["certificate"]
    assert c["exact_gap"] <= 1e-9 < c["objective"] - c["exact_objective"] <= c["gap"]
    assert c["moved"] > 0.05


def test_what_failed_is_told_once(rng):
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
    assert [f["specialist"] for f in failures] == ["refuses"]
    assert failures[0]["what"] == "failed"
    assert "no licence" in failures[0]["why"]
    assert "\n" not in failures[0]["why"]


def test_one_specialist_has_no_disagreement_to_report(rng):
    X = rng.normal(size=(40, 2))
    summary = summarise_model(SoftRegressor(["ridge"]).fit(X, X[:, 0] + rng.normal(size=40)))
    assert summary["uncertainty"] is None
    assert summary["leaderboard"][0]["reason"] == "the only specialist"


def test_rows_without_weight_change_no_score(classified):
    model, X, y = classified
    rows = np.arange(len(y)) < 120
    weight = rows.astype(float)
    names = ["logistic", "naive_bayes"]
    splits = [(train[train < 120], test[test < 120]) for train, test in model.folds_]
    weighted = SoftClassifier(names, cv=splits, column_types={}).fit(X, y, sample_weight=weight)
    plain = SoftClassifier(names, cv=splits, column_types={}).fit(X[:120], y[:120])
    assert summarise_model(weighted)["answer"]["value"] == pytest.approx(summarise_model(plain)["answer"]["value"])


def test_a_model_must_be_fitted():
    with pytest.raises(NotFittedError):
        summarise_model(SoftClassifier())


def test_a_constant_target_has_no_r2_and_a_page_all_the_same(rng):
    X = rng.normal(size=(40, 2))
    summary = summarise_model(SoftRegressor(["ridge", "dummy"]).fit(X, np.full(40, 5.0)))
    assert summary["answer"]["value"] is None
    assert "nothing to explain" in to_html(summary)


@pytest.mark.parametrize("make", [lambda X: X, sparse.csr_matrix, lambda X: pl.DataFrame(X, schema=["a", "b"])])
def test_any_kind_of_table_can_be_asked_for_its_columns(rng, make):
    X = rng.normal(size=(60, 2))
    y = X[:, 1] + 0.1 * rng.normal(size=60)
    model = SoftRegressor(["ridge"]).fit(make(X[:30]), y[:30])
    found = summarise_model(model, X=make(X[30:]), y=y[30:])["importance"]["columns"]
    assert found[0]["column"] in ("x1", "b")


@pytest.mark.parametrize(
    "settings", [{"rule": "uniform"}, {"loss": "log"}, {"refit": False}, {"cv": TimeSeriesSplit(3)}]
)
def test_every_way_of_fitting_can_be_summarised(rng, settings):
    X = rng.normal(size=(80, 2))
    model = SoftClassifier(["logistic", "knn_5"], **settings).fit(X, (X[:, 0] + rng.normal(size=80) > 0).astype(int))
    summary = summarise_model(model)
    assert 0.3 < summary["answer"]["value"] <= 1
    assert to_html(summary)


@pytest.mark.parametrize("threshold", [0.1, 0.9])
def test_the_page_is_about_the_labels_that_the_model_answers(rng, threshold):
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    model = SoftClassifier(["logistic", "knn_15"], threshold=threshold).fit(X, y)
    summary, said = summarise_model(model), model.record_.held_out.blend[:, 1] >= threshold
    assert summary["answer"]["value"] == pytest.approx(np.mean(said == y))
    assert summary["confusion"]["wrong"] == np.sum(said != y)
    assert {c["class"]: c["answers"] for c in summary["per_class"]}["1"] == said.sum()
