"""Checks of single statements, each on a table of scores or on a Summary: a sentence with numbers, and a verdict.

Those that take a table (datasets by methods, Soft Learning first) run on the paper's printed one and on ours alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from softlearning_bench.datasets import dataset
from softlearning_bench.paper import METHODS as TEN
from softlearning_bench.significance import friedman, nemenyi_distance, places, ranks, wilcoxon, win_tie_loss
from softlearning_bench.summary import SOFT, TOLERANCE, Summary, mean_by_task, paper_library_score

RIVALS = TEN[1:]
PRINTED_RECORD = {
    "CatBoost": (22, 4, 11),
    "Tuned MLP": (22, 3, 12),
    "Gradient Boosting": (23, 3, 11),
    "Random Forest": (23, 4, 10),
    "KAN-like": (24, 2, 11),
    "Basic MLP": (30, 1, 6),
    "Logistic/Ridge": (25, 4, 8),
    "NeuroSym": (29, 1, 7),
    "Best-of-3": (32, 2, 3),
}  # Supplementary Table 3
PRINTED_RANKS = (3.12, 3.82, 4.65, 5.26, 5.15, 5.64, 6.81, 6.31, 6.31, 7.93)  # Methods, in the order of TEN


@dataclass(frozen=True)
class Finding:
    """What was found, with numbers; `holds` is None where it decides nothing."""

    text: str
    holds: bool | None = None


OPEN = Finding("-")

# -- ranks and places -------------------------------------------------------------------------------------------------


def part_of(table: pd.DataFrame, task: str = "", source: str = "", size: str = "") -> pd.DataFrame:
    """The datasets of a task, a source, a size; empty means any."""
    fits = lambda row: task in ("", row.task) and source in ("", row.source) and size in ("", row.size)
    return table[[fits(dataset(name)) for name in table.index]]


def first_on(table: pd.DataFrame, claimed: float, **part: str) -> Finding:
    """Soft Learning first or tied (exactly) on at least this share of a part of the datasets."""
    table = part_of(table, **part)
    found = places(table)[0] if len(table) else None
    if found is None:
        return OPEN
    share = found.first / found.datasets
    text = f"first or tied on {found.first} of {found.datasets} ({share:.0%}), alone first on {found.alone_first}"
    return Finding(text, share >= claimed - 0.005)


def top_two_on(table: pd.DataFrame, claimed: float, **part: str) -> Finding:
    table = part_of(table, **part)
    if not len(table):
        return OPEN
    found = places(table)[0]
    return Finding(f"top two on {found.top_two} of {found.datasets}", found.top_two / found.datasets >= claimed - 0.005)


def best_mean_rank(table: pd.DataFrame) -> Finding:
    mean = friedman(table).mean_ranks
    order = np.argsort(mean)
    names = [f"{table.columns[j]} {mean[j]:.2f}" for j in order[:3]]
    return Finding(", ".join(names), table.columns[order[0]] == SOFT)


def printed_ranks(paper: pd.DataFrame) -> Finding:
    mean = friedman(paper).mean_ranks
    off = [f"{name} {ours:.2f} (not {printed:.2f})" for name, ours, printed in zip(TEN, mean, PRINTED_RANKS)
           if abs(ours - printed) > 0.006]  # fmt: skip
    return Finding("recomputed: " + ", ".join(off), not off)


def friedman_test(table: pd.DataFrame) -> Finding:
    found = friedman(table)
    text = f"chi2 {found.chi2:.2f}, corrected for ties {found.ties_corrected:.2f}, p {found.p:.2g}"
    return Finding(text, found.p < 0.001)


def critical_distance(table: pd.DataFrame) -> Finding:
    distance = nemenyi_distance(table.shape[1], len(table))
    return Finding(
        f"{distance:.3f} for {table.shape[1]} methods on {len(table)} datasets", abs(distance - 2.23) < 0.005
    )


def only_one_at_both(table: pd.DataFrame) -> Finding:
    """Is any other method better in both means?"""
    means = mean_by_task(table)
    if means.isna().any(axis=None):
        return OPEN
    place = means.rank(ascending=False).astype(int)
    number = place.loc[SOFT]
    text = f"{SOFT} is number {number['classification']} by mean accuracy and {number['regression']} by mean R2"
    better = (means > means.loc[SOFT]).all(axis=1)
    above = ", ".join(means.index[better])
    return Finding(f"{text}; better at both: {above or 'none'}", not better.any())


def combined_score(table: pd.DataFrame) -> Finding:
    total = mean_by_task(table).sum(axis=1).sort_values(ascending=False)
    return Finding(", ".join(f"{name} {value:.3f}" for name, value in total.head(3).items()), total.index[0] == SOFT)


# -- one against another ----------------------------------------------------------------------------------------------


def record_against(table: pd.DataFrame, rival: str, wins: int) -> Finding:
    record = win_tie_loss(table[SOFT], table[rival])
    text = f"{record.wins} wins, {record.ties} ties, {record.losses} losses"
    return Finding(text, record.wins / len(table) >= wins / 37 - 0.005)


def records_of_table_3(paper: pd.DataFrame) -> Finding:
    found = {rival: win_tie_loss(paper[SOFT], paper[rival]) for rival in RIVALS}
    off = [f"{name} {r.wins}-{r.ties}-{r.losses} (printed {'-'.join(map(str, PRINTED_RECORD[name]))})"
           for name, r in found.items() if (r.wins, r.ties, r.losses) != PRINTED_RECORD[name]]  # fmt: skip
    return Finding(f"{len(off)} of {len(found)} records are others: " + ", ".join(off), not off)


def p_against_catboost(table: pd.DataFrame, two_sided: bool) -> Finding:
    test = wilcoxon(table[SOFT], table["CatBoost"])
    text = f"W {test.statistic:.1f} on {test.used} that differ: "
    text += f"one-sided p {test.p_greater:.3f}, two-sided {test.p_two_sided:.3f}"
    p = test.p_two_sided if two_sided else test.p_greater
    return Finding(text, abs(p - 0.064) < 0.0005)


def statistic_408(paper: pd.DataFrame) -> Finding:
    """Which number of datasets that differ makes W = 408 a p of .064?"""
    p = {n: stats.norm.sf((408 - n * (n + 1) / 4) / np.sqrt(n * (n + 1) * (2 * n + 1) / 24)) for n in range(30, 38)}
    n = min(p, key=lambda n: abs(p[n] - 0.064))
    differ = wilcoxon(paper[SOFT], paper["CatBoost"]).used
    return Finding(
        f"W 408 has a one-sided p of .064 with {n} datasets that differ; the table has {differ}", n == differ
    )


def significant_against_others(table: pd.DataFrame) -> Finding:
    p = {rival: wilcoxon(table[SOFT], table[rival]).p_two_sided for rival in RIVALS if rival != "CatBoost"}
    weak = [f"{name} {value:.3g}" for name, value in p.items() if value >= 0.005]
    return Finding(f"two-sided p at or above .005: {', '.join(weak) or 'none'}", not weak)


def largest_gain(table: pd.DataFrame) -> Finding:
    gain = (table[SOFT] - table["CatBoost"]).sort_values(ascending=False)
    text = ", ".join(f"{name} {value:+.3f}" for name, value in gain.head(3).items())
    return Finding(text, gain.index[0] == "C06_materials")


def best_of_three(table: pd.DataFrame) -> Finding:
    most = table[["Logistic/Ridge", "Random Forest", "Gradient Boosting"]].max(axis=1)
    below = int((table["Best-of-3"] < most - 1e-9).sum())
    return Finding(f"below the maximum of its members on {below} of {len(table)}", below == 0)


def what_best_of_three_is(summary: Summary) -> Finding:
    """The printed column against the maximum of three, and against 5 nearest neighbours."""
    printed = summary.paper["Best-of-3"]
    distance = {
        name: float((summary.scores[name] - printed).abs().median()) for name in ("specialist knn_5", "Best-of-3")
    }
    text = f"median distance of the printed column from our maximum of three {distance['Best-of-3']:.3f}, "
    text += f"from 5 nearest neighbours {distance['specialist knn_5']:.3f}"
    return Finding(text, distance["Best-of-3"] <= distance["specialist knn_5"])


# -- the guarantee ----------------------------------------------------------------------------------------------------


def above_best_member(paper: pd.DataFrame) -> Finding:
    gap = paper[SOFT] - paper_library_score(paper)
    return _below(gap)


def measured_above_best_member(summary: Summary, method: str = SOFT) -> Finding:
    library = "paper" if method == SOFT else "default"
    gap = (summary.scores[method] - summary.best_member(library)["score"]).dropna()
    return _below(gap)


def _below(gap: pd.Series) -> Finding:
    below = gap[gap < -1e-9].sort_values()
    worst = ", ".join(f"{name} {value:+.3f}" for name, value in below.head(4).items())
    return Finding(f"below its best own member on {len(below)} of {len(gap)}: {worst}", below.empty)


def sparse_regression(summary: Summary) -> Finding:
    """C04: does the simplex keep a linear specialist from dominating?"""
    scores = summary.scores.loc["C04_sparse_regression"]
    weights = summary.family_weights("exact").loc["C04_sparse_regression"]
    text = f"ridge {scores['Logistic/Ridge']:.4f}, the paper's solver {scores[SOFT]:.4f}, "
    text += f"exact weights {scores['exact']:.4f}"
    return Finding(f"{text} with {weights['linear']:.0%} on linear specialists", weights["linear"] < 0.9)


def unique_optimum(summary: Summary) -> Finding:
    """Do the paper's solver and the exact one give the same scores?"""
    difference = (summary.scores[SOFT] - summary.scores["exact"]).abs().dropna()
    apart = difference[difference > TOLERANCE].sort_values(ascending=False)
    worst = ", ".join(f"{name} {value:.3f}" for name, value in apart.head(3).items())
    return Finding(f"scores differ by more than .001 on {len(apart)} of {len(difference)} {worst}", apart.empty)


# -- weights ----------------------------------------------------------------------------------------------------------


def weights_on(summary: Summary, name: str, expected: dict[str, float]) -> Finding:
    """Mean weights over the folds; the claim holds if each is within .1 of what is printed."""
    found = summary.weights(SOFT).loc[name]
    top = found.sort_values(ascending=False).head(4)
    text = ", ".join(f"{specialist} {weight:.2f}" for specialist, weight in top.items() if weight > 0.005)
    near = [abs(sum(found.get(n, 0.0) for n in names.split("+")) - weight) <= 0.1 for names, weight in expected.items()]
    return Finding(text, all(near))


def many_weights(summary: Summary) -> Finding:
    count = int((summary.weights(SOFT).loc["C07_large_regression"] > 0.01).sum())
    return Finding(f"{count} specialists above 1 %", count >= 9)


def spread_weights(summary: Summary) -> Finding:
    table = summary.weights(SOFT)
    spread = int(((table > 0.01).sum(axis=1) > 1).sum())
    return Finding(f"more than one specialist above 1 % on {spread} of {len(table)}", spread / len(table) >= 31 / 37)


def trees_dominate(summary: Summary) -> Finding:
    table = summary.family_weights(SOFT)
    count = int((table.idxmax(axis=1) == "tree").sum())
    return Finding(f"trees have the largest weight on {count} of {len(table)}", count > len(table) / 2)


# -- seconds ----------------------------------------------------------------------------------------------------------


def faster_than_deep(summary: Summary) -> Finding:
    ratio = (summary.mean("fit_seconds", "Deep MLP") / summary.mean("fit_seconds", SOFT)).dropna()
    spread = f"{ratio.min():.2g} to {ratio.max():.2g} times as long (median {ratio.median():.2g})"
    text = f"a network of four layers of 256 and 100 epochs takes {spread}"
    return Finding(text, bool(ratio.median() >= 72))


def own_run_times(paper: pd.DataFrame) -> Finding:
    """Supplementary Table 5, in seconds: the slowest deep network against the fastest Soft Learning."""
    fastest, slowest_mlp, slowest_deep = 60, 200, 600
    text = f"Soft Learning {fastest} to 300 s, Tuned MLP 30 to {slowest_mlp} s, deep network 120 to {slowest_deep} s "
    return Finding(f"{text}(estimated): at most {slowest_deep / fastest:.0f} times", slowest_deep / fastest >= 72)


def seconds_a_dataset(summary: Summary) -> Finding:
    spent = 5 * summary.mean("fit_seconds", SOFT)
    text = f"five folds take {spent.min():.0f} to {spent.max():.0f} s on one core, {spent.sum() / 3600:.1f} h in all"
    return Finding(text, bool(spent.max() <= 300))


def whole_benchmark(summary: Summary) -> Finding:
    hours = summary.ten_methods_seconds().to_numpy().sum() / 3600
    return Finding(f"{hours:.1f} core hours", hours <= 0.5)


def overhead(summary: Summary) -> Finding:
    ratio = (summary.mean("fit_seconds", SOFT) / summary.mean("fit_seconds", "CatBoost")).dropna()
    text = f"{ratio.median():.0f} times CatBoost (median; {ratio.min():.0f} to {ratio.max():.0f})"
    return Finding(text, bool(3 <= ratio.median() <= 5))


# -- data -------------------------------------------------------------------------------------------------------------


def best_on(summary: Summary, name: str, printed: float) -> Finding:
    scores = summary.scores.loc[name].dropna()
    return Finding(
        f"the best of all methods, {scores.idxmax()}, reaches {scores.max():.3f}", scores.max() >= printed - 0.01
    )


def forest_columns(summary: Summary) -> Finding:
    """Whose distance from the printed forest is smaller in regression: all columns a split, or sqrt(d)?"""
    printed = part_of(summary.paper, task="regression")["Random Forest"].drop("A06_california")
    tried = {"sqrt(d)": "specialist random_forest", "all": "Random Forest"}
    distance = {how: float((summary.scores[name] - printed).abs().mean()) for how, name in tried.items()}
    text = f"mean distance from the printed numbers {distance['sqrt(d)']:.3f} with sqrt(d) columns a split, "
    text += f"{distance['all']:.3f} with all"
    return Finding(text, distance["sqrt(d)"] < distance["all"])


def means_of_table_4(paper: pd.DataFrame) -> Finding:
    means = mean_by_task(paper)
    printed = {SOFT: (0.882, 0.761), "CatBoost": (0.891, 0.725), "Tuned MLP": (0.858, 0.737)}
    right = all(np.allclose(means.loc[name], values, atol=6e-4) for name, values in printed.items())
    text = f"{SOFT} {means.loc[SOFT, 'classification']:.3f} and {means.loc[SOFT, 'regression']:.3f}"
    return Finding(text, right)


def cells_complete(table: pd.DataFrame) -> Finding:
    return Finding(f"{int(table.notna().sum().sum())} numbers", bool(table.notna().all().all()))


def four_decimals(paper: pd.DataFrame) -> Finding:
    return Finding("its tables have three decimals; Supplementary Table 1 holds no results", False)


def faces(paper: pd.DataFrame) -> Finding:
    classes = dataset("A09").classes
    return Finding(f"the real set has {classes} classes of 10 pictures", classes == 26)


def task_places(table: pd.DataFrame) -> Finding:
    means = mean_by_task(table)
    if means.isna().any(axis=None):
        return OPEN
    place = means.rank(ascending=False).astype(int)
    catboost, kan = place.loc["CatBoost"], place.loc["KAN-like"]
    text = f"CatBoost is number {catboost['regression']} and KAN-like {kan['regression']} in regression, "
    text += f"KAN-like number {kan['classification']} in classification"
    right = (place.loc["CatBoost", "regression"], *place.loc["KAN-like"]) == (4, 7, 3)
    return Finding(text, right)


def outside_top_two(table: pd.DataFrame) -> Finding:
    outside = len(table) - places(table)[0].top_two
    return Finding(f"outside the top two on {outside} of {len(table)}", outside / len(table) <= 8 / 37 + 0.005)


def friedman_suite(table: pd.DataFrame) -> Finding:
    rows = table.loc[[name for name in table.index if "friedman" in name]]
    if rows.empty:
        return OPEN
    rank = ranks(rows)[:, 0]
    return Finding(f"ranks {', '.join(f'{r:g}' for r in rank)} on friedman 1 to 3", bool((rank == 1).all()))


def two_counts(paper: pd.DataFrame) -> Finding:
    """Two first-place counts for the same table, and the tolerance that would make the larger one true."""
    found, behind = places(paper)[0], paper.max(axis=1) - paper[SOFT]
    needed = float(np.sort(behind)[25])
    text = f"{found.alone_first} alone, {found.first} with ties; 26 if being up to {needed:.3f} behind counts as a tie"
    return Finding(text, found.first == 26)
