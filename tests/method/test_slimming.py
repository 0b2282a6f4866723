"""A smaller ensemble: its price is told before, and nothing is fitted."""

import numpy as np
import pytest

from softlearning import SoftClassifier


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    return X, (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=300) > 0.5).astype(int)


@pytest.fixture(scope="module")
def model(data):
    return SoftClassifier(["logistic", "decision_tree", "knn_15", "naive_bayes"], rule="simplex", cv=3).fit(*data)


def test_specialists_leave_one_by_one_and_the_risk_grows_but_for_how_far_the_rest_is_sharpened(model, data):
    path = model.slimming(data[0])
    assert path["dropped"].iloc[0] == ""
    assert len(path) == len(model.specialists_)
    assert path["added_risk"].iloc[0] == 0
    assert (np.diff(path["risk"]) >= -0.01 * path["risk"].iloc[0]).all()
    assert len(path["specialists"].iloc[-1]) == 1


def test_the_slim_model_is_the_line_that_was_shown_and_fits_nothing(model, data):
    X, _ = data
    path = model.slimming(X)
    bound = path["megabytes"].iloc[-1] + 1e-9
    small = model.slim(X, megabytes=max(bound, path["megabytes"].min()))
    shown = path[path["megabytes"] <= max(bound, path["megabytes"].min())].iloc[0]
    assert sorted(small.specialists_) == sorted(shown["specialists"])
    assert small.certificate_["objective"] == pytest.approx(shown["risk"], rel=1e-9)
    assert all(small.specialists_[name] is model.specialists_[name] for name in small.specialists_)
    np.testing.assert_allclose(small.predict_proba(X).sum(axis=1), 1)


def test_a_wish_that_nothing_fulfils_tells_the_least(model, data):
    with pytest.raises(ValueError, match=r"the least that single specialists take is .* ms per row and .* MB"):
        model.slim(data[0], row_ms=1e-9)
