"""The ledger is computed: what it says of the paper's own tables, and what changes when the results change."""

from pathlib import Path

import pytest

from benchmarks.tests.fake import fake_cells
from softlearning_bench import checks, paper
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


def test_printed_records_are_not_those_of_the_printed_results(printed):
    assert checks.records(printed, paper.RECORDS_3).text.startswith("5 of 9 records are others: Tuned MLP 29-2-6")
    assert checks.records(printed, paper.RECORDS_1).text.startswith("5 of 5 records are others: CatBoost 22-4-11")
    assert checks.two_records(printed).text == "the two tables differ on 5 of 5 rivals"
    assert checks.records(printed, {"CatBoost": (22, 4, 11)}).holds


def test_printed_p_values_are_not_those_of_the_printed_results(printed):
    assert "6 of 6 are others" in checks.p_values(printed, paper.TWO_SIDED, "p_two_sided").text
    assert "2 of 4 are others: CatBoost 0.074" in checks.p_values(printed, paper.ONE_SIDED, "p_greater").text


def test_a_printed_statistic_must_be_reproduced(printed):
    assert not checks.friedman_printed(printed).holds  # 75.44, or 78.47 corrected for ties
    assert checks.friedman_test(printed).holds


def test_nemenyi_names_those_that_lie_behind(printed):
    assert checks.worse_by_nemenyi(printed).holds
    level = printed.assign(**{"KAN-like": printed["Soft Learning"]})
    assert not checks.worse_by_nemenyi(level).holds


def test_the_advantage_by_size_is_that_of_the_table(printed):
    assert checks.grows_with_rows(printed).text.startswith("first or tied on 43%, 48%, 56%")
    assert checks.grows_with_rows(printed[:2]) is checks.OPEN


def test_a_changed_row_of_table_4_is_noticed(printed):
    assert checks.table_4(printed).holds
    worse = printed.assign(CatBoost=printed["CatBoost"] - 0.01)
    assert "CatBoost rank 5.91 and 1 first (printed 3.74, 5)" in checks.table_4(worse).text


def test_a_missing_cell_is_counted(summary):
    assert checks.measured_cells(summary).holds
    lacking = summary.cells[~((summary.cells["dataset"] == "A02_wine") & (summary.cells["method"] == "CatBoost"))]
    assert checks.measured_cells(summarise(lacking)).text == "369 of 370 cells have a score"


def test_the_starts_of_the_papers_solver_do_not_agree(summary):
    assert not checks.starts_agree(summary).holds


def test_only_a_member_that_failed_for_want_of_memory_was_forced_out(summary):
    here = (summary.cells["dataset"] == "B04_satellite") & (summary.cells["method"] == "specialist catboost")
    assert checks.catboost_on_b04(summarise(summary.cells[~here])) is checks.OPEN
    for reason, forced in (("over its memory limit", True), ("over its time limit", False)):
        cells = summary.cells.assign(reason=summary.cells["reason"].astype(object))
        cells.loc[here, ["status", "reason"]] = "failed", reason
        assert checks.catboost_on_b04(summarise(cells)).holds is forced


def test_equal_scores_with_other_weights_are_not_one_optimum(summary):
    assert checks.unique_optimum(summary).text.endswith("weights by more than .01 on 0, at most 0.00")
    moved = summary.cells.copy()
    moved.loc[moved["method"] == "exact", "weights"] = '{"catboost": 1.0}'
    assert not checks.unique_optimum(summarise(moved)).holds


def test_single_numbers_of_the_text_are_held_against_the_tables(printed, summary):
    assert not checks.iris(printed).holds
    assert checks.catboost_ahead(printed).holds
    assert not checks.library_size(printed).holds
    assert checks.immune_specialists(printed).holds
    assert not checks.four_decimals(printed).holds
    assert not checks.catboost_on_b04(summary).holds
    assert "CatBoost" in checks.seconds_of_table_5(summary).text
    assert not checks.catboost_share(summary).holds
    assert "of 37" in checks.above_average_member(summary).text


def test_the_papers_p_against_catboost_is_one_sided_and_of_another_table(printed):
    assert not checks.p_against_catboost(printed, two_sided=True).holds
    assert "with 35 datasets that differ; the table has 33" in checks.statistic_408(printed).text


def test_what_its_tables_do_say_is_granted(printed):
    for check in (checks.best_mean_rank, checks.critical_distance, checks.combined_score, checks.table_4):
        assert check(printed).holds


def test_every_claim_has_a_line_and_a_verdict(found):
    assert len(found) == len(CLAIMS) >= 40
    assert found["verdict"].str.fullmatch("its tables: (holds|fails|open); measured: (holds|fails|open)").all()
    assert not found["measured"].eq("not measured").any()


def test_the_committed_page_says_of_the_papers_tables_what_they_say(printed):
    page = (Path(__file__).parents[1] / "results" / "paper" / "report.md").read_text(encoding="utf-8")
    for claim in CLAIMS:
        own = claim.own(printed)
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {claim.where} | {claim.says} |")]
        assert f"| {claim.says} | {own.text} |" in line
        assert verdict(own, Finding("")).partition(";")[0] in line


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
    assert reached == [False, True, True, False]  # combiners and specialists are noisy copies, some above ours


def test_no_goal_is_judged_before_our_method_has_run():
    cells = fake_cells(["A02_wine", "C10_tiny_regression"])
    assert goals(summarise(cells[cells["method"] != "softlearning"])).empty


def test_seconds_are_those_of_the_table(summary):
    slow = summary.cells.copy()
    slow.loc[slow["method"] == "Deep MLP", "fit_seconds"] *= 10_000
    assert not checks.faster_than_deep(summary).holds
    assert checks.faster_than_deep(summarise(slow)).holds
