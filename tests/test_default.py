"""The defaults as they are: `SoftClassifier()` and `SoftRegressor()` on real tables, and scikit-learn's checks."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_classification, make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from softlearning import SoftClassifier, SoftRegressor


def checked(model, X, y):
    """What every fitted default must be: on the simplex, without failures, consistent in what it says of itself."""
    assert model.failures_.empty
    assert model.weights_.sum() == pytest.approx(1)
    assert (model.weights_ >= 0).all()
    board = model.leaderboard_.set_index("specialist")
    skipped = board["status"].str.startswith("skipped")
    assert (board.loc[~skipped, "status"] == "ok").all()
    comparison = model.record_.comparison
    assert comparison.rival_risk == board.loc[comparison.rival, "cv_risk"]
    assert model.certificate_["optimum_gap"] <= 1e-9 * model.certificate_["optimum"]
    assert model.certificate_["objective"] >= model.certificate_["optimum"] * (1 - 1e-9)
    return model


def test_wine():
    X, y = load_wine(return_X_y=True)
    train, test = train_test_split(np.arange(len(y)), random_state=0, stratify=y)
    model = checked(SoftClassifier().fit(X[train], y[train]), X, y)
    assert model.score(X[test], y[test]) > 0.93


def test_cancer_as_a_frame_of_words_and_numbers():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X.iloc[:260, :8].copy(), np.where(y.iloc[:260] == 1, "benign", "malignant")
    X["size"] = pd.cut(X["mean radius"], 4, labels=["small", "medium", "large", "huge"]).astype(str)
    X.iloc[::7, 2] = np.nan
    model = checked(SoftClassifier().fit(X[:200], y[:200]), X, y)
    assert model.score(X[200:], y[200:]) > 0.85


def test_diabetes():
    X, y = load_diabetes(return_X_y=True)
    model = checked(SoftRegressor().fit(X[:200], y[:200]), X, y)
    assert model.score(X[200:], y[200:]) > 0.35


def test_from_a_thousand_rows_on_every_stacker_takes_part():
    X, y = make_classification(1_100, 8, n_informative=5, n_classes=3, random_state=0)
    model = checked(SoftClassifier(n_jobs=2).fit(X, y), X, y)
    for name in ("log_pool", "logistic_stack", "tree_stack"):
        assert model.leaderboard_.set_index("specialist").loc[name, "status"] == "ok"


def test_from_a_thousand_rows_on_every_stacker_of_numbers_takes_part():
    X, y = make_friedman1(1_100, random_state=0)
    model = checked(SoftRegressor(n_jobs=2).fit(X, y), X, y)
    for name in ("signed_stack", "tree_stack"):
        assert model.leaderboard_.set_index("specialist").loc[name, "status"] == "ok"
    assert model.score(*make_friedman1(500, random_state=1)) > 0.9


def test_noise_never_looks_learnt(rng):
    X, y = rng.normal(size=(120, 5)), rng.normal(size=120)
    model = SoftRegressor().fit(X, y)
    assert not model.record_.comparison.better
    assert model.cv_risk_ > 0.97 * y.var()


@pytest.mark.slow
@parametrize_with_checks(
    [SoftClassifier(), SoftRegressor()],
    expected_failed_checks=lambda estimator: dict.fromkeys(
        ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"],
        "folds are drawn over rows, so a row of weight 2 is not the same as the row twice",
    ),
)
def test_the_contract_of_an_estimator_holds_for_the_default_library(estimator, check):
    check(estimator)
