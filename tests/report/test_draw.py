"""Which figures a model has, and what they show."""

import copy

import pytest

from softlearning.report.draw import draw_figures

COMMON = ["disagreement", "risk_coverage", "coverage", "diversity", "times", "importance"]


def test_classes_and_numbers_have_their_own_figures(summary):
    own = ["calibration", "sharpness", "confusion"] if summary["classes"] else ["scatter", "histogram"]
    columns = [f"{what}_{k}" for k in range(len(summary["along"])) for what in ("answer", "error")]
    assert list(draw_figures(summary)) == ["families", "weights", *own, *COMMON, *columns]
    assert columns


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


def test_two_classes_have_curves_with_the_threshold(class_summary):
    s = copy.deepcopy(class_summary)
    s["classes"] = ["no", "yes"]
    s["ranking"] = {
        "roc": {"x": [0, 0.2, 1], "y": [0, 0.9, 1]}, "precision_recall": {"x": [0.5, 1], "y": [0.9, 0.4]},
        "auc": 0.9, "average_precision": 0.8, "prevalence": 0.3, "threshold": 0.4,
        "chosen": {"fall_out": 0.2, "recall": 0.9, "precision": 0.7},
    }  # fmt: skip
    drawn = draw_figures(s)
    assert "threshold 0.40" in drawn["roc"].svg
    assert "90.0 %" in drawn["roc"].sentence
    assert "threshold 0.40" in drawn["precision_recall"].svg
