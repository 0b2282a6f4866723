"""The curves say what they should on data whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest
from sklearn import metrics

from softlearning.method.record import HeldOut
from softlearning.report import curves, words


def held_out(blend, target, V=None, *, weight=None, groups=None, folds=5):
    n = len(blend)
    return HeldOut(blend, np.ones(n) if V is None else V, target, weight, groups, np.arange(n) % folds)


@pytest.mark.parametrize(("right", "n"), [(0, 10), (7, 10), (10, 10), (970, 1000)])
def test_the_interval_of_a_share_is_wilsons(right, n):
    known = binomtest(right, n).proportion_ci(method="wilson")
    found = curves.share((np.arange(n) < right).astype(float), None, None)
    assert_allclose((found["low"], found["high"]), (known.low, known.high), atol=0.02)


def test_rows_of_a_group_and_rows_without_weight_count_as_they_should():
    hits = np.repeat([0.0, 1.0, 1.0, 1.0, 0.0, 1.0], 10)
    width = lambda found: found["high"] - found["low"]
    grouped, alone = curves.share(hits, None, np.arange(60) // 10), curves.share(hits[::10], None, None)
    assert grouped["value"] == pytest.approx(alone["value"])
    assert width(alone) < width(grouped) < 1.3 * width(alone)  # how groups scatter is known from few of them
    assert (curves.share(hits, None, np.zeros(60))["low"], curves.share(hits, None, np.zeros(60))["high"]) == (0, 1)
    assert width(curves.share(hits, None, None)) < width(curves.share(hits[::10], None, None))
    some = curves.share(hits, (np.arange(60) < 30).astype(float), None)
    assert some["value"] == pytest.approx(curves.share(hits[:30], None, None)["value"])


def test_the_interval_of_r2_agrees_with_a_bootstrap(rng):
    y = rng.normal(size=400)
    residual = 0.6 * rng.normal(size=400)
    found = curves.r2(held_out((y - residual)[:, None], y[:, None]))
    draws = [rng.integers(0, 400, 400) for _ in range(2000)]
    known = [1 - np.mean(residual[d] ** 2) / np.var(y[d]) for d in draws]
    assert_allclose((found["low"], found["high"]), np.quantile(known, [0.025, 0.975]), atol=0.02)


def true_probabilities(rng, n, C):
    """Probabilities, and labels drawn from them: calibrated by construction."""
    p = rng.dirichlet(np.ones(C), n)
    label = np.array([rng.choice(C, p=row) for row in p])
    return p, np.eye(C)[label]


@pytest.mark.parametrize("C", [2, 4])
def test_true_probabilities_are_found_calibrated_and_overconfident_ones_not(rng, C):
    p, Y = true_probabilities(rng, 4000, C)
    true = curves.calibration(held_out(p, Y))
    overconfident = curves.calibration(held_out(p**4 / (p**4).sum(axis=1, keepdims=True), Y))
    assert true["error"] < 0.03 < 0.1 < overconfident["error"]
    assert sum(b["share"] for b in true["bins"]) == pytest.approx(1)
    assert sum(true["counts"]) == 4000
    assert all(b["low"] <= b["value"] <= b["high"] for b in true["bins"])


def test_a_row_of_weight_two_calibrates_as_two_rows(rng):
    p, Y = true_probabilities(rng, 200, 2)
    twice = np.where(np.arange(200) < 50, 2.0, 1.0)
    repeated = np.repeat(np.arange(200), twice.astype(int))
    weighted = curves.calibration(held_out(p, Y, weight=twice))
    plain = curves.calibration(held_out(p[repeated], Y[repeated]))
    assert weighted["error"] == pytest.approx(plain["error"])


def test_confusion_counts_every_row_once(rng):
    p, Y = true_probabilities(rng, 300, 3)
    table = curves.confusion(held_out(p, Y), p.argmax(axis=1), ["a", "b", "c"])
    assert np.sum(table["counts"]) == table["rows"] == 300
    assert table["wrong"] == np.sum(p.argmax(1) != Y.argmax(1))
    assert np.sum(table["counts"], axis=1).tolist() == Y.sum(axis=0).tolist()


def test_of_many_classes_the_most_confused_are_shown(rng):
    label = np.repeat(np.arange(30), 10)
    answer = np.where((label == 28) | (label == 29), 57 - label, label)
    table = curves.confusion(held_out(np.eye(30)[answer], np.eye(30)[label]), answer, [f"c{k}" for k in range(30)])
    assert len(table["classes"]) == curves.MOST_CLASSES
    assert {"c28", "c29"} <= set(table["classes"])


def test_uncertainty_that_knows_the_errors_is_perfect_and_a_constant_one_is_none(rng):
    wrong = (rng.random(200) < 0.2).astype(float)
    blend, target = np.tile([0.3, 0.7], (200, 1)), np.eye(2)[1 - wrong.astype(int)]
    found = curves.uncertainty(held_out(blend, target, wrong + 0.01 * rng.random(200)), blend.argmax(axis=1))
    known = found["measures"]["disagreement"]
    assert list(found["measures"]) == ["disagreement"]  # the top probability never varies
    assert known["auc"] == 1.0
    assert_allclose(known["risk"], found["best"], atol=1e-12)
    assert found["bins"][0]["error"] == 0 < found["bins"][-1]["error"] == 1
    assert known["risk"][-1] == pytest.approx(wrong.mean())
    assert curves.uncertainty(held_out(blend, target), blend.argmax(axis=1)) is None


@pytest.mark.parametrize("groups", [None, np.arange(12) % 2, np.arange(12) % 3])
def test_scores_of_few_rows_have_intervals_within_their_range(groups):
    rng = np.random.default_rng(1)
    y = rng.normal(size=(12, 1))
    held = replace(held_out(y + rng.standard_t(2, size=(12, 1)) / 4, y), groups=groups)
    explained, off = curves.r2(held), curves.rmse(held)
    assert explained["low"] < explained["value"] < explained["high"] < 1
    assert 0 < off["low"] < off["value"] < off["high"]
    assert off["value"] == pytest.approx(np.sqrt(np.mean((held.target - held.blend) ** 2)))


def test_one_class_alone_cannot_be_ranked():
    blend = np.tile([0.3, 0.7], (6, 1))
    assert curves.ranking(held_out(blend, np.eye(2)[np.zeros(6, dtype=int)]), None) is None
    assert curves.ranking(held_out(blend, np.eye(2)[[0, 1, 0, 1, 1, 1]]), None)["prevalence"] == pytest.approx(4 / 6)


def test_disagreement_by_chance_warns_of_nothing():
    said = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        blend, target = np.tile([0.3, 0.7], (100, 1)), np.eye(2)[(rng.random(100) < 0.6).astype(int)]
        found = curves.uncertainty(held_out(blend, target, rng.random(100)), np.ones(100, dtype=int))
        said.append("so disagreement warns" in words.disagreement({"uncertainty": found, "classes": ["a", "b"]}))
    assert np.mean(said) <= 0.05


def test_both_measures_of_uncertainty_are_shown_for_classes(rng):
    p, Y = true_probabilities(rng, 500, 3)
    found = curves.uncertainty(held_out(p, Y, rng.random(500)), p.argmax(axis=1))["measures"]
    assert list(found) == ["disagreement", "top_probability"]
    assert found["top_probability"]["auc"] > 0.6 > found["disagreement"]["auc"]
    assert found["top_probability"]["area"] < found["disagreement"]["area"]


def test_nominal_coverage_of_intervals_is_reached_on_rows_of_other_folds(rng):
    y = rng.normal(size=1500)
    for line in curves.coverage(held_out(np.zeros((1500, 1)), y[:, None])):
        assert abs(line["value"] - line["nominal"]) < 0.03
    assert line["size"] == pytest.approx(2 * 1.96, rel=0.1)


def test_nominal_coverage_of_sets_is_reached_on_rows_of_other_folds(rng):
    p, Y = true_probabilities(rng, 1500, 4)
    lines = curves.coverage(held_out(p, Y))
    assert all(line["value"] > line["nominal"] - 0.03 for line in lines)
    assert lines[-1]["size"] > lines[0]["size"] >= 1


def test_too_few_rows_give_infinite_intervals_and_no_width():
    lines = curves.coverage(held_out(np.zeros((6, 1)), np.arange(6.0)[:, None], folds=2))
    assert lines[-1]["size"] is None
    assert lines[-1]["value"] == pytest.approx(1)


@pytest.mark.parametrize("weighted", [False, True])
def test_ranking_and_classes_agree_with_scikit_learn(rng, weighted):
    n = 400
    true = rng.random(n) < 0.3
    p = np.clip(np.round(0.3 * true + rng.random(n) * 0.7, 2), 0, 1)
    w = rng.random(n) if weighted else None
    blend, target = np.column_stack([1 - p, p]), np.column_stack([~true, true]).astype(float)
    held = HeldOut(blend, np.zeros(n), target, w, None, np.zeros(n, dtype=int))
    found = curves.ranking(held, 0.42)
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(true, p, sample_weight=w))
    assert found["average_precision"] == pytest.approx(metrics.average_precision_score(true, p, sample_weight=w))
    named = p >= 0.42
    assert found["chosen"]["recall"] == pytest.approx(metrics.recall_score(true, named, sample_weight=w))
    assert found["chosen"]["precision"] == pytest.approx(metrics.precision_score(true, named, sample_weight=w))
    first = curves.per_class(held, held.blend.argmax(axis=1), ["no", "yes"])[0]
    assert first["class"] == "yes"  # the rarer
    said = blend.argmax(axis=1) == 1
    assert first["f1"] == pytest.approx(metrics.f1_score(true, said, sample_weight=w))
