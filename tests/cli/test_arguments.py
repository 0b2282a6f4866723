"""What the commands share."""

import re

from softlearning.cli.arguments import Stages


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
