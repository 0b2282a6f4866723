"""Arrays are read only when header and bytes agree."""

import io

import numpy as np
import pytest
import scipy.sparse as sp

from softlearning.storage.arrays import checked_sparse, read_npy, read_npz, store_npz
from softlearning.storage.container import ModelFileError
from tests.storage.crafted import ARRAYS, npy


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(["é", "bc"]),
        np.array(3.5),
        np.zeros((0, 4)),
        np.array(["2024-05-06"], dtype="datetime64[D]"),
    ],
)
def test_what_numpy_writes_is_read(array):
    back = read_npy(npy(array))
    np.testing.assert_array_equal(back, array)
    assert (back.dtype, back.flags.f_contiguous) == (array.dtype, array.flags.f_contiguous)


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_that_lies_is_refused(name):
    with pytest.raises((ModelFileError, TypeError)):
        read_npy(ARRAYS[name])


def saved(matrix):
    buffer = io.BytesIO()
    sp.save_npz(buffer, matrix)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix])
def test_a_sparse_matrix_is_stored_and_read(kind):
    matrix = kind(np.eye(4) * [1.0, 0, 2, 3])
    back = read_npz(store_npz(saved(matrix)))
    assert type(back) is kind
    np.testing.assert_array_equal(back.toarray(), matrix.toarray())


def test_a_packed_or_odd_sparse_matrix_is_refused():
    with pytest.raises(ModelFileError, match=r"packed in a way|begin as one"):
        read_npz(saved(sp.csr_matrix(np.eye(3))))
    with pytest.raises(ModelFileError, match=r"neither csr nor csc|other parts"):
        read_npz(store_npz(saved(sp.coo_matrix(np.eye(3)))))


@pytest.mark.parametrize(
    ("indices", "indptr", "shape"),
    [
        ([0, 9], [0, 1, 2], (2, 3)),
        ([0, -1], [0, 1, 2], (2, 3)),
        ([0, 1], [0, 2, 1], (2, 3)),
        ([0, 1], [0, 1, 9], (2, 3)),
        ([0, 1], [0, 1, 2], (5, 3)),
        ([0], [0, 1, 2], (2, 3)),
    ],
)
def test_a_sparse_matrix_that_points_outside_is_refused(indices, indptr, shape):
    with pytest.raises(ModelFileError):
        checked_sparse(sp.csr_matrix, np.ones(2), np.array(indices), np.array(indptr), shape)
