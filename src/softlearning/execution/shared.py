"""Data that many tasks read: held once, never written.

`Scratch.share` keeps an array, a sparse matrix, a frame, anything that pickles, in memory or, for tasks in
other processes, in one file of a private folder. There the large buffers lie outside the pickle, so that
`Shared.load` maps them instead of reading them, and mapped memory cannot be written.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
from scipy import sparse

from softlearning.execution.fingerprint import fingerprint
from softlearning.execution.office import unpack
from softlearning.execution.pool import TOKEN

PAGE = 64  # bytes; buffers begin at multiples of it, as native code likes


@dataclass(frozen=True)
class Shared:
    """A handle on shared data: small where the data lies in a file, the data itself otherwise."""

    held: Any = None
    path: str = ""
    skeleton: bytes = b""
    spans: tuple[tuple[int, int], ...] = field(default=())  # first byte and length of each buffer in the file

    def load(self) -> Any:
        """The data, read-only."""
        if not self.path:
            return read_only(self.held)
        with open(self.path, "rb") as file:
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return unpack(self.skeleton, buffers=[whole[first : first + length] for first, length in self.spans])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, wherever it lies."""
        return fingerprint(self.load())


class Scratch:
    """A private folder for shared data, gone at the end of the `with` block."""

    def __init__(self, shared: bool):
        self.shared = shared
        self.folder = ""
        self.count = 0
        self.held: dict[str, Any] = {}  # what `once` made, where there is no folder

    def __enter__(self) -> Scratch:
        if self.shared:
            with contextlib.suppress(OSError):  # no room, no rights: then the data travel with each task
                self.folder = tempfile.mkdtemp(prefix=TOKEN)  # readable by its owner alone
        return self

    def __exit__(self, *_: object) -> None:
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """The data of this name: made by the first who asks, in whatever process, and read by all others."""
        if not self.folder:
            if name not in self.held:
                self.held[name] = make()
            return self.held[name]
        path = os.path.join(self.folder, name + ".once")
        with contextlib.suppress(FileNotFoundError):
            return fetched(path)
        data = make()
        with contextlib.suppress(OSError):  # the disk is full: the next who asks makes it again
            stored(data, path)
        return data

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "held": {}}

    def share(self, data: Any) -> Shared:
        if not self.folder:
            return Shared(held=data)
        path = os.path.join(self.folder, f"{self.count}.bin")
        self.count += 1
        try:
            return written(data, path)
        except OSError:  # the disk is full
            with contextlib.suppress(OSError):
                os.truncate(path, 0)
            return Shared(held=data)


def written(data: Any, path: str) -> Shared:
    skeleton, buffers = dismantle(data)
    with open(path, "wb") as file:
        spans = [write_aligned(file, buffer) for buffer in buffers]
        file.write(b"\0")  # an empty file cannot be mapped
    return Shared(path=path, skeleton=skeleton, spans=tuple(spans))


def stored(data: Any, path: str) -> None:
    """`data` in a file that says itself where its buffers lie; it appears under its name only when it is whole."""
    part = f"{path}.{os.getpid()}"
    shared = written(data, part)
    with open(part, "ab") as file:
        head = cloudpickle.dumps((shared.skeleton, shared.spans))
        file.write(head + len(head).to_bytes(8, "little"))
    os.replace(part, path)


def fetched(path: str) -> Any:
    """What `stored` wrote; large buffers are mapped."""
    with open(path, "rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    size = int.from_bytes(whole[-8:], "little")
    skeleton, spans = unpack(whole[-8 - size : -8])
    return unpack(skeleton, buffers=[whole[first : first + length] for first, length in spans])


def dismantle(data: Any) -> tuple[bytes, list[memoryview]]:
    """The pickle of `data` without its large buffers, and these."""
    buffers: list[Any] = []
    skeleton = cloudpickle.dumps(data, protocol=5, buffer_callback=buffers.append)
    return skeleton, [buffer.raw() for buffer in buffers]


def write_aligned(file, buffer: memoryview) -> tuple[int, int]:
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
