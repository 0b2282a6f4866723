"""Data that many tasks read: held once, never written.

`Scratch.share` keeps an array, a sparse matrix, a frame, anything that pickles, in memory or, for tasks in
other processes, in one file of a private folder. There the large buffers lie outside the pickle, so that
`Shared.load` maps them instead of reading them, and mapped memory cannot be written.

For tasks on other machines a handle travels as a name, and the engine sends the data once. Where a task arrives
(`landed`) they lie in a folder of that machine, one per fit, that all its workers read.

A folder is named after the process that made it. What a killed process left is removed by the next that makes one.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import pickle
import platform
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import psutil
from scipy import sparse

from softlearning.data.files import whole_file
from softlearning.execution.fingerprint import fingerprint

PAGE = 64  # bytes; buffers begin at multiples of it, as native code likes
PREFIX = "softlearning-"


@dataclass(frozen=True)
class Shared:
    """A handle on shared data: the path of a file, or the data itself, or both of them by name elsewhere."""

    held: Any = None
    path: str = ""
    name: str = ""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "held": None} if self.name else self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.name:
            path = os.path.join(arrival.folder, f"{self.name}.bin")
            found = {"path": path} if os.path.exists(path) else {"held": arrival.data.get(self.name)}
            self.__dict__.update(found, name="")

    def load(self) -> Any:
        """The data, read-only."""
        return fetched(self.path) if self.path else read_only(self.held)

    def own(self) -> Any:
        """The data for good: what lies in a file is read, and lives on without it."""
        return fetched(self.path, mapped=False) if self.path else self.held

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, wherever it lies."""
        return fingerprint(self.load())


class Scratch:
    """A private folder for shared data, gone at the end of the `with` block.

    shared : whether processes of this machine read it, through files.
    fit : for tasks on other machines, the name of the folder there.
    """

    def __init__(self, shared: bool, fit: str = ""):
        self.shared, self.fit = shared, fit
        self.driver = os.getpid()
        self.folder = ""
        self.count = 0
        self.held: dict[str, Any] = {}  # what `once` made, where there is no folder

    def __enter__(self) -> Scratch:
        if self.shared:
            with contextlib.suppress(OSError):  # no room, no rights: then the data travel with each task
                self.folder = tempfile.mkdtemp(prefix=f"{PREFIX}{owner()}-")  # readable by its owner alone
                sweep(Path(self.folder).parent)
        return self

    def __exit__(self, *_: object) -> None:
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def share(self, data: Any) -> Shared:
        """A handle on data, by which any task can load it."""
        self.count += 1
        if not self.folder:
            return Shared(held=data, name=str(self.count) if self.fit else "")
        path = os.path.join(self.folder, f"{self.count}.bin")
        try:
            stored(data, path)
        except OSError:  # the disk is full
            return Shared(held=data)
        return Shared(path=path)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """The data of this name: made by the first who asks, in whatever process, and read by all others."""
        if not self.folder:
            if name not in self.held:
                self.held[name] = make()
            return self.held[name]
        path = os.path.join(self.folder, f"{name}.once")
        with contextlib.suppress(FileNotFoundError):
            return fetched(path)
        data = make()
        with contextlib.suppress(OSError):  # the disk is full: the next who asks makes it again
            stored(data, path)
        return data

    def keep(self, data: Any) -> Shared:
        """A handle for the driver on what a task has made, which need not travel if both read this folder."""
        path = os.path.join(self.folder, f"{uuid.uuid4().hex}.kept")
        if self.shared and self.folder and os.getpid() != self.driver:
            with contextlib.suppress(OSError):
                stored(data, path)
                return Shared(path=path)
        return Shared(held=data)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "held": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.fit:
            self.folder, self.fit = arrival.folder, ""


class Arrival(threading.local):
    """Where the task that this thread unpickles finds its data."""

    folder = ""
    data: Mapping[str, Any] = {}


arrival = Arrival()


def landed(pickled: bytes, fit: str, data: Mapping[str, Any]) -> Any:
    """What was pickled on another machine, with shared data that came along; they are stored unless they are here."""
    folder = landing(fit)
    for name, value in data.items():
        path = os.path.join(folder, f"{name}.bin")
        with contextlib.suppress(OSError):  # the disk is full: then it is held in memory
            if not os.path.exists(path):
                stored(value, path)
    arrival.folder, arrival.data = folder, data
    try:
        return pickle.loads(pickled)
    finally:
        arrival.folder, arrival.data = "", {}


def landing(fit: str) -> str:
    """The folder of a fit on this machine, which lasts until the fit ends, or all who used it."""
    folder = Path(tempfile.gettempdir(), f"{PREFIX}fit-{fit}")
    if not (mine := folder / f"{owner()}.user").exists():
        for other in folder.parent.glob(f"{PREFIX}fit-*"):
            users = list(other.glob("*.user"))
            if other != folder and users and all(is_gone(user.stem) for user in users):
                shutil.rmtree(other, ignore_errors=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        mine.touch()
    return str(folder)


def leave(fit: str) -> None:
    """The fit has ended: nothing of it is left on this machine."""
    shutil.rmtree(Path(tempfile.gettempdir(), f"{PREFIX}fit-{fit}"), ignore_errors=True)


def stored(data: Any, path: str) -> None:
    """Data in a file: its large buffers, the pickle of the rest, and where all lies. It appears when it is whole."""
    buffers: list[Any] = []
    skeleton = cloudpickle.dumps(data, protocol=5, buffer_callback=buffers.append)
    with whole_file(path, private=True) as part, open(part, "wb") as file:
        spans = [write_aligned(file, buffer.raw()) for buffer in buffers]
        head = pickle.dumps((skeleton, spans))
        file.write(head + len(head).to_bytes(8, "little"))


def fetched(path: str, mapped: bool = True) -> Any:
    """What `stored` wrote; large buffers are mapped, or read."""
    with open(path, "rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if mapped else bytearray(file.read()))
    size = int.from_bytes(whole[-8:], "little")
    skeleton, spans = pickle.loads(whole[-8 - size : -8])
    return pickle.loads(skeleton, buffers=[whole[first : first + length] for first, length in spans])


def write_aligned(file, buffer: memoryview) -> tuple[int, int]:
    """Append a buffer; where it begins and how long it is."""
    file.write(b"\0" * (-file.tell() % PAGE))
    first = file.tell()
    file.write(buffer)
    return first, len(buffer)


def read_only(data: Any) -> Any:
    """The same data through a view that cannot be written; no copy."""
    if isinstance(data, np.ndarray):
        view = data.view()
        view.flags.writeable = False
        return view
    if isinstance(data, sparse.csr_matrix | sparse.csr_array):
        parts = tuple(read_only(part) for part in (data.data, data.indices, data.indptr))
        return type(data)(parts, shape=data.shape, copy=False)
    if isinstance(data, pd.DataFrame):
        return data.copy(deep=False)  # pandas copies on write
    return data


# ------------------------------------------------------------------------------------------------- whose file is this


def owner() -> str:
    """A name for this process that no other has: machine, number, start."""
    return f"{machine()}-{os.getpid()}-{started(os.getpid())}"


def machine() -> str:
    """This machine or container, whose numbers of processes mean nothing elsewhere."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def started(pid: int) -> str:
    """When a process started; empty when there is none. Linux counts from the boot, which no clock change moves."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    with contextlib.suppress(psutil.Error):
        return f"{psutil.Process(pid).create_time():.0f}"
    return ""


def is_gone(name: str) -> bool:
    """Whether the process that `owner` named has ended; False for what is no such name, or of another machine."""
    parts = name.split("-")
    return len(parts) == 3 and parts[0] == machine() and parts[1].isdigit() and started(int(parts[1])) != parts[2]


def sweep(folder: Path) -> None:
    """Remove the scratch folders of processes that were killed."""
    for path in folder.glob(f"{PREFIX}*-*-*-*"):
        if is_gone(path.name.removeprefix(PREFIX).rsplit("-", 1)[0]):
            shutil.rmtree(path, ignore_errors=True)
