"""Which task next, and under a time limit which to begin at all.

The scheduler hands out tasks, takes in answers, keeps the checkpoint and tells who watches. The costliest tasks come
first. Under a limit a `Plan` has whole specialists follow each other in the order of their rank, if they can be
finished; the cheapest of the first few leads: soon there is something to predict with, and it is known how fast this
machine is.

A specialist counts only when all its folds and its refit are done, so the question before each task is whether all
that is left of its specialist can be done in the time that remains. Seconds are those that were expected, corrected by
how wrong the expectations were so far; once a fold of a specialist has finished, its own seconds count.

One that would take more than its portion of the time is not skipped but takes a smaller task, if it can: it learns from
fewer rows, the same number in all its folds.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import Any

from softlearning.execution.tasks import FOREVER, Event, Failure, Job, Outcome, Task

UNSURE = 5.0  # an expectation may be wrong by this factor before a specialist is skipped for it
CORRECTED = 2.0  # the same once others have shown how wrong expectations are on this machine
PORTION = 0.25  # of the time that remains, for one specialist while others wait
LEADERS = 4  # specialists by rank, of which the cheapest is begun first
LEAST = 0.1  # of its seconds, even beyond its portion; a specialist for which there is no time for that is skipped
SLACK = 1.5  # folds differ: a task may take so much longer than its share of the time


@dataclass
class Plan:
    """The tasks of each specialist, against the time that remains; where that is infinite all are begun as they are.

    costs : expected seconds of one task of each specialist.
    tasks : how many tasks each has.
    workers : how many tasks run at once.
    refits : tasks of the same size that each specialist needs later.
    least : the smallest share of its seconds that a task of each specialist can be given, where that is not small.
    """

    costs: Mapping[str, float]
    tasks: Mapping[str, int]
    workers: int = 1
    refits: int = 0
    least: Mapping[str, float] = field(default_factory=dict)
    finished: dict[str, list[float]] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    given_up: set[str] = field(default_factory=set)  # they will not be finished, and are owed nothing more
    shares: dict[str, float] = field(default_factory=dict)
    late: list[float] = field(default_factory=list)  # how much longer than expected those took that were ended
    allowed: dict[str, float] = field(default_factory=dict)  # after which a task of theirs is ended

    def note(self, name: str, seconds: float) -> None:
        """A task of a specialist has finished."""
        self.finished.setdefault(name, []).append(seconds)

    def note_late(self, name: str, seconds: float) -> None:
        """A task was ended by the clock: it would have taken at least so long."""
        self.late.append(seconds / max(self._cost(name), 1e-9))

    def seconds(self, name: str) -> float:
        """Expected seconds of one task."""
        if own := self.finished.get(name):
            return fmean(own)
        ratios = [time / self._cost(n) for n, times in self.finished.items() if self._cost(n) > 0 for time in times]
        ratios += self.late
        return self._cost(name) * (median(ratios) if ratios else 1.0)

    def _cost(self, name: str) -> float:
        return self.costs[name] * self.shares.get(name, 1.0)

    def share(self, name: str, remaining: float) -> float:
        """How large a task of a specialist may be, 1 for all of it; the same for all its tasks."""
        if name not in self.shares and name not in self.finished:
            work = self.workers * remaining / (self.left(name) + self.refits)
            waiting = set(self.tasks) - self.begun - self.given_up - {name}
            clock = max(remaining - self.owed(name), 0.0) / SLACK / max(self.rounds(name), 1)
            needed, least = max(self.seconds(name), 1e-9), max(LEAST, self.least.get(name, 0.0))
            fits = min(max(PORTION * work, least * needed) if waiting else work, clock) / needed
            self.shares[name] = min(max(fits, least), 1.0)
        return self.shares.get(name, 1.0)

    def left(self, name: str) -> int:
        """Tasks of a specialist that have not finished."""
        return self.tasks[name] - len(self.finished.get(name, ()))

    def rounds(self, name: str) -> int:
        """How often all workers are busy with a specialist until it is done."""
        return math.ceil(self.left(name) / self.workers) + math.ceil(self.refits / self.workers)

    def needs(self, name: str) -> float:
        """Seconds until a specialist is done, with all workers at its service."""
        return self.rounds(name) * self.seconds(name)

    def owed(self, name: str) -> float:
        """Seconds that the other specialists under way still need."""
        others = self.begun - self.given_up - {name}
        each = {n: min(self.seconds(n), self.allowed.get(n, FOREVER)) for n in others}
        return sum((self.left(n) + self.refits) * each[n] for n in others) / self.workers

    def refusal(self, name: str, remaining: float) -> str:
        """Why the next task of a specialist is not begun; empty when it is."""
        sure = name in self.finished or self.shares.get(name, 1.0) < 1
        factor = 1.0 if sure else CORRECTED if self.finished else UNSURE
        needed, free = self.needs(name), remaining - self.owed(name)
        if needed <= factor * free:
            return ""
        return f"needs about {rounded(needed)} s, {rounded(max(free, 0.0))} s remain"

    def allowance(self, name: str, remaining: float) -> float:
        """Seconds for one task: if it takes longer, not all of its specialist can be finished."""
        share = max(remaining - self.owed(name), 0.1 * remaining) / max(self.rounds(name), 1)
        self.allowed[name] = min(remaining, SLACK * share)
        return self.allowed[name]


def rounded(seconds: float) -> str:
    """Seconds as one would say them."""
    return f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.2g}"


def order(costs: Mapping[str, float], ranks: Mapping[str, float] | None = None) -> list[str]:
    """Specialists by rank, the smallest first; among equals the cheapest first, and of the first few in any case."""
    names = sorted(costs, key=lambda name: ((ranks or {}).get(name, 0.0), costs[name], name))
    lead = names[:LEADERS].index(min(names[:LEADERS], key=costs.__getitem__)) if names else 0
    return [*names[lead : lead + 1], *names[:lead], *names[lead + 1 :]]


class Scheduler:
    """The tasks of a list and how far they have come.

    When a task of a specialist has failed, its other tasks are cancelled: it cannot be part of the blend any more.

    Parameters
    ----------
    deadline : an instant of `time.monotonic`. Those that cannot be finished are skipped, and time is kept for as many
        `refits` of each specialist, for `reserve` seconds of other work, and for `each` seconds of it for every
        specialist that is begun, up to half of the time there is now.
    memory : the bytes that the tasks under way may take together, beyond what their processes hold when they
        begin.
    store : gives back what was finished before and keeps what finishes now.
    watch : hears of every event.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        deadline: float | None = None,
        memory: int | None = None,
        store: Any = None,
        watch: Callable[[Event], Any] | None = None,
        refits: int = 0,
        reserve: float = 0.0,
        each: float = 0.0,
    ):
        self.tasks, self.store, self.watch = list(tasks), store, watch
        self.deadline = FOREVER if deadline is None else deadline
        self.memory, self.reserve, self.each = memory, reserve, each
        self.most_kept = max(self.deadline - time.monotonic() - reserve, 0.0) / 2
        self.answered: dict[int, Outcome | Failure] = {}
        self.lost: dict[str, tuple[str, str]] = {}  # specialist -> kind and reason why its other tasks are not begun
        self.stopped: tuple[str, str] | None = None
        self.lock = threading.RLock()  # joblib asks for the next task from its own threads
        self._restore()
        self.plan = self._planned(refits)
        for i in reversed(self.waiting):
            self._tell("waiting", tasks[i])

    def _restore(self) -> None:
        for i, task in enumerate(self.tasks if self.store is not None else ()):
            if (value := self.store.get(task)) is not None:
                self.answered[i] = Outcome(task.specialist, task.fold, value, 0.0)
                self._tell("restored", task)

    def _planned(self, refits: int) -> Plan:
        costs = {task.specialist: task.cost for task in self.tasks}
        ranks = order(costs, {task.specialist: task.rank for task in self.tasks})
        urgency = lambda t: t.cost if self.deadline == FOREVER else -ranks.index(t.specialist)
        unanswered = [i for i in range(len(self.tasks)) if i not in self.answered]
        self.waiting = sorted(unanswered, key=lambda i: (urgency(self.tasks[i]), -i))  # the next is the last
        least = {task.specialist: task.least for task in self.tasks}
        return Plan(costs, Counter(self.tasks[i].specialist for i in unanswered), refits=refits, least=least)

    def remaining(self) -> float:
        """Seconds for the tasks of this list."""
        left = self.deadline - time.monotonic() - self.reserve
        return left - min(self.each * len(self.plan.begun - self.plan.given_up), self.most_kept)

    def take(self) -> Job | None:
        """The next task to begin."""
        with self.lock:
            while self.waiting:
                if self.remaining() <= 0:
                    self.stopped = self.stopped or ("skipped", "the time limit was reached")
                position = self.waiting.pop()
                task = self.tasks[position] = self._sized(self.tasks[position])
                if refused := self.stopped or self.lost.get(task.specialist) or self._refusal(task):
                    self.answered[position] = task.failed(*refused)
                    self._tell("failed", task, error=refused[1])
                else:
                    self._tell("started", task)
                    memory = self.memory and self.memory // self.plan.workers
                    return Job(position, task, self._allowance(task), self.deadline, memory)
        return None

    def _sized(self, task: Task) -> Task:
        """The task as large as the time allows."""
        if task.shrink is None or self.stopped or task.specialist in self.lost:
            return task
        share = self.plan.share(task.specialist, self.remaining())
        return task if share == 1 else replace(task, args=task.shrink(share), cost=share * task.cost, shrink=None)

    def _refusal(self, task: Task) -> tuple[str, str] | None:
        """Why a task cannot be begun in the time that remains."""
        if reason := self.plan.refusal(task.specialist, self.remaining()):
            self._lose(task.specialist, "skipped", reason)
            return "skipped", reason
        self.plan.begun.add(task.specialist)
        return None

    def _lose(self, specialist: str, kind: str, reason: str) -> None:
        self.lost.setdefault(specialist, (kind, reason))
        self.plan.given_up.add(specialist)

    def _allowance(self, task: Task) -> float:
        """Seconds for a task. While others wait it may take half of what remains: a task that hangs must not cost the
        others their turn."""
        remaining = self.remaining()
        planned = self.plan.allowance(task.specialist, remaining)
        own = FOREVER if task.limit is None else task.limit
        return max(min(remaining / 2 if self.waiting else remaining, own, planned), 0.05)

    def accept(self, position: int, answer: Outcome | Failure) -> None:
        """Take in what became of a task."""
        task = self.tasks[position]
        with self.lock:
            self.answered[position] = answer
            if isinstance(answer, Failure):
                if answer.kind == "timeout":
                    self.plan.note_late(task.specialist, answer.seconds)
                self._lose(task.specialist, "cancelled", f"fold {task.fold} failed")
                return self._tell("failed", task, answer.seconds, answer.error)
            self.plan.note(task.specialist, answer.seconds)
        if self.store is not None:
            self.store.put(task, answer.value)
        self._tell("finished", task, answer.seconds)

    def answers(self) -> list[Outcome | Failure]:
        """In the order of the tasks."""
        return [self.answered[i] for i in range(len(self.tasks))]

    def _tell(self, kind: str, task: Task, seconds: float = 0.0, error: str = "") -> None:
        if self.watch is None:
            return
        done, total = len(self.answered), len(self.tasks)
        if self.watch(Event(kind, task.specialist, task.fold, seconds, done, total, error, task.cost)):
            self.stopped = self.stopped or ("cancelled", "the fit was asked to stop")
