"""A first opening of CatBoost's and LightGBM's models in a process that can be lost.

    try_natives(models, limit)      one process opens all models of a file and asks each for one prediction
    python trial.py < models        that process

Their loaders are compiled programs that end their process where something was overlooked. The process imports their
packages alone, and hides from them what they can do without: it starts in half a second.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

COMMAND = [sys.executable or "", "-P", __file__]
SECONDS, SECONDS_PER_MB = 120.0, 1.0  # until the process is ended
ROOM = 1 << 30  # bytes that the process may take beside twice what the models may
REFUSED = 3  # exit code after an error that the loader itself reported
UNUSED = {"sklearn", "polars", "pyarrow", "dask", "matplotlib", "graphviz", "plotly", "IPython", "cffi"}
KNOWN: set[bytes] = set()  # digests of models that this process wrote or had opened


class NativeModel(NamedTuple):
    """A model as its library reads it (CatBoost's bytes in base64), and what its predictions are given."""

    library: str
    content: str
    params: dict[str, Any]


def catboost_model(data: bytes) -> NativeModel:
    """A model of CatBoost; its predictions are given nothing."""
    return NativeModel("CatBoost", base64.b64encode(data).decode(), {})


def lightgbm_model(text: str, params: dict[str, Any]) -> NativeModel:
    """A model of LightGBM, with the parameters that are plain."""
    plain = {name: value for name, value in params.items() if isinstance(value, bool | int | float | str)}
    return NativeModel("LightGBM", text, plain)


def digest(model: NativeModel) -> bytes:
    return hashlib.sha256(json.dumps(model).encode()).digest()


def know(models: Iterable[NativeModel]) -> None:
    """Note models that this process wrote, or that were opened: they are not tried again."""
    KNOWN.update(map(digest, models))


def try_natives(models: Iterable[NativeModel], limit: int) -> str | None:
    """Why a model that this process does not know cannot be opened or asked; None where all can."""
    unknown = [model for model in models if digest(model) not in KNOWN]
    reason = try_apart(unknown, limit) if unknown else None
    if reason is None:
        know(unknown)
    return reason


def try_apart(models: list[NativeModel], limit: int) -> str | None:
    """The same of all models, in one process that is ended in time."""
    sent = json.dumps({"path": sys.path, "bytes": 2 * limit + ROOM, "models": models}).encode()
    seconds = SECONDS + SECONDS_PER_MB * len(sent) / 1e6
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(COMMAND, input=sent, capture_output=True, env=environment, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "a CatBoost or LightGBM model in the file is not opened in time"
    except OSError as error:
        return f"no process can be started to try its CatBoost and LightGBM models ({error}); a signed file needs none"
    lines = ["a CatBoost or LightGBM model", *done.stdout.decode(errors="replace").splitlines()]
    if done.returncode == REFUSED:
        return f"{lines[-2]} in the file cannot be opened ({lines[-1]})"
    code = done.returncode
    cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"{lines[-1]} in the file ends the process that opens it ({cause})" if code else None


# --- the process


class Hide:
    """Imports of some packages fail as if they were not installed."""

    def __init__(self, packages: set[str]):
        self.packages = packages

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def open_lightgbm(text: str, params: dict[str, Any]) -> None:
    import numpy as np
    from lightgbm import Booster

    booster = Booster(model_str=text)
    booster.predict(np.zeros((1, booster.num_feature())), **params)


def open_catboost(text: str, params: dict[str, Any]) -> None:
    from catboost import CatBoost

    model = CatBoost().load_model(blob=base64.b64decode(text))
    categories = model.get_cat_feature_indices()
    model.predict([["0" if place in categories else 0.0 for place in range(len(model.feature_names_))]], **params)


OPENERS = {"LightGBM": open_lightgbm, "CatBoost": open_catboost}


def limit_memory(size: int) -> None:
    """Where the system can: no more memory than this, and no copy of it on disk after a crash."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Open the models that standard input holds; say which one is being opened, and what is wrong with it."""
    told = json.load(sys.stdin)
    sys.path[:] = told["path"]
    only_lightgbm = all(library == "LightGBM" for library, _, _ in told["models"])
    sys.meta_path.insert(0, Hide(UNUSED | ({"pandas"} if only_lightgbm else set())))
    limit_memory(told["bytes"])
    report = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the libraries print is not ours
    for number, (library, content, params) in enumerate(told["models"], start=1):
        print(f"{library} model {number} of {len(told['models'])}", file=report, flush=True)
        try:
            OPENERS[library](content, params)
        except Exception as error:
            print(" ".join(f"{type(error).__name__}: {error}"[:300].split()), file=report, flush=True)
            sys.exit(REFUSED)


if __name__ == "__main__":
    main()
