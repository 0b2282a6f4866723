"""The ledger: every checkable statement of the paper, what its own printed tables say of it, and what was measured.

A claim is a row: where it stands, what it says, a check of the paper's table, a check of our results. The ledger is
generated: no number and no verdict is typed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from softlearning_bench import checks as c
from softlearning_bench import contradictions as k
from softlearning_bench import paper as printed
from softlearning_bench.checks import OPEN, RIVALS, Finding
from softlearning_bench.paper import METHODS as TEN
from softlearning_bench.significance import friedman, places, wilcoxon
from softlearning_bench.summary import COMBINERS, OURS, SOFT, TOLERANCE, Summary


@dataclass(frozen=True)
class Claim:
    """One statement; `needs` are the methods, and `on` the dataset, without which it cannot be measured."""

    where: str
    says: str
    own: Callable[[pd.DataFrame], Finding] = lambda paper: OPEN
    measured: Callable[[Summary], Finding] = lambda summary: OPEN
    needs: tuple[str, ...] = TEN
    on: str = ""


def verdict(own: Finding, measured: Finding) -> str:
    words = {True: "holds", False: "fails", None: "open"}
    return f"its tables: {words[own.holds]}; measured: {words[measured.holds]}"


def ledger(summary: Summary) -> pd.DataFrame:
    """One line a claim: where, says, own tables, measured, verdict."""
    lines = []
    for claim in CLAIMS:
        own = claim.own(summary.paper)
        measured = claim.measured(summary) if _there(summary, claim.needs, claim.on) else Finding("not measured")
        lines.append((claim.where, claim.says, own.text, measured.text, verdict(own, measured)))
    return pd.DataFrame(lines, columns=["where", "says", "own tables", "measured", "verdict"])


def _there(summary: Summary, needs: Sequence[str], on: str = "") -> bool:
    if not set(needs) <= set(summary.scores.columns):
        return False
    complete = summary.complete(needs)
    return on in complete.index if on else len(complete) > 1


def _both(where: str, says: str, check: Callable[..., Finding], **options: object) -> Claim:
    """The same check on the printed table and on ours."""
    check = partial(check, **options)
    return Claim(where, says, check, lambda summary: check(summary.complete(TEN)))


def _weights(dataset: str, says: str, **expected: float) -> Claim:
    """Weights that the text gives for one dataset; names joined by `_and_` are taken together."""
    wanted = {name.replace("_and_", "+"): weight for name, weight in expected.items()}
    measured = partial(c.weights_on, name=dataset, expected=wanted)
    return Claim("Results", says, measured=measured, needs=(SOFT,), on=dataset)


# fmt: off
CLAIMS = (
    _both("Abstract, Results", "Soft Learning ranks first on 26 of 37 datasets (70 %)", c.first_on, claimed=26 / 37),
    Claim("Tables S10 and S4", "Rank 1 on 26 of 37 in one table, on 12 in the other", c.two_counts),
    _both("Abstract, Results", "It has the best mean rank (3.12) of ten methods", c.best_mean_rank),
    Claim("Methods", "Mean ranks 3.12, 3.82, 4.65 ... (3.11, 3.74, 4.64 ... in Table S4)", c.printed_ranks),
    Claim("Abstract", "Friedman chi2 = 75.76, p = 1.12e-12", c.friedman_printed),
    _both("Results", "The Friedman test rejects equal performance (p < .001)", c.friedman_test),
    Claim("Methods", "Nemenyi critical distance 2.23", c.critical_distance),
    _both("Methods", "By Nemenyi better than KAN-like, NeuroSym, Basic MLP, linear and Best-of-3 alone",
          c.worse_by_nemenyi),
    Claim("Figure 2c", "The boundary of significance, 5.34, is its mean rank + the critical distance", k.boundary),
    _both("Results", "Highest combined score (1.642)", c.combined_score),
    _both("Abstract", "The only method that excels at both classification and regression", c.only_one_at_both),
    _both("Figure 4", "Less than .01 behind the best mean accuracy, .024 ahead of the second mean R2", k.figure_4),
    _both("Figure 3b", "The highest first-place rate in classification and in regression", k.most_first_places),
    Claim("Table S4", "Means, combined scores, mean ranks and first places of all ten methods", c.table_4),
    _both("Results", "CatBoost is fourth in regression; KAN-like third, and seventh in classification", c.task_places),
    _both("Results", "Soft Learning wins 22 of 37 against CatBoost", c.record_against, rival="CatBoost", wins=22),
    Claim("Table 1", "In the shaded rows it is first or tied", k.shaded_rows),
    Claim("Table 1, Results", "The shaded rows are the 26 that the text counts", k.shaded_and_counted),
    Claim("Table 1", "Where it is printed bold it is the best of the six methods shown", k.bold_rows),
    Claim("Table 1", "Wins, ties and losses against five others", partial(c.records, wanted=printed.RECORDS_1)),
    Claim("Table S3", "Wins, ties and losses against the nine others", partial(c.records, wanted=printed.RECORDS_3)),
    Claim("Figure S1", "By more than .001 it wins 22, 29, 32, 29 against CatBoost, Best-of-3, Basic MLP, NeuroSym",
          k.figure_1_wins),
    _both("Table S3, Figure S1", "It wins against every method (more than half of the datasets, by .001)",
          k.winning_records),
    Claim("Figure S1, Table S3", "Figure and table count the same wins", k.figure_1_and_table_3),
    Claim("Tables 1 and S3", "The two tables print one comparison", c.two_records),
    Claim("Table S3", "Two-sided p-values .064, .003, .002, .004, .001 and .005",
          partial(c.p_values, wanted=printed.TWO_SIDED, side="p_two_sided")),
    Claim("Methods", "One-sided p-values .064, .0001, .005 and .002",
          partial(c.p_values, wanted=printed.ONE_SIDED, side="p_greater")),
    Claim("Methods, Table S3", "One- and two-sided p-values are of the same tests", k.two_p_values),
    _both("Table S3", "Wilcoxon against CatBoost, two-sided, p = .064", c.p_against_catboost, two_sided=True),
    Claim("Methods", "W = 408, p = .064 against CatBoost", c.statistic_408),
    _both("Results", "Against all other methods the advantage is significant (p < .005)", c.significant_against_others),
    _both("Results", "The largest gain over CatBoost in the benchmark is 11.2 points on C06", c.largest_gain),
    _both("Results", "First on 11 of 12 regression datasets", c.first_on, claimed=11 / 12, task="regression"),
    _both("Results", "Its sole regression loss is C04", k.lost_regressions),
    _both("Results", "First on 15 of 25 classification datasets", c.first_on, claimed=15 / 25, task="classification"),
    _both("Results", "Top two on 18 of 25 of these", c.top_two_on, claimed=18 / 25, task="classification"),
    _both("Table 2", "Top two on 29 of 37", c.top_two_on, claimed=29 / 37),
    *(_both("Table 2", f"Top two on {count} of {total} {words} datasets", c.top_two_on, claimed=count / total, **part)
      for words, count, total, part in (
          ("regression", 11, 12, {"task": "regression"}), ("real", 7, 9, {"source": "real"}),
          ("synthetic", 22, 28, {"source": "synthetic"}), ("small", 5, 7, {"size": "small"}),
          ("medium", 16, 21, {"size": "medium"}), ("large", 8, 9, {"size": "large"}))),
    _both("Results", "Outside the top two on 8 of 37", c.outside_top_two),
    _both("Figure 3", "The advantage grows with the rows: 29, 38, 56 % first", c.grows_with_rows),
    Claim("Table 2, Figure 3c", "Table and figure print the same shares of first places by size", k.first_by_size),
    _both("Table 2", "First on 57 % of small sets (Figure 3c: 29 %)", c.first_on, claimed=4 / 7, size="small"),
    _both("Table 2", "First on 67 % of medium sets (Figure 3c: 38 %)", c.first_on, claimed=14 / 21, size="medium"),
    _both("Table 2", "First on 89 % of large sets (Figure 3c: 56 %)", c.first_on, claimed=8 / 9, size="large"),
    _both("Table 2", "First on 67 % of real datasets", c.first_on, claimed=6 / 9, source="real"),
    _both("Table 2", "First on 71 % of synthetic datasets", c.first_on, claimed=20 / 28, source="synthetic"),
    _both("Results", "On Friedman's three functions it beats all nine others", c.friedman_suite),
    Claim("Results, Table S10", "It matches or exceeds any of its specialists (S10: on 30 of 37)",
          c.above_best_member, c.measured_above_best_member, (SOFT,)),
    Claim("S15", "Notably weaker than the best competitor on two datasets, B04 and C04", k.notably_weaker),
    Claim("Results", "On C04 the simplex keeps linear specialists from dominating", measured=c.sparse_regression,
          needs=(SOFT, "exact", "Logistic/Ridge"), on="C04_sparse_regression"),
    Claim("Methods", "All starts of the solver converge to the same optimum", measured=c.starts_agree,
          needs=()),
    Claim("Methods", "The optimum is unique, and the best start (objective scaled, tolerance tightened) finds it",
          measured=c.unique_optimum, needs=(SOFT, "exact")),
    Claim("Methods, Table S2", "Best-of-3 is the maximum of linear model, forest and boosting",
          c.best_of_three, c.what_best_of_three_is,
          ("Best-of-3", "specialist knn_5")),
    _weights("C01_friedman1", "C01: CatBoost has 69.8 % of the weight and MLP 30.2 %",
             catboost=0.698, mlp_small_and_mlp_large=0.302),
    _weights("C05_energy", "C05: Lasso has 55.4 % and the ridges 42.0 %", lasso=0.554, ridge_and_ridge_strong=0.42),
    _weights("C09_house_price", "C09: Ridge has 100 % of the weight", ridge_and_ridge_strong=1.0),
    Claim("Results", "C06: linear specialists, kernels and splines share the weight", measured=k.mixture_on_c06,
          needs=(SOFT,), on="C06_materials"),
    Claim("Results", "C07: nine specialists have meaningful weight", measured=c.many_weights, needs=(SOFT,),
          on="C07_large_regression"),
    Claim("Table S10", "Weight is spread on 31 of 37", measured=c.spread_weights, needs=(SOFT,)),
    Claim("Figure S3", "Trees dominate most datasets", measured=c.trees_dominate, needs=(SOFT,)),
    Claim("Figure S3", "(ii) Linear targets (C04, C05, C09) have concentrated linear weight", measured=k.linear_targets,
          needs=(SOFT,)),
    Claim("Figure S3", "(iii) B04, C06 and C07 spread weight over four or five families",
          measured=k.spread_over_families, needs=(SOFT,)),
    Claim("Figure S3", "(iv) Networks have substantial weight on faces and digits above all", measured=k.neural_sets,
          needs=(SOFT,)),
    Claim("Table S10", "All pairs of specialists disagree on more than 5 % of rows", k.disagreement_above,
          k.measured_disagreement, needs=(SOFT, "specialist naive_bayes")),
    Claim("Methods", "Naive Bayes produces well-calibrated probabilities", measured=k.calibrated_bayes,
          needs=("specialist naive_bayes",)),
    Claim("Discussion", "AutoGluon relies on extensive tuning of its base learners", measured=k.autogluon_tunes,
          needs=()),
    Claim("Methods", "The software is one stack", k.two_stacks),
    Claim("Abstract", "Trains 72 to 435 times faster than deep networks", c.own_run_times, c.faster_than_deep,
          (SOFT, "Deep MLP")),
    Claim("Abstract", "More than two orders of magnitude faster than deep networks", partial(k.operations, most=0.01)),
    Claim("Proof 2", "72 times faster at least", partial(k.operations, most=1 / 72)),
    Claim("Table S10", "It needs at most .01 of the deep network's operations", partial(k.operations, most=0.01)),
    Claim("Methods", "60 to 300 seconds per dataset on one core", measured=c.seconds_a_dataset, needs=(SOFT,)),
    Claim("Methods", "Three to five times the time of the best single method", measured=c.overhead,
          needs=(SOFT, "CatBoost")),
    Claim("Methods", "The whole benchmark takes less than 30 minutes on a laptop", measured=c.whole_benchmark),
    Claim("Table 1", "California housing: R2 = .967", on="A06_california",
          measured=partial(c.best_on, name="A06_california", printed=0.967)),
    Claim("Table 1", "20 newsgroups, four classes: accuracy 1.000", on="A08_text_4class",
          measured=partial(c.best_on, name="A08_text_4class", printed=1.0)),
    Claim("Table 1", "Covertype, 20,000 rows: accuracy .929", on="A07_covtype_proxy",
          measured=partial(c.best_on, name="A07_covtype_proxy", printed=0.929)),
    Claim("Table 1", "Olivetti faces: accuracy 1.000", on="A09_face_recognition",
          measured=partial(c.best_on, name="A09_face_recognition", printed=1.0)),
    Claim("Table S1", "Olivetti faces have 26 classes", measured=c.faces, needs=()),
    _both("Proof 5", "On iris Soft Learning has 95.7 % and an MLP 65.2 %", c.iris),
    _both("Results", "CatBoost is ahead on B04, B12 and B13", c.catboost_ahead),
    Claim("Results", "On B04 memory forced CatBoost out of the library", measured=c.catboost_on_b04,
          needs=("CatBoost",), on="B04_satellite"),
    Claim("Theory, Methods", "The theory's table and the experiments have the same specialists", c.library_size),
    Claim("Table S10", "3 of 8 specialists are immune to gradients", c.immune_specialists),
    Claim("Table S10", "Less error than the average of its specialists on 37 of 37",
          measured=c.above_average_member, needs=(SOFT,)),
    Claim("Table S5", "Seconds per dataset of seven methods", measured=c.seconds_of_table_5,
          needs=tuple(printed.SECONDS)),
    Claim("Table S5", "The Tuned MLP is the slowest method", k.slowest_method, k.measured_slowest,
          tuple(printed.SECONDS)),
    Claim("Table S5", "The speedups are those of its seconds", k.speedups),
    Claim("Methods, Table S5", "CatBoost or the Tuned MLP alone: 10 to 120 seconds", k.seconds_alone),
    Claim("Methods", "On large sets CatBoost is the majority of the run time", measured=c.catboost_share,
          needs=(SOFT, "specialist catboost")),
    Claim("Methods", "The random forest tries sqrt(d) columns per split", measured=c.forest_columns,
          needs=("Random Forest", "specialist random_forest")),
    Claim("Methods", "All 370 cells are complete", c.cells_complete, c.measured_cells),
    Claim("Methods", "All values are given to four decimals in Supplementary Table 1", c.four_decimals),
)
# fmt: on


# -- what this project set itself -------------------------------------------------------------------------------------


def goals(summary: Summary) -> pd.DataFrame:
    """The project's own goals, reached or missed, against the paper's nine rivals."""
    rivals = (OURS, *RIVALS)
    if not _there(summary, rivals):
        return pd.DataFrame(columns=["goal", "measured", "reached"])
    table, everyone = summary.complete(rivals), summary.complete((OURS, *TEN, *COMBINERS))
    with_paper = summary.complete((OURS, *TEN))
    fields = {"against its nine rivals": table, "and its own method": with_paper, "and all combiners": everyone}
    first = {words: (places(t)[0].first, places(t, TOLERANCE)[0].first) for words, t in fields.items()}
    counts = "; ".join(f"{exact} {words} ({near} within .001)" for words, (exact, near) in first.items())
    rank = [friedman(t).mean_ranks for t in (table, everyone)]
    ranked = "; ".join(f"{r[0]:.2f} among {len(r)} (next {np.sort(r[1:])[0]:.2f})" for r in rank)
    test = wilcoxon(table[OURS], table["CatBoost"])
    gap = (summary.scores[OURS] - summary.best_member("default")["score"]).dropna().sort_values()
    far = f"below it on {int((gap < -1e-9).sum())} of {len(gap)}, worst {gap.index[0]} {gap.iloc[0]:+.4f}"
    lines = [
        ("first or exactly tied on at least 26 of 37", f"{counts}", min(exact for exact, _ in first.values()) >= 26),
        ("best mean rank of all methods", ranked, all(r[0] < r[1:].min() for r in rank)),
        ("Wilcoxon against CatBoost p < .01", f"p {test.p_two_sided:.2g} (two-sided)", test.p_two_sided < 0.01),
        ("never more than .005 below the best member", far, bool(gap.iloc[0] >= -0.005)),
    ]
    return pd.DataFrame(lines, columns=["goal", "measured", "reached"])
