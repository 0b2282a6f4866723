"""The learning curve: nested sizes on the same held-out rows, and words that claim no more than the curve shows."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from softlearning import SoftClassifier, SoftRegressor
from softlearning.report import summarise_model, to_html, words
from softlearning.report.learning import _next_fall, learning_curve, nested, part, quick


@pytest.fixture(scope="module")
def curved():
    """A number that few rows do not tell, and its model with the curve."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 12))
    y = X @ rng.normal(size=12) + 2 * np.sin(3 * X[:, 0]) + rng.normal(size=600)
    model = SoftRegressor(["ridge", "knn_5", "decision_tree"], cv=3).fit(X, y)
    return model, X, y, summarise_model(model, learning_curve=(X, y))


def test_the_curve_falls_towards_the_loss_that_all_rows_have(curved):
    model, _, _, summary = curved
    points = summary["learning"]["points"]
    assert [p["rows"] for p in points] == [50, 100, 200, 400]
    assert points[0]["value"] > points[-1]["value"]
    assert points[-1]["value"] == pytest.approx(model.record_.comparison.risk, rel=0.05)
    assert all(p["low"] < p["value"] < p["high"] for p in points)


def test_the_page_says_what_the_curve_shows(curved):
    summary = curved[3]
    page = to_html(summary)
    assert "Is more data worth it?" in page
    assert "From half to all rows it fell by" in words.learning(summary)


@pytest.mark.parametrize(
    ("fall", "forecast", "said"),
    [
        ((0.00, -0.01, 0.01), None, "promise little"),
        ((0.01, -0.02, 0.04), None, "cannot be told"),
        ((0.10, 0.05, 0.15), None, "how much cannot be told"),
        ((0.10, 0.05, 0.15), {"value": 0.07, "low": 0.03, "high": 0.1}, "might bring 7.0 % more"),
    ],
)
def test_a_forecast_is_made_only_where_the_fall_is_clear_and_slows(curved, fall, forecast, said):
    found = curved[3]["learning"] | {"fall": dict(zip(("value", "low", "high"), fall)), "forecast": forecast}
    assert said in words.learning({**curved[3], "learning": found})


def test_losses_that_fall_as_a_power_of_the_rows_are_forecast_exactly():
    L = [1 + 8 * m**-0.7 for m in (100, 200, 400, 800)]
    assert _next_fall(np.array(L[:3])) == pytest.approx((L[2] - L[3]) / L[2])


def test_every_size_holds_the_classes_in_their_shares_and_the_smaller_lies_in_the_larger(rng):
    X, y = rng.normal(size=(400, 2)), (np.arange(400) % 20 == 0).astype(int)
    training = SoftClassifier(["logistic", "dummy"], cv=2).fit(X, y).record_.training
    train = np.arange(320)
    order = nested(train, training, 0)
    small, large = (part([(order, train)], share)[0][0] for share in (0.125, 0.5))
    assert set(small) < set(large) < set(train)
    assert y[small].sum() == 2
    assert y[large].sum() == 8


def test_whole_groups_come_one_after_the_other(rng):
    groups = rng.integers(0, 12, 200)
    X = rng.normal(size=(200, 2))
    model = SoftRegressor(["ridge"], cv=2).fit(X, X[:, 0], groups=groups)
    order = groups[nested(np.arange(200), model.record_.training, 0)]
    assert np.sum(order[1:] != order[:-1]) == 11


def test_what_would_take_too_long_is_not_fitted_again(curved, monkeypatch):
    model, X, y, _ = curved
    assert quick(model.record_)[0].name == model.record_.comparison.rival
    monkeypatch.setattr("softlearning.report.learning.PATIENCE", 0.0)
    assert "within 0 s" in learning_curve(model, X, y)["why"]


def test_a_learning_curve_is_asked_for_by_a_pair(curved):
    model, X, _, _ = curved
    for wrong in (True, X):
        with pytest.raises(ValueError, match="learning_curve is a pair"):
            summarise_model(model, learning_curve=wrong)


def test_rows_of_a_single_group_have_no_curve(curved):
    model, X, y, _ = curved
    one = copy(model)
    one.record_ = replace(model.record_, training=replace(model.record_.training, groups=np.zeros(len(y))))
    summary = summarise_model(one, learning_curve=(X, y), draws=0)
    assert "rows of a single group show no error" in to_html(summary)
    assert words.verdict(summary["comparisons"]["trivial"]) == "undecided (a single group)"


def test_few_rows_and_other_rows_have_no_curve(curved, rng):
    model, X, y, _ = curved
    assert "600 rows, not on these 10" in learning_curve(model, X[:10], y[:10])["why"]
    few = SoftRegressor(["ridge"], cv=2).fit(X[:100], y[:100])
    summary = summarise_model(few, learning_curve=(X[:100], y[:100]))
    assert "too few rows" in to_html(summary)
