"""Records and frames in plain parts, and back."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from softlearning.data.schema import Column, Schema
from softlearning.library import Library, Specialist, classifiers, every_row
from softlearning.storage import records
from softlearning.storage.container import ModelFileError
from softlearning.storage.records import Forgotten, Stored, known_recipe, own_recipe, put_together, recipe, take_apart

VALUES = [
    [1, 2.5, None, True, "ä", [1, [2]], float("inf")],
    {"a": 1, "b": {"c": ()}},
    {1: "x", (2, "y"): [3], None: 4.0, 2.5: {"a": 1}},
    (1, ("a", None)),
    np.float32(0.1),
    Schema("table", 3, 1, columns=(Column("a", "category", categories=("x", "y")),)),
]
FRAMES = [
    pd.Series([1.0, 2.0], index=["a", "b"], name="w"),
    pd.Series(["a", None], dtype="str"),
    pd.Series([1, "x", None], dtype=object, index=pd.Index([3, 4, 5], name="row")),
    pd.Series([], dtype=float),
    pd.DataFrame({"x": [1, 2], "y": ["a", None], "z": [True, False]}),
    pd.DataFrame({"t": pd.to_datetime(["2024-01-01", None])}),
    pd.DataFrame(columns=["specialist", "fold"]),
]


def there_and_back(value):
    models = {}
    parts = take_apart(value, models)
    return put_together(parts, list(models.values()))


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
def test_values_come_back_with_their_types(value):
    back = there_and_back(value)
    assert type(back) is type(value)
    assert back == value


@pytest.mark.parametrize("value", FRAMES, ids=lambda v: type(v).__name__)
def test_frames_come_back_with_their_types(value):
    assert isinstance(take_apart(value, {}), Stored)
    check = pd.testing.assert_frame_equal if isinstance(value, pd.DataFrame) else pd.testing.assert_series_equal
    check(there_and_back(value), value)


@pytest.mark.parametrize("value", [pd.Series([1, None], dtype="Int64"), pd.Series([1], index=[["a"], ["b"]])])
def test_columns_that_no_record_holds_are_refused(value):
    with pytest.raises(ModelFileError, match="cannot be stored"):
        take_apart(value, {})


def test_a_record_off_the_list_is_refused_when_it_is_written(monkeypatch):
    monkeypatch.delitem(records.RECORDS, "Column")
    with pytest.raises(ModelFileError, match="Column is not among the records"):
        take_apart([Column("a", "numeric")], {})


def test_a_field_that_a_later_version_adds_has_its_default(monkeypatch):
    later = dataclasses.make_dataclass("Column", [("name", str), ("new", int, 7)])
    monkeypatch.setitem(records.RECORDS, "Column", later)
    assert put_together(Stored("Column", {"name": "a"}), []).new == 7
    with pytest.raises(ModelFileError, match="does not know: kind"):
        put_together(Stored("Column", {"name": "a", "kind": "numeric"}), [])


def test_our_own_rows_are_made_as_before_and_a_users_own_are_forgotten():
    library = classifiers("fast") + Library((Specialist("own", "linear", lambda shape: LogisticRegression()),))
    back = there_and_back(library)
    assert back.names == library.names
    assert [s.make for s in back][:-1] == [s.make for s in library][:-1]
    with pytest.raises(ValueError, match="'own' came from a file"):
        back["own"].specialists[0].make(None)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_row_of_our_libraries_is_found_again(task):
    for row in every_row(task):
        assert recipe(known_recipe(own_recipe(row), row.name)) == recipe(row.make)


def test_a_row_that_a_later_version_dropped_is_forgotten_and_an_odd_one_refused():
    assert known_recipe(["regression", "no such row"], "x") == Forgotten("the specialist 'x'")
    for odd in (["os", "system"], "logistic", ["regression"], {}):
        with pytest.raises(ModelFileError, match="unknown way"):
            known_recipe(odd, "x")


def test_an_estimator_that_is_met_twice_is_stored_once():
    model, models = LogisticRegression(), {}
    parts = take_apart({"a": model, "b": [model, 1]}, models)
    assert list(models.values()) == [model]
    back = put_together(parts, [model])
    assert back["a"] is back["b"][0] is model


def test_a_function_of_the_user_is_forgotten_by_name():
    def weigh(errors):
        return errors

    back = there_and_back({"rule": weigh})["rule"]
    assert there_and_back(back) == back
    with pytest.raises(ValueError, match=r"the function 'weigh' came from a file"):
        back(1)
