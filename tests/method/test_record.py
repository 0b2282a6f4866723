"""What a model says of itself: numbers that agree with each other, and errors that count groups."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_friedman1

from softlearning import SoftClassifier, SoftRegressor, Specialist, load
from softlearning.library.recipes import ridge
from softlearning.method.record import Comparison, score_of, unevenness
from softlearning.weights import row_losses


@pytest.fixture(scope="module")
def model():
    X, y = make_friedman1(150, random_state=0)
    return SoftRegressor(["ridge", "knn_5", "spline_ridge"]).fit(X, y)


def test_the_held_out_blend_is_solved_once(model):
    assert model.record_.held_out is model.record_.held_out


def test_the_stated_risk_is_that_of_the_held_out_blend_and_what_even_folds_hide(model):
    held, record = model.record_.held_out, model.record_
    risk = row_losses(held.blend[:, None, :], held.target, np.ones(1)).mean()
    assert_allclose(model.cv_risk_, risk + record.hidden)
    assert_allclose(record.hidden, 2 * risk / 150 * risk / held.target.var(), rtol=0.1)


@pytest.mark.parametrize("classes", [1, 4])
def test_the_claim_for_a_constant_is_what_new_rows_say(classes):
    """Folds that share the target evenly flatter a constant by two variances, or C - 1 nats, per n rows."""
    n, gaps = 40, []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=n) if classes == 1 else rng.integers(classes, size=n)
        kind = SoftRegressor if classes == 1 else partial(SoftClassifier, calibrate=False)
        claimed = kind(["dummy"], random_state=seed).fit(np.zeros((n, 1)), y)
        shares = np.bincount(y, minlength=classes) / n if classes > 1 else None
        true = 1 + y.mean() ** 2 if classes == 1 else -np.log(np.clip(shares, 1e-15, 1)).mean()
        gaps.append(claimed.cv_risk_ - true)
    noise = np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) < 3 * noise + 0.01
    assert np.mean(gaps) - claimed.record_.hidden < -3 * noise


def test_unevenness_tells_chance_from_strata(rng):
    target = np.eye(3)[np.repeat([0, 1, 2], 40)]
    share = np.full(120, 1 / 120)
    assert unevenness(target, np.arange(120) % 5, share) < 1e-12
    by_chance = [unevenness(target, rng.permutation(120) % 5, share) for _ in range(200)]
    assert np.mean(by_chance) == pytest.approx(1, abs=0.15)


def test_the_rival_is_the_best_line_of_the_leaderboard(model):
    best = model.leaderboard_.sort_values("cv_risk").iloc[0]
    comparison = model.record_.comparison
    assert (comparison.rival, comparison.rival_risk) == (best["specialist"], best["cv_risk"])
    assert best["note"].startswith("best alone; the blend is ")
    assert comparison.rival in model.verdict_


def test_better_and_worse_mean_more_than_two_standard_errors():
    assert Comparison("a", 1.0, 1.5, 0.5, 0.2).better
    assert not Comparison("a", 1.0, 1.3, 0.3, 0.2).better
    assert Comparison("a", 1.5, 1.0, -0.5, 0.2).worse
    assert "level with its best single specialist, a" in str(Comparison("a", 1.0, 1.0, 0.0, 0.2))


def test_few_groups_need_a_larger_gain(model):
    assert not Comparison("a", 1.0, 1.5, 0.5, 0.2, reach=4.3).better
    training = replace(model.record_.training, groups=np.arange(150) % 3)
    found = replace(model.record_, training=training).compared(np.full((150, 1), 100.0))
    assert found.reach == pytest.approx(4.303, abs=1e-3)  # Student's with two degrees of freedom
    assert model.record_.comparison.reach == 2.0


def test_a_difference_that_only_one_group_shows_is_undecided(model):
    training = replace(model.record_.training, groups=np.zeros(150))
    found = replace(model.record_, training=training).compared(np.full((150, 1), 100.0))
    assert (found.better, found.worse, found.word) == (False, False, "undecided")
    assert "a single group of rows cannot tell them apart" in str(found)


def test_groups_count_as_one_in_the_standard_error(rng):
    """Every row twenty times: without groups the error would be too small by the root of twenty."""
    groups = np.repeat(np.arange(30), 20)
    X, y = make_friedman1(30, random_state=1)
    X, y = X[groups] + 1e-3 * rng.normal(size=(600, X.shape[1])), y[groups]
    kept = SoftRegressor(["ridge", "knn_5"]).fit(X, y, groups=groups)
    record = kept.record_
    alone = record.losses(record.column(record.comparison.rival)) - record.losses(record.held_out.blend)
    independent = alone.std() / np.sqrt(len(alone))
    assert record.comparison.error > 2.5 * independent


def test_a_constant_target_has_no_r2():
    assert np.isnan(score_of(np.ones((3, 1)), np.ones((3, 1)), None))
    assert score_of(np.eye(2), np.eye(2), None) == 1


def test_the_leaderboard_prints_in_80_columns_and_stays_a_frame(rng, tmp_path):
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    long = "a_specialist_with_a_rather_long_name"
    model = SoftRegressor(["ridge", "knn_5", Specialist(long, "linear", ridge, min_rows=10**6)]).fit(X, y)
    model.save(tmp_path / "m")
    for board in (model.leaderboard_, load(tmp_path / "m").leaderboard_):
        lines = repr(board).splitlines()
        assert max(map(len, lines)) <= 80
        assert lines[0].split() == ["specialist", "family", "weight", "cv_risk", "cv_score", "seconds"]
        assert any(line.startswith(f"{long} skipped") for line in lines)
        assert list(board)[-2:] == ["status", "note"]
        assert type(board[["specialist", "weight"]]) is pd.DataFrame
    aimed = SoftRegressor(["ridge", "knn_5"], metric="mae").fit(X, y).leaderboard_
    assert max(map(len, repr(aimed).splitlines())) <= 80
