"""What runs on the other side of the pool: `work` in a worker, `serve` in the server that forks workers.

Both begin in a fresh interpreter that never imports the user's script. Bytes are unpickled by `Connection.recv` alone,
as they come from the driver's end of a pipe.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import multiprocessing
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle
from typing import Any

import cloudpickle
import psutil

from softlearning.execution.tasks import FOREVER, controller, one_thread, say

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

CAPPED = sys.platform == "linux" and resource is not None  # elsewhere RLIMIT_DATA is not there, or is not kept
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1"
)
MARK = "SOFTLEARNING_WORKER"  # in the environment of all that a worker starts: whose it is
DIE_WITH_PARENT, ADOPT_ORPHANS = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER
inside = False  # True in a worker: no pool inside a pool


def work(connection: Connection, others: Iterable[Connection] = (), forked: bool = False) -> None:
    """Answer calls that come by the connection, one after another, until it closes."""
    global inside
    inside = True
    for other in others:  # a fork has them all
        other.close()
    detach()
    if not (forked and with_kernel(DIE_WITH_PARENT, signal.SIGKILL)):
        threading.Thread(target=leave_with_parent, daemon=True).start()
    connection.send(("ready", os.getpid()))
    while True:
        try:
            answer = answered(connection)
        except (EOFError, ConnectionError):  # the driver wants no more, or is gone
            end_children()
            os._exit(0)  # no exit handlers, no waiting for threads that a task left behind
        connection.send_bytes(answer)


def answered(connection: Connection) -> bytes:
    """The pickled answer to one call, whatever it raises: ("value", value) or (kind, reason, traceback)."""
    sys.path[:], sys.argv[:], folder, limit, memory, trace = connection.recv()
    me = os.getpid()
    with contextlib.suppress(OSError):
        os.chdir(folder)
    with crash_reports(trace, limit):
        try:
            function, args = connection.recv()
            with one_thread, memory_cap(memory):
                value = function(*args)
            answer = cloudpickle.dumps(("value", value))
        except BaseException as error:
            kind = "memory" if isinstance(error, MemoryError) else "error"
            answer = cloudpickle.dumps((kind, say(error), traceback.format_exc(limit=-20)))
    if os.getpid() != me:  # a child that the task forked has come back here
        os._exit(0)
    end_children()
    return answer


@contextlib.contextmanager
def crash_reports(trace: str, limit: float) -> Iterator[None]:
    """A call that crashes or overstays leaves a traceback, also when it holds the interpreter's lock."""
    with open(trace or os.devnull, "w") as file:
        faulthandler.enable(file)
        if limit < FOREVER:
            faulthandler.dump_traceback_later(max(limit, 0.01), exit=True, file=file)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            faulthandler.disable()


@contextlib.contextmanager
def memory_cap(extra: int | None) -> Iterator[None]:
    """Let the process allocate `extra` bytes more than it has; then MemoryError, or native code dies."""
    if extra is None or not CAPPED:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with open("/proc/self/status") as file:
        held = next((int(line.split()[1]) * 1024 for line in file if line.startswith("VmData:")), 0)
    resource.setrlimit(resource.RLIMIT_DATA, (held + extra if hard < 0 else min(held + extra, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


# ---------------------------------------------------------------------------------------------- alone in the world


def detach() -> None:
    """Make this process one that can be ended alone: silent, on one thread, deaf to Ctrl-C, known by its mark."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver, which then ends us
    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):
            os.setsid()  # a group of its own: what a task starts is ended with it
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if the machine runs out of memory, take me and not the driver
    os.environ.update(ONE_THREAD)
    warnings.simplefilter("ignore")
    os.environ[MARK] = str(os.getpid())
    with_kernel(ADOPT_ORPHANS, 1)


def with_kernel(option: int, value: int) -> bool:
    """Ask Linux for something about this process; False where there is no such kernel."""
    try:
        return sys.platform == "linux" and ctypes.CDLL(None).prctl(option, value) == 0
    except (OSError, AttributeError):
        return False


def leave_with_parent() -> None:
    """Wait for the end of the process that started this one, and follow."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        end_children()
        os._exit(1)


def end_children(spared: Iterable[int] = ()) -> None:
    """End what was started below this process, except the spared and what is below them."""
    for child in psutil.Process().children():
        if child.pid not in spared:
            end_tree(child)


def end_tree(process: psutil.Process) -> None:
    """End a process and all that it started."""
    with contextlib.suppress(psutil.Error, OSError):
        for each in (*process.children(recursive=True), process):
            with contextlib.suppress(psutil.Error):
                each.kill()  # asks first whether the number still belongs to the same process
        process.wait(1)


def end_marked(pid: int) -> None:
    """End what a worker left running when it died: found by the mark, since its parent is gone."""
    for process in psutil.process_iter(["environ"]):
        if (process.info["environ"] or {}).get(MARK) == str(pid):
            end_tree(process)


# ---------------------------------------------------------------------------------------------------- the server


def serve(requests: Connection, modules: list[str]) -> None:
    """Fork a worker for each connection that the driver sends, and tell by it how the worker ended.

    The server has one thread and imports what specialists need once; it never imports a module of the user's.
    """
    detach()
    preload(modules)
    multiprocessing.current_process().daemon = False  # a daemon may have no children; these die with it all the same
    forking = multiprocessing.get_context("fork")
    workers: dict[Any, Connection] = {}
    requests.send("ready")
    while True:
        ready = wait([requests, *(worker.sentinel for worker in workers)])
        for worker in [w for w in workers if w.sentinel in ready]:
            report(worker, workers.pop(worker), [w.pid for w in workers])
        if requests in ready:
            try:
                connection = Connection(recv_handle(requests))
            except (EOFError, OSError):  # the driver is gone
                break
            others = [requests, *workers.values()]
            worker = forking.Process(target=work, args=(connection, others, True), daemon=True)
            worker.start()
            workers[worker] = connection
    end_children()
    os._exit(0)


def report(worker: Any, connection: Connection, others: list[int]) -> None:
    """A worker has ended: end what it left running, which is now below the server, and tell the driver."""
    worker.join()
    with contextlib.suppress(OSError):
        os.killpg(worker.pid, signal.SIGKILL)
    end_children(spared=others)
    with connection, contextlib.suppress(OSError):
        connection.send(("ended", worker.exitcode))


class Absent:
    """An importer for which polars is not installed: it starts threads, which a process that forks must not have."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "polars":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def preload(modules: list[str]) -> None:
    """Import modules, and leave them where the garbage collector of a fork will not touch, and so copy, them."""
    sys.meta_path.insert(0, Absent)
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    sys.meta_path.remove(Absent)
    controller()  # its search for libraries is inherited too
    gc.collect()
    gc.freeze()
