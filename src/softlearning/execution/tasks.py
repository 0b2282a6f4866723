"""Tasks and what becomes of them; a failure is a value with a reason."""

from __future__ import annotations

import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softlearning.execution.office import say
from softlearning.execution.plan import Plan, order

FOREVER = float("inf")


@dataclass(frozen=True)
class Task:
    """One unit of work: a top-level function on plain data. `fold` is a fold number or "refit".

    `cost` is relative and orders the list, under a deadline together with `family`; `limit` in seconds ends the task,
    None leaves it to the deadline.
    """

    specialist: str
    fold: int | str
    function: Callable[..., Any]
    args: tuple
    cost: float = 1.0
    limit: float | None = None
    family: str = ""

    def failed(self, error: str, seconds: float = 0.0, trace: str = "") -> Failure:
        return Failure(self.specialist, self.fold, error, seconds, trace)


@dataclass(frozen=True)
class Failure:
    """What went wrong with a task, for the user to read."""

    specialist: str
    fold: int | str
    error: str
    seconds: float
    traceback: str = ""

    @property
    def kind(self) -> str:
        return "skipped" if self.error.startswith(("left out:", "not begun:")) else "error"


@dataclass(frozen=True)
class Outcome:
    """What a task gave: a value, or a Failure in its place."""

    specialist: str
    fold: int | str
    value: Any
    seconds: float


Answers = Generator[tuple[int, Outcome | Failure], None, None]  # position of the task in the list, and its answer


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


@dataclass(frozen=True)
class Limits:
    """What tasks may use: bytes, and time until an instant of `time.monotonic`."""

    memory: int | None = None
    deadline: float | None = None

    def remaining(self) -> float:
        return FOREVER if self.deadline is None else self.deadline - time.monotonic()


def perform(task: Task, caught: type[BaseException] = BaseException) -> Outcome | Failure:
    """The outcome of a task, whatever it raises."""
    start = time.perf_counter()
    try:
        value = checked(task.function(*task.args))
    except caught as error:
        return task.failed(say(error), time.perf_counter() - start, traceback.format_exc(limit=-20))
    return Outcome(task.specialist, task.fold, value, time.perf_counter() - start)


def checked(value: Any) -> Any:
    """The value of a task; arrays with numbers that are not finite are an error."""
    for name, part in value.items() if isinstance(value, dict) else ():
        if isinstance(part, np.ndarray) and part.dtype.kind == "f" and not np.isfinite(part).all():
            raise ValueError(f"{name}: {(~np.isfinite(part)).sum()} of {part.size} numbers are not finite")
    return value


class Desk:
    """Hands out the tasks, takes in the answers, keeps the store and tells who watches.

    The costliest tasks come first; under a deadline whole specialists follow each other as in `budget`. When a task
    of a specialist has failed, its other tasks are not begun: it cannot be part of the blend any more.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        limits: Limits = Limits(),
        store: Any = None,
        watch: Callable | None = None,
        workers: int = 1,
        refits: int = 0,
    ):
        self.tasks = tasks
        self.limits = limits
        self.store = store
        self.watch = watch
        self.answered: dict[int, Outcome | Failure] = {}
        self.lost: dict[str, str] = {}  # specialist -> why none of its other tasks is begun
        self.stopped = ""
        self.lock = threading.Lock()  # joblib asks for the next task from its own threads
        self._restore()
        unanswered = [i for i in range(len(tasks)) if i not in self.answered]
        self.waiting = sorted(unanswered, key=lambda i: (tasks[i].cost, -i))  # the next is the last
        self.plan = None
        if limits.deadline is not None:
            costs = {task.specialist: task.cost for task in tasks}
            ranks = order(costs, {task.specialist: task.family or task.specialist for task in tasks})
            self.waiting = sorted(unanswered, key=lambda i: (-ranks.index(tasks[i].specialist), -i))
            self.plan = Plan(costs, Counter(tasks[i].specialist for i in unanswered), workers, refits)
        for i in reversed(self.waiting):
            self._tell("waiting", tasks[i])

    def _restore(self) -> None:
        for i, task in enumerate(self.tasks if self.store is not None else ()):
            if (value := self.store.get(task)) is not None:
                self.answered[i] = Outcome(task.specialist, task.fold, value, 0.0)
                self._tell("restored", task)

    def next(self) -> int | None:
        """The position of the next task to begin."""
        with self.lock:
            while self.waiting:
                if self.limits.remaining() <= 0:
                    self.stop("not begun: the time limit was reached")
                position = self.waiting.pop()
                task = self.tasks[position]
                if reason := self.stopped or self.lost.get(task.specialist) or self._refusal(task):
                    self.answered[position] = task.failed(reason)
                    self._tell("failed", task, error=reason)
                else:
                    self._tell("started", task)
                    return position
        return None

    def _refusal(self, task: Task) -> str:
        """Why a task cannot be begun in the time that remains."""
        if self.plan is None:
            return ""
        if reason := self.plan.refusal(task.specialist, self.limits.remaining()):
            self._lose(task.specialist, reason)
        else:
            self.plan.begun.add(task.specialist)
        return reason

    def _lose(self, specialist: str, reason: str) -> None:
        self.lost.setdefault(specialist, reason)
        if self.plan is not None:
            self.plan.give_up(specialist)

    def allowance(self, position: int) -> float | None:
        """Seconds for a task that starts now. While others wait it may take half of what remains: a task that hangs
        must not cost the others their turn."""
        task, remaining = self.tasks[position], self.limits.remaining()
        with self.lock:
            planned = FOREVER if self.plan is None else self.plan.allowance(task.specialist, remaining)
        least = min(remaining / 2 if self.waiting else remaining, FOREVER if task.limit is None else task.limit)
        least = min(least, planned)
        return None if least == FOREVER else max(least, 0.05)

    def again(self, position: int) -> None:
        """A task that was lost through no fault of its own waits once more."""
        self.waiting.append(position)

    def accept(self, position: int, answer: Outcome | Failure) -> None:
        task = self.tasks[position]
        with self.lock:
            self.answered[position] = answer
            if isinstance(answer, Failure):
                self._lose(task.specialist, f"not begun: fold {task.fold} failed")
                return self._tell("failed", task, answer.seconds, answer.error)
            if self.plan is not None:
                self.plan.note(task.specialist, answer.seconds)
        if self.store is not None:
            self.store.put(task, answer.value)
        self._tell("finished", task, answer.seconds)

    def stop(self, reason: str) -> None:
        """Begin nothing more."""
        self.stopped = self.stopped or reason

    def answers(self) -> list[Outcome | Failure]:
        return [self.answered[i] for i in range(len(self.tasks))]

    def _tell(self, kind: str, task: Task, seconds: float = 0.0, error: str = "") -> None:
        if self.watch is None:
            return
        done, total = len(self.answered), len(self.tasks)
        event = Event(kind, task.specialist, task.fold, seconds, done, total, error, task.cost)
        if self.watch(event):
            self.stop("not begun: the fit was asked to stop")
