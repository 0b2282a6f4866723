"""Scores of recorded predictions: closed forms equal to scorers, the jackknife, intervals within their range."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import f1_score, get_scorer, make_scorer

from softlearning.evaluation.scoring import (
    BLOCKS,
    DEPENDENCE,
    MEANS,
    RANKED,
    MeanMetric,
    Records,
    ScorerMetric,
    few_blocks,
    jackknife_error,
    measure,
    score_interval,
    scorers,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def records(rng, classes=3, n=90, weighted=False):
    fold = np.arange(n) % 5
    weight = rng.random(n) + 0.5 if weighted else np.ones(n)
    if classes == 0:
        y = rng.normal(size=n) + 100
        predictions, labels = {"blend": (y + rng.normal(size=n))[:, None]}, None
    else:
        labels = np.arange(classes)
        y = labels[rng.integers(0, classes, n)]
        predictions = {"blend": rng.dirichlet(np.ones(classes), size=n)}
    return Records(y, fold, np.arange(n), weight, weighted, labels, predictions)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MEANS)
def test_closed_forms_give_what_the_scorer_gives_whole_and_with_each_row_left_out(rng, name, weighted):
    regression = name in ("r2",) or "error" in name
    for classes in (0,) if regression else (2, 3):
        rows = records(rng, classes, weighted=weighted)
        scorer = scorers([name], classes > 0)[name] if name == RANKED else get_scorer(name)
        fast, slow = MeanMetric(MEANS[name]), ScorerMetric(scorer, ranks=False)
        score, left_out = fast(rows, "blend")
        expected, expected_left_out = slow(rows, "blend")
        assert_allclose(score, expected, rtol=1e-9)
        assert_allclose(left_out, expected_left_out, rtol=1e-9)
        assert_allclose(fast.by_fold(rows, "blend"), slow.by_fold(rows, "blend"), rtol=1e-9)


def test_ranks_are_averaged_over_folds_since_scores_of_different_models_do_not_mix(rng):
    rows = records(rng, 2)
    shifted = rows.predictions["blend"] * 0.1 + 0.15 * rows.fold[:, None]  # each fold on another level
    shifted[:, 0] = 1 - shifted[:, 1]
    moved = Records(**{**vars(rows), "predictions": {"blend": shifted}})
    auc = ScorerMetric(get_scorer("roc_auc"), ranks=True)
    assert_allclose(auc(moved, "blend")[0], auc(rows, "blend")[0])
    assert_allclose(auc(rows, "blend")[0], np.mean(auc.by_fold(rows, "blend")))


def test_the_jackknife_of_a_mean_is_the_usual_standard_error_but_for_the_shared_training_rows(rng):
    rows = records(rng, 3)
    _, left_out = MeanMetric(MEANS["accuracy"])(rows, "blend")
    right = rows.predictions["blend"].argmax(axis=1) == np.searchsorted(rows.classes, rows.y)
    assert_allclose(jackknife_error(left_out), DEPENDENCE * right.std(ddof=1) / np.sqrt(len(right)))


def test_many_rows_are_thrown_together_within_their_folds(rng):
    rows = records(rng, 3, n=1003)
    block = few_blocks(rows, BLOCKS)
    assert len(np.unique(block)) == BLOCKS
    assert np.bincount(block).max() <= 12
    mixed = pd.Series(rows.fold).groupby(block).nunique().gt(1)
    assert mixed.sum() <= 4  # only where one fold ends and the next begins


def test_intervals_stay_within_the_range_of_their_metric():
    assert score_interval("accuracy", 1.0, 0.0, 50, 0.95)[0] < 0.95
    assert score_interval("accuracy", 1.0, 0.0, 50, 0.95)[1] <= 1.0 + 1e-12
    assert score_interval("neg_log_loss", -0.1, 0.08, 50, 0.95)[1] < 0
    assert score_interval("r2", 0.9, 0.08, 50, 0.95)[1] < 1
    low, high = score_interval("other", 0.5, 0.1, 10**6, 0.95)
    assert_allclose([low, high], [0.304, 0.696], atol=2e-2)


BINARY = (
    "f1", "precision", "recall", "jaccard", "average_precision", "roc_auc", "balanced_accuracy", "matthews_corrcoef",
    "neg_brier_score", "neg_log_loss", "accuracy", "f1_macro",
)  # fmt: skip


@pytest.mark.parametrize("labels", [("no", "yes"), (1, 2), (False, True), (-1, 1)])
@pytest.mark.parametrize("name", BINARY)
def test_named_metrics_take_the_second_class_as_positive_whatever_the_labels(rng, name, labels):
    plain = records(rng, 2)
    named = Records(**{**vars(plain), "y": np.array(labels)[plain.y], "classes": np.array(labels)})
    scores = [measure(name, scorers(name, True)[name], rows).score["blend"] for rows in (plain, named)]
    assert_allclose(scores[1], scores[0])
    label = plain.predictions["blend"].argmax(axis=1)
    if name == "f1":
        assert_allclose(scores[0], f1_score(plain.y, label))


def test_a_scorer_that_is_given_sees_the_labels_as_they_are(rng):
    plain = records(rng, 2)
    named = Records(**{**vars(plain), "y": np.array(["no", "yes"])[plain.y], "classes": np.array(["no", "yes"])})
    given = {"mine": make_scorer(f1_score, pos_label="no"), "share": lambda y, p: np.mean(p == "yes")}
    found = {name: measure(name, s, named).score["blend"] for name, s in scorers(given, True).items()}
    label = plain.predictions["blend"].argmax(axis=1)
    assert_allclose(found["mine"], f1_score(plain.y, label, pos_label=0))
    assert_allclose(found["share"], label.mean())


@pytest.mark.parametrize("name", ["f1_weighted", "roc_auc_ovr", "balanced_accuracy", "top_k_accuracy"])
def test_several_classes_with_names_are_scored_by_any_name(rng, name):
    plain = records(rng, 3, n=150)
    named = Records(**{**vars(plain), "y": np.array(["a", "b", "c"])[plain.y], "classes": np.array(["a", "b", "c"])})
    assert np.isfinite(measure(name, scorers(name, True)[name], named).score["blend"])
