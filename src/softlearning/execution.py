"""Run a flat list of tasks; what goes wrong is a value with a reason."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, cpu_count, delayed
from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Task:
    """One unit of work: a top-level function on plain data. `fold` is a fold number or "refit"."""

    specialist: str
    fold: int | str
    function: Callable[..., Any]
    args: tuple
    cost: float = 1.0


@dataclass(frozen=True)
class Failure:
    """What went wrong with a task, for the user to read."""

    specialist: str
    fold: int | str
    error: str
    seconds: float
    traceback: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a task gave: a value, or a Failure in its place."""

    specialist: str
    fold: int | str
    value: Any
    seconds: float


def run(tasks: Sequence[Task], *, n_jobs: int | None = None) -> list[Outcome | Failure]:
    """Outcomes in the order of the tasks; the longest are started first."""
    order = sorted(range(len(tasks)), key=lambda i: -tasks[i].cost)
    done: Iterable = Parallel(n_jobs=n_jobs)(delayed(attempt)(tasks[i]) for i in order)
    by_position = dict(zip(order, done))
    return [by_position[i] for i in range(len(tasks))]


def attempt(task: Task) -> Outcome | Failure:
    """Run one task on one thread; an exception becomes a Failure."""
    start = time.perf_counter()
    try:
        with threadpool_limits(1):
            value = task.function(*task.args)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return Failure(task.specialist, task.fold, text, time.perf_counter() - start, traceback.format_exc())
    return Outcome(task.specialist, task.fold, value, time.perf_counter() - start)


def cores(n_jobs: int | None) -> int:
    """How many cores n_jobs means here."""
    if n_jobs is None:
        return 1
    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)
