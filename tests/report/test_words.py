"""Sentences follow their numbers."""

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor

from softlearning import SoftClassifier, SoftRegressor
from softlearning.method.usefulness import UselessModelWarning
from softlearning.report import summarise_model, words

PROVED = "On the out-of-fold rows they were solved on, no other weights have a lower loss"


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
    assert "they were solved on, the best weights have a loss of 0.3 (proved to within rounding)" in kept
    assert "these are the weights" in kept
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


def test_a_useless_model_is_called_so_as_the_warning_does(rng):
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    with pytest.warns(UselessModelWarning) as warned:
        model = SoftRegressor(["ridge"]).fit(X, y)
    said = words.useless(summarise_model(model, draws=0))
    assert said == "The model is no better than always predicting the mean: nothing was learnt from the columns."
    assert said[1:-1] == str(warned[0].message)[1:]
    assert words.useless({"useless": ""}) == ""


def test_a_model_that_is_good_by_its_own_loss_is_not_called_useless(rng):
    X = rng.normal(size=(300, 1))
    y = np.exp(3 * rng.normal(size=300)) + 2 * (X[:, 0] > 0)  # the median tells little of the variance
    model = SoftRegressor([("median", QuantileRegressor(alpha=0))], loss="absolute").fit(X, y)
    summary = summarise_model(model, draws=0)
    assert summary["answer"]["value"] < 0
    assert summary["comparisons"]["trivial"]["better"]
    assert words.useless(summary) == ""


def test_shares_of_weighted_rows_are_called_so(rng):
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + rng.normal(size=120) > 1
    plain, balanced = (SoftClassifier(["naive_bayes"], class_weight=w).fit(X, y) for w in (None, "balanced"))
    assert "counted by their weights" not in words.headline(summarise_model(plain, draws=0))
    assert words.headline(summarise_model(balanced, draws=0)).endswith("50.0 %, rows counted by their weights.")


def test_sentences_about_a_model_name_its_numbers(summary):
    a = summary["answer"]
    assert words.score(a["value"], summary) in words.title(summary)
    assert words.title(summary).startswith("outcome: ")
    assert "“outcome”" in words.headline(summary)
    for key in summary["uncertainty"]["measures"]:
        assert words.MEASURES[key] in words.answering_half(summary)
    assert words.percent(words.at_ninety(summary)["value"]) in words.coverage(summary)
    assert "rows the model has not seen" in words.importance(summary)
