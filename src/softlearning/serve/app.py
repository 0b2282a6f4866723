"""The application: its routes, who may call them, and what is written down.

Bytes are counted while they arrive. A client can pass no path, file name or address. A log line has an address, a known
route, a status and milliseconds; nothing that was sent is in it.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import re
import time
from collections.abc import Awaitable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.requests import ClientDisconnect

from softlearning.serve.door import Door
from softlearning.serve.limits import Limits, Refused
from softlearning.serve.metrics import Counters
from softlearning.serve.page import CSP, describe_page
from softlearning.serve.rows import Answer, Error, Inputs, reply_to

log = logging.getLogger("softlearning.serve")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ROUTES = ("/predict", "/health", "/ready", "/metrics", "/docs", "/openapi.json")
PROBES = ("/health", "/ready")  # open to whoever reaches the port: they tell nothing of the model
LEFT = 499  # the client left before it was answered
ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": Error, "description": "Not JSON."},
    401: {"model": Error, "description": "The token is missing or wrong."},
    408: {"model": Error, "description": "The body took too long."},
    413: {"model": Error, "description": "Too large."},
    415: {"model": Error, "description": "Not application/json."},
    421: {"model": Error, "description": "The server does not go by this host name."},
    422: {"model": Error, "description": "A row or a value does not fit the model."},
    503: {"model": Error, "description": "Busy, or the answer took too long."},
}


def make_app(
    model,
    limits: Limits | None = None,
    *,
    token: bytes | None = None,
    hosts: Collection[str] = LOOPBACK,
    counters: Counters | None = None,
    door: Door | None = None,
    threads: int | None = None,
) -> FastAPI:
    """The application; the model is only read.

    Parameters
    ----------
    model : a fitted model
    limits : what a client may cost
    token : what a client must send as `Authorization: Bearer TOKEN`; None asks for none
    hosts : names that clients may call the server by, without port; "*" allows any
    counters, door : shared with the server around the application
    threads : how many predictions may run at once; the number of cores unless told
    """
    limits, counters = limits or Limits(), counters or Counters()
    door = door or Door(limits, counters)
    inputs, answering = Inputs(model, limits), Answering(model, limits, door, threads or os.cpu_count() or 1)
    app = FastAPI(title="softlearning", docs_url=None, redoc_url=None, openapi_url="/openapi.json")
    app.add_middleware(Guard, token=token, hosts=hosts, counters=counters, door=door)
    body = {"requestBody": {"required": True, "content": {"application/json": {"schema": inputs.description()}}}}

    @app.get("/health", summary="Is the process up?", response_model=dict[str, str])
    async def health() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @app.get("/ready", summary="Would a prediction be answered now?", response_model=dict[str, str], responses=ERRORS)
    async def ready() -> JSONResponse:
        answering.check_room()
        return JSONResponse({"status": "ready"})

    @app.get("/metrics", summary="Counts, as Prometheus reads them", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(counters.text(), media_type="text/plain; version=0.0.4")

    @app.get("/docs", summary="This, for people", response_class=HTMLResponse)
    async def docs() -> HTMLResponse:
        return HTMLResponse(describe_page(inputs, limits, token is not None), headers={"Content-Security-Policy": CSP})

    @app.post("/predict", summary="Predict rows", response_model=Answer, responses=ERRORS, openapi_extra=body)
    async def predict(request: Request) -> JSONResponse:
        answer = await answering.answer(request, inputs)
        counters.add("rows", len(answer["predictions"]))
        return JSONResponse(answer)

    return app


def _refusal(status: int, reason: str) -> JSONResponse:
    headers = {"Connection": "close"}
    headers |= {"Retry-After": "1"} if status == 503 else {}
    headers |= {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse({"error": reason}, status, headers)


class Answering:
    """Where requests are read and answered: so many bytes held, so many requests waiting, so many threads."""

    def __init__(self, model, limits: Limits, door: Door, threads: int):
        self.model, self.limits, self.door = model, limits, door
        self.threads = ThreadPoolExecutor(threads)  # an answer given up on keeps its thread: work never piles up
        self.most = threads + limits.waiting
        self.under_way = 0
        self.held = 0

    def check_room(self) -> None:
        """Refuse when as many requests wait as may."""
        if self.under_way >= self.most:
            raise Refused(503, "busy: come back")

    async def answer(self, request: Request, inputs: Inputs) -> dict[str, Any]:
        """Read a request and wait for what the model says."""
        self.check_room()
        body = bytearray()
        try:
            late = "the body took too long to arrive"
            await _within(self.limits.body_seconds, self._read(request, body), 408, late)
            self.door.hold(request.scope.get("client") or ())
            work = self._submit(_reply, self.model, inputs, bytes(body))
            reply = await _within(self.limits.seconds, work, 503, "the answer took too long: send fewer rows")
            if isinstance(reply, Refused):
                raise reply
            return reply
        finally:
            self.held -= len(body)
            body.clear()  # what still refers to it does not keep its memory

    async def _read(self, request: Request, body: bytearray) -> None:
        """The body, refused as soon as it is larger than allowed; never a form, never compressed."""
        most = self.limits.bytes
        media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
        if media_type != "application/json" or request.headers.get("content-encoding"):
            raise Refused(415, "send plain application/json")
        told = request.headers.get("content-length", "0")
        if told.isdigit() and int(told[:20]) > most:
            raise Refused(413, f"the body has more than {most} bytes")
        async for part in request.stream():
            self.held += len(part)
            body += part
            if len(body) > most:
                raise Refused(413, f"the body has more than {most} bytes")
            if self.held > self.limits.buffered:
                raise Refused(503, "busy: come back")

    def _submit(self, function: Any, *arguments: Any) -> asyncio.Future:
        """Hand work to a thread; it counts until it has really ended, given up on or not."""
        self.check_room()
        loop, work = asyncio.get_running_loop(), self.threads.submit(function, *arguments)
        self.under_way += 1
        work.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(self._ended))
        return asyncio.wrap_future(work)

    def _ended(self) -> None:
        self.under_way -= 1


def _reply(*arguments: Any) -> dict[str, Any] | Refused:
    """The answer, or the refusal as a value: an error that was raised in a thread keeps all that its frames hold."""
    try:
        return reply_to(*arguments)
    except Refused as error:
        return Refused(error.status, error.reason)


async def _within(seconds: float, work: Awaitable, status: int, reason: str) -> Any:
    try:
        return await asyncio.wait_for(work, seconds)
    except TimeoutError:
        raise Refused(status, reason) from None


@dataclass
class Told:
    """What was said to a client, and what the log adds."""

    status: int = LEFT
    note: str = ""


class Guard:
    """Around the application: host, token, one log line and one count per request, and an answer whatever happens."""

    def __init__(self, app, *, token: bytes | None, hosts: Collection[str], counters: Counters, door: Door):
        self.app, self.token, self.counters, self.door = app, token, counters, door
        self.hosts = {host.lower() for host in hosts}

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        client, start, told = tuple(scope.get("client") or ("-", 0)), time.perf_counter(), Told()

        async def sent(message) -> None:
            if message["type"] == "http.response.start":
                told.status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        self.door.begin(client)
        try:
            await self._answer(scope, receive, sent, told)
        finally:
            self.door.end(client)
            seconds = time.perf_counter() - start
            self.counters.answered(told.status, seconds)
            route = scope["path"] if scope["path"] in ROUTES else "-"
            method = scope["method"] if scope["method"] in ("GET", "POST", "HEAD", "OPTIONS") else "-"
            level = logging.ERROR if told.status == 500 else logging.INFO
            log.log(level, "%s %s %s %d %.0f ms%s", client[0], method, route, told.status, 1000 * seconds, told.note)

    async def _answer(self, scope, receive, send, told: Told) -> None:
        """The application's answer; what it did not foresee is a 500 whose reason stays in the log."""
        try:
            self._check(scope)
            return await self.app(scope, receive, send)
        except Refused as error:  # kept as an answer: a kept error would keep its frames, and with them the body
            refusal = _refusal(error.status, error.reason)
        except ClientDisconnect:
            return None
        except asyncio.CancelledError:
            refusal = _refusal(503, "the server is shutting down")
        except Exception as error:
            told.note = f" {type(error).__name__} in {_place(error)}"  # its message may hold values of rows
            refusal = _refusal(500, "the server failed; its log says where")
        if told.status == LEFT:  # nothing was sent yet
            await refusal(scope, receive, send)

    def _check(self, scope) -> None:
        """Refuse a host name that is not ours, since a page elsewhere may be made to resolve to us; then the token."""
        if scope["path"] in PROBES:
            return
        headers = dict(scope["headers"])
        host = re.sub(r":\d*$", "", headers.get(b"host", b"").decode("latin-1").lower())
        if "*" not in self.hosts and host not in self.hosts:
            raise Refused(421, "the server does not go by this host name")
        given = headers.get(b"authorization", b"")
        if self.token is not None and not hmac.compare_digest(given, b"Bearer " + self.token):
            raise Refused(401, "send the token: Authorization: Bearer TOKEN")


HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


def _place(error: BaseException) -> str:
    """Module and line where an error arose."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
