"""What the commands share."""

import re
import warnings

import click
import pytest

from softlearning.cli.arguments import Stages, plain_errors


def test_what_a_file_says_cannot_steer_the_terminal(capsys):
    context = click.Context(click.Command("fit"), obj={"traceback": False})
    with plain_errors(context):
        warnings.simplefilter("always")
        warnings.warn("written with catboost \x1b[31m", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "Note: written with catboost \\x1b[31m\n"
    with pytest.raises(click.ClickException, match=r"^written with \\x1b\[31m\nby \\x07$"), plain_errors(context):
        raise ValueError("written with \x1b[31m\nby \a")


def test_a_stage_says_what_it_may_take_and_what_it_took(capsys):
    with Stages(shown=True) as stage:
        stage("Weighing", 12.4)
        stage("Saving")
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"Weighing, about 12 s \.\. \d+\.\d s", lines[0])
    assert re.fullmatch(r"Saving \.\. \d+\.\d s", lines[1])


def test_nobody_who_does_not_watch_hears_of_stages(capsys):
    with Stages(shown=False) as stage:
        stage("Weighing")
    assert capsys.readouterr().err == ""
