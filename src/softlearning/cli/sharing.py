"""`softlearning card` and `softlearning export`: a model for those who work with it."""

from __future__ import annotations

import click

from softlearning.cli.arguments import FILE, KEY_FILE, check_outputs, command, load_model, read, size_of


@command()
@click.argument("model", type=FILE)
@click.option("--out", type=FILE, metavar="CARD.md", help="A file; else the card is printed.")
@KEY_FILE
def card(model, out):
    """Write a model card, one page of Markdown.

    It tells what MODEL learnt from, how it was measured, and for whom it is not.
    """
    from softlearning.sharing.card import model_card

    text = model_card(load_model(model), model)
    if out is None:
        click.echo(text)
    else:
        out.write_text(text, encoding="utf-8")
        click.echo(f"Card: {out}")


@command()
@click.argument("model", type=FILE)
@click.option("--onnx", "out", required=True, type=FILE, metavar="FILE", help="Where the graph is written.")
@click.option("--rows", type=FILE, metavar="TABLE", help="Rows to compare on; made up unless given.")
@click.option("--drop", is_flag=True, help="Go without the members that cannot be converted; what that costs is said.")
@KEY_FILE
def export(model, out, rows, drop):
    """Write MODEL as an ONNX graph.

    It is compared on 1,000 rows before it is written; members that cannot go are named.
    """
    from softlearning.sharing.onnx import export_onnx, export_what_can

    check_outputs(out)
    fitted = load_model(model)
    table, gone = None if rows is None else read(rows), fitted
    if drop:
        worst, gone = export_what_can(fitted, out, table)
    else:
        worst = export_onnx(fitted, out, table)
    if gone is not fitted:
        click.echo(
            f"{len(gone.record_.support())} of {len(fitted.record_.support())} members could go, weighted anew: "
            f"held-out loss {gone.cv_risk_:.4g}, with all of them {fitted.cv_risk_:.4g}"
        )
    click.echo(f"Graph: {out} ({size_of(out)}); largest difference {worst:.1e}")
