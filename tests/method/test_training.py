"""Training rows: weights whose scale says nothing, rows that do not count."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from softlearning.data.schema import infer_schema
from softlearning.method.training import Training, with_mean_one


def training(weight=None):
    X, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    return Training(X, y, np.eye(2)[y], weight, None, np.array(["a", "b"]), infer_schema(X), False, "classification", 0)


def test_weights_have_mean_one_over_the_rows_that_count():
    assert_allclose(with_mean_one(np.array([0.0, 2.0, 4.0])), [0, 2 / 3, 4 / 3])
    assert_allclose(with_mean_one(np.full(3, 1e-9)), 1)


def test_equal_weights_of_any_scale_are_ones():
    for n in range(1, 200):
        assert_array_equal(with_mean_one(np.full(n, 1 / n)), 1)


def test_a_row_of_weight_zero_is_not_live():
    assert_array_equal(training(np.array([1.0, 0.0, 1.0, 2.0])).live, [0, 2, 3])
    assert_array_equal(training().live, np.arange(4))


def test_without_its_table_the_target_is_still_there():
    bare = training().without_table()
    assert bare.X is None
    assert (bare.rows, bare.classes) == (4, 2)
