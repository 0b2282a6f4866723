"""Guards let every genuine part through, and refuse each that was changed where compiled code would follow it."""

import json

import numpy as np
import pytest

from softlearning.storage.container import ModelFileError
from softlearning.storage.guards import GUARDS, OWNERS, Part, check_attributes, check_free, fits, in_order, whole
from softlearning.storage.parts import inspect
from tests.storage.crafted import NATIVE, NEIGHBOURS, PREPARATION, PROCESSES, TREES, Opened
from tests.storage.genuine import genuine_model

ATTACKS = {**TREES, **NEIGHBOURS, **PREPARATION, **PROCESSES, **NATIVE}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("guards") / "model"
    genuine_model()[0].save(path)
    return path


def members_of(file):
    return {**file.members, "schema.json": json.dumps(file.schema).encode()}


def test_an_genuine_model_holds_every_guarded_kind_but_a_few(path):
    met = {name.rsplit(".", 1)[-1] for name in inspect(members_of(Opened(path)), 1 << 26).met}
    other = {kind for kind in GUARDS if kind.endswith(("Regressor", "SVR")) or kind.startswith(("Extra", "Nu"))}
    assert GUARDS.keys() - met == (other | {"BallTree", "ManhattanDistance64"}) - {"DecisionTreeRegressor"}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_part_that_was_changed_is_refused(path, name):
    file = Opened(path)
    ATTACKS[name](file)
    with pytest.raises(ModelFileError, match=r"not sound|one thread|has no"):
        inspect(members_of(file), 1 << 26)


def test_only_boosting_that_is_not_fitted_has_minus_one_column():
    """Within a user's own estimator there is a copy of it that is never fitted."""
    name, booster = "lightgbm.sklearn.LGBMRegressor", Part("lightgbm.basic.Booster")
    check_attributes(Part(name, {"_n_features": -1, "_Booster": None}), object)
    for state in ({"_n_features": -2}, {"_n_features": -1, "_Booster": booster}):
        with pytest.raises(ModelFileError, match="_n_features is -"):
            check_attributes(Part(name, state), object)
    with pytest.raises(ModelFileError, match="n_classes_ is -1"):
        check_attributes(Part("sklearn.tree.DecisionTreeClassifier", {"n_classes_": -1}), object)


def test_an_attribute_never_hides_one_of_the_class():
    class Own:
        def predict(self):
            """A method."""

    check_attributes(Part("Own", {"a": 1}), Own)
    for name in ("predict", "__class__", "a b", ""):
        with pytest.raises(ModelFileError, match="belongs to the class"):
            check_attributes(Part("Own", {name: 1}), Own)


@pytest.mark.parametrize("kind", OWNERS)
def test_what_trusts_its_owner_stands_in_its_place_alone(kind):
    part = Part(f"module.{kind}")
    with pytest.raises(ModelFileError, match="stands by itself"):
        check_free({"a": [part]})
    with pytest.raises(ModelFileError, match="is a bare"):
        check_attributes(Part("module.Pipeline", {"steps": [("x", part)]}), object)
    for owner in OWNERS[kind][0]:
        check_attributes(Part(f"module.{owner}", {OWNERS[kind][1]: part}), object)


def test_arrays_fit_by_type_and_shape():
    array = np.zeros((2, 3))
    assert fits(array, "f", (2, None))
    assert fits(array, "", (None, 3), np.float64)
    for kinds, shape, dtype in (("i", (2, 3), None), ("f", (2,), None), ("f", (3, 3), None), ("", (2, 3), np.float32)):
        assert not fits(array, kinds, shape, dtype)
    assert not fits([0.0], "f", (1,))


def test_whole_numbers_are_those_of_python_and_numpy():
    assert [whole(3), whole(np.asarray(np.int64(3)))] == [3, 3]
    assert [whole(v) for v in (True, 3.0, "3", None, np.arange(3), np.asarray(3.0))] == [-1] * 6


def test_categories_are_in_order_with_missing_last():
    assert in_order(np.array([1.0, 2.0, np.nan]))
    assert in_order(np.array(["a", "b"]))
    assert in_order(["b", None, "a"])
    assert not in_order(np.array([2.0, 1.0]))
    assert not in_order(np.array([1.0, np.nan, 2.0]))
    assert not in_order("ab")
