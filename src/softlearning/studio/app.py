"""The page of the studio and what it calls; the token in the address opens all of it but the empty page."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import socket
from functools import cache
from pathlib import Path
from typing import Any

try:
    import uvicorn
    from fastapi import FastAPI, Request
    from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
    from starlette.concurrency import run_in_threadpool
except ImportError:  # pragma: no cover
    raise ImportError("the studio needs FastAPI and uvicorn: pip install 'softlearning[serve]'") from None

from softlearning.report.render import script_hash
from softlearning.serve.app import LOOPBACK, Guard
from softlearning.serve.door import Door
from softlearning.serve.limits import Limits, Refused
from softlearning.serve.metrics import Counters
from softlearning.studio.session import Session

MOST_BYTES = 4 << 30  # of an uploaded file
RESULTS = {
    "report": ("report.html", "text/html"),
    "model": ("model.soft", "application/octet-stream"),
    "predictions": ("predictions.csv", "text/csv"),
}


def make_studio(session: Session, token: str) -> FastAPI:
    """The application: the empty page for anybody on this machine, all else for who has the token."""
    app, api = FastAPI(openapi_url=None), FastAPI(openapi_url=None)
    counters = Counters()
    door = Door(Limits(), counters)
    api.add_middleware(Guard, token=token.encode(), hosts=LOOPBACK, counters=counters, door=door)
    text, policy = page()

    @app.get("/")
    async def show() -> HTMLResponse:
        return HTMLResponse(text, headers={"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"})

    @api.get("/state")
    async def state() -> JSONResponse:
        return await _answer(session.state)

    @api.post("/table")
    async def table(request: Request, name: str) -> JSONResponse:
        path = session.place_for(name, "table")
        await _store(request, path)
        return await _answer(session.take_table, path, name)

    @api.post("/fit")
    async def fit(request: Request) -> JSONResponse:
        return await _answer(session.start, await _settings(request))

    @api.post("/stop")
    async def stop() -> JSONResponse:
        return await _answer(session.stop)

    @api.post("/score")
    async def score(request: Request, name: str) -> JSONResponse:
        path = session.place_for(name, "new")
        await _store(request, path)
        return await _answer(session.score, path, name)

    @api.get("/results/{what}")
    async def results(what: str) -> FileResponse:
        name, media_type = RESULTS.get(what, ("", ""))
        if not name or not (session.folder / name).exists():
            raise Refused(404, "there is no such result")
        return FileResponse(session.folder / name, media_type=media_type)

    app.mount("/api", api)
    return app


async def _answer(work, *arguments: Any) -> JSONResponse:
    """What a call to the session gives; what goes wrong with the data is said to the person who sent it."""
    try:
        return JSONResponse(await run_in_threadpool(work, *arguments))
    except (ValueError, OSError, MemoryError) as error:
        raise Refused(422, str(error)[:500] or type(error).__name__) from None


async def _settings(request: Request) -> dict[str, Any] | None:
    """The settings of a fit; nothing to go on with those of the last."""
    body = await request.body()
    try:
        asked = json.loads(body) if body else None
    except ValueError:
        raise Refused(400, "not JSON") from None
    if asked is not None and (not isinstance(asked, dict) or not isinstance(asked.get("types", {}), dict)):
        raise Refused(400, "an object is expected")
    return asked


async def _store(request: Request, path: Path) -> None:
    """The body, written as it arrives."""
    part, size = path.with_name(f".{path.name}.part"), 0
    try:
        with part.open("wb") as file:
            async for piece in request.stream():
                size += len(piece)
                if size > MOST_BYTES:
                    raise Refused(413, f"the file has more than {MOST_BYTES >> 30} GB")
                file.write(piece)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@cache
def page() -> tuple[str, str]:
    """The page, and the policy that lets its script run, the report's, and no other."""
    here = Path(__file__).parent
    script = (here / "studio.js").read_text(encoding="utf-8")
    style = (here / "studio.css").read_text(encoding="utf-8")
    text = (here / "studio.html").read_text(encoding="utf-8").replace("/*style*/", style).replace("/*script*/", script)
    own = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{own}' '{script_hash()}'; "
        "connect-src 'self'; frame-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text, policy


def serve_studio(folder: str | Path, *, port: int = 8811, tell=print) -> None:
    """Serve until interrupted; `tell` hears the address, which holds the token."""
    session, token = Session(folder), secrets.token_urlsafe(18)
    config = uvicorn.Config(make_studio(session, token), server_header=False, log_level="warning")
    try:
        with socket.create_server(("127.0.0.1", port)) as line:  # it takes calls before the address is told
            tell(f"http://127.0.0.1:{port}/#{token}")
            uvicorn.Server(config).run(sockets=[line])
    finally:
        session.stop()
