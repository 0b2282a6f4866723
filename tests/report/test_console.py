"""What the command prints fits a screen of 80 columns and says each thing once."""

import numpy as np

from softlearning.evaluation import score_rows
from softlearning.report import console


def test_a_model_is_told_in_80_columns(summary):
    summary["failures"] = [{"specialist": "svm", "what": "skipped", "why": "so many rows " * 20, "seconds": 0.0}]
    lines = console.model(summary)
    assert max(map(len, lines)) <= console.WIDTH
    text = "\n".join(lines)
    assert text.count("svm skipped: so many rows") == 1
    assert "oracle: " in text
    assert "Answering the surest half" in text


def test_columns_are_aligned_and_names_cannot_steer_the_terminal():
    lines = console.columns([("name", "n"), ("\x1b[31mred", "10"), ("b", "7")], right=(1,))
    assert len({len(line) for line in lines}) == 1
    assert "\x1b" not in "".join(lines)


def test_losses_are_shown_as_losses_with_ordered_intervals(rng):
    y = rng.normal(size=80)
    found = score_rows(y, {"model": (y + rng.normal(size=80))[:, None]}, ["neg_root_mean_squared_error", "r2"])
    title, _, *lines = console.scores(found)
    rmse, r2 = (line.split() for line in lines)
    assert title == "Scored on 80 rows:"
    assert rmse[0] == "RMSE"
    assert float(rmse[2]) < float(rmse[1]) < float(rmse[4])
    assert r2[0] == "R²"
    assert float(rmse[1]) == np.round(-found.scores["score"][0], 4)


def test_numbers_in_a_large_unit_have_no_meaningless_decimals():
    assert [console.number(v) for v in (None, 0.98765, 5780.38551)] == ["-", "0.9877", "5,780.4"]
