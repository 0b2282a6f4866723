"""Foreign systems in the same table: run from an environment of their own, named by its folder.

AutoGluon and others pin libraries that softlearning does not share. Their environment needs nothing of ours: the rows
travel as an .npz file to `adapters.py`, which is run by path with that environment's Python, and predictions come back
as another. Seconds are measured over there, around fit and predict alone.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from softlearning_bench.methods import Answer, Method
from softlearning_bench.shared import Specialists

SCRIPT = Path(__file__).with_name("adapters.py")
TIME_LIMIT = 120  # seconds that a system is told it has for one fit
GRACE = 10  # it may take so many times longer before it is ended


def external_method(system: str, environment: str, time_limit: int = TIME_LIMIT) -> Method:
    """The row of a foreign system; `environment` is a folder with bin/python in it."""
    return Method(system, "external", partial(ask, system=system, environment=environment, time_limit=time_limit))


def ask(shared: Specialists, system: str, environment: str, time_limit: int = TIME_LIMIT) -> Answer:
    """Train and predict over there."""
    part = shared.part
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder) / "question.npz", Path(folder) / "answer.npz"
        np.savez(question, X=part.X, y=part.y, X_test=part.X_test, task=part.task, classes=part.classes, seed=part.seed)
        command = [python_of(environment), str(SCRIPT), system, str(question), str(answer), str(time_limit)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=GRACE * time_limit)
        if done.returncode != 0:
            raise RuntimeError(f"{system} ended with code {done.returncode}: {done.stderr.strip()[-300:]}")
        with np.load(answer) as back:
            seconds = float(back["fit_seconds"]), float(back["predict_seconds"])
            return Answer(back["prediction"], *seconds, note=f"{back['version']}, told {time_limit} s")


def python_of(environment: str) -> str:
    python = Path(environment) / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(f"{environment} is no environment: it has no bin/python")
    return str(python)
