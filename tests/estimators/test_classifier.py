"""Labels in, labels, probabilities, sets and abstention out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from softlearning import SoftClassifier


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [7, 3], [-1.0, 1.0]])
def test_labels_of_any_kind_come_back(cancer, labels):
    X, y = cancer
    names = np.array(labels)[y]
    assert set(SoftClassifier(["naive_bayes"]).fit(X, names).predict(X)) == set(labels)


def test_a_class_of_one_row_and_26_classes(rng):
    y = np.append(np.repeat(np.arange(25), 6), 25)
    X = rng.normal(size=(151, 3)) + y[:, None]
    model = SoftClassifier(["logistic", "naive_bayes", "mlp_small"]).fit(X, y)
    assert model.predict_proba(X).shape == (151, 26)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_a_classifier_without_probabilities_is_calibrated(cancer):
    model = SoftClassifier([LinearSVC(), ("hard", Hard())]).fit(*cancer)
    assert_allclose(model.predict_proba(cancer[0]).sum(axis=1), 1)
    assert (model.leaderboard_["status"] == "ok").all()


class Hard(ClassifierMixin, BaseEstimator):
    """Predicts labels alone."""

    def fit(self, X, y):
        self.inner_ = LogisticRegression(max_iter=5000).fit(X / 1000, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X / 1000)


def test_selective_prediction_answers_about_the_share_asked_for(classifier, cancer):
    labels, accepted = classifier.predict_selective(cancer[0], coverage=0.8)
    assert 0.7 < accepted.mean() < 0.95
    wrong = labels != cancer[1]
    assert wrong[accepted].mean() <= wrong.mean()


def test_a_nominal_risk_is_kept_on_the_training_rows(classifier, cancer):
    labels, accepted = classifier.predict_selective(cancer[0], risk=0.05)
    assert (labels != cancer[1])[accepted].mean() < 0.05
    assert accepted.any()


def test_sets_cover_what_they_say():
    X, y = make_classification(1_500, 10, n_informative=5, n_classes=3, random_state=0)
    model = SoftClassifier(["logistic", "naive_bayes", "knn_15"], rule="simplex").fit(X[:500], y[:500])
    sets = model.predict_set(X[500:], coverage=0.9)
    assert sets.any(axis=1).all()
    assert 0.86 < sets[np.arange(1_000), y[500:]].mean() < 0.96
