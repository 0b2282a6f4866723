"""Tasks and what becomes of them: a failure is a value with a kind and a reason."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

FAILED = frozenset({"error", "timeout", "memory", "crash"})  # kinds of a task that ran and did not end well
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
    if size < 1:
        raise ValueError(f"{amount!r} is no amount of memory: give bytes, as 2e9, or a text, as '2 GB' or '512 MiB'")
    return size
