"""Conformal layer: the quantile is the theorem's, coverage is what is stated, sets are never empty."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from softlearning.uncertainty.conformal import (
    calibrate_interval,
    calibrate_quantiles,
    calibrate_set,
    conformal_quantile,
    fit_scale,
    interval,
    leave_fold_out_blend,
    predict_set,
    quantiles,
)
from softlearning.uncertainty.disagreement import blend, disagreement


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_quantile_is_the_ceil_of_n_plus_one_times_coverage_th_score():
    scores = np.arange(1.0, 20.0)[::-1]  # 19 scores: 20 * 0.9 = 18
    assert conformal_quantile(scores, 0.9) == 18
    assert conformal_quantile(scores, 0.91) == 19
    assert conformal_quantile(scores, 0.96) == math.inf


@pytest.mark.parametrize("coverage", [90, 0, -1, float("nan")])
def test_a_coverage_that_is_no_share_is_an_error(coverage):
    with pytest.raises(ValueError, match="coverage is a share"):
        conformal_quantile(np.arange(9.0), coverage)


def test_equal_weights_change_nothing_and_a_heavy_low_score_pulls_the_quantile_down():
    scores = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9])
    assert conformal_quantile(scores, 0.7, sample_weight=np.full(9, 3.0)) == conformal_quantile(scores, 0.7)
    heavy = conformal_quantile(scores, 0.5, sample_weight=np.where(scores == 1, 6.0, 1.0))
    assert heavy < conformal_quantile(scores, 0.5)


def test_a_new_group_is_covered_although_its_rows_depend_on_each_other(rng):
    covered = []
    for _ in range(600):
        level = rng.normal(size=20)  # one shift a group, sizes far apart
        groups = np.repeat(np.arange(20), np.r_[200, np.full(19, 5)])
        scores = np.abs(level[groups] + 0.1 * rng.normal(size=len(groups)))
        q = conformal_quantile(scores, 0.8, groups=groups)
        covered.append(abs(rng.normal() + 0.1 * rng.normal()) <= q)
    assert np.mean(covered) >= 0.8 - 3 * math.sqrt(0.16 / 600)


def test_held_out_scores_give_exactly_the_stated_coverage(rng):
    n, runs = 39, 3000
    hits = 0
    for _ in range(runs):
        V, noise = rng.gamma(1.0, size=n + 1), rng.normal(size=n + 1)
        y, scale = noise * np.sqrt(0.2 + V), np.sqrt(0.2 + V)
        q = calibrate_interval(np.zeros(n), y[:n], scale[:n], 0.9)
        low, high = interval(np.zeros(1), scale[n:], q)
        hits += low[0] <= y[n] <= high[0]
    slack = 3 * math.sqrt(0.09 / runs)
    assert 0.9 - slack <= hits / runs <= 0.9 + 1 / (n + 1) + slack


def test_too_few_rows_give_the_whole_line_instead_of_a_false_guarantee():
    q = calibrate_interval(np.zeros(5), np.ones(5), np.ones(5), 0.9)
    low, high = interval(np.zeros(2), np.ones(2), q)
    assert np.all(np.isneginf(low))
    assert np.all(np.isposinf(high))


def test_scale_follows_disagreement_when_it_foretells_errors(rng):
    V = rng.gamma(1.0, size=4000)
    assert fit_scale(rng.laplace(size=4000) * np.sqrt(0.05 + V), V).floor < 0.2


def test_scale_is_constant_when_disagreement_says_nothing_or_is_absent(rng):
    V, residual = rng.gamma(1.0, size=4000), rng.laplace(size=4000)
    assert fit_scale(residual, V).floor > 0.7
    alone = fit_scale(residual, np.zeros(4000))  # a single specialist has no disagreement
    assert_array_equal(alone(np.array([0.0, 5.0])), [1, 1])


def test_the_scale_does_not_depend_on_the_unit_of_the_target(rng):
    V = rng.gamma(1.0, size=500)
    residual = rng.laplace(size=500) * np.sqrt(0.3 + V)
    inches, metres = fit_scale(residual, V), fit_scale(residual * 0.0254, V * 0.0254**2)
    assert_allclose(inches(V), metres(V * 0.0254**2))


def test_an_adaptive_scale_shortens_intervals_where_the_specialists_agree(rng):
    V = rng.gamma(0.5, size=2000)
    y = rng.normal(size=2000) * np.sqrt(0.05 + V)
    flat = calibrate_interval(np.zeros(2000), y, np.ones(2000), 0.9)
    scale = fit_scale(y, V)(V)
    fitted = calibrate_interval(np.zeros(2000), y, scale, 0.9)
    assert np.mean(fitted * scale) < 0.9 * flat


def test_leave_fold_out_weights_never_see_the_row_they_blend(rng):
    P, folds = rng.normal(size=(30, 3, 1)), np.arange(30) % 3
    seen = []

    def solve(rows):
        seen.append(rows)
        return np.eye(3)[len(seen) - 1]

    f, V = leave_fold_out_blend(P, folds, solve)
    for fold, rows in enumerate(seen):
        assert_array_equal(rows, folds != fold)
        assert_allclose(f[folds == fold], blend(P[folds == fold], np.eye(3)[fold]))
        assert_allclose(V[folds == fold], disagreement(P[folds == fold], np.eye(3)[fold]), atol=1e-15)


def test_sets_cover_are_never_empty_and_grow_with_the_wanted_coverage(rng):
    p = rng.dirichlet([0.4] * 4, size=3000)
    label = np.array([rng.choice(4, p=row) for row in p])
    narrow = predict_set(p[1500:], calibrate_set(p[:1500], label[:1500], 0.6))
    wide = predict_set(p[1500:], calibrate_set(p[:1500], label[:1500], 0.95))
    assert wide.dtype == bool
    assert wide.shape == (1500, 4)
    assert narrow.any(axis=1).all()
    assert not np.any(narrow & ~wide)
    assert wide[np.arange(1500), label[1500:]].mean() > 0.93


def test_a_rare_class_is_covered_only_when_asked_for(rng):
    label = (rng.random(6000) < 0.05).astype(int)
    rare = np.clip(0.1 + 0.15 * label + 0.1 * rng.normal(size=6000), 0.01, 0.99)
    p = np.stack([1 - rare, rare], axis=1)
    covered = {}
    for per_class in (False, True):
        q = calibrate_set(p[:3000], label[:3000], 0.9, per_class=per_class)
        inside = predict_set(p[3000:], q)
        covered[per_class] = inside[label[3000:] == 1, 1].mean()
    assert covered[False] < 0.6
    assert covered[True] > 0.82


def test_a_class_with_too_few_rows_is_in_every_set():
    q = calibrate_set(np.array([[0.9, 0.1]] * 20), np.zeros(20, dtype=int), 0.9, per_class=True)
    assert predict_set(np.array([[0.99, 0.01]]), q)[0, 1]


LEVELS = np.array([0.05, 0.5, 0.9])


def heteroscedastic(rng, n):
    """y = spread * noise with a known spread; the blend predicts 0."""
    spread = rng.uniform(0.5, 2.0, n)
    return spread * rng.standard_t(4, n), spread


def test_calibrated_quantiles_are_exceeded_as_often_as_their_levels_say():
    rng = np.random.default_rng(0)
    below = []
    for _ in range(300):
        y, spread = heteroscedastic(rng, 120)
        offsets = calibrate_quantiles(np.zeros((120, 3)), y, LEVELS, spread)
        new, new_spread = heteroscedastic(rng, 50)
        below.append((new[:, None] <= quantiles(np.zeros((50, 3)), LEVELS, offsets, new_spread)).mean(axis=0))
    assert_allclose(np.mean(below, axis=0), LEVELS, atol=0.015)


def test_wrong_quantiles_of_a_model_are_put_right():
    rng = np.random.default_rng(1)
    y = rng.normal(size=4000)
    told = np.tile([-0.5, 0.3, 0.8], (4000, 1))  # far from the quantiles of the normal distribution
    corrected = quantiles(told[:1], LEVELS, calibrate_quantiles(told, y, LEVELS))[0]
    assert_allclose(corrected, norm.ppf(LEVELS), atol=0.08)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_quantiles_never_cross_whatever_the_order_of_the_levels(order):
    predicted = np.random.default_rng(2).normal(size=(50, 3))
    levels = LEVELS[order]
    found = quantiles(predicted, levels, np.zeros(3))
    assert (np.diff(found[:, np.argsort(levels)], axis=1) >= 0).all()
    assert_allclose(np.sort(found, axis=1), np.sort(predicted, axis=1))


def test_a_level_that_few_rows_cannot_show_has_an_infinite_quantile():
    offsets = calibrate_quantiles(np.zeros((9, 2)), np.arange(9.0), np.array([0.01, 0.99]))
    assert offsets.tolist() == [-np.inf, np.inf]


def test_levels_outside_zero_and_one_are_refused():
    with pytest.raises(ValueError, match="above 0 and below 1"):
        calibrate_quantiles(np.zeros((9, 1)), np.arange(9.0), np.array([1.2]))
