"""`softlearning bench`: the command that this package adds to the library's own."""

from __future__ import annotations

from typing import Any

import click

from softlearning.cli import FOLDER, name_list, pair, plain_errors

OPTIONS = {
    "paper": ("seeds", "jobs", "time_limit", "fits"),
    "real": ("seeds", "time_limit", "data", "part", "max_rows"),
}


@click.group()
def bench():
    """Measure softlearning and its rivals."""


@bench.command("run")
@click.option("--suite", type=click.Choice(["paper", "real"]), default="paper", show_default=True)
@click.option("--out", required=True, type=FOLDER, metavar="FOLDER", help="Results; a second run resumes.")
@click.option("--datasets", "--tables", "datasets", metavar="NAMES", help="Only these, with commas.")
@click.option("--methods", metavar="NAMES", help="Only these, with commas.")
@click.option("--seeds", metavar="N", help="Splits of each dataset: 1 in paper, 5 in real; or seeds, as 1-10.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes side by side; all cores when not given.")
@click.option(
    "--external",
    multiple=True,
    metavar="SYSTEM=FOLDER",
    help="An external baseline and the environment that has it. Repeatable.",
)
@click.option(
    "--time-limit",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="For one fit: of an external baseline in paper (120), of every system that takes a limit in real (90).",
)
@click.option("--fits", type=FOLDER, metavar="FOLDER", help="paper: keep what every specialist predicts.")
@click.option("--data", type=FOLDER, metavar="FOLDER", help="real: the folder of tables; else SOFTLEARNING_REAL.")
@click.option("--part", type=click.Choice(["choose", "confirm"]), help="real: tables of this part (choose).")
@click.option("--max-rows", type=click.IntRange(min=10), metavar="N", help="real: most training rows (10000).")
@click.pass_context
def bench_run(context, suite, out, datasets, methods, external, **options):
    """Run the cells (dataset, method, seed) that have no result yet."""
    with plain_errors(context):
        others = dict(pair(text, "SYSTEM=FOLDER", "--external") for text in external)
        choice: dict[str, Any] = {"methods": name_list(methods), "external": others}
        own = {name: value for name, value in options.items() if name in OPTIONS[suite]}
        if unused := [name for name, value in options.items() if value is not None and name not in own]:
            raise ValueError(f"suite {suite} has no option --{unused[0].replace('_', '-')}")
        if suite == "real":
            from softlearning_bench.real import run_real

            own["part"] = own["part"] or "choose"
            results = run_real(out, tables=name_list(datasets), **choice, **own)
        else:
            from softlearning_bench.run import run_suite

            results = run_suite(suite, out, datasets=name_list(datasets), **choice, **own)
        click.echo(f"Results: {results}")


@bench.command("report")
@click.argument("folder", type=FOLDER)
@click.pass_context
def bench_report(context, folder):
    """Tables, ranks and figures from the results in FOLDER."""
    with plain_errors(context):
        if (folder / "real.csv").exists():
            from softlearning_bench.real_report import report_real as write
        else:
            from softlearning_bench.report import report_suite as write
        click.echo(f"Report: {write(folder)}")


@bench.command("scale")
@click.option("--out", required=True, type=FOLDER, metavar="FOLDER", help="Results; a second run resumes.")
@click.option(
    "--part", "parts", multiple=True, type=click.Choice(["growth", "limits", "latency"]), help="All by default."
)
@click.option("--systems", metavar="NAMES", help="growth: only these, with commas.")
@click.option("--most-rows", type=click.IntRange(min=1), metavar="N", help="Only tables of so many rows at most.")
@click.option("--quick", is_flag=True, help="A few tiny tables, to try it.")
@click.pass_context
def bench_scale(context, out, parts, systems, most_rows, quick):
    """What a fit costs as tables grow: seconds, memory of all processes, limits that were kept, latency."""
    with plain_errors(context):
        from softlearning_bench.scale import PARTS, SYSTEMS, run_scale

        chosen = name_list(systems) or SYSTEMS
        click.echo(f"Results: {run_scale(out, parts or PARTS, quick=quick, systems=chosen, most_rows=most_rows)}")
