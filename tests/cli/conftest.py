"""The command in an empty folder, a small table and a model of it."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from softlearning.cli import main

FEW = "logistic,naive_bayes"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words, **options: CliRunner().invoke(main, [str(word) for word in words], **options)


@pytest.fixture
def flowers(tmp_path, rng):
    """A small table with words, a missing value and a row without target."""
    n = 90
    size = rng.normal(size=n)
    table = pd.DataFrame(
        {"Size": size, "Colour": rng.choice(["red", "blue"], n), "Species": np.where(size > 0, "a", "b")}
    )
    table.loc[3, "Colour"] = None
    table.loc[5, "Species"] = None
    table.to_csv(tmp_path / "flowers.csv", index=False)
    return tmp_path / "flowers.csv"


@pytest.fixture
def fitted(run, flowers):
    """The file of a model of the flowers."""
    answer = run("fit", flowers, "--target", "Species", "--out", "m", "--library", FEW, "--jobs", 1)
    assert answer.exit_code == 0, answer.output
    return "m"
