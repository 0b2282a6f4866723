"""Estimators as skops archives: tidy, inspected, built; their arrays; and models as a checkpoint keeps them."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR

from softlearning.library import as_rows
from softlearning.storage.container import ModelFileError, pack
from softlearning.storage.parts import (
    NODE_BYTES,
    build,
    dump,
    dump_model,
    inspect,
    load_model,
    own_classes,
    plain_node,
    read_npy,
    read_npz,
    store_npz,
)
from tests.storage.crafted import ARRAYS, npy

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=40)


def through_a_file(value, limit=1 << 30):
    members, buffer = dump(value), io.BytesIO()
    names = inspect(members, limit).met
    pack(buffer, members)
    return build(buffer.getvalue(), names)


def test_plain_values_and_arrays_come_back():
    value = {"a": [1, 2.5, None, True, "é", float("inf")], "b": (np.float32(0.1), np.arange(3)), "c": {"d": {1, 2}}}
    back = through_a_file(value)
    np.testing.assert_array_equal(back["b"][1], value["b"][1])
    assert (back["a"], back["b"][0], back["c"]) == (value["a"], value["b"][0], value["c"])


@pytest.mark.parametrize("estimator", [Ridge(), RandomForestRegressor(3), SVR()], ids=str)
def test_an_estimator_predicts_as_before(estimator):
    fitted = estimator.fit(X, Y)
    np.testing.assert_array_equal(through_a_file(fitted).predict(X), fitted.predict(X))


def test_a_sparse_model_predicts_as_before():
    matrix = sp.csr_matrix(np.where(X > 0, X, 0))
    fitted = SVR().fit(matrix, Y)
    np.testing.assert_array_equal(through_a_file(fitted).predict(matrix), fitted.predict(matrix))


def test_equal_arrays_are_stored_once_and_counted_as_often_as_they_are_named():
    array = RNG.normal(size=10_000)
    members = dump([array, array.copy(), array])
    assert len(members) == 2
    with pytest.raises(ModelFileError, match="max_bytes"):
        inspect(members, 2 * array.nbytes + 10 * NODE_BYTES)
    assert inspect(members, 3 * array.nbytes + 10 * NODE_BYTES).met


def test_many_small_nodes_are_counted_too():
    members = dump(list(range(1000)))
    with pytest.raises(ModelFileError, match="max_bytes"):
        inspect(members, 1000 * NODE_BYTES)


def test_generators_and_optimizers_stay_out_of_the_file():
    network = MLPRegressor(hidden_layer_sizes=(4,), max_iter=300, tol=1e-1, random_state=0).fit(X, Y)
    loaded = through_a_file(network)
    assert hasattr(network, "_optimizer")
    assert not hasattr(loaded, "_optimizer")
    np.testing.assert_array_equal(loaded.predict(X), network.predict(X))
    boosting = GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, Y)
    assert b"RandomState" not in dump(boosting)["schema.json"]


def test_whatever_names_a_number_of_processes_names_one():
    bagged = BaggingRegressor(RandomForestRegressor(2, n_jobs=-1), n_estimators=2, n_jobs=3).fit(X, Y)
    loaded = through_a_file(bagged)
    assert (loaded.n_jobs, loaded.estimator.n_jobs, loaded.estimators_[0].n_jobs) == (1, 1, 1)
    assert through_a_file(RandomForestRegressor(2).fit(X, Y)).n_jobs is None


def test_a_class_of_the_user_is_met_by_name_and_only_trusted_by_it():
    members = dump(Ridge().set_params(alpha=Own()))
    name = f"{Own.__module__}.Own"
    with pytest.raises(ModelFileError, match=f"{name}.*not on the list"):
        inspect(members, 1 << 20)
    assert inspect(members, 1 << 20, trusted=[name]).strangers == {name}
    assert inspect(members, 1 << 20, trusted=None).strangers == {name}


class Own:
    """A class that no list has."""

    def __init__(self):
        self.a = 1


def test_what_skops_cannot_store_is_refused_with_its_reason():
    with pytest.raises(ModelFileError, match="cannot be stored"):
        dump({"a": (x for x in [1])})


@pytest.mark.parametrize("content", ["[1]", "{}", "[" * 5000, "x"])
def test_a_plain_value_is_plain(content):
    schema = {**plain_node(1), "content": content, "protocol": 2}
    with pytest.raises(ModelFileError, match=r"plain|badly described"):
        inspect({"schema.json": json.dumps(schema).encode()}, 1 << 20)


# --- arrays: read only when header and bytes agree


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
    file = io.BytesIO()
    np.savez(file, format=b"csr", shape=shape, data=np.ones(2), indices=np.array(indices), indptr=np.array(indptr))
    with pytest.raises(ModelFileError, match="is not sound"):
        read_npz(store_npz(file.getvalue()))


# --- models in a checkpoint: the same predictions, and no class that the task does not fit


class Mine(LogisticRegression):
    """A user's own estimator."""


def task_of(*estimators):
    return SimpleNamespace(args=(SimpleNamespace(specialist=as_rows([("own", e) for e in estimators])[0]),))


@pytest.mark.parametrize("estimator", [RandomForestClassifier(3, random_state=0), LogisticRegression(), Mine()])
def test_a_kept_model_predicts_the_same(estimator, rng):
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    model = estimator.fit(X, y)
    again = load_model(dump_model(model), task_of(estimator))
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_class_that_the_task_does_not_fit_is_not_built(rng):
    data = dump_model(Mine())
    with pytest.raises(ModelFileError, match="Mine"):
        load_model(data, task_of(LogisticRegression()))
    with pytest.raises(ModelFileError, match="Mine"):
        load_model(data, SimpleNamespace(args=(1.0,)))


def test_the_users_own_classes_of_a_task_are_found_in_pipelines_too():
    name = f"{Mine.__module__}.Mine"
    assert own_classes(task_of(Mine())) == {name}
    assert own_classes(task_of(make_pipeline(Mine()))) == {name}
    assert own_classes(task_of(LogisticRegression())) == set()
