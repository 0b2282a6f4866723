"""Disposable processes: a call runs in a fresh fork that may die, hang or grow without harm to anybody else.

One *office* process per Python process imports the heavy libraries once, on one thread, and then forks a
*hand* for each call in milliseconds:

    driver --(job file, answer file, status socket)--> office --fork--> hand: reads job, writes answer
    driver <--------- status: the exit code; closed by the driver = kill ------- office

Both files live in memory and have no name: pickles pass only between processes of one program. The office never imports
the user's script (a script without a `__main__` guard works), kills a hand together with whatever it left running, and
when the driver dies it kills all hands, removes the driver's scratch files and leaves.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickletools
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import cloudpickle

from softlearning.execution.office import CODE, unpack, write

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1"
)
TOKEN = f"softlearning-{uuid.uuid4().hex[:12]}-"  # scratch folders of this program start with it
GRACE = 0.25  # seconds between the watchdog inside the hand and the kill from outside
KNOWN = {"numpy", "scipy", "sklearn", "pandas", "lightgbm", "catboost", "softlearning", "cloudpickle", "__main__"}
KNOWN |= set(sys.stdlib_module_names)


class CannotStart(RuntimeError):
    """No disposable process can be made here."""


@dataclass
class Call:
    """A call under way in another process."""

    tag: Any
    limit: float | None
    answer_file: BinaryIO
    status: socket.socket
    start: float = field(default_factory=time.monotonic)
    stopped: float | None = None
    exit_code: int | None = None

    def overdue(self, now: float) -> bool:
        return self.limit is not None and now > self.start + self.limit + GRACE

    def stop(self) -> None:
        """Ask the office to kill the hand; the exit code still arrives by `status`."""
        if self.stopped is None:
            self.stopped = time.monotonic()
            with contextlib.suppress(OSError):
                self.status.shutdown(socket.SHUT_WR)

    def ended(self) -> bool:
        """Whether the hand has ended (or will not end: two seconds after a kill we no longer wait)."""
        try:
            message = self.status.recv(CODE.size)
        except BlockingIOError:
            return self.stopped is not None and time.monotonic() > self.stopped + 2
        except OSError:
            message = b""
        if len(message) == CODE.size:
            (self.exit_code,) = CODE.unpack(message)
        return True

    def answer(self) -> tuple[str, Any]:
        """("value", v), ("error" or "died", (reason, traceback)), or ("lost", ...) if the office died."""
        self.answer_file.seek(0)
        answer = self.answer_file.read()
        self.close()
        if self.exit_code == 0 and answer:
            with contextlib.suppress(Exception):
                return unpack(answer)
        crash = answer[:20_000].decode(errors="replace").split("\nExtension modules")[0][-4000:]
        if self.exit_code is None and self.stopped is None:
            return "lost", ("the process that starts the workers was ended", crash)
        return "died", (death(self.exit_code), crash)

    def close(self) -> None:
        self.answer_file.close()
        self.status.close()


def nameless() -> BinaryIO:
    """A file in memory, without a name: it goes when the last process that holds it closes it."""
    return open(os.memfd_create("softlearning"), "w+b", buffering=0)


def death(code: int | None) -> str:
    """Why a process ended, in words."""
    if code is None:
        return "the process could not be ended in time"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with exit code {code} and no result"


class Office:
    """The driver's end of a process that forks: started afresh, or a branch of another office."""

    def __init__(self, parent: Office | None = None, modules: frozenset[str] = frozenset()) -> None:
        self.modules = modules
        self.ready = False
        self.process: subprocess.Popen | None = None
        self.control, theirs = socket.socketpair()
        with theirs:
            if parent is None:
                self.process = launch(theirs)
            else:
                branch_off(parent, theirs, modules)

    def alive(self) -> bool:
        try:
            return self.control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def is_ready(self, seconds: float) -> bool:
        """Whether it came up; waits for it."""
        if not self.ready:
            self.control.settimeout(seconds)
            with contextlib.suppress(OSError):
                self.ready = self.control.recv(1) == b"r"
            self.control.settimeout(None)
        return self.ready

    def close(self) -> None:
        self.control.close()
        if self.process is None:
            return
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def launch(control: socket.socket) -> subprocess.Popen:
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; from softlearning.execution import office; "
        f"office.main({control.fileno()}, {os.getpid()}, {tempfile.gettempdir()!r}, {TOKEN!r})"
    )
    try:
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code],
            env=os.environ | ONE_THREAD,
            pass_fds=[control.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is for the driver alone
        )
    except OSError as error:
        raise CannotStart(f"no worker process can be started: {error}") from error


def branch_off(office: Office, control: socket.socket, modules: frozenset[str]) -> None:
    with nameless() as file:
        write(file, cloudpickle.dumps((list(sys.path), sorted(modules))))
        with contextlib.suppress(OSError):  # a dead office shows when the branch does not come up
            socket.send_fds(office.control, [b"o"], [file.fileno(), control.fileno()])


_office: Office | None = None
_branches: list[Office] = []  # for calls that need modules of the user; each knows more than the one before
_announced: frozenset[str] = frozenset()  # modules that the next branch should have
_refused = ""  # why there can be no office; asked once
_barred: frozenset[str] = frozenset()  # modules that no branch came up with
_lock = threading.RLock()


def start() -> None:
    """Begin to start the office, without waiting for it."""
    global _office, _refused
    with _lock:
        if _refused:
            raise CannotStart(_refused)
        if _office is not None and not _office.alive():
            stop()
        try:
            _office = _office or Office()
        except CannotStart as error:
            _refused = str(error)
            raise


def stop() -> None:
    """End the office, and with it all hands."""
    global _office
    with _lock:
        for office in (*_branches, _office):
            if office is not None:
                office.close()
        _office = None
        _branches.clear()


def _forget() -> None:
    """After a fork of the driver: the office belongs to the parent."""
    global _office, _lock
    for office in (*_branches, _office):
        if office is not None:
            if office.process is not None:
                office.process.returncode = 0  # not our child: nothing to wait for
            office.control.close()
    _office, _lock = None, threading.RLock()
    _branches.clear()


atexit.register(stop)
os.register_at_fork(after_in_child=_forget)


def office_for(modules: frozenset[str]) -> Office:
    """The office, ready, or a branch of it that has these modules."""
    global _barred, _refused
    start()
    assert _office is not None
    if not _office.is_ready(120):
        stop()
        _refused = "the process that starts the workers did not come up"
        raise CannotStart(_refused)
    modules = modules - _barred
    if not modules:
        return _office
    for branch in _branches:
        if modules <= branch.modules and branch.alive():
            return branch
    known = frozenset().union(*(branch.modules for branch in _branches))
    branch = Office(_office, (modules | known | _announced) - _barred)
    if branch.is_ready(60):
        _branches.append(branch)
        return branch
    branch.close()
    _barred |= branch.modules
    return _office


def announce(calls: Iterable[tuple[Callable, tuple]]) -> None:
    """Tell which calls will come, so that one branch serves them all."""
    global _announced
    for call in calls:
        with contextlib.suppress(Exception):  # a call that cannot be pickled shows when it is made
            _announced |= foreign_modules(cloudpickle.dumps(call))


def hire(function: Callable, args: tuple, *, tag: Any, limit: float | None, memory: int | None) -> Call:
    """Start `function(*args)` in a fresh process, on one thread.

    `limit` in seconds, `memory` in bytes beyond what the process starts with. Raises what pickling raises.
    """
    if not hasattr(os, "memfd_create"):
        raise CannotStart("disposable processes need Linux")
    call_bytes = cloudpickle.dumps((function, args))
    job = cloudpickle.dumps((list(sys.path), list(sys.argv), os.getcwd(), limit, memory, call_bytes))
    status, theirs = socket.socketpair()
    status.setblocking(False)
    with theirs, nameless() as job_file, _lock:
        write(job_file, job)
        office = office_for(foreign_modules(call_bytes))
        call = Call(tag, limit, nameless(), status)
        files = [job_file.fileno(), call.answer_file.fileno(), theirs.fileno()]
        with contextlib.suppress(OSError):  # a dead office shows as "lost"
            socket.send_fds(office.control, [b"h"], files)
    return call


def foreign_modules(pickled: bytes) -> frozenset[str]:
    """Modules that a pickle names and an office does not have."""
    names = {argument for code, argument, _ in pickletools.genops(pickled) if isinstance(argument, str)}
    return frozenset(name for name in names if name in sys.modules and name.split(".")[0] not in KNOWN)
