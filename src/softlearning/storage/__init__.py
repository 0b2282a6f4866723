"""Models on disk, without pickle: one zip file whose every part is checked before anything is built.

    write_model(path, kind, params, learned)    records -> plain parts -> members -> one file, put in place in one step
    read_model(path) -> ModelFile               members -> checksums -> versions -> inspection -> records

`container` is the file, `parts` the skops archive in it with its arrays, `allowed` the list of class names,
`guards` and `native` the checks of what compiled code reads, `trial` the process in which native models are opened
first, `records` what a fit leaves behind.

What a file from a stranger can do: supply numbers. It cannot name a class that is not on the list in `allowed`, and
what compiled code would follow blindly is checked. That no known attack works does not prove that none exists: the
loaders of CatBoost and LightGBM are large programs of their own. Between people who share a `key`, sign.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning

from softlearning.data.versions import series, versions
from softlearning.storage.container import LIMIT, ModelFileError, blaming, check_key, read_file, read_key, write_file
from softlearning.storage.parts import build, dump, inspect
from softlearning.storage.records import check_record, put_together, take_apart
from softlearning.storage.trial import know, try_natives

__all__ = ["LIMIT", "ModelFile", "ModelFileError", "read_key", "read_model", "write_model"]

MOST_JOBS = 1024


@dataclass(frozen=True)
class ModelFile:
    """What a file holds: the class of the model, its parameters, what it learnt, and notes of what was not stored."""

    kind: str
    params: dict[str, Any]
    learned: dict[str, Any]
    notes: dict[str, str]


def write_model(
    path: str | PathLike,
    kind: str,
    params: dict[str, Any],
    learned: dict[str, Any],
    *,
    about: dict[str, Any] | None = None,
    key: bytes | None = None,
) -> None:
    """Write what a model is to one file.

    Parameters
    ----------
    path : where to; an existing file is replaced in one step, and a failed save leaves it as it was
    kind : the name of the model's class
    params : its parameters; one that is not plain is kept as a note and becomes None
    learned : its other attributes by name; the record of the fit is `record_`
    about : what else the manifest says, for people
    key : bytes shared with who loads; the file is then signed (HMAC-SHA256)
    """
    check_key(key)
    notes = {name: repr(value)[:1000] for name, value in params.items() if not is_plain(value)}
    plain = [[name, None if name in notes else value] for name, value in params.items()]
    models: dict[int, Any] = {}
    state = {"kind": kind, "params": plain, "learned": take_apart(learned, models)}
    members = dump({**state, "models": list(models.values())})
    check_loadable(members)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    manifest = {"model": kind, "created": created, "versions": versions(), "notes": notes, **(about or {})}
    write_file(path, manifest, members, key)


def read_model(
    path: str | PathLike, *, trusted: Collection[str] = (), max_bytes: int = LIMIT, key: bytes | None = None
) -> ModelFile:
    """Read what `write_model` wrote; refuse anything else with a `ModelFileError` that says why.

    Parameters
    ----------
    path : the file
    trusted : full names of classes of your own, such as "mypackage.MyEstimator", that the model may hold. Building
        them runs their code: name only what you know.
    max_bytes : how many bytes the loaded model may take
    key : the bytes that the file must be signed with. Without it, CatBoost's and LightGBM's models are first opened in
        a process of their own, which takes about a second; those that this process wrote or opened before are not.
    """
    check_key(key)
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError("trusted is a list of full class names, such as ['mypackage.MyEstimator']")
    data, manifest, members = read_file(path, max_bytes, key)
    check_versions(manifest)
    archive = inspect(members, max_bytes, frozenset(trusted))
    if key is None and (reason := try_natives(archive.natives, max_bytes)):
        raise ModelFileError(reason)
    names = archive.met
    del members, archive
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # `check_versions` has spoken
        found = build(data, names)
    with blaming("the model in the file does not fit together"):
        return whole_model(found, manifest)


def whole_model(found: Any, manifest: dict[str, Any]) -> ModelFile:
    """The records of a built archive, after a look at what holds of every one."""
    if not isinstance(found, dict) or found.keys() != {"kind", "params", "learned", "models"}:
        raise ModelFileError("the file does not hold one model")
    kind, params, learned = found["kind"], dict(found["params"]), put_together(found["learned"], found["models"])
    if not isinstance(kind, str) or not is_plain(params):
        raise ModelFileError("the parameters in the file are not plain values")
    if params.get("n_jobs") is not None and not -MOST_JOBS <= params["n_jobs"] <= MOST_JOBS:
        raise ModelFileError(f"the file asks for n_jobs={params['n_jobs']!r}")
    check_record(learned["record_"])
    notes = manifest.get("notes")
    return ModelFile(kind, params, learned, notes if isinstance(notes, dict) else {})


def is_plain(value: Any) -> bool:
    """Whether a parameter is made of plain values alone."""
    if isinstance(value, list | tuple):
        return all(is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(item) for key, item in value.items())
    return value is None or isinstance(value, bool | int | float | str)


def check_loadable(members: dict[str, bytes]) -> None:
    """Say now what loading would say, so that no file is written that could not be read."""
    size = sum(map(len, members.values()))
    archive = inspect(members, max(LIMIT, 64 * size), trusted=None)
    know(archive.natives)
    if archive.strangers:
        names = ", ".join(map(repr, sorted(archive.strangers)))
        warnings.warn(f"the model holds {names}; to read it: load(path, trusted=[{names}])", UserWarning, stacklevel=4)


def check_versions(manifest: dict[str, Any]) -> None:
    """Another series of scikit-learn is refused, other changes of versions give a warning.

    A series is major.minor: within it, scikit-learn keeps the attributes of fitted estimators. The formats of CatBoost
    and LightGBM are stable, as their makers say. Our own is told by its number, and later versions read it.
    """
    written, here = manifest.get("versions"), versions()
    if not isinstance(written, dict):
        raise ModelFileError("the file does not say which versions wrote it")
    for package in ("scikit-learn", "catboost", "lightgbm"):
        there = str(written.get(package))[:50]
        if package == "scikit-learn" and series(there) != series(here[package]):
            raise ModelFileError(f"the file was written with {package} {there}, and this is {here[package]}")
        if there != here[package]:
            text = f"the model was saved with {package} {there}, this is {here[package]}"
            warnings.warn(text, UserWarning, stacklevel=4)
