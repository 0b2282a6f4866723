"""Finished tasks on disk: a fit that was killed goes on where it stopped.

One file a task, named by the SHA-256 of all that its result depends on:

    <key>.task            SHA-256 of (key, body), then the body: an .npz of arrays and numbers, models as skops
    <key>.attempt-<n>     an attempt that has begun in the driver's own process and has not ended
    manifest.json         which program wrote here

A file is written beside its place, forced to the disk and moved there, so that it is whole or not there. What does not
match its checksum (damaged, cut, swapped with another, of another format) counts as absent and is computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import stat
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from softlearning.data.versions import versions
from softlearning.execution.fingerprint import fingerprint

FORMAT = 1
SHA = 32  # bytes


class Store:
    """The results of tasks, in a folder that is the user's alone.

    `settings` is whatever else the results depend on; tasks of other data or other settings lie side by side.
    """

    def __init__(self, folder: str | os.PathLike, settings: str = ""):
        self.folder = Path(folder)
        self.settings = settings
        self.restored = 0  # tasks that were given back
        self._keys: dict[int, tuple[Any, str]] = {}
        try:
            take_folder(self.folder)
            self._write("manifest.json", json.dumps({"format": FORMAT, "versions": versions()}, indent=1).encode())
        except OSError as error:
            raise type(error)(f"the checkpoint folder {folder} cannot be used: {error.strerror or error}") from error
        self.writable = True

    def key(self, task: Any) -> str:
        """Name of a task: what is computed, from which data, with which settings, by which versions."""
        if id(task) not in self._keys:
            content = (FORMAT, versions(), self.settings, task.specialist, task.fold, task.function, task.args)
            self._keys[id(task)] = task, fingerprint(*content)
        return self._keys[id(task)][1]

    def get(self, task: Any) -> dict[str, Any] | None:
        """The stored value of a task, or None where there is none that can be trusted."""
        key = self.key(task)
        try:
            data = (self.folder / f"{key}.task").read_bytes()
            value = unpacked(data[SHA:]) if data[:SHA] == checksum(key, data[SHA:]) else None
        except Exception:  # no such file, no such class any more, no memory: then it is computed again
            return None
        self.restored += value is not None
        return value

    def put(self, task: Any, value: dict[str, Any]) -> None:
        """Store the value of a task at once; a full disk costs the checkpoint, not the fit."""
        if not self.writable:
            return
        try:
            body = packed(value)
        except Exception:  # a model that skops cannot hold is fitted again after a restart
            return
        key = self.key(task)
        try:
            self._write(f"{key}.task", checksum(key, body) + body)
        except OSError as error:
            self.writable = False
            reason = f"the checkpoint folder {self.folder} can no longer be written ({error.strerror or error})"
            warnings.warn(f"{reason}: the fit goes on, and what finishes from now on is not kept", stacklevel=2)

    @contextlib.contextmanager
    def attempt(self, task: Any):
        """Leave a mark while a task runs in the driver's own process; gives the number of marks found."""
        key, marks = self.key(task), 0
        while (self.folder / f"{key}.attempt-{marks + 1}").exists():
            marks += 1
        with contextlib.suppress(OSError):
            (self.folder / f"{key}.attempt-{marks + 1}").touch()
        try:
            yield marks
        finally:  # reached by an exception and by Ctrl-C, but not when the process dies
            for n in range(marks + 1):
                with contextlib.suppress(OSError):
                    (self.folder / f"{key}.attempt-{n + 1}").unlink()

    def _write(self, name: str, data: bytes) -> None:
        """All or nothing, also when the power goes: file on the disk, then its name on the disk."""
        beside = self.folder / f"{name}.tmp-{os.getpid()}"
        try:
            with open(beside, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self.folder / name)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def take_folder(folder: Path) -> None:
    """Make the folder, for its owner alone, and remove what a killed process was about to write."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if stat.S_IMODE(folder.stat().st_mode) != 0o700:
        folder.chmod(0o700)
    for path in folder.glob("*.tmp-*"):
        if not psutil.pid_exists(int(path.name.rsplit("-", 1)[1])):
            path.unlink(missing_ok=True)


def checksum(key: str, body: bytes) -> bytes:
    """Of the key too, so that a file under another's name is noticed."""
    return hashlib.sha256(key.encode() + body).digest()


def packed(value: dict[str, Any]) -> bytes:
    """A value as .npz: arrays and numbers as they are, anything else by skops; nothing by pickle."""
    from skops import io as skops  # takes a second to import: only who keeps models pays

    parts: dict[str, np.ndarray] = {}
    for name, part in value.items():
        if isinstance(part, np.ndarray):
            parts[f"array {name}"] = part
        elif isinstance(part, bool | int | float | np.generic):
            parts[f"number {name}"] = np.asarray(part)
        else:
            parts[f"object {name}"] = np.frombuffer(skops.dumps(part), np.uint8)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **parts)
    return file.getvalue()


def unpacked(body: bytes) -> dict[str, Any]:
    """The value again. Its checksum was right and the folder is ours alone: its types are those we wrote."""
    value: dict[str, Any] = {}
    with np.load(io.BytesIO(body), allow_pickle=False) as parts:
        for entry in parts.files:
            kind, name = entry.split(" ", 1)
            value[name] = RESTORE[kind](parts[entry])
    return value


def restored_object(data: np.ndarray) -> Any:
    from skops import io as skops

    content = data.tobytes()
    return skops.loads(content, trusted=skops.get_untrusted_types(data=content))


RESTORE = {"array": lambda a: a, "number": lambda a: a.item(), "object": restored_object}
