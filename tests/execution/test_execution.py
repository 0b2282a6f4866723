"""`run` takes the least that serves, and hands over when it pays."""

import os
import time

import joblib
import pytest

from softlearning import execution
from softlearning.execution import Engine, Here, Outcome, Processes, Task, cores, engines, open_engine, pool
from tests.execution.calls import grown, nap, refuse, run, who


def test_small_work_stays_in_this_process_and_long_work_is_handed_over(monkeypatch):
    outcomes = run([Task("a", i, who, ()) for i in range(3)], n_jobs=2)
    if not pool.started():
        assert {o.value["pid"] for o in outcomes} == {float(os.getpid())}
    monkeypatch.setattr(engines, "HANDOVER", 0.0)
    pool.server()
    while not pool.warm():
        time.sleep(0.05)
    assert os.getpid() not in {o.value["pid"] for o in run([Task("a", i, who, ()) for i in range(3)], n_jobs=2)}


def test_the_least_that_serves():
    assert isinstance(open_engine(), Here)
    assert isinstance(open_engine(n_jobs=2), Processes)
    assert isinstance(open_engine(n_jobs=1, isolate=True), Processes)
    assert open_engine(n_jobs=3).capacity() == 3
    with joblib.parallel_config("threading"):
        assert isinstance(open_engine(n_jobs=2), execution.Joblib)


def test_data_lie_in_files_where_other_processes_of_this_machine_read_them():
    engines = [open_engine(), open_engine(files=True), open_engine(n_jobs=2), open_engine("loky")]
    assert [engine.scratch.shared for engine in engines] == [False, True, True, True]


class Backwards(Engine):
    """An engine of somebody else's: gives the last first."""

    def __init__(self):
        super().__init__(workers=2)
        self.jobs, self.cancelled = [], False

    def submit(self, job):
        self.jobs.append(job)

    def next_done(self):
        job = self.jobs.pop()
        return job.position, Outcome(job.task.specialist, job.task.fold, job.task.function(*job.task.args), 0.0)

    def cancel(self):
        self.cancelled = True


def test_an_engine_needs_four_methods_alone():
    with Backwards() as engine:
        outcomes = run([Task("a", i, grown, (i,)) for i in range(5)], engine=engine)
    assert [o.value["number"] for o in outcomes] == [0, 1, 2, 3, 4]
    assert engine.cancelled


def test_under_a_deadline_a_specialist_that_cannot_be_finished_is_skipped_at_once():
    tasks = [Task("slow", fold, nap, (1000,), cost=1000) for fold in range(3)]
    tasks += [Task("quick", fold, nap, (0.1,), cost=0.1) for fold in range(3)]
    outcomes = run(tasks, deadline=time.monotonic() + 20, refits=1)
    assert all(isinstance(o, Outcome) for o in outcomes[3:])
    assert [o.kind for o in outcomes[:3]] == ["skipped"] * 3


def test_who_watches_hears_of_every_task():
    events = []
    run([Task("a", 0, grown, (1,)), Task("b", 0, refuse, ())], watch=events.append)
    assert [(e.kind, e.specialist, e.done, e.total) for e in events] == [
        ("waiting", "a", 0, 2),
        ("waiting", "b", 0, 2),
        ("started", "a", 0, 2),
        ("finished", "a", 1, 2),
        ("started", "b", 1, 2),
        ("failed", "b", 2, 2),
    ]


def test_the_callers_number_of_cores_counts():
    assert cores(None) == 1
    assert cores(3) == 3
    assert cores(-1) == joblib.cpu_count()
    with joblib.parallel_config(n_jobs=2):
        assert cores(None) == 2
    with pytest.raises(ValueError, match="n_jobs = 0"):
        cores(0)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_affinity_counts():
    only = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(only)})
        assert cores(-1) == 1
    finally:
        os.sched_setaffinity(0, only)
