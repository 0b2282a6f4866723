"""Theorem 3 (S4), strictly positive diversity: structurally different specialists disagree with positive
probability, so A > 0.

Verdict: holds under a condition: that two specialists *with weight* differ somewhere. Different families do not
ensure it: learners of different families can learn the same function, and the optimal weights can lie in a corner.
"""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from softlearning.estimators import SoftClassifier
from softlearning.uncertainty.disagreement import disagreement
from softlearning.weights import solve_weights

VERDICT = "holds under a condition"
CONDITION = "at least two specialists with positive weight predict differently on rows of positive probability"


def test_specialists_of_different_families_disagree_on_real_rows():
    X, y = load_iris(return_X_y=True)
    model = SoftClassifier(library=["logistic", "decision_tree", "knn_15", "naive_bayes"], rule="uniform").fit(X, y)
    assert (model.disagreement(X) > 0).all()


def test_a_tree_neighbours_and_a_constant_can_be_the_same_function():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    learners = [
        DecisionTreeClassifier(min_samples_leaf=40),
        KNeighborsClassifier(60),
        DummyClassifier(strategy="prior"),
    ]
    P = np.stack([learner.fit(X, y).predict_proba(rng.normal(size=(500, 2))) for learner in learners], axis=1)
    assert disagreement(P, np.full(3, 1 / 3)).max() == pytest.approx(0, abs=1e-30)


def test_at_a_corner_of_the_simplex_there_is_no_ambiguity_however_different_the_others_are():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(300, 1))
    error = rng.normal(size=(300, 1))
    P = np.stack([y + 0.1 * error, y + error, y + 3 * error + 1], axis=1)
    alpha = solve_weights(P, y).weights
    assert alpha[0] == 1
    assert not disagreement(P, alpha).any()
