"""scikit-learn's own checks, for both estimators in six configurations each."""

from functools import partial

import numpy as np
from numpy.testing import assert_allclose
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from softlearning import SoftClassifier, SoftRegressor, Specialist
from softlearning.library import recipes as rows

WEIGHTS = (
    "weights are divided by their mean and folds are drawn over rows, so a row of weight 2 is not the same as the row "
    "twice; see the tests below"
)


def own(name, make, **fields):
    """A row that runs in this process, so that hundreds of tiny fits stay quick."""
    return Specialist(name, "custom", make, trusted=True, **fields)


LINEAR = own("logistic", rows.logistic)
BAYES = own("bayes", rows.naive_bayes, sparse=False)
TREE = own("tree", rows.decision_tree, needs="ordinal")
DUMMY = own("dummy", rows.dummy)
RIDGE = own("ridge", rows.ridge)
STACKER = own("stacker", rows.logistic, needs="", level=2)
RIDGE_STACKER = own("stacker", rows.ridge, needs="scaled", level=2)

EQUIVALENCE = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")

CONFIGURATIONS = [
    SoftClassifier([LINEAR, TREE]),
    SoftClassifier([LINEAR, TREE], calibrate=False, rule="guarded", cv=3),
    SoftClassifier([LINEAR, BAYES], loss="log"),
    SoftClassifier([LINEAR, TREE, STACKER], cv=2),
    SoftClassifier([LINEAR, TREE], refit=False, cv=2),
    SoftClassifier([LINEAR, TREE, DUMMY], rule="uniform", random_state=None, cv=2),
    SoftRegressor([RIDGE, TREE]),
    SoftRegressor([RIDGE, TREE], rule="guarded", cv=3),
    SoftRegressor([RIDGE], rule="best"),
    SoftRegressor([RIDGE, TREE, RIDGE_STACKER], cv=2),
    SoftRegressor([RIDGE, TREE], refit=False, cv=2),
    SoftRegressor([RIDGE, TREE], rule="greedy", cv=2),
]


@parametrize_with_checks(
    CONFIGURATIONS,
    expected_failed_checks=lambda estimator: dict.fromkeys(EQUIVALENCE, WEIGHTS),
    xfail_strict=False,  # a few pass by chance
)
def test_the_contract_of_an_estimator_holds(estimator, check):
    check(estimator)


def doubled(X, y, weight):
    twice = np.repeat(np.arange(len(y)), weight)
    return X[twice], y[twice], twice


def test_weight_two_equals_the_row_twice_when_both_copies_share_a_fold(rng):
    """What the equivalence check means, where it can hold: copies are held out together."""
    X, weight = rng.normal(size=(90, 3)), rng.integers(1, 4, 90)
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=90)
    X2, y2, origin = doubled(X, y, weight)
    fold = np.arange(90) % 3
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    splits2 = [(np.flatnonzero(fold[origin] != f), np.flatnonzero(fold[origin] == f)) for f in range(3)]
    library = [own("least_squares", partial(rows.ridge, alpha=1e-9), needs="ordinal")]
    weighted = SoftRegressor(library, cv=splits).fit(X, y, sample_weight=weight)
    repeated = SoftRegressor(library, cv=splits2).fit(X2, y2)
    on_held_out_rows = lambda model: model.cv_risk_ - model.record_.hidden  # which depends on the number of rows
    assert_allclose(on_held_out_rows(weighted), on_held_out_rows(repeated), rtol=1e-6)
    assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-6)


def test_a_row_of_weight_zero_is_as_if_it_were_not_there(rng):
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=120) > 0).astype(int)
    gone = rng.random(120) < 0.3
    spoiled = np.where(gone, 1 - y, y)
    library = [LINEAR, BAYES, STACKER]
    weighted = SoftClassifier(library).fit(X, spoiled, sample_weight=(~gone).astype(float))
    removed = SoftClassifier(library).fit(X[~gone], y[~gone])
    assert_allclose(weighted.predict_proba(X), removed.predict_proba(X), atol=1e-9)


def test_users_own_estimators_pass_through(rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    model = SoftClassifier([LogisticRegression(), ("nb", GaussianNB()), LinearSVC(), DecisionTreeClassifier()]).fit(
        X, y
    )
    assert model.predict_proba(X).shape == (60, 2)
    model = SoftRegressor([Ridge(), KNeighborsRegressor(), ExtraTreesRegressor(10), DecisionTreeRegressor()]).fit(X, y)
    assert model.predict(X).shape == (60,)


def test_neighbours_are_a_specialist_too(rng):
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 3, 40)
    assert_allclose(SoftClassifier([KNeighborsClassifier()]).fit(X, y).predict_proba(X).sum(axis=1), 1)
