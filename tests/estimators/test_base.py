"""What both estimators share: the blend and its parts, and other combinations of what is fitted."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.linear_model import Ridge

from softlearning import SoftClassifier, SoftRegressor, Specialist
from softlearning.library import recipes as rows
from softlearning.method.ensemble import predict_members
from tests.estimators.models import POOL, QUICK, QUICK_REGRESSION


def test_the_blend_is_the_convex_combination_of_its_specialists(classifier, cancer):
    P = classifier.specialist_predictions(cancer[0])
    alpha = classifier.weights_[list(classifier.specialists_)].to_numpy()
    assert_allclose(classifier.predict_proba(cancer[0]), np.einsum("nkc,k->nc", P, alpha), atol=1e-12)
    assert_allclose(classifier.contributions(cancer[0]).sum(axis=1), classifier.predict_proba(cancer[0]), atol=1e-12)


def test_no_rows_give_no_predictions(classifier, regressor):
    assert classifier.predict_proba(np.empty((0, 30))).shape == (0, 2)
    assert regressor.predict(np.empty((0, 10))).shape == (0,)


def test_another_rule_is_solved_on_the_stored_predictions(classifier, cancer):
    fresh = SoftClassifier(QUICK, rule="best").fit(*cancer)
    again = classifier.recombine(rule="best")
    assert_array_equal(again.weights_, fresh.weights_)
    assert_array_equal(again.predict_proba(cancer[0]), fresh.predict_proba(cancer[0]))


def test_a_rule_that_needs_more_specialists_asks_for_the_data(classifier, cancer):
    with pytest.raises(ValueError, match="pass the training data"):
        classifier.recombine(rule="uniform")
    fresh = SoftClassifier(QUICK, rule="uniform").fit(*cancer)
    again = classifier.recombine(rule="uniform", X=cancer[0], y=cancer[1])
    assert_allclose(again.predict_proba(cancer[0]), fresh.predict_proba(cancer[0]), atol=1e-9)


@pytest.mark.parametrize("stacked", [False, True])
def test_expanding_equals_a_fresh_fit_with_the_larger_library(diabetes, stacked):
    X, y = diabetes
    stacker = [Specialist("stacker", "stacker", rows.ridge, needs="", level=2)] if stacked else []
    larger = SoftRegressor([*QUICK_REGRESSION, *stacker, "lasso"]).fit(X, y)
    grown = SoftRegressor([*QUICK_REGRESSION, *stacker]).fit(X, y).expand(["lasso"], X, y)
    assert_allclose(grown.predict(X), larger.predict(X), atol=1e-9)
    assert_allclose(grown.weights_, larger.weights_, atol=1e-9)


@pytest.mark.parametrize("stacked", [False, True])
def test_dropping_equals_a_fresh_fit_with_the_smaller_library(diabetes, stacked):
    X, y = diabetes
    stacker = [Specialist("stacker", "stacker", rows.ridge, needs="", level=2)] if stacked else []
    smaller = SoftRegressor(["ridge", "knn_5", *stacker]).fit(X, y)
    shrunk = SoftRegressor([*QUICK_REGRESSION, *stacker]).fit(X, y).drop("decision_tree", X, y)
    assert_allclose(shrunk.predict(X), smaller.predict(X), atol=1e-9)


def test_nothing_that_is_fitted_is_fitted_again(diabetes):
    X, y = diabetes
    counting = CountingRidge()
    model = SoftRegressor([("counting", counting), "ridge", Specialist("other", "linear", rows.lasso)])
    model = model.fit(X, y)
    before = {name: id(m) for name, m in model.specialists_.items()}
    again = model.expand(["knn_5"], X, y)
    for name in set(before) & set(again.specialists_):
        assert id(again.specialists_[name]) == before[name]


class CountingRidge(Ridge):
    """A ridge of the user's own."""


def test_other_data_are_refused(classifier, cancer):
    with pytest.raises(ValueError, match="not the data this model was fitted on"):
        classifier.expand(["spline_logistic"], cancer[0][:100], cancer[1][:100])


def test_dropping_everything_is_refused(classifier):
    with pytest.raises(ValueError, match="nothing would be left"):
        classifier.drop(QUICK)


def test_a_stacker_hands_its_weight_down_to_those_it_reads():
    X, y = make_classification(400, 8, n_informative=5, random_state=3)
    model = SoftClassifier(["logistic", "naive_bayes", "knn_15", "decision_tree", POOL]).fit(X[:300], y[:300])
    learned = model.record_
    all_to_the_stacker = (np.array(learned.crossed.library.names) == "log_pool").astype(float)
    model.record_ = replace(learned, solution=replace(learned.solution, weights=all_to_the_stacker))
    read = learned.ensemble.reads["log_pool"]
    f = model.predict_proba(X[300:])
    members = predict_members(learned.ensemble, read, X[300:])
    earned = [learned.crossed.alone[name] for name in read]
    expected = ((members - f[:, None]) ** 2).sum(axis=2) @ earned
    assert_allclose(model.disagreement(X[300:]), expected)
    _, accepted = model.predict_selective(X[300:], coverage=0.7)
    assert 0.5 < accepted.mean() < 0.95  # the held-out rows that set the threshold had other weights
