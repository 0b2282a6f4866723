"""What holds for every table, row and order: properties drawn at random, and models that go through many hands.

Each property has a few examples every day and 500 under `slow`.
"""

import io
import tempfile
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from softlearning import SoftClassifier, SoftRegressor, load
from softlearning.data.files import read_table, write_table
from softlearning.weights import solve_weights
from tests.stress_log import record

FEW, MANY = 2, 500
QUIET = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
LIBRARY = {"classification": ["logistic", "naive_bayes", "decision_tree"], "regression": ["ridge", "knn_5"]}


def people(n, number):
    """A table with numbers, missing values, categories, flags and dates, and what is to be predicted."""
    rng = np.random.default_rng(number)
    X = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(20, 80, n).round(3)),
            "town": rng.choice(["Riga", "Bonn", "Lima", "Oslo"], n),
            "member": rng.random(n) > 0.5,
            "since": pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D"),
        }
    )
    return X, np.nan_to_num(X["age"].to_numpy(), nan=50) + 20 * (X["town"] == "Riga") + rng.normal(size=n)


@cache
def model(task):
    X, y = people(90, 0)
    if task == "regression":
        return SoftRegressor(LIBRARY[task], cv=3).fit(X, y)
    return SoftClassifier(LIBRARY[task], cv=3).fit(X, np.where(y > 55, "yes", "no"))


def answer(task, X):
    return model(task).predict_proba(X) if task == "classification" else model(task).predict(X)


PROPERTIES = []


def prop(function):
    """A property of (task, rows, rng): it raises where it does not hold."""
    PROPERTIES.append(function)
    return function


def same(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@prop
def rows_in_another_order(task, X, rng):
    order = rng.permutation(len(X))
    same(answer(task, X.iloc[order]), answer(task, X)[order])


@prop
def one_row_at_a_time(task, X, rng):
    k = int(rng.integers(len(X)))
    same(answer(task, X.iloc[[k]])[0], answer(task, X)[k])


@prop
def rows_that_repeat(task, X, rng):
    twice = answer(task, pd.concat([X, X]))
    same(twice[: len(X)], twice[len(X) :])


@prop
def columns_in_another_order(task, X, rng):
    same(answer(task, X[list(rng.permutation(X.columns))]), answer(task, X))


@prop
def another_index(task, X, rng):
    same(answer(task, X.set_axis(rng.permutation(len(X)) + 1000)), answer(task, X))


@prop
def numbers_spelt_as_words(task, X, rng):
    same(answer(task, X.assign(age=[None if np.isnan(v) else repr(v) for v in X["age"]])), answer(task, X))


@prop
def dates_spelt_as_words(task, X, rng):
    same(answer(task, X.assign(since=X["since"].dt.strftime("%Y-%m-%d"))), answer(task, X))


@prop
def categories_stored_as_categories(task, X, rng):
    same(answer(task, X.assign(town=X["town"].astype("category"))), answer(task, X))


@prop
def a_frame_of_polars(task, X, rng):
    polars = pytest.importorskip("polars")
    same(answer(task, polars.from_pandas(X)), answer(task, X))


@prop
def a_table_through_a_file(task, X, rng):
    file = io.StringIO()
    X.to_csv(file, index=False)
    same(answer(task, pd.read_csv(io.StringIO(file.getvalue()))), answer(task, X))


@prop
def probabilities_are_shares(task, X, rng):
    P = model("classification").predict_proba(X)
    assert ((P >= 0) & (P <= 1)).all()
    same(P.sum(axis=1), np.ones(len(X)))


@prop
def the_blend_is_the_weighted_sum_of_its_specialists(task, X, rng):
    m = model(task)
    weights = m.weights_[list(m.specialists_)].to_numpy()
    blend = np.einsum("k,nkc->nc", weights, m.specialist_predictions(X))
    same(np.squeeze(blend, 1) if task == "regression" else blend, answer(task, X))


@prop
def disagreement_is_not_negative(task, X, rng):
    assert (model(task).disagreement(X) >= 0).all()


@prop
def more_coverage_is_more_room(task, X, rng):
    low, high = sorted(rng.uniform(0.5, 0.95, 2))
    if task == "regression":
        narrow, wide = (model(task).predict_interval(X, coverage=c) for c in (low, high))
        assert (wide[0] <= narrow[0]).all()
        assert (narrow[0] <= narrow[1]).all()
        assert (narrow[1] <= wide[1]).all()
    else:
        narrow, wide = (model(task).predict_set(X, coverage=c) for c in (low, high))
        assert (narrow <= wide).all()


@prop
def fewer_answers_are_among_more(task, X, rng):
    low, high = sorted(rng.uniform(0.3, 0.95, 2))
    few, many = (model("classification").predict_selective(X, coverage=c)[1] for c in (low, high))
    assert (few <= many).all()


def tensor(rng, K=4):
    n = int(rng.integers(20, 60))
    y = rng.normal(size=(n, 1))
    return y[:, None, :] + rng.normal(size=(n, K, 1)) * rng.uniform(0.2, 2, K)[None, :, None], y


@prop
def specialists_in_another_order(task, X, rng):
    P, y = tensor(rng)
    order = rng.permutation(P.shape[1])
    np.testing.assert_allclose(solve_weights(P[:, order], y).weights, solve_weights(P, y).weights[order], atol=1e-7)


@prop
def a_specialist_twice(task, X, rng):
    P, y = tensor(rng)
    twice = np.concatenate([P, P[:, :1]], axis=1)
    np.testing.assert_allclose(solve_weights(twice, y).objective, solve_weights(P, y).objective, rtol=1e-9)


@prop
def another_unit(task, X, rng):
    P, y = tensor(rng)
    a, b = 10.0 ** rng.uniform(-6, 6), rng.normal() * 10
    np.testing.assert_allclose(solve_weights(a * P + b, a * y + b).weights, solve_weights(P, y).weights, atol=1e-5)


@prop
def rows_with_weights(task, X, rng):
    P, y = tensor(rng)
    counts = rng.integers(1, 4, len(y))
    weighted = solve_weights(P, y, sample_weight=counts * 10.0 ** rng.uniform(-6, 6))
    repeated = solve_weights(np.repeat(P, counts, axis=0), np.repeat(y, counts, axis=0))
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-5)


@prop
def the_weights_are_a_point_of_the_simplex(task, X, rng):
    weights = solve_weights(
        *tensor(rng), rule=str(rng.choice(["simplex", "greedy", "nnls", "uniform", "best"]))
    ).weights
    assert (weights >= 0).all()
    same(weights.sum(), 1.0)


def test_there_are_twenty_properties():
    assert len(PROPERTIES) >= 20


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_properties_hold(holds, examples):
    met = []

    @seed(0)
    @settings(max_examples=examples, **QUIET)
    @given(number=st.integers(1, 2**31), n=st.integers(1, 25), task=st.sampled_from(list(LIBRARY)))
    def check(number, n, task):
        holds(task, people(n, number)[0], np.random.default_rng(number))
        met.append(number)

    check()
    assert len(met) >= examples
    if examples == MANY:
        record(f"property: {holds.__name__.replace('_', ' ')}", examples=len(met), held=len(met))


def test_a_table_through_a_file_of_every_kind(tmp_path):
    X, _ = people(12, 5)
    for name in ("t.csv", "t.csv.gz", "t.parquet", "t.feather", "t.jsonl"):
        write_table(X, tmp_path / name)
        same(answer("regression", read_table(tmp_path / name)), answer("regression", X))


# ---------------------------------------------------------------------------------------------- through many hands


class Hands(RuleBasedStateMachine):
    """A model that is combined anew, made smaller, saved and loaded, in any order, stays what its record says."""

    @initialize(task=st.sampled_from(list(LIBRARY)))
    def fitted(self, task):
        self.model, (self.X, self.y) = model(task), people(90, 0)
        self.y = np.where(self.y > 55, "yes", "no") if task == "classification" else self.y

    @rule(name=st.sampled_from(["simplex", "guarded", "uniform", "best", "nnls"]))
    def another_rule(self, name):
        self.model = self.model.recombine(rule=name, X=self.X, y=self.y)

    @precondition(lambda self: len(self.model.weights_) > 1)
    @rule(k=st.integers(0, 9))
    def one_fewer(self, k):
        names = self.model.weights_.index
        self.model = self.model.drop([names[k % len(names)]], X=self.X, y=self.y)

    @precondition(lambda self: "dummy" not in self.model.weights_.index)
    @rule()
    def one_more(self):
        self.model = self.model.expand(["dummy"], self.X, self.y)

    @rule()
    def through_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            self.model.save(f"{folder}/model")
            again = load(f"{folder}/model")
        np.testing.assert_array_equal(again.predict(self.X), self.model.predict(self.X))
        assert again.weights_.equals(self.model.weights_)
        self.model = again

    @invariant()
    def its_weights_are_a_point_of_the_simplex_and_its_answers_are_finite(self):
        assert (self.model.weights_ >= 0).all()
        same(self.model.weights_.sum(), 1.0)
        assert np.isfinite(self.model.disagreement(self.X[:7])).all()
        assert len(self.model.predict(self.X[:7])) == 7


@pytest.mark.parametrize("examples", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_a_model_goes_through_many_hands(examples):
    run_state_machine_as_test(Hands, settings=settings(max_examples=examples, stateful_step_count=6, **QUIET))
    if examples > 1:
        record("models through many hands", sequences=examples, steps=6, sound=examples)
