"""The first minutes of a newcomer: seconds from an empty environment to the first report, step by step.

    python -m softlearning_bench.first_minutes benchmarks/results/first_minutes.csv

Run from the root of a checkout. Everything happens in a folder of its own, which is removed at the end; the table is
restaurant bills, which come with plotly (as CatBoost does). The installation takes as long as the packages take to
come.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import pandas as pd

TABLE = "from plotly.data import tips; tips().iloc[:200].to_csv('tips.csv'); tips().iloc[200:].to_csv('new.csv')"
FIT = ("fit", "tips.csv", "--target", "tip", "--out", "tips.soft", "--report", "tips.html", "--test", "new.csv")
COMMANDS = {
    "help": ("--help",),
    "fit with the fast library and report": (*FIT, "--library", "fast"),
    "fit with the default library and report": FIT,
    "evaluate": ("evaluate", "tips.soft", "new.csv"),
    "predict": ("predict", "tips.soft", "new.csv", "--out", "p.csv"),
}


def steps(folder: Path, source: Path) -> list[tuple[str, float]]:
    """(what, seconds) in the order of doing."""
    env = folder / "env"
    python, command = env / "bin" / "python", env / "bin" / "softlearning"
    timed = [("python -m venv", seconds(lambda: venv.create(env, with_pip=True)))]
    run = lambda *words: subprocess.run([str(w) for w in words], cwd=folder, env=alone(), check=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    timed.append(("pip install .", seconds(lambda: run(python, "-m", "pip", "install", "--quiet", source))))
    run(python, "-c", TABLE)
    timed += [(f"softlearning {name}", seconds(lambda words=words: run(command, *words)))
              for name, words in COMMANDS.items()]  # fmt: skip
    return timed


def seconds(step) -> float:
    start = time.perf_counter()
    step()
    return round(time.perf_counter() - start, 1)


def alone() -> dict[str, str]:
    """The environment without what would lead Python elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def main(out: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = pd.DataFrame(steps(Path(folder), Path.cwd()), columns=["step", "seconds"])
    lines.assign(cores=os.cpu_count(), python=sys.version.split()[0]).to_csv(out, index=False)
    print(lines.to_string(index=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
