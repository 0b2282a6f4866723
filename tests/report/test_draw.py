"""Which figures a model has, and what they show."""

import pytest

from softlearning.report.draw import draw_figures

COMMON = ["disagreement", "risk_coverage", "coverage", "diversity", "importance"]


def test_classes_and_numbers_have_their_own_figures(summary):
    own = ["calibration", "sharpness", "confusion"] if summary["classes"] else ["scatter", "histogram"]
    assert list(draw_figures(summary)) == ["families", "weights", *own, *COMMON]


@pytest.mark.parametrize(("name", "empty", "gone"), [
    ("uncertainty", None, {"disagreement", "risk_coverage"}), ("coverage", [], {"coverage"}),
    ("importance", None, {"importance"}), ("importance", {"columns": [], "rows": 3, "why": "x"}, {"importance"}),
])  # fmt: skip
def test_a_figure_without_numbers_is_not_drawn(summary, name, empty, gone):
    before = set(draw_figures(summary))
    summary[name] = empty
    assert before - set(draw_figures(summary)) == gone


def test_every_measure_of_uncertainty_has_a_line_of_its_own(summary):
    drawn = str(draw_figures(summary)["risk_coverage"].svg)
    assert ("by top probability" in drawn) == bool(summary["classes"])
    assert "by disagreement" in drawn


def test_a_specialist_that_never_gets_weight_has_no_bar(summary):
    summary["weights"][-1] |= {"weight": 0.0, "low": 0.0, "high": 0.0, "specialist": "idler"}
    assert "idler" not in draw_figures(summary)["weights"].svg
    summary["weights"][-1]["high"] = 0.3
    assert "idler" in draw_figures(summary)["weights"].svg
