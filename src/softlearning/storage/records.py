"""The records of a fit as plain values that skops can store, and back.

A record is a dataclass (or a view) of softlearning. It is stored by the name of its class and its fields, whatever they
are: a field that a later version adds needs a default there, and nothing here. Frames and series are stored as columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from softlearning.data.schema import Column, Schema
from softlearning.data.views import View
from softlearning.evaluation.aims import GreedyFor, OfOrderedClasses
from softlearning.execution.tasks import Failure
from softlearning.library import Library, Specialist, every_row
from softlearning.method.crossfit import CrossFit
from softlearning.method.decisions import Decision
from softlearning.method.ensemble import Ensemble, Member
from softlearning.method.preparation import ViewKey
from softlearning.method.quantiles import QuantileFit
from softlearning.method.record import Record
from softlearning.method.training import Training
from softlearning.storage.container import ModelFileError
from softlearning.uncertainty.calibration import Calibration
from softlearning.uncertainty.sharpening import MOST
from softlearning.weights import Solution

OF_A_FIT = (Record, CrossFit, Solution, Ensemble, Member, Calibration, Failure)
OF_AN_AIM = (Decision, GreedyFor, OfOrderedClasses, QuantileFit)
OF_THE_INPUT = (Training, Schema, Column, View, ViewKey, Library, Specialist)
RECORDS = {cls.__name__: cls for cls in (*OF_A_FIT, *OF_AN_AIM, *OF_THE_INPUT)}
TASKS = ("classification", "regression")
PLAIN = (bool, int, float, str, bytes, np.ndarray, np.generic)
TEXTS = ("object", "str", "string")  # types of columns that are stored as objects


class Stored:
    """A value in plain parts: what it is, and the parts."""

    def __init__(self, kind: str, value: Any):
        self.kind, self.value = kind, value


@dataclasses.dataclass(frozen=True)
class Forgotten:
    """Stands for a function that a file does not hold: a user's own, which only its source code could bring."""

    note: str

    def __call__(self, *args: Any):
        raise ValueError(f"{self.note} came from a file, which does not hold functions of your own; pass it again")


# --- taking apart


def take_apart(value: Any, models: dict[int, Any]) -> Any:
    """The value with every record, frame and odd dict in it as `Stored`; `models` collects the estimators met."""
    apart = partial(take_apart, models=models)
    if value is None or isinstance(value, PLAIN):
        return value
    if RECORDS.get(type(value).__name__) is type(value):
        return Stored(type(value).__name__, {name: apart(v) for name, v in fields_of(value).items()})
    if isinstance(value, dict):
        if all(type(key) is str for key in value):
            return {key: apart(item) for key, item in value.items()}
        return Stored("dict", [[apart(key), apart(item)] for key, item in value.items()])
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(apart(item) for item in value)
    if isinstance(value, pd.Series):
        return Stored("series", {"value": column_parts(value), "index": index_parts(value.index), "name": value.name})
    if isinstance(value, pd.DataFrame):
        columns = [column_parts(value.iloc[:, j]) for j in range(value.shape[1])]
        return Stored("frame", {"value": columns, "index": index_parts(value.index), "names": list(value.columns)})
    if isinstance(value, FunctionType | Forgotten):
        return Stored("forgotten", value.note if isinstance(value, Forgotten) else f"the function {value.__name__!r}")
    ours = type(value).__module__.startswith("softlearning.") and not isinstance(value, BaseEstimator)
    if ours and dataclasses.is_dataclass(value):
        raise ModelFileError(f"{type(value).__name__} is not among the records that model files hold")
    models.setdefault(id(value), value)
    return Stored("model", list(models).index(id(value)))


def fields_of(record: Any) -> dict[str, Any]:
    """The fields of a record; how a specialist is made is a reference to our own table, or forgotten."""
    if not dataclasses.is_dataclass(record):
        return dict(vars(record))
    fields = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    return {**fields, "make": own_recipe(record)} if isinstance(record, Specialist) else fields


def own_recipe(row: Specialist) -> list[str] | None:
    """[task, name] of the row of our libraries that is made alike."""
    for task in TASKS:
        for ours in every_row(task):
            if ours.name == row.name and recipe(ours.make) == recipe(row.make):
                return [task, ours.name]
    return None


def recipe(make: Any) -> Any:
    return (make.func, make.args, make.keywords) if isinstance(make, partial) else make


def column_parts(column: pd.Series | pd.Index) -> dict[str, Any]:
    """The type and the values of a column."""
    if isinstance(column.dtype, np.dtype):
        return {"dtype": str(column.dtype), "value": column.to_numpy()}
    if not isinstance(column.dtype, pd.StringDtype):
        raise ModelFileError(f"a column of type {column.dtype} cannot be stored")
    words = np.array([None if gone else str(item) for item, gone in zip(column, column.isna())], dtype=object)
    return {"dtype": str(column.dtype), "value": words}


def index_parts(index: pd.Index) -> dict[str, Any] | None:
    """None for row numbers from 0 on."""
    if isinstance(index, pd.MultiIndex):
        raise ModelFileError("an index of several levels cannot be stored")
    if isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None:
        return None
    return {**column_parts(index), "name": index.name}


# --- putting together


def put_together(value: Any, models: list[Any]) -> Any:
    """What was taken apart, whole again."""
    together = partial(put_together, models=models)
    if isinstance(value, dict):
        return {key: together(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(together(item) for item in value)
    if not isinstance(value, Stored):
        return value
    if value.kind == "model":
        return models[value.value]
    if value.kind == "dict":
        return {together(key): together(item) for key, item in value.value}
    if value.kind in MAKERS:
        return MAKERS[value.kind](value.value)
    return record_of(value.kind, together(value.value))


def record_of(kind: Any, fields: Any) -> Any:
    """A record of its fields; fields that an older version did not know have their defaults."""
    if kind not in RECORDS or not isinstance(fields, dict):
        raise ModelFileError(f"the file holds a record {str(kind)[:100]!r}, which softlearning does not have")
    cls = RECORDS[kind]
    if cls is Specialist:
        fields = {**fields, "make": known_recipe(fields["make"], fields["name"])}
    if dataclasses.is_dataclass(cls):
        known = {field.name for field in dataclasses.fields(cls)}
        if not fields.keys() <= known:
            odd = ", ".join(sorted(fields.keys() - known)[:3])
            raise ModelFileError(f"a {kind} in the file has fields that this version does not know: {odd}")
        return cls(**fields)
    made = cls(fields["name"])
    if fields.keys() != vars(made).keys():
        raise ModelFileError(f"a {kind} in the file has other fields than this version")
    vars(made).update(fields)
    return made


def known_recipe(own: Any, name: Any) -> Any:
    """How the row of our own that is named makes its estimator; a user's own cannot be made any more."""
    if own is not None and not (isinstance(own, list) and len(own) == 2 and own[0] in TASKS):
        raise ModelFileError(f"the specialist {str(name)[:100]!r} in the file is made in an unknown way")
    known = {row.name: row.make for row in every_row(own[0])} if own else {}
    return known.get(own[1] if own else "", Forgotten(f"the specialist {name!r}"))


def column_of(parts: dict[str, Any]) -> Any:
    """The values of a column, one-dimensional and of the type that is told."""
    value, dtype = parts["value"], parts["dtype"]
    if not isinstance(value, np.ndarray) or value.ndim != 1 or dtype not in (*TEXTS, str(value.dtype)):
        raise ModelFileError("a column in the file is not a list of values of its type")
    return pd.array(value, dtype=dtype) if dtype in TEXTS[1:] else value


def index_of(parts: dict[str, Any] | None, rows: int) -> pd.Index:
    index = pd.RangeIndex(rows) if parts is None else pd.Index(column_of(parts), name=parts["name"])
    if len(index) != rows:
        raise ModelFileError("an index in the file is not as long as its columns")
    return index


def series_of(parts: dict[str, Any]) -> pd.Series:
    values = column_of(parts["value"])
    return pd.Series(values, index=index_of(parts["index"], len(values)), name=parts["name"], dtype=values.dtype)


def frame_of(parts: dict[str, Any]) -> pd.DataFrame:
    values = [column_of(column) for column in parts["value"]]
    rows = len(values[0]) if values else 0
    if any(len(column) != rows for column in values) or len(parts["names"]) != len(values):
        raise ModelFileError("the columns of a frame in the file are not of one length")
    index = index_of(parts["index"], rows)
    columns = [pd.Series(column, index=index, dtype=column.dtype) for column in values]
    return pd.DataFrame(dict(enumerate(columns)), index=index).set_axis(pd.Index(parts["names"]), axis=1)


MAKERS: dict[Any, Callable[[Any], Any]] = {
    "forgotten": lambda note: Forgotten(str(note)),
    "series": series_of,
    "frame": frame_of,
}


# --- what holds of every record


def check_record(record: Any) -> None:
    """Weights on the simplex, and a fitted model with its view for every specialist that has weight."""
    if not isinstance(record, Record):
        raise ModelFileError("the file does not hold what a fit learnt")
    weights, names = np.asarray(record.solution.weights, dtype=float), record.crossed.library.names
    if weights.shape != (len(names),) or not np.isfinite(weights).all():
        raise ModelFileError("the weights in the file are not one finite number per specialist")
    if (weights < 0).any() or abs(weights.sum() - 1) > 1e-6:
        raise ModelFileError("the weights in the file are not on the simplex")
    ensemble = record.ensemble
    for name in record.support():
        if not all(name in part for part in (ensemble.members, ensemble.specialists, ensemble.calibration)):
            raise ModelFileError(f"the specialist {name!r} has weight and is not in the file")
    members = [member for found in ensemble.members.values() for member in found]
    if any(member.view is not None and member.view not in ensemble.views for member in members):
        raise ModelFileError("a specialist in the file reads a view that is not there")
    if not members or any(not hasattr(member.model, "predict") for member in members):
        raise ModelFileError("a specialist in the file cannot predict")
    outputs, oof = record.training.target.shape[1], record.crossed.oof
    if ensemble.classes != outputs:
        raise ModelFileError("the classes in the file do not fit together")
    if not all(1 <= beta <= MOST for beta in (ensemble.sharpness, record.crossed.sharpness)):
        raise ModelFileError(f"the sharpness in the file is not a number from 1 to {MOST:g}")
    if oof is not None and oof.shape != (len(record.training.y), len(names), outputs):
        raise ModelFileError("the out-of-fold predictions in the file do not fit the model")
