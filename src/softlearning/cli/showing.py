"""`softlearning demo`, `serve` and `studio`: a first look, a model behind HTTP, and everything in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from softlearning.cli.arguments import FILE, FOLDER, load_model, plain_errors

PORT = click.IntRange(1, 65535)


@click.command()
@click.option("--out", type=FOLDER, default=Path("demo"), show_default=True, help="Folder for what it leaves behind.")
@click.option("--jobs", type=int, default=2, show_default=True, help="Cores to use; -1 for all.")
@click.pass_context
def demo(context, out, jobs):
    """Fit a real table beside two rivals and show what comes out; one to two minutes."""
    from softlearning.demo import run_demo

    with plain_errors(context):
        out.mkdir(parents=True, exist_ok=True)
        run_demo(out, jobs)


@click.command()
@click.argument("model", type=FILE)
@click.option("--host", default="127.0.0.1", show_default=True, help="Mind who can reach it on another.")
@click.option("--port", type=PORT, default=8000, show_default=True)
@click.pass_context
def serve(context, model, host, port):
    """Answer predictions over HTTP: POST /predict, GET /health, GET /openapi.json."""
    with plain_errors(context):
        from softlearning.serve import serve_model

        fitted = load_model(model)
        click.echo(f"POST rows to http://{host}:{port}/predict; /openapi.json says how. Stop with Ctrl-C.")
        serve_model(fitted, host=host, port=port)
