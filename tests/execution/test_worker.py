"""What a worker does on its side: caps, crash reports, and an end that leaves nothing."""

import os
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Pipe

import cloudpickle
import numpy as np
import psutil
import pytest

from softlearning.execution import worker
from tests.execution.calls import grown, refuse


def ask(function, *args, limit=float("inf"), memory=None, trace=""):
    """The answer of a worker's own code, in this process."""
    ours, theirs = Pipe()
    path, argv, folder = list(sys.path), list(sys.argv), os.getcwd()
    with ours, theirs:
        ours.send((path, argv, folder, limit, memory, trace))
        ours.send_bytes(cloudpickle.dumps((function, args)))
        try:
            return cloudpickle.loads(worker.answered(theirs))
        finally:
            sys.path[:], sys.argv[:] = path, argv


@pytest.fixture(autouse=True)
def no_child_of_the_tests_is_ended(monkeypatch):
    monkeypatch.setattr(worker, "end_children", lambda *_: None)


def test_a_call_is_answered_whatever_it_raises(tmp_path):
    assert ask(grown, 2) == ("value", {"number": 2.0})
    kind, reason, trace = ask(refuse)
    assert (kind, reason) == ("error", "ValueError: no")
    assert "in refuse" in trace
    assert ask(sys.exit, 3)[:2] == ("error", "SystemExit: 3")
    assert ask(threading.Lock)[:2] == ("error", "TypeError: cannot pickle '_thread.lock' object")


@pytest.mark.skipif(not worker.CAPPED, reason="this system sets no cap")
def test_the_cap_is_on_what_is_added_and_is_gone_afterwards():
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    assert ask(np.ones, 2**24, memory=2**26)[0] == "memory"
    assert ask(np.ones, 2**20, memory=2**26)[0] == "value"
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_without_a_cap_nothing_is_set(monkeypatch):
    monkeypatch.setattr(worker, "CAPPED", False)
    monkeypatch.setattr(worker, "resource", None)
    assert ask(np.ones, 2**20, memory=1)[0] == "value"


CRASH = """
import ctypes
from softlearning.execution import worker
with worker.crash_reports({trace!r}, {limit}):
    {action}
"""


@pytest.mark.parametrize(
    ("limit", "action", "words"),
    [
        ("float('inf')", "ctypes.string_at(0)", "Segmentation fault"),
        (0.2, "ctypes.PyDLL(None).sleep(1000)", "Timeout (0:00:00.2"),
    ],
    ids=["crash", "hang"],
)
def test_a_crash_and_a_hang_leave_a_traceback(tmp_path, limit, action, words):
    trace = str(tmp_path / "trace")
    code = CRASH.format(trace=trace, limit=limit, action=action)
    assert subprocess.run([sys.executable, "-c", code], check=False, stderr=subprocess.DEVNULL).returncode
    with open(trace) as file:
        assert words in file.read()


def sleeper(**more):
    return subprocess.Popen(["sleep", "1000"], env=os.environ | more, start_new_session=True)


def test_what_a_worker_left_is_found_by_its_mark_alone():
    marked, other = sleeper(**{worker.MARK: "4711"}), sleeper()
    try:
        worker.end_marked(4711)
        assert marked.poll() is not None
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_process_is_ended_with_all_below_it():
    shell = subprocess.Popen(["sh", "-c", "sleep 1000 & echo; wait"], stdout=subprocess.PIPE)
    shell.stdout.readline()
    [below] = psutil.Process(shell.pid).children()
    worker.end_tree(psutil.Process(shell.pid))
    shell.stdout.close()
    shell.wait(5)
    while below.is_running() and below.status() != psutil.STATUS_ZOMBIE:  # killed: how soon it is gone is the kernel's
        time.sleep(0.01)


def test_a_server_has_its_modules_and_no_polars():
    code = "import sys; from softlearning.execution import worker\n"
    code += "worker.preload(['json.tool', 'no_such_module', 'polars'])\n"
    code += "print('json.tool' in sys.modules, 'polars' in sys.modules, worker.Absent in sys.meta_path)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]
