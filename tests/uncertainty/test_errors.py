"""Intervals of shares, and the one standard error that all comparisons use."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest

from softlearning.uncertainty.errors import mean_and_error, wilson_interval
from softlearning.weights import mean_and_error as of_weights


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


def test_there_is_one_standard_error():
    assert mean_and_error is of_weights
