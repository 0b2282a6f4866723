"""`softlearning bench`: the command that this package adds to the library's own."""

from __future__ import annotations

import click

from softlearning.cli import FOLDER, name_list, pair, plain_errors


@click.group()
def bench():
    """Measure softlearning and its rivals."""


@bench.command("run")
@click.option("--suite", default="paper", show_default=True)
@click.option("--out", required=True, type=FOLDER, metavar="FOLDER", help="Results; a second run resumes.")
@click.option("--datasets", metavar="NAMES", help="Only these, with commas.")
@click.option("--methods", metavar="NAMES", help="Only these, with commas.")
@click.option("--seeds", type=click.IntRange(min=1), metavar="N", help="Shufflings of every dataset.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes side by side; all cores when not given.")
@click.option(
    "--external",
    multiple=True,
    metavar="SYSTEM=FOLDER",
    help="A foreign system and the environment that has it. Repeatable.",
)
@click.option(
    "--external-seconds",
    type=click.IntRange(min=1),
    default=120,
    show_default=True,
    help="What a foreign system is told it has for one fit.",
)
@click.option("--fits", type=FOLDER, metavar="FOLDER", help="Keep what every specialist predicts: a kill loses less.")
@click.pass_context
def bench_run(context, suite, out, datasets, methods, seeds, jobs, external, external_seconds, fits):
    """Run the cells (dataset, method, seed) that have no result yet."""
    with plain_errors(context):
        from softlearning_bench.run import run_suite

        others = dict(pair(text, "SYSTEM=FOLDER", "--external") for text in external)
        results = run_suite(
            suite,
            out,
            datasets=name_list(datasets),
            methods=name_list(methods),
            seeds=seeds,
            jobs=jobs,
            external=others,
            external_seconds=external_seconds,
            fits=fits,
        )
        click.echo(f"Results: {results}")


@bench.command("report")
@click.argument("folder", type=FOLDER)
@click.pass_context
def bench_report(context, folder):
    """Tables, ranks and figures from the results in FOLDER."""
    with plain_errors(context):
        from softlearning_bench.report import report_suite

        click.echo(f"Report: {report_suite(folder)}")
