import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad

from softlearning.uncertainty.calibration import (
    Calibration,
    _penalised,
    apply_calibration,
    apply_temperature,
    fit_calibration,
)


def log_loss(P, Y):
    return -np.log(np.clip((P * Y).sum(axis=1), 1e-15, 1)).mean()


def draw(seed, n, C, sharpness=1.0):
    """Probabilities sharpened by a factor, and classes drawn from the plain ones."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, C)) * 1.5
    plain = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    Y = np.eye(C)[[rng.choice(C, p=p) for p in plain]]
    return apply_temperature(plain, 1 / sharpness), Y, plain


def neighbours(P, seed, k=5):
    """The vote of k neighbours: zeros wherever nobody votes."""
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(k, p) / k for p in P])


def test_overconfident_probabilities_get_the_temperature_that_made_them_so():
    P, Y, plain = draw(0, 4000, 3, sharpness=2.0)
    calibration = fit_calibration(P, Y)
    assert_allclose(calibration.temperature, 2.0, atol=0.15)
    assert_allclose(log_loss(apply_calibration(P, calibration), Y), log_loss(plain, Y), atol=2e-3)


def test_probabilities_that_are_right_stay_nearly_as_they_are():
    P, Y, _ = draw(1, 4000, 4)
    assert_allclose(apply_calibration(P, fit_calibration(P, Y)), P, atol=0.03)


@pytest.mark.parametrize("C", [2, 4])
def test_votes_of_few_neighbours_lose_less_with_a_share_of_the_prior_than_with_a_temperature_alone(C):
    _, Y, plain = draw(2, 3000, C)
    P = neighbours(plain, 3)
    half = np.arange(3000) < 1500
    both = log_loss(apply_calibration(P[~half], fit_calibration(P[half], Y[half])), Y[~half])
    alone = [log_loss(apply_temperature(P[~half], T), Y[~half]) for T in np.geomspace(0.1, 50, 60)]
    assert both < 0.95 * min(alone)


def test_one_row_of_a_class_nobody_saw_hardly_moves_the_temperature():
    P, Y, _ = draw(4, 300, 2)
    P3, Y3 = np.pad(P, ((0, 0), (0, 1))), np.pad(Y, ((0, 0), (0, 1)))
    Y3[7] = [0, 0, 1]
    before, after = fit_calibration(P, Y), fit_calibration(P3, Y3)
    assert abs(after.temperature - before.temperature) < 0.1
    assert after.prior_share < 0.02 + before.prior_share


def test_the_scale_of_the_weights_does_not_matter_and_rows_of_weight_zero_are_absent():
    P, Y, _ = draw(5, 200, 3, sharpness=1.5)
    weight = np.random.default_rng(5).uniform(0.5, 2, 200)
    weight[150:] = 0
    plain = fit_calibration(P, Y, weight)
    for same in (fit_calibration(P, Y, weight / 1e4), fit_calibration(P[:150], Y[:150], weight[:150])):
        assert_allclose(
            [same.temperature, same.prior_share, *same.prior], [plain.temperature, plain.prior_share, *plain.prior]
        )
    ones = [fit_calibration(P, Y, w) for w in (None, np.ones(200), np.full(200, 1 / 200))]
    assert_allclose([c.temperature for c in ones], ones[0].temperature)


def test_a_specialist_without_mistakes_on_few_rows_is_not_believed_without_bound():
    Y = np.eye(2)[[0, 1] * 10]
    calibration = fit_calibration(0.9 * Y + 0.05, Y)
    assert calibration.temperature > 0.5
    assert fit_calibration(0.9 * Y + 0.05, Y, shrink=0.0).temperature < 0.3  # without the pull there is no end to it


def test_no_class_is_impossible_even_if_neither_rows_nor_specialist_know_it():
    P, Y = np.array([[1.0, 0, 0]] * 30), np.eye(3)[[0] * 30]
    assert apply_calibration(P, fit_calibration(P, Y)).min() > 1e-8


@pytest.mark.parametrize("kind", ["sharp", "votes", "right"])
def test_no_point_of_a_grid_is_likelier_than_the_calibration_found(kind):
    P, Y, plain = draw(6, 150, 3, sharpness=4.0 if kind == "sharp" else 1.0)
    P = neighbours(plain, 6) if kind == "votes" else P
    found = fit_calibration(P, Y)
    arguments = (P, Y, np.full(150, 1 / 150), found.prior, 150, 50.0)
    best = _penalised(np.log([1 / found.temperature, found.prior_share]), *arguments)[0]
    grid = [
        _penalised(np.log([1 / T, e]), *arguments)[0]
        for T in np.geomspace(0.3, 12, 40)
        for e in np.geomspace(1e-11, 0.49, 40)
    ]
    assert best <= min(grid) + 1e-6


def test_the_gradient_is_the_derivative():
    P, Y, _ = draw(7, 50, 3)
    arguments = (P, Y, np.full(50, 1 / 50), np.full(3, 1 / 3), 50, 20.0)
    for point in (np.log([1.0, 0.01]), np.log([0.4, 0.2]), np.log([3.0, 1e-6])):
        assert check_grad(lambda x: _penalised(x, *arguments)[0], lambda x: _penalised(x, *arguments)[1], point) < 1e-5


def test_temperature_one_without_prior_changes_nothing():
    P, _, _ = draw(8, 20, 3)
    assert_allclose(apply_calibration(P, Calibration(1.0, 0.0, np.full(3, 1 / 3))), P, rtol=1e-15)


def test_rows_sum_to_one():
    P, Y, _ = draw(9, 60, 5, sharpness=3.0)
    assert_allclose(apply_calibration(P, fit_calibration(P, Y)).sum(axis=1), 1.0)


def test_rows_sum_to_one_and_temperature_one_is_the_identity():
    P, _, _ = draw(3, 500, 4)
    P[0] = [1, 0, 0, 0]
    assert_array_equal(apply_temperature(P, 1.0), P)
    assert_allclose(apply_temperature(3 * P / 3.5, 1.0).sum(axis=1), 1, atol=1e-15)
    for T in (0.02, 0.5, 3, 50):
        assert_allclose(apply_temperature(P, T).sum(axis=1), 1, atol=1e-14)
        assert_array_equal(apply_temperature(P, T).argmax(axis=1), P.argmax(axis=1))


@pytest.mark.parametrize(
    ("P", "Y", "weight", "message"),
    [
        (np.ones(3), np.eye(3), None, "shape|array"),
        (np.eye(3), np.eye(2), None, "shape|array"),
        (np.eye(3) * np.nan, np.eye(3), None, "NaN"),
        (np.eye(3) * 2, np.eye(3), None, "between 0 and 1"),
        (np.eye(3), np.eye(3) * 2, None, "sum to 1"),
        (np.eye(3), np.eye(3), [1, 1], "sample_weight"),
        (np.eye(3), np.eye(3), [0, 0, 0], "at least one row"),
    ],
)
def test_bad_input_is_refused_with_its_cause(P, Y, weight, message):
    with pytest.raises(ValueError, match=message):
        fit_calibration(P, Y, weight)


@pytest.mark.parametrize("T", [0.0, -1.0, np.nan, np.inf])
def test_a_temperature_is_positive_and_finite(T):
    with pytest.raises(ValueError, match="positive and finite"):
        apply_temperature(np.eye(2), T)
