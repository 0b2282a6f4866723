"""The command: parse, call, print. What is slow to import is imported inside the commands, so that help is instant."""

from __future__ import annotations

import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click

from softlearning import __version__
from softlearning.data.messages import closest, nearest

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
STREAM = Path("-")
TASKS = ("auto", "classification", "regression")
LIBRARIES = ("default", "best", "fast", "paper")
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
CHUNK = 50_000  # rows that are predicted at a time
USELESS = 3  # exit code
INTERRUPTED = 130  # exit code
NOT_KEPT = "nothing was saved; --checkpoint FOLDER would keep finished work"
PLUGINS = "softlearning.commands"  # entry points of packages that add a command
ADDED = {"bench": "softlearning-bench (folder benchmarks/ of the sources)"}  # known commands of other packages
USER_ERRORS = (ValueError, TypeError, OSError, ImportError, MemoryError)


class Commands(click.Group):
    """The commands here, and those that other installed packages add under the entry point `softlearning.commands`."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*super().list_commands(context), *ADDED, *(e.name for e in entry_points(group=PLUGINS))})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if found := super().get_command(context, name):
            return found
        for entry in entry_points(group=PLUGINS, name=name):
            return entry.load()
        if name in ADDED:
            raise click.ClickException(f"`softlearning {name}` needs the package {ADDED[name]}, which is not installed")
        return None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="softlearning")
@click.option("--traceback", is_flag=True, help="On an error show where in the code it arose.")
@click.pass_context
def main(context: click.Context, traceback: bool) -> None:
    """The best combination of algorithms for your table.

    \b
    softlearning fit houses.csv --target price --out houses.model --report houses.html
    softlearning evaluate houses.model test.csv
    softlearning predict houses.model new.csv --out predictions.csv

    Tables are csv, parquet, feather, arrow, json lines or Excel files, or - for standard input.
    """
    context.obj = {"traceback": traceback}


# -- fit --------------------------------------------------------------------------------------------------------------


@main.command()
@click.argument("table", type=FILE)
@click.option("--target", required=True, metavar="COLUMN", help="The column to predict.")
@click.option("--out", required=True, type=FILE, metavar="MODEL", help="Where the model is saved.")
@click.option("--report", "page", type=FILE, metavar="PAGE.html", help="Also write a page about the model.")
@click.option("--test", type=FILE, metavar="TABLE",
              help="Rows to score at the end; the page then tells which columns matter.")  # fmt: skip
@click.option("--library", default="default", metavar="NAME", show_default=True,
              help="default, best, fast, paper, or names of specialists with commas.")  # fmt: skip
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="For the whole fit.")  # fmt: skip
@click.option("--memory-limit", metavar="BYTES", help="For the specialists, such as 2G or 500M.")
@click.option("--jobs", type=int, default=-1, show_default=True, help="Cores to use; -1 for all.")
@click.option("--task", type=click.Choice(TASKS), default="auto", show_default=True)
@click.option("--type", "types", multiple=True, metavar="COLUMN=TYPE",
              help="What a column is, where the guess is wrong: zip=category. Repeatable.")  # fmt: skip
@click.option("--drop", multiple=True, metavar="COLUMN", help="Not to learn from. Repeatable.")
@click.option("--group", metavar="COLUMN", help="Rows with the same value here are held out together.")
@click.option("--weight", metavar="COLUMN", help="How much each row counts.")
@click.option("--time", metavar="COLUMN", help="Each fold is predicted from rows that are earlier by this column.")
@click.option("--cv", type=click.IntRange(min=2), metavar="FOLDS", help="Number of folds.")
@click.option("--checkpoint", type=FOLDER, metavar="FOLDER", help="Keep finished work here, to resume after a crash.")
@click.option("--seed", type=int, default=42, show_default=True)
@click.option("--allow-useless", is_flag=True, help=f"Do not end with exit code {USELESS} where nothing was learnt.")
@click.pass_context
def fit(context, table, target, out, page, test, library, time_limit, memory_limit, jobs, task, types, drop, group,
        weight, time, cv, checkpoint, seed, allow_useless):  # fmt: skip
    """Learn from TABLE and save the model."""
    from softlearning.report import console

    given = dict(pair(text, "COLUMN=TYPE, such as zip=category", "--type") for text in types)
    settings = {
        "library": _library(library),
        "time_limit": time_limit,
        "memory_limit": None if memory_limit is None else _bytes(memory_limit),
        "n_jobs": jobs,
        "column_types": given,
        "checkpoint": checkpoint,
        "random_state": seed,
        "cv": cv,
    }
    _check_outputs(out, page)
    with plain_errors(context):
        frame = _read(table)
        if time is not None:
            if group is not None:
                raise click.UsageError("--group and --time cannot be kept at once")
            frame, settings["cv"] = _in_time_order(frame, _column(frame, time, "--time"), cv)
        X, y, groups, row_weight = _split(frame, target, group, weight, drop)
        for name in given:
            _column(X, name, "--type")
        task, reason = _task(y, task)
        _print_understood(X, given, f"Target `{target}`: {task}{reason}")
        model = _fitted(task, settings, X, _labels(y, task), row_weight, groups)
        summary = _summary(model, test if page else None, drawn=page is not None)
        click.echo("\n".join(console.model(summary)) + "\n")
        if test is not None:
            _print_scores(model, _read_and_answer(model, test))
        _save(model, out)
        if page is not None:
            _write_page(summary, page)
        _end(context, summary, out, allow_useless)


def _fitted(task: str, settings: dict[str, Any], X, y, row_weight, groups):
    """A model of the task, fitted; live progress on a terminal."""
    from softlearning.estimators import SoftClassifier, SoftRegressor

    estimator = SoftClassifier if task == "classification" else SoftRegressor
    model = estimator(**settings, progress=sys.stderr.isatty())
    return model.fit(X, y, sample_weight=row_weight, groups=groups)


def _summary(model, rows: Path | None, drawn: bool) -> dict[str, Any]:
    """The summary; the importance of columns where rows that the model has not seen are given."""
    from softlearning.data.schema import read_target
    from softlearning.evaluation.rows import named
    from softlearning.report.summarise import DRAWS, summarise_model

    given = {}
    if rows is not None:
        frame = _read(rows)
        y = read_target(named(frame, model.record_.training.target_name))
        known = y.notna()
        given = {"X": _known_columns(model, frame[known]), "y": _labels(y[known], model.record_.task)}
    command = shlex.join(["softlearning", *sys.argv[1:]])
    return summarise_model(model, command=command, draws=DRAWS if drawn else 0, **given)


def _end(context: click.Context, summary: dict[str, Any], out: Path, allow_useless: bool) -> None:
    """The next command; or, where nothing was learnt, why."""
    from softlearning.report.words import useless

    if reason := useless(summary):
        click.echo(f"Warning: {reason}", err=True)
        if not allow_useless:
            context.exit(USELESS)
    click.echo(f"Next: softlearning predict {shlex.quote(str(out))} NEW_TABLE --out predictions.csv")


def _save(model, path: Path) -> None:
    model.save(path)
    click.echo(f"Model:  {path} ({_size(path)})")


def _print_understood(X, types: dict[str, str], target: str) -> None:
    """Before the work, so that a wrong guess is seen while there is time to stop."""
    from softlearning.data.schema import describe, infer_schema

    click.echo(f"{describe(infer_schema(X, types))}\n{target}\n")


def _write_page(summary: dict[str, Any], path: Path) -> None:
    from softlearning.report import write_page

    write_page(summary, path)
    click.echo(f"Report: {path} ({_size(path)})")


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"


# -- evaluate, predict and report -------------------------------------------------------------------------------------


@main.command()
@click.argument("model", type=FILE)
@click.argument("table", type=FILE)
@click.option("--target", metavar="COLUMN", help="Where the truth is; the column of the same name unless told.")
@click.option("--group", metavar="COLUMN", help="Rows with the same value here count as one in the intervals.")
@click.option("--weight", metavar="COLUMN", help="How much each row counts.")
@click.pass_context
def evaluate(context, model, table, target, group, weight):
    """Score MODEL on the rows of TABLE, which it must not have seen: metrics with 95 % intervals."""
    with plain_errors(context):
        fitted = _load(model)
        _print_scores(fitted, _read_and_answer(fitted, table), target=target, group=group, weight=weight)


@main.command()
@click.argument("model", type=FILE)
@click.argument("table", type=FILE)
@click.option("--out", required=True, type=FILE, metavar="PREDICTIONS",
              help="A file that ends in .csv, .parquet, .feather or .jsonl; - for csv on standard output.")  # fmt: skip
@click.option("--keep", multiple=True, metavar="COLUMN", help="Repeated beside the predictions. Repeatable.")
@click.option("--coverage", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.9, show_default=True,
              help="Nominal coverage of the intervals of a regression.")  # fmt: skip
@click.pass_context
def predict(context, model, table, out, keep, coverage):
    """Predict the rows of TABLE: prediction, one probability per class or an interval, disagreement.

    Large files are read, predicted and written part by part. Where the target is in the table, it is scored as well.
    """
    from softlearning.data.files import write_table

    _check_outputs(out)
    with plain_errors(context):
        fitted = _load(model)
        met: list[tuple[Any, Any]] = []
        count = write_table(_rows_to_write(fitted, table, keep, coverage, met), out)
        click.echo(f"{count} predictions: {out}", err=out == STREAM)
        if met:
            _print_scores(fitted, met, err=out == STREAM)


def _rows_to_write(model, table: Path, keep: tuple[str, ...], coverage: float, met: list) -> Iterator[Any]:
    """What is written for each part of a table; parts with a target are added to `met`."""
    name = model.record_.training.target_name
    for frame, answers in _read_and_answer(model, table, coverage):
        kept = frame[[_column(frame, column, "--keep") for column in keep]].reset_index(drop=True)
        if name and name in frame.columns:
            met.append((frame[[name]], answers))
        written = answers.table()
        kept.columns = [f"{c}_given" if c in written.columns else c for c in kept.columns]
        yield kept.join(written)


@main.command()
@click.argument("model", type=FILE)
@click.option("--out", required=True, type=FILE, metavar="PAGE.html")
@click.option("--rows", type=FILE, metavar="TABLE",
              help="Rows with the target that the model has not seen: they tell which columns matter.")  # fmt: skip
@click.pass_context
def report(context, model, out, rows):
    """Write a page about MODEL: how good, against what, how sure, and why."""
    _check_outputs(out)
    with plain_errors(context):
        _write_page(_summary(_load(model), rows, drawn=True), out)


def _load(path: Path):
    """The model in a file; a path that is not there is the user's mistake, not a damaged file."""
    _check_there(path)
    from softlearning.estimators import load

    return load(path)


def _known_columns(model, frame):
    """The columns that the model knows, so that a target or a note in the table does no harm."""
    known = {column.name for column in model.record_.training.schema.columns}
    shown = [name for name in frame.columns if str(name) in known]
    return frame[shown] if known else frame


def _read_and_answer(model, table: Path, coverage: float = 0.9) -> Iterator[tuple[Any, Any]]:
    """Part by part: rows of a table, and what the model says of them."""
    from softlearning.data.files import read_chunks

    _check_there(table)
    for frame in read_chunks(table, CHUNK):
        yield frame, model.predict_full(_known_columns(model, frame), coverage)


def _print_scores(model, met, *, err: bool = False, **columns: str | None) -> None:
    """Metrics, with intervals, of parts of a table and what was said of them."""
    from softlearning.evaluation.rows import score_parts
    from softlearning.report import console

    found, unknown = score_parts(model, met, **columns)
    if unknown:
        click.echo(f"Note: {unknown} rows have no target, or a class the model never saw: not scored", err=True)
    click.echo("\n".join(console.scores(found)) + "\n", err=err)


# -- demo and serve ---------------------------------------------------------------------------------------------------


@main.command()
@click.option("--out", type=FOLDER, default=Path("demo"), show_default=True, help="Folder for what it leaves behind.")
@click.option("--jobs", type=int, default=2, show_default=True, help="Cores to use; -1 for all.")
@click.pass_context
def demo(context, out, jobs):
    """Fit a real table beside two rivals and show what comes out; one to two minutes."""
    from softlearning.demo import run_demo

    with plain_errors(context):
        out.mkdir(parents=True, exist_ok=True)
        run_demo(out, jobs)


@main.command()
@click.argument("model", type=FILE)
@click.option("--host", default="127.0.0.1", show_default=True, help="Mind who can reach it on another.")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True)
@click.pass_context
def serve(context, model, host, port):
    """Answer predictions over HTTP: POST /predict, GET /health, GET /openapi.json."""
    with plain_errors(context):
        from softlearning.serve import serve_model

        fitted = _load(model)
        click.echo(f"POST rows to http://{host}:{port}/predict; /openapi.json says how. Stop with Ctrl-C.")
        serve_model(fitted, host=host, port=port)


# -- what the user typed ----------------------------------------------------------------------------------------------


def pair(text: str, form: str, option: str) -> tuple[str, str]:
    """What stands before and behind the last equals sign."""
    name, _, value = text.rpartition("=")
    if not name or not value:
        raise click.BadParameter(f"{text!r} is not {form}", param_hint=option)
    return name, value


def _library(text: str) -> str | list[str]:
    names = name_list(text) or []
    return names[0] if len(names) == 1 and names[0] in LIBRARIES else names


def name_list(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?", text.strip().upper())
    size = int(float(found[1]) * UNITS[found[2]]) if found else 0
    if size <= 0:
        raise click.BadParameter(f"{text!r} is no amount of memory, such as 2G or 500M", param_hint="--memory-limit")
    return size


def _check_outputs(*paths: Path | None) -> None:
    """Refuse before the work what would fail after it."""
    for path in filter(None, paths):
        if not path.parent.is_dir():
            raise click.BadParameter(f"there is no folder {path.parent}", param_hint="--out")
        if not os.access(path.parent, os.W_OK):
            raise click.BadParameter(f"the folder {path.parent} cannot be written to", param_hint="--out")
    if len({path.resolve() for path in filter(None, paths)}) < len([p for p in paths if p]):
        raise click.UsageError("the model and the report need two different files")


def _check_there(path: Path) -> None:
    if path != STREAM and not path.exists():
        near = closest(path.name, [p.name for p in path.parent.glob("*")])
        raise click.UsageError(f"there is no file {path}" + (f" (did you mean {near!r}?)" if near else ""))


def _read(path: Path):
    _check_there(path)
    from softlearning.data.files import read_table

    return read_table(path)


def _column(frame, name: str, option: str) -> str:
    """The column that is meant; a misspelt one gets the nearest name."""
    names = [str(n) for n in frame.columns]
    if name not in names:
        raise click.BadParameter(f"the table has no column {name!r}; {nearest(name, names)}", param_hint=option)
    return name


def _split(frame, target: str, group: str | None, weight: str | None, drop: tuple[str, ...]):
    """Features, target, groups and weights; rows without a target are skipped, and counted."""
    from softlearning.data.schema import read_target

    asked = {"--target": target, "--group": group, "--weight": weight}
    roles = {option: _column(frame, name, option) for option, name in asked.items() if name is not None}
    if len(set(roles.values())) < len(roles):
        raise click.UsageError(f"{' and '.join(roles)} need different columns")
    known = frame[target].notna()
    if not known.all():
        click.echo(f"Note: {int((~known).sum())} rows without a value of {target!r} are skipped", err=True)
        frame = frame[known].reset_index(drop=True)
    X = frame.drop(columns=[*roles.values(), *(_column(frame, name, "--drop") for name in drop)], errors="ignore")
    if not X.shape[1]:
        raise click.UsageError(f"the table has no column besides {', '.join([*roles.values(), *drop])}")
    taken = (None if name is None else frame[name].to_numpy() for name in (group, weight))
    return X, read_target(frame[target]).rename(target), *taken


def _in_time_order(frame, column: str, folds: int | None):
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


@contextmanager
def plain_errors(context: click.Context) -> Iterator[None]:
    """What goes wrong with data or files is one sentence; warnings are notes; Ctrl-C says what is kept."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            yield
    except KeyboardInterrupt:
        folder = context.params.get("checkpoint")
        kept = f"finished work is in {folder}; the same command goes on from there" if folder else NOT_KEPT
        click.echo(f"\nStopped: {kept}.", err=True)
        context.exit(INTERRUPTED)
    except USER_ERRORS as error:
        if context.find_root().obj["traceback"]:
            raise
        sentence = str(error).strip() or type(error).__name__
        raise click.ClickException(sentence) from None


def _note(message, category, filename, lineno, file=None, line=None) -> None:
    """Our own warnings are for the reader; those of other packages are not, and failures are listed anyway."""
    if category is UserWarning:
        click.echo(f"Note: {message}", err=True)


if __name__ == "__main__":
    main()
