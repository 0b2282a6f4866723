"""Abstention keeps its guarantees: coverage, and an error rate with a stated confidence."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from softlearning.uncertainty.selective import risk_coverage_curve, threshold_for_coverage, threshold_for_risk


def rows(rng, n, slope=0.5):
    """Uncertainty u uniform on [0, 1], error probability slope * u: the risk at threshold t is slope * t / 2."""
    uncertainty = rng.random(n)
    return uncertainty, rng.random(n) < slope * uncertainty


def test_a_new_row_is_accepted_at_least_as_often_as_wanted():
    rng = np.random.default_rng(0)
    accepted = [rng.random() <= threshold_for_coverage(rng.random(49), 0.8) for _ in range(4000)]
    assert np.mean(accepted) >= 0.8 - 3 * math.sqrt(0.16 / 4000)
    assert np.mean(accepted) <= 0.8 + 1 / 50 + 3 * math.sqrt(0.16 / 4000)


def test_coverage_that_few_rows_cannot_guarantee_accepts_everything():
    assert threshold_for_coverage(np.arange(5.0), 0.95) == math.inf
    assert threshold_for_coverage(np.arange(9.0), 0.9) == 8.0


@pytest.mark.parametrize("slope", [0.5, 1.0])
def test_the_guaranteed_risk_is_exceeded_in_at_most_delta_of_the_runs(slope):
    rng = np.random.default_rng(1)
    runs, delta, risk = 1000, 0.1, 0.05
    found = [threshold_for_risk(*rows(rng, 300, slope), risk=risk, delta=delta) for _ in range(runs)]
    true_risk = [slope * min(max(f.threshold, 0), 1) / 2 for f in found]
    exceeded = np.mean(np.array(true_risk) > risk)
    assert exceeded <= delta + 2 * math.sqrt(delta * (1 - delta) / runs)


def test_the_guarantee_also_holds_for_a_measure_that_says_nothing():
    rng = np.random.default_rng(2)
    found = [threshold_for_risk(rng.random(200), rng.random(200) < 0.2, risk=0.19, delta=0.1) for _ in range(1000)]
    assert np.mean([f.threshold > 0 for f in found]) <= 0.1 + 2 * math.sqrt(0.09 / 1000)


def test_the_guarantee_holds_for_rows_that_come_in_groups():
    rng, groups = np.random.default_rng(6), np.repeat(np.arange(200), 15)
    found, plain = [], []
    for _ in range(100):
        uncertainty, wrong = (values[groups] for values in rows(rng, 200))  # rows of a group are all alike
        found.append(threshold_for_risk(uncertainty, wrong, risk=0.15, groups=groups).threshold)
        plain.append(threshold_for_risk(uncertainty, wrong, risk=0.15).threshold)
    exceeded = lambda thresholds: np.mean(np.minimum(thresholds, 1) > 0.6)  # the risk is 0.15 there
    assert exceeded(found) <= 0.1 < exceeded(plain)
    assert np.mean(np.array(found) > 0) > 0.5


def test_with_many_rows_the_threshold_approaches_the_best_one():
    uncertainty, wrong = rows(np.random.default_rng(3), 20_000)
    found = threshold_for_risk(uncertainty, wrong, risk=0.1, delta=0.05)
    assert 0.3 < found.threshold < 0.42  # the risk is 0.1 at 0.4
    assert wrong[uncertainty <= found.threshold].mean() < 0.1


def test_no_guarantee_means_no_answers():
    found = threshold_for_risk(np.arange(10.0), np.ones(10, dtype=bool), risk=0.05)
    assert found.threshold == -math.inf
    assert found.smallest_risk == 1.0


def test_without_a_guarantee_the_smallest_risk_that_could_be_had_is_told():
    uncertainty, wrong = rows(np.random.default_rng(5), 200)
    refused = threshold_for_risk(uncertainty, wrong, risk=0.005)
    assert refused.threshold == -math.inf
    assert 0.005 < refused.smallest_risk < 0.25
    assert threshold_for_risk(uncertainty, wrong, risk=refused.smallest_risk).threshold > uncertainty.min()
    assert threshold_for_risk(uncertainty, wrong, risk=0.95 * refused.smallest_risk).threshold == -math.inf
    assert threshold_for_risk(uncertainty, wrong, risk=0.3).smallest_risk == 0.3


@pytest.mark.parametrize("coverage", [0, -0.1, 1.5, 3, math.nan])
def test_a_coverage_that_is_no_share_is_refused(coverage):
    with pytest.raises(ValueError, match="coverage is a share"):
        threshold_for_coverage(np.arange(9.0), coverage)


@pytest.mark.parametrize(("risk", "delta", "name"), [(0, 0.1, "risk"), (5, 0.1, "risk"), (0.1, 1, "delta")])
def test_a_risk_that_is_no_probability_is_refused(risk, delta, name):
    with pytest.raises(ValueError, match=f"{name} is a probability"):
        threshold_for_risk(np.arange(9.0), np.zeros(9, dtype=bool), risk=risk, delta=delta)


def test_an_error_rate_that_everything_keeps_accepts_every_row():
    assert threshold_for_risk(np.arange(100.0), np.zeros(100, dtype=bool), risk=0.2).threshold == math.inf


def test_the_curve_ends_at_the_plain_risk_and_a_perfect_measure_reaches_the_best_area():
    rng = np.random.default_rng(4)
    loss = (rng.random(500) < 0.3).astype(float)
    curve = risk_coverage_curve(loss + 0.1 * rng.random(500), loss)
    assert curve.coverage[-1] == 1.0
    assert_allclose(curve.risk[-1], loss.mean())
    assert_allclose(curve.area, np.mean(np.cumsum(np.sort(loss)) / np.arange(1, 501)))


def test_a_constant_measure_has_the_risk_as_its_area_whatever_the_order_of_rows():
    loss = np.array([1.0, 0, 0, 0])
    for order in (loss, loss[::-1]):
        curve = risk_coverage_curve(np.zeros(4), order)
        assert_allclose(curve.area, 0.25)
        assert_allclose([curve.coverage, curve.risk], [[1.0], [0.25]])
