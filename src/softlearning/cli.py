"""The command: parse, call, print. What is slow to import is imported inside the commands, so that help is instant."""

from __future__ import annotations

import os
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
TASKS = ("auto", "classification", "regression")
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
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
    softlearning predict houses.model new.csv --out predictions.csv
    """
    context.obj = {"traceback": traceback}


# -- fit --------------------------------------------------------------------------------------------------------------


@main.command()
@click.argument("table", type=FILE)
@click.option("--target", required=True, metavar="COLUMN", help="The column to predict.")
@click.option("--out", required=True, type=FILE, metavar="MODEL", help="Where the model is saved.")
@click.option("--report", "page", type=FILE, metavar="PAGE.html", help="Also write a page about the model.")
@click.option("--library", default="default", metavar="NAME", show_default=True,
              help="default, paper, fast, or names of specialists with commas.")  # fmt: skip
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="For the whole fit.")  # fmt: skip
@click.option("--memory-limit", metavar="BYTES", help="For the specialists, such as 2G or 500M.")
@click.option("--jobs", type=int, default=-1, show_default=True, help="Cores to use; -1 for all.")
@click.option("--task", type=click.Choice(TASKS), default="auto", show_default=True)
@click.option("--type", "types", multiple=True, metavar="COLUMN=TYPE",
              help="What a column is, where the guess is wrong: zip=category. Repeatable.")  # fmt: skip
@click.option("--group", metavar="COLUMN", help="Rows with the same value here are held out together.")
@click.option("--weight", metavar="COLUMN", help="How much each row counts.")
@click.option("--checkpoint", type=FOLDER, metavar="FOLDER", help="Keep finished work here, to resume after a crash.")
@click.option("--seed", type=int, default=42, show_default=True)
@click.pass_context
def fit(context, table, target, out, page, library, time_limit, memory_limit, jobs, task, types, group, weight,
        checkpoint, seed):  # fmt: skip
    """Learn from TABLE (csv, parquet, feather, arrow, jsonl, Excel or - for standard input) and save the model."""
    given = dict(pair(text, "COLUMN=TYPE, such as zip=category", "--type") for text in types)
    settings = {
        "library": _library(library),
        "time_limit": time_limit,
        "memory_limit": None if memory_limit is None else _bytes(memory_limit),
        "n_jobs": jobs,
        "column_types": given,
        "checkpoint": checkpoint,
        "random_state": seed,
    }
    _check_outputs(out, page)
    with plain_errors(context):
        frame = _read(table)
        X, y, groups, row_weight = _split(frame, target, group, weight)
        for name in given:
            _column(X, name, "--type")
        task, reason = _task(y, task)
        _print_understood(X, given, f"Target `{target}`: {task}{reason}")
        model = _fitted(task, settings, X, _labels(y, task), row_weight, groups)
        summary = _summary(model, X, y if page else None)
        _print_model(summary)
        _save(model, out)
        if page:
            _write_page(summary, page)
        click.echo(f"Next: softlearning predict {shlex.quote(str(out))} NEW_TABLE --out predictions.csv")


def _fitted(task: str, settings: dict[str, Any], X, y, row_weight, groups):
    """A model of the task, fitted; live progress on a terminal."""
    from softlearning.estimators import SoftClassifier, SoftRegressor

    kind = SoftClassifier if task == "classification" else SoftRegressor
    model = kind(**settings, progress=sys.stderr.isatty())
    return model.fit(X, y, sample_weight=row_weight, groups=groups)


def _summary(model, X, y) -> dict[str, Any]:
    """The summary; the importance of columns, which costs predictions, only where y is given for a page."""
    from softlearning.report.summarise import summarise_model

    given = {} if y is None else {"X": X, "y": _labels(y, model.record_.task)}
    return summarise_model(model, command=_command(), **given)


def _command() -> str:
    return shlex.join(["softlearning", *sys.argv[1:]])


def _print_understood(X, types: dict[str, str], target: str) -> None:
    """Before the work, so that a wrong guess is seen while there is time to stop."""
    from softlearning.data.schema import describe, infer_schema

    click.echo(f"{describe(infer_schema(X, types))}\n{target}\n")


def _print_model(summary: dict[str, Any]) -> None:
    from softlearning.report import console

    click.echo("\n".join(console.model(summary)) + "\n")


def _save(model, path: Path) -> None:
    model.save(path)
    click.echo(f"Model:  {path} ({_size(path)})")


def _write_page(summary: dict[str, Any], path: Path) -> None:
    from softlearning.report import write_page

    write_page(summary, path)
    click.echo(f"Report: {path} ({_size(path)})")


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"


# -- predict and report -----------------------------------------------------------------------------------------------


@main.command()
@click.argument("model", type=FILE)
@click.argument("table", type=FILE)
@click.option("--out", required=True, type=FILE, metavar="PREDICTIONS.csv")
@click.option("--coverage", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.9, show_default=True,
              help="Share of the truth that the intervals of a regression hold.")  # fmt: skip
@click.pass_context
def predict(context, model, table, out, coverage):
    """Predict the rows of TABLE: prediction, a probability a class or an interval, disagreement."""
    from softlearning.data.files import read_chunks, write_table

    _check_outputs(out)
    with plain_errors(context):
        fitted = _load(model)
        _check_there(table)
        chunks = (_known_columns(fitted, chunk) for chunk in read_chunks(table))
        rows = write_table((fitted.predict_full(chunk, coverage).table() for chunk in chunks), out)
        click.echo(f"{rows} predictions: {out}", err=str(out) == "-")


@main.command()
@click.argument("model", type=FILE)
@click.option("--out", required=True, type=FILE, metavar="PAGE.html")
@click.pass_context
def report(context, model, out):
    """Write a page about MODEL: how good, against what, how sure, and why."""
    _check_outputs(out)
    with plain_errors(context):
        _write_page(_summary(_load(model), None, None), out)


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


# -- demo -------------------------------------------------------------------------------------------------------------


@main.command()
@click.option("--out", type=FOLDER, default=Path("demo"), show_default=True, help="Folder for the model and its page.")
@click.option("--jobs", type=int, default=2, show_default=True, help="Cores to use; -1 for all.")
@click.pass_context
def demo(context, out, jobs):
    """Fit a real dataset and show what comes out; about a minute."""
    from softlearning.demo import run_demo

    with plain_errors(context):
        out.mkdir(parents=True, exist_ok=True)
        run_demo(out, jobs)


# -- serve ------------------------------------------------------------------------------------------------------------


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
    return names[0] if len(names) == 1 and names[0] in ("default", "paper", "fast") else names


def name_list(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _bytes(text: str) -> int:
    number, unit = text.strip().upper().removesuffix("B").removesuffix("I"), ""
    if number[-1:] in UNITS:
        number, unit = number[:-1], number[-1]
    try:
        size = int(float(number) * UNITS[unit])
    except ValueError:
        size = 0
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
    if not path.exists() and str(path) != "-":
        siblings = [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else []
        near = closest(path.name, siblings)
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


def _split(frame, target: str, group: str | None, weight: str | None):
    """Features, target, groups and weights; rows without a target are left out, and counted."""
    from softlearning.data.schema import read_target

    asked = {"--target": target, "--group": group, "--weight": weight}
    roles = {option: _column(frame, name, option) for option, name in asked.items() if name is not None}
    if len(set(roles.values())) < len(roles):
        raise click.UsageError(f"{' and '.join(roles)} need different columns")
    known = frame[target].notna()
    if not known.all():
        click.echo(f"Note: {int((~known).sum())} rows without a value of {target!r} are left out", err=True)
        frame = frame[known].reset_index(drop=True)
    X = frame.drop(columns=list(roles.values()))
    if not X.shape[1]:
        raise click.UsageError(f"the table has no column besides {', '.join(roles.values())}")
    return (
        X,
        read_target(frame[target]),
        *(None if name is None else frame[name].to_numpy() for name in (group, weight)),
    )


def _task(y, asked: str) -> tuple[str, str]:
    """The task, and why where it was guessed."""
    if asked != "auto":
        return asked, ""
    from softlearning.data.schema import guess_task

    guess = guess_task(y)
    return guess.task, f" (guessed from {guess.reason}; --task overrules)"


def _labels(y, task: str):
    """The target as the estimators take it: whole numbers that a gap had turned to floats are whole again."""
    if task == "regression" or y.dtype.kind != "f":
        return y.to_numpy()
    return y.to_numpy().astype(int) if (y == y.round()).all() else y.astype(str).to_numpy()


@contextmanager
def plain_errors(context: click.Context) -> Iterator[None]:
    """What goes wrong with data or files is one sentence and exit code 1; warnings are notes."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            yield
    except USER_ERRORS as error:
        if context.find_root().obj["traceback"]:
            raise
        sentence = str(error).strip() or type(error).__name__
        raise click.ClickException(sentence) from None


def _note(message, category, filename, lineno, file=None, line=None) -> None:
    """Our own warnings are for the reader; those of other packages are not."""
    if category is UserWarning:
        click.echo(f"Note: {message}", err=True)


if __name__ == "__main__":
    main()
