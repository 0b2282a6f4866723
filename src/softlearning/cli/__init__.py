"""The command: parse, call, print. What is slow to import is imported inside the commands, so that help is instant.

arguments: what the commands share; learning: fit; using: evaluate, compare, predict, report; showing: demo, serve,
studio; sharing: card, export.
"""

from __future__ import annotations

from importlib.metadata import entry_points

import click

from softlearning import __version__
from softlearning.cli import learning, sharing, showing, using
from softlearning.cli.arguments import FOLDER, name_list, pair, plain_errors

__all__ = ["FOLDER", "main", "name_list", "pair", "plain_errors"]
PLUGINS = "softlearning.commands"  # entry points of packages that add a command
ADDED = {"bench": "softlearning-bench (folder benchmarks/ of the sources)"}  # known commands of other packages


class Commands(click.Group):
    """The commands here, and those that other installed packages add under the entry point `softlearning.commands`."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*super().list_commands(context), *(e.name for e in entry_points(group=PLUGINS))})

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
    softlearning studio
    softlearning fit houses.csv --target price --out houses.model --report houses.html
    softlearning evaluate houses.model test.csv
    softlearning predict houses.model new.csv --out predictions.csv

    Tables are csv, parquet, feather, arrow, json lines or Excel files, or - for standard input.
    """
    context.obj = {"traceback": traceback}


for command in (
    learning.fit, using.evaluate, using.compare, using.predict, using.report, showing.demo, showing.serve,
    showing.studio,
    sharing.card, sharing.export,
):  # fmt: skip
    main.add_command(command)
