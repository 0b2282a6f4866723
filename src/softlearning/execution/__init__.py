"""Run a flat list of tasks; what goes wrong is a value with a reason.

A task is (specialist, fold), a top-level function on plain data. `run` has the list carried in one of three ways:

    here     in this process, one after another: nothing asks for more
    crew     each task in a fresh process that may die, hang or overeat alone
    joblib   on the backend that the caller chose with `joblib.parallel_config`; isolated tasks have a crew there

Each task runs on one thread, so n_jobs is the number of busy cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from joblib import cpu_count
from joblib.parallel import ThreadingBackend, get_active_backend

from softlearning.execution import office
from softlearning.execution.engines import attempt, carry_crew, carry_here, carry_joblib
from softlearning.execution.shared import Scratch, Shared
from softlearning.execution.tasks import Answers, Desk, Event, Failure, Limits, Outcome, Task

__all__ = ["Event", "Failure", "Outcome", "Scratch", "Shared", "Task", "attempt", "cores", "elsewhere", "run"]


def run(
    tasks: Sequence[Task],
    *,
    n_jobs: int | None = None,
    deadline: float | None = None,
    memory_limit: int | None = None,
    isolate: bool = False,
    store: Any = None,
    watch: Callable[[Event], Any] | None = None,
    refits: int = 0,
) -> list[Outcome | Failure]:
    """Outcomes in the order of the tasks; the costliest are started first.

    `deadline` is an instant of `time.monotonic`, `memory_limit` the bytes that the tasks under way may hold together; a
    limit isolates. Under a deadline whole specialists follow each other, those that cannot be finished are left out,
    and time is kept for as many `refits` of each. A `store` gives back what was finished before and keeps what
    finishes now.
    """
    limits = Limits(memory_limit, deadline)
    desk = Desk(tasks, limits, store, watch, cores(n_jobs), refits)
    with closing(carry(desk, n_jobs, isolate or limits != Limits())) as answers:
        for position, answer in answers:
            desk.accept(position, answer)
    return desk.answers()


def carry(desk: Desk, n_jobs: int | None, isolate: bool) -> Answers:
    """The carrier at work."""
    name = carrier(n_jobs, isolate)
    if name == "joblib":
        return carry_joblib(desk, n_jobs, isolate)
    return carry_crew(desk, cores(n_jobs)) if name == "crew" else carry_here(desk)


def carrier(n_jobs: int | None, isolate: bool) -> str:
    """Which of the three ways: the caller's joblib backend, or the least that serves."""
    if office.inside:
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
