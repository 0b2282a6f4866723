"""Views for tasks: fitted on training rows alone, made once, the same wherever they are made."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from softlearning.data.schema import infer_schema
from softlearning.data.validation import validate
from softlearning.execution import Here
from softlearning.method import preparation
from softlearning.method.preparation import Preparation, ViewKey, side_by_side
from softlearning.method.training import Training


@pytest.fixture
def training(rng):
    frame = pd.DataFrame({"a": rng.normal(size=40), "b": rng.choice(["x", "y"], 40)})
    schema = infer_schema(frame)
    y = rng.normal(size=40)
    return Training(validate(schema, frame), y, y[:, None], None, None, None, schema, True, "regression", 0)


@pytest.mark.parametrize("shared", [False, True])
def test_a_view_is_fitted_on_the_training_rows_alone(training, shared):
    train, test = np.arange(30), np.arange(30, 40)
    with Here(files=shared) as engine:
        seen = Preparation(training, engine).get(ViewKey("scaled", 1, 0), train, test)
        assert seen.training.shape[0] == 30
        np.testing.assert_allclose(seen.training.mean(axis=0), 0, atol=1e-9)
        assert_array_equal(seen.held_out, seen.view.transform(training.X.iloc[test]))


@pytest.mark.parametrize("shared", [False, True])
def test_a_view_is_made_once(training, shared, monkeypatch):
    made = []
    fit_view = preparation.fit_view
    monkeypatch.setattr(preparation, "fit_view", lambda *a, **k: made.append(1) or fit_view(*a, **k))
    with Here(files=shared) as engine:
        table = Preparation(training, engine)
        for _ in range(3):
            table.get(ViewKey("ordinal", 1, 0), np.arange(30), np.arange(30, 40))
        table.get(ViewKey("ordinal", 1, 1), np.arange(10, 40), np.arange(10))
    assert len(made) == 2


def test_it_travels_without_the_matrices_it_has_made(training):
    with Here(files=True) as engine:
        table = Preparation(training, engine)
        before = len(pickle.dumps(table))
        first = table.get(ViewKey("scaled", 1, 0), np.arange(30), None).training
        copy = pickle.loads(pickle.dumps(table))
        assert len(pickle.dumps(table)) == before
        assert_array_equal(copy.get(ViewKey("scaled", 1, 0), np.arange(30), None).training, first)


def test_the_raw_view_is_the_table_itself(training):
    with Here(files=False) as engine:
        seen = Preparation(training, engine).get(ViewKey("raw", 1, 0), np.arange(5), np.arange(5, 7))
    assert seen.view is None
    pd.testing.assert_frame_equal(seen.held_out, training.X.iloc[5:7])


def test_equal_tables_have_one_digest(training, rng):
    with Here(files=False) as memory, Here(files=True) as files:
        assert Preparation(training, memory).digest == Preparation(training, files).digest


def test_matrices_stand_side_by_side():
    assert_array_equal(side_by_side(np.ones((2, 1)), np.zeros((2, 2))), [[1, 0, 0], [1, 0, 0]])
