"""Run a flat list of tasks; what goes wrong is a value with a reason.

A task is (specialist, fold), a top-level function on plain data. `run` carries the list in one of three ways:

    here     in this process, one after another: nothing asks for more
    crew     each task in a fresh process that may die, hang or overeat alone (see `crew`)
    joblib   on the backend that the caller chose with `parallel_config`; isolated tasks use a crew there

Each task runs on one thread, so n_jobs is the number of busy cores. When one fold of a specialist has failed,
its other tasks are not begun: it cannot be part of the blend any more.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed
from joblib.parallel import ThreadingBackend, get_active_backend
from threadpoolctl import ThreadpoolController

from softlearning import crew
from softlearning.crew import say
from softlearning.sharing import Scratch, Shared

__all__ = ["Event", "Failure", "Outcome", "Scratch", "Shared", "Task", "attempt", "cores", "elsewhere", "run"]

FOREVER = float("inf")
ATTEMPTS = 3  # how often a task is begun again when it was not the task that ended its process


@dataclass(frozen=True)
class Task:
    """One unit of work: a top-level function on plain data. `fold` is a fold number or "refit".

    `cost` is relative and orders the list; `limit` in seconds ends the task, None leaves it to the deadline.
    """

    specialist: str
    fold: int | str
    function: Callable[..., Any]
    args: tuple
    cost: float = 1.0
    limit: float | None = None


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


Answers = Generator[tuple[int, Outcome | Failure], None, None]  # position of the task, and its answer


@dataclass(frozen=True)
class Event:
    """News for who watches: "started", "finished", "restored" or "failed"; a true answer asks to stop."""

    kind: str
    specialist: str
    fold: int | str
    seconds: float
    done: int
    total: int
    error: str = ""


@dataclass(frozen=True)
class Limits:
    """What a task may use: bytes, and time until an instant of `time.monotonic`."""

    memory: int | None = None
    deadline: float | None = None

    def remaining(self) -> float:
        return FOREVER if self.deadline is None else self.deadline - time.monotonic()

    def seconds(self, task: Task, waiting: int) -> float | None:
        """Time for a task that starts now. While others wait, it may take half of what remains: a task that
        hangs must not cost the others their turn."""
        share = self.remaining() / 2 if waiting else self.remaining()
        least = min(share, FOREVER if task.limit is None else task.limit)
        return None if least == FOREVER else max(least, 0.05)


def run(
    tasks: Sequence[Task],
    *,
    n_jobs: int | None = None,
    deadline: float | None = None,
    memory_limit: int | None = None,
    isolate: bool = False,
    store: Any = None,
    watch: Callable[[Event], Any] | None = None,
) -> list[Outcome | Failure]:
    """Outcomes in the order of the tasks; the longest are started first.

    `deadline` is an instant of `time.monotonic`, `memory_limit` the bytes that the tasks under way may hold
    together. A `store` gives back what was finished before and keeps what finishes now.
    """
    isolate = isolate or deadline is not None or memory_limit is not None
    desk = Desk(tasks, store, watch)
    carry = {"here": carry_here, "crew": carry_crew, "joblib": carry_joblib}[carrier(n_jobs, isolate)]
    with closing(carry(desk, n_jobs, Limits(memory_limit, deadline), isolate)) as answers:
        for position, answer in answers:
            desk.accept(position, answer)
    return desk.answers()


def carrier(n_jobs: int | None, isolate: bool) -> str:
    """Which of the three ways: the caller's joblib backend, or the least that serves."""
    if crew.inside:
        return "here"
    if backend_is_chosen():
        return "joblib"
    return "crew" if isolate or cores(n_jobs) > 1 else "here"


def elsewhere(n_jobs: int | None, isolate: bool) -> bool:
    """Whether tasks run in other processes of this machine, so that data is best shared through files."""
    return carrier(n_jobs, isolate) == "crew"


def backend_is_chosen() -> bool:
    """Whether we are inside `parallel_config(backend=...)`, and not inside a worker of one.

    Without a choice, joblib gives processes, or threads to who prefers threads.
    """
    backend = get_active_backend()[0]
    preferring_threads = get_active_backend(prefer="threads")[0]
    default = isinstance(preferring_threads, ThreadingBackend) and not isinstance(backend, ThreadingBackend)
    return not default and not backend.nesting_level and backend.supports_return_generator


def cores(n_jobs: int | None) -> int:
    """How many cores n_jobs means here: affinity and container quotas count; -1 is all."""
    if n_jobs is None:
        n_jobs = get_active_backend()[1] or 1
    if n_jobs == 0:
        raise ValueError("n_jobs = 0 has no meaning: give a number of cores, or -1 for all")
    return n_jobs if n_jobs > 0 else max(1, cpu_count() + 1 + n_jobs)


class Desk:
    """Hands out the tasks, takes in the answers, keeps the store and tells who watches."""

    def __init__(self, tasks: Sequence[Task], store: Any, watch: Callable[[Event], Any] | None):
        self.tasks = tasks
        self.store = store
        self.watch = watch
        self.answered: dict[int, Outcome | Failure] = {}
        self.lost: dict[str, str] = {}  # specialist -> why none of its other tasks is begun
        self.stopped = ""
        self.lock = threading.Lock()  # joblib asks for the next task from its own threads
        self.waiting = sorted(range(len(tasks)), key=lambda i: (tasks[i].cost, -i))  # the next is the last
        for i in [] if store is None else range(len(tasks)):
            if (value := store.get(tasks[i])) is not None:
                self.answered[i] = Outcome(tasks[i].specialist, tasks[i].fold, value, 0.0)
                self._tell("restored", tasks[i])
        self.waiting = [i for i in self.waiting if i not in self.answered]

    def next(self) -> int | None:
        """The next task to begin."""
        with self.lock:
            while self.waiting:
                position = self.waiting.pop()
                task = self.tasks[position]
                if reason := self.stopped or self.lost.get(task.specialist):
                    self.answered[position] = Failure(task.specialist, task.fold, reason, 0.0)
                    continue
                self._tell("started", task)
                return position
        return None

    def again(self, position: int) -> None:
        """A task that was lost through no fault of its own waits once more."""
        self.waiting.append(position)

    def accept(self, position: int, answer: Outcome | Failure) -> None:
        task = self.tasks[position]
        self.answered[position] = answer
        if isinstance(answer, Failure):
            self.lost.setdefault(task.specialist, f"not begun: fold {task.fold} failed")
            self._tell("failed", task, answer.seconds, answer.error)
            return
        if self.store is not None:
            self.store.put(task, answer.value)
        self._tell("finished", task, answer.seconds)

    def stop(self, reason: str) -> None:
        self.stopped = self.stopped or reason

    def answers(self) -> list[Outcome | Failure]:
        self.next()  # gives what was never begun its reason
        return [self.answered[i] for i in range(len(self.tasks))]

    def _tell(self, kind: str, task: Task, seconds: float = 0.0, error: str = "") -> None:
        if self.watch is None:
            return
        event = Event(kind, task.specialist, task.fold, seconds, len(self.answered), len(self.tasks), error)
        if self.watch(event):
            self.stop("not begun: stopped by who watches")


# ---------------------------------------------------------------------------------------------------- here


def attempt(task: Task) -> Outcome | Failure:
    """Run one task in this process, on one thread; an exception, which Ctrl-C is not, becomes a Failure."""
    with ThreadpoolController().limit(limits=1), fence:
        return perform(task, Exception)


def perform(task: Task, caught: type[BaseException] = BaseException) -> Outcome | Failure:
    """The outcome of a task, whatever it raises."""
    start = time.perf_counter()
    try:
        value = checked(task.function(*task.args))
    except caught as error:
        seconds = time.perf_counter() - start
        return Failure(task.specialist, task.fold, say(error), seconds, traceback.format_exc(limit=-20))
    return Outcome(task.specialist, task.fold, value, time.perf_counter() - start)


def checked(value: Any) -> Any:
    """The value of a task; arrays with numbers that are not finite are an error."""
    for name, part in value.items() if isinstance(value, dict) else ():
        if isinstance(part, np.ndarray) and part.dtype.kind == "f" and not np.isfinite(part).all():
            raise ValueError(f"{name}: {(~np.isfinite(part)).sum()} of {part.size} numbers are not finite")
    return value


def carry_here(desk: Desk, n_jobs: int | None, limits: Limits, isolate: bool) -> Answers:
    """One task after another in this process."""
    threads = ThreadpoolController()
    while (position := next_in_time(desk, limits)) is not None:
        with threads.limit(limits=1), fence:
            answer = perform(desk.tasks[position], Exception)
        yield position, answer


def next_in_time(desk: Desk, limits: Limits) -> int | None:
    if limits.remaining() <= 0:
        desk.stop("not begun: the time limit was reached")
    return desk.next()


class Fence:
    """Gives the process back as it was: folder, numpy's global seed, warning filters.

    These belong to the whole process, so with several threads inside, the last that leaves restores.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.folder, self.seed = os.getcwd(), np.random.get_state()  # noqa: NPY002
                self.warnings = warnings.catch_warnings()
                self.warnings.__enter__()
                warnings.simplefilter("ignore")
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.warnings.__exit__(None, None, None)
                np.random.set_state(self.seed)  # noqa: NPY002
                os.chdir(self.folder)


fence = Fence()


# ---------------------------------------------------------------------------------------------------- crew


def carry_crew(desk: Desk, n_jobs: int | None, limits: Limits, isolate: bool) -> Answers:
    """Each task in a process of its own. The memory limit is divided; who needs more gets all, alone."""
    workers = cores(n_jobs)
    share = Limits(limits.memory and limits.memory // workers, limits.deadline)
    hungry = []
    for position, answer in through_crew(desk, workers, share):
        if share.memory != limits.memory and out_of_memory(answer):
            hungry.append(position)
        else:
            yield position, answer
    for position in hungry:
        desk.again(position)
    yield from through_crew(desk, 1, limits)


def out_of_memory(answer: Outcome | Failure) -> bool:
    """Native code does not raise when memory ends: it aborts."""
    signs = ("MemoryError", "bad_alloc", "bad allocation", "SIGABRT", "SIGKILL")
    return isinstance(answer, Failure) and any(sign in answer.error for sign in signs)


def through_crew(desk: Desk, workers: int, limits: Limits) -> Answers:
    """Keep `workers` tasks under way until none waits; end those that overstay."""
    busy: list[crew.Call] = []
    lost: dict[int, int] = {}
    try:
        while True:
            while len(busy) < workers and (position := next_in_time(desk, limits)) is not None:
                call = begin(desk.tasks[position], position, len(desk.waiting), limits)
                if isinstance(call, crew.Call):
                    busy.append(call)
                else:
                    yield position, call
            if not busy:
                return
            for call in ended(busy):
                busy.remove(call)
                position = call.tag
                answer = settle(desk.tasks[position], call)
                if answer is not None:
                    yield position, answer
                elif lost.setdefault(position, 0) + 1 < ATTEMPTS:
                    lost[position] += 1
                    desk.again(position)
                else:
                    yield (
                        position,
                        failed(desk.tasks[position], f"its process was lost {ATTEMPTS} times", 0.0),
                    )
    finally:
        dismiss(busy)


def begin(task: Task, position: int, waiting: int, limits: Limits) -> crew.Call | Outcome | Failure:
    """Start a task in a process of its own; what cannot be sent runs here, unless limits must be kept."""
    try:
        seconds = limits.seconds(task, waiting)
        return crew.hire(perform, (task,), tag=position, limit=seconds, memory=limits.memory)
    except Exception as error:
        if limits == Limits() and task.limit is None:
            return attempt(task)
        return failed(task, f"cannot be sent to a process of its own: {say(error)}", 0.0)


def ended(busy: list[crew.Call]) -> list[crew.Call]:
    """Wait for news; the calls that have ended. Calls beyond their limit are told to."""
    wait([call.status for call in busy], timeout=patience(busy))
    now = time.monotonic()
    for call in busy:
        if call.overdue(now):
            call.stop()
    return [call for call in busy if call.ended()]


def patience(busy: list[crew.Call]) -> float | None:
    """Seconds until the first of the calls is overdue."""
    ends = [c.start + c.limit + crew.GRACE for c in busy if c.limit is not None]
    return max(min(ends) - time.monotonic(), 0.05) if ends else None


def settle(task: Task, call: crew.Call) -> Outcome | Failure | None:
    """What a call that ended gives to its task; None when the call was lost with the office."""
    seconds = time.monotonic() - call.start
    kind, content = call.answer()
    if kind == "lost":
        return None
    if kind == "value":
        return content
    reason, trace = content
    if kind == "died" and call.limit is not None and seconds >= call.limit:
        reason = f"TimeoutError: ended after {call.limit:.1f} s"
    return failed(task, reason, seconds, trace)


def failed(task: Task, reason: str, seconds: float, trace: str = "") -> Failure:
    return Failure(task.specialist, task.fold, reason, seconds, trace)


def dismiss(busy: list[crew.Call]) -> None:
    """End all calls under way and wait until they are gone."""
    for call in busy:
        call.stop()
    for call in busy:
        while not call.ended():
            wait([call.status], timeout=0.1)
        call.close()


# -------------------------------------------------------------------------------------------------- joblib


def carry_joblib(desk: Desk, n_jobs: int | None, limits: Limits, isolate: bool) -> Answers:
    """On the backend of the caller's choice. When a worker dies, joblib gives up the whole list: what has no
    result is sent again, isolated from then on, so that a task that kills its process kills nothing else."""
    in_vain = 0
    while in_vain < ATTEMPTS:
        sent: set[int] = set()
        parallel = Parallel(n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1)
        try:
            for position, answer in parallel(calls(desk, limits, isolate, sent)):
                sent.discard(position)
                in_vain = 0
                yield position, answer
            return
        except Exception as error:
            reason, isolate, in_vain = say(error), True, in_vain + 1
            for position in sent:
                desk.again(position)
    while (position := desk.next()) is not None:
        yield position, failed(desk.tasks[position], f"workers are lost again and again: {reason}", 0.0)


def calls(desk: Desk, limits: Limits, isolate: bool, sent: set[int]) -> Iterator[Any]:
    while (position := next_in_time(desk, limits)) is not None:
        sent.add(position)
        task = desk.tasks[position]
        yield delayed(far_away)(
            position, task, limits.seconds(task, len(desk.waiting)), limits.memory, isolate
        )


def far_away(position: int, task: Task, seconds: float | None, memory: int | None, isolate: bool):
    """One task in a worker of joblib. Clocks of machines differ, so the time travels as a duration."""
    if not isolate or crew.inside:
        return position, attempt(task)
    deadline = None if seconds is None else time.monotonic() + seconds
    [(_, answer)] = through_crew(Desk([task], None, None), 1, Limits(memory, deadline))
    return position, answer
