"""Lemma (S4, equation 3), Krogh and Vedelsby: E[(f - Y)^2] = sum alpha_k E[(f_k - Y)^2] - sum alpha_k E[(f_k - f)^2].

Verdict: holds, exactly to rounding, for every data set, both tasks and all weights that sum to one.
Weights that do not sum to one break it.
"""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.datasets import load_diabetes, load_digits

from softlearning.estimators import SoftClassifier, SoftRegressor
from tests.claims.theory import ambiguity_decomposition

VERDICT = "holds"
CONDITION = "weights that sum to one"


def check(model, X, y):
    model.fit(X, y)
    found = ambiguity_decomposition(model.oof_, model.record_.training.target, model.weights_.to_numpy())
    assert_allclose(found.blend_error, found.average_error - found.ambiguity, rtol=1e-12)
    assert found.ambiguity >= 0
    assert_allclose(found.blend_error, model.certificate_["objective"], rtol=1e-9)


def test_the_identity_holds_for_a_fitted_classifier():
    X, y = load_digits(return_X_y=True)
    library = ["logistic", "naive_bayes", "knn_15"]
    check(SoftClassifier(library=library, rule="simplex", loss="squared"), X[::4] / 16, y[::4])


def test_the_identity_holds_for_a_fitted_regressor():
    check(SoftRegressor(library=["ridge", "knn_15", "decision_tree"], rule="simplex"), *load_diabetes(return_X_y=True))


def test_it_needs_weights_that_sum_to_one():
    rng = np.random.default_rng(0)
    P, y = rng.normal(size=(50, 3, 1)), rng.normal(size=(50, 1))
    found = ambiguity_decomposition(P, y, np.ones(3))
    assert abs(found.blend_error - (found.average_error - found.ambiguity)) > 0.1
