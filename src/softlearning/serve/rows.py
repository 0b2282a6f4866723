"""From the bytes of a request to the rows that a model takes, and from its answer to plain values.

JSON is read strictly, every row passes a pydantic model made from the columns of the training table, and no answer
repeats what was sent.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictStr, ValidationError, create_model

from softlearning.data.messages import CellError
from softlearning.data.schema import NUMBERS, Column, Schema
from softlearning.data.strictjson import read_json
from softlearning.method.prediction import Prediction
from softlearning.serve.limits import Limits, Refused


class Error(BaseModel):
    """Why a request was refused."""

    error: str


class Line(BaseModel):
    """What is said of one row: classes come with probabilities and a set, numbers with low and high."""

    prediction: Any
    disagreement: float | None
    probabilities: dict[str, float] | None = None
    set: list[Any] | None = None
    low: float | None = None
    high: float | None = None


class Answer(BaseModel):
    """One line per row, in order."""

    predictions: list[Line]


def cell_type(column: Column, limits: Limits) -> Any:
    """What JSON may hold in a column; null is a missing value."""
    number = Annotated[StrictFloat, Field(gt=-1e300, lt=1e300)]
    text = Annotated[StrictStr, Field(max_length=limits.text)]
    types = {"number": number, "boolean": StrictBool | Literal[0, 1], "date": text, "text": text}
    return types.get(column.type, text | StrictBool | number) | None


class Inputs:
    """The columns of the training table as a pydantic model, and the table that the model takes."""

    def __init__(self, model, limits: Limits):
        self.schema: Schema = model.record_.training.schema
        self.named = hasattr(model, "feature_names_in_")
        names = getattr(model, "feature_names_in_", self.schema.names)
        self.columns = self.schema.columns or tuple(Column(str(name), "number") for name in names)
        closed = ConfigDict(extra="forbid")
        fields: dict[str, Any] = {
            f"c{j}": (cell_type(c, limits), Field(alias=c.name)) if c.kept else (Any, Field(None, alias=c.name))
            for j, c in enumerate(self.columns)
        }
        row = create_model("Row", __config__=closed, **fields)
        rows: Any = (list[row], Field(min_length=1, max_length=limits.rows))  # type: ignore[valid-type]
        self.request = create_model("Rows", __config__=closed, rows=rows)

    def description(self) -> dict[str, Any]:
        """The JSON schema of a request, in one piece."""
        schema = self.request.model_json_schema()
        schema["properties"]["rows"]["items"] = schema.pop("$defs")["Row"]
        return schema

    def table(self, sent: Any) -> Any:
        """The table, or a refusal that names row and column but no value."""
        try:
            rows = self.request.model_validate(sent).rows  # type: ignore[attr-defined]
        except ValidationError as error:
            raise Refused(422, _reason(error)) from None
        kept = {c.name: [getattr(row, f"c{j}") for row in rows] for j, c in enumerate(self.columns) if c.kept}
        if not self.schema.columns:
            values = pd.DataFrame(kept, dtype=float)
            return values if self.named else values.to_numpy()
        numbers = {c.name for c in self.columns if c.type in NUMBERS}
        return pd.DataFrame({n: pd.Series(v, dtype=float if n in numbers else object) for n, v in kept.items()})


def _reason(error: ValidationError) -> str:
    """The first thing that does not fit, by place: what was sent is not repeated, an unknown name neither."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = first["loc"]
    if first["type"] == "extra_forbidden":
        return f"row {where[1]} has a column that the model does not know" if len(where) > 1 else 'send {"rows": [..]}'
    place = [f"row {where[1]}"] if len(where) > 1 else []
    place += [f"column {str(where[2])[:60]!r}"] if len(where) > 2 else []
    if first["type"] == "missing" and place:
        return f"{', '.join(place)}: the column is missing; send null for a missing value"
    return f"{', '.join(place) or 'rows'}: {first['msg'].lower()[:100]}"


def reply_to(model, inputs: Inputs, body: bytes) -> dict[str, Any]:
    """From bytes to the answer; a cell that the model refuses is named by place alone."""
    try:
        sent = read_json(body)
    except ValueError:
        raise Refused(400, "the body is not strict JSON in UTF-8; send null for a missing value") from None
    table = inputs.table(sent)
    try:
        reply = model.predict_full(table)
    except CellError as error:
        where = "" if error.row is None else f"row {error.row}, "
        raise Refused(422, f"{where}column {error.column[:60]!r}: {error.expected} is expected") from None
    except ValueError:
        raise Refused(422, "a value does not fit its column") from None
    return {"predictions": [_line(reply, i) for i in range(len(reply.value))]}


def _line(reply: Prediction, i: int) -> dict[str, Any]:
    line: dict[str, Any] = {"prediction": _plain(reply.value[i]), "disagreement": _plain(reply.spread[i])}
    if reply.classes is not None and reply.probability is not None:
        line["probabilities"] = {str(c): float(p) for c, p in zip(reply.classes, reply.probability[i])}
    if reply.classes is not None and reply.inside is not None:
        line["set"] = [_plain(c) for c, inside in zip(reply.classes, reply.inside[i]) if inside]
    if reply.low is not None and reply.high is not None:
        line |= {"low": _plain(reply.low[i]), "high": _plain(reply.high[i])}
    return line


def _plain(value: Any) -> Any:
    """A Python value that JSON can hold; an infinite interval has no end."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
