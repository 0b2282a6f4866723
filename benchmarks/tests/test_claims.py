"""The ledger is computed: what it says of the paper's own tables, and what changes when the results change."""

import pytest

from benchmarks.tests.fake import fake_cells
from softlearning_bench import checks
from softlearning_bench.checks import Finding
from softlearning_bench.claims import CLAIMS, goals, ledger, verdict
from softlearning_bench.paper import paper_results
from softlearning_bench.summary import summarise


@pytest.fixture(scope="module")
def printed():
    return paper_results()


@pytest.fixture(scope="module")
def summary():
    return summarise(fake_cells())


@pytest.fixture(scope="module")
def found(summary):
    return ledger(summary).set_index("says")


def test_first_places_of_the_paper_are_18_and_not_26(printed):
    finding = checks.first_on(printed, claimed=26 / 37)
    assert not finding.holds
    assert finding.text == "first or tied on 18 of 37 (49%), alone first on 12"


def test_26_first_places_need_ties_of_half_a_point(printed):
    assert "26 if being up to 0.005 behind counts as a tie" in checks.two_counts(printed).text


def test_the_paper_lies_below_its_best_own_member_on_19(printed):
    assert checks.above_best_member(printed).text.startswith(
        "below its best own member on 19 of 37: B04_satellite -0.174, B13_drug_response -0.114, B05_genomic -0.078"
    )


def test_the_papers_best_of_3_is_below_the_maximum_on_32_and_ours_never(printed, summary):
    assert "on 32 of 37" in checks.best_of_three(printed).text
    assert checks.best_of_three(summary.scores).holds


def test_the_largest_gain_of_the_paper_is_not_where_it_says(printed):
    assert checks.largest_gain(printed).text.startswith("C10_tiny_regression +0.163, C06_materials +0.112")


def test_five_records_of_table_3_are_not_those_of_its_results(printed):
    assert checks.records_of_table_3(printed).text.startswith("5 of 9 records are others: Tuned MLP 29-2-6")


def test_the_papers_p_against_catboost_is_one_sided_and_of_another_table(printed):
    assert not checks.p_against_catboost(printed, two_sided=True).holds
    assert "with 35 datasets that differ; the table has 33" in checks.statistic_408(printed).text


def test_what_its_tables_do_say_is_granted(printed):
    for check in (checks.best_mean_rank, checks.critical_distance, checks.combined_score, checks.means_of_table_4):
        assert check(printed).holds


def test_every_claim_has_a_line_and_a_verdict(found):
    assert len(found) == len(CLAIMS) >= 40
    assert found["verdict"].str.fullmatch("its tables: (holds|fails|open); measured: (holds|fails|open)").all()
    assert not found["measured"].eq("not measured").any()


def test_verdicts_name_both_sides():
    assert verdict(Finding("", True), Finding("", None)) == "its tables: holds; measured: open"


def test_weights_are_read_from_the_results(found):
    assert found.loc["C09: Ridge has 100 % of the weight", "measured"] == "ridge 0.60, catboost 0.40"
    assert found.loc["Trees dominate most datasets", "measured"] == "trees have the largest weight on 25 of 37"


def test_what_has_not_run_is_not_judged():
    cells = fake_cells(["A02_wine", "C10_tiny_regression"])
    some = ledger(summarise(cells[cells["method"] != "Deep MLP"])).set_index("says")
    assert some.loc["Trains 72 to 435 times faster than deep networks", "measured"] == "not measured"
    assert some.loc["C09: Ridge has 100 % of the weight", "verdict"].endswith("measured: open")


def test_a_run_of_one_task_alone_is_judged_without_the_other():
    some = ledger(summarise(fake_cells(["A02_wine", "A04_digits"]))).set_index("says")
    assert some.loc["First on 11 of 12 regression datasets", "measured"] == "-"


def test_goals_are_reached_or_missed_by_the_numbers(summary):
    reached = goals(summary)["reached"].tolist()
    assert reached == [True, True, True, False]  # its specialists are noisy copies of CatBoost, some above ours


def test_no_goal_is_judged_before_our_method_has_run():
    cells = fake_cells(["A02_wine", "C10_tiny_regression"])
    assert goals(summarise(cells[cells["method"] != "softlearning"])).empty


def test_seconds_are_those_of_the_table(summary):
    slow = summary.cells.copy()
    slow.loc[slow["method"] == "Deep MLP", "fit_seconds"] *= 10_000
    assert not checks.faster_than_deep(summary).holds
    assert checks.faster_than_deep(summarise(slow)).holds
