"""Committees of small networks: gradients, encodings, stopping, weights, and what a saved one predicts."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1, make_moons
from sklearn.metrics import log_loss

from softlearning import SoftClassifier, load
from softlearning.library.networks import (
    CommitteeClassifier,
    CommitteeRegressor,
    bent,
    encoded,
    forward,
    quantile_borders,
    started,
    views,
)

QUICK = {"members": 3, "width": 16, "epochs": 40, "batch": 32, "random_state": 0}


def test_outliers_are_drawn_in_and_small_numbers_stay():
    assert bent(np.array([1e6]))[0] == pytest.approx(3)
    assert bent(np.array([0.1]))[0] == pytest.approx(0.1, rel=1e-3)


def test_a_number_is_the_sum_of_its_bins_and_a_switch_has_none():
    X = np.column_stack([np.linspace(-1, 1, 9), np.tile([0.0, 1.0, 1.0], 3)]).astype(np.float32)
    borders = quantile_borders(X, bins=4)
    assert [column for column, _ in borders] == [0]
    shares = encoded(X, borders)[:, 2:]
    np.testing.assert_allclose(borders[0][1][0] + shares @ np.diff(borders[0][1]), X[:, 0], atol=1e-6)


@pytest.mark.parametrize("kind", [CommitteeClassifier, CommitteeRegressor])
def test_the_gradient_is_that_of_the_risk(kind, rng):
    model = kind(members=2, width=5, dropout=0.0)
    X, weight = rng.normal(size=(2, 7, 3)), rng.uniform(0.5, 2, size=(2, 7))
    target = np.eye(3)[rng.integers(3, size=(2, 7))] if kind is CommitteeClassifier else rng.normal(size=(2, 7, 1))
    model.sizes_ = (3, 5, 5, target.shape[2])
    theta = started(np.random.default_rng(0), 2, model.sizes_).astype(float)
    gradient = model._gradient(np.random.default_rng(0), theta, X, target, weight)
    risk = lambda t: model._risk(forward(X, views(t, model.sizes_))[-1], target, weight)
    for j in range(0, theta.shape[1], 7):
        step = np.zeros_like(theta)
        step[:, j] = 1e-6
        np.testing.assert_allclose(gradient[:, j], (risk(theta + step) - risk(theta - step)) / 2e-6, atol=1e-6)


def test_members_hold_out_different_rows_and_together_see_all():
    train, held = CommitteeClassifier(members=4)._split(np.random.default_rng(0), 40)
    assert len(np.unique(held)) == held.size
    for own, left in zip(train, held):
        assert sorted([*own, *left]) == list(range(40))


def test_it_learns_what_a_line_cannot_and_repeats_itself():
    X, y = make_moons(400, noise=0.15, random_state=0)
    labels = np.array(["in", "out"])[y]
    first, second = (CommitteeClassifier(**QUICK).fit(X[:300], labels[:300]) for _ in range(2))
    assert first.score(X[300:], labels[300:]) > 0.94
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def test_it_stops_before_it_believes_noise(rng):
    X, y = rng.normal(size=(300, 10)), rng.integers(2, size=300)
    model = CommitteeClassifier(**QUICK | {"epochs": 200}).fit(X[:150], y[:150])
    assert log_loss(y[150:], model.predict_proba(X[150:])) < np.log(2) + 0.05


def test_numbers_and_weights():
    X, y = make_friedman1(300, random_state=0)
    X, y = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
    assert CommitteeRegressor(**QUICK).fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.7
    heavy = CommitteeRegressor(**QUICK).fit(X, np.where(y > 0, 1.0, -1.0), np.where(y > 0, 50.0, 1.0))
    assert heavy.predict(X).mean() > 0.5


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_few_rows(rows, rng):
    X = rng.normal(size=(rows, 2))
    assert np.isfinite(CommitteeRegressor(**QUICK).fit(X, np.arange(rows)).predict(X)).all()
    assert CommitteeClassifier(**QUICK).fit(X, np.arange(rows)).predict_proba(X).shape == (rows, rows)


def test_a_saved_blend_with_it_predicts_the_same(tmp_path):
    X, y = make_moons(120, noise=0.2, random_state=0)
    model = SoftClassifier(["network", "logistic"], rule="uniform").fit(X, y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), model.predict_proba(X))
