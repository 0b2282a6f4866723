"""A model that learnt nothing says so; one that learnt a little does not."""

import warnings

import numpy as np
import pytest

from softlearning import SoftClassifier, SoftRegressor
from softlearning.method.usefulness import UselessModelWarning, useless


@pytest.mark.parametrize(
    ("model", "y", "said"),
    [
        (
            SoftClassifier(["naive_bayes"]),
            lambda X, rng: rng.integers(0, 2, len(X)),
            "always naming the commonest class",
        ),
        (SoftClassifier(["naive_bayes"]), lambda X, rng: np.arange(len(X)) // 3, "always naming the commonest class"),
        (SoftRegressor(["knn_5"]), lambda X, rng: rng.normal(size=len(X)), "always predicting the mean"),
        (SoftRegressor(["knn_5"]), lambda X, rng: np.full(len(X), 3.0), "the target never varies"),
        (SoftRegressor(time_limit=1e-6), lambda X, rng: X[:, 0], "only the baseline finished"),
    ],
)
@pytest.mark.filterwarnings("ignore:.* specialists failed")
def test_what_learnt_nothing_warns(model, y, said, rng):
    X = rng.normal(size=(120, 3))
    with pytest.warns(UselessModelWarning, match=said):
        model.fit(X, y(X, rng))
    assert said in useless(model.record_)


def test_what_learnt_something_is_silent(rng):
    X = rng.normal(size=(400, 2))
    rare = rng.random(400) < 1 / (1 + np.exp(2.5 - 1.5 * X[:, 0]))  # accuracy hardly tells it, the loss does
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SoftClassifier(["naive_bayes"]).fit(X, rare)
        SoftRegressor(["ridge"]).fit(X, X[:, 0] + rng.normal(size=400))


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_a_class_for_every_row_is_refused_before_the_work(rng):
    X = rng.normal(size=(40, 2))
    with pytest.raises(ValueError, match="each of the 40 rows has a class of its own"):
        SoftClassifier().fit(X, [f"row {k}" for k in range(40)])
