"""A first opening of CatBoost's and LightGBM's models in a process that can be lost.

    try_natives(models, limit)      one process opens all models of a file and asks each for one prediction
    python trial.py < models        that process

Their loaders are compiled programs that end their process where something was overlooked. The process imports their
packages alone, of which it hides what they can do without: it starts in half a second.
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
from dataclasses import dataclass
from typing import Any

KNOWN: set[bytes] = set()  # digests of models that this process wrote or had opened
SECONDS, SECONDS_PER_MB = 120.0, 1.0  # until the process is ended
COMMAND = [sys.executable or "", "-P", __file__]
ROOM = 1 << 30  # bytes that the process may take beside twice what the models may
REFUSED = 3  # exit code after an error that the loader itself reported
HIDDEN = ("sklearn", "polars", "pyarrow", "dask", "matplotlib", "graphviz", "plotly", "IPython", "cffi")


@dataclass(frozen=True)
class NativeModel:
    """A model as its library reads it, and the parameters that its predictions are given."""

    library: str
    content: str | bytes
    params: dict[str, Any]

    def as_json(self) -> list[Any]:
        """What goes to the other process; of the parameters the plain ones."""
        content = self.content if isinstance(self.content, str) else base64.b64encode(self.content).decode()
        plain = {name: v for name, v in self.params.items() if isinstance(v, bool | int | float | str)}
        return [self.library, content, plain]

    def digest(self) -> bytes:
        return hashlib.sha256(json.dumps(self.as_json()).encode()).digest()


def know(models: Iterable[NativeModel]) -> None:
    """Note models that this process wrote, or that were opened: they are not tried again."""
    KNOWN.update(model.digest() for model in models)


def try_natives(models: list[NativeModel], limit: int) -> str | None:
    """Why a model that this process does not know cannot be opened or asked; None where all can."""
    unknown = [model for model in models if model.digest() not in KNOWN]
    reason = try_apart(unknown, limit) if unknown else None
    if reason is None:
        know(unknown)
    return reason


def try_apart(models: list[NativeModel], limit: int) -> str | None:
    """The same of all models, in one process that is ended in time."""
    told = {"path": sys.path, "bytes": 2 * limit + ROOM, "models": [model.as_json() for model in models]}
    sent = json.dumps(told).encode()
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
    crashed = f"{lines[-1]} in the file ends the process that opens it ({cause(done.returncode)})"
    return crashed if done.returncode else None


def cause(code: int) -> str:
    """How a process ended, in words."""
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


# --- the process


class Hide:
    """An import of what is hidden fails as if it were not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def open_lightgbm(text: str, params: dict[str, Any]) -> None:
    import numpy as np
    from lightgbm import Booster

    booster = Booster(model_str=text)
    booster.predict(np.zeros((1, booster.num_feature())), **params)


def open_catboost(text: str, params: dict[str, Any]) -> None:
    from catboost import CatBoost

    model = CatBoost().load_model(blob=base64.b64decode(text))
    row: list[Any] = [0.0] * len(model.feature_names_)
    for place in model.get_cat_feature_indices():
        row[place] = "0"
    model.predict([row], thread_count=1)


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
    sys.meta_path.insert(0, Hide())
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
