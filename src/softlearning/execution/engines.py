"""Engines carry tasks: in this process, in disposable ones, or on a joblib backend of the caller's choice.

Those of a cluster are in `remote`.

    share(data) -> handle       data that many tasks read, loaded by `handle.load()` wherever the task runs
    submit(job)                 begin a task
    next_done() -> (position, answer)     wait for one that has ended
    cancel()                    end all that is under way

An engine that waits for `workers` tasks at a time needs these four; `outcomes` is written once over them.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from multiprocessing.connection import wait
from typing import Any

import cloudpickle
import numpy as np
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.parallel import get_active_backend

from softlearning.execution import pool, worker
from softlearning.execution.shared import Scratch, Shared
from softlearning.execution.tasks import FOREVER, Failure, Job, Outcome, Task, attempt, perform, say

Answer = tuple[int, Outcome | Failure]  # position of the task in the list, and what became of it

TRIES = 3  # how often a task is begun when something else ended its process
DEATHS = 5  # a task that was under way each time that this many drivers died is not begun again
HANDOVER = 1.0  # seconds of work in this process before the processes that were asked for are started
CERTAIN = 0.02  # of the time that remains: a task that is expected to take less cannot cost the time limit
LOOK = 0.1  # seconds between two looks at the memory of workers, where the system sets no cap
ON_THIS_MACHINE = ("loky", "threading", "multiprocessing", "sequential")  # joblib's own backends
UNCAPPED = (
    "this system sets no cap on the memory of a process: it is watched instead, ten times a second, and a specialist "
    "that grows faster than that may go beyond the memory limit for a moment"
)


class Engine:
    """What all engines share. Used in a `with` block, at whose end nothing of it is left."""

    def __init__(self, workers: float = 1, files: bool = False):
        self.workers = workers
        self.busy = 0
        self.scratch = Scratch(files)

    def __enter__(self) -> Engine:
        self.scratch.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()
        self.scratch.__exit__()

    def share(self, data: Any) -> Shared:
        """A handle on data that many tasks read."""
        return self.scratch.share(data)

    def capacity(self) -> int:
        """How many tasks may be under way now."""
        return int(self.workers)

    def submit(self, job: Job) -> None:
        """Begin a task."""
        raise NotImplementedError

    def next_done(self) -> Answer:
        """Wait for a task that has ended."""
        raise NotImplementedError

    def cancel(self) -> None:
        """End all tasks under way."""

    def outcomes(self, take: Callable[[], Job | None]) -> Iterator[Answer]:
        """Carry the tasks that `take` hands out, as many at a time as there are workers."""
        while True:
            while self.busy < self.capacity() and (job := take()) is not None:
                self.submit(job)
                self.busy += 1
            if not self.busy:
                return
            answer = self.next_done()
            self.busy -= 1
            yield answer


# ---------------------------------------------------------------------------------------------------- in this process


class Here(Engine):
    """One task after another in this process, on one thread.

    With a store, a task that was under way when an earlier driver died is given a process of its own this time.
    """

    def __init__(self, store: Any = None, files: bool = False):
        super().__init__(files=files)
        self.store = store

    def submit(self, job: Job) -> None:
        """Keep the task; it runs when its answer is asked for."""
        self.job = job

    def next_done(self) -> Answer:
        """Run the task."""
        return self.job.position, here(self.job, self.store)


def here(job: Job, store: Any = None) -> Outcome | Failure:
    """One task in this process, unless it is what ended earlier ones."""
    task = job.task
    with contextlib.nullcontext(0) if store is None else store.attempt(task) as deaths:
        if deaths == 0 or worker.inside:
            return attempt(task)
        if deaths < DEATHS:
            return alone(job)
        return task.failed("crash", f"under way each time when the last {deaths} fits died")


# ------------------------------------------------------------------------------------------------ disposable processes


class Processes(Engine):
    """Each task in a process that may be lost.

    Short tasks that are trusted, or all where nothing asks for processes (`patient`), run in this process as long as
    starting others would not pay.
    """

    def __init__(self, workers: int = 1, patient: bool = False, store: Any = None):
        super().__init__(workers, files=True)
        self.patient, self.store = patient, store
        self.calls: dict[pool.Worker, tuple[Job, int]] = {}  # what each works on, and how often that was begun
        self.idle: list[pool.Worker] = []
        self.answers: deque[Answer] = deque()  # of tasks that never got a process

    def outcomes(self, take: Callable[[], Job | None]) -> Iterator[Answer]:
        """Carry the tasks that `take` hands out, in this process first as long as they are short."""
        pays = begun_to_pay() if self.workers > 1 else lambda: False
        job = None
        while not pays() and (job := take()) is not None and self.is_for_here(job):
            yield job.position, here(job, self.store)
            job = None
        first = iter([job] if job else [])
        yield from super().outcomes(lambda: next(first, None) or take())

    def is_for_here(self, job: Job) -> bool:
        """Whether a task may run in this process: nobody could end it there."""
        short = job.task.cost <= min(HANDOVER, CERTAIN * (job.until - time.monotonic()))
        return (self.patient or job.task.trusted) and short and job.memory is None and job.task.limit is None

    def submit(self, job: Job, tries: int = 1) -> None:
        """Begin a task. What cannot be sent runs here, unless a limit forbids."""
        trace = os.path.join(self.scratch.folder, f"{job.position}.trace") if self.scratch.folder else ""
        try:
            pickled = cloudpickle.dumps((perform_alone, (job.task,)))
            at = self._worker()
        except pool.CannotStart as error:
            warnings.warn(f"{error}: tasks run in this process, where a crash or a hang is the fit's", stacklevel=2)
            self.answers.append((job.position, attempt(job.task)))
        except Exception as error:
            failure = job.task.failed("error", f"cannot be sent to a process of its own: {say(error)}")
            free = job.seconds == FOREVER and job.memory is None
            self.answers.append((job.position, attempt(job.task) if free else failure))
        else:
            self.calls[at] = job, tries
            at.give(pickled, job, trace)
            if at.watched():
                say_once(UNCAPPED)

    def _worker(self) -> pool.Worker:
        while self.idle:
            if (at := self.idle.pop()).lasts():
                return at
            at.close()
        return pool.Worker()

    def next_done(self) -> Answer:
        """Wait for news of the workers; those that overstay or overeat are ended."""
        while not self.answers:
            ends = [at.end - time.monotonic() for at in self.calls] + [LOOK for at in self.calls if at.watched()]
            wait([at.connection for at in self.calls], max(min(ends), 0.02) if min(ends) < FOREVER else None)
            for at in [at for at in self.calls if at.connection.poll()]:
                if (said := at.hear()) is not None:
                    self._settle(at, said)
            for at in self.calls:
                at.end_if_over()
        return self.answers.popleft()

    def _settle(self, at: pool.Worker, said: tuple) -> None:
        """A worker has answered, or will not any more."""
        job, tries = self.calls.pop(at)
        if said[0] == "value":
            self.answers.append((job.position, said[1]))
        elif said[0] != "lost":
            seconds = 0.0 if at.start is None else time.monotonic() - at.start
            self.answers.append((job.position, job.task.failed(said[0], said[1], seconds, said[2])))
        elif tries == TRIES:
            self.answers.append((job.position, job.task.failed("crash", f"its process was lost {TRIES} times")))
        else:
            self.submit(job, tries + 1)
        if said[0] == "value" and (job.task.trusted or not pool.forks()):
            self.idle.append(at)
        else:
            at.close()

    def cancel(self) -> None:
        """End all workers."""
        for at in self.calls:
            at.stop()
        for at in (*self.calls, *self.idle):
            at.close()
        self.calls, self.idle = {}, []


def begun_to_pay() -> Callable[[], bool]:
    """A question: is it time to hand over to processes? Starting them takes seconds, which small fits never need.

    After a second of work they are started, and work goes on here until they are ready.
    """
    end = time.monotonic() + HANDOVER
    return lambda: pool.started() and pool.warm() if time.monotonic() < end else pool.warm()


def perform_alone(task: Task) -> Outcome | Failure:
    """One task in a worker: the global generators begin at the same point wherever and whenever it runs."""
    seed = zlib.crc32(f"{task.specialist}/{task.fold}".encode())
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    return perform(task)


def alone(job: Job) -> Outcome | Failure:
    """One task in a process of its own."""
    with Processes() as engine:
        engine.submit(job)
        return engine.next_done()[1]


@cache
def say_once(text: str) -> None:
    """Warn, but once in a program."""
    warnings.warn(text, stacklevel=2)


# ------------------------------------------------------------------------------------------------------------- joblib


class Joblib(Engine):
    """The caller's joblib backend, which asks for tasks itself; isolated tasks have a process of their own there."""

    def __init__(self, n_jobs: int | None = None, isolate: bool = False, backend: str | None = None):
        self.n_jobs, self.isolate, self.backend = n_jobs, isolate, backend
        self.name = backend or type(get_active_backend()[0]).__name__.removesuffix("Backend").lower()
        super().__init__(files=self.name in ON_THIS_MACHINE)

    def outcomes(self, take: Callable[[], Job | None]) -> Iterator[Answer]:
        """When a worker dies, joblib gives up the whole list: what has no result is sent again, isolated from then on,
        so that a task that kills its process kills nothing else."""
        in_vain, reason, waiting = 0, "", deque[Job]()
        take_next = lambda: waiting.popleft() if waiting else take()
        while in_vain < TRIES:
            sent: dict[int, Job] = {}
            options: Any = {"return_as": "generator_unordered", "pre_dispatch": "n_jobs", "batch_size": 1}
            parallel = Parallel(self.n_jobs, backend=self.backend, **options)
            try:
                for position, answer in parallel(self._calls(take_next, sent)):
                    sent.pop(position, None)
                    in_vain = 0
                    yield position, answer
                return
            except Exception as error:
                reason, self.isolate, in_vain = say(error), True, in_vain + 1
                for job in list(sent.values()):
                    if problem := cannot_be_sent(job.task):
                        yield job.position, job.task.failed("error", problem)
                    else:
                        waiting.append(job)
            except BaseException:
                if self.name == "loky":  # its workers would stay and go on
                    get_reusable_executor().shutdown(wait=True, kill_workers=True)
                raise
        while (left := take_next()) is not None:
            yield left.position, left.task.failed("crash", f"workers are lost again and again: {reason}")

    def _calls(self, take: Callable[[], Job | None], sent: dict[int, Job]) -> Iterator[Any]:
        while (job := take()) is not None:
            sent[job.position] = job
            yield delayed(far_away)(for_elsewhere(job), self.isolate)


def cannot_be_sent(task: Task) -> str:
    """Why a task cannot travel to another process; empty when it can."""
    try:
        cloudpickle.dumps(task)
    except Exception as error:
        return f"cannot be sent to another process: {say(error)}"
    return ""


def for_elsewhere(job: Job) -> Job:
    """The job with its end as a duration, since clocks of machines differ."""
    return replace(job, until=max(job.until - time.monotonic(), 0.05))


def far_away(job: Job, isolate: bool) -> Answer:
    """One task that `for_elsewhere` sent, in a worker of joblib or of a cluster."""
    if not isolate or worker.inside:
        return job.position, attempt(job.task)
    return job.position, alone(replace(job, until=time.monotonic() + job.until))
