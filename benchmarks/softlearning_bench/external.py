"""Ask a system in a process, and if need be an environment, of its own.

AutoGluon and others pin libraries that softlearning does not share. Their environment needs nothing of ours: the rows
travel as parquet files to `adapters.py`, which is run by path with that environment's Python, and predictions come
back as another file. No system sees a target of the test rows. A process that takes too long is ended with all that
it started.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
from numpy.typing import NDArray

from softlearning_bench.methods import Answer, Method
from softlearning_bench.shared import Specialists, all_cores

SCRIPT = Path(__file__).with_name("adapters.py")
TIME_LIMIT = 120  # seconds that an external baseline of the paper's suite is given for one fit
LOOK_EVERY = 0.5  # seconds between two looks at memory and processor


@dataclass(frozen=True)
class Question:
    """Training rows, their target, test rows; `classes` in the reply are strings. `seconds` is the limit given."""

    task: str
    X: pd.DataFrame
    y: pd.Series
    X_test: pd.DataFrame
    seed: int
    seconds: float | None
    cores: int = 2


@dataclass(frozen=True)
class Reply:
    """Predictions (m, C) on the test rows and what they cost; memory in bytes is the peak of all its processes."""

    prediction: NDArray[np.float64]
    classes: list[str] | None
    fit_seconds: float
    predict_seconds: float
    version: str
    model_bytes: int | None
    cpu_seconds: float
    peak_bytes: int


def ask(system: str, question: Question, cap: float, environment: str | None = None) -> Reply:
    """Train and predict in a process of its own, ended after `cap` seconds; `environment` is a folder with a Python."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        write_question(question, folder)
        spent, peak = run_within([python_of(environment), str(SCRIPT), system, name], folder, cap, environment)
        answer = json.loads((folder / "answer.json").read_text())
        with np.load(folder / "answer.npz") as back:
            return Reply(back["prediction"], **answer, cpu_seconds=spent, peak_bytes=peak)


def write_question(question: Question, folder: Path) -> None:
    """The files that `adapters.py` reads; classes are strings."""
    classification = question.task == "classification"
    target = "target" if "target" not in question.X else "target of these rows"
    y = question.y.astype(str) if classification else question.y
    question.X.assign(**{target: y.to_numpy()}).to_parquet(folder / "train.parquet", index=False)
    question.X_test.to_parquet(folder / "test.parquet", index=False)
    words = {name: getattr(question, name) for name in ("task", "seed", "seconds", "cores")}
    (folder / "question.json").write_text(json.dumps(words))


def run_within(command: list[str], folder: Path, cap: float, environment: str | None) -> tuple[float, int]:
    """CPU seconds and peak memory of a command and its children; RuntimeError when it fails or takes too long."""
    with (folder / "said").open("wb") as said:
        settings = {"cwd": folder, "env": variables(environment), "stdout": said, "stderr": said}
        process = psutil.Popen(command, stdin=subprocess.DEVNULL, **settings)
        looks = Looks(process)
        begin = time.monotonic()
        try:
            while process.poll() is None and time.monotonic() - begin < cap:
                looks.look()
                wait_a_little(process)
            late = process.poll() is None
        finally:
            looks.end()
    if late:
        raise RuntimeError(f"it was ended after {cap:.0f} s")
    if process.returncode != 0:
        text = (folder / "said").read_text(errors="replace").strip()
        raise RuntimeError(f"it ended with code {process.returncode}: {text[-400:]}")
    return looks.cpu_seconds, looks.peak


def wait_a_little(process: psutil.Popen) -> None:
    try:
        process.wait(LOOK_EVERY)
    except (psutil.TimeoutExpired, subprocess.TimeoutExpired):
        return


class Looks:
    """What a process and all its descendants have used so far."""

    def __init__(self, process: psutil.Process):
        self.process = process
        self.seen: dict[psutil.Process, float] = {}
        self.peak = 0

    def look(self) -> None:
        memory = 0
        for one in self.alive():
            try:
                times = one.cpu_times()
                self.seen[one] = times.user + times.system
                memory += memory_of(one)
            except psutil.Error:
                continue  # it ended meanwhile
        self.peak = max(self.peak, memory)

    def alive(self) -> list[psutil.Process]:
        try:
            return [self.process, *self.process.children(recursive=True)]
        except psutil.Error:
            return []

    @property
    def cpu_seconds(self) -> float:
        return sum(self.seen.values())

    def end(self) -> None:
        """End what is left of it: also children that outlived their parent."""
        for one in {*self.alive(), *self.seen}:
            try:
                if one.is_running():
                    one.kill()
            except psutil.Error:
                continue
        self.process.wait()


def memory_of(process: psutil.Process) -> int:
    """Memory in bytes, shared pages counted once where the system can tell."""
    full = process.memory_full_info()
    return getattr(full, "pss", full.uss)


def variables(environment: str | None) -> dict[str, str]:
    """This process's variables; another environment must not find our packages."""
    return {name: value for name, value in os.environ.items() if environment is None or name != "PYTHONPATH"}


def python_of(environment: str | None) -> str:
    if environment is None:
        return sys.executable
    places = (Path(environment) / "bin" / "python", Path(environment) / "Scripts" / "python.exe")
    found = next((place for place in places if place.exists()), None)
    if found is None:
        raise FileNotFoundError(f"{environment} is not an environment: it has no bin/python")
    return str(found)


# -- in the paper's suite ----------------------------------------------------------------------------------------------


def external_method(system: str, environment: str, time_limit: int = TIME_LIMIT) -> Method:
    """The row of an external baseline; `environment` is a folder with bin/python in it."""
    return Method(system, "external", partial(ask_part, system=system, environment=environment, time_limit=time_limit))


def ask_part(shared: Specialists, system: str, environment: str, time_limit: int = TIME_LIMIT) -> Answer:
    """Train and predict over there, on one outer fold."""
    part = shared.part
    frame: Any = lambda X: pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    rows = frame(part.X), pd.Series(part.y), frame(part.X_test)
    question = Question(part.task, *rows, part.seed, time_limit, all_cores())
    reply = ask(system, question, cap=10 * time_limit, environment=environment)
    prediction = reply.prediction
    if reply.classes is not None:
        prediction = prediction[:, np.argsort(np.asarray(reply.classes, dtype=int))]
    return Answer(prediction, reply.fit_seconds, reply.predict_seconds, note=f"{reply.version}, given {time_limit} s")
