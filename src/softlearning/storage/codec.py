"""Values as a tree of JSON with arrays and estimators beside it, and back.

    None, bool, int, str, finite float, list, dict with string keys     as they are
    all else                                                           {"$": kind, ...}, one kind a row of KINDS

`Writer` collects the arrays and estimators that a tree refers to by number; `Reader` builds a value from a tree and
members that were checked. A record (a dataclass of softlearning, a view, a model) is written by the name of its class,
which must be a row of RECORDS.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from softlearning.library import every_row
from softlearning.storage import parts
from softlearning.storage.arrays import checked_sparse, read_npy, write_npy
from softlearning.storage.container import ModelFileError

DEEPEST = 60  # values within values

RECORDS = {
    "SoftClassifier": "softlearning.estimators",
    "SoftRegressor": "softlearning.estimators",
    "Record": "softlearning.method.record",
    "CrossFit": "softlearning.method.crossfit",
    "Training": "softlearning.method.training",
    "ViewKey": "softlearning.method.preparation",
    "Calibration": "softlearning.uncertainty.calibration",
    "Solution": "softlearning.weights",
    "Ensemble": "softlearning.method.ensemble",
    "Member": "softlearning.method.ensemble",
    "Failure": "softlearning.execution.tasks",
    "Library": "softlearning.library.specialist",
    "Specialist": "softlearning.library.specialist",
    "Schema": "softlearning.data.schema",
    "Column": "softlearning.data.schema",
    "View": "softlearning.data.views",
}
TASKS = ("classification", "regression")
WATCHERS = ("_skl_callbacks", "_parent_callback_ctx")  # scikit-learn's callbacks belong to a fit, not to a model
MASKED = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "boolean")


class Forgotten:
    """Stands for a recipe that a file does not hold: a user's own function, which only its source code could bring."""

    def __init__(self, note: str):
        self.note = note

    def __call__(self, *args: Any):
        raise ValueError(
            f"{self.note} came from a file, which does not hold how to make it; pass the specialist itself"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Forgotten) and other.note == self.note

    def __hash__(self) -> int:
        return hash(self.note)


def record_class(name: Any) -> type:
    if not isinstance(name, str) or name not in RECORDS:
        raise ModelFileError(f"the file holds a record {str(name)[:100]!r}, which softlearning does not have")
    return getattr(import_module(RECORDS[name]), name)


# --- writing


class Writer:
    """Encodes values; `members` are the arrays and estimators that the tree refers to."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}
        self.notes: dict[str, str] = {}
        self._seen: dict[int, tuple[Any, Any]] = {}  # estimators met: kept alive, so that no identity is used twice

    def encode(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"$": "float", "value": repr(value)}
        for kind, write in WRITERS:
            if isinstance(value, kind):
                return write(self, value)
        if RECORDS.get(type(value).__name__) == type(value).__module__:
            return self.record(value)
        return self.estimator(value)

    def array(self, value: np.ndarray) -> dict:
        if value.dtype.kind == "O":
            return {
                "$": "objects",
                "shape": list(value.shape),
                "value": [self.encode(v) for v in value.ravel().tolist()],
            }
        name = f"arrays/{len(self.members)}.npy"
        self.members[name] = write_npy(value)
        return {"$": "array", "value": name}

    def estimator(self, value: Any) -> dict:
        """Anything that is no plain value: stored by skops, once."""
        if id(value) not in self._seen:
            name = f"estimators/{len(self.members)}.skops"
            self.members[name] = parts.dump(value)
            self._seen[id(value)] = (value, {"$": "estimator", "value": name})
        return self._seen[id(value)][1]

    def record(self, value: Any) -> dict:
        write = {
            "Specialist": specialist_fields,
            "SoftClassifier": self.model_fields,
            "SoftRegressor": self.model_fields,
        }
        fields = write.get(type(value).__name__, plain_fields)(value)
        return {"$": "record", "type": type(value).__name__, "value": self.encode(fields)}

    def model_fields(self, model: Any) -> dict[str, Any]:
        """Parameters and all that was learned; a parameter that is not plain becomes a note."""
        fields = {name: value for name, value in vars(model).items() if name not in WATCHERS}
        for name, value in model.get_params(deep=False).items():
            if not is_plain(value):
                self.notes[name] = repr(value)[:1000]
                fields[name] = None
        return fields


def is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(item) for key, item in value.items())
    return value is None or isinstance(value, bool | int | float | str)


def plain_fields(value: Any) -> dict[str, Any]:
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return dict(vars(value))


def specialist_fields(row: Any) -> dict[str, Any]:
    """A row of a library; how it is made is a reference to our own table, or forgotten."""
    return {**plain_fields(row), "make": own_recipe(row)}


def own_recipe(row: Any) -> list[str] | None:
    """[task, name] of the row of our libraries that is made alike."""
    for task in TASKS:
        for ours in every_row(task):
            if ours.name == row.name and recipe(ours.make) == recipe(row.make):
                return [task, ours.name]
    return None


def recipe(make: Any) -> Any:
    return (make.func, make.args, make.keywords) if isinstance(make, partial) else make


def write_items(writer: Writer, value: dict) -> Any:
    if all(type(key) is str for key in value) and "$" not in value:
        return {key: writer.encode(item) for key, item in value.items()}
    return {"$": "items", "value": [[writer.encode(key), writer.encode(item)] for key, item in value.items()]}


def write_scalar(writer: Writer, value: np.generic) -> dict:
    return {"$": "scalar", "value": writer.array(np.asarray(value))}


def write_column(writer: Writer, value: pd.Series | pd.Index) -> dict:
    """The values of a column of a frame."""
    dtype, array = value.dtype, value.array
    if isinstance(dtype, np.dtype):
        return writer.array(value.to_numpy())
    if isinstance(array, pd.Categorical):
        categories, ordered = write_index(writer, array.categories), bool(array.ordered)
        return {"$": "category", "codes": writer.array(array.codes), "categories": categories, "ordered": ordered}
    if isinstance(dtype, pd.StringDtype):
        return {"$": "strings", "value": [None if pd.isna(item) else str(item) for item in array]}
    if str(dtype) in MASKED:
        filled = array.fillna(False if str(dtype) == "boolean" else 0)
        data = np.asarray(filled, dtype=str(dtype).lower().replace("boolean", "bool"))
        return {"$": "masked", "dtype": str(dtype), "value": writer.array(data), "mask": writer.array(array.isna())}
    raise ModelFileError(f"a column of type {dtype} cannot be stored")


def write_index(writer: Writer, value: pd.Index) -> dict:
    if isinstance(value, pd.MultiIndex):
        raise ModelFileError("an index of several levels cannot be stored")
    if isinstance(value, pd.RangeIndex):
        return {"$": "range", "value": [value.start, value.stop, value.step], "name": writer.encode(value.name)}
    return {"$": "index", "value": write_column(writer, value), "name": writer.encode(value.name)}


def write_series(writer: Writer, value: pd.Series) -> dict:
    index, name = write_index(writer, value.index), writer.encode(value.name)
    return {"$": "series", "value": write_column(writer, value), "index": index, "name": name}


def write_frame(writer: Writer, value: pd.DataFrame) -> dict:
    columns = [write_column(writer, value.iloc[:, j]) for j in range(value.shape[1])]
    index, names = write_index(writer, value.index), write_index(writer, value.columns)
    return {"$": "frame", "value": columns, "index": index, "columns": names}


def write_sparse(writer: Writer, value: Any) -> dict:
    csr = sp.csr_matrix(value)
    return {
        "$": "csr",
        "shape": list(csr.shape),
        "value": [writer.array(part) for part in (csr.data, csr.indices, csr.indptr)],
    }


WRITERS: tuple[tuple[Any, Callable[[Writer, Any], Any]], ...] = (
    (list, lambda writer, value: [writer.encode(item) for item in value]),
    (tuple, lambda writer, value: {"$": "tuple", "value": [writer.encode(item) for item in value]}),
    (dict, write_items),
    (np.ndarray, Writer.array),
    (np.generic, write_scalar),
    (pd.Series, write_series),
    (pd.DataFrame, write_frame),
    (pd.Index, write_index),
    (sp.sparray | sp.spmatrix, write_sparse),
    (Forgotten, lambda writer, value: {"$": "forgotten", "value": value.note}),
)


# --- reading


class Reader:
    """Decodes a tree; every estimator is inspected before the first of them is built."""

    def __init__(self, members: dict[str, bytes], limit: int, trusted: Collection[str] = ()):
        self.members = members
        self.names = {
            name: parts.inspect(data, limit, trusted).met for name, data in members.items() if name.endswith(".skops")
        }
        self._built: dict[str, Any] = {}
        self._depth = 0

    def decode(self, tree: Any) -> Any:
        if tree is None or isinstance(tree, bool | int | float | str):
            return tree
        self._depth += 1
        if self._depth > DEEPEST:
            raise ModelFileError(f"the model is nested deeper than {DEEPEST}")
        value = self._decode(tree)
        self._depth -= 1
        return value

    def _decode(self, tree: Any) -> Any:
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        if "$" not in tree:
            return {key: self.decode(item) for key, item in tree.items()}
        if tree["$"] not in READERS:
            raise ModelFileError(f"the file holds a value of the unknown kind {str(tree['$'])[:50]!r}")
        return READERS[tree["$"]](self, tree)

    def array(self, tree: Any) -> np.ndarray:
        name = tree["value"]
        if tree["$"] != "array" or not isinstance(name, str) or not name.endswith(".npy") or name not in self.members:
            raise ModelFileError("the model names an array that is not in the file")
        return read_npy(self.members[name]).copy(order="K")

    def estimator(self, tree: Any) -> Any:
        name = tree["value"]
        if name not in self.names:
            raise ModelFileError("the model names an estimator that is not in the file")
        if name not in self._built:
            self._built[name] = parts.build(self.members[name], self.names[name])
        return self._built[name]


def read_objects(reader: Reader, tree: dict) -> np.ndarray:
    values = np.empty(len(tree["value"]), dtype=object)
    for i, item in enumerate(tree["value"]):
        values[i] = reader.decode(item)
    return values.reshape(tree["shape"])


def read_items(reader: Reader, tree: dict) -> dict:
    return {reader.decode(key): reader.decode(item) for key, item in tree["value"]}


def read_float(reader: Reader, tree: dict) -> float:
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[tree["value"]]


def read_record(reader: Reader, tree: dict) -> Any:
    cls, fields = record_class(tree["type"]), reader.decode(tree["value"])
    if not isinstance(fields, dict):
        raise ModelFileError(f"a {tree['type']} in the file has no fields")
    make = {"Specialist": read_specialist, "View": read_view}
    if dataclasses.is_dataclass(cls):
        expected = {field.name for field in dataclasses.fields(cls)}
        if fields.keys() != expected:
            odd = sorted(fields.keys() ^ expected)
            raise ModelFileError(
                f"a {tree['type']} in the file has other fields than this version: {', '.join(odd[:3])}"
            )
        return make.get(tree["type"], lambda cls, fields: cls(**fields))(cls, fields)
    return make.get(tree["type"], read_model)(cls, fields)


def read_specialist(cls: Any, fields: dict[str, Any]) -> Any:
    """A row of a library, made as the row of our own that it names; a user's own cannot be made any more."""
    own = fields["make"]
    if own is None:
        return cls(**{**fields, "make": Forgotten(f"the specialist {fields['name']!r}")})
    known = {(task, row.name): row.make for task in TASKS for row in every_row(task)}
    if not isinstance(own, list) or tuple(own) not in known:
        raise ModelFileError(f"the specialist {fields['name']!r} in the file is made as none of this version")
    return cls(**{**fields, "make": known[tuple(own)]})


def read_view(cls: Any, fields: dict[str, Any]) -> Any:
    view = cls(fields["name"])
    if fields.keys() != vars(view).keys():
        raise ModelFileError("a View in the file has other fields than this version")
    vars(view).update(fields)
    return view


def read_model(cls: Any, fields: dict[str, Any]) -> Any:
    """Parameters through the constructor, then what was learned; nothing may hide a method of the class."""
    model = cls()
    parameters = model.get_params(deep=False).keys()
    hidden = [name for name in fields if not name.isidentifier() or hasattr(cls, name)]
    if hidden or not parameters <= fields.keys():
        raise ModelFileError(f"a {cls.__name__} in the file has other attributes than this version")
    vars(model).update(fields)
    return model


def read_strings(reader: Reader, tree: dict) -> Any:
    if not all(item is None or isinstance(item, str) for item in tree["value"]):
        raise ModelFileError("a column of strings in the file holds something else")
    return pd.array(tree["value"], dtype="str")


def read_category(reader: Reader, tree: dict) -> pd.Categorical:
    categories, codes = reader.decode(tree["categories"]), reader.array(tree["codes"])
    dtype = pd.CategoricalDtype(categories, ordered=bool(tree["ordered"]))
    return pd.Categorical.from_codes(codes, dtype=dtype)


def read_masked(reader: Reader, tree: dict) -> Any:
    if tree["dtype"] not in MASKED:
        raise ModelFileError("a column in the file is of an unknown type")
    values = pd.array(reader.array(tree["value"]), dtype=tree["dtype"])
    values[reader.array(tree["mask"])] = pd.NA
    return values


def read_frame(reader: Reader, tree: dict) -> pd.DataFrame:
    columns = dict(enumerate(reader.decode(column) for column in tree["value"]))
    frame = pd.DataFrame(columns, index=reader.decode(tree["index"]))
    return frame.set_axis(reader.decode(tree["columns"]), axis=1)


def read_series(reader: Reader, tree: dict) -> pd.Series:
    return pd.Series(reader.decode(tree["value"]), index=reader.decode(tree["index"]), name=reader.decode(tree["name"]))


def read_csr(reader: Reader, tree: dict) -> sp.csr_matrix:
    data, indices, indptr = (reader.array(part) for part in tree["value"])
    return checked_sparse(sp.csr_matrix, data, indices, indptr, tuple(map(int, tree["shape"])))


READERS: dict[Any, Callable[[Reader, dict], Any]] = {
    "float": read_float,
    "tuple": lambda reader, tree: tuple(reader.decode(item) for item in tree["value"]),
    "items": read_items,
    "array": Reader.array,
    "objects": read_objects,
    "scalar": lambda reader, tree: reader.array(tree["value"])[()],
    "strings": read_strings,
    "category": read_category,
    "masked": read_masked,
    "index": lambda reader, tree: pd.Index(reader.decode(tree["value"]), name=reader.decode(tree["name"])),
    "range": lambda reader, tree: pd.RangeIndex(*tree["value"], name=reader.decode(tree["name"])),
    "series": read_series,
    "frame": read_frame,
    "csr": read_csr,
    "record": read_record,
    "estimator": Reader.estimator,
    "forgotten": lambda reader, tree: Forgotten(str(tree["value"])),
}
