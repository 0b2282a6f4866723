"""The examples run as they are printed."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


def test_there_are_five_numbered_examples():
    assert [path.name.split("_")[1] for path in EXAMPLES] == list("12345")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, capsys):
    runpy.run_path(str(path))
    assert capsys.readouterr().out
