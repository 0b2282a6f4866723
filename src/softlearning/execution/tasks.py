"""Tasks, how one is performed, and what becomes of it: a failure is a value with a kind and a reason."""

from __future__ import annotations

import contextlib
import re
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

FAILED = frozenset({"error", "timeout", "memory", "crash"})  # kinds of a task that ran and did not end well
FOREVER = float("inf")
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@dataclass(frozen=True)
class Task:
    """One unit of work: a top-level function on plain data. `fold` is a fold number or "refit".

    `cost` is the expected seconds on this machine; without a deadline the costliest tasks are started first. Under a
    deadline specialists follow each other by `rank`, the smallest first. `limit` in seconds ends the task, None leaves
    that to the deadline. `shrink` gives the arguments of the same task for a share of its seconds, where time is short;
    `least` is the smallest. One that is `trusted` may run in the driver's process while others start, and in a process
    that others use after it.
    """

    specialist: str
    fold: int | str
    function: Callable[..., Any]
    args: tuple
    cost: float = 1.0
    limit: float | None = None
    rank: float = 0.0
    shrink: Callable[[float], tuple] | None = None
    least: float = 0.0
    trusted: bool = False

    def failed(self, kind: str, error: str, seconds: float = 0.0, trace: str = "") -> Failure:
        """The Failure of this task."""
        return Failure(self.specialist, self.fold, error, seconds, trace, kind)


@dataclass(frozen=True)
class Job:
    """A task on its way to an engine, with what it may use.

    `seconds` is its time, counted from when it begins; `until` an instant of `time.monotonic` that it must not
    outlive even if it begins late; `memory` in bytes.
    """

    position: int
    task: Task
    seconds: float = FOREVER
    until: float = FOREVER
    memory: int | None = None


@dataclass(frozen=True)
class Failure:
    """What went wrong with a task, for the user to read.

    kind : "error" (it raised), "timeout", "memory", "crash" (its process died); or it was never begun: "skipped" (there
        was no time for it), "cancelled" (its result was no longer of use).
    """

    specialist: str
    fold: int | str
    error: str
    seconds: float
    traceback: str = ""
    kind: str = "error"


@dataclass(frozen=True)
class Outcome:
    """What a task gave."""

    specialist: str
    fold: int | str
    value: Any
    seconds: float


@dataclass(frozen=True)
class Event:
    """News for who watches: "waiting", "started", "finished", "restored" or "failed"; a true answer asks to stop."""

    kind: str
    specialist: str
    fold: int | str
    seconds: float
    done: int
    total: int
    error: str = ""
    cost: float = 1.0


def perform(task: Task, caught: type[BaseException] = BaseException) -> Outcome | Failure:
    """The outcome of a task, whatever it raises."""
    start = time.perf_counter()
    try:
        value = checked(task.function(*task.args))
    except caught as error:
        kind = "memory" if isinstance(error, MemoryError) else "error"
        return task.failed(kind, say(error), time.perf_counter() - start, traceback.format_exc(limit=-20))
    return Outcome(task.specialist, task.fold, value, time.perf_counter() - start)


def attempt(task: Task) -> Outcome | Failure:
    """Run one task in this process, on one thread; an exception, which Ctrl-C is not, becomes a Failure."""
    with one_thread, quiet():
        return perform(task, Exception)


def checked(value: Any) -> Any:
    """The value of a task; arrays with numbers that are not finite are an error."""
    for name, part in value.items() if isinstance(value, dict) else ():
        if isinstance(part, np.ndarray) and part.dtype.kind == "f" and not np.isfinite(part).all():
            raise ValueError(f"{name}: {(~np.isfinite(part)).sum()} of {part.size} numbers are not finite")
    return value


def say(error: BaseException) -> str:
    """Type and message, even when the message itself cannot be made."""
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be printed)"
    return f"{type(error).__name__}: {text}"[:2000].rstrip(": ")


def parse_bytes(amount: float | str | None) -> int | None:
    """A number of bytes from 2_000_000_000, 2e9, "2 GB" or "1.5 GiB"; None stays None."""
    if amount is None:
        return None
    found = re.fullmatch(r"\s*([\d_.]+(?:e\+?\d+)?)\s*([kmgt]?)(i?)b?\s*", str(amount).lower())
    try:
        if isinstance(amount, bool) or found is None:
            raise ValueError
        unit = UNITS[found[2]] if not found[3] else 1024 ** (" kmgt".index(found[2] or " "))
        size = int(float(found[1]) * unit)
    except (ValueError, OverflowError):
        size = 0
    if not 1 <= size < 2**60:  # the system counts in 64 bits, beyond what it already holds
        raise ValueError(f"{amount!r} is no amount of memory: give bytes, as 2e9, or a text, as '2 GB' or '512 MiB'")
    return size


# -------------------------------------------------- what belongs to a process, set without harm to its other threads


@cache
def controller() -> ThreadpoolController:
    """The thread pools of the libraries that are loaded; looking them up takes milliseconds, so it is done once."""
    return ThreadpoolController()


class OneThread:
    """A context in which numerical libraries use one thread: sums in another order differ in the last bits.

    The setting belongs to the process: of several threads inside, the last restores it.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.limit: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.limit = controller().limit(limits=1)
                self.limit.__enter__()
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limit.__exit__(None, None, None)


one_thread = OneThread()


class QuietThreads(threading.local):
    """Stands in for the pattern of a warning filter, and matches in threads that asked for quiet alone."""

    depth = 0

    def match(self, _: str) -> bool:
        """Called by the warnings machinery for every warning."""
        return self.depth > 0

    @property
    def pattern(self) -> str:
        """The same as a text, for scikit-learn, which copies filters for its own workers."""
        return ".*" if self.depth > 0 else "(?!)"


_quiet = QuietThreads()
_FILTER = ("ignore", _quiet, Warning, None, 0)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No warnings from this thread; those of other threads go where they always go.

    `warnings.catch_warnings` would change the filters of all threads, and restore them in any order.
    """
    warnings.filters.insert(0, _FILTER)  # type: ignore[attr-defined]
    _quiet.depth += 1
    try:
        yield
    finally:
        _quiet.depth -= 1
        with contextlib.suppress(ValueError):  # a `catch_warnings` of another thread has taken it away
            warnings.filters.remove(_FILTER)  # type: ignore[attr-defined]
