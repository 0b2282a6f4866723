"""`softlearning evaluate`, `compare`, `predict` and `report`: what is done with fitted models."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from softlearning.cli.arguments import (
    FILE,
    KEY_FILE,
    STREAM,
    Stages,
    check_outputs,
    check_there,
    column_of,
    command,
    known_columns,
    load_model,
    read,
    size_of,
)

CHUNK = 50_000  # rows that are predicted at a time
TARGET = click.option("--target", metavar="COLUMN",
                      help="Where the truth is; the column of the same name unless told.")  # fmt: skip
GROUPS = click.option("--groups", "--group", "group", metavar="COLUMN",
                      help="Rows with the same value here count as one in the intervals.")  # fmt: skip
WEIGHTS = click.option("--weights", "--weight", "weight", metavar="COLUMN", help="How much each row counts.")


@command()
@click.argument("model", type=FILE)
@click.argument("table", type=FILE)
@TARGET
@GROUPS
@WEIGHTS
@KEY_FILE
def evaluate(model, table, target, group, weight):
    """Score MODEL on rows that it has not seen.

    The target is in TABLE: metrics with 95 % intervals.
    """
    fitted = load_model(model)
    print_scores(fitted, read_and_answer(fitted, table), target=target, group=group, weight=weight)


@command()
@click.argument("first", type=FILE, metavar="A")
@click.argument("second", type=FILE, metavar="B")
@click.argument("table", type=FILE, metavar="TEST")
@TARGET
@GROUPS
@WEIGHTS
@KEY_FILE
def compare(first, second, table, target, group, weight):
    """Tell whether two models differ beyond noise.

    A and B are scored on the rows of TEST, which neither has seen.
    """
    from softlearning.evaluation.rows import score_parts
    from softlearning.report import console

    models = {"A": load_model(first), "B": load_model(second)}
    if models["A"].record_.task != models["B"].record_.task:
        raise ValueError(f"{first} is a {models['A'].record_.task}, {second} a {models['B'].record_.task}")
    parts = _read_and_answer_all(models, table)
    found, notes = score_parts(models, parts, target=target, group=group, weight=weight)
    _tell(notes)
    click.echo("\n".join(console.differences(found, {"A": first.name, "B": second.name})))


@command()
@click.argument("model", type=FILE)
@click.argument("table", type=FILE)
@click.option("--out", required=True, type=FILE, metavar="PREDICTIONS",
              help="Ends in .csv, .tsv, .parquet, .feather, .jsonl or .xlsx; - is csv on standard output.")  # fmt: skip
@click.option("--keep", multiple=True, metavar="COLUMN", help="Repeated beside the predictions. Repeatable.")
@click.option("--coverage", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.9, show_default=True,
              help="Nominal coverage of the intervals of a regression.")  # fmt: skip
@KEY_FILE
def predict(model, table, out, keep, coverage):
    """Predict the rows of TABLE.

    A row gets its prediction, one probability per class or an interval, and the disagreement. Large files are read,
    predicted and written part by part. Where the target is in the table, it is scored as well.
    """
    from softlearning.data.files import write_table

    check_outputs(out)
    fitted = load_model(model)
    met: list[tuple[Any, Any]] = []
    count = write_table(_rows_to_write(fitted, table, keep, coverage, met), out)
    click.echo(f"{count} predictions: {out}", err=out == STREAM)
    if met:
        print_scores(fitted, met, err=out == STREAM)


def _rows_to_write(model, table: Path, keep: tuple[str, ...], coverage: float, met: list) -> Iterator[Any]:
    """What is written for each part of a table; parts with a target are added to `met`."""
    name = model.record_.training.target_name
    for frame, answers in read_and_answer(model, table, coverage):
        kept = frame[[column_of(frame, column, "--keep") for column in keep]].reset_index(drop=True)
        if name and name in frame.columns:
            met.append((frame[[name]], answers))
        written = answers.table()
        kept.columns = [f"{c}_given" if c in written.columns else c for c in kept.columns]
        yield kept.join(written)


@command()
@click.argument("models", type=FILE, nargs=-1, required=True, metavar="MODEL [OTHER]")
@click.option("--out", required=True, type=FILE, metavar="PAGE.html")
@click.option("--rows", type=FILE, metavar="TABLE",
              help="Rows with the target that the model has not seen: they tell which columns matter.")  # fmt: skip
@KEY_FILE
def report(models, out, rows):
    """Write a page about MODEL, or two side by side.

    How good, against what, how sure, and why.
    """
    if len(models) > 2:
        raise click.UsageError("one model, or two to set side by side")
    check_outputs(out)
    with Stages() as stage:
        summaries = [summary_of(load_model(path), rows, drawn=True, tell=stage) for path in models]
        stage.end()
        write_page(*summaries, path=out, names=[path.name for path in models])


def summary_of(model, rows: Path | None, drawn: bool, **asked: Any) -> dict[str, Any]:
    """The summary; what is told of columns where rows that the model has not seen are given."""
    from softlearning.data.schema import read_target
    from softlearning.evaluation.rows import as_labels, named
    from softlearning.report.summarise import DRAWS, summarise_model

    given = {}
    if rows is not None:
        frame = read(rows)
        y = read_target(named(frame, model.record_.training.target_name))
        known = y.notna()
        labels = y[known] if model.record_.task == "regression" else as_labels(y[known])
        given = {"X": known_columns(model, frame[known]), "y": labels}
    command = shlex.join(["softlearning", *sys.argv[1:]])
    return summarise_model(model, command=command, draws=DRAWS if drawn else 0, **given, **asked)


def write_page(*summaries: dict[str, Any], path: Path, names: list[str] | None = None) -> None:
    """Write the page of one model, or of two, and say where it is."""
    from softlearning import report as pages

    if len(summaries) == 1:
        pages.write_page(summaries[0], path)
    else:
        pages.write_comparison(summaries, names or [], path)
    click.echo(f"Report: {path} ({size_of(path)})")


def read_and_answer(model, table: Path, coverage: float = 0.9) -> Iterator[tuple[Any, Any]]:
    """Part by part: rows of a table, and what the model says of them."""
    for frame, answers in _read_and_answer_all({"model": model}, table, coverage):
        yield frame, answers["model"]


def _read_and_answer_all(models: dict[str, Any], table: Path, coverage: float = 0.9) -> Iterator[tuple[Any, dict]]:
    from softlearning.data.files import read_chunks

    check_there(table)
    for frame in read_chunks(table, CHUNK):
        yield frame, {n: model.predict_full(known_columns(model, frame), coverage) for n, model in models.items()}


def print_scores(model, met, *, err: bool = False, **columns: str | None) -> None:
    """Metrics, with intervals, of parts of a table and what was said of them."""
    from softlearning.evaluation.rows import score_parts
    from softlearning.report import console

    parts = ((frame, {"model": said}) for frame, said in met)
    found, notes = score_parts({"model": model}, parts, **columns)
    _tell(notes)
    click.echo("\n".join(console.scores(found)) + "\n", err=err)


def _tell(notes: list[str]) -> None:
    for note in notes:
        click.echo(f"Note: {note}", err=True)
