"""What the commands share: kinds of arguments, checks before the work, errors as sentences."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from softlearning.data.messages import closest, nearest, printable_lines

FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
STREAM = Path("-")
INTERRUPTED = 130  # exit code
NOT_KEPT = "nothing was saved; --checkpoint FOLDER would keep finished work"
USER_ERRORS = (ValueError, TypeError, OSError, ImportError, MemoryError)


def pair(text: str, form: str, option: str) -> tuple[str, str]:
    """What stands before and behind the last equals sign."""
    name, _, value = text.rpartition("=")
    if not name or not value:
        raise click.BadParameter(f"{text!r} is not {form}", param_hint=option)
    return name, value


def name_list(text: str | None) -> list[str] | None:
    """Names between commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def check_outputs(*paths: Path | None) -> None:
    """Refuse before the work what would fail after it."""
    try:
        real = [path.resolve() for path in paths if path not in (None, STREAM)]
    except FileNotFoundError:
        raise click.UsageError("the working folder is gone: give the full path of what is to be written") from None
    for path in real:
        if not path.parent.is_dir():
            raise click.BadParameter(f"there is no folder {path.parent}", param_hint="--out")
        if not os.access(path.parent, os.W_OK):
            raise click.BadParameter(f"the folder {path.parent} cannot be written to", param_hint="--out")
        if path.exists() and not path.is_file():
            raise click.BadParameter(f"{path} is not a file", param_hint="--out")
    if len(set(real)) < len(real):
        raise click.UsageError("the model and the report need two different files")


def check_there(path: Path) -> None:
    """A path that is not there is the user's mistake, not a damaged file."""
    if path != STREAM and not path.exists():
        near = closest(path.name, [p.name for p in path.parent.glob("*")])
        raise click.UsageError(f"there is no file {path}" + (f" (did you mean {near!r}?)" if near else ""))


def read(path: Path):
    """The whole table."""
    check_there(path)
    from softlearning.data.files import read_table

    return read_table(path)


def load_model(path: Path):
    """The model in a file, which must be signed where there is a key."""
    check_there(path)
    from softlearning.estimators import load

    return load(path, key=key())


KEY_FILE = click.option("--key-file", type=FILE, metavar="FILE", expose_value=False,
                        callback=lambda context, _, path: context.meta.update({"key file": path}),
                        help="A key, 16 bytes or more: fit signs with it, others read what it signed.")  # fmt: skip


def key() -> bytes | None:
    """What is in the file of `--key-file`, if it was given."""
    return secret(click.get_current_context().meta.get("key file"))


def secret(path: Path | None) -> bytes | None:
    """A key or token in a file, if there is one."""
    if path is None:
        return None
    check_there(path)
    from softlearning.storage import read_key

    return read_key(path)


def column_of(frame, name: str, option: str) -> str:
    """The column that is meant; a misspelt one gets the nearest name."""
    names = [str(n) for n in frame.columns]
    if name not in names:
        raise click.BadParameter(f"the table has no column {name!r}; {nearest(name, names)}", param_hint=option)
    return name


def known_columns(model, frame):
    """The columns that the model knows, so that a target or a note in the table does no harm.

    All of them where one that it needs is missing: the message looks for its nearest name among them.
    """
    schema = model.record_.training.schema
    known = {column.name for column in schema.columns}
    shown = [name for name in frame.columns if str(name) in known]
    return frame[shown] if known and set(schema.names) <= {str(name) for name in shown} else frame


def size_of(path: Path) -> str:
    """The size of a file, for the eye."""
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"


class Stages:
    """What is going on after the fit: a line for each stage, with the seconds it may take, and those it took.

    Lines go to standard error, and only where somebody watches; `heard`, where given, is called with each.
    """

    def __init__(self, shown: bool | None = None, heard: Callable[[dict[str, Any]], Any] | None = None):
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.heard = heard or (lambda news: None)
        self.begun: float | None = None

    def __call__(self, what: str, seconds: float | None = None) -> None:
        self.end()
        about = f", about {max(1, round(seconds))} s" if seconds is not None else ""
        self.heard({"stage": what + about})
        if self.shown:
            click.echo(f"{what}{about} ..", nl=False, err=True)
            self.begun = time.monotonic()

    def end(self) -> None:
        """The last stage is over."""
        if self.begun is not None:
            click.echo(f" {time.monotonic() - self.begun:.1f} s", err=True)
            self.begun = None

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, *_: Any) -> None:
        self.end()


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
    except BrokenPipeError:
        raise  # whoever read standard output has enough; click ends quietly
    except USER_ERRORS as error:
        if context.find_root().obj["traceback"]:
            raise
        sentence = str(error).strip() or type(error).__name__
        raise click.ClickException(printable_lines(sentence)) from None


class PlainCommand(click.Command):
    """A command whose errors are plain."""

    def invoke(self, context: click.Context) -> Any:
        with plain_errors(context):
            return super().invoke(context)


command = partial(click.command, cls=PlainCommand)


def _note(message, category, filename, lineno, file=None, line=None) -> None:
    """Our own warnings are for the reader; those of other packages are not, and failures are listed anyway."""
    if category is UserWarning:
        click.echo(f"Note: {printable_lines(message)}", err=True)
