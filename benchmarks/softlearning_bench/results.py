"""The table of results: one tidy csv, one line per (dataset, method, fold, seed), written a line at a time.

A line is written at once and forced to the disk; a line that a kill cut short is dropped when the file is read and
removed before the next one is written. Where a cell was run again, its last line counts.
"""

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from softlearning_bench.methods import BEST_OF_3, METHODS
from softlearning_bench.scoring import METRICS

KEY = ("dataset", "method", "fold", "seed")
COLUMNS = (
    *KEY,
    *METRICS,
    "fit_seconds",
    "predict_seconds",
    "peak_memory",  # MB, of the process that ran the cells of this fold, up to this cell
    "weights",  # json: specialist -> weight
    "status",  # "ok", "skipped" or "failed"
    "reason",  # why it was skipped or failed; for "ok" what the row should say of itself
    "versions",
)
NUMBERS = (*METRICS, "fit_seconds", "predict_seconds", "peak_memory")
FINAL = ("ok", "skipped")  # a failed cell is tried again by the next run
Key = tuple[str, str, int, int]


def seed_range(seeds: int | str, first: int = 0) -> range:
    """So many seeds from the first on, or those of words such as "1-10"."""
    begin, _, end = str(seeds).partition("-")
    if not (begin.isdigit() and (end or "0").isdigit() and (not end or int(end) >= int(begin)) and str(seeds) != "0"):
        raise ValueError(f"--seeds is a number of splits or a range such as 1-10, not {seeds!r}")
    return range(int(begin), int(end) + 1) if end else range(first, first + int(begin))


def append(path: Path, line: dict[str, object], columns: Sequence[str] = COLUMNS) -> None:
    """Add one line, in one write, and wait until the disk has it; a new file begins with the names of the columns."""
    whole_lines(path)
    new = not path.exists() or path.stat().st_size == 0
    found = "" if new else path.read_text(encoding="utf-8").partition("\n")[0].strip()
    if not new and found != ",".join(columns):
        raise ValueError(f"{path} has other columns than this version writes ({found}): give another folder")
    text = (_csv([list(columns)]) if new else "") + _csv([[line.get(column, "") for column in columns]])
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, text.encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def whole_lines(path: Path) -> None:
    """Cut a last line that has no end."""
    if path.exists():
        with path.open("rb+") as file:
            kept = _ended(file.read())
            file.truncate(len(kept))


def read(path: Path) -> pd.DataFrame:
    """All cells, the last line of each; an empty table when there is no file."""
    text = dict.fromkeys(("weights", "status", "reason", "versions"), "str")
    table = whole_csv(path, COLUMNS, dtype=text, keep_default_na=False, na_values={name: [""] for name in NUMBERS})
    return table.drop_duplicates(list(KEY), keep="last", ignore_index=True)


def whole_csv(path: Path, columns: Sequence[str], **options: Any) -> pd.DataFrame:
    """The lines of a csv that have an end, read with pandas' options; no line when there is no file."""
    content = _ended(path.read_bytes()) if path.exists() else b""
    return pd.read_csv(io.BytesIO(content), **options) if content else pd.DataFrame({name: [] for name in columns})


def finished(path: Path) -> set[Key]:
    """The cells that need not be run again."""
    table = read(path)
    return set(table.loc[table["status"].isin(FINAL), list(KEY)].itertuples(index=False, name=None))


def score_table(cells: pd.DataFrame, metric: str = "score", seed: int = 42) -> pd.DataFrame:
    """Mean over the folds of one seed: datasets in rows, methods in columns.

    NaN where a method did not run on all folds that the others have (or that it is meant to run on): means over
    different folds are not compared.
    """
    good = cells[(cells["status"] == "ok") & (cells["seed"] == seed)]
    table = good.pivot_table(index="dataset", columns="method", values=metric, aggfunc="mean", sort=False)
    folds = good.pivot_table(index="dataset", columns="method", values="fold", aggfunc="nunique", sort=False)
    wanted = {method.name: method.folds for method in METHODS}
    expected = pd.DataFrame({name: folds.max(axis=1).clip(upper=wanted.get(name)) for name in folds.columns})
    return table.where(folds.reindex_like(table) == expected.reindex_like(table))


def with_best_of_3(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with those of Best-of-3: for each dataset and seed the best on the test folds of its three members.

    The choice looks at the test folds, as the paper defines it ("maximum test performance"), so it is an optimistic
    rival: no rule that chooses on the training part can beat it with these three.
    """
    members = cells[cells["method"].isin(BEST_OF_3) & (cells["status"] == "ok")]
    means = members.groupby(["dataset", "seed", "method"], sort=False)["score"].mean()
    complete = means.groupby(["dataset", "seed"]).transform("size") == len(BEST_OF_3)
    winners = means[complete].groupby(["dataset", "seed"], sort=False).idxmax()
    chosen = pd.DataFrame(winners.tolist(), columns=["dataset", "seed", "method"])
    best = members.merge(chosen, on=["dataset", "seed", "method"])
    reason = "chosen on the test folds: " + best["method"]
    best = best.assign(reason=reason, method="Best-of-3")
    return pd.concat([cells[cells["method"] != "Best-of-3"], best], ignore_index=True)


def _ended(content: bytes) -> bytes:
    return content[: content.rfind(b"\n") + 1]


def _csv(lines: list[list[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[_one_line(value) for value in line] for line in lines])
    return text.getvalue()


def _one_line(value: object) -> object:
    """Line ends inside a field would break "one line per cell"."""
    if isinstance(value, float):
        return "" if value != value else repr(round(value, 9))
    return " ".join(value.split()) if isinstance(value, str) else value
