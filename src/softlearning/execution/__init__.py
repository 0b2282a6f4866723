"""Run a flat list of tasks; what goes wrong is a value with a kind and a reason.

A task is (specialist, fold), a top-level function on plain data. A `Scheduler` says which comes next and what the time
allows; `run` has them carried by an engine, which `open_engine` chooses once per fit:

    Here         in this process, one after another: nothing asks for more
    Processes    each task in a process that may die, hang or overeat alone
    Joblib       a joblib backend, by name or chosen with `joblib.parallel_config`
    Dask, Ray    a cluster

Each task runs on one thread, so n_jobs is the number of busy cores. Behind it: `pool` and `worker` (the processes),
`shared` (data that many tasks read), `checkpoint`.
"""

from __future__ import annotations

from typing import Any

from joblib import cpu_count
from joblib.parallel import BACKENDS, ThreadingBackend, get_active_backend

from softlearning.execution import worker
from softlearning.execution.engines import Engine, Here, Joblib, Processes
from softlearning.execution.scheduler import Scheduler
from softlearning.execution.shared import Scratch, Shared
from softlearning.execution.tasks import FAILED, Event, Failure, Outcome, Task, attempt, one_thread, parse_bytes

__all__ = ["FAILED", "Engine", "Event", "Failure", "Here", "Joblib", "Outcome", "Processes", "Scheduler", "Scratch"]
__all__ += ["Shared", "Task", "attempt", "cores", "one_thread", "open_engine", "parse_bytes", "run"]


def run(scheduler: Scheduler, engine: Engine) -> list[Outcome | Failure]:
    """What became of the tasks of a scheduler, in their order, carried by an engine in a `with` block of the caller's.

    Who runs out of memory beside others is tried again with all of it, alone: so what fails does not depend on the
    number of workers.
    """
    workers = scheduler.plan.workers = engine.capacity()
    hungry = []
    for position, answer in engine.outcomes(scheduler.take):
        if workers > 1 and isinstance(answer, Failure) and answer.kind == "memory":
            hungry.append(position)
        else:
            scheduler.accept(position, answer)
    if hungry:
        before, engine.workers = engine.workers, 1
        scheduler.waiting += hungry
        run(scheduler, engine)
        engine.workers = before
    return scheduler.answers()


def open_engine(
    engine: Any = None, n_jobs: int | None = None, isolate: bool = False, store: Any = None, files: bool = False
) -> Engine:
    """The engine that a user means; without a choice the caller's joblib backend, or the least that serves.

    engine : None, the name of a joblib backend, "ray", or a Dask `Client`.
    isolate : each task has a process of its own, since there are limits or specialists that may crash.
    files : hold shared data in files also where one process does all.
    """
    if worker.inside:
        return Here(store, files)
    if hasattr(engine, "scatter"):
        from softlearning.execution.remote import Dask

        return Dask(engine, n_jobs, isolate)
    if engine == "ray":
        from softlearning.execution.remote import Ray

        return Ray(n_jobs, isolate)
    if engine is not None and not (isinstance(engine, str) and engine in BACKENDS):
        known = ", ".join(sorted(map(repr, BACKENDS)))
        raise ValueError(f"engine is {engine!r}; give None, a Dask Client, 'ray' or a joblib backend ({known})")
    if engine is not None or backend_is_chosen():
        return Joblib(n_jobs, isolate, engine)
    return Processes(cores(n_jobs), not isolate, store) if isolate or cores(n_jobs) > 1 else Here(store, files)


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
