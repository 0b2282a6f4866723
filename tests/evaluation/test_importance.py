"""Column importance: only what is used matters, on rows that the models have not seen."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from softlearning.evaluation.importance import permutation_importance


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("frame", [False, True])
def test_only_the_columns_that_are_used_matter(rng, frame):
    X = rng.normal(size=(500, 3))
    y = 2 * X[:, 0] + X[:, 2]
    table = pd.DataFrame(X, columns=["a", "b", "c"]) if frame else X
    found = permutation_importance(lambda T: 2 * np.asarray(T)[:, 0] + np.asarray(T)[:, 2], table, y)
    assert found.base_loss == 0
    assert found.mean[1] == 0
    assert_allclose(found.mean[[0, 2]], [8, 2], rtol=0.2)  # twice the variance of what the column adds
    assert found.rows == 500


def test_shuffling_leaves_the_caller_s_table_as_it_was(rng):
    X = rng.normal(size=(50, 2))
    before = X.copy()
    permutation_importance(lambda T: T[:, 0], X, X[:, 0], loss=lambda y, f: np.abs(y - f).mean(), repeats=1)
    assert_allclose(X, before, rtol=0)


def test_a_frame_keeps_its_types_when_a_column_is_shuffled(rng):
    table = pd.DataFrame({"number": rng.normal(size=30), "colour": pd.Categorical(list("abc") * 10)})
    seen = []
    permutation_importance(lambda T: (seen.append(T.dtypes), np.zeros(len(T)))[1], table, np.zeros(30), repeats=1)
    assert all((dtypes == table.dtypes).all() for dtypes in seen)
