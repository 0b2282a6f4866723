"""The learners that are ours: probabilities from margins, and category codes for learners with their own wishes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from softlearning.library.learners import (
    CapCategories,
    CodesToFrame,
    PlattSVC,
    ScaledTarget,
    couple,
    inner_folds,
    platt_sigmoid,
)


def test_coupling_gives_back_the_probabilities_that_made_the_pairs(rng):
    p = rng.dirichlet(np.ones(5), size=20)
    rows, columns = np.triu_indices(5, 1)
    first = p[:, rows] / (p[:, rows] + p[:, columns])
    assert_allclose(couple(first, 5), p, atol=1e-6)


def test_the_sigmoid_recovers_its_parameters(rng):
    margin = rng.normal(size=20_000)
    positive = rng.random(20_000) < 1 / (1 + np.exp(-2 * margin + 0.5))
    A, B = platt_sigmoid(margin, positive, np.ones(20_000))
    assert_allclose([A, B], [-2, 0.5], atol=0.08)


def test_separable_margins_do_not_run_away():
    A, B = platt_sigmoid(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]), np.ones(4))
    assert np.isfinite([A, B]).all()
    assert A < 0


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_labels_agree_with_the_plain_machine_almost_everywhere(load):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours, plain = PlattSVC(random_state=0).fit(X, y).predict(X), SVC().fit(X, y).predict(X)
    assert (ours == plain).mean() > 0.97


def test_multiclass_probabilities_beat_one_against_the_rest_calibration():
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(StandardScaler().fit_transform(X), y, train_size=500, random_state=0)
    ours = PlattSVC(cv=3, random_state=0).fit(X, y).predict_proba(X_new)
    rest = CalibratedClassifierCV(SVC(), ensemble=False, cv=3).fit(X, y).predict_proba(X_new)
    assert log_loss(y_new, ours) < 0.7 * log_loss(y_new, rest)


def test_rare_classes_are_calibrated_as_far_as_possible(rng):
    X = rng.normal(size=(31, 2)) + np.repeat([0, 4, 8], [15, 15, 1])[:, None]
    P = PlattSVC(random_state=0).fit(X, np.repeat(["a", "b", "c"], [15, 15, 1])).predict_proba(X)
    assert_allclose(P.sum(axis=1), 1)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="needs two classes"):
        PlattSVC().fit(np.eye(3), [1, 1, 1])


def test_inner_folds_cover_every_row_even_with_a_class_of_one():
    codes = np.array([0] * 5 + [1])
    assert_array_equal(np.sort(np.concatenate([test for _, test in inner_folds(codes, 5, 0)])), np.arange(6))


def test_codes_beyond_the_cap_share_one():
    X = np.array([[0.0, 500.0], [1.0, 3.0], [np.nan, np.nan]])
    assert_array_equal(CapCategories((1,), most=254).transform(X), [[0, 254], [1, 3], [np.nan, np.nan]])


def test_codes_become_whole_numbers_and_missing_values_a_code_of_their_own():
    frame = CodesToFrame((1,)).transform(np.array([[0.5, 2.0], [1.5, np.nan]]))
    assert frame[1].tolist() == [2, -1]
    assert frame[0].dtype == float


@pytest.mark.parametrize("weighted", [False, True])
def test_a_scaled_target_makes_the_unit_of_y_immaterial(rng, weighted):
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    weight = rng.uniform(0.5, 2, size=60) if weighted else None
    metres = ScaledTarget(SVR()).fit(X, y, sample_weight=weight).predict(X)
    millimetres = ScaledTarget(SVR()).fit(X, 1000 * y + 5, sample_weight=weight).predict(X)
    assert_allclose(millimetres, 1000 * metres + 5, rtol=1e-3, atol=1)  # the solver of SVR stops at a tolerance


def test_a_constant_target_is_predicted_as_it_is(rng):
    X = rng.normal(size=(20, 2))
    assert_allclose(ScaledTarget(SVR()).fit(X, np.full(20, 7.0)).predict(X), 7.0)
