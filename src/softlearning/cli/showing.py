"""`softlearning demo`, `serve` and `studio`: a first look, a model behind HTTP, and everything in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from softlearning.cli.arguments import FILE, FOLDER, KEY_FILE, command, load_model, secret

PORT = click.IntRange(1, 65535)


@command()
@click.option("--out", type=FOLDER, default=Path("demo"), show_default=True, help="Folder for what it leaves behind.")
@click.option("--jobs", type=int, default=2, show_default=True, help="Cores to use; -1 for all.")
def demo(out, jobs):
    """Fit a real table beside two rivals: one to two minutes."""
    from softlearning.demo import run_demo

    out.mkdir(parents=True, exist_ok=True)
    run_demo(out, jobs)


@command()
@click.argument("model", type=FILE)
@click.option("--host", default="127.0.0.1", show_default=True, help="Others than the loopback need --token-file.")
@click.option("--port", type=PORT, default=8000, show_default=True)
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True,
              help="Processes that share the loaded model.")  # fmt: skip
@click.option("--token-file", type=FILE, metavar="FILE", help="What clients send: Authorization: Bearer TOKEN.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME",
              help="A name that clients call the server by; * for any. Repeatable.")  # fmt: skip
@KEY_FILE
def serve(model, host, port, workers, token_file, hosts):
    """Answer predictions over HTTP.

    POST /predict; /docs says how, /health, /ready and /metrics how it is.
    """
    from softlearning.serve import serve_model

    token, fitted = secret(token_file), load_model(model)

    def tell(address: str) -> None:
        click.echo(f"POST rows to {address}/predict; /docs says how. Stop with Ctrl-C.")

    serve_model(fitted, host=host, port=port, workers=workers, token=token, hosts=hosts, tell=tell)


@command()
@click.option(
    "--folder", type=FOLDER, default=Path("studio"), show_default=True, help="Where table, work and results are."
)
@click.option("--port", type=PORT, default=8811, show_default=True)
@click.option("--browser/--no-browser", default=True, help="Open the page.")
def studio(folder, port, browser):
    """Everything in the browser, on this machine.

    Drop a table, fit, read the report, score another file.
    """
    from softlearning.studio import serve_studio

    def tell(address: str) -> None:
        click.echo(f"The studio is at {address}\nIts files are in {folder}. Stop with Ctrl-C.")
        if browser:
            click.launch(address)

    serve_studio(folder, port=port, tell=tell)
