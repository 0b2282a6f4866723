"""What each generator promises about the data it makes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from softlearning_bench import generators as g


def correlation(X, y):
    return np.abs(np.corrcoef(X.T, y)[-1, :-1])


def test_settled_numbers_have_four_decimals_and_no_negative_zero():
    X, y = g.settle(np.array([[1.23456789, -0.00001]]), np.array([True]))
    assert_array_equal(X, [[1.2346, 0.0]])
    assert not np.signbit(X).any()
    assert y.dtype == np.float64


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: g.clusters(60, 8, 3, informative=4, seed=seed),
        lambda seed: g.blobs(60, 4, 3, spread=1.0, seed=seed),
        lambda seed: g.moons(60, 4, noise=0.1, seed=seed),
        lambda seed: g.circles(60, 4, noise=0.1, factor=0.5, seed=seed),
        lambda seed: g.hastie(60, seed=seed),
        lambda seed: g.xor(60, 4, spread=0.1, noise=0.1, seed=seed),
        lambda seed: g.steps(60, 4, 3, dent=0.1, seed=seed),
        lambda seed: g.logit(60, 4, informative=2, slope=4.0, majority=0.7, seed=seed),
        lambda seed: g.linear(60, 4, informative=2, noise=0.1, seed=seed),
        lambda seed: g.even(60, 4, active=2, interaction=0.5, noise=0.1, seed=seed),
        lambda seed: g.friedman(60, 5, number=1, noise=1.0, seed=seed),
    ],
)
def test_a_seed_gives_the_same_table_and_another_seed_another(make):
    assert_array_equal(make(1)[0], make(1)[0])
    assert_array_equal(make(1)[1], make(1)[1])
    assert not np.array_equal(make(1)[0], make(2)[0])


def test_the_majority_of_clusters_is_as_asked():
    _, y = g.clusters(2_000, 8, 2, informative=4, majority=0.9, flip=0.0)
    assert abs((y == 0).mean() - 0.9) < 0.01


@pytest.mark.parametrize("make", [g.moons, lambda n, d, noise: g.circles(n, d, noise=noise, factor=0.5)])
def test_columns_beyond_the_manifold_say_nothing_of_the_class(make):
    X, y = make(3_000, 10, noise=0.1)
    assert correlation(X[:, 2:], y).max() < 0.08


def test_hastie_asks_whether_the_squared_length_exceeds_its_median():
    X, y = g.hastie(500)
    assert_array_equal(y, (X**2).sum(axis=1) > 9.34)


def test_xor_hides_its_class_from_every_single_column():
    X, y = g.xor(4_000, 20, spread=0.3, noise=0.5)
    assert correlation(X, y).max() < 0.06
    assert abs(y.mean() - 0.5) < 0.03


def test_steps_are_read_off_one_column_but_for_the_dents():
    X, y = g.steps(900, 5, 3, dent=0.0)
    part = np.searchsorted(np.quantile(X[:, 0], [1 / 3, 2 / 3]), X[:, 0])
    assert_array_equal(y, part)
    _, dented = g.steps(900, 5, 3, dent=0.1)
    assert abs((dented != part).mean() - 0.1) < 0.005


def test_logit_has_the_asked_majority_and_its_score_tells_the_class():
    X, y = g.logit(5_000, 6, informative=2, slope=8.0, majority=0.8)
    assert (~y).mean() == pytest.approx(0.8)
    assert correlation(X, y)[:2].max() > 0.3
    assert correlation(X, y)[2:].max() < 0.05


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_least_squares_leaves_the_asked_share_of_a_linear_target(noise):
    X, y = g.linear(5_000, 6, informative=3, decay=0.5, noise=noise)
    A = np.column_stack([X, np.ones(len(X))])
    residual = y - A @ np.linalg.lstsq(A, y)[0]
    assert_allclose(residual.var() / y.var(), noise, atol=0.02)


def test_columns_of_a_linear_table_share_a_factor_when_asked():
    X, _ = g.linear(5_000, 6, informative=3, noise=0.1, correlation=0.5)
    assert_allclose(np.corrcoef(X.T)[0, 1], 0.5, atol=0.05)


def test_an_even_target_has_no_linear_trend_but_a_signal():
    X, y = g.even(5_000, 6, active=2, interaction=0.0, noise=0.2)
    assert correlation(X, y).max() < 0.05
    assert np.corrcoef(np.cos(X[:, 0]) + np.cos(X[:, 1]), y)[0, 1] ** 2 == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("number", "columns"), [(1, 10), (2, 4), (3, 4)])
def test_friedmans_functions_have_their_columns(number, columns):
    X, y = g.friedman(50, columns, number=number, noise=0.0)
    assert X.shape == (50, columns)
    if number == 3:
        assert_allclose(y, np.arctan((X[:, 1] * X[:, 2] - 1 / (X[:, 1] * X[:, 3])) / X[:, 0]))
