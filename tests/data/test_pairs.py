"""Pairs of columns: which are made, and what they are worth."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from softlearning.data.pairs import (
    MOST_PAIRS,
    additive_rest,
    arithmetic,
    choose_crosses,
    choose_pairs,
    explained,
    quantile_bins,
)
from softlearning.data.schema import infer_schema
from softlearning.data.validation import validate
from softlearning.data.views import fit_view
from tests.data.mixed import prepared

TARGETS = {
    "-": lambda a, b: np.abs(a - b),
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


@pytest.mark.parametrize("operation", TARGETS)
def test_the_pair_that_makes_the_target_comes_first(operation, rng):
    X = rng.uniform(0.3, 3, size=(500, 6)) * np.where(rng.random((500, 6)) < 0.5, -1, 1)
    y = TARGETS[operation](X[:, 2], X[:, 4])
    first = choose_pairs(X, range(6), y[:, None], np.ones(500))[0]
    assert first == (operation, 2, 4)


def test_noise_makes_hardly_any_pairs(rng):
    X, y = rng.normal(size=(600, 12)), rng.normal(size=(600, 1))
    assert len(choose_pairs(X, range(12), y, np.ones(600))) <= MOST_PAIRS / 2


def test_rows_of_weight_zero_choose_nothing(rng):
    X = rng.uniform(1, 2, size=(800, 4))
    y = np.where(np.arange(800) < 400, X[:, 0] * X[:, 1], X[:, 2] / X[:, 3])
    weight = (np.arange(800) < 400).astype(float)
    assert choose_pairs(X, range(4), y[:, None], weight)[0] == ("*", 0, 1)
    assert choose_pairs(X, range(4), y[:, None], 1 - weight)[0][0] == "/"


def test_arithmetic_is_finite_whatever_the_numbers():
    matrix = np.array([[0.0, 0.0], [1e300, 1e300], [1.0, 0.0], [1e-300, 1e300], [-1e300, 1e-300]])
    made = arithmetic(matrix, [(o, 0, 1) for o in "+-*/"], most=1e30)
    assert made.dtype == np.float32
    assert np.isfinite(made).all()
    assert made[2].tolist() == [1, 1, 0, 0]


def test_a_pair_is_missing_where_either_column_is():
    made = arithmetic(np.array([[1.0, np.nan], [np.nan, 0.0], [4.0, 2.0]]), [(o, 0, 1) for o in "+-*/"], most=1e30)
    assert np.isnan(made[:2]).all()
    assert made[2].tolist() == [6, 2, 8, 2]


def test_missing_values_are_a_bin_of_their_own(rng):
    values = np.where(rng.random(300) < 0.3, np.nan, rng.normal(size=300))
    missing = np.isnan(values)
    assert len(set(quantile_bins(values)[missing])) == 1
    assert not set(quantile_bins(values)[missing]) & set(quantile_bins(values)[~missing])
    assert set(quantile_bins(np.full(5, np.nan))) == {0}


def test_crosses_find_what_two_categories_tell_only_together(rng):
    levels = [rng.integers(0, 4, 1000) for _ in range(5)]
    y = ((levels[1] + levels[3]) % 2).astype(float)
    assert choose_crosses(levels, y[:, None], np.ones(1000)) == [(1, 3)]


def test_random_groups_explain_nothing_on_average(rng):
    y = rng.normal(size=(200, 1))
    shares = [explained(rng.integers(0, 16, 200), y, np.ones(200)) for _ in range(200)]
    assert abs(np.mean(shares)) < 0.01
    assert explained(quantile_bins(y[:, 0]), y, np.ones(200)) > 0.9


def test_a_sum_of_single_columns_leaves_little(rng):
    X = rng.uniform(size=(2000, 3))
    bins = [quantile_bins(x) for x in X.T]
    additive = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    rest = additive_rest(bins, additive[:, None], np.ones(2000))
    assert rest.var() < 0.03 * additive.var()
    product = (X[:, 0] - 0.5) * (X[:, 1] - 0.5)
    assert additive_rest(bins, product[:, None], np.ones(2000)).var() > 0.8 * product.var()


def test_the_view_holds_what_a_linear_model_needs(rng):
    frame = pd.DataFrame(rng.uniform(1, 3, size=(600, 4)), columns=list("abcd"))
    frame["k"] = rng.choice(["red", "green", "blue"], 600)
    y = (frame["a"] * frame["b"] + (frame["k"] == "red")).to_numpy()
    schema = infer_schema(frame)
    X = validate(schema, frame)
    scores = {}
    for name in ("ordinal", "pairs"):
        view, matrix = fit_view(name, schema, X.iloc[:400], y[:400], task="regression")
        scores[name] = LinearRegression().fit(matrix, y[:400]).score(view.transform(X.iloc[400:]), y[400:])
    assert 1 - scores["pairs"] < 0.2 * (1 - scores["ordinal"])
    assert "a * b" in view.features
    assert {"k~mean0", "k~frequency"} <= set(view.features)


def test_held_out_rows_have_no_part_in_the_choice(rng):
    frame = pd.DataFrame(rng.uniform(1, 3, size=(300, 5)), columns=list("abcde"))
    y = (frame["a"] / frame["b"]).to_numpy()
    (view, matrix), X, _ = prepared("pairs", frame, y, "regression", seed=5)
    (again, same), _, _ = prepared("pairs", frame, y, "regression", seed=5)
    assert view.pairs == again.pairs
    np.testing.assert_array_equal(matrix, same)
    np.testing.assert_array_equal(view.transform(X)[:7], view.transform(X[:7]))
