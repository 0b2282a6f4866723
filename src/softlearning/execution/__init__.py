"""Run a flat list of tasks; what goes wrong is a value with a kind and a reason.

A task is (specialist, fold), a top-level function on plain data. `run` has the list carried by an engine, which
`open_engine` chooses once per fit:

    Here         in this process, one after another: nothing asks for more
    Processes    each task in a process that may die, hang or overeat alone
    Joblib       a joblib backend, by name or chosen with `joblib.parallel_config`
    Dask, Ray    a cluster

Each task runs on one thread, so n_jobs is the number of busy cores. Behind it: `scheduler` (which task next, what the
time allows), `pool` and `worker` (the processes), `shared` (data that many tasks read), `checkpoint`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from joblib import cpu_count
from joblib.parallel import BACKENDS, ThreadingBackend, get_active_backend

from softlearning.execution import worker
from softlearning.execution.engines import Engine, Here, Joblib, Processes, attempt
from softlearning.execution.scheduler import Scheduler
from softlearning.execution.shared import Scratch, Shared
from softlearning.execution.tasks import FAILED, Event, Failure, Outcome, Task, parse_bytes

__all__ = ["FAILED", "Engine", "Event", "Failure", "Here", "Joblib", "Outcome", "Processes", "Scratch", "Shared"]
__all__ += ["Task", "attempt", "cores", "open_engine", "parse_bytes", "run"]


def run(
    tasks: Sequence[Task],
    *,
    engine: Engine | None = None,
    n_jobs: int | None = None,
    deadline: float | None = None,
    memory_limit: float | str | None = None,
    isolate: bool = False,
    store: Any = None,
    watch: Callable[[Event], Any] | None = None,
    refits: int = 0,
    reserve: float = 0.0,
    each: float = 0.0,
) -> list[Outcome | Failure]:
    """Outcomes in the order of the tasks; the costliest are started first.

    Parameters
    ----------
    engine : who carries the tasks, in a `with` block of the caller's; None takes what `open_engine` gives.
    deadline : an instant of `time.monotonic`. Whole specialists follow each other by rank, those that cannot be
        finished are skipped, and time is kept for as many `refits` of each, for `reserve` seconds of other work, and
        for `each` seconds of it for every specialist that is begun.
    memory_limit : the bytes that the tasks under way may take together, beyond what their processes hold when they
        begin. A limit isolates.
    store : gives back what was finished before and keeps what finishes now.
    watch : hears of every event.
    """
    scheduler = Scheduler(tasks, deadline, parse_bytes(memory_limit), store, watch, refits, reserve, each)
    if engine is not None:
        carry(scheduler, engine)
    else:
        limited = deadline is not None or memory_limit is not None
        with open_engine(n_jobs=n_jobs, isolate=isolate or limited, store=store) as chosen:
            carry(scheduler, chosen)
    return scheduler.answers()


def carry(scheduler: Scheduler, engine: Engine) -> None:
    """Have the tasks carried. Who runs out of memory beside others is tried again with all of it, alone: so what fails
    does not depend on the number of workers."""
    scheduler.set_workers(workers := engine.capacity())
    hungry = []
    for position, answer in engine.outcomes(scheduler.take):
        if workers > 1 and isinstance(answer, Failure) and answer.kind == "memory":
            hungry.append(position)
        else:
            scheduler.accept(position, answer)
    if hungry:
        before, engine.workers = engine.workers, 1
        scheduler.again(hungry)
        carry(scheduler, engine)
        engine.workers = before


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
