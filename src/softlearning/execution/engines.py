"""Three ways to carry tasks: in this process, in disposable ones, on a joblib backend of the caller's choice.

A carrier takes tasks from a desk and yields (position, answer) as they finish. If it is closed before its end, by
Ctrl-C for example, it leaves no process behind.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Iterator
from functools import cache
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import psutil
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from softlearning.execution import office
from softlearning.execution import pool as crew
from softlearning.execution.office import say
from softlearning.execution.tasks import Answers, Desk, Failure, Limits, Outcome, Task, perform

TRIES = 3  # how often a task is begun when something else ended its process
MARKS = 5  # a task that was under way each time that this many drivers died is not begun again


# ---------------------------------------------------------------------------------------------------- here


def carry_here(desk: Desk) -> Answers:
    """One task after another in this process, on one thread.

    A task that was under way when an earlier driver died is given a process of its own this time.
    """
    threads = ThreadpoolController()
    while (position := desk.next()) is not None:
        task = desk.tasks[position]
        with contextlib.nullcontext(0) if desk.store is None else desk.store.attempt(task) as marks:
            if marks == 0 or office.inside:
                with threads.limit(limits=1), fence:
                    answer = perform(task, Exception)
            elif marks < MARKS:
                answer = alone(task, Limits())
            else:
                answer = task.failed(f"under way each time when the last {marks} fits died")
        yield position, answer


def attempt(task: Task) -> Outcome | Failure:
    """Run one task in this process, on one thread; an exception, which Ctrl-C is not, becomes a Failure."""
    with ThreadpoolController().limit(limits=1), fence:
        return perform(task, Exception)


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


def carry_crew(desk: Desk, workers: int) -> Answers:
    """Each task in a process of its own; the memory limit is divided.

    Who runs out of memory beside others is tried again with all of it, alone: so what fails does not depend on the
    number of workers.
    """
    crew.announce((perform, (task,)) for task in {task.specialist: task for task in desk.tasks}.values())
    hungry = []
    for position, answer in through_crew(desk, workers):
        if workers > 1 and out_of_memory(answer):
            hungry.append(position)
        else:
            yield position, answer
    for position in hungry:
        desk.again(position)
    yield from through_crew(desk, 1)


def out_of_memory(answer: Outcome | Failure) -> bool:
    """Native code does not raise when memory ends: it aborts. The kernel kills."""
    signs = ("MemoryError", "bad_alloc", "bad allocation", "SIGABRT", "SIGKILL")
    return isinstance(answer, Failure) and any(sign in answer.error for sign in signs)


def through_crew(desk: Desk, workers: int) -> Answers:
    """Keep `workers` tasks under way until none waits; end those that overstay."""
    busy: list[crew.Call] = []
    lost: dict[int, int] = {}
    try:
        while True:
            while len(busy) < workers and (position := desk.next()) is not None:
                call = begin(desk, position, workers)
                if isinstance(call, crew.Call):
                    busy.append(call)
                else:
                    yield position, call
            if not busy:
                return
            for call in ended(busy):
                busy.remove(call)
                answer = settle(desk, call)
                lost[call.tag] = lost.get(call.tag, 0) + (answer is None)
                if answer is None and lost[call.tag] < TRIES:
                    desk.again(call.tag)
                else:
                    yield call.tag, answer or desk.tasks[call.tag].failed(f"its process was lost {TRIES} times")
    finally:
        dismiss(busy)


def begin(desk: Desk, position: int, workers: int) -> crew.Call | Outcome | Failure:
    """Start a task in a process of its own, or say why not. What cannot be sent runs here unless a limit forbids."""
    task = desk.tasks[position]
    limit = desk.allowance(position)
    memory = (desk.limits.memory or machine_memory()) // (workers if desk.limits.memory else 1)
    try:
        return crew.hire(perform, (task,), tag=position, limit=limit, memory=memory)
    except crew.CannotStart as error:
        warnings.warn(f"{error}: specialists run in this process, where a crash or a hang is the fit's", stacklevel=2)
        return attempt(task)
    except Exception as error:
        if desk.limits == Limits() and task.limit is None:
            return attempt(task)
        return task.failed(f"cannot be sent to a process of its own: {say(error)}")


def ended(busy: list[crew.Call]) -> list[crew.Call]:
    """Wait for news; the calls that have ended. Calls beyond their limit are told to."""
    ends = [call.start + call.limit + crew.GRACE for call in busy if call.limit is not None]
    wait([call.status for call in busy], timeout=max(min(ends) - time.monotonic(), 0.05) if ends else None)
    now = time.monotonic()
    for call in busy:
        if call.overdue(now):
            call.stop()
    return [call for call in busy if call.ended()]


def settle(desk: Desk, call: crew.Call) -> Outcome | Failure | None:
    """What a call that ended gives to its task; None when the call was lost with the office."""
    task = desk.tasks[call.tag]
    seconds = time.monotonic() - call.start
    kind, content = call.answer()
    if kind == "lost":
        return None
    if kind == "value":
        return content
    reason, trace = content
    if kind == "died" and call.limit is not None and seconds >= call.limit:
        reason = f"TimeoutError: ended after {call.limit:.1f} s"
    elif kind == "died" and desk.limits.memory:
        reason += f" (under a memory limit of {desk.limits.memory / 2**20:,.0f} MiB)"
    return task.failed(reason, seconds, trace)


def dismiss(busy: list[crew.Call]) -> None:
    """End all calls under way and wait until they are gone."""
    for call in busy:
        call.stop()
    for call in busy:
        while not call.ended():
            wait([call.status], timeout=0.1)
        call.close()


def alone(task: Task, limits: Limits) -> Outcome | Failure:
    """One task in a process of its own."""
    [(_, answer)] = through_crew(Desk([task], limits), 1)
    return answer


@cache
def machine_memory() -> int:
    """Bytes of memory that this machine, or the container on it, has."""
    limits = [psutil.virtual_memory().total]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # "max" is no number
            limits.append(int(Path(path).read_text()))
    return min(limits)


# -------------------------------------------------------------------------------------------------- joblib


def carry_joblib(desk: Desk, n_jobs: int | None, isolate: bool) -> Answers:
    """On the backend of the caller's choice. When a worker dies, joblib gives up the whole list: what has no result is
    sent again, isolated from then on, so that a task that kills its process kills nothing else."""
    in_vain, reason = 0, ""
    while in_vain < TRIES:
        sent: set[int] = set()
        parallel = Parallel(n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1)
        try:
            for position, answer in parallel(calls(desk, isolate, sent)):
                sent.discard(position)
                in_vain = 0
                yield position, answer
            return
        except Exception as error:
            reason, isolate, in_vain = say(error), True, in_vain + 1
            for position in sorted(sent):
                if problem := cannot_be_sent(desk.tasks[position]):
                    yield position, desk.tasks[position].failed(problem)
                else:
                    desk.again(position)
        except BaseException:
            end_joblib()
            raise
    while (position := desk.next()) is not None:
        yield position, desk.tasks[position].failed(f"workers are lost again and again: {reason}")


def cannot_be_sent(task: Task) -> str:
    """Why a task cannot travel to another process; empty when it can."""
    try:
        cloudpickle.dumps(task)
    except Exception as error:
        return f"cannot be sent to another process: {say(error)}"
    return ""


def calls(desk: Desk, isolate: bool, sent: set[int]) -> Iterator[Any]:
    while (position := desk.next()) is not None:
        sent.add(position)
        task, limit = desk.tasks[position], desk.allowance(position)
        yield delayed(far_away)(position, task, limit, desk.limits.memory, isolate)


def far_away(position: int, task: Task, seconds: float | None, memory: int | None, isolate: bool):
    """One task in a worker of joblib. Clocks of machines differ, so the time travels as a duration."""
    if not isolate or office.inside:
        return position, attempt(task)
    deadline = None if seconds is None else time.monotonic() + seconds
    return position, alone(task, Limits(memory, deadline))


def end_joblib() -> None:
    """After Ctrl-C: the local workers of joblib would stay and go on."""
    if type(get_active_backend()[0]).__name__ == "LokyBackend":
        get_reusable_executor().shutdown(wait=True, kill_workers=True)
