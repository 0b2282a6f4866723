"""Each check of the paper against itself says what the printed numbers say, and says otherwise of other numbers."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.tests.fake import fake_cells
from softlearning_bench import contradictions as k
from softlearning_bench.checks import OPEN, cells_complete, critical_distance
from softlearning_bench.paper import RECORDS_3, STACKS, paper_results
from softlearning_bench.summary import summarise


@pytest.fixture(scope="module")
def printed():
    return paper_results()


@pytest.fixture(scope="module")
def cells():
    return fake_cells(["A01_iris", "A04_digits", "A09_face_recognition", "B04_satellite", "C04_sparse_regression",
                       "C05_energy", "C06_materials", "C07_large_regression", "C09_house_price"])  # fmt: skip


def with_weights(cells, **weights):
    """The same cells with these family weights of Soft Learning on some datasets."""
    out = cells.copy()
    for name, found in weights.items():
        here = (out["method"] == "Soft Learning") & out["dataset"].str.startswith(name)
        out.loc[here, "weights"] = json.dumps(found)
    return summarise(out)


def test_wins_of_the_figure_are_held_against_the_results_and_the_table(printed):
    assert k.figure_1_wins(printed).text.startswith("CatBoost ")
    assert not k.figure_1_wins(printed).holds
    assert k.figure_1_and_table_3(printed).text == "more wins with the stricter rule: Basic MLP 32 against 30"
    assert k.figure_1_and_table_3(printed, {"CatBoost": RECORDS_3["CatBoost"][0]}).holds


def test_marked_rows_are_held_against_the_results(printed):
    assert k.shaded_rows(printed).text == (
        "another method is ahead on 11 of 29 shaded rows: A01, A03, B01, B02, B06, B07, B14, B15, B18, A05, C07"
    )
    assert k.shaded_rows(printed, ("A04", "B16")).holds
    assert k.bold_rows(printed).text == "another method is ahead on 1 of 19 bold rows: B01"
    assert k.bold_rows(printed, ("A04", "B16")).holds
    assert not k.shaded_and_counted(printed).holds
    assert k.shaded_and_counted(printed, 29).holds


def test_places_that_the_text_gives_are_counted(printed):
    assert k.most_first_places(printed).text.startswith("classification: Soft Learning 9 of 25, CatBoost 11;")
    assert k.most_first_places(printed.assign(CatBoost=0.0, **{"Gradient Boosting": 0.0})).holds
    assert k.most_first_places(printed.loc[["C05_energy"]]) is OPEN
    assert k.lost_regressions(printed).text.startswith("behind another on 3: A05")
    others = printed[["Soft Learning", "CatBoost"]]
    assert k.lost_regressions(others).holds
    assert not k.first_by_size(printed).holds
    assert k.first_by_size(printed, {"here": (1, 2), "there": (1, 2)}).holds
    assert k.notably_weaker(printed).text.startswith("4 as far behind the best: B04_satellite 0.174, B13")
    assert k.notably_weaker(printed.drop(["B13_drug_response", "B05_genomic"])).holds


def test_gaps_and_records_that_the_figures_draw(printed):
    assert k.figure_4(printed).text.startswith("-0.009 to the best other accuracy, +0.024")
    assert k.figure_4(printed).holds
    assert not k.figure_4(printed.assign(**{"Tuned MLP": printed["Tuned MLP"] + 0.01})).holds
    assert k.winning_records(printed).holds
    assert not k.winning_records(printed.assign(CatBoost=printed["CatBoost"] + 0.01)).holds
    assert k.boundary(printed).text == "3.12 of the Methods + 2.23 = 5.35, drawn at 5.34"
    assert k.boundary(printed, (3.11,)).holds


def test_seconds_and_operations_that_the_tables_give(printed):
    assert k.slowest_method(printed).text == "Tuned MLP 30 to 200 s, Soft Learning 60 to 300 s"
    assert k.slowest_method(printed, {"Tuned MLP": (30, 200), "CatBoost": (15, 60)}).holds
    assert k.speedups(printed).text.startswith("3 of 8 are others: knn_5 67 to 200 (printed 60 to 200)")
    assert k.speedups(printed, {"CatBoost": ((15, 60), (3, 13))}).holds
    assert not k.seconds_alone(printed).holds
    assert k.seconds_alone(printed, (15, 200)).holds
    assert k.operations(printed, 0.01).text == "at most 0.014, 72 times (5,000 x 200)"
    assert [k.operations(printed, most).holds for most in (0.01, 1 / 72)] == [False, True]


def test_the_slowest_method_and_the_mixture_are_measured(cells):
    slow = cells.assign(fit_seconds=np.where(cells["method"] == "Tuned MLP", 1e6, 1.0))
    assert k.measured_slowest(summarise(slow)).holds
    slow["fit_seconds"] = np.where(cells["method"] == "Soft Learning", 1e6, 1.0)
    assert not k.measured_slowest(summarise(slow)).holds
    shared = {"ridge": 0.5, "svr_rbf": 0.3, "spline_ridge": 0.2}
    assert k.mixture_on_c06(with_weights(cells, C06=shared)).holds
    assert not k.mixture_on_c06(with_weights(cells, C06={"ridge": 1.0})).holds


def test_two_sided_is_twice_one_sided(printed):
    assert "CatBoost 0.064 and 0.064" in k.two_p_values(printed).text
    assert not k.two_p_values(printed).holds
    assert k.two_p_values(printed, {"CatBoost": 0.032, "Tuned MLP": 0.0015}).holds


def test_two_places_name_two_stacks(printed):
    assert k.two_stacks(printed).text == "differ: Python 3.12 and 3.11, NumPy 2.4 and 1.26, SciPy 1.17 and 1.12"
    assert k.two_stacks(printed, (STACKS[0], STACKS[0])).holds


def test_two_members_with_small_errors_cannot_disagree_much(printed):
    found = k.disagreement_above(printed)
    assert found.holds is False
    assert "at most 0.0%" in found.text
    far = printed.clip(upper=0.9)
    assert k.disagreement_above(far).holds is None  # errors of 10 % allow a disagreement of 20 %
    assert k.disagreement_above(printed.loc[["C05_energy"]]) is OPEN


def test_specialists_that_ran_are_judged_alike(cells):
    assert k.measured_disagreement(summarise(cells)).holds is False  # faces: all are right
    wrong = cells.assign(score=cells["score"].clip(upper=0.5))
    assert k.measured_disagreement(summarise(wrong)).holds is None


def test_a_log_loss_above_log_c_is_not_calibrated(cells):
    bayes = cells["method"] == "specialist naive_bayes"
    calm = cells.assign(log_loss=np.where(bayes, 0.3, np.nan))
    assert k.calibrated_bayes(summarise(calm)).text == "log loss above log C on 0 of 4 sets"
    assert k.calibrated_bayes(summarise(calm)).holds
    sure = calm.assign(log_loss=np.where(bayes & (cells["dataset"] == "A04_digits"), 4.0, calm["log_loss"]))
    assert k.calibrated_bayes(summarise(sure)).text == "log loss above log C on 1 of 4 sets, A04_digits 4.0"
    assert not k.calibrated_bayes(summarise(sure)).holds


def test_patterns_of_weights_can_hold_and_fail(cells):
    linear = with_weights(cells, C04={"ridge": 1.0}, C05={"lasso": 0.9, "catboost": 0.1}, C09={"ridge": 0.7})
    assert k.linear_targets(linear).holds
    assert not k.linear_targets(with_weights(cells, C04={"catboost": 1.0})).holds
    four = {"ridge": 0.4, "knn_5": 0.2, "catboost": 0.2, "mlp_small": 0.2}
    assert k.spread_over_families(with_weights(cells, B04=four, C06=four, C07=four)).holds
    assert not k.spread_over_families(with_weights(cells, B04=four, C06=four, C07={"ridge": 1.0})).holds
    few = {name: {"ridge": 0.9, "mlp_small": 0.1} for name in ("A01", "B04", "C04", "C05", "C06", "C07", "C09")}
    much = {"mlp_large": 0.6, "logistic": 0.4}
    assert k.neural_sets(with_weights(cells, A04=much, A09=much, **few)).holds
    assert not k.neural_sets(with_weights(cells, A04={"logistic": 1.0}, A09=much, **few)).holds


def test_presets_that_search_are_counted(tmp_path, cells):
    path = tmp_path / "presets.json"
    words = {"version": "1", "default": "None", "presets": {"best": ["auto_stack"], "other": ["time_limit"]}}
    path.write_text(json.dumps(words))
    assert k.autogluon_tunes(None, path).text == (
        "AutoGluon 1: 0 of 2 presets turn the search on; without a preset it is None"
    )
    assert not k.autogluon_tunes(None, path).holds
    words["presets"]["best"].append("hyperparameter_tune_kwargs")
    path.write_text(json.dumps(words))
    assert k.autogluon_tunes(None, path).holds
    assert k.autogluon_tunes(None, tmp_path / "nothing") is OPEN
    assert k.autogluon_tunes(None).text.startswith("AutoGluon 1.6.3: 0 of 19 presets")


def test_a_table_with_a_hole_or_of_another_shape_is_noticed(printed):
    assert cells_complete(printed).holds
    assert not cells_complete(printed.mask(printed == printed.iloc[3, 3])).holds
    assert not cells_complete(printed.iloc[:36]).holds
    assert not critical_distance(printed.iloc[:20]).holds
    assert pd.notna(printed).all(axis=None)
