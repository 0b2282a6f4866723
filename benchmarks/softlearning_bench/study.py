"""The study behind the defaults: which rows, which level 2, which calibration, which rule.

    python -m softlearning_bench.study run CACHE RESULTS       every scheme on every table; a second run goes on
    python -m softlearning_bench.study report RESULTS DOCS     tables and figures of the page, from the csv alone

A scheme is an estimator with some settings: it is fitted as a user fits it. The schemes of a table share a checkpoint
in CACHE, so that each specialist is fitted once per fold. `softlearning bench run --fits CACHE` fills the same folders.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold, train_test_split

from softlearning.library import every_row
from softlearning_bench.datasets import Absent, dataset
from softlearning_bench.methods import answer_of, member, stacked
from softlearning_bench.scoring import scores
from softlearning_bench.shared import Part, Specialists, cell_name, outer_fold, rows_of
from softlearning_bench.study_sets import SETS, StudySet

TEST_SHARE = 0.2
OTHER_FOLDS = ("3", "5", "10", "5x3")  # folds, or folds x repeats, that the study compares with the paper's rule
RULES = ("simplex", "guarded", "greedy", "nnls", "uniform", "best")
MODEL_SEED = 42  # folds and specialists; the seed of a cell draws and splits the table


# -- the table of schemes ---------------------------------------------------------------------------------------------


def schemes(task: str) -> list[tuple[str, str, dict[str, Any]]]:
    """(axis, name, settings) of every scheme: the default, and along each axis one thing changed."""
    every, default, paper = every_row(task), rows_of("default", task), rows_of("paper", task)
    stackers, more = default.level(2).names, [s.name for s in every.level(1) if s.name not in default]
    table: list[tuple[str, str, dict[str, Any]]] = [("method", "default", {}), ("method", "paper", PAPER[task])]
    table += [("library", "paper", {"library": paper + default.level(2)})]
    table += [("library", "all", {"library": every.level(1) + default.level(2)})]
    table += [("row", f"without {row}", {"library": default - [row]}) for row in default.level(1).names]
    table += [("row", f"with {row}", {"library": default + every[row]}) for row in more]
    table += [("rule", rule, {"rule": rule}) for rule in RULES]
    table += [("refit", "average of folds", {"refit": False})]
    table += [("level 2", "none", {"library": default.level(1)})]
    table += [("level 2", s.name, {"library": default.level(1) + every[s.name]}) for s in every.level(2)]
    table += [("level 2", f"without {name}", {"library": default - [name]}) for name in stackers]
    table += [("folds", folds_name(cv), {"cv": splitter(cv, task)}) for cv in OTHER_FOLDS]
    if task == "classification":
        table += [("calibrate", "none", {"calibrate": False})]
        table += [("loss", loss, {"loss": loss}) for loss in ("squared", "log")]
    return table


PAPER: dict[str, dict[str, Any]] = {
    "classification": {"library": "paper", "rule": "slsqp", "loss": "squared", "calibrate": False, "refit": True},
    "regression": {"library": "paper", "rule": "slsqp", "loss": "squared", "refit": True},
}


def splitter(cv: str, task: str) -> Any:
    """A number of folds, or scikit-learn's repeated folds."""
    number, _, repeats = cv.partition("x")
    if not repeats:
        return int(number)
    kind = RepeatedStratifiedKFold if task == "classification" else RepeatedKFold
    return kind(n_splits=int(number), n_repeats=int(repeats), random_state=MODEL_SEED)


def folds_name(cv: str) -> str:
    number, _, repeats = cv.partition("x")
    return f"{number} folds, {repeats} repeats" if repeats else f"{number} folds"


# -- one table --------------------------------------------------------------------------------------------------------


def folder_name(of: StudySet, seed: int) -> str:
    """Where the fits of a cell are kept."""
    return cell_name(of.name, seed, MODEL_SEED) if of.load is None else f"{of.name}-{seed}"


def open_part(of: StudySet, seed: int) -> Part:
    """A table and its test part; one of the paper's suite is split as the benchmark does, its seed the outer fold."""
    if of.load is None:
        row = dataset(of.name)
        return outer_fold(row, row.table(download=False), seed, MODEL_SEED)
    X, y = of.load(seed)
    classes = None
    if of.task == "classification":
        y = np.unique(y, return_inverse=True)[1]
        classes = y if np.bincount(y).min() > 1 else None
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=seed, stratify=classes)
    number = 1 if of.task == "regression" else int(y.max()) + 1
    return Part(of.task, number, X, np.asarray(y), X_test, np.asarray(y_test), MODEL_SEED)


def evaluate_cell(shared: Specialists, axes: list[str] | None = None) -> tuple[list[dict], list[dict]]:
    """Lines of the two tables: schemes along the named axes, or along all, and specialists by themselves."""
    wanted = [(axis, name, s) for axis, name, s in schemes(shared.part.task) if axes is None or axis in axes]
    lines = [{"axis": axis, "scheme": name} | run_scheme(shared, settings) for axis, name, settings in wanted]
    alone, default = singles(shared), rows_of("default", shared.part.task).level(1)
    peers = [stacking(shared, name) for name in ("default", "paper")]
    peers += picks([line for line in alone if line["specialist"] in default])
    return lines + [{"axis": "peer"} | line for line in peers], alone


def stacking(shared: Specialists, name: str) -> dict[str, Any]:
    """scikit-learn's stacking with the same specialists and folds."""
    answer = stacked(shared, name)
    where = {"scheme": f"scikit-learn stacking, {name} rows", "seconds": answer.fit_seconds}
    return where | measures(shared, answer.prediction)


def run_scheme(shared: Specialists, settings: dict[str, Any]) -> dict[str, Any]:
    """The measures on the test part, the seconds of the whole fit, and who had weight."""
    model = shared.model(**settings)
    answer = answer_of(shared, model)
    family = model.leaderboard_.set_index("specialist")["family"]
    weights = model.weights_
    return measures(shared, answer.prediction) | {
        "cv_risk": model.cv_risk_,
        "cv_optimised": model.certificate_["objective"],
        "support": int((weights > 0).sum()),
        "weight_2": float(weights[(family[weights.index] == "stacker").to_numpy()].sum()),
        "seconds": answer.fit_seconds,
        "test_seconds": answer.predict_seconds,
    }


def measures(shared: Specialists, prediction: np.ndarray) -> dict[str, float]:
    """`loss` is the log loss or the RMSE, `score` the accuracy or R2."""
    numbers = scores(prediction, shared.part.y_test, shared.part.task)
    loss = numbers["rmse" if shared.part.task == "regression" else "log_loss"]
    return {"loss": loss} | {name: numbers[name] for name in ("score", "brier", "auc")}


def singles(shared: Specialists) -> list[dict[str, Any]]:
    """Each specialist by itself: its measures, its cross-validated squared risk and its seconds."""
    lines, board = [], shared.everybody.leaderboard_.set_index("specialist")
    for name in shared.everybody.specialists_:
        answer = member(shared, name)
        spent = {"refit_seconds": answer.fit_seconds, "test_seconds": answer.predict_seconds}
        spent["folds_seconds"] = float(board.loc[name, ["fit_seconds", "predict_seconds"]].sum())
        risk = {"specialist": name, "cv_risk": board.loc[name, "cv_risk"]}
        lines.append(risk | measures(shared, answer.prediction) | spent)
    failed = shared.everybody.failures_.drop_duplicates("specialist")
    return lines + [{"specialist": f.specialist, "error": f.error} for f in failed.itertuples()]


def picks(alone: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The oracle's specialist (least loss on the test part) and that of cross-validation (least squared risk)."""
    known = [line for line in alone if "loss" in line]
    oracle, picked = min(known, key=lambda line: line["loss"]), min(known, key=lambda line: line["cv_risk"])
    return [{**oracle, "scheme": "oracle specialist"}, {**picked, "scheme": "picked by cross-validation"}]


def place(of: StudySet, seed: int, part: Part) -> dict[str, Any]:
    """The columns that say which cell a line is about."""
    size = {"rows": len(part.y), "columns": part.X.shape[1], "classes": part.classes}
    return {"dataset": of.name, "seed": seed, "task": of.task, "kind": of.kind} | size


# -- the commands -----------------------------------------------------------------------------------------------------


@click.group()
def main() -> None:
    """The study behind the defaults."""


@main.command()
@click.argument("cache", type=click.Path(path_type=Path))
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--sets", default="", help="Names, with commas; all by default.")
@click.option("--axes", default="", help="With commas, what is varied: method, rule, row, ...; all by default.")
@click.option("--seeds", default=None, type=int, help="At most so many seeds per table.")
def run(cache: Path, results: Path, sets: str, axes: str, seeds: int | None) -> None:
    """Every scheme on every cell that the results lack."""
    files = {name: results / f"study_{name}.csv" for name in ("schemes", "specialists")}
    tables = {name: pd.read_csv(path) if path.exists() else pd.DataFrame() for name, path in files.items()}
    for of, seed in [(s, seed) for s in SETS for seed in s.seeds[:seeds] if not sets or s.name in sets.split(",")]:
        known = tables["schemes"]
        if len(known) and known.eval("dataset == @of.name and seed == @seed").any():
            continue
        begin = time.process_time()
        try:
            part = open_part(of, seed)
        except (OSError, Absent) as error:
            click.echo(f"{of.name}: skipped, its data are not here ({error})")
            continue
        found = evaluate_cell(Specialists(part, cache / folder_name(of, seed)), axes.split(",") if axes else None)
        for name, lines in zip(files, found):
            fresh = pd.DataFrame([place(of, seed, part) | line for line in lines])
            tables[name] = pd.concat([tables[name], fresh], ignore_index=True)
            tables[name].to_csv(files[name], index=False, float_format="%.6g")
        click.echo(f"{folder_name(of, seed)}: {time.process_time() - begin:.0f} CPU seconds")


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
