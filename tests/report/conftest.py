"""Two small fitted models, and their summaries, shared by the tests of the report."""

import copy

import numpy as np
import pandas as pd
import pytest

from softlearning import SoftClassifier, SoftRegressor
from softlearning.report import summarise_model


def people(rng, n=160):
    """A table with numbers, words and missing values; the outcome hangs on age and, less, on town."""
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "town": rng.choice(["Riga", "Bonn", "Lima"], n),
            "noise": rng.normal(size=n),
        }
    )
    signal = (table["age"] - 50) / 15 + 0.7 * (table["town"] == "Riga") + rng.normal(scale=0.5, size=n)
    table.loc[::17, "noise"] = None
    return table, signal


def labelled(rng):
    X, signal = people(rng)
    return X, pd.Series(np.array(["low", "middle", "high"])[np.digitize(signal, [-0.8, 0.8])], name="outcome")


def numbered(rng):
    X, signal = people(rng)
    return X, pd.Series(100 + 10 * signal + 12 * np.sin(X["age"] / 6), name="outcome")


@pytest.fixture(scope="session")
def classified():
    """(model, X, y) of three classes; X and y are rows that it has not seen."""
    names = ["logistic", "knn_15", "naive_bayes", "decision_tree"]
    model = SoftClassifier(names, rule="simplex", column_types={}).fit(*labelled(np.random.default_rng(3)))
    return model, *labelled(np.random.default_rng(11))


@pytest.fixture(scope="session")
def regressed():
    """(model, X, y) of a number; X and y are rows that it has not seen."""
    names = ["ridge", "knn_15", "decision_tree"]
    model = SoftRegressor(names, rule="simplex", column_types={}).fit(*numbered(np.random.default_rng(2)))
    return model, *numbered(np.random.default_rng(12))


@pytest.fixture(scope="session")
def class_summary(classified):
    model, X, y = classified
    return summarise_model(model, X=X, y=y, command="softlearning fit people.csv --target outcome --out m")


@pytest.fixture(scope="session")
def number_summary(regressed):
    model, X, y = regressed
    return summarise_model(model, X=X, y=y, command="softlearning fit people.csv --target outcome --out m")


@pytest.fixture(params=["classes", "numbers"])
def summary(request):
    """A copy of either summary, free to be changed."""
    name = {"classes": "class_summary", "numbers": "number_summary"}[request.param]
    return copy.deepcopy(request.getfixturevalue(name))
