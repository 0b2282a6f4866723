"""Models on disk, without pickle: one zip file whose every part is checked before anything is built.

    save(model, path)       state tree + arrays + estimators -> members -> one file, put in place in one step
    load(path) -> model     members -> checksums -> versions -> inspection of every part -> model -> replay

`container` is the file, `arrays` the npy members, `parts` the estimators (skops), `allowed` the list of class names,
`guards` and `native` the checks of their numbers, `codec` the state tree. A loaded model answers its stored reference
rows as the saved one did, or is not returned.

What a file from a stranger can do: supply numbers. It cannot name a class that is not on the list in `allowed`, and
what compiled code would follow blindly is checked. That no known attack works does not prove that none exists: the
loaders of CatBoost and LightGBM are large programs of their own. Between people who share a `key`, sign.
"""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils.validation import check_is_fitted

from softlearning.data.schema import describe
from softlearning.estimators import SoftLearning
from softlearning.method.ensemble import predict_members
from softlearning.storage.codec import Reader, Writer
from softlearning.storage.container import LIMIT, ModelFileError, read_json, read_model, write_model
from softlearning.storage.parts import inspect
from softlearning.uncertainty.disagreement import blend

__all__ = ["ModelFileError", "load", "save"]

PACKAGES = ("softlearning", "scikit-learn", "numpy", "scipy", "pandas", "skops", "catboost", "lightgbm")
TOLERANCE = 1e-6  # of replayed predictions, relative to the largest: another machine may round differently


def save(model: Any, path: str | PathLike, *, keep_oof: bool = True, key: bytes | None = None) -> None:
    """Write a fitted model to one file: only what earned weight, and of the data what the model needs to go on.

    That is the target, the folds and out-of-fold predictions, and the rows that neighbours and kernel machines keep.

    Parameters
    ----------
    model : SoftClassifier, SoftRegressor or scikit-learn estimator
    path : where to; an existing file is replaced in one step, and a failed save leaves it as it was
    keep_oof : False leaves out the out-of-fold predictions, which intervals, sets, the report and `recombine` need
    key : bytes shared with who loads; the file is then signed (HMAC-SHA256)

    Notes
    -----
    Functions and a user's own library cannot be stored; such a parameter is kept as a note and becomes None. Random
    generators and optimizers of the specialists are left out: a loaded model predicts, it does not go on training.
    """
    path = Path(path)
    if isinstance(model, SoftLearning):
        check_is_fitted(model)
    writer = Writer()
    state = {"model": slim(model, keep_oof), "reference": reference(model)}
    tree = writer.encode(state)
    members = {"state.json": json.dumps(tree, allow_nan=False).encode(), **writer.members}
    check_loadable(members)
    write_model(path, manifest_of(model, writer.notes), members, key)


def load(
    path: str | PathLike, *, trusted: Collection[str] = (), max_bytes: int = LIMIT, key: bytes | None = None
) -> Any:
    """Read a model that `save` wrote; refuse anything else with a `ModelFileError` that says why.

    Parameters
    ----------
    path : the file
    trusted : full names of classes of your own, such as "mypackage.MyEstimator", that the model may hold. Building
        them runs their code: name only what you know.
    max_bytes : how many bytes the file may unpack to
    key : the bytes that the file must be signed with

    Returns
    -------
    The model, which answers the stored reference rows as the saved one did.
    """
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError("trusted is a list of full class names, such as ['mypackage.MyEstimator']")
    manifest, members = read_model(Path(path), max_bytes, key)
    check_versions(manifest)
    try:
        model = built_model(members, max_bytes, frozenset(trusted))
    except ModelFileError:
        raise
    except Exception as error:  # whatever goes wrong with a file is the file's fault, and said in one way
        raise ModelFileError(
            f"the model in the file does not fit together ({type(error).__name__}: {error})"
        ) from error
    if isinstance(model, SoftLearning):
        model.__dict__["_notes"] = manifest.get("notes")
    return model


def built_model(members: dict[str, bytes], limit: int, trusted: Collection[str]) -> Any:
    """The model of checked members, after a look at the whole of it and a replay of its reference rows."""
    tree = read_json(members.pop("state.json", b""), limit)
    if not isinstance(tree, dict) or tree.keys() != {"model", "reference"}:
        raise ModelFileError("the file does not hold one model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # `check_versions` has spoken
        state = Reader(members, limit, trusted).decode(tree)
    if isinstance(state["model"], SoftLearning):
        check_model(state["model"])
    replay(state["model"], state["reference"])
    return state["model"]


def check_loadable(members: dict[str, bytes]) -> None:
    """Say now what loading would say, so that no file is written that could not be read."""
    strangers: set[str] = set()
    for name, data in members.items():
        if name.endswith(".skops"):
            strangers |= inspect(data, max(LIMIT, 64 * len(data)), trusted=None).strangers
    if strangers:
        names = ", ".join(map(repr, sorted(strangers)))
        warnings.warn(f"the model holds {names}; to read it: load(path, trusted=[{names}])", UserWarning, stacklevel=3)


# --- what goes into a file


def slim(model: Any, keep_oof: bool) -> Any:
    """The model without models of folds that the team does not use and, if so wished, its out-of-fold predictions."""
    if not isinstance(model, SoftLearning):
        return model
    changes: dict[str, Any] = {"models": {}} if keep_oof else {"models": {}, "oof": None}
    learned = replace(model.record_, crossed=replace(model.record_.crossed, **changes))
    small = type(model)()
    small.__dict__.update(model.__dict__, record_=learned)
    return small


def reference(model: Any) -> Any:
    """(rows, answer) that the model keeps of its training table, to be replayed after loading; None without."""
    rows = getattr(model, "_reference", None)
    return None if rows is None else (rows, answer(model, rows))


def answer(model: Any, rows: Any) -> np.ndarray:
    """Predictions of a model on canonical rows."""
    learned = model.record_
    return blend(
        predict_members(learned.ensemble, learned.support(), rows), model.weights_[learned.support()].to_numpy()
    )


def manifest_of(model: Any, notes: dict[str, str]) -> dict[str, Any]:
    manifest = {
        "model": type(model).__name__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "versions": versions(),
        "notes": notes,
    }
    if isinstance(model, SoftLearning):
        proof = model.certificate_
        manifest["input"] = describe(model.record_.training.schema)
        manifest["certificate"] = {"objective": float(proof["objective"]), "gap": float(proof["gap"])}
        manifest["weights"] = {name: float(w) for name, w in model.weights_.items() if w > 0}
    return manifest


def versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found


# --- what must hold of a file


def check_versions(manifest: dict[str, Any]) -> None:
    """Another series of softlearning or of scikit-learn is refused; other changes are left to the replay.

    A series is major.minor: within it, scikit-learn keeps the attributes of fitted estimators, and softlearning its
    records. The formats of CatBoost and LightGBM are stable by promise of their makers: a change gives a warning.
    """
    written, here = manifest.get("versions"), versions()
    if not isinstance(written, dict):
        raise ModelFileError("the file does not say which versions wrote it")
    for package in ("softlearning", "scikit-learn"):
        if series(written.get(package)) != series(here[package]):
            there = str(written.get(package))[:50]
            raise ModelFileError(f"the file was written with {package} {there}, and this is {here[package]}")
    for package in ("scikit-learn", "catboost", "lightgbm"):
        if written.get(package) != here[package]:
            there = str(written.get(package))[:50]
            warnings.warn(
                f"the model was saved with {package} {there}, this is {here[package]}", UserWarning, stacklevel=3
            )


def series(text: Any) -> str:
    return ".".join(str(text).split(".")[:2])


def check_model(model: SoftLearning) -> None:
    """What every fitted model has: weights on the simplex, a fitted specialist and a view for each of them."""
    learned = getattr(model, "record_", None)
    if learned is None:
        return
    weights, names = np.asarray(learned.solution.weights, dtype=float), learned.crossed.library.names
    if weights.shape != (len(names),) or not np.isfinite(weights).all():
        raise ModelFileError("the weights in the file are not one finite number a specialist")
    if (weights < 0).any() or abs(weights.sum() - 1) > 1e-6 or not np.array_equal(model.weights_, learned.weights()):
        raise ModelFileError("the weights in the file are not on the simplex")
    team = learned.ensemble
    for name in learned.support():
        if not team.members.get(name) or name not in team.specialists or name not in team.calibration:
            raise ModelFileError(f"the specialist {name!r} has weight and is not in the file")
    if any(member.view and member.view not in team.views for found in team.members.values() for member in found):
        raise ModelFileError("a specialist in the file reads a view that is not there")
    outputs = learned.training.target.shape[1]
    if team.classes != outputs or len(getattr(model, "classes_", [None])) not in (1, outputs):
        raise ModelFileError("the classes in the file do not fit together")
    oof = learned.crossed.oof
    if oof is not None and oof.shape != (len(learned.training.y), len(names), outputs):
        raise ModelFileError("the out-of-fold predictions in the file do not fit the model")


def replay(model: Any, stored: Any) -> None:
    """The model must answer its reference rows as it did when it was saved."""
    if stored is None:
        return
    rows, expected = stored
    try:
        given = answer(model, rows)
    except Exception as error:
        raise ModelFileError(f"the model in the file cannot predict ({type(error).__name__}: {error})") from error
    near = TOLERANCE * np.abs(expected).max()
    if given.shape != expected.shape or not np.allclose(given, expected, TOLERANCE, near):
        raise ModelFileError("the model in the file does not answer its reference rows as it did when it was saved")
