"""Stackers do what a convex sum cannot, and bear what single specialists get wrong."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from softlearning.library.stackers import LogisticStack, SignedStack


@pytest.mark.parametrize("classes", [2, 3])
def test_a_logistic_stack_is_scikit_learns_on_the_probabilities(rng, classes):
    P = rng.dirichlet(np.ones(classes), size=(200, 4))
    y = P[:, 0].argmax(axis=1)
    columns = P[:, :, 1:] if classes == 2 else P
    expected = LogisticRegression(max_iter=300).fit(columns.reshape(200, -1), y).predict_proba(columns.reshape(200, -1))
    stack = LogisticStack(classes).fit(np.log(P).reshape(200, -1), y)
    np.testing.assert_allclose(stack.predict_proba(np.log(P).reshape(200, -1)), expected, atol=1e-6)


def test_a_logistic_stack_has_a_place_for_classes_that_its_rows_lack(rng):
    L = np.log(rng.dirichlet(np.ones(3), size=(50, 2))).reshape(50, -1)
    two = LogisticStack(3).fit(L, np.arange(50) % 2)
    assert two.predict_proba(L).shape == (50, 3)
    assert not two.predict_proba(L)[:, 2].any()
    one = LogisticStack(3).fit(L, np.ones(50, int))
    np.testing.assert_array_equal(one.predict_proba(L), np.tile([0.0, 1.0, 0.0], (50, 1)))


def test_a_signed_stack_subtracts_what_two_specialists_share(rng):
    truth, shared = rng.normal(size=300), rng.normal(size=300)
    P = np.column_stack([truth + shared, shared])  # no convex sum of the two comes near the truth
    stack = SignedStack().fit(P, truth)
    assert_allclose(stack.predict(P), truth, atol=0.01)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_the_unit_of_the_target_does_not_matter_to_a_signed_stack(rng, unit):
    y = rng.normal(size=80)
    P = y[:, None] + rng.normal(size=(80, 3))
    assert_allclose(SignedStack().fit(unit * P, unit * y).predict(unit * P), unit * SignedStack().fit(P, y).predict(P))


def test_a_prediction_off_the_scale_does_not_ruin_a_signed_stack(rng):
    y = rng.normal(size=200)
    P = y[:, None] + 0.3 * rng.normal(size=(200, 3))
    P[0, 2] = 1e12
    stack = SignedStack().fit(P, y)
    assert np.abs(stack.predict(P) - y)[1:].mean() < 0.3
    assert np.abs(stack.predict(P)[0]) < 3 * np.abs(y).max()


def test_a_signed_stack_follows_the_rows_that_weigh(rng):
    P = rng.normal(size=(200, 2))
    heavy = np.arange(200) < 100
    y = np.where(heavy, P[:, 0], -P[:, 0])
    stack = SignedStack().fit(P, y, sample_weight=np.where(heavy, 1.0, 1e-6))
    assert_allclose(stack.predict(P[heavy]), y[heavy], atol=0.01)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_signed_stack_of_hardly_any_rows_predicts_numbers(rng, rows):
    P = rng.normal(size=(rows, 4))
    assert np.isfinite(SignedStack().fit(P, P[:, 0]).predict(P)).all()
