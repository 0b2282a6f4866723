"""What an engine costs: seconds per task and per megabyte that is shared, and a fit on one and on two workers.

    python -m softlearning_bench.engines benchmarks/results/engines.csv [ENGINE ...]

Engines are here, processes, loky, dask and ray; those not installed are left out. Clusters are of this machine, on
the loopback address. The lines "64 workers" are arithmetic from the measured ones, and say so: the fit takes as long as
its longest task, or as all tasks shared out, whichever is longer, and the overhead of its tasks and of the data.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softlearning.estimators import SoftClassifier
from softlearning.execution import Scheduler, Task, open_engine, run
from softlearning_bench.scale import table

TASKS = 60
SHARED = 2**25  # bytes
ROWS = 3_000
LIBRARY = ["logistic", "wide_trees", "knn_15", "spline_logistic", "qda"]


def nothing(number: int) -> dict[str, float]:
    """A task that takes no time."""
    return {"number": float(number)}


def first(handle: Any) -> dict[str, float]:
    """A task that needs the shared data."""
    return {"number": float(handle.load()[0])}


@contextlib.contextmanager
def started(name: str, workers: int) -> Iterator[dict[str, Any]]:
    """An engine of this machine as the arguments of `open_engine`."""
    if name == "dask":
        import distributed

        options: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": None, "threads_per_worker": 1}
        with distributed.LocalCluster(n_workers=workers, **options) as cluster, distributed.Client(cluster) as client:
            yield {"engine": client}
    elif name == "ray":
        import ray

        ray.init(num_cpus=workers, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
        try:
            yield {"engine": "ray"}
        finally:
            ray.shutdown()
    else:
        yield {"engine": "loky" if name == "loky" else None, "n_jobs": workers}


def cost(name: str, workers: int) -> dict[str, Any]:
    """One line: overhead of tasks and of data, and a fit."""
    isolate = name == "processes"
    with started(name, workers) as where:
        with open_engine(**where, isolate=isolate) as engine:
            run(Scheduler([Task("warm", i, nothing, (i,)) for i in range(2 * workers)]), engine)
            start = time.perf_counter()
            run(Scheduler([Task("task", i, nothing, (i,)) for i in range(TASKS)]), engine)
            per_task = (time.perf_counter() - start) / TASKS
            handle = engine.share(np.zeros(SHARED // 8))
            start = time.perf_counter()
            run(Scheduler([Task("data", 0, first, (handle,))]), engine)
            per_megabyte = max(time.perf_counter() - start - per_task, 0.0) / (SHARED / 1e6)
        line = {"engine": name, "workers": workers, "task_ms": 1000 * per_task, "ms_per_mb": 1000 * per_megabyte}
        return line | fitted(where)


def fitted(where: dict[str, Any]) -> dict[str, float]:
    """Seconds of a fit, its number of tasks, their sum and the longest as far as the model tells; megabytes shared."""
    X, y = table("classification", ROWS, 30, 2)
    start = time.perf_counter()
    model = SoftClassifier(LIBRARY, refit=False, **where).fit(X, y)
    taken = time.perf_counter() - start
    board, folds = model.leaderboard_, len(model.folds_)
    each = (board["fit_seconds"] + board["predict_seconds"]) / folds
    size = float(X.memory_usage(deep=True).sum()) / 1e6
    found = {"tasks": folds * len(board), "sum": float(each.sum() * folds), "longest": float(each.max())}
    return {"fit_seconds": taken, **found, "shared_mb": size}


def model_of(line: dict[str, Any], workers: int = 64) -> dict[str, Any]:
    """The same fit on more workers, by arithmetic."""
    overhead = line["tasks"] * line["task_ms"] / 1000 + line["shared_mb"] * line["ms_per_mb"] / 1000
    took = max(line["longest"], line["sum"] / workers) + overhead
    return line | {"workers": workers, "fit_seconds": took, "how": "arithmetic"}


def main(path: str, *names: str) -> None:
    """The named engines, or all that are installed."""
    lines = []
    for name in names or ("here", "processes", "loky", "dask", "ray"):
        if importlib.util.find_spec({"dask": "distributed"}.get(name, name)) is None and name in ("dask", "ray"):
            continue
        measured = [cost(name, workers) | {"how": "measured"} for workers in ((1,) if name == "here" else (1, 2))]
        lines += [*measured, *([model_of(measured[0])] if name in ("dask", "ray") else [])]
        print(pd.DataFrame(lines).to_string(index=False), flush=True)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(lines).to_csv(path, index=False, float_format="%.4g")


if __name__ == "__main__":
    main(*sys.argv[1:])
