"""The suite of real tables: messy columns as users have them, systems as their users call them, under a clock.

A folder of parquet files (the target is the last column) with an `index.csv` of their names, tasks and parts. Each
table is split 70/30, seeds 0 and on, stratified for classes. A cell (table, seed, method) runs in a process of its own
that sees no test target, one after another so that each has the machine; its line is written as it finishes, and a
second run goes on where the first was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from softlearning.data.messages import nearest
from softlearning_bench.adapters import SYSTEMS
from softlearning_bench.external import Question, Reply, ask
from softlearning_bench.results import append, seed_range, whole_csv
from softlearning_bench.scoring import scores

VARIABLE = "SOFTLEARNING_REAL"
BESIDE = Path(__file__).parents[2].parent / "shared" / "data" / "real"  # beside the checkout
FILE = "real.csv"
KEY = ("table", "seed", "method")
NUMBERS = ("score", "auc", "loss", "fit_seconds", "predict_seconds", "cpu_seconds", "peak_memory", "model_size")
COLUMNS = (*KEY[:1], "part", "task", *KEY[1:], "version", "rows", "test_rows", *NUMBERS, "failure", "settings")  # MB
USUAL = ("softlearning", "catboost", "lightgbm", "histgb")
SEEDS, TIME_LIMIT, MAX_ROWS, CORES, MEGA = 5, 90, 10_000, 2, 1e6


@dataclass(frozen=True)
class RealTable:
    """A row of the index; `task` is "binary", "multiclass" or "regression", `part` "choose" or "confirm"."""

    name: str
    task: str
    part: str
    rows: int
    path: Path

    @property
    def kind(self) -> str:
        return "regression" if self.task == "regression" else "classification"


@dataclass(frozen=True)
class Cell:
    """One line to come."""

    table: RealTable
    seed: int
    method: str
    settings: dict[str, int]


def data_folder(given: Path | None = None) -> Path:
    """Where the tables are: as given, or by SOFTLEARNING_REAL, or beside the checkout; ValueError if nowhere."""
    folder = given or Path(os.environ.get(VARIABLE) or BESIDE)
    if not (folder / "index.csv").exists():
        raise ValueError(f"no real tables in {folder} (it has no index.csv): set {VARIABLE} or --data to their folder")
    return folder


def real_tables(folder: Path, names: Sequence[str] | None = None, part: str = "choose") -> list[RealTable]:
    """The tables of a part, small ones first; only those of these names, when given.

    Tables of part "confirm" are kept for one run of frozen defaults: they are never run unless that part is asked for.
    """
    index = pd.read_csv(folder / "index.csv").sort_values(["rows", "name"])
    lines = zip(index["name"], index["task"], index["part"], index["rows"])
    tables = [RealTable(name, task, of, rows, folder / f"{name}.parquet") for name, task, of, rows in lines]
    parts = {table.name: table.part for table in tables}
    for name in names or ():
        if name not in parts:
            raise ValueError(f"no real table is called {name!r}; {nearest(name, sorted(parts))}")
        if parts[name] != part:
            raise ValueError(f"{name} is of part {parts[name]}: it is run with --part {parts[name]} alone")
    return [t for t in tables if t.part == part and (names is None or t.name in names)]


def run_real(
    out: Path,
    *,
    data: Path | None = None,
    tables: Sequence[str] | None = None,
    part: str = "choose",
    methods: Sequence[str] | None = None,
    seeds: int | str | None = None,
    time_limit: int | None = None,
    max_rows: int | None = None,
    external: dict[str, str] | None = None,
) -> Path:
    """Add to `out/real.csv` the cells that it lacks, seed by seed, and return its path; `seeds` as in `seed_range`."""
    rows = real_tables(data_folder(data), tables, part)
    environments = external or {}
    wanted = chosen(methods, environments)
    settings = {"time_limit": time_limit or TIME_LIMIT, "cores": CORES, "max_rows": max_rows or MAX_ROWS}
    out.mkdir(parents=True, exist_ok=True)
    path = out / FILE
    todo = list(missing(path, rows, wanted, seed_range(seeds or SEEDS), settings))
    for number, cell in enumerate(todo, 1):
        line = run_cell(cell, environments.get(cell.method))
        append(path, line, COLUMNS)
        said = line["failure"] or f"loss {line['loss']:.4g}, {line['fit_seconds']:.1f} s"
        print(f"{number}/{len(todo)} {cell.table.name} seed {cell.seed} {cell.method}: {said}", flush=True)
    return path


def chosen(names: Sequence[str] | None, environments: dict[str, str]) -> list[str]:
    """The methods of these names; when None the usual ones and those that an environment was given for."""
    names = names or [*USUAL, *environments]
    for name in [*names, *environments]:
        if name not in SYSTEMS:
            raise ValueError(f"no method is called {name!r}; {nearest(name, sorted(SYSTEMS))}")
    return list(dict.fromkeys(names))


def missing(path: Path, tables, methods, seeds, settings) -> Iterator[Cell]:
    """The cells without a line; a failed cell has one and is not tried again."""
    have = set(read_real(path)[list(KEY)].itertuples(index=False, name=None))
    for seed in seeds:
        for table in tables:
            for method in methods:
                if (table.name, seed, method) not in have:
                    yield Cell(table, seed, method, settings)


def read_real(path: Path) -> pd.DataFrame:
    """All cells, the last line of each."""
    text = dict.fromkeys(("failure", "settings", "version"), "str")
    missing_numbers = {name: [""] for name in ("rows", "test_rows", *NUMBERS)}
    table = whole_csv(path, COLUMNS, dtype=text, keep_default_na=False, na_values=missing_numbers)
    return table.reindex(columns=list(COLUMNS)).drop_duplicates(list(KEY), keep="last", ignore_index=True)


def split(frame: pd.DataFrame, kind: str, seed: int, max_rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training rows, at most `max_rows` of them drawn with the seed, and test rows."""
    classes = frame.iloc[:, -1] if kind == "classification" else None
    train, test = train_test_split(frame, test_size=0.3, random_state=seed, stratify=classes)
    return train if len(train) <= max_rows else train.sample(max_rows, random_state=seed), test


def run_cell(cell: Cell, environment: str | None = None) -> dict[str, object]:
    """The line of one cell; a failure is a line with its reason."""
    table, limit = cell.table, cell.settings["time_limit"]
    train, test = split(pd.read_parquet(table.path), table.kind, cell.seed, cell.settings["max_rows"])
    line = {"table": table.name, "part": table.part, "task": table.task, "seed": cell.seed, "method": cell.method}
    line |= {
        "rows": len(train),
        "test_rows": len(test),
        "failure": "",
        "settings": json.dumps(cell.settings | SYSTEMS[cell.method][2]),
    }
    X, y = train.iloc[:, :-1], train.iloc[:, -1]
    question = Question(table.kind, X, y, test.iloc[:, :-1], cell.seed, limit, cell.settings["cores"])
    try:
        reply = ask(cell.method, question, 3 * limit + 120, environment)
        return line | measured(reply, y, test.iloc[:, -1], table.kind)
    except Exception as error:
        return line | {"failure": f"{type(error).__name__}: {error}"}


def measured(reply: Reply, y: pd.Series, truth: pd.Series, kind: str) -> dict[str, object]:
    """The numbers of a reply; of several classes there is no AUC."""
    if not np.isfinite(reply.prediction).all() or len(reply.prediction) != len(truth):
        raise ValueError("its predictions are not finite, or not one per test row")
    if kind == "classification":
        classes = sorted({*y.astype(str), *truth.astype(str)})
        numbers = scores(over_classes(reply, classes), pd.Categorical(truth.astype(str), classes).codes, kind)
        quality = {"loss": numbers["log_loss"], "auc": numbers["auc"] if len(classes) == 2 else np.nan}
    else:
        numbers = scores(reply.prediction, truth.to_numpy(dtype=float), kind)
        quality = {"loss": numbers["rmse"]}
    costs = {name: getattr(reply, name) for name in ("version", "fit_seconds", "predict_seconds", "cpu_seconds")}
    sizes = {"peak_memory": reply.peak_bytes / MEGA, "model_size": (reply.model_bytes or np.nan) / MEGA}
    return {"score": numbers["score"], **quality, **costs, **sizes}


def over_classes(reply: Reply, classes: list[str]) -> np.ndarray:
    """Probabilities over these classes; a class that the training rows lacked has probability zero."""
    P = np.zeros((len(reply.prediction), len(classes)))
    P[:, [classes.index(label) for label in reply.classes or ()]] = reply.prediction
    return P
