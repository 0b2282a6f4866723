"""Boosting that finds its own rounds: inside its rows, for rare classes, with what folds have found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification, make_friedman1

from softlearning.library.boosting import (
    FEWEST,
    LogTarget,
    StoppedLightGBMClassifier,
    StoppedLightGBMRegressor,
    skewness,
)


@pytest.fixture(scope="module")
def friedman():
    return make_friedman1(400, random_state=0)


def test_rounds_stop_where_held_out_rows_gain_no_more(friedman):
    X, y = friedman
    model = StoppedLightGBMRegressor(random_state=0).fit(X, y)
    assert FEWEST < model.rounds_ < model.most
    assert model.score(*make_friedman1(400, random_state=1)) > 0.7


def test_on_noise_it_stops_at_once():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), rng.normal(size=400)
    assert StoppedLightGBMRegressor(random_state=0).fit(X, y).rounds_ < 40


def test_known_rounds_are_used_on_all_rows(friedman):
    model = StoppedLightGBMRegressor(rounds=70, random_state=0).fit(*friedman)
    assert model.rounds_ == 70
    assert model.model_.booster_.num_trees() == 70


def test_the_same_seed_gives_the_same_model(friedman):
    X, y = friedman
    first = StoppedLightGBMRegressor(random_state=3)
    assert_array_equal(first.fit(X, y).predict(X), clone(first).fit(X, y).predict(X))


def test_a_class_of_a_single_row_is_learnt_from_and_never_waited_for():
    X, y = make_classification(300, 5, random_state=0)
    y[0] = 2
    model = StoppedLightGBMClassifier(random_state=0).fit(X, y)
    assert set(model.classes_) <= {0, 1, 2}
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_categories_are_read_as_they_are():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 30, 600)
    effect = rng.normal(size=30)
    X, y = codes[:, None].astype(float), effect[codes] + 0.1 * rng.normal(size=600)
    native = StoppedLightGBMRegressor(categorical=(0,), random_state=0, min_child_samples=2).fit(X, y)
    assert native.score(X, y) > 0.9


def test_few_rows_have_nothing_to_hold_out():
    X, y = make_friedman1(40, random_state=0)
    assert StoppedLightGBMRegressor().fit(X, y).rounds_ == 100


def test_a_skewed_positive_target_is_learnt_by_its_logarithm(friedman):
    X, y = friedman
    skewed = np.exp(y / 3)
    model = LogTarget(StoppedLightGBMRegressor(random_state=0)).fit(X, skewed)
    assert model.log_
    prediction = model.predict(X)
    assert_allclose(prediction.mean(), skewed.mean(), rtol=0.05)
    assert prediction.max() <= skewed.max()


def test_any_other_target_is_left_as_it_is(friedman):
    X, y = friedman
    plain = StoppedLightGBMRegressor(random_state=0)
    assert_array_equal(LogTarget(plain).fit(X, y).predict(X), clone(plain).fit(X, y).predict(X))
    assert skewness(np.ones(5)) == 0
