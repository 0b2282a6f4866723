"""Disposable processes: a call runs in a fresh fork that may die, hang or grow without harm to anybody else.

One *office* process per Python process imports the heavy libraries once, on one thread, and then forks a
*hand* for each call in milliseconds:

    driver --(job file, answer file, status socket)--> office --fork--> hand: reads job, writes answer
    driver <--------- status: the exit code; closed by the driver = kill ------- office

Both files live in memory and have no name: pickles pass only between processes of one program. The office
never imports the user's script (a script without a `__main__` guard works), kills a hand together with whatever
it left running, and when the driver dies it kills all hands, removes the driver's scratch files and leaves.
"""

from __future__ import annotations

import atexit
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
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.reduction import ForkingPickler
from typing import Any, BinaryIO

import cloudpickle

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "LOKY_MAX_CPU_COUNT"),
    "1",
)
PRELOAD: tuple[str, ...] = (
    "numpy",
    "scipy.linalg",
    "scipy.optimize",
    "pandas",
    "sklearn.ensemble",
    "sklearn.linear_model",
)
PRELOAD += ("sklearn.svm", "sklearn.neighbors", "sklearn.neural_network", "sklearn.gaussian_process")
PRELOAD += ("sklearn.calibration", "lightgbm", "catboost", "softlearning.execution", "softlearning.crossfit")
TOKEN = f"softlearning-{uuid.uuid4().hex[:12]}-"  # scratch folders of this program start with it
GRACE = 0.25  # seconds between the watchdog inside the hand and the kill from outside
CODE = struct.Struct("i")
LIBC = ctypes.CDLL(None)
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG

unpack = ForkingPickler.loads  # what multiprocessing itself uses between its own processes
inside = False  # True in a hand: no crew inside a crew


class CannotStart(RuntimeError):
    """No disposable process can be made here."""


# ---------------------------------------------------------------------------------------------- in the driver


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
    """The driver's end of the forking process."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair()
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from softlearning import crew; "
            f"crew.serve({theirs.fileno()}, {os.getpid()}, {TOKEN!r}, {tempfile.gettempdir()!r})"
        )
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", code],
                env=os.environ | ONE_THREAD,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in the terminal is for the driver alone
            )
        except OSError as error:
            raise CannotStart(f"no worker process can be started: {error}") from error
        finally:
            theirs.close()
        self.ready = False

    def wait_until_ready(self, seconds: float = 120) -> None:
        if not self.ready:
            self.control.settimeout(seconds)
            with contextlib.suppress(OSError):
                self.ready = self.control.recv(1) == b"r"
            self.control.settimeout(None)
        if not self.ready:
            self.close()
            raise CannotStart("the process that starts the workers did not come up")

    def close(self) -> None:
        self.control.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


_office: Office | None = None
_refused = ""  # why there can be no office; asked once
_lock = threading.Lock()


def start() -> None:
    """Begin to start the office, without waiting for it."""
    global _office, _refused
    with _lock:
        if _refused:
            raise CannotStart(_refused)
        if _office is not None and _office.process.poll() is not None:
            _office.close()
            _office = None
        try:
            _office = _office or Office()
        except CannotStart as error:
            _refused = str(error)
            raise


def stop() -> None:
    """End the office, and with it all hands."""
    global _office
    with _lock:
        if _office is not None:
            _office.close()
        _office = None


def _forget() -> None:
    """After a fork of the driver: the office belongs to the parent."""
    global _office, _lock
    if _office is not None:
        _office.process.returncode = 0  # not our child: nothing to wait for
        _office.control.close()
    _office, _lock = None, threading.Lock()


atexit.register(stop)
os.register_at_fork(after_in_child=_forget)


def hire(function: Callable, args: tuple, *, tag: Any, limit: float | None, memory: int | None) -> Call:
    """Start `function(*args)` in a fresh process, on one thread.

    `limit` in seconds, `memory` in bytes beyond what the process starts with. Raises what pickling raises.
    """
    call_bytes = cloudpickle.dumps((function, args))
    job = cloudpickle.dumps((list(sys.path), list(sys.argv), os.getcwd(), limit, memory, call_bytes))
    start()
    status, theirs = socket.socketpair()
    status.setblocking(False)
    call = Call(tag, limit, nameless(), status)
    with theirs, nameless() as job_file, _lock:
        write(job_file, job)
        assert _office is not None
        _office.wait_until_ready()
        call.start = time.monotonic()
        files = [job_file.fileno(), call.answer_file.fileno(), theirs.fileno()]
        with contextlib.suppress(OSError):  # a dead office shows as "lost"
            socket.send_fds(_office.control, [b"h"], files)
    return call


def write(file: BinaryIO, data: bytes) -> None:
    rest = memoryview(data)
    while len(rest):
        rest = rest[file.write(rest) :]


# ---------------------------------------------------------------------------------------------- in the office


def serve(control_fd: int, driver: int, token: str, scratch: str) -> None:
    """Fork a hand for each request, report how each ended, leave when the driver has gone."""
    control = socket.socket(fileno=control_fd)
    preload()
    wake, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    control.sendall(b"r")
    hands: dict[int, socket.socket] = {}  # process group -> status socket
    while os.getppid() == driver:
        ready = select.select([control, wake, *hands.values()], [], [], 1.0)[0]
        if wake in ready:
            wake.recv(4096)
        for group, status in list(hands.items()):
            if status in ready:  # the driver wants it dead, or is dead
                kill(group)
        reap(hands)
        if control in ready:
            message, fds, *_ = socket.recv_fds(control, 1, 3)
            if not message:
                break
            fork(fds, hands, (control, wake, waker))
    for group in hands:
        kill(group)
    for name in os.listdir(scratch):
        if name.startswith(token):
            shutil.rmtree(os.path.join(scratch, name), ignore_errors=True)


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
    gc.collect()
    gc.freeze()  # the collector of a hand must not touch, and so copy, these pages


def kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def reap(hands: dict[int, socket.socket]) -> None:
    """Report ended hands, and end what they left running (while the group's number is still theirs)."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None:
            return
        kill(ended.si_pid)
        _, code = os.waitpid(ended.si_pid, 0)
        if (status := hands.pop(ended.si_pid, None)) is not None:
            with status, contextlib.suppress(OSError):
                status.sendall(CODE.pack(os.waitstatus_to_exitcode(code)))


def fork(fds: list[int], hands: dict[int, socket.socket], ours: tuple[socket.socket, ...]) -> None:
    job, answer, status = os.fdopen(fds[0], "rb"), os.fdopen(fds[1], "wb", 0), socket.socket(fileno=fds[2])
    pid = os.fork()
    if pid:
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)  # here and in the hand: whoever comes first
        job.close()
        answer.close()
        hands[pid] = status
        return
    try:
        os.setpgid(0, 0)
        LIBC.prctl(DIE_WITH_PARENT, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for other in (status, *ours, *hands.values()):
            other.close()
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


def say(error: BaseException) -> str:
    """Type and message, even when the message itself cannot be made."""
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be printed)"
    return f"{type(error).__name__}: {text}"[:2000].rstrip(": ")


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
