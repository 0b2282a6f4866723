"""Which task next: the scheduler hands out tasks, takes in answers, keeps the checkpoint and tells who watches."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from softlearning.execution.plan import Plan, order
from softlearning.execution.tasks import Event, Failure, Outcome, Task

FOREVER = float("inf")


@dataclass(frozen=True)
class Job:
    """A task on its way to an engine, with what it may use.

    `seconds` is its time, counted from when it begins; `until` an instant of `time.monotonic` that it must not
    outlive even if it begins late; `memory` in bytes.
    """

    position: int
    task: Task
    seconds: float | None = None
    until: float | None = None
    memory: int | None = None


class Scheduler:
    """The costliest tasks come first; under a deadline whole specialists follow each other as in `plan`.

    When a task of a specialist has failed, its other tasks are cancelled: it cannot be part of the blend any more.
    The deadline is an instant of `time.monotonic`. Before it `reserve` seconds are for what follows, and `each` for
    every specialist that is begun, up to half of the time. The bytes of `memory` are for all tasks under way together.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        deadline: float | None = None,
        memory: int | None = None,
        store: Any = None,
        watch: Callable[[Event], Any] | None = None,
        refits: int = 0,
        reserve: float = 0.0,
        each: float = 0.0,
    ):
        self.tasks, self.store, self.watch = list(tasks), store, watch
        self.deadline, self.memory, self.workers, self.reserve, self.each = deadline, memory, 1, reserve, each
        self.answered: dict[int, Outcome | Failure] = {}
        self.lost: dict[str, tuple[str, str]] = {}  # specialist -> kind and reason why its other tasks are not begun
        self.stopped: tuple[str, str] | None = None
        self.lock = threading.RLock()  # joblib asks for the next task from its own threads
        self._restore()
        self.plan = self._planned(refits) if deadline is not None else None
        for i in reversed(self.waiting):
            self._tell("waiting", tasks[i])

    def _restore(self) -> None:
        for i, task in enumerate(self.tasks if self.store is not None else ()):
            if (value := self.store.get(task)) is not None:
                self.answered[i] = Outcome(task.specialist, task.fold, value, 0.0)
                self._tell("restored", task)
        unanswered = [i for i in range(len(self.tasks)) if i not in self.answered]
        self.waiting = sorted(unanswered, key=lambda i: (self.tasks[i].cost, -i))  # the next is the last

    def _planned(self, refits: int) -> Plan:
        costs = {task.specialist: task.cost for task in self.tasks}
        ranks = order(costs, {task.specialist: task.rank for task in self.tasks})
        self.waiting.sort(key=lambda i: (-ranks.index(self.tasks[i].specialist), -i))
        least = {task.specialist: task.least for task in self.tasks}
        return Plan(costs, Counter(self.tasks[i].specialist for i in self.waiting), self.workers, refits, least)

    def set_workers(self, workers: int) -> None:
        """How many tasks will be under way at a time."""
        self.workers = workers
        if self.plan is not None:
            self.plan.workers = workers

    def remaining(self) -> float:
        """Seconds for the tasks of this list."""
        if self.deadline is None or self.plan is None:
            return FOREVER
        left = self.deadline - time.monotonic() - self.reserve
        return left - min(self.each * len(self.plan.begun - self.plan.given_up), left / 2)

    def take(self) -> Job | None:
        """The next task to begin."""
        with self.lock:
            while self.waiting:
                if self.remaining() <= 0:
                    self.stop("skipped", "the time limit was reached")
                position = self.waiting.pop()
                task = self.tasks[position] = self._sized(self.tasks[position])
                if refused := self.stopped or self.lost.get(task.specialist) or self._refusal(task):
                    self.answered[position] = task.failed(*refused)
                    self._tell("failed", task, error=refused[1])
                else:
                    self._tell("started", task)
                    memory = self.memory and self.memory // self.workers
                    return Job(position, task, self._allowance(task), self.deadline, memory)
        return None

    def _sized(self, task: Task) -> Task:
        """The task as large as the time allows."""
        if self.plan is None or task.shrink is None or self.stopped or task.specialist in self.lost:
            return task
        share = self.plan.share(task.specialist, self.remaining())
        return task if share == 1 else replace(task, args=task.shrink(share), cost=share * task.cost, shrink=None)

    def _refusal(self, task: Task) -> tuple[str, str] | None:
        """Why a task cannot be begun in the time that remains."""
        if self.plan is None:
            return None
        if reason := self.plan.refusal(task.specialist, self.remaining()):
            self._lose(task.specialist, "skipped", reason)
            return "skipped", reason
        self.plan.begun.add(task.specialist)
        return None

    def _lose(self, specialist: str, kind: str, reason: str) -> None:
        self.lost.setdefault(specialist, (kind, reason))
        if self.plan is not None:
            self.plan.give_up(specialist)

    def _allowance(self, task: Task) -> float | None:
        """Seconds for a task. While others wait it may take half of what remains: a task that hangs must not cost the
        others their turn."""
        remaining = self.remaining()
        planned = FOREVER if self.plan is None else self.plan.allowance(task.specialist, remaining)
        own = FOREVER if task.limit is None else task.limit
        least = min(remaining / 2 if self.waiting else remaining, own, planned)
        return None if least == FOREVER else max(least, 0.05)

    def again(self, positions: Sequence[int]) -> None:
        """Tasks that were lost through no fault of their own wait once more."""
        with self.lock:
            self.waiting.extend(positions)

    def accept(self, position: int, answer: Outcome | Failure) -> None:
        """Take in what became of a task."""
        task = self.tasks[position]
        with self.lock:
            self.answered[position] = answer
            if isinstance(answer, Failure):
                if self.plan is not None and answer.kind == "timeout":
                    self.plan.note_late(task.specialist, answer.seconds)
                self._lose(task.specialist, "cancelled", f"fold {task.fold} failed")
                return self._tell("failed", task, answer.seconds, answer.error)
            if self.plan is not None:
                self.plan.note(task.specialist, answer.seconds)
        if self.store is not None:
            self.store.put(task, answer.value)
        self._tell("finished", task, answer.seconds)

    def stop(self, kind: str, reason: str) -> None:
        """Begin nothing more."""
        self.stopped = self.stopped or (kind, reason)

    def answers(self) -> list[Outcome | Failure]:
        """In the order of the tasks."""
        return [self.answered[i] for i in range(len(self.tasks))]

    def _tell(self, kind: str, task: Task, seconds: float = 0.0, error: str = "") -> None:
        if self.watch is None:
            return
        done, total = len(self.answered), len(self.tasks)
        if self.watch(Event(kind, task.specialist, task.fold, seconds, done, total, error, task.cost)):
            self.stop("cancelled", "the fit was asked to stop")
