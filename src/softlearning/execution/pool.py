"""One pool of disposable processes for Linux, macOS and Windows: a worker may die, hang or grow and harm nobody.

Processes start by the `spawn` method of the standard library, in an interpreter that knows nothing of the driver's
script: scripts without a `__main__` guard and notebooks work. How many are started depends on the system:

    Linux             one server, which imports the heavy libraries once and then forks the workers
    macOS, Windows    each worker imports them itself, since forks are unsafe or unknown there

A worker answers several calls, and one that failed is ended; on Linux a call that is not trusted is its last.

The environment variable SOFTLEARNING_START=spawn chooses the second way everywhere. The standard library's own
"forkserver" is one for the whole program: what it has imported would be imported for the user's processes too.

    driver --- a pipe per worker: call, answer ---> worker
       \\------ a pipe: the worker's end of that pipe ---> server --- fork ---> worker

Modules of the user are imported by each worker that needs them, so that an edited one is never mistaken for the old.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import send_handle
from pathlib import Path
from typing import Any

import psutil

from softlearning.execution import worker
from softlearning.execution.tasks import Job, say

PRELOAD = (
    *("numpy", "scipy.linalg", "scipy.optimize", "pandas", "sklearn.ensemble", "sklearn.linear_model", "sklearn.svm"),
    *("sklearn.neighbors", "sklearn.neural_network", "sklearn.naive_bayes", "sklearn.discriminant_analysis"),
    *("sklearn.calibration", "sklearn.pipeline", "lightgbm", "catboost"),
)
PATIENCE = 120.0  # seconds for a worker to come up
GRACE = 0.25  # seconds between the watchdog inside a worker and the end from outside
LARGE = 500 * 2**20  # bytes that a worker holds between two calls; one that holds more is ended
STARVED = (-9, -6)  # exit codes of who gets no more memory: the kernel kills, and native code aborts


class CannotStart(RuntimeError):
    """No worker process can be started here."""


def forks() -> bool:
    """Whether a server forks the workers: libraries of macOS do not survive a fork, and Windows has none."""
    forced = os.environ.get("SOFTLEARNING_START") == "spawn"
    return sys.platform == "linux" and hasattr(os, "fork") and not forced


# ------------------------------------------------------------------------------------------------ starting processes

_lock = threading.RLock()


def launch(target: Callable, *args: Any) -> Any:
    """Start a process in a fresh interpreter; it ends with this one."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=args, daemon=True)
    try:
        with _lock, unnoticed():
            process.start()
    except OSError as error:
        reason = "the working folder was deleted" if isinstance(error, FileNotFoundError) else error
        raise CannotStart(f"no worker process can be started ({reason})") from error
    return process


@contextlib.contextmanager
def unnoticed() -> Iterator[None]:
    """Start a process that hears nothing of what is special about this one.

    Its `__main__` is hidden, else the new process would run the user's script once more. A daemonic process may start
    others, which is forbidden lest they stay when it is ended: ours notice that themselves. A worker of joblib has a
    start method of its own, which a fresh interpreter does not know; and where the user has chosen none yet, that
    stays so.
    """
    main, me = sys.modules["__main__"], multiprocessing.current_process()
    method = multiprocessing.get_start_method(allow_none=True)
    kept: dict[str, Any] = {name: vars(main)[name] for name in ("__file__", "__spec__") if name in vars(main)}
    daemon, me.daemon = me.daemon, False
    vars(main).pop("__file__", None)
    main.__spec__ = None
    if method not in multiprocessing.get_all_start_methods():
        multiprocessing.set_start_method("spawn", force=True)
    try:
        yield
    finally:
        vars(main).update(kept)
        me.daemon = daemon
        multiprocessing.set_start_method(method, force=True)


class Server:
    """The driver's end of the process that forks."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.requests, theirs = Pipe()
        ours = [name for name in sorted(sys.modules) if name.startswith("softlearning.")]
        with theirs:
            self.process = launch(worker.serve, theirs, [*PRELOAD, *ours])

    def ready(self) -> bool:
        """Whether it has come up."""
        return self.requests.poll()

    def usable(self) -> bool:
        """Whether it lives and is this process's own, not that of the process that we were forked from."""
        return self.owner == os.getpid() and self.process.is_alive()

    def fork(self, connection: Connection) -> bool:
        """Have a worker forked that answers by this connection; False when the server is no longer there.

        One that is dying closes its pipes a little before it is seen to be dead: it is waited for.
        """
        try:
            send_handle(self.requests, connection.fileno(), self.process.pid)
        except OSError:
            self.process.kill()
            self.process.join(PATIENCE)
            return False
        return True


_server: Server | None = None


def server() -> Server:
    """The server of this process, started if need be; it is not waited for."""
    global _server
    with _lock:
        if _server is None or not _server.usable():
            _server = Server()
        return _server


def started() -> bool:
    """Whether the server has been started."""
    return _server is not None and _server.usable()


def warm() -> bool:
    """Whether a call would begin at once; begins to start what is needed for that."""
    return not forks() or server().ready()


def after_fork() -> None:
    """In a child of the driver: its server is the driver's, and a lock may have been held."""
    global _server, _lock
    _server, _lock = None, threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)


# ----------------------------------------------------------------------------------------------------------- workers


class Worker:
    """A worker process as the driver sees it, with the call that it is given."""

    def __init__(self) -> None:
        self.connection, theirs = Pipe()
        self.process: Any = None  # a child of ours, where no server forks
        self.handle: psutil.Process | None = None  # known as soon as it is ready
        self.start: float | None = None  # of the call, an instant of `time.monotonic` as is the end
        self.end = time.monotonic() + PATIENCE
        self.over = ""  # "timeout" or "memory" when it was ended for that
        with theirs:
            if forks():
                server().fork(theirs) or server().fork(theirs)
            else:
                self.process = launch(worker.work, theirs)

    def give(self, call: bytes, job: Job, trace: str) -> None:
        """Have it answer a pickled (function, args), begun when it is ready, within the limits of a job.

        `trace` is a file for the traceback of a crash.
        """
        self.call, self.job, self.trace = call, job, trace
        if self.handle is not None:
            self._begin()
        else:
            self.end = min(self.end, job.until + GRACE)

    def _begin(self) -> None:
        self.start = time.monotonic()
        self.limit = min(max(self.job.until - self.start, 0.05), self.job.seconds)
        self.end = self.start + self.limit + GRACE
        self.before = self.held() if self.watched() else 0
        try:
            folder = os.getcwd()
        except OSError:  # it was deleted
            folder = os.path.expanduser("~")
        with contextlib.suppress(OSError):  # a dead worker shows when it is heard
            self.connection.send((list(sys.path), list(sys.argv), folder, self.limit, self.job.memory, self.trace))
            self.connection.send_bytes(self.call)

    def hear(self) -> tuple | None:
        """What became of the call: ("value", value), (kind, reason, traceback), ("lost",) or None for not yet."""
        try:
            said = self.connection.recv()
        except (EOFError, OSError):
            said = ("ended", self._exit_code())
        except Exception as error:  # a value of a class that cannot be made here
            said = ("error", f"its result cannot be read: {say(error)}", "")
        if said[0] == "ready":
            with contextlib.suppress(psutil.Error):
                self.handle = psutil.Process(said[1])
                self._begin()
            return None
        return self._ended(said[1]) if said[0] == "ended" else said

    def _exit_code(self) -> int | None:
        if self.process is None:
            return None
        self.process.join(5)
        if self.process.exitcode and self.handle is not None:
            worker.end_marked(self.handle.pid)
        return self.process.exitcode

    def _ended(self, code: int | None) -> tuple:
        """Kind, reason and traceback of the end of a process that gave no answer."""
        if self.start is None:
            late = ("timeout", "TimeoutError: its process did not come up in time", "")
            return late if self.over else ("lost",)
        if self.over == "timeout" or time.monotonic() - self.start >= self.limit:
            return "timeout", f"TimeoutError: ended after {self.limit:.1f} s", self._crash()
        if self.over == "memory":
            return "memory", f"MemoryError: grew by more than {self.job.memory} bytes", self._crash()
        if code is None:
            return ("lost",)
        starved = self.job.memory is not None and code in STARVED
        under = "" if self.job.memory is None else f" (under a memory limit of {self.job.memory / 2**20:,.0f} MiB)"
        return "memory" if starved else "crash", death(code) + under, self._crash()

    def _crash(self) -> str:
        """Where the process was when it died, as far as it could tell."""
        try:
            text = Path(self.trace).read_text(errors="replace")[:20_000]
        except OSError:
            return ""
        return text.split("\nExtension modules")[0][-4000:]

    def lasts(self) -> bool:
        """Whether it can be given another call: it lives, and has kept little of the last."""
        with contextlib.suppress(psutil.Error, AttributeError):
            return not self.connection.poll() and self.handle.memory_info().rss < LARGE  # type: ignore[union-attr]
        return False

    def watched(self) -> bool:
        """Whether its memory must be looked at, since the system sets no cap."""
        return self.job.memory is not None and not worker.CAPPED

    def held(self) -> int:
        """Resident bytes of the worker and all that it started."""
        total = 0
        with contextlib.suppress(psutil.Error):
            for process in (self.handle, *self.handle.children(recursive=True)) if self.handle else ():
                total += process.memory_info().rss
        return total

    def end_if_over(self) -> None:
        """End it when it has used up what it may; that it has ended is still to be heard."""
        if not self.over and time.monotonic() > self.end:
            self.over = "timeout"
            self.stop()
        elif not self.over and self.start and self.watched() and self.held() - self.before > (self.job.memory or 0):
            self.over = "memory"
            self.stop()

    def stop(self) -> None:
        """End it with all that it started."""
        if self.handle is not None:
            worker.end_tree(self.handle)
        else:  # it never came up
            (self.process or server().process).kill()

    def close(self) -> None:
        """Leave nothing of it: a worker whose connection is closed ends by itself."""
        self.connection.close()
        if self.process is not None:
            self.process.join(2)
            self.stop()
            self.process.join(5)


def death(code: int) -> str:
    """Why a process ended, in words."""
    with contextlib.suppress(ValueError):
        if code < 0:
            return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with exit code {code} and no result"
