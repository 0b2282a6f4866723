"""The study behind the defaults: which rows, which level 2, which calibration, which rule.

    python -m softlearning_bench.study fit CACHE                 predictions of every specialist, kept on disk; resumes
    python -m softlearning_bench.study evaluate CACHE RESULTS    every scheme of combination, from the cache in minutes
    python -m softlearning_bench.study report RESULTS DOCS       tables and figures of the page, from the csv alone

`fit` leaves, for each table, seed and specialist, the out-of-fold and test predictions and the CPU seconds they took.
The tables of the paper's suite are not fitted here: `softlearning bench run --fits CACHE` leaves the same records.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold, train_test_split

from softlearning.data.schema import infer_schema
from softlearning.data.validation import validate
from softlearning.library import Library, every_row, named
from softlearning.method.crossfit import Data, admitted
from softlearning.method.folds import make_folds
from softlearning_bench.datasets import Absent, dataset
from softlearning_bench.fits import Cell, Fits
from softlearning_bench.shared import cell_name, cell_of, outer_fold
from softlearning_bench.study_sets import SETS, StudySet

TEST_SHARE = 0.2
OTHER_FOLDS = ("3", "5", "10", "5x3")  # folds, or folds x repeats, that the study compares with the paper's rule
MODEL_SEED = 42  # folds and specialists; the seed of a cell draws and splits the table


@dataclass(frozen=True)
class StudyCell(Cell):
    """A table of the study and the seed that drew or split it."""

    of: StudySet
    seed: int


def folder_name(of: StudySet, seed: int, cv: str | None = None) -> str:
    """Where the fits of a cell are kept."""
    name = cell_name(of.name, seed, MODEL_SEED) if of.load is None else f"{of.name}-{seed}"
    return name if cv is None else f"{name}-cv{cv}"


def open_cell(of: StudySet, seed: int, cv: str | None = None) -> StudyCell:
    """A table, its test part, and folds of the training part: "10", "5x3" (three repeats) or None, the paper's rule."""
    cell = suite_cell(of, seed) if of.load is None else drawn_cell(of, seed)
    if cv is None:
        return cell
    splits = make_folds(splitter(cv, of.task), cell.data.y, stratify=of.task == "classification", seed=MODEL_SEED)
    return replace(cell, name=folder_name(of, seed, cv), splits=splits)


def splitter(cv: str, task: str) -> Any:
    """A number of folds, or scikit-learn's repeated folds."""
    number, _, repeats = cv.partition("x")
    if not repeats:
        return int(number)
    kind = RepeatedStratifiedKFold if task == "classification" else RepeatedKFold
    return kind(n_splits=int(number), n_repeats=int(repeats), random_state=MODEL_SEED)


def suite_cell(of: StudySet, seed: int) -> StudyCell:
    """A table of the paper's suite is split as the benchmark does, and its seed is the outer fold."""
    row = dataset(of.name)
    part = outer_fold(row, row.table(download=False), seed, MODEL_SEED)
    return StudyCell(**vars(cell_of(part, folder_name(of, seed))), of=of, seed=seed)


def drawn_cell(of: StudySet, seed: int) -> StudyCell:
    """Draw, split 80/20, understand the training part alone."""
    assert of.load is not None
    X, y = of.load(seed)
    classes = None
    if of.task == "classification":
        y = np.unique(y, return_inverse=True)[1]
        classes = y if np.bincount(y).min() > 1 else None
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=seed, stratify=classes)
    schema = infer_schema(X)
    encode = np.eye(y.max() + 1).__getitem__ if of.task == "classification" else lambda y: np.asarray(y, float)[:, None]
    data = Data(validate(schema, X), y, encode(y), None, schema, of.task, MODEL_SEED)
    splits = make_folds(None, y, stratify=of.task == "classification", seed=MODEL_SEED)
    return StudyCell(folder_name(of, seed), data, splits, validate(schema, X_test), encode(y_test), of, seed)


def fit_cell(cell: Cell, folder: Path, library: Library) -> None:
    """Every specialist of the library that the folder does not have yet."""
    fits = Fits(cell, folder, bag=True)
    for row in admitted(library, cell.data.rows)[0]:
        fits.of(row)


@click.group()
def main() -> None:
    """The study behind the defaults."""


@main.command()
@click.argument("cache", type=click.Path(path_type=Path))
@click.option("--sets", default="", help="names, by comma; all by default")
@click.option("--seeds", default=None, type=int, help="at most so many seeds a table")
@click.option("--rows", "names", default="all", type=click.Choice(["all", "default"]), help="rows of level 1")
@click.option("--cv", default=None, type=click.Choice(OTHER_FOLDS), help="folds; the paper's rule by default")
def fit(cache: Path, sets: str, seeds: int | None, names: str, cv: str | None) -> None:
    """Fit what the cache lacks."""
    wanted = [s for s in SETS if not sets or s.name in sets.split(",")]
    for of in (s for s in wanted if s.load or cv):
        library = named("default", of.task).level(1) if names == "default" else every_row(of.task).level(1)
        for seed in of.seeds[:seeds]:
            begin = time.process_time()
            try:
                cell = open_cell(of, seed, cv)
            except (OSError, Absent) as error:
                click.echo(f"{of.name}: left out, its data are not here ({error})")
                break
            fit_cell(cell, cache / cell.name, library)
            click.echo(f"{cell.name}: {time.process_time() - begin:.0f} CPU seconds")


@main.command()
@click.argument("cache", type=click.Path(path_type=Path, exists=True))
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--sets", default="", help="names, by comma; all by default")
@click.option("--axes", default="", help="by comma, what is varied: method, rule, row, ...; all by default")
@click.option("--seeds", default=None, type=int, help="at most so many seeds a table")
def evaluate(cache: Path, results: Path, sets: str, axes: str, seeds: int | None) -> None:
    """Every scheme on every cell that is cached whole; cells that the results already have are kept as they are."""
    from softlearning_bench.study_schemes import evaluate_cell

    files = {name: results / f"study_{name}.csv" for name in ("schemes", "specialists")}
    tables = {name: pd.read_csv(path) if path.exists() else pd.DataFrame() for name, path in files.items()}
    for of, seed in [(s, seed) for s in SETS for seed in s.seeds[:seeds] if not sets or s.name in sets.split(",")]:
        known = tables["schemes"]
        if len(known) and known.eval("dataset == @of.name and seed == @seed").any():
            continue
        begin = time.process_time()
        cached = cached_whole(cache, of, seed)
        if cached is None:
            continue
        schemes, singles = evaluate_cell(cached, axes.split(",") if axes else None)
        schemes += lines_of_other_folds(cache, of, seed)
        for name, lines in zip(files, (schemes, singles)):
            tables[name] = pd.concat([tables[name], pd.DataFrame(lines)], ignore_index=True)
            tables[name].to_csv(files[name], index=False, float_format="%.6g")
        click.echo(f"{cached.cell.name}: {time.process_time() - begin:.0f} CPU seconds")


def cached_whole(cache: Path, of: StudySet, seed: int, cv: str | None = None):
    """A cell with the predictions of all rows of the default, or None where the cache lacks some."""
    from softlearning_bench.study_schemes import open_cached

    folder = cache / folder_name(of, seed, cv)
    if not (folder / "dummy.npz").exists():
        return None  # before a table is drawn for nothing
    cached = open_cached(open_cell(of, seed, cv), folder)
    return cached if cached.has(named("default", of.task).level(1).names) else None


def lines_of_other_folds(cache: Path, of: StudySet, seed: int) -> list[dict]:
    from softlearning_bench.study_schemes import other_folds

    found = {cv: cached_whole(cache, of, seed, cv) for cv in OTHER_FOLDS}
    return [other_folds(cached, cv) for cv, cached in found.items() if cached is not None]


@main.command()
@click.argument("results", type=click.Path(path_type=Path, exists=True))
@click.argument("docs", type=click.Path(path_type=Path, exists=True))
def report(results: Path, docs: Path) -> None:
    """Fill the tables of study.md and draw its figures."""
    from softlearning_bench.study_report import blocks, draw, fill

    schemes, specialists = (pd.read_csv(results / f"study_{name}.csv") for name in ("schemes", "specialists"))
    page = docs / "study.md"
    page.write_text(fill(page.read_text(), blocks(schemes, specialists)))
    draw(schemes, specialists, docs / "figures")


if __name__ == "__main__":
    main()
