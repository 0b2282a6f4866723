"""Corollary (S4), diversity lower bound: A >= 1/2 sum alpha_k alpha_j E|f_k - f_j|^2 >= sum alpha_k alpha_j rho_kj.

Verdict: fails as stated. The first relation is an equality. The second holds, as an equality, for
specialists that give one-hot predictions, and fails for probabilities, which is what the method blends. A
bound from the margins holds always.
"""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from softlearning.estimators import SoftClassifier
from tests.claims.theory import diversity_bound, pairwise_distance

VERDICT = "fails as stated"
CONDITION = "true for one-hot predictions; for probabilities only with the squared leads in place of the rates"


def digits_predictions():
    X, y = load_digits(return_X_y=True)
    library = ["logistic", "naive_bayes", "knn_15", "decision_tree"]
    model = SoftClassifier(library=library, rule="uniform", calibrate=False).fit(X[:600] / 16, y[:600])
    return model.specialist_predictions(X[600:1200] / 16), model.weights_.to_numpy()


def test_the_first_relation_is_an_equality_and_the_second_fails_on_probabilities():
    P, alpha = digits_predictions()
    bound = diversity_bound(P, alpha)
    assert_allclose(alpha @ pairwise_distance(P) @ alpha / 2, bound.ambiguity)
    assert not bound.holds
    assert 0 < bound.margin_bound <= bound.ambiguity < bound.paper_bound


def test_for_the_named_classes_both_are_equalities():
    P, alpha = digits_predictions()
    bound = diversity_bound(np.eye(10)[P.argmax(axis=2)], alpha)
    assert bound.holds
    assert_allclose([bound.paper_bound, bound.margin_bound], bound.ambiguity)
