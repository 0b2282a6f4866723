"""Sharpening of a blend: what a mean of calibrated probabilities lacks, and no more than rows can tell."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from softlearning import SoftClassifier, load
from softlearning.uncertainty.calibration import apply_temperature
from softlearning.uncertainty.sharpening import MOST, fit_sharpness, sharpened


def two_witnesses(rng, rows):
    """Two calibrated predictions from evidence of their own, and the truth: together they know more than their mean."""
    evidence = rng.normal(size=(rows, 2))
    p = lambda z: 1 / (1 + np.exp(-z))
    y = rng.random(rows) < p(2 * evidence.sum(axis=1))
    alone = np.stack([p(z) for z in 1.3 * evidence.T], axis=1)
    return np.stack([1 - alone, alone], axis=2), np.eye(2)[y.astype(int)]


def log_loss(P, Y):
    return -np.mean(np.log((P.mean(axis=1) * Y).sum(axis=1)))


def test_a_mean_of_witnesses_is_too_cautious_and_sharpening_mends_it(rng):
    P, Y = two_witnesses(rng, 4000)
    beta = fit_sharpness(P[:2000], Y[:2000], np.array([0.5, 0.5]))
    assert 1.2 < beta < MOST
    assert log_loss(sharpened(P[2000:], beta), Y[2000:]) < log_loss(P[2000:], Y[2000:]) - 0.01


def test_one_calibrated_specialist_is_left_as_it_is(rng):
    p = rng.uniform(0.05, 0.95, 5000)
    Y = np.eye(2)[(rng.random(5000) < p).astype(int)]
    assert fit_sharpness(np.stack([1 - p, p], axis=1)[:, None], Y, np.ones(1)) == pytest.approx(1, abs=0.06)


def test_few_rows_sharpen_little_and_overconfidence_not_at_all():
    certain = np.full((4, 2, 2), 0.5) + np.array([0.3, -0.3])
    right, wrong = np.eye(2)[[0] * 4], np.eye(2)[[0, 1, 0, 1]]
    weights = np.array([0.5, 0.5])
    few, many = (
        fit_sharpness(certain, right, weights),
        fit_sharpness(np.tile(certain, (50, 1, 1)), np.tile(right, (50, 1)), weights),
    )
    assert 1 < few < 1.3 < many
    assert fit_sharpness(certain, wrong, weights) == 1.0


def test_it_is_a_temperature_and_one_changes_nothing(rng):
    P = rng.dirichlet(np.ones(3), size=8)
    assert sharpened(P, 1.0) is P
    np.testing.assert_allclose(sharpened(P, 2.0), apply_temperature(P, 0.5))


def test_rows_without_weight_do_not_count_and_the_scale_of_weights_does_not_matter(rng):
    P, Y = two_witnesses(rng, 300)
    kept, weights = rng.random(300) < 0.7, np.array([0.4, 0.6])
    alone = fit_sharpness(P[kept], Y[kept], weights)
    assert fit_sharpness(P, Y, weights, 1000.0 * kept) == pytest.approx(alone, abs=1e-3)


def test_a_model_is_sharpened_as_its_held_out_blend_was_and_its_specialists_are_judged_as_they_are(tmp_path):
    X, y = make_classification(500, 8, n_informative=6, class_sep=1.5, random_state=0)
    model = SoftClassifier(["logistic", "knn_15", "wide_trees", "qda"], rule="uniform").fit(X[:300], y[:300])
    crossed = model.record_.crossed
    assert model.sharpness_ > 1
    f = np.einsum("nkc,k->nc", model.specialist_predictions(X[300:]), model.record_.support_weights())
    np.testing.assert_allclose(model.predict_proba(X[300:]), f, atol=1e-12)
    np.testing.assert_array_equal(model.oof_, crossed.pooled[:, crossed.columns(model.weights_.index)])
    np.testing.assert_array_equal(model.record_.column("qda"), crossed.oof[:, crossed.library.names.index("qda")])
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X[300:]), model.predict_proba(X[300:]))


def test_without_calibration_or_under_another_loss_nothing_is_sharpened():
    X, y = make_classification(200, random_state=0)
    for settings in ({"calibrate": False}, {"loss": "squared"}):
        assert SoftClassifier(["logistic", "qda"], **settings).fit(X, y).sharpness_ == 1.0
