"""A failure is a value with a reason, wherever and however a task runs."""

import contextlib
import importlib
import multiprocessing
import os
import pickle
import re
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import psutil
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from softlearning.execution import Failure, Outcome, Scratch, Task, cores, elsewhere, run
from softlearning.library import Shape, every_row
from tests.execution.faults import processes_left

WAYS = {"here": {}, "crew of one": {"isolate": True}, "crew of two": {"n_jobs": 2}}


def double(handle, rows):
    return {"prediction": 2 * handle.load()[rows]}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def refuse():
    raise ValueError("no")


def hold_everything():
    """Sleep in native code without letting go of the interpreter: no Python signal handler can run."""
    import ctypes

    ctypes.PyDLL(None).sleep(1000)


def eat(gigabytes):
    return {"size": float(np.ones(int(gigabytes * 2**27)).size)}


def grown(number):
    return {"number": float(number)}


@pytest.mark.parametrize("way", WAYS)
def test_outcomes_come_in_the_order_of_the_tasks_whatever_their_cost(way, rng):
    X = rng.normal(size=(20, 3))
    with Scratch(shared=elsewhere(WAYS[way].get("n_jobs"), WAYS[way].get("isolate", False))) as scratch:
        handle = scratch.share(X)
        tasks = [Task("a", fold, double, (handle, np.arange(fold + 1)), cost=fold % 3) for fold in range(7)]
        outcomes = run(tasks, **WAYS[way])
    assert [o.fold for o in outcomes] == list(range(7))
    for fold, outcome in enumerate(outcomes):
        np.testing.assert_array_equal(outcome.value["prediction"], 2 * X[: fold + 1])


@pytest.mark.parametrize("way", WAYS)
def test_a_task_that_raises_fails_alone_and_says_where(way):
    outcomes = run([Task("a", 0, refuse, ()), Task("b", 0, grown, (1,))], **WAYS[way])
    assert isinstance(outcomes[1], Outcome)
    assert outcomes[0].error == "ValueError: no"
    assert "refuse" in outcomes[0].traceback


def test_a_task_that_kills_its_process_kills_nothing_else():
    tasks = [Task("killer", 0, die, ()), *(Task("a", i, grown, (i,)) for i in range(5))]
    outcomes = run(tasks, isolate=True)
    assert outcomes[0].error == "the process was ended by SIGKILL"
    assert [o.value["number"] for o in outcomes[1:]] == list(range(5))
    assert processes_left() == []


def test_a_task_that_holds_the_interpreter_is_ended_and_the_others_get_their_turn():
    tasks = [Task("hung", 0, hold_everything, (), cost=9), Task("a", 0, grown, (1,))]
    hung, other = run(tasks, deadline=time.monotonic() + 3)
    assert hung.error.startswith("TimeoutError")
    assert "hold_everything" in hung.traceback
    assert other.value == {"number": 1.0}


def test_what_is_not_begun_at_the_deadline_is_a_failure_with_that_reason():
    [outcome] = run([Task("a", 0, grown, (1,))], deadline=time.monotonic() - 1)
    assert outcome == Failure("a", 0, "not begun: the time limit was reached", 0.0)


def nap(seconds):
    time.sleep(seconds)
    return {}


def test_under_a_deadline_a_specialist_that_cannot_be_finished_is_left_out_at_once():
    tasks = [Task("slow", fold, nap, (1000,), cost=1000) for fold in range(3)]
    tasks += [Task("quick", fold, nap, (0.1,), cost=1) for fold in range(3)]
    outcomes = run(tasks, deadline=time.monotonic() + 20, refits=1)
    assert all(isinstance(o, Outcome) for o in outcomes[3:])
    assert all(re.fullmatch(r"left out: needs about \d+ s, \d+ s remain", o.error) for o in outcomes[:3])


def test_a_task_that_wants_too_much_memory_fails_alone():
    tasks = [Task("greedy", 0, eat, (2,)), Task("modest", 0, eat, (0.01,))]
    greedy, modest = run(tasks, memory_limit=2**30)
    assert greedy.error.startswith("MemoryError")
    assert isinstance(modest, Outcome)


def test_a_task_that_needs_more_than_its_share_of_memory_gets_all_of_it_alone():
    outcomes = run([Task(str(i), 0, eat, (0.6,)) for i in range(2)], memory_limit=2**30, n_jobs=2)
    assert all(isinstance(o, Outcome) for o in outcomes)


def test_after_one_failed_fold_the_others_of_that_specialist_are_not_begun():
    outcomes = run([Task("a", fold, refuse, ()) for fold in range(3)])
    assert [o.error for o in outcomes] == ["ValueError: no"] + ["not begun: fold 0 failed"] * 2


def test_numbers_that_are_not_finite_are_a_failure():
    [outcome] = run([Task("a", 0, lambda: {"prediction": np.array([1.0, np.nan])}, ())])
    assert outcome.error == "ValueError: prediction: 1 of 2 numbers are not finite"


def test_who_watches_hears_of_every_task_and_may_stop_the_rest():
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
    first, second = run([Task(n, 0, grown, (1,)) for n in "ab"], watch=lambda e: e.kind == "finished")
    assert isinstance(first, Outcome)
    assert second.error == "not begun: the fit was asked to stop"


# ------------------------------------------------------------------------------------------- what a task may touch


def meddle():
    os.chdir("/")
    np.random.seed(1)  # noqa: NPY002
    warnings.simplefilter("error")
    threadpool_limits(2)
    return {}


@pytest.mark.parametrize("way", WAYS)
def test_a_task_leaves_folder_seed_warnings_and_threads_as_they_were(way):
    def surroundings():
        threads = [library["num_threads"] for library in threadpool_info()]
        return os.getcwd(), np.random.get_state()[1].tolist(), list(warnings.filters), threads  # noqa: NPY002

    before = surroundings()
    [outcome] = run([Task("a", 0, meddle, ())], **WAYS[way])
    assert isinstance(outcome, Outcome)
    assert surroundings() == before


def blas_threads():
    return {"threads": float(max(library["num_threads"] for library in threadpool_info()))}


@pytest.mark.parametrize("way", WAYS)
def test_a_task_runs_on_one_thread(way):
    [outcome] = run([Task("a", 0, blas_threads, ())], **WAYS[way])
    assert outcome.value["threads"] == 1


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csr_matrix, pd.DataFrame])
def test_shared_data_arrives_unchanged_and_cannot_be_changed(shared, make, rng):
    X = make(np.where(rng.random((30, 4)) < 0.5, 0.0, rng.normal(size=(30, 4))))
    original = X.copy()
    with Scratch(shared=shared) as scratch:
        handle = scratch.share(X)
        seen = handle.load()
        assert type(seen) is type(X)
        if make is pd.DataFrame:
            with contextlib.suppress(ValueError):  # pandas copies on write where it can
                seen.iloc[0, 0] = 7.0
        else:
            with pytest.raises(ValueError, match="read-only"):
                (seen if make is np.asarray else seen.data)[:] = 7.0
        again = handle.load()
        assert (original != again).sum().sum() == 0
        assert not shared or len(pickle.dumps(handle)) < 2000


def test_shared_frames_keep_their_types_and_gaps():
    frame = pd.DataFrame({"a": pd.Categorical(["x", None, "y"]), "b": ["u", "v", None], "c": [1.0, np.nan, 3.0]})
    with Scratch(shared=True) as scratch:
        pd.testing.assert_frame_equal(scratch.share(frame).load(), frame)


def test_scratch_is_private_and_gone_at_the_end(rng):
    with Scratch(shared=True) as scratch:
        scratch.share(rng.normal(size=10))
        assert stat.S_IMODE(os.stat(scratch.folder).st_mode) == 0o700
    assert not os.path.exists(scratch.folder)


def test_without_room_for_files_the_data_travel_with_the_tasks(rng, monkeypatch):
    X = rng.normal(size=(200, 3))
    with Scratch(shared=True) as scratch:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
            handle = scratch.share(X)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        [outcome] = run([Task("a", 0, double, (handle, [0, 1]))], isolate=True)
    np.testing.assert_array_equal(outcome.value["prediction"], 2 * X[:2])
    monkeypatch.setattr(tempfile, "tempdir", "/proc/no/such/folder")
    with Scratch(shared=True) as scratch:
        np.testing.assert_array_equal(scratch.share(X).load(), X)


def threads_of_a_fit(row, task):
    """How many threads a specialist of the library starts."""
    X = np.random.default_rng(0).normal(size=(300, 5))
    y = X[:, 0] > 0 if task == "classification" else X[:, 0]
    before = len(os.listdir("/proc/self/task"))
    row.make(Shape(task, 300, 5, classes=2, rarest=100)).fit(X, y).predict(X)
    return {"threads": float(len(os.listdir("/proc/self/task")) - before)}


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_no_row_of_the_library_takes_more_cores_than_its_own(task):
    """Each on the one thread it has; CatBoost starts a second, which sleeps."""
    names = ("random_forest", "hist_gradient_boosting", "lightgbm", "catboost", "mlp_small")
    outcomes = run([Task(row.name, 0, threads_of_a_fit, (row, task)) for row in every_row(task)[names]], isolate=True)
    threads = {o.specialist: o.value["threads"] for o in outcomes}
    assert threads == dict.fromkeys(names, 0.0) | {"catboost": 1.0}


# ------------------------------------------------------------------------------------------------- nothing stays


def test_an_interrupt_leaves_no_process_behind():
    def interrupt(event):
        if event.kind == "finished":
            raise KeyboardInterrupt

    tasks = [Task("slow", 0, time.sleep, (1000,), cost=2), Task("a", 0, grown, (1,))]
    with pytest.raises(KeyboardInterrupt):
        run(tasks, n_jobs=2, watch=interrupt)
    assert processes_left() == []


def leave_a_child():
    if os.fork() == 0:
        time.sleep(1000)
    return {}


def test_a_child_that_a_task_leaves_running_is_ended_with_it():
    [outcome] = run([Task("a", 0, leave_a_child, ())], isolate=True)
    assert isinstance(outcome, Outcome)
    assert processes_left() == []


def kill_the_office_once(marker):
    if not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)
    return {}


def test_tasks_are_begun_again_when_the_office_dies(tmp_path):
    tasks = [Task("a", 0, kill_the_office_once, (str(tmp_path / "marker"),)), Task("b", 0, grown, (1,))]
    assert all(isinstance(o, Outcome) for o in run(tasks, isolate=True))


SCRIPT = """
import os, sys, time
from softlearning.execution import Scratch, Task, run

class Mine:
    def __init__(self, n): self.n = n

def work(mine, handle):
    print("working", os.getpid(), flush=True)
    open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
    time.sleep(float(sys.argv[2]))
    return {"model": Mine(mine.n + 1)}

with Scratch(shared=True) as scratch:
    print(scratch.folder, flush=True)
    [outcome] = run([Task("a", 0, work, (Mine(1), scratch.share([1])))], isolate=True)
    print(type(outcome.value["model"]) is Mine, outcome.value["model"].n)
"""


@pytest.fixture
def script(tmp_path):
    """Starts a script without a `__main__` guard; gives the process, its scratch folder and the worker's number."""
    (tmp_path / "script.py").write_text(SCRIPT)
    started = []

    def start(seconds):
        pids = tmp_path / "pids"
        command = [sys.executable, str(tmp_path / "script.py"), str(pids), str(seconds)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        started.append(process)
        folder = process.stdout.readline().strip()
        while not pids.exists() or not pids.read_text().endswith("\n"):
            time.sleep(0.02)
        return process, folder, int(pids.read_text())

    yield start
    for process in started:
        process.kill()
        process.stdout.close()
        process.wait()


def test_classes_of_a_script_without_a_main_guard_travel_both_ways(script):
    process, _, _ = script(0)
    assert process.communicate()[0] == "True 2\n"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_driver_that_is_ended_leaves_no_process_and_no_file(script, how):
    process, folder, worker = script(1000)
    process.send_signal(how)
    process.wait()
    deadline = time.monotonic() + 20
    while (psutil.pid_exists(worker) or os.path.exists(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(worker)
    assert not os.path.exists(folder)


# --------------------------------------------------------------------------------------------- modules of the user


MODULE = """
import os, threading, time
with open({log!r}, "a") as file:
    file.write("imported\\n")
{more}
def answer():
    return {{}}
"""


@pytest.fixture
def user_module(tmp_path, monkeypatch):
    """Makes and imports a module that counts its imports, and does more if told."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(name, more=""):
        (tmp_path / f"{name}.py").write_text(MODULE.format(log=str(tmp_path / "log"), more=more))
        return importlib.import_module(name), tmp_path / "log"

    return make


def test_a_module_of_the_user_is_imported_once_for_all_tasks(user_module):
    module, log = user_module("module_of_a_user")
    outcomes = run([Task("a", i, module.answer, ()) for i in range(6)], isolate=True)
    assert all(isinstance(o, Outcome) for o in outcomes)
    assert log.read_text().count("imported") == 2  # here, and in the branch that forks


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("module_with_threads", "threading.Thread(target=time.sleep, args=(5,), daemon=True).start()"),
        ("module_that_raises", f"if os.getpid() != {os.getpid()}: raise ValueError('not here')"),
        ("module_that_kills", f"if os.getpid() != {os.getpid()}: os._exit(1)"),
    ],
    ids=["threads", "raises", "kills"],  # the number of the process must not be part of a test's name
)
def test_a_module_that_is_bad_for_a_process_that_forks_harms_only_who_needs_it(user_module, name, more):
    module, _ = user_module(name, more)
    bad, good = run([Task("bad", 0, module.answer, ()), Task("good", 0, grown, (1,))], isolate=True)
    assert isinstance(good, Outcome)
    assert isinstance(bad, Outcome if name == "module_with_threads" else Failure)


# ------------------------------------------------------------------------------------------------ odd surroundings


def test_what_cannot_be_sent_runs_here_unless_there_are_limits():
    task = Task("a", 0, grown, (1,), cost=threading.Lock())
    assert isinstance(run([task], isolate=True)[0], Outcome)
    [outcome] = run([task], memory_limit=2**30)
    assert outcome.error.startswith("cannot be sent to a process of its own: TypeError")


def ask_inside():
    [outcome] = run([Task("inner", 0, os.getpid, ())], n_jobs=2, isolate=True)
    return {"same": float(outcome.value == os.getpid())}


def test_there_is_no_crew_inside_a_crew():
    [outcome] = run([Task("a", 0, ask_inside, ())], isolate=True)
    assert outcome.value["same"]


def test_several_threads_may_run_tasks_at_once():
    with ThreadPoolExecutor(4) as threads:
        lists = [[Task("a", i, grown, (10 * k + i,)) for i in range(3)] for k in range(4)]
        for k, outcomes in enumerate(threads.map(lambda tasks: run(tasks, isolate=True), lists)):
            assert [o.value["number"] for o in outcomes] == [10 * k, 10 * k + 1, 10 * k + 2]


def run_in_child(queue):
    queue.put(run([Task("a", 0, grown, (1,))], isolate=True)[0].value)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_of_the_driver_may_run_tasks_even_a_daemonic_one(method):
    run([Task("a", 0, grown, (1,))], isolate=True)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=run_in_child, args=(queue,), daemon=True)
    child.start()
    assert queue.get(timeout=60) == {"number": 1.0}
    child.join()
    assert isinstance(run([Task("a", 0, grown, (1,))], isolate=True)[0], Outcome)


# ------------------------------------------------------------------------------------------------- joblib, cores


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing", "sequential"])
def test_the_callers_joblib_backend_carries_the_tasks(backend):
    tasks = [Task("a", i, grown, (i,)) for i in range(4)]
    with joblib.parallel_config(backend, n_jobs=2):
        assert [o.value["number"] for o in run(tasks)] == [0, 1, 2, 3]


def test_on_a_joblib_backend_a_task_that_kills_its_worker_fails_alone():
    tasks = [
        Task("a", 0, grown, (0,)),
        Task("killer", 0, die, (), cost=2),
        *(Task("b", i, grown, (i,)) for i in range(4)),
    ]
    with joblib.parallel_config("loky", n_jobs=2):
        outcomes = run(tasks)
    assert [type(o) for o in outcomes] == [Outcome, Failure] + [Outcome] * 4
    assert outcomes[1].error == "the process was ended by SIGKILL"


def test_on_a_joblib_backend_a_task_that_cannot_be_sent_fails_alone():
    tasks = [Task("a", i, grown, (i,)) for i in range(3)] + [Task("stuck", 0, grown, (threading.Lock(),))]
    with joblib.parallel_config("loky", n_jobs=2):
        outcomes = run(tasks)
    assert [type(o) for o in outcomes] == [Outcome] * 3 + [Failure]
    assert outcomes[3].error.startswith("cannot be sent to another process: TypeError")


def test_the_callers_number_of_cores_counts():
    assert cores(None) == 1
    assert cores(3) == 3
    assert cores(-1) == joblib.cpu_count()
    with joblib.parallel_config(n_jobs=2):
        assert cores(None) == 2
    with pytest.raises(ValueError, match="n_jobs = 0"):
        cores(0)


def test_affinity_counts(monkeypatch):
    only = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(only)})
        assert cores(-1) == 1
    finally:
        os.sched_setaffinity(0, only)
