"""The process that forks: `serve` runs in an office, `work` in each of its hands (see `crew`).

An office is one process with one thread that has imported the heavy libraries. It may open a branch: a fork of itself
that also imports the modules of the user's own specialists, which an office must not be exposed to.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import traceback
from importlib import import_module
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, BinaryIO

import cloudpickle

PRELOAD = (
    *("numpy", "scipy.linalg", "scipy.optimize", "pandas", "sklearn.ensemble", "sklearn.linear_model", "sklearn.svm"),
    *("sklearn.neighbors", "sklearn.neural_network", "sklearn.gaussian_process", "sklearn.naive_bayes"),
    *("sklearn.discriminant_analysis", "sklearn.calibration", "lightgbm", "catboost"),
    *("softlearning.execution", "softlearning.method.crossfit"),
)
CODE = struct.Struct("i")  # an exit code on its way to the driver
LIBC = ctypes.CDLL(None)
DIE_WITH_PARENT, TAKE_ORPHANS = 1, 36  # PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER

unpack = ForkingPickler.loads  # what multiprocessing itself uses between its own processes
inside = False  # True in a hand: no crew inside a crew


def write(file: BinaryIO, data: bytes) -> None:
    """All of `data` into a file without a buffer."""
    rest = memoryview(data)
    while len(rest):
        rest = rest[file.write(rest) :]


def say(error: BaseException) -> str:
    """Type and message, even when the message itself cannot be made."""
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be printed)"
    return f"{type(error).__name__}: {text}"[:2000].rstrip(": ")


# ---------------------------------------------------------------------------------------------- in the office


def main(control: int, driver: int, scratch: str, token: str) -> None:
    """An office: serve until the driver has gone, then remove the scratch folders that it had no time to remove."""
    preload()
    LIBC.prctl(TAKE_ORPHANS, 1)
    serve(socket.socket(fileno=control), driver)
    for folder in Path(scratch).glob(f"{token}*"):
        shutil.rmtree(folder, ignore_errors=True)


class Absent:
    """An importer for which a package is not installed."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "polars":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def preload() -> None:
    """Import what specialists need. Polars starts threads, which a process that forks must not have."""
    sys.meta_path.insert(0, Absent)
    for name in PRELOAD:
        with contextlib.suppress(Exception):
            import_module(name)
    sys.meta_path.remove(Absent)
    with contextlib.suppress(Exception):
        warm_up()
    gc.collect()
    gc.freeze()  # the collector of a hand must not touch, and so copy, these pages


def warm_up() -> None:
    """Fit something small: much of the first fit in a process goes into things that are looked up once."""
    import numpy as np
    import pandas as pd
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeRegressor

    X, y = np.arange(16.0).reshape(8, 2), np.arange(8) % 2
    for table in (X, pd.DataFrame(X, columns=["a", "b"])):
        LogisticRegression().fit(table, y).predict_proba(table)
        DecisionTreeRegressor(max_depth=1).fit(table, y).predict(table)


def serve(control: socket.socket, parent: int) -> None:
    """Fork a hand for each request, report how each ended, leave when the parent or the driver has gone."""
    wake, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    control.sendall(b"r")
    hands: dict[int, socket.socket] = {}  # process group -> status socket
    branches: set[int] = set()
    while os.getppid() == parent:
        ready = select.select([control, wake, *hands.values()], [], [], 1.0)[0]
        if wake in ready:
            wake.recv(4096)
        for group, status in list(hands.items()):
            if status in ready:  # the driver wants it dead, or is dead
                kill(group)
        reap(hands, branches)
        if control in ready:
            request, fds, *_ = socket.recv_fds(control, 1, 3)
            if not request:
                break
            ours = (control, wake, waker, *hands.values())
            if request == b"o":
                branches.add(open_branch(fds, ours))
            else:
                pid, hands_status = fork_hand(fds, ours)
                hands[pid] = hands_status
    for group in (*hands, *branches):
        kill(group)


def kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def reap(hands: dict[int, socket.socket], branches: set[int]) -> None:
    """Report ended hands, and end what they left running (while the group's number is still theirs)."""
    while (ended := ended_child()) is not None:
        kill(ended)
        _, code = os.waitpid(ended, 0)
        branches.discard(ended)
        if (status := hands.pop(ended, None)) is not None:
            end_orphans(hands, branches)
            with status, contextlib.suppress(OSError):
                status.sendall(CODE.pack(os.waitstatus_to_exitcode(code)))


def ended_child() -> int | None:
    """A child that has ended and still has its number."""
    with contextlib.suppress(ChildProcessError):
        if (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            return ended.si_pid
    return None


def end_orphans(hands: dict[int, socket.socket], branches: set[int]) -> None:
    """End processes that a hand left in a group of their own: they have become children of the office."""
    with contextlib.suppress(OSError):
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        for pid in set(map(int, children)) - hands.keys() - branches:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def forked(ours: tuple[socket.socket, ...]) -> int:
    """Fork into a group of its own, which dies with this process and holds none of its sockets; 0 in the child."""
    if pid := os.fork():
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)  # here and in the child: whoever comes first
        return pid
    os.setpgid(0, 0)
    LIBC.prctl(DIE_WITH_PARENT, signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for other in ours:
        other.close()
    return 0


def open_branch(fds: list[int], ours: tuple[socket.socket, ...]) -> int:
    """A fork of this office with the modules that its hands will need."""
    parent = os.getpid()
    if pid := forked(ours):
        for fd in fds:
            os.close(fd)
        return pid
    try:
        with os.fdopen(fds[0], "rb") as file:
            file.seek(0)
            sys.path[:], modules = unpack(file.read())
        threads = len(os.listdir("/proc/self/task"))
        for name in modules:
            with contextlib.suppress(BaseException):  # a hand that needs it will say what is wrong with it
                import_module(name)
        gc.freeze()
        LIBC.prctl(TAKE_ORPHANS, 1)
        if len(os.listdir("/proc/self/task")) <= threads:  # else a module started threads: forks of it may hang
            serve(socket.socket(fileno=fds[1]), parent)
    finally:
        os._exit(0)


def fork_hand(fds: list[int], ours: tuple[socket.socket, ...]) -> tuple[int, socket.socket]:
    job, answer, status = os.fdopen(fds[0], "rb"), os.fdopen(fds[1], "wb", 0), socket.socket(fileno=fds[2])
    if pid := forked((*ours, status)):
        job.close()
        answer.close()
        return pid, status
    try:
        work(job, answer)
    finally:
        os._exit(1)


# ------------------------------------------------------------------------------------------------ in the hand


def work(job: BinaryIO, answer: BinaryIO) -> None:
    """Answer one call. Nothing after the answer: no exit handlers, no waiting for threads left behind."""
    global inside
    inside, me = True, os.getpid()
    job.seek(0)
    sys.path[:], sys.argv[:], folder, limit, memory, call = unpack(job.read())
    job.close()
    with contextlib.suppress(OSError):
        os.chdir(folder)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if the machine runs out of memory, take me and not the driver
    faulthandler.enable(file=answer.fileno())  # a crash tells where it was
    if limit is not None:
        faulthandler.dump_traceback_later(max(limit, 0.01), exit=True, file=answer.fileno())
    result = perform(call, memory)
    faulthandler.cancel_dump_traceback_later()
    if os.getpid() == me:  # else a child that the call forked has come back here
        write(answer, result)
        os._exit(0)


def perform(call: bytes, memory: int | None) -> bytes:
    """The pickled answer of a pickled call, whatever it raises."""
    try:
        function, args = unpack(call)
        with memory_cap(memory):
            value = function(*args)
        return cloudpickle.dumps(("value", value))
    except BaseException as error:
        return cloudpickle.dumps(("error", (say(error), traceback.format_exc(limit=-20))))


@contextlib.contextmanager
def memory_cap(extra: int | None):
    """Let the process allocate `extra` bytes more than it has; then MemoryError, or native code dies."""
    if extra is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = private_bytes() + extra
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard < 0 else min(wanted, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def private_bytes() -> int:
    """The memory that RLIMIT_DATA counts, in bytes."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0
