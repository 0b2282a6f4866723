import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from softlearning.uncertainty.temperature import apply_temperature, fit_temperature
from tests.weights.solver_problems import softmax


def log_loss(P, Y):
    return -np.log(np.maximum((P * Y).sum(axis=1), 1e-300)).mean()


def drawn_from_their_own_probabilities(seed, n=20_000, C=4):
    rng = np.random.default_rng(seed)
    P = softmax(1.5 * rng.normal(size=(n, C)))
    labels = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return P, np.eye(C)[labels]


@pytest.mark.parametrize("T", [0.25, 0.7, 1.0, 2.0, 8.0])
def test_a_distorted_specialist_gets_its_distortion_back(T):
    P, Y = drawn_from_their_own_probabilities(0)
    assert_allclose(fit_temperature(apply_temperature(P, 1 / T), Y), T, rtol=0.03)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(2, 6), st.floats(0.05, 20), st.booleans())
@settings(max_examples=80, deadline=None, derandomize=True)
def test_no_other_temperature_has_a_smaller_log_loss(seed, n, C, sharpness, zeros):
    rng = np.random.default_rng(seed)
    Y = np.eye(C)[rng.integers(0, C, n)]
    P = softmax(sharpness * (Y + rng.normal(size=(n, C))))
    P = np.where(P < 0.05, 0, P) if zeros else P
    P = P / P.sum(axis=1, keepdims=True)
    T = fit_temperature(P, Y)
    assert 0.02 <= T <= 50
    others = np.clip([0.02, T * 0.9, T * 1.1, 1.0, 50.0], 0.02, 50)
    loss = log_loss(apply_temperature(P, T), Y)
    assert all(loss <= log_loss(apply_temperature(np.clip(P, 1e-15, 1), t), Y) + 1e-10 for t in others)


def test_weights_count_rows_and_zero_means_absent():
    P, Y = drawn_from_their_own_probabilities(1, n=300)
    times = np.random.default_rng(2).integers(0, 3, 300)
    repeated = fit_temperature(P.repeat(times, axis=0), Y.repeat(times, axis=0))
    assert_allclose(fit_temperature(P, Y, sample_weight=times), repeated, rtol=1e-6)


@pytest.mark.parametrize("P", [np.full((6, 3), 1 / 3), np.eye(3)[[0, 1, 2, 0, 1, 2]]])
def test_where_no_temperature_helps_nothing_changes(P):
    """Constant probabilities stay constant, and certain and right ones stay certain."""
    assert fit_temperature(P, np.eye(3)[[0, 1, 2, 0, 1, 2]]) == 1.0


def test_certain_and_often_wrong_is_softened_and_timid_but_right_is_sharpened_within_bounds():
    Y = np.eye(2)[[0, 1] * 5]
    always_first = np.eye(2)[[0] * 10]
    assert fit_temperature(always_first, Y) == 50
    assert_allclose(fit_temperature(0.5 + 0.01 * (Y - 0.5), Y), 0.02)


def test_rows_sum_to_one_and_temperature_one_is_the_identity():
    P, _ = drawn_from_their_own_probabilities(3, n=500)
    P[0] = [1, 0, 0, 0]
    assert_array_equal(apply_temperature(P, 1.0), P)
    assert_allclose(apply_temperature(3 * P / 3.5, 1.0).sum(axis=1), 1, atol=1e-15)
    for T in (0.02, 0.5, 3, 50):
        assert_allclose(apply_temperature(P, T).sum(axis=1), 1, atol=1e-14)
        assert_array_equal(apply_temperature(P, T).argmax(axis=1), P.argmax(axis=1))


@pytest.mark.parametrize(
    ("P", "Y", "weight", "message"),
    [
        (np.ones(3), np.eye(3), None, "one shape"),
        (np.eye(3), np.eye(2), None, "one shape"),
        (np.eye(3) * np.nan, np.eye(3), None, "NaN"),
        (np.eye(3) * 2, np.eye(3), None, "between 0 and 1"),
        (np.eye(3), np.eye(3) * 2, None, "sum to 1"),
        (np.eye(3), np.eye(3), [1, 1], "sample_weight"),
        (np.eye(3), np.eye(3), [0, 0, 0], "not all zero"),
    ],
)
def test_bad_input_is_refused_with_its_cause(P, Y, weight, message):
    with pytest.raises(ValueError, match=message):
        fit_temperature(P, Y, weight)


@pytest.mark.parametrize("T", [0.0, -1.0, np.nan, np.inf])
def test_a_temperature_is_positive_and_finite(T):
    with pytest.raises(ValueError, match="positive and finite"):
        apply_temperature(np.eye(2), T)


def test_shrinking_stops_a_flawlessrecord_from_being_sharpened_without_bound():
    P = np.array([[0.9, 0.1]] * 50)
    target = np.eye(2)[[0] * 50]
    assert fit_temperature(P, target) < 0.1
    assert 0.3 < fit_temperature(P, target, shrink=20.0) < 1


@pytest.mark.parametrize("scale", [1 / 40, 2.0, 1000.0])
def test_shrinking_counts_rows_and_not_the_scale_of_their_weights(rng, scale):
    P = rng.dirichlet(np.ones(3), size=40)
    target = np.eye(3)[rng.integers(0, 3, size=40)]
    weight = np.append(rng.uniform(1, 2, 30), np.zeros(10))
    plain = fit_temperature(P, target, weight, shrink=20.0)
    assert fit_temperature(P, target, weight * scale, shrink=20.0) == pytest.approx(plain, rel=1e-9)
    assert fit_temperature(P[:30], target[:30], weight[:30], shrink=20.0) == pytest.approx(plain, rel=1e-9)
