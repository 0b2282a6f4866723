"""A model behind HTTP: POST /predict, GET /health, GET /openapi.json. Made to be sent anything.

Bytes are counted while they arrive, JSON is read strictly, every row passes the schema of the training table, and no
answer repeats what was sent. There is no path, file name or address that a client could pass.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from softlearning.data.messages import CellError
from softlearning.data.schema import NUMBERS, Column, Schema
from softlearning.method.prediction import Prediction

try:
    import uvicorn
    from fastapi import FastAPI, Request
    from fastapi.responses import JSONResponse
except ImportError:  # pragma: no cover
    raise ImportError("serving needs FastAPI and uvicorn: pip install 'softlearning[serve]'") from None


@dataclass(frozen=True)
class Limits:
    """What one request may cost."""

    bytes: int = 4_000_000
    rows: int = 1_000
    text: int = 100_000  # characters of one cell
    seconds: float = 30.0  # to send the body, and again to wait for the answer
    connections: int = 500


class Refused(Exception):
    """A request that is not answered: the status and a reason that repeats nothing of it."""

    def __init__(self, status: int, reason: str):
        self.status, self.reason = status, reason


def serve_model(model, *, host: str = "127.0.0.1", port: int = 8000, limits: Limits | None = None) -> None:
    """Serve until interrupted."""
    limits = limits or Limits()
    uvicorn.run(
        make_app(model, limits),
        host=host,
        port=port,
        limit_concurrency=limits.connections,
        timeout_keep_alive=5,
        server_header=False,
        log_level="warning",
    )


def make_app(model, limits: Limits | None = None) -> FastAPI:
    """The application; the model is only read."""
    limits = limits or Limits()
    gate, answers = Gate(model, limits), model.predict_full
    workers = ThreadPoolExecutor(os.cpu_count() or 1)  # an answer given up on keeps its worker: work never piles up
    app = FastAPI(title="softlearning", docs_url=None, redoc_url=None)
    app.add_exception_handler(Refused, _refuse)
    description = openapi(gate, limits)
    app.openapi = lambda: description  # type: ignore[method-assign]

    @app.get("/health")
    async def health() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @app.post("/predict")
    async def predict(request: Request) -> JSONResponse:
        body = await _within(limits.seconds, read_body(request, limits.bytes), 408, "the body took too long to arrive")
        work = asyncio.get_running_loop().run_in_executor(workers, reply_to, gate, answers, body)
        return JSONResponse(await _within(limits.seconds, work, 503, "the answer took too long: send fewer rows"))

    return app


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return JSONResponse({"error": error.reason}, error.status, {"Connection": "close"})


async def _within(seconds: float, work: Awaitable, status: int, reason: str) -> Any:
    try:
        return await asyncio.wait_for(work, seconds)
    except TimeoutError:
        raise Refused(status, reason) from None


async def read_body(request: Request, most: int) -> bytes:
    """The body, refused as soon as it is larger than allowed; never a form, never compressed."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json" or request.headers.get("content-encoding"):
        raise Refused(415, "send plain application/json")
    if (told := request.headers.get("content-length", "0")).isdigit() and int(told[:20]) > most:
        raise Refused(413, f"the body has more than {most} bytes")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise Refused(413, f"the body has more than {most} bytes")
    return bytes(body)


# -- strict JSON ------------------------------------------------------------------------------------------------------


def read_json(body: bytes) -> Any:
    """What the body says, without NaN, infinities, repeated keys, halves of characters or endless nesting."""
    try:
        return json.loads(
            body.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unique
        )
    except Refused:
        raise
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not valid JSON in UTF-8") from None


def _no_constant(word: str) -> None:
    raise Refused(400, "NaN and Infinity are not JSON; send null for a missing value")


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise Refused(400, "a number is too large")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refused(400, "a key is repeated")
    return found


# -- the gate ---------------------------------------------------------------------------------------------------------


class Gate:
    """From parsed JSON to a table that the model takes, or a refusal that names row and column but no value."""

    def __init__(self, model, limits: Limits):
        self.model, self.limits = model, limits
        self.schema: Schema = model.record_.training.schema
        names = getattr(model, "feature_names_in_", self.schema.names)
        self.columns = self.schema.columns or tuple(Column(str(name), "numeric") for name in names)
        self.known = {column.name for column in self.columns}

    def table(self, sent: Any) -> Any:
        rows = self._rows(sent)
        for number, row in enumerate(rows):
            self._check_row(row, number)
        columns = {c.name: [row[c.name] for row in rows] for c in self.columns if c.kept}
        if not self.schema.columns:
            return self._numbers(columns, len(rows))
        return pd.DataFrame({c.name: _as_column(columns[c.name], c) for c in self.columns if c.kept})

    def _numbers(self, columns: dict[str, list], rows: int) -> Any:
        """A model of plain numbers takes an array, or a frame where it was fitted on one."""
        values = np.empty((rows, len(columns)))
        for j, column in enumerate(columns.values()):
            values[:, j] = [np.nan if v is None else v for v in column]
        named = hasattr(self.model, "feature_names_in_")
        return pd.DataFrame(values, columns=list(columns)) if named else values

    def _rows(self, sent: Any) -> list[dict]:
        if not isinstance(sent, dict) or set(sent) != {"rows"} or not isinstance(sent["rows"], list):
            raise Refused(422, 'send {"rows": [..]}')
        if not 1 <= len(sent["rows"]) <= self.limits.rows:
            raise Refused(422, f"send 1 to {self.limits.rows} rows")
        return sent["rows"]

    def _check_row(self, row: Any, number: int) -> None:
        if not isinstance(row, dict):
            raise Refused(422, f"row {number} is not an object")
        if not row.keys() <= self.known:
            raise Refused(422, f"row {number} has a column that the model does not know")
        for column in self.columns:
            if column.kept:
                self._check_cell(row, number, column)

    def _check_cell(self, row: dict, number: int, column: Column) -> None:
        if column.name not in row:
            raise Refused(422, f"row {number} lacks the column {column.name!r}; send null for a missing value")
        value = row[column.name]
        wanted, fits = CELLS.get(column.type, CELLS["category"])
        if value is not None and not fits(value):
            raise Refused(422, f"row {number}, column {column.name!r}: {wanted} or null is expected")
        if isinstance(value, str) and (len(value) > self.limits.text or not _whole(value)):
            raise Refused(422, f"row {number}, column {column.name!r}: the text is too long or broken")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or (_is_number(value) and value in (0, 1))


def _is_word(value: Any) -> bool:
    return isinstance(value, str | bool) or _is_number(value)


CELLS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "number": ("a number below 1e300", _is_number),
    "boolean": ("true or false", _is_flag),
    "date": ("a date as text", lambda value: isinstance(value, str)),
    "text": ("text", lambda value: isinstance(value, str)),
    "category": ("text, a number, true or false", _is_word),
}  # type -> what is expected, and whether a value is that


def _whole(text: str) -> bool:
    """Whether no half of a pair of code units stands alone."""
    return not re.search("[\ud800-\udfff]", text)


def _as_column(values: list, column: Column) -> Any:
    if column.type in NUMBERS:
        return np.array([np.nan if v is None else float(v) for v in values])
    return pd.Series(values, dtype=object)


def reply_to(gate: Gate, answers: Callable[..., Prediction], body: bytes) -> dict[str, Any]:
    """From bytes to the answer; a cell that the training table's gate refuses is named by place alone."""
    table = gate.table(read_json(body))
    try:
        reply = answers(table)
    except CellError as error:
        raise Refused(422, _place(error)) from None
    except ValueError:
        raise Refused(422, "a value does not fit its column") from None
    return {"predictions": [_line(reply, i, reply.classes) for i in range(len(reply.value))]}


def _place(error: CellError) -> str:
    """Row and column of a refused cell, without the value."""
    where = "" if error.row is None else f"row {error.row}, "
    return f"{where}column {error.column!r}: the value does not fit ({error.expected} is expected)"


def _line(reply: Prediction, i: int, classes: np.ndarray | None) -> dict[str, Any]:
    line: dict[str, Any] = {"prediction": _plain(reply.value[i]), "disagreement": _plain(reply.disagreement[i])}
    if classes is not None and reply.probability is not None:
        line["probabilities"] = {str(c): float(p) for c, p in zip(classes, reply.probability[i])}
    if classes is not None and reply.inside is not None:
        line["set"] = [_plain(c) for c, inside in zip(classes, reply.inside[i]) if inside]
    if reply.low is not None and reply.high is not None:
        line |= {"low": _plain(reply.low[i]), "high": _plain(reply.high[i])}
    return line


def _plain(value: Any) -> Any:
    """A Python value that JSON can hold; an endless interval has no end."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


# -- OpenAPI ----------------------------------------------------------------------------------------------------------


def openapi(gate: Gate, limits: Limits) -> dict[str, Any]:
    """The interface in words that machines read, from the schema of the training table."""
    fields = {c.name: {} if not c.kept else _field(c, limits) for c in gate.columns}
    row = {
        "type": "object",
        "properties": fields,
        "required": [c.name for c in gate.columns if c.kept],
        "additionalProperties": False,
    }
    rows = {"type": "array", "items": row, "minItems": 1, "maxItems": limits.rows}
    request = {"type": "object", "properties": {"rows": rows}, "required": ["rows"], "additionalProperties": False}
    errors = {str(s): _response(why, ERROR) for s, why in ERRORS.items()}
    answer = {"200": _response("One line a row, in order.", _answer(gate))}
    body = {"required": True, "content": {"application/json": {"schema": request}}}
    predict = {"summary": "Predict rows", "requestBody": body, "responses": answer | errors}
    alive = {"200": _response("The server answers.", {"type": "object", "properties": {"status": {"type": "string"}}})}
    return {
        "openapi": "3.1.0",
        "info": {"title": "softlearning", "version": "1"},
        "paths": {
            "/predict": {"post": predict},
            "/health": {"get": {"summary": "Is it up?", "responses": alive}},
        },
    }


ERROR: dict[str, Any] = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
ERRORS = {
    400: "Not JSON.",
    408: "The body took too long.",
    413: "Too large.",
    415: "Not application/json.",
    422: "A row or a value does not fit the model.",
    503: "Busy, or the answer took too long.",
}
TYPES: dict[str, dict[str, Any]] = {
    "number": {"type": ["number", "null"], "exclusiveMinimum": -1e300, "exclusiveMaximum": 1e300},
    "boolean": {"type": ["boolean", "null"]},
    "date": {"type": ["string", "null"]},
    "text": {"type": ["string", "null"]},
    "category": {
        "type": ["string", "number", "boolean", "null"],
        "exclusiveMinimum": -1e300,
        "exclusiveMaximum": 1e300,
    },
}


def _field(column: Column, limits: Limits) -> dict[str, Any]:
    kind = TYPES.get(column.type, TYPES["category"])
    return {**kind, "maxLength": limits.text} if "string" in kind["type"] else kind


def _response(why: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": why, "content": {"application/json": {"schema": schema}}}


def _answer(gate: Gate) -> dict[str, Any]:
    number, maybe = {"type": "number"}, {"type": ["number", "null"]}
    line: dict[str, Any] = {"prediction": {}, "disagreement": maybe}
    if hasattr(gate.model, "classes_"):
        line |= {"probabilities": {"type": "object", "additionalProperties": number}, "set": {"type": "array"}}
    else:
        line |= {"low": maybe, "high": maybe}
    one = {"type": "object", "properties": line, "required": ["prediction", "disagreement"]}
    lines = {"type": "array", "items": one}
    return {"type": "object", "properties": {"predictions": lines}, "required": ["predictions"]}
