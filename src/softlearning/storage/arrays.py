"""Numpy and scipy arrays as bytes, read only when the header and the number of bytes agree exactly."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.neighbors import KDTree
from sklearn.tree._tree import NODE_DTYPE

from softlearning.storage.container import ModelFileError, pack, unpack

NODE_DATA_DTYPE = np.asarray(KDTree(np.zeros((1, 1))).__getstate__()[2]).dtype
RECORDS = (NODE_DTYPE, PREDICTOR_RECORD_DTYPE, NODE_DATA_DTYPE)  # the structured arrays that scikit-learn's trees hold
KINDS = "biufcSUMm"
SPARSE = {"format": "S", "shape": "i", "data": "biuf", "indices": "i", "indptr": "i", "_is_array": "b"}


def read_npy(data: bytes) -> np.ndarray:
    """The array in `data`, without a copy; refused when its header promises anything else than is there."""
    try:
        buffer = io.BytesIO(data)
        version = np.lib.format.read_magic(buffer)
        header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran, dtype = header(buffer)
    except Exception as error:
        raise ModelFileError(f"an array in the file has no valid header ({type(error).__name__})") from error
    start, count = buffer.tell(), math.prod(shape)
    if not (dtype in RECORDS if dtype.names else dtype.kind in KINDS) or not dtype.itemsize:
        raise ModelFileError(f"an array in the file holds {str(dtype)[:50]}, which model files do not")
    if min(shape, default=0) < 0 or len(shape) > 32 or count * dtype.itemsize != len(data) - start:
        raise ModelFileError("an array in the file is not as long as its header says")
    if max(shape, default=0) > max(len(data), 1):
        raise ModelFileError("an empty array in the file claims an absurd shape")
    return np.frombuffer(data, dtype, count, start).reshape(shape, order="F" if fortran else "C")


def store_npz(data: bytes) -> bytes:
    """The npz of a sparse matrix, members uncompressed, so that reading it cannot unpack to more than it is."""
    buffer, members = io.BytesIO(), {}
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        for name in ("format", *sorted(set(file) - {"format"})):
            array = io.BytesIO()
            np.lib.format.write_array(array, file[name], allow_pickle=False)
            members[f"{name}.npy"] = array.getvalue()
    pack(buffer, members, compress=False)
    return buffer.getvalue()


def read_npz(data: bytes) -> sp.csr_matrix | sp.csc_matrix:
    """A csr or csc matrix whose indices all lie inside its shape: scipy's loops do not look."""
    members = unpack(data, max(len(data), 10_000), first="format.npy", stored=True)
    parts = {name.removesuffix(".npy"): read_npy(part) for name, part in members.items()}
    if not SPARSE.keys() - {"_is_array"} <= parts.keys() <= SPARSE.keys():
        raise ModelFileError("a sparse matrix in the file has other parts than scipy writes")
    if any(part.dtype.kind not in SPARSE[name] for name, part in parts.items()):
        raise ModelFileError("a sparse matrix in the file has parts of a wrong type")
    layout = bytes(parts["format"].item()) if parts["format"].ndim == 0 else b""
    if layout not in (b"csr", b"csc") or parts["shape"].shape != (2,):
        raise ModelFileError("a sparse matrix in the file is neither csr nor csc")
    kind = sp.csr_matrix if layout == b"csr" else sp.csc_matrix
    return checked_sparse(kind, parts["data"], parts["indices"], parts["indptr"], tuple(parts["shape"].tolist()))


def checked_sparse(kind: Any, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple) -> Any:
    """A compressed sparse matrix after the checks that scipy makes only on request."""
    try:
        matrix = kind((data, indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
        return matrix
    except ValueError as error:
        raise ModelFileError(f"a sparse matrix in the file is not sound ({error})") from error
