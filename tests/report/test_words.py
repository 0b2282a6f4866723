"""Sentences follow their numbers."""

import pytest

from softlearning.report import words

PROVED = "No other weights have a lower cross-validated loss"


def proof(rule="simplex", *, gap=1e-15, moved=0.0, objective=0.3):
    c = {"rule": rule, "objective": objective, "gap": objective - 0.3, "unique": True, "exact_objective": 0.3}
    return words.certainty({"certificate": {**c, "exact_gap": gap, "moved": moved, "effective": 2.0}})


def test_only_the_exact_rule_claims_that_no_weights_are_better():
    assert PROVED in proof()
    for rule in ("guarded", "slsqp", "greedy", "nnls", "uniform", "best", "mine"):
        for moved in (0.0, 0.2):
            assert PROVED not in proof(rule, moved=moved, objective=0.3 + moved)


def test_the_guard_says_how_far_it_went_and_why():
    kept, moved = proof("guarded"), proof("guarded", moved=0.2, objective=0.34)
    assert "exact optimum has a cross-validated loss of 0.3 (proved to within rounding)" in kept
    assert "the weights are that optimum" in kept
    assert "moved 20 % of the weight" in moved
    assert "13.33 % higher" in moved
    assert "few rows" in moved
    assert "to within 0.01" in proof("guarded", gap=0.01)


@pytest.mark.parametrize(("better", "worse", "said"), [
    (True, False, "Blending pays: 10.0 % lower"), (False, True, "Blending does not pay here: 10.0 % higher"),
    (False, False, "within chance"),
])  # fmt: skip
def test_the_verdict_names_the_rival_of_the_comparison(better, worse, said):
    line = {"rival": "ridge", "error": 0.1, "gain": -0.1 if worse else 0.1, "share": -0.1 if worse else 0.1}
    sentence = words.against_best({"comparisons": {"oracle": {**line, "better": better, "worse": worse}}})
    assert said in sentence
    assert "ridge" in sentence


def found(value, *, classes=True, trivial=0.7, better=False, baseline_only=False):
    answer = {"value": value, "baseline_only": baseline_only}
    comparisons = {"trivial": {"score": trivial, "better": better}}
    return {"classes": ["a", "b"] if classes else [], "answer": answer, "comparisons": comparisons}


def test_a_useless_model_is_called_so():
    assert "commonest class" in words.useless(found(0.7))
    assert "the mean" in words.useless(found(-0.1, classes=False))
    assert "Only the baseline" in words.useless(found(0.9, baseline_only=True))
    assert "never varies" in words.useless(found(None, classes=False))


def test_a_useful_model_is_not():
    assert not words.useless(found(0.8))
    assert not words.useless(found(0.1, classes=False))
    assert not words.useless(found(0.7, better=True))  # rare classes: the probabilities tell something all the same


def test_sentences_about_a_model_name_its_numbers(summary):
    a = summary["answer"]
    assert words.score(a["value"], summary) in words.title(summary)
    assert words.title(summary).startswith("outcome: ")
    assert "“outcome”" in words.headline(summary)
    for key in summary["uncertainty"]["measures"]:
        assert words.MEASURES[key] in words.answering_half(summary)
    assert words.percent(words.at_ninety(summary)["value"]) in words.coverage(summary)
    assert "rows the model has not seen" in words.importance(summary)
