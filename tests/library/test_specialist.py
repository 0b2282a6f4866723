"""A specialist is a row, a library an immutable list of them."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from softlearning import Library, Specialist
from softlearning.library import Shape, classifiers, resolve
from softlearning.library import recipes as make

CLASSIFICATION = Shape("classification", rows=300, columns=10, classes=3, rarest=100)


def test_names_rows_pairs_and_bare_estimators_mix_freely():
    own = Specialist("own", "linear", make.logistic)
    library = resolve(["catboost", own, ("forest", RandomForestClassifier()), LogisticRegression()], "classification")
    assert library.names == ("catboost", "own", "forest", "logistic_regression")


def test_bare_estimators_of_one_class_are_numbered():
    assert resolve([Ridge(1), Ridge(10)], "regression").names == ("ridge", "ridge_2")


def test_plus_minus_and_selection():
    paper = classifiers("paper")
    assert (paper - "catboost" - ["knn_5", "knn_15"]).names == tuple(
        n for n in paper.names if n not in ("catboost", "knn_5", "knn_15")
    )
    assert (paper["logistic"] + [("mine", LogisticRegression())]).names == ("logistic", "mine")
    assert paper["catboost", "logistic"].names == ("catboost", "logistic")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": "tres"}, "did you mean 'tree'"),
        ({"needs": "scaledd"}, "did you mean"),
        ({"prior": 0}, "positive number"),
    ],
)
def test_a_wrong_row_says_what_is_wrong(change, message):
    with pytest.raises(ValueError, match=message):
        Specialist(**{"name": "x", "family": "tree", "make": make.logistic, **change})


def test_a_users_estimator_is_cloned_each_time():
    own = LogisticRegression()
    (row,) = Library(()) + own
    assert row.make(CLASSIFICATION) is not own
    assert isinstance(row.make(CLASSIFICATION), LogisticRegression)
    assert np.isclose(row.make(CLASSIFICATION).C, own.C)
