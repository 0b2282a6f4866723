"""Run the cells that have no result yet, each outer fold in a process of its own.

A job is all wanted methods on one (dataset, fold, seed): they share the fits of the library, and every answer is
written as soon as it is there. The parent alone writes; killing it at any time loses only what was being computed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_all_start_methods, get_context, parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from softlearning.data.messages import nearest
from softlearning.data.versions import versions
from softlearning_bench.datasets import DATASETS, Absent, Dataset, dataset
from softlearning_bench.external import TIME_LIMIT, external_method
from softlearning_bench.methods import Method, Skipped, methods_for
from softlearning_bench.results import append, finished, seed_range
from softlearning_bench.scoring import scores
from softlearning_bench.shared import FOLDS, Specialists, all_cores, cell_name, outer_fold

SEED = 42


@dataclass(frozen=True)
class Job:
    """The methods that are still wanted on one outer fold."""

    dataset: str
    fold: int
    seed: int
    methods: tuple[str, ...]
    external: tuple[Method, ...] = ()
    fits: Path | None = None


def run_suite(
    suite: str,
    out: Path,
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | str | None = None,
    jobs: int | None = None,
    longest_first: bool = True,
    external: dict[str, str] | None = None,
    time_limit: int | None = None,
    fits: Path | None = None,
) -> Path:
    """Fill `out/results.csv` with the cells of a suite that it lacks, and return its path.

    Parameters
    ----------
    datasets, methods : names, or starts of names of datasets; all when None.
    seeds : how many seeds of the outer folds from the paper's, 42, on; or a range such as "43-71".
    jobs : processes side by side, one thread each; the number of cores when None.
    external : name of an external baseline ("AutoGluon", "FLAML") -> the environment that has it.
    time_limit : seconds that an external baseline is given for one fit; 120 when None.
    fits : a folder that keeps what every specialist predicts, so that a run that was killed loses only the fit it was
        at, and another combination of the same specialists costs seconds.
    """
    if suite != "paper":
        raise ValueError(f"there is no suite {suite!r}; there is 'paper'")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "results.csv"
    rows = [dataset(name) for name in datasets] if datasets else list(DATASETS)
    limit = time_limit or TIME_LIMIT
    others = tuple(external_method(system, home, limit) for system, home in (external or {}).items())
    todo = list(missing_jobs(rows, methods, seed_range(seeds or 1, SEED), path, others, fits))
    if longest_first:
        todo.sort(key=expected_cost, reverse=True)
    run_jobs(todo, path, jobs or all_cores())
    return path


def missing_jobs(rows, methods, seeds, path: Path, external: tuple[Method, ...] = (), fits=None) -> Iterator[Job]:
    """One job for each outer fold that lacks a result, with the methods it lacks."""
    done = finished(path)
    for row in rows:
        wanted = chosen(methods, row.task, external)
        for seed in seeds:
            for fold in range(FOLDS):
                lacking = [m.name for m in wanted if fold < m.folds and (row.name, m.name, fold, seed) not in done]
                if lacking:
                    yield Job(row.name, fold, seed, tuple(lacking), external, fits)


def chosen(names: Sequence[str] | None, task: str, external: Sequence[Method]) -> list[Method]:
    """The rows of these names, in the order of the table; all when there are no names."""
    rows = [*methods_for(task), *external]
    known = {row.name for t in ("classification", "regression") for row in (*methods_for(t), *external)}
    for name in names or ():
        if name not in known:
            raise ValueError(f"no method is called {name!r}; {nearest(name, sorted(known))}")
    return [row for row in rows if names is None or row.name in names]


def expected_cost(job: Job) -> float:
    """Grows with rows, columns and classes: enough to start the long ones first."""
    row = dataset(job.dataset)
    return row.n * (20 + row.d) * (row.classes or 1)


@dataclass
class Running:
    """A job in its process, the methods that have answered, and since when."""

    job: Job
    process: Any
    arrived: set[str]
    begin: float


def run_jobs(todo: list[Job], path: Path, workers: int) -> None:
    """Keep so many processes busy; write every line as it comes."""
    processes: Any = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
    if processes.get_start_method() == "forkserver":
        processes.set_forkserver_preload(["softlearning_bench.run"])
    waiting = list(todo)
    running: dict[Any, Running] = {}
    ended = 0
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                receiver, started = start(processes, waiting.pop(0))
                running[receiver] = started
            for receiver in wait(list(running)):
                if not receive(receiver, running[receiver], path):
                    ended += 1
                    tell(running.pop(receiver), ended, len(todo))
    finally:
        for left in running.values():
            left.process.terminate()


def start(processes: Any, job: Job) -> tuple[Any, Running]:
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=work, args=(job, sender), daemon=True)
    process.start()
    sender.close()  # the end of the process is then the end of the pipe
    return receiver, Running(job, process, set(), time.monotonic())


def receive(receiver: Any, running: Running, path: Path) -> bool:
    """Write the next line of a job; False when it has ended, after noting what it did not get to."""
    try:
        line = receiver.recv()
    except EOFError:
        running.process.join()
        lost = [name for name in running.job.methods if name not in running.arrived]
        for name in lost:
            append(path, line_of(running.job, name, "failed", f"its process ended: {running.process.exitcode}"))
        return False
    running.arrived.add(line["method"])
    append(path, line)
    return True


def tell(running: Running, ended: int, total: int) -> None:
    job, seconds = running.job, time.monotonic() - running.begin
    print(f"{ended}/{total} {job.dataset} fold {job.fold} seed {job.seed}: {seconds:.0f} s", flush=True)


# -- inside the process of a job --------------------------------------------------------------------------------------


def work(job: Job, sender: Connection) -> None:
    """Run the methods of a job, sending a line for each."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    warnings.simplefilter("ignore")  # what a learner has to say shows in its score
    with threadpool_limits(1):
        for line in lines(job):
            sender.send(line)
    sender.close()


def end_with_parent() -> None:
    """A job whose parent was killed must not go on taking the processor."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def lines(job: Job) -> Iterator[dict[str, object]]:
    row = dataset(job.dataset)
    wanted = chosen(job.methods, row.task, job.external)
    try:
        name = cell_name(job.dataset, job.fold, job.seed)
        part = outer_fold(row, row.table(), job.fold, job.seed)
        shared = Specialists(part, job.fits and job.fits / name)
    except Absent as reason:
        yield from (line_of(job, method.name, "absent", str(reason)) for method in wanted)
        return
    for method in wanted:
        yield one_line(job, row, method, shared)


def one_line(job: Job, row: Dataset, method: Method, shared: Specialists) -> dict[str, object]:
    """The result of one cell; a failure is a line with its reason."""
    try:
        answer = method.answer(shared)
    except Skipped as reason:
        return line_of(job, method.name, "skipped", str(reason))
    except Exception as error:
        return line_of(job, method.name, "failed", f"{type(error).__name__}: {error}")
    numbers = scores(answer.prediction, shared.part.y_test, row.task)
    seconds = {"fit_seconds": answer.fit_seconds, "predict_seconds": answer.predict_seconds}
    weights = json.dumps({name: round(weight, 6) for name, weight in answer.weights.items() if weight > 0})
    note = "; ".join(part for part in (answer.note, row.note) if part)
    return line_of(job, method.name, "ok", note) | numbers | seconds | {"weights": weights if answer.weights else ""}


def line_of(job: Job, method: str, status: str, reason: str) -> dict[str, object]:
    key = {"dataset": job.dataset, "method": method, "fold": job.fold, "seed": job.seed}
    return key | {"status": status, "reason": reason, "peak_memory": peak_memory(), "versions": version_line()}


@cache
def version_line() -> str:
    """The versions of one results line, as one text."""
    return "; ".join(f"{name} {found}" for name, found in versions().items())


def peak_memory() -> int | str:
    """Most megabytes of this process so far; empty where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return ""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (2**20 if sys.platform == "darwin" else 1024)
