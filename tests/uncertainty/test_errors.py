"""Intervals of shares, and the one standard error that all comparisons use."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest

from softlearning.uncertainty.errors import difference_and_error, drawn_again, mean_and_error, reach, wilson_interval


@pytest.mark.parametrize(("hits", "n"), [(3, 20), (50, 100), (199, 200)])
def test_the_interval_of_a_share_is_wilson_s(hits, n):
    share = hits / n
    expected = binomtest(hits, n).proportion_ci(0.95, method="wilson")
    found = wilson_interval(share, np.sqrt(share * (1 - share) / n), n)
    assert_allclose(found, [expected.low, expected.high], atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_without_spread_still_has_an_interval_within_its_range(share):
    low, high = wilson_interval(share, 0.0, 30)
    assert 0 <= low <= share <= high <= 1
    assert 0.05 < high - low < 0.2


def test_clustered_rows_widen_the_interval():
    values = np.repeat(np.random.default_rng(0).random(20) < 0.7, 15).astype(float)
    mean, error = mean_and_error(values, groups=np.repeat(np.arange(20), 15))
    _, rows = mean_and_error(values)
    width = lambda e: np.diff(wilson_interval(mean, e, 20))[0]
    assert width(error) > 2 * width(rows)


def test_the_error_of_a_plain_mean_is_the_textbook_one():
    values = np.random.default_rng(0).normal(size=40)
    mean, error = mean_and_error(values)
    assert_allclose([mean, error], [values.mean(), values.std(ddof=1) / np.sqrt(40)])


def test_rows_of_a_group_count_as_one():
    values = np.random.default_rng(1).normal(size=30)
    _, single = mean_and_error(values)
    _, repeated = mean_and_error(np.repeat(values, 20), groups=np.repeat(np.arange(30), 20))
    _, pretended = mean_and_error(np.repeat(values, 20))
    assert_allclose(repeated, single)
    assert pretended < 0.3 * single


def test_only_ratios_of_weights_matter():
    values, weight = np.random.default_rng(2).normal(size=(2, 25)) ** 2
    assert_allclose(mean_and_error(values, weight), mean_and_error(values, 1000 * weight))
    assert_allclose(mean_and_error(values, weight)[0], np.average(values, weights=weight))


def test_clustered_errors_cover_the_mean_of_new_groups():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(30), 20)
    covered = []
    for _ in range(400):
        values = np.repeat(rng.normal(size=30), 20) + 0.3 * rng.normal(size=600)
        mean, error = mean_and_error(values, groups=groups)
        covered.append(abs(mean) <= 2 * error)
    assert 0.91 <= np.mean(covered) <= 0.98


@pytest.mark.parametrize("number", [2, 3, 6])
def test_intervals_cover_also_where_groups_are_few(number):
    rng, groups = np.random.default_rng(number), np.repeat(np.arange(number), 10)
    covered, by_two = [], []
    for _ in range(500):
        mean, error = mean_and_error(rng.normal(size=number)[groups], groups=groups)
        covered.append(abs(mean) <= reach(len(groups), groups) * error)
        by_two.append(abs(mean) <= 2 * error)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)
    assert np.mean(by_two) < 0.93
    assert reach(1) == np.inf
    assert reach(10_000) == pytest.approx(1.96, abs=1e-3)


def test_a_difference_of_means_has_the_error_of_two_samples():
    rng = np.random.default_rng(4)
    values, inside = rng.normal(size=200), rng.random(200) < 0.3
    gain, error, units = difference_and_error(values, inside)
    assert gain == pytest.approx(values[inside].mean() - values[~inside].mean())
    assert error == pytest.approx(
        np.sqrt(values[inside].var() / inside.sum() + values[~inside].var() / (~inside).sum()), rel=0.02
    )
    assert units == inside.sum()
    repeated = difference_and_error(np.repeat(values, 5), np.repeat(inside, 5), np.repeat(np.arange(200), 5))
    assert_allclose(repeated, (gain, error, units))
    assert np.isnan(difference_and_error(values, np.zeros(200, dtype=bool))[1])


@pytest.mark.parametrize("groups", [None, np.zeros(4)])
def test_a_single_row_or_group_shows_no_error(groups):
    mean, error = mean_and_error(np.full(1 if groups is None else 4, 3.0), groups=groups)
    assert mean == 3.0
    assert np.isnan(error)


def test_rows_and_groups_are_drawn_as_often_as_there_are_and_keep_their_weight():
    weight, groups = np.array([1.0, 2.0, 3.0, 4.0]), np.array(["a", "a", "b", "b"])
    for times in drawn_again(4, None, None, 5):
        assert times.sum() == 4
    for drawn in drawn_again(4, weight, groups, 5):
        times = drawn / weight
        assert times[0] == times[1]
        assert times[2] == times[3]
        assert times[[0, 2]].sum() == 2
