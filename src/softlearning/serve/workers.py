"""Processes that serve: one loaded model, forked into workers, watched, and ended within five seconds.

The parent loads the model, opens the port and forks: the workers share the model's memory, which nobody writes to. A
worker that dies, by a fault in native code say, is replaced. Where there is no safe fork (macOS, Windows), one process
serves.
"""

from __future__ import annotations

import ctypes
import gc
import ipaddress
import logging
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import uvicorn

from softlearning.serve.app import LOOPBACK, make_app
from softlearning.serve.door import Door, protocol
from softlearning.serve.limits import Limits
from softlearning.serve.metrics import Counters

log = logging.getLogger("softlearning.serve")
GRACE = 2  # seconds for answers under way when the server is to end
PATIENCE = 3.5  # seconds until a worker that did not end is ended
TOO_OFTEN = 5  # deaths in a row, each within a second of the start
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # names of glibc's malloc.h


def serve_model(
    model,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    token: bytes | None = None,
    hosts: Collection[str] = (),
    limits: Limits | None = None,
) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    model : a fitted model; it is only read
    host, port : where to listen; beyond the loopback address a token is required
    workers : processes that share the model
    token : what clients must send as `Authorization: Bearer TOKEN`
    hosts : further names that clients may call the server by; "*" allows any
    limits : what a client may cost, each worker for itself
    """
    if token is None and not is_loopback(host):
        raise ValueError(f"{host} can be reached by others: a token is required (--token-file)")
    _log_to_stderr()
    _give_memory_back()
    site = Site(model, limits or Limits(), token, {*LOOPBACK, host, *hosts}, Counters(workers))
    with _listen(host, port) as line:
        if sys.platform == "linux":
            supervise(site, line, workers)
        else:
            if workers > 1:
                log.warning("this system cannot fork safely: one process serves")
            site.serve(line, 0, 1)


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise OSError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def _log_to_stderr() -> None:
    """One line per event, on standard error, unless the program has set up its own log."""
    if not log.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)


def _give_memory_back() -> None:
    """Have the C library hand the memory of every ended body back to the system.

    By itself glibc raises its thresholds to the largest block that was ever freed, up to 32 MB: from then on bodies lie
    in its heap, which long-lived small blocks keep from shrinking, and the process stays as large as its worst moment.
    """
    with suppress(OSError, AttributeError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        for name, value in ((M_TRIM_THRESHOLD, 1 << 17), (M_MMAP_THRESHOLD, 1 << 17), (M_ARENA_MAX, 2)):
            mallopt(name, value)


class Site:
    """What every worker serves."""

    def __init__(self, model, limits: Limits, token: bytes | None, hosts: Collection[str], counters: Counters):
        self.model, self.limits, self.token, self.hosts, self.counters = model, limits, token, hosts, counters

    def server(self, worker: int, workers: int) -> uvicorn.Server:
        """The server of one worker."""
        self.counters.worker = worker
        door = Door(self.limits, self.counters)
        threads = max(1, (os.cpu_count() or 1) // workers)
        shared: dict[str, Any] = {"token": self.token, "hosts": self.hosts, "counters": self.counters, "door": door}
        app = make_app(self.model, self.limits, threads=threads, **shared)
        return uvicorn.Server(
            uvicorn.Config(
                app,
                http=protocol(door),
                ws="none",
                lifespan="off",
                proxy_headers=False,  # whoever may connect could name any address
                server_header=False,
                timeout_keep_alive=max(1, round(self.limits.head_seconds)),
                timeout_graceful_shutdown=GRACE,
                access_log=False,
                log_config=None,
                log_level="critical",
            )
        )

    def serve(self, line: socket.socket, worker: int, workers: int, parent: int | None = None) -> None:
        """Serve in this process; end when the parent's end of a pipe closes."""
        server = self.server(worker, workers)
        if parent is not None:
            threading.Thread(target=_end_with, args=(parent, server), daemon=True).start()
        server.run(sockets=[line])


def _end_with(pipe: int, server: uvicorn.Server) -> None:
    os.read(pipe, 1)
    server.should_exit = True
    time.sleep(PATIENCE)
    os._exit(1)


# -- the parent -------------------------------------------------------------------------------------------------------


def supervise(site: Site, line: socket.socket, workers: int) -> None:
    """Keep so many workers running until a signal says to end; then end them all within five seconds."""
    told: list[int] = []
    before = {s: signal.signal(s, lambda number, _: told.append(number)) for s in (signal.SIGTERM, signal.SIGINT)}
    ours, theirs = os.pipe()
    gc.collect()
    gc.freeze()  # a collection would write to pages that the workers share
    gc.collect()  # counts what is left, nothing: otherwise no full collection comes before many more objects
    running = {}
    try:
        running = {_fork(site, line, k, workers, (ours, theirs)): (k, time.monotonic()) for k in range(workers)}
        deaths = 0
        while not told:
            time.sleep(0.1)
            for pid, status in _ended(running):
                worker, start = running.pop(pid)
                deaths = deaths + 1 if time.monotonic() - start < 1 else 0
                log.error("worker %d was ended by %s", worker, _cause(status))
                if deaths >= TOO_OFTEN:
                    raise RuntimeError("the workers die as soon as they start: the log says of what")
                site.counters.add("restarts")
                running[_fork(site, line, worker, workers, (ours, theirs))] = worker, time.monotonic()
    finally:
        os.close(theirs)  # the workers read from the other end, and end with it
        _wait_for_all(running)
        os.close(ours)
        gc.unfreeze()
        for number, handler in before.items():
            signal.signal(number, handler)


def _fork(site: Site, line: socket.socket, worker: int, workers: int, pipe: tuple[int, int]) -> int:
    """A new worker; it ends when the parent is gone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the threads of BLAS, which survive a fork
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # the server listens to them while it runs
        os.close(pipe[1])
        site.serve(line, worker, workers, pipe[0])
        code = 0
    except Exception as error:
        log.error("worker %d cannot serve: %s: %s", worker, type(error).__name__, error)
    finally:
        os._exit(code)


def _ended(running: Collection[int]) -> list[tuple[int, int]]:
    found = ((pid, os.waitpid(pid, os.WNOHANG)) for pid in running)
    return [(pid, status) for pid, (done, status) in found if done]


def _cause(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit code {os.waitstatus_to_exitcode(status)}"


def _wait_for_all(running: dict[int, tuple[int, float]]) -> None:
    """Until all workers have ended, or were ended."""
    until = time.monotonic() + PATIENCE
    while running and time.monotonic() < until:
        for pid, _ in _ended(running):
            del running[pid]
        time.sleep(0.05)
    for pid in running:
        log.error("a worker did not end in %g s and was ended", PATIENCE)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
