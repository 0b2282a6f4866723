"""The numbers of the table, against scikit-learn and by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss, r2_score, roc_auc_score, root_mean_squared_error

from softlearning_bench.scoring import METRICS, scores


@pytest.fixture
def three_classes(rng):
    return rng.dirichlet(np.ones(3), size=60), rng.integers(0, 3, size=60)


def test_scores_of_classes_agree_with_scikit_learn(three_classes):
    P, y = three_classes
    found = scores(P, y, "classification")
    assert_allclose(found["score"], (P.argmax(axis=1) == y).mean())
    assert_allclose(found["log_loss"], log_loss(y, P))
    assert_allclose(found["brier"], ((P - np.eye(3)[y]) ** 2).sum(axis=1).mean())
    assert_allclose(found["auc"], roc_auc_score(y, P, multi_class="ovr"))


def test_scores_of_numbers_agree_with_scikit_learn(rng):
    y, prediction = rng.normal(size=40), rng.normal(size=(40, 1))
    found = scores(prediction, y, "regression")
    assert_allclose([found["score"], found["rmse"]], [r2_score(y, prediction), root_mean_squared_error(y, prediction)])


def test_every_metric_is_there_and_those_of_the_other_task_are_missing(three_classes):
    found = scores(*three_classes, "classification")
    assert tuple(found) == METRICS
    assert np.isnan(found["rmse"])


def test_a_certain_mistake_costs_much_but_not_everything():
    assert 30 < scores(np.array([[1.0, 0.0]]), np.array([1]), "classification")["log_loss"] < 40


def test_a_class_without_rows_leaves_the_area_undefined():
    P = np.full((4, 3), 1 / 3)
    assert np.isnan(scores(P, np.array([0, 0, 1, 1]), "classification")["auc"])
