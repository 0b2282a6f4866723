"""Worker processes: they come up anywhere, answer, die alone, and go with the driver."""

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import psutil
import pytest

from softlearning.execution import Failure, Outcome, Task, pool
from softlearning.execution.shared import sweep
from softlearning.execution.tasks import Job
from tests.execution.calls import die, grown, hold_everything, run, who
from tests.execution.faults import processes_left

STARTS = ["fork", "spawn"]


@pytest.fixture(params=STARTS)
def start(request, monkeypatch):
    monkeypatch.setenv("SOFTLEARNING_START", request.param)
    return request.param


def job(**limits):
    return Job(0, Task("a", 0, who, ()), **limits)


def call(worker, function, *args, **limits):
    worker.give(cloudpickle.dumps((function, args)), job(**limits), "")
    while (said := worker.hear()) is None:
        pass
    return said


def test_a_worker_answers_from_another_process_and_ends_when_closed(start):
    worker = pool.Worker()
    kind, value = call(worker, who)
    assert kind == "value"
    assert value["pid"] != os.getpid()
    worker.close()
    assert processes_left() == []


def test_a_worker_that_was_spawned_answers_more_than_once(monkeypatch):
    monkeypatch.setenv("SOFTLEARNING_START", "spawn")
    worker = pool.Worker()
    assert call(worker, who) == call(worker, who)
    worker.close()


def test_a_death_has_a_name(start):
    worker = pool.Worker()
    assert call(worker, die)[:2] == ("crash", "the process was ended by SIGKILL")
    worker.close()
    assert pool.death(3) == "the process ended with exit code 3 and no result"
    assert pool.death(-999) == "the process ended with exit code -999 and no result"


def test_a_call_that_overstays_is_ended_from_outside_too(start):
    worker = pool.Worker()
    worker.give(cloudpickle.dumps((hold_everything, ())), job(seconds=1000.0, until=time.monotonic() + 1), "")
    while (said := None if not worker.connection.poll(0.05) else worker.hear()) is None:
        worker.end_if_over()
    assert said[0] == "timeout"
    worker.close()
    assert processes_left() == []


def surroundings():
    main, method = sys.modules["__main__"], multiprocessing.get_start_method(allow_none=True)
    return getattr(main, "__file__", None), main.__spec__, multiprocessing.current_process().daemon, method


@pytest.mark.parametrize("method", [None, "fork", "spawn"])
def test_starting_a_process_changes_nothing_for_the_program(method):
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method(method, force=True)
    try:
        around = surroundings()
        with pool.unnoticed():
            assert sys.modules["__main__"].__spec__ is None
            assert not hasattr(sys.modules["__main__"], "__file__")
            assert multiprocessing.get_start_method() == (method or "spawn")
        assert surroundings() == around
    finally:
        multiprocessing.set_start_method(before, force=True)


# ------------------------------------------------------------------------------------------- scripts and their ends

SCRIPT = """
import os, sys, time
from softlearning.execution import Processes, Scheduler, Task, run

class Mine:
    def __init__(self, n): self.n = n

def work(mine, handle):
    print("working", os.getpid(), flush=True)
    open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
    time.sleep(float(sys.argv[2]))
    return {"model": Mine(mine.n + 1)}

with Processes() as engine:
    print(engine.scratch.folder, flush=True)
    [outcome] = run(Scheduler([Task("a", 0, work, (Mine(1), engine.share([1])))]), engine)
    print(type(outcome.value["model"]) is Mine, outcome.value["model"].n)
"""


@pytest.fixture
def script(tmp_path):
    """Starts a script without a `__main__` guard; gives the process, its scratch folder and the worker's number."""
    (tmp_path / "script.py").write_text(SCRIPT)
    started = []

    def launch(seconds):
        pids = tmp_path / "pids"
        command = [sys.executable, str(tmp_path / "script.py"), str(pids), str(seconds)]
        private = os.environ | {"TMPDIR": str(tmp_path)}  # other programs sweep the common one
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=private)
        started.append(process)
        folder = process.stdout.readline().strip()
        while not pids.exists() or not pids.read_text().endswith("\n"):
            time.sleep(0.02)
        return process, folder, int(pids.read_text())

    yield launch
    for process in started:
        process.kill()
        process.stdout.close()
        process.wait()


def test_classes_of_a_script_without_a_main_guard_travel_both_ways(script, start):
    process, _, _ = script(0)
    assert process.communicate()[0] == "True 2\n"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_driver_that_is_ended_leaves_no_process(script, start, how, tmp_path):
    process, folder, worker = script(1000)
    process.send_signal(how)
    process.wait()
    deadline = time.monotonic() + 20
    while psutil.pid_exists(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(worker)
    assert os.path.exists(folder) == (how == signal.SIGKILL)  # the next run sweeps it
    sweep(tmp_path)
    assert not os.path.exists(folder)


# ------------------------------------------------------------------------------------------------ modules of the user

MODULE = """
import os, threading, time
{more}
def answer():
    return {{"number": {number}.0}}
"""


@pytest.fixture
def users_module(tmp_path, monkeypatch):
    """Writes and imports, or reloads, a module that gives a number, and does more if told."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(name, more="", number=1):
        (tmp_path / f"{name}.py").write_text(MODULE.format(more=more, number=number))
        importlib.invalidate_caches()
        return importlib.reload(sys.modules[name]) if name in sys.modules else importlib.import_module(name)

    return make


def test_a_module_that_was_edited_and_reloaded_is_the_one_that_runs(users_module, start):
    for number in (1, 2, 3):
        module = users_module("module_of_a_user", number=number)
        outcomes = run([Task("a", i, module.answer, ()) for i in range(2)], isolate=True)
        assert [o.value for o in outcomes] == [{"number": float(number)}] * 2


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("module_with_threads", "threading.Thread(target=time.sleep, args=(5,), daemon=True).start()"),
        ("module_that_raises", f"if os.getpid() != {os.getpid()}: raise ValueError('not here')"),
        ("module_that_kills", f"if os.getpid() != {os.getpid()}: os._exit(1)"),
    ],
    ids=["threads", "raises", "kills"],  # the number of the process must not be part of a test's name
)
def test_a_bad_module_harms_only_who_needs_it(users_module, name, more):
    module = users_module(name, more)
    bad, good = run([Task("bad", 0, module.answer, ()), Task("good", 0, grown, (1,))], isolate=True)
    assert isinstance(good, Outcome)
    assert isinstance(bad, Outcome if name == "module_with_threads" else Failure)


# ----------------------------------------------------------------------------------------------------- odd surroundings


def ask_inside():
    [outcome] = run([Task("inner", 0, os.getpid, ())], n_jobs=2, isolate=True)
    return {"same": float(outcome.value == os.getpid())}


def test_there_is_no_pool_inside_a_pool(start):
    [outcome] = run([Task("a", 0, ask_inside, ())], isolate=True)
    assert outcome.value["same"]


def test_several_threads_may_run_tasks_at_once():
    with ThreadPoolExecutor(4) as threads:
        lists = [[Task("a", i, grown, (10 * k + i,)) for i in range(3)] for k in range(4)]
        for k, outcomes in enumerate(threads.map(lambda tasks: run(tasks, isolate=True), lists)):
            assert [o.value["number"] for o in outcomes] == [10 * k, 10 * k + 1, 10 * k + 2]


def test_the_server_outlives_the_thread_that_started_it():
    pool.after_fork()  # as in a process that has none yet
    first = []
    thread = threading.Thread(target=lambda: first.append(run([Task("a", 0, who, ())], isolate=True)))
    thread.start()
    thread.join()
    server = pool.server()
    assert isinstance(run([Task("a", 0, who, ())], isolate=True)[0], Outcome)
    assert pool.server() is server


def test_a_server_that_never_comes_up_costs_no_more_than_the_time_limit(tmp_path, monkeypatch):
    (tmp_path / "module_that_hangs.py").write_text("import time; time.sleep(1000)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(pool, "PRELOAD", ("module_that_hangs",))
    pool.after_fork()  # as in a process that has no server yet
    [outcome] = run([Task("a", 0, grown, (1,))], deadline=time.monotonic() + 2)
    assert (outcome.kind, outcome.error) == ("timeout", "TimeoutError: its process did not come up in time")
    for _ in range(600):  # an ended process may take a moment to be gone
        if not pool.started():
            break
        time.sleep(0.1)
    assert not pool.started()


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


DELETED = """
import os, sys, tempfile
folder = tempfile.mkdtemp()
os.chdir(folder)
os.rmdir(folder)
from softlearning.execution import Processes, Scheduler, Task, run
with Processes() as engine:
    print(run(Scheduler([Task("a", 0, len, ("abc",))]), engine)[0].value)
"""


def test_with_a_deleted_working_folder_tasks_run_here_and_that_is_said():
    done = subprocess.run([sys.executable, "-c", DELETED], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "3"
    assert "no worker process can be started (the working folder was deleted): tasks run in this process" in done.stderr


TAKEN_AWAY = """
import os, sys, psutil, joblib, multiprocessing.util, concurrent.futures.process, tempfile, subprocess
for name in ("resource", "fcntl", "pwd", "grp"):
    sys.modules[name] = None
for name in ("fork", "memfd_create", "killpg", "setsid", "setpgid", "register_at_fork", "sched_getaffinity", "waitid"):
    delattr(os, name)
"""
FIT = """
import softlearning.cli, softlearning.estimators
from softlearning import SoftClassifier
from softlearning.execution import pool, worker
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
assert (pool.forks(), worker.CAPPED) == (False, False)
X, y = load_iris(return_X_y=True)
model = SoftClassifier(["logistic", ("mine", GaussianNB())], cv=3, n_jobs=2, memory_limit="2 GB").fit(X, y)
print(sorted(model.leaderboard_["status"]), model.score(X, y) > 0.9)
"""


def test_import_and_fit_work_where_a_system_has_none_of_linux(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(TAKEN_AWAY)  # in every interpreter of this fit
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-c", FIT]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['ok', 'ok'] True", done.stderr
    assert done.stderr.count("sets no cap on the memory") == 1
