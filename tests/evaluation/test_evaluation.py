"""Nested evaluation: unseen folds, closed forms equal to scorers, paired differences, intervals that cover."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.datasets import load_breast_cancer, load_iris, make_regression
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import get_scorer, mean_pinball_loss
from sklearn.neighbors import KNeighborsClassifier

from softlearning import evaluation
from softlearning.estimators import SoftClassifier, SoftRegressor
from softlearning.evaluation import evaluate

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_held_out_rows_are_never_seen():
    X, y = np.random.default_rng(0).normal(size=(120, 3)), np.arange(120) % 2
    result = evaluate(KNeighborsClassifier(1), X, y, metrics="accuracy")
    assert result.scores["score"].iloc[0] < 0.65  # a model that memorises would be perfect


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:200]
    return X[rows], np.array(["malignant", "benign"])[y[rows]]


@pytest.fixture(scope="module")
def result(cancer):
    model = SoftClassifier(library=["logistic", "naive_bayes", "knn_15"])
    return evaluate(model, *cancer, cv=4, metrics=("accuracy", "neg_log_loss", "roc_auc"))


def test_every_specialist_and_both_plain_rules_are_scored(result):
    expected = {"blend", "discrete super learner", "uniform weights", "logistic", "naive_bayes", "knn_15"}
    for _, part in result.scores.groupby("metric"):
        assert set(part["candidate"]) == expected
    assert (result.scores["low"] <= result.scores["score"]).all()
    assert (result.scores["score"] <= result.scores["high"]).all()


def test_differences_are_paired_so_their_error_is_smaller_than_that_of_the_scores(result):
    score = result.scores.set_index(["metric", "candidate"])
    for row in result.differences.itertuples():
        blend, other = score.loc[(row.metric, "blend")], score.loc[(row.metric, row.against)]
        assert_allclose(row.difference, blend["score"] - other["score"])
    log_loss = result.differences.query("metric == 'neg_log_loss' and against == 'uniform weights'").iloc[0]
    separate = np.hypot(*score.loc["neg_log_loss"].loc[["blend", "uniform weights"], "std_error"])
    assert log_loss["std_error"] < separate


def test_the_blend_is_what_a_plain_fit_in_the_fold_would_predict(cancer, result):
    X, y = cancer
    codes = np.searchsorted(np.unique(y), y)
    train, test = evaluation.make_folds(4, codes, stratify=True, seed=42)[0]
    model = SoftClassifier(library=["logistic", "naive_bayes", "knn_15"]).fit(X[train], y[train])
    assert_allclose(result.folds["accuracy"].iloc[0], model.score(X[test], y[test]))


def test_the_result_reads_like_a_sentence(result):
    text = repr(result)
    assert "4 folds, 200 rows, 95% intervals" in text
    assert "minus discrete super learner" in text
    assert set(result.differences["verdict"]) <= {"better", "worse", "no clear difference"}


def test_groups_are_held_out_together_and_counted_instead_of_rows(rng):
    level = np.repeat(rng.normal(size=30), 8)  # eight rows a group share all of their noise
    X, groups = rng.normal(size=(240, 2)), np.repeat(np.arange(30), 8)
    y = X[:, 0] + level
    rows = evaluate(LinearRegression(), X, y, metrics="neg_mean_squared_error")
    clustered = evaluate(LinearRegression(), X, y, metrics="neg_mean_squared_error", groups=groups)
    assert clustered.groups == 30
    assert "30 groups" in repr(clustered)
    assert clustered.scores["std_error"].iloc[0] > 1.5 * rows.scores["std_error"].iloc[0]


def test_groups_reach_the_inner_folds(rng):
    groups = np.repeat(np.arange(20), 5)
    X, y = np.repeat(rng.normal(size=(20, 2)), 5, axis=0), np.repeat(rng.normal(size=20), 5)
    result = evaluate(SoftRegressor(library=["ridge", "knn_5"]), X, y, cv=4, metrics="r2", groups=groups)
    knn = result.scores.query("candidate == 'knn_5'")["score"].iloc[0]
    assert knn < 0.5  # twins of a row are in no training part


def test_any_metric_serves_scorers_functions_and_frames(rng):
    X, y = make_regression(80, 3, noise=5, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    metrics = {"pinball": mean_pinball_loss, "median": "neg_median_absolute_error", "max": get_scorer("neg_max_error")}
    result = evaluate(LinearRegression(), frame, y, metrics=metrics)
    assert list(result.scores["metric"]) == ["pinball", "median", "max"]
    assert result.differences.empty
    assert np.isfinite(result.scores["std_error"]).all()


def test_classifiers_without_probabilities_are_scored_by_their_labels():
    X, y = load_iris(return_X_y=True)
    assert evaluate(RidgeClassifier(), X, y, metrics="balanced_accuracy").scores["score"].iloc[0] > 0.7


@pytest.mark.filterwarnings("ignore:Only one class is present:sklearn.exceptions.UndefinedMetricWarning")
def test_a_class_that_an_outer_fold_lacks_gets_probability_zero(rng):
    X, y = rng.normal(size=(40, 2)), np.array(["a"] * 20 + ["b"] * 19 + ["rare"])
    result = evaluate(LogisticRegression(), X, y, cv=4, metrics="neg_log_loss")
    assert np.isfinite(result.scores["score"].iloc[0])


def test_weights_count_in_fits_and_scores(rng):
    X, y = rng.normal(size=(100, 2)), np.repeat([0, 1], 50)
    weight = np.where(y == 0, 3.0, 1.0)
    result = evaluate(DummyClassifier(strategy="prior"), X, y, metrics="accuracy", sample_weight=weight)
    assert_allclose(result.scores["score"].iloc[0], 0.75)


def test_a_row_held_out_more_than_once_is_one_block(rng):
    X, y = make_regression(60, 3, noise=5, random_state=0)
    folds = [(np.setdiff1d(np.arange(60), part), part) for part in np.array_split(np.arange(60), 3)]
    once = evaluate(LinearRegression(), X, y, cv=folds, metrics="neg_mean_squared_error").scores
    twice = evaluate(LinearRegression(), X, y, cv=folds * 2, metrics="neg_mean_squared_error").scores
    assert_allclose(twice["std_error"], once["std_error"])


# -- do intervals cover? The models of the outer folds are kept, and their true score is measured on many new rows.

FITTED: list = []


class SpiedRegressor(RegressorMixin, BaseEstimator):
    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.fitted_ = clone(self.model).fit(X, y)
        FITTED.append(self)
        return self

    def predict(self, X):
        return self.fitted_.predict(X)


class SpiedClassifier(ClassifierMixin, SpiedRegressor):
    def fit(self, X, y):
        super().fit(X, y)
        self.classes_ = self.fitted_.classes_
        return self

    def predict_proba(self, X):
        return self.fitted_.predict_proba(X)


def wavy(rng, n):
    X = rng.normal(size=(n, 5))
    return X, X[:, 0] - X[:, 1] + np.sin(2 * X[:, 0]) + rng.normal(size=n) * (0.5 + 0.5 * np.abs(X[:, 1]))


def curved(rng, n):
    X = rng.normal(size=(n, 5))
    chance = 1 / (1 + np.exp(-2 * X[:, 0] + X[:, 1] - X[:, 0] * X[:, 1]))
    return X, (rng.random(n) < chance).astype(int)


def covers(model, draw, n, seed, metrics):
    """Whether each interval holds the mean score of the outer models on 4,000 new rows."""
    rng = np.random.default_rng(seed)
    FITTED.clear()
    result = evaluate(model, *draw(rng, n), metrics=metrics, random_state=seed)
    new = draw(rng, 4000)
    truth = {m: np.mean([get_scorer(m)(fitted, *new) for fitted in FITTED]) for m in metrics}
    return {row.metric: row.low <= truth[row.metric] <= row.high for row in result.scores.itertuples()}


def test_intervals_of_a_linear_model_cover(rng):
    metrics = ("neg_mean_squared_error", "r2")
    hits = pd.DataFrame([covers(SpiedRegressor(LinearRegression()), wavy, 80, s, metrics) for s in range(60)])
    assert (hits.mean() >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 60)).all()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_intervals_of_the_whole_procedure_cover_93_to_97_percent_over_300_simulations():
    fast = {"classification": ["logistic", "naive_bayes", "knn_15"], "regression": ["ridge", "knn_15", "decision_tree"]}
    classifier = SpiedClassifier(SoftClassifier(library=fast["classification"]))
    regressor = SpiedRegressor(SoftRegressor(library=fast["regression"]))
    lines = []
    for model, draw, metrics in (
        (regressor, wavy, ("neg_mean_squared_error", "neg_mean_absolute_error", "r2")),
        (classifier, curved, ("accuracy", "neg_log_loss", "roc_auc")),
    ):
        hits = pd.DataFrame([covers(model, draw, 200, s, metrics) for s in range(300)])
        lines += [{"metric": m, "rows": 200, "simulations": 300, "coverage": share} for m, share in hits.mean().items()]
    table = pd.DataFrame(lines)
    RESULTS.mkdir(parents=True, exist_ok=True)
    table.to_csv(RESULTS / "evaluation_coverage.csv", index=False)
    assert table["coverage"].between(0.93, 0.97).all(), table
