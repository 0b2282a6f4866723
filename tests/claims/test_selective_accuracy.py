"""Corollary (S7), selective classification: abstaining where V > tau raises the accuracy, for a suitable tau.

Verdict: holds under a condition: V has to be larger on errors somewhere along its range. With a shared
blind spot (the counter-example to Theorem 7) every threshold that rejects anything lowers the accuracy.
"""

import numpy as np
from sklearn.datasets import load_digits

from softlearning.estimators import SoftClassifier
from softlearning.uncertainty.disagreement import blend, disagreement
from softlearning.uncertainty.selective import risk_coverage_curve
from tests.claims.test_uncertainty import shared_blind_spot

VERDICT = "holds under a condition"
CONDITION = "the accuracy among rows of smaller V is higher; not so where specialists are wrong together"


def shuffled_digits():
    """In their given order the digits of one writer stand together, and the last writers are not among the first."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def test_with_a_shared_blind_spot_every_rejection_lowers_the_accuracy():
    P, alpha, _ = shared_blind_spot()
    wrong = blend(P, alpha).argmax(axis=1) != 0
    curve = risk_coverage_curve(disagreement(P, alpha), wrong)
    assert np.all(curve.risk[:-1] > curve.risk[-1])


def test_on_digits_accuracy_rises_as_uncertain_rows_are_skipped():
    X, y = shuffled_digits()
    library = ["logistic", "naive_bayes", "knn_15", "decision_tree"]
    model = SoftClassifier(library=library, rule="simplex", loss="squared").fit(X[:600], y[:600])
    wrong = model.predict(X[600:]) != y[600:]
    curve = risk_coverage_curve(model.disagreement(X[600:]), wrong)
    at = lambda share: curve.risk[np.searchsorted(curve.coverage, share)]
    assert at(0.5) < at(0.8) < curve.risk[-1]


def test_the_accepted_share_of_new_rows_is_about_what_was_asked_for():
    X, y = shuffled_digits()
    model = SoftClassifier(library=["logistic", "naive_bayes", "knn_15"]).fit(X[:600], y[:600])
    labels, accepted = model.predict_selective(X[600:], coverage=0.8)
    assert 0.74 < accepted.mean() < 0.88
    assert np.mean(labels[accepted] == y[600:][accepted]) > np.mean(labels == y[600:])
