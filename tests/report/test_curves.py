"""The curves say what they should on data whose truth is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest

from softlearning.report import curves


@pytest.mark.parametrize(("right", "n"), [(0, 10), (7, 10), (10, 10), (970, 1000)])
def test_the_interval_of_a_share_is_wilsons(right, n):
    known = binomtest(right, n).proportion_ci(method="wilson")
    assert_allclose(curves.wilson(right / n, n), (known.low, known.high), atol=1e-6)


def test_equal_weights_count_as_rows_and_one_heavy_row_as_one():
    assert curves.effective_rows(np.full(7, 3.0), 7) == pytest.approx(7)
    assert curves.effective_rows(np.array([1.0, 0, 0, 0]), 4) == pytest.approx(1)


def test_the_interval_of_r2_agrees_with_a_bootstrap(rng):
    y = rng.normal(size=400)
    residual = 0.6 * rng.normal(size=400)
    low, high = curves.r2_interval(residual, y, None)
    draws = [rng.integers(0, 400, 400) for _ in range(2000)]
    known = [1 - np.mean(residual[d] ** 2) / np.var(y[d]) for d in draws]
    assert_allclose((low, high), np.quantile(known, [0.025, 0.975]), atol=0.02)


def honest_probabilities(rng, n, C):
    """Probabilities, and labels drawn from them: calibrated by construction."""
    p = rng.dirichlet(np.ones(C), n)
    label = np.array([rng.choice(C, p=row) for row in p])
    return p, np.eye(C)[label]


@pytest.mark.parametrize("C", [2, 4])
def test_true_probabilities_are_found_calibrated_and_bold_ones_not(rng, C):
    p, Y = honest_probabilities(rng, 4000, C)
    honest = curves.calibration(p, Y, None)
    bold = curves.calibration(p**4 / (p**4).sum(axis=1, keepdims=True), Y, None)
    assert honest["error"] < 0.03 < 0.1 < bold["error"]
    assert sum(b["share"] for b in honest["bins"]) == pytest.approx(1)
    assert sum(honest["counts"]) == 4000
    assert all(b["low"] <= b["happened"] <= b["high"] for b in honest["bins"])


def test_a_row_of_weight_two_calibrates_as_two_rows(rng):
    p, Y = honest_probabilities(rng, 200, 2)
    twice = np.where(np.arange(200) < 50, 2.0, 1.0)
    repeated = np.repeat(np.arange(200), twice.astype(int))
    weighted, plain = curves.calibration(p, Y, twice), curves.calibration(p[repeated], Y[repeated], None)
    assert weighted["error"] == pytest.approx(plain["error"])


def test_confusion_counts_every_row_once(rng):
    p, Y = honest_probabilities(rng, 300, 3)
    table = curves.confusion(p, Y, ["a", "b", "c"])
    assert np.sum(table["counts"]) == table["rows"] == 300
    assert table["wrong"] == np.sum(p.argmax(1) != Y.argmax(1))
    assert np.sum(table["counts"], axis=1).tolist() == Y.sum(axis=0).tolist()


def test_of_many_classes_the_most_confused_are_shown(rng):
    label = np.repeat(np.arange(30), 10)
    answer = np.where((label == 28) | (label == 29), 57 - label, label)
    table = curves.confusion(np.eye(30)[answer], np.eye(30)[label], [f"c{k}" for k in range(30)])
    assert len(table["classes"]) == curves.MOST_CLASSES
    assert {"c28", "c29"} <= set(table["classes"])


def test_doubt_that_knows_the_errors_is_perfect_and_constant_doubt_is_none(rng):
    wrong = (rng.random(200) < 0.2).astype(float)
    known = curves.doubt(wrong + 0.01 * rng.random(200), wrong)
    assert known["auc"] == 1.0
    assert known["area"] == pytest.approx(known["best_area"])
    assert known["bins"][0]["error"] == 0 < known["bins"][-1]["error"] == 1
    assert known["risk"][-1] == pytest.approx(wrong.mean())
    assert curves.doubt(np.zeros(200), wrong) is None


def test_promised_coverage_of_intervals_is_kept_on_rows_of_other_folds(rng):
    y = rng.normal(size=1500)
    f, fold = np.zeros((1500, 1)), np.arange(1500) % 5
    for line in curves.coverage(f, y[:, None], np.ones(1500), fold, None):
        assert abs(line["observed"] - line["wanted"]) < 0.03
    assert line["size"] == pytest.approx(2 * 1.96, rel=0.1)


def test_promised_coverage_of_sets_is_kept_on_rows_of_other_folds(rng):
    p, Y = honest_probabilities(rng, 1500, 4)
    lines = curves.coverage(p, Y, np.ones(1500), np.arange(1500) % 5, None)
    assert all(line["observed"] > line["wanted"] - 0.03 for line in lines)
    assert lines[-1]["size"] > lines[0]["size"] >= 1


def test_too_few_rows_give_endless_intervals_and_no_width():
    lines = curves.coverage(np.zeros((6, 1)), np.arange(6.0)[:, None], np.ones(6), np.arange(6) % 2, None)
    assert lines[-1]["size"] is None
    assert lines[-1]["observed"] == 1
