"""The study behind the defaults: which rows, which level 2, which calibration, which rule.

    python -m softlearning.bench.study fit CACHE                 predictions of every specialist, kept on disk; resumes
    python -m softlearning.bench.study evaluate CACHE RESULTS    every scheme of combination, from the cache in minutes
    python -m softlearning.bench.study report RESULTS DOCS       tables and figures of the page, from the csv alone

Fitting costs CPU hours and combining costs seconds, so the two are apart: `fit` leaves, for each table, seed and
specialist, the out-of-fold and test predictions and the CPU seconds they took.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from softlearning.bench.study_sets import SETS, StudySet
from softlearning.blend import fold_team, predict_members, refit
from softlearning.crossfit import Data, Resources, admitted, cross_fit
from softlearning.folds import Split, make_folds
from softlearning.library import Library, Specialist, every_row, named
from softlearning.tables import admit, understand

TEST_SHARE = 0.2
LAST_ROW = "dummy"  # the row that is fitted last: a cell that has it is whole
OTHER_FOLDS = (3, 10)  # numbers of folds that the study compares with the paper's rule
MODEL_SEED = 42  # folds and specialists; the seed of a cell draws and splits the table


@dataclass(frozen=True)
class Cell:
    """One table and seed, split and in canonical form; `cv` is the number of folds, None for the rule of the paper."""

    of: StudySet
    seed: int
    data: Data
    splits: list[Split]
    X_test: object
    target_test: np.ndarray

    @property
    def name(self) -> str:
        return f"{self.of.name}-{self.seed}"


def open_cell(of: StudySet, seed: int, cv: object = None) -> Cell:
    """Draw, split 80/20, understand the training part alone."""
    X, y = of.load(seed)
    classes = None
    if of.task == "classification":
        y = np.unique(y, return_inverse=True)[1]
        classes = y if np.bincount(y).min() > 1 else None
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=seed, stratify=classes)
    schema = understand(X)
    encode = np.eye(y.max() + 1).__getitem__ if of.task == "classification" else lambda y: np.asarray(y, float)[:, None]
    data = Data(admit(schema, X), y, encode(y), None, schema, of.task, MODEL_SEED)
    splits = make_folds(cv, y, stratify=of.task == "classification", seed=MODEL_SEED)
    return Cell(of, seed, data, splits, admit(schema, X_test), encode(y_test))


def fit_one(row: Specialist, cell: Cell) -> dict[str, Any]:
    """Out-of-fold (n, C), test (m, C) and fold-averaged test predictions of one specialist, with its CPU seconds."""
    begin = time.process_time()
    crossed = cross_fit(Library((row,)), cell.data, cell.splits, Resources(), calibrate=False, keep=True)
    if crossed.failures:
        return {"error": crossed.failures[0].error}
    middle = time.process_time()
    team, failures = refit([row.name], crossed, cell.data, Resources())
    if failures:
        return {"error": failures[0].error}
    end = time.process_time()
    test = predict_members(team, [row.name], cell.X_test)[:, 0]
    predicted = time.process_time()
    bagged = predict_members(fold_team([row.name], crossed, cell.data.classes), [row.name], cell.X_test)[:, 0]
    seconds = {"folds_seconds": middle - begin, "refit_seconds": end - middle, "test_seconds": predicted - end}
    return {"oof": crossed.oof[:, 0], "test": test, "bagged": bagged, "truth": cell.target_test, **seconds}


def fit_cell(cell: Cell, folder: Path, library: Library) -> None:
    """Every specialist of the library that the folder does not have yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for row in admitted(library, cell.data.rows)[0]:
        path = folder / f"{row.name}.npz"
        if not path.exists():
            record = fit_one(row, cell)
            partial = path.with_suffix(".part")
            with partial.open("wb") as file:
                np.savez(file, **record)
            partial.replace(path)


@click.group()
def main() -> None:
    """The study behind the defaults."""


@main.command()
@click.argument("cache", type=click.Path(path_type=Path))
@click.option("--sets", default="", help="names, by comma; all by default")
@click.option("--seeds", default=None, type=int, help="at most so many seeds a table")
@click.option("--rows", "names", default="all", type=click.Choice(["all", "default"]), help="rows of level 1")
@click.option("--cv", default=None, type=int, help="folds; the paper's rule by default")
def fit(cache: Path, sets: str, seeds: int | None, names: str, cv: int | None) -> None:
    """Fit what the cache lacks."""
    wanted = [s for s in SETS if not sets or s.name in sets.split(",")]
    for of in wanted:
        library = named("default", of.task).level(1) if names == "default" else every_row(of.task).level(1)
        for seed in of.seeds[:seeds]:
            begin = time.process_time()
            try:
                cell = open_cell(of, seed, cv)
            except OSError as error:
                click.echo(f"{of.name}: left out, its data are not here ({error})")
                break
            fit_cell(cell, cache / (cell.name if cv is None else f"{cell.name}-cv{cv}"), library)
            click.echo(f"{cell.name}: {time.process_time() - begin:.0f} CPU seconds")


@main.command()
@click.argument("cache", type=click.Path(path_type=Path, exists=True))
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--sets", default="", help="names, by comma; all by default")
def evaluate(cache: Path, results: Path, sets: str) -> None:
    """Every scheme on every cell that is cached whole; cells that the results already have are kept as they are."""
    from softlearning.bench.study_schemes import evaluate_cell, open_cached, other_folds

    files = {name: results / f"study_{name}.csv" for name in ("schemes", "specialists")}
    tables = {name: pd.read_csv(path) if path.exists() else pd.DataFrame() for name, path in files.items()}
    for of, seed in [(s, seed) for s in SETS for seed in s.seeds if not sets or s.name in sets.split(",")]:
        folder = cache / f"{of.name}-{seed}"
        known = tables["schemes"]
        if not (folder / f"{LAST_ROW}.npz").exists() or (
            len(known) and known.eval("dataset == @of.name and seed == @seed").any()
        ):
            continue
        begin = time.process_time()
        schemes, singles = evaluate_cell(open_cached(open_cell(of, seed), folder))
        others = [(cv, cache / f"{folder.name}-cv{cv}") for cv in OTHER_FOLDS]
        for cv, other in others:
            if (other / f"{LAST_ROW}.npz").exists():
                schemes.append(other_folds(open_cached(open_cell(of, seed, cv), other), cv))
        for name, lines in zip(files, (schemes, singles)):
            tables[name] = pd.concat([tables[name], pd.DataFrame(lines)], ignore_index=True)
            tables[name].to_csv(files[name], index=False, float_format="%.6g")
        click.echo(f"{folder.name}: {time.process_time() - begin:.0f} CPU seconds")


@main.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True))
@click.argument("docs", type=click.Path(path_type=Path, exists=True))
def report(results: Path, docs: Path) -> None:
    """Fill the tables of study.md and draw its figures."""
    from softlearning.bench.study_report import blocks, draw, fill

    schemes, specialists = (pd.read_csv(results / f"study_{name}.csv") for name in ("schemes", "specialists"))
    page = docs / "study.md"
    page.write_text(fill(page.read_text(), blocks(schemes, specialists)))
    draw(schemes, specialists, docs / "figures")


if __name__ == "__main__":
    main()
