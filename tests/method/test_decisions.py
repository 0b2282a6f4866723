"""Probabilities become labels: thresholds agree with scikit-learn's, costs are least in expectation, priors shift."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    jaccard_score,
    matthews_corrcoef,
    roc_auc_score,
)
from sklearn.model_selection import TunedThresholdClassifierCV

from softlearning import SoftClassifier
from softlearning.evaluation.scoring import COUNTS
from softlearning.method.decisions import (
    best_of_counts,
    best_threshold,
    decision_rule,
    ranking,
    shares_of,
    with_prior,
)


class Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose table is the probability of the second class."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def predict(self, X):
        return self.classes_[(X[:, 0] >= 0.5).astype(int)]


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(5)
    y = (rng.random(400) < 0.1).astype(int)
    return np.clip(0.12 + 0.15 * y + 0.08 * rng.normal(size=400), 0, 1), y


def test_the_threshold_is_that_of_scikit_learn_on_the_same_scores(scored):
    p, y = scored
    tuned = TunedThresholdClassifierCV(Given().fit(p[:, None], y), cv="prefit", refit=False, thresholds=100)
    theirs = tuned.fit(p[:, None], y).best_threshold_
    value = lambda places: balanced_accuracy_score(y, places)
    assert best_threshold(p, value, np.linspace(p.min(), p.max(), 100)) == pytest.approx(theirs)
    mine, reached = best_of_counts(p, y, None, COUNTS["balanced_accuracy"])
    assert reached == pytest.approx(value((p >= mine).astype(int)))
    assert reached >= value((p >= theirs).astype(int))


def test_counts_and_ranks_are_those_of_scikit_learn(scored):
    p, y = scored
    p, w = p.round(2), np.random.default_rng(0).random(len(p))
    assert ranking(p, y, w) == pytest.approx(
        (roc_auc_score(y, p, sample_weight=w), average_precision_score(y, p, sample_weight=w))
    )
    said, theirs = (p >= 0.2).astype(int), (f1_score, jaccard_score, balanced_accuracy_score, matthews_corrcoef)
    counts = np.array([w @ (y * said), w @ ((1 - y) * said), w @ (y * (1 - said)), w @ ((1 - y) * (1 - said))])
    for value, function in zip(COUNTS.values(), theirs, strict=True):
        assert value(counts) == pytest.approx(function(y, said, sample_weight=w))


def test_costs_decide_for_the_least_expected_cost():
    rng = np.random.default_rng(2)
    P = rng.dirichlet(np.ones(3), 2_000)
    true = np.array([rng.choice(3, p=row) for row in P])
    costs = np.array([[0, 1, 4], [2, 0, 1], [9, 1, 0.0]])
    rule = decision_rule(costs, P, true, 3, None)
    chosen = costs[true, rule.places(P)].mean()
    assert chosen < costs[true, P.argmax(axis=1)].mean()
    assert all(chosen <= costs[true, c].mean() for c in range(3))


@pytest.mark.parametrize(
    ("threshold", "classes", "words"),
    [("best", 2, "auto"), (1.5, 2, "between 0 and 1"), (0.3, 3, "costs"), (np.eye(2), 3, r"\(3, 3\)")],
)
def test_what_is_no_decision_is_refused(threshold, classes, words):
    with pytest.raises(ValueError, match=words):
        decision_rule(threshold, np.full((2, classes), 1 / classes), np.zeros(2, dtype=int), classes, None)


def test_a_prior_is_bayes_rule():
    P, learnt = np.array([[0.8, 0.2], [0.5, 0.5]]), np.array([0.9, 0.1])
    shifted = with_prior(P, shares_of({"a": 1, "b": 1}, np.array(["a", "b"])), learnt)
    np.testing.assert_allclose(shifted[:, 1], [0.2 * 5 / (0.2 * 5 + 0.8 / 1.8), 5 / (5 + 1 / 1.8)])
    np.testing.assert_allclose(with_prior(P, learnt, learnt), P)
    with pytest.raises(ValueError, match="'b'"):
        shares_of({"a": 1}, np.array(["a", "b"]))


def test_a_model_answers_by_threshold_cost_and_prior():
    X, y = make_classification(500, 5, weights=[0.85], class_sep=0.8, random_state=1)
    model = SoftClassifier(["logistic", "dummy"], cv=3, threshold="auto").fit(X, y)
    assert 0 < model.decision_.threshold < 0.4
    np.testing.assert_array_equal(model.predict(X), (model.predict_proba(X)[:, 1] >= model.decision_.threshold) * 1)
    held = model.record_.held_out
    assert model.cv_score_["metric"] == "accuracy"
    balanced = SoftClassifier(["logistic", "dummy"], cv=3, metric="balanced_accuracy").fit(X, y)
    places = held.blend.argmax(axis=1)
    assert balanced.cv_score_["score"] > balanced_accuracy_score(held.target.argmax(axis=1), places)
    costly = SoftClassifier(["logistic", "dummy"], cv=3, threshold=[[0, 1], [20, 0]]).fit(X, y)
    assert costly.predict(X).mean() > model.predict(X).mean()
    more = model.predict_proba(X, prior={0: 0.5, 1: 0.5})
    assert (more[:, 1] > model.predict_proba(X)[:, 1]).all()
    assert more.sum(axis=1) == pytest.approx(1)
