"""Finished tasks on disk: a fit that was killed goes on where it stopped.

One file per task, named by the SHA-256 of all that its result depends on:

    <key>.task.softlearning             SHA-256 of (key, body), then the body: an .npz of arrays and numbers
    <key>.<owner>.begun.softlearning    a task that has begun in the driver's own process and has not ended
    .<owner>-<n>.part.softlearning      a file that is being written

A checkpoint is data: nothing in it is unpickled. Models are kept only in a form that the caller brings (`dump` and
`load`, which must build nothing that they do not know); without one, a task that gives a model is computed again. What
does not match its checksum (damaged, cut, swapped with another, of another format) counts as absent.

Threads, processes and machines may share a folder, and it may hold other files: only names with our endings are read or
removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from softlearning.data.files import whole_file
from softlearning.data.versions import versions
from softlearning.execution.fingerprint import fingerprint, own_text
from softlearning.execution.shared import Shared, is_gone, owner

FORMAT = 2
SHA = 32  # bytes
TASK, BEGUN, PART = ".task.softlearning", ".begun.softlearning", ".part.softlearning"


class Store:
    """The results of tasks in a folder.

    settings : whatever else the results depend on; tasks of other data or other settings lie side by side.
    dump, load : a model to bytes, and (bytes, task) to the model, without pickle; what either refuses is computed
        again.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        settings: str = "",
        *,
        dump: Callable[[Any], bytes] | None = None,
        load: Callable[[bytes, Any], Any] | None = None,
    ):
        self.folder = Path(folder)
        self.settings = settings
        self.dump, self.load = dump, load
        self.writable = True
        self._keys: dict[int, tuple[Any, str]] = {}
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = f"{uuid.uuid4().hex}{PART}"
            self._write(probe, b"")
            (self.folder / probe).unlink(missing_ok=True)
            self._sweep()
        except OSError as error:
            raise type(error)(f"the checkpoint folder {folder} cannot be used: {error.strerror or error}") from error

    def key(self, task: Any) -> str:
        """Name of a task: what is computed, from which data, with which settings, by which code and versions."""
        if id(task) not in self._keys:
            by = (FORMAT, versions(), own_text(), self.settings)
            what = (task.specialist, task.fold, task.function, task.args)
            try:
                key = fingerprint(by, what)
            except Exception:  # code or data that cannot be read: a name that nobody will ask for again
                key = uuid.uuid4().hex
            self._keys[id(task)] = task, key
        return self._keys[id(task)][1]

    def get(self, task: Any) -> dict[str, Any] | None:
        """The stored value of a task, or None where there is none that can be trusted."""
        key = self.key(task)
        try:
            data = (self.folder / f"{key}{TASK}").read_bytes()
            return self._unpacked(data[SHA:], task) if data[:SHA] == checksum(key, data[SHA:]) else None
        except Exception:  # no such file, a model that `load` refuses, no memory: then it is computed again
            return None

    def put(self, task: Any, value: dict[str, Any]) -> None:
        """Store the value of a task at once; a full disk costs the checkpoint, not the fit."""
        if not self.writable:
            return
        try:
            body = self._packed(value)
        except Exception:  # a value that cannot be kept without pickle is computed again after a restart
            return
        key = self.key(task)
        try:
            self._write(f"{key}{TASK}", checksum(key, body) + body)
        except OSError as error:
            self.writable = False
            reason = f"the checkpoint folder {self.folder} can no longer be written ({error.strerror or error})"
            warnings.warn(f"{reason}: the fit goes on, and what finishes from now on is not kept", stacklevel=2)

    @contextlib.contextmanager
    def attempt(self, task: Any) -> Iterator[int]:
        """Leave a mark while a task runs in the driver's own process; gives how many drivers died with it under way."""
        marks = [p for p in self.folder.glob(f"{self.key(task)}.*{BEGUN}") if is_gone(p.name.split(".")[1])]
        own = self.folder / f"{self.key(task)}.{owner()}{BEGUN}"
        with contextlib.suppress(OSError):
            own.touch(mode=0o600)
        try:
            yield len(marks)
        finally:  # reached by an exception and by Ctrl-C, but not when the process dies
            for mark in (own, *marks):
                with contextlib.suppress(OSError):
                    mark.unlink()

    def _write(self, name: str, data: bytes) -> None:
        """All or nothing, also when the power goes: file on the disk, then its name on the disk."""
        with whole_file(self.folder / name, private=True, mark=f"{owner()}-") as part, open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if os.name == "posix":  # Windows opens no folders
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _sweep(self) -> None:
        """Remove what a killed process was about to write."""
        for path in self.folder.glob(f"*{PART}"):
            if is_gone(path.name.removesuffix(PART).rsplit(".", 1)[-1].rsplit("-", 1)[0]):
                path.unlink(missing_ok=True)

    def _packed(self, value: dict[str, Any]) -> bytes:
        """A value as .npz: arrays and numbers as they are, anything else as the bytes of `dump`."""
        parts: dict[str, np.ndarray] = {}
        for name, part in value.items():
            if isinstance(part, np.ndarray):
                parts[f"array {name}"] = part
            elif isinstance(part, bool | int | float | np.generic):
                parts[f"number {name}"] = np.asarray(part)
            else:
                shared = isinstance(part, Shared)
                dumped = self.dump(part.own() if shared else part)  # type: ignore[misc]
                parts[f"{'shared' if shared else 'model'} {name}"] = np.frombuffer(dumped, np.uint8)
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **parts)
        return file.getvalue()

    def _unpacked(self, body: bytes, task: Any) -> dict[str, Any]:
        value: dict[str, Any] = {}
        with np.load(io.BytesIO(body), allow_pickle=False) as parts:
            for entry in parts.files:
                kind, name = entry.split(" ", 1)
                value[name] = parts[entry].item() if kind == "number" else parts[entry]
                if kind in ("model", "shared"):
                    model = self.load(value[name].tobytes(), task)  # type: ignore[misc]
                    value[name] = Shared(model) if kind == "shared" else model
        return value


def checksum(key: str, body: bytes) -> bytes:
    """Of the key too, so that a file under another's name is noticed."""
    return hashlib.sha256(key.encode() + body).digest()
