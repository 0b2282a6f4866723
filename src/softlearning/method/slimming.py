"""A smaller ensemble of what is fitted: what each specialist costs at predict time, and what its absence costs.

Specialists leave one after another, each time the one whose absence costs least held-out risk per millisecond or
megabyte that it saves; the weights of those that stay are solved anew, and nothing is fitted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd

from softlearning.execution import one_thread
from softlearning.method.crossfit import CrossFit, sharpen
from softlearning.method.ensemble import Ensemble, needed, predict_members
from softlearning.method.record import Record
from softlearning.weights import Solution

REPEATS = 9  # of a timing, of which the median counts
COLUMNS = ["dropped", "specialists", "risk", "added_risk", "row_ms", "megabytes"]


def slimming(record: Record, table: Any) -> pd.DataFrame:
    """One line per step of making the model smaller; the first is the model as it is.

    table : canonical rows, the first of which is predicted to take the time.
    """
    sizes = {name: megabytes(record.ensemble, name) for name in record.ensemble.members}
    lines: list[dict[str, Any]] = []
    for dropped, crossed, solution in steps(record, table, sizes):
        kept = [name for name, weight in zip(crossed.library.names, solution.weights) if weight > 0]
        size = sum(sizes[name] for name in needed(kept, crossed.library))
        line = {"dropped": dropped, "specialists": kept, "risk": solution.objective, "megabytes": size}
        lines.append(line | {"row_ms": milliseconds(record.ensemble, kept, table)})
    found = pd.DataFrame(lines)
    found["added_risk"] = found["risk"] - found["risk"].iloc[0]
    return found[COLUMNS]


def steps(record: Record, table: Any, sizes: dict[str, float]) -> Iterator[tuple[str, CrossFit, Solution]]:
    """Who leaves, who stays, and the weights of those; until one specialist is left."""
    times = {name: milliseconds(record.ensemble, [name], table) for name in record.ensemble.members}
    dear = {
        name: times[name] / max(sum(times.values()), 1e-9) + sizes[name] / max(sum(sizes.values()), 1e-9)
        for name in times
    }
    fitted = [name for name in record.crossed.library.names if name in record.ensemble.members]
    crossed = record.crossed.only(fitted)
    solution = solved(record, crossed)
    yield "", crossed, solution
    while len(crossed.library.level(1)) > 1:
        trials = []
        for name in crossed.library.names:
            rest = crossed.without([name])
            if rest.library.level(1):
                trial = solved(record, rest)
                trials.append(((trial.objective - solution.objective) / dear[name], name, rest, trial))
        _, name, crossed, _ = min(trials, key=lambda trial: trial[:2])
        crossed = sharpen(crossed, record.training, record.rule, record.loss)
        solution = solved(record, crossed)
        yield name, crossed, solution


def solved(record: Record, crossed: CrossFit) -> Solution:
    """The weights of those that stay, by the model's own rule."""
    return crossed.solve(crossed.pooled, record.training, record.rule, record.loss)


def milliseconds(ensemble: Ensemble, names: list[str], table: Any) -> float:
    """Median time of the prediction of one row by the named specialists."""
    row = table.iloc[:1] if isinstance(table, pd.DataFrame) else table[:1]
    taken = []
    with one_thread:
        for _ in range(REPEATS):
            start = time.perf_counter()
            predict_members(ensemble, names, row)
            taken.append(time.perf_counter() - start)
    return 1000 * float(np.median(taken))


def megabytes(ensemble: Ensemble, name: str) -> float:
    """Size of the models of a specialist."""
    return len(cloudpickle.dumps([member.model for member in ensemble.members[name]])) / 2**20


def smallest_that_fits(path: pd.DataFrame, row_ms: float | None, size: float | None) -> pd.Series:
    """The first line of `slimming` within the bounds; an error tells the least that is possible."""
    fits = pd.Series(True, index=path.index)
    if row_ms is not None:
        fits &= path["row_ms"] <= row_ms
    if size is not None:
        fits &= path["megabytes"] <= size
    if not fits.any():
        least = f"{path['row_ms'].min():.2g} ms per row and {path['megabytes'].min():.2g} MB"
        raise ValueError(f"no part of this model is so small; the least that single specialists take is {least}")
    return path.loc[fits].iloc[0]
