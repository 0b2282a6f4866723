"""`softlearning fit`: from a table to a model and its page."""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from softlearning.cli.arguments import (
    FILE,
    FOLDER,
    INTERRUPTED,
    KEY_FILE,
    PlainCommand,
    Stages,
    check_outputs,
    column_of,
    key,
    name_list,
    pair,
    read,
    size_of,
)
from softlearning.cli.using import print_scores, read_and_answer, summary_of, write_page
from softlearning.data.messages import closest

TASKS = ("auto", "classification", "regression")
LIBRARIES = ("default", "best", "fast", "paper")
USELESS = 3  # exit code
WORTH_PROCESSES = 6.0  # seconds of work on one core below which starting others costs more than it saves


class FitCommand(PlainCommand):
    """Takes `--cv time COLUMN` for `--time COLUMN`."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        for at in range(len(args) - 2):
            if args[at : at + 2] == ["--cv", "time"]:
                args = [*args[:at], "--time", *args[at + 2 :]]
                break
        return super().parse_args(context, args)


@click.command(cls=FitCommand)
@click.argument("table", type=FILE)
@click.option("--target", required=True, metavar="COLUMN", help="The column to predict.")
@click.option("--out", required=True, type=FILE, metavar="MODEL", help="Where the model is saved.")
@click.option("--report", "page", type=FILE, metavar="PAGE.html", help="Also write a page about the model.")
@click.option("--test", type=FILE, metavar="TABLE",
              help="Rows to score at the end; the page then tells which columns matter.")  # fmt: skip
@click.option("--learning-curve", "curve", is_flag=True,
              help="The page also tells whether more rows would help: about 20 seconds.")  # fmt: skip
@click.option("--library", default="default", metavar="NAME", show_default=True,
              help="default, best, fast, paper, or names of specialists with commas.")  # fmt: skip
@click.option("--metric", metavar="NAME", help="What to be good at: roc_auc, f1, ordinal, mae, pinball:0.9, ..")
@click.option("--threshold", metavar="auto|NUMBER", help="How probabilities of two classes become labels.")
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="For the whole fit.")  # fmt: skip
@click.option("--memory-limit", metavar="BYTES", help="For the specialists, such as 2GB or 512MiB.")
@click.option("--jobs", type=int, metavar="CORES", help="-1 for all; by default all, but one where the table is small.")
@click.option("--task", type=click.Choice(TASKS), default="auto", show_default=True)
@click.option("--type", "types", multiple=True, metavar="COLUMN=TYPE",
              help="What a column is, where the guess is wrong: zip=category. Repeatable.")  # fmt: skip
@click.option("--drop", multiple=True, metavar="COLUMN", help="Not to learn from. Repeatable.")
@click.option("--groups", "--group", "group", metavar="COLUMN",
              help="Rows with the same value here are held out together.")  # fmt: skip
@click.option("--weights", "--weight", "weight", metavar="COLUMN", help="How much each row counts.")
@click.option("--time", metavar="COLUMN",
              help="Each fold is predicted from rows earlier by this column; also --cv time COLUMN.")  # fmt: skip
@click.option("--cv", type=click.IntRange(min=2), metavar="FOLDS", help="Number of folds.")
@click.option("--checkpoint", type=FOLDER, metavar="FOLDER", help="Keep finished work here, to resume after a crash.")
@click.option("--mlflow", metavar="URI", help="Also log the run there: settings, scores, page and model.")
@click.option("--seed", type=int, default=42, show_default=True)
@click.option("--allow-useless", is_flag=True, help=f"Do not end with exit code {USELESS} where nothing was learnt.")
@click.option("--name", default="", hidden=True, help="For programs: what the table is called on the page.")
@click.option("--events", type=FILE, hidden=True, help="For programs: news as json lines; ends when their pipe does.")
@KEY_FILE
def fit(table, target, out, page, test, curve, library, metric, threshold, time_limit, memory_limit, jobs,
        task, types, drop, group, weight, time, cv, checkpoint, mlflow, seed, allow_useless, name, events):  # fmt: skip
    """Learn from TABLE and save the model."""
    given = dict(pair(text, "COLUMN=TYPE, such as zip=category", "--type") for text in types)
    settings = {
        "library": _library(library),
        "metric": metric,
        "time_limit": time_limit,
        "memory_limit": memory_limit,
        "column_types": given,
        "checkpoint": checkpoint,
        "random_state": seed,
        "cv": cv,
    }
    check_outputs(out, page)
    heard = None if events is None else news_to(events)
    with Stages(heard=heard) as stage:
        from softlearning.report import console

        signed, frame = key(), read(table)
        if time is not None:
            if group is not None:
                raise click.UsageError("--groups and --time cannot be kept at once")
            frame, settings["cv"] = in_time_order(frame, column_of(frame, time, "--time"), cv)
        X, y, groups, row_weight = _split(frame, target, group, weight, drop)
        for column in given:
            column_of(X, column, "--type")
        task, reason = _task(y, task)
        if metric is None and task == "classification" and y.dtype.kind in "iuf" and y.nunique() > 2:
            reason += "\nIf its values are grades, `--metric ordinal` respects their order"
        if threshold is not None:
            if task == "regression":
                raise click.UsageError(f"--threshold is for two classes, and {target!r} is a number")
            settings["threshold"] = threshold if threshold == "auto" else float(threshold)
        _print_understood(X, given, f"Target `{target}`: {task}{reason}")
        settings["n_jobs"] = _jobs(settings["library"], task, X, y) if jobs is None else jobs
        labels = _labels(y, task)
        model = _fitted(task, settings, X, labels, row_weight, groups, heard)
        summary = summary_of(
            model, test if page else None, drawn=page is not None, tell=stage, name=name or table.name,
            learning_curve=(X, labels) if curve else None,
        )  # fmt: skip
        stage.end()
        click.echo("\n".join(console.model(summary)) + "\n")
        if test is not None:
            print_scores(model, read_and_answer(model, test))
        stage("Saving")
        model.save(out, key=signed)
        stage.end()
        click.echo(f"Model:  {out} ({size_of(out)})")
        if page is not None:
            write_page(summary, path=page)
        if mlflow is not None:
            from softlearning.sharing.tracking import log_to_mlflow

            click.echo(f"MLflow: run {log_to_mlflow(model, mlflow)}")
        _end(summary, out, allow_useless)


def _fitted(task: str, settings: dict[str, Any], X, y, row_weight, groups, heard=None):
    """A model of the task, fitted; live progress on a terminal, or news for a program."""
    from softlearning.estimators import SoftClassifier, SoftRegressor

    estimator = SoftClassifier if task == "classification" else SoftRegressor
    watch = sys.stderr.isatty() if heard is None else lambda event: heard(asdict(event))
    model = estimator(**settings, progress=watch)
    return model.fit(X, y, sample_weight=row_weight, groups=groups)


def news_to(path: Path) -> Callable[[dict[str, Any]], None]:
    """A writer of json lines; when standard input ends, whoever listened is gone, and so is this process."""

    def watch() -> None:
        while os.read(0, 1):  # past the buffers of Python, which cannot be locked when it ends
            pass
        os._exit(INTERRUPTED)

    if sys.stdin is not None and not sys.stdin.isatty():
        threading.Thread(target=watch, daemon=True).start()
    path.write_bytes(b"")

    def write(news: dict[str, Any]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(news, default=str) + "\n")

    return write


def _jobs(library: str | list[str], task: str, X, y) -> int:
    """All cores, or one where the whole work is expected to take less than starting processes is worth."""
    from softlearning.library import resolve

    rows = resolve(library, task)
    classes = y.nunique() if task == "classification" else 1
    seconds = sum(s.seconds(len(X), X.shape[1], classes) for s in rows)
    return 1 if 6 * seconds < WORTH_PROCESSES else -1  # about five folds and the final fit


def _end(summary: dict[str, Any], out: Path, allow_useless: bool) -> None:
    """The next command; or, where nothing was learnt, why."""
    from softlearning.report.words import useless

    if reason := useless(summary):
        click.echo(f"Warning: {reason}", err=True)
        if not allow_useless:
            click.get_current_context().exit(USELESS)
    click.echo(f"Next: softlearning predict {shlex.quote(str(out))} NEW_TABLE --out predictions.csv")


def _print_understood(X, types: dict[str, str], target: str) -> None:
    """Before the work, so that a wrong guess is seen while there is time to stop."""
    from softlearning.data.schema import describe, infer_schema

    click.echo(f"{describe(infer_schema(X, types))}\n{target}\n")


def _library(text: str) -> str | list[str]:
    names = name_list(text) or []
    return names[0] if len(names) == 1 and closest(names[0], LIBRARIES) else names


def _split(frame, target: str, group: str | None, weight: str | None, drop: tuple[str, ...]):
    """Features, target, groups and weights; rows without a target are skipped, and counted."""
    from softlearning.data.schema import read_target
    from softlearning.evaluation.rows import weights

    asked = {"--target": target, "--groups": group, "--weights": weight}
    roles = {option: column_of(frame, name, option) for option, name in asked.items() if name is not None}
    if len(set(roles.values())) < len(roles):
        raise click.UsageError(f"{' and '.join(roles)} need different columns")
    known = frame[target].notna()
    if not known.all():
        click.echo(f"Note: {int((~known).sum())} rows without a value of {target!r} are skipped", err=True)
        frame = frame[known].reset_index(drop=True)
    X = frame.drop(columns=[*roles.values(), *(column_of(frame, name, "--drop") for name in drop)], errors="ignore")
    if not X.shape[1]:
        raise click.UsageError(f"the table has no column besides {', '.join([*roles.values(), *drop])}")
    groups = None if group is None else frame[group].to_numpy()
    return X, read_target(frame[target]).rename(target), groups, None if weight is None else weights(frame[weight])


def in_time_order(frame, column: str, folds: int | None):
    """The rows, earliest first, and folds that are predicted from earlier rows."""
    from sklearn.model_selection import TimeSeriesSplit

    from softlearning.data.schema import infer_schema
    from softlearning.data.validation import validate

    moment = frame[column]
    if moment.dtype.kind not in "iufM":
        moment = validate(infer_schema(frame[[column]], {column: "date"}), frame[[column]])[column]
    if moment.isna().any():
        raise ValueError(f"column `{column}` has {int(moment.isna().sum())} missing values: --time needs all of them")
    order = moment.to_numpy().argsort(kind="stable")
    return frame.iloc[order].reset_index(drop=True), TimeSeriesSplit(folds or 5)


def _task(y, asked: str) -> tuple[str, str]:
    """The task, and why where it was guessed."""
    if asked != "auto":
        return asked, ""
    from softlearning.data.schema import guess_task

    guess = guess_task(y)
    return guess.task, f" (guessed from {guess.reason}; --task overrules)"


def _labels(y, task: str):
    """The target as the estimators take it."""
    from softlearning.evaluation.rows import as_labels

    return y if task == "regression" else as_labels(y)
