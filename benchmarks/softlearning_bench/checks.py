"""Checks of single statements, each on a table of scores or on a Summary: a sentence with numbers, and a verdict.

Those that take a table (datasets by methods, Soft Learning first) run on the paper's printed one and on ours alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from softlearning.library import resolve
from softlearning.weights import solve_weights
from softlearning_bench import paper as printed
from softlearning_bench.audit.slsqp import slsqp_starts
from softlearning_bench.datasets import DATASETS, dataset
from softlearning_bench.paper import METHODS as TEN
from softlearning_bench.significance import friedman, nemenyi_distance, places, ranks, wilcoxon, win_tie_loss
from softlearning_bench.summary import SOFT, TOLERANCE, Summary, mean_by_task, paper_library_score

RIVALS = TEN[1:]


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
    off = [f"{name} {ours:.2f} (not {was:.2f})" for name, ours, was in zip(TEN, mean, printed.RANKS)
           if abs(ours - was) > 0.006]  # fmt: skip
    return Finding("recomputed: " + ", ".join(off), not off)


def friedman_test(table: pd.DataFrame) -> Finding:
    """Do the methods differ at all?"""
    found = friedman(table)
    text = f"chi2 {found.chi2:.2f}, corrected for ties {found.ties_corrected:.2f}, p {found.p:.2g}"
    return Finding(text, found.p < 0.001)


def friedman_printed(paper: pd.DataFrame) -> Finding:
    """Is the printed statistic that of the printed table, with or without the correction for ties?"""
    found = friedman(paper)
    return Finding(friedman_test(paper).text, min(abs(found.chi2 - 75.76), abs(found.ties_corrected - 75.76)) < 0.005)


def worse_by_nemenyi(table: pd.DataFrame) -> Finding:
    """Which methods lie more than the critical distance behind Soft Learning: just those that are named?"""
    mean = pd.Series(friedman(table).mean_ranks, table.columns)
    behind = mean[mean - mean[SOFT] > nemenyi_distance(table.shape[1], len(table))].index
    return Finding(f"further behind than the critical distance: {', '.join(behind) or 'none'}",
                   set(behind) == set(printed.NEMENYI))  # fmt: skip


def grows_with_rows(table: pd.DataFrame) -> Finding:
    """The share of first places, alone or tied, on small, medium and large sets."""
    parts = [part_of(table, size=size) for size in ("small", "medium", "large")]
    if not all(len(part) for part in parts):
        return OPEN
    found = [places(part)[0] for part in parts]
    share = [f.first / f.datasets for f in found]
    alone = ", ".join(f"{f.alone_first / f.datasets:.0%}" for f in found)
    text = f"first or tied on {', '.join(f'{x:.0%}' for x in share)} of small, medium, large sets; alone on {alone}"
    return Finding(text, share[0] < share[1] < share[2])


def critical_distance(table: pd.DataFrame) -> Finding:
    distance = nemenyi_distance(table.shape[1], len(table))
    text = f"{distance:.3f} for {table.shape[1]} methods on {len(table)} datasets"
    return Finding(text, abs(distance - printed.CRITICAL) < 0.005)


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


def records(paper: pd.DataFrame, wanted: dict[str, tuple[int, int, int]]) -> Finding:
    """Printed wins, ties and losses against those of the printed results."""
    found = {rival: win_tie_loss(paper[SOFT], paper[rival]) for rival in wanted}
    off = [f"{name} {r.wins}-{r.ties}-{r.losses} (printed {'-'.join(map(str, wanted[name]))})"
           for name, r in found.items() if (r.wins, r.ties, r.losses) != wanted[name]]  # fmt: skip
    return Finding(f"{len(off)} of {len(found)} records are others: " + ", ".join(off), not off)


def two_records(paper: pd.DataFrame) -> Finding:
    """Table 1 and Supplementary Table 3 print the same comparison."""
    off = [name for name, record in printed.RECORDS_1.items() if record != printed.RECORDS_3[name]]
    return Finding(f"the two tables differ on {len(off)} of {len(printed.RECORDS_1)} rivals", not off)


def p_values(paper: pd.DataFrame, wanted: dict[str, float], side: str) -> Finding:
    """Printed p-values against those of the printed results; a rounding apart is the same."""
    found = {rival: getattr(wilcoxon(paper[SOFT], paper[rival]), side) for rival in wanted}
    off = [f"{name} {p:.2g} (printed {wanted[name]:g})" for name, p in found.items() if abs(p - wanted[name]) > 0.0005]
    return Finding(f"{len(off)} of {len(found)} are others: " + ", ".join(off), not off)


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
    column = summary.paper["Best-of-3"]
    distance = {
        name: float((summary.scores[name] - column).abs().median()) for name in ("specialist knn_5", "Best-of-3")
    }
    text = f"median distance of the printed column from our maximum of three {distance['Best-of-3']:.3f}, "
    text += f"from 5 nearest neighbours {distance['specialist knn_5']:.3f}"
    return Finding(text, distance["Best-of-3"] <= distance["specialist knn_5"])


# -- the guarantee ----------------------------------------------------------------------------------------------------


def above_best_member(paper: pd.DataFrame) -> Finding:
    gap = paper[SOFT] - paper_library_score(paper)
    return _below(gap)


def measured_above_best_member(summary: Summary) -> Finding:
    return _below((summary.scores[SOFT] - summary.best_member("paper")["score"]).dropna())


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


def starts_agree(summary: Summary) -> Finding:
    """The paper's solver as written (sum of squares, SciPy's defaults) from its K + 2 starts, on one regression."""
    rng = np.random.default_rng(0)
    y, shared = 150 + 75 * rng.normal(size=400), 40 * rng.normal(size=400)
    errors = shared[:, None] * rng.uniform(0.8, 1.2, 15) + rng.normal(size=(400, 15)) * rng.uniform(5, 40, 15)
    problem = (y[:, None] - errors)[:, :, None], y[:, None]
    excess = slsqp_starts(*problem, reading="sum").objectives / solve_weights(*problem).objective - 1
    text = f"on a regression of 400 rows and 15 specialists its {len(excess)} starts end {excess.min():.1%} to"
    return Finding(f"{text} {excess.max():.0%} above the optimum", bool(excess.max() < 1e-6))


def unique_optimum(summary: Summary) -> Finding:
    """Do the paper's solver and the exact one give the same scores and the same weights?"""
    difference = (summary.scores[SOFT] - summary.scores["exact"]).abs().dropna()
    apart = int((difference > TOLERANCE).sum())
    theirs, exact = summary.weights(SOFT), summary.weights("exact")
    moved = (theirs.reindex_like(exact).fillna(0.0) - exact).abs().sum(axis=1) / 2
    text = f"scores differ by more than .001 on {apart} of {len(difference)}; weights by more than .01 on "
    return Finding(f"{text}{int((moved > 0.01).sum())}, at most {moved.max():.2f}", apart == 0 and moved.max() <= 0.01)


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
    (fast, slow), (quick, deep) = printed.SECONDS[SOFT], printed.SLOWEST
    text = f"Soft Learning {fast} to {slow} s, deep network {quick} to {deep} s (estimated): at most"
    return Finding(f"{text} {deep / fast:.0f} times", deep / fast >= 72)


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
    """Whose distance from the printed forest is smaller in regression: all columns per split, or sqrt(d)?"""
    column = part_of(summary.paper, task="regression")["Random Forest"].drop("A06_california")
    tried = {"sqrt(d)": "specialist random_forest", "all": "Random Forest"}
    distance = {how: float((summary.scores[name] - column).abs().mean()) for how, name in tried.items()}
    text = f"mean distance from the printed numbers {distance['sqrt(d)']:.3f} with sqrt(d) columns per split, "
    text += f"{distance['all']:.3f} with all"
    return Finding(text, distance["sqrt(d)"] < distance["all"])


def table_4(paper: pd.DataFrame) -> Finding:
    """Supplementary Table 4, row by row: means, their sum, mean rank, first places alone."""
    means, rank = mean_by_task(paper), friedman(paper).mean_ranks
    first = [place.alone_first for place in places(paper)]
    off = []
    for j, name in enumerate(paper.columns):
        ours = (*means.loc[name], means.loc[name].sum(), rank[j], first[j])
        size = (0.0006, 0.0006, 0.0011, 0.006, 0.5)
        if any(abs(a - b) > tolerance for a, b, tolerance in zip(ours, printed.TABLE_4[name], size)):
            off.append(f"{name} rank {rank[j]:.2f} and {first[j]} first (printed {printed.TABLE_4[name][3]:.2f},"
                       f" {printed.TABLE_4[name][4]})")  # fmt: skip
    return Finding(f"{len(off)} of {len(paper.columns)} rows are others: {'; '.join(off)}", not off)


def cells_complete(paper: pd.DataFrame) -> Finding:
    """A number for each of the 37 datasets and ten methods."""
    numbers = int(paper.notna().sum().sum())
    return Finding(f"{numbers} numbers", numbers == len(DATASETS) * len(TEN))


def measured_cells(summary: Summary) -> Finding:
    """Of all datasets and the ten methods, the cells with a score on every fold."""
    table = summary.scores.reindex(index=[row.name for row in DATASETS], columns=list(TEN))
    missing = [f"{name} {method}" for name, method in zip(*np.where(table.isna()))]
    return Finding(f"{table.size - len(missing)} of {table.size} cells have a score", not missing)


def four_decimals(paper: pd.DataFrame) -> Finding:
    decimals = printed.printed_decimals()
    return Finding(f"no printed result has more than {decimals} decimals", decimals >= 4)


def faces(summary: Summary) -> Finding:
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


def iris(table: pd.DataFrame) -> Finding:
    """The numbers of the proof's example against those of the table."""
    if "A01_iris" not in table.index:
        return OPEN
    found = table.loc["A01_iris", list(printed.IRIS)]
    text = ", ".join(f"{name} {found[name]:.3f} (there {value:.3f})" for name, value in printed.IRIS.items())
    return Finding(text, all(abs(found[name] - value) < 0.0015 for name, value in printed.IRIS.items()))


def catboost_ahead(table: pd.DataFrame) -> Finding:
    """CatBoost against Soft Learning on the three sets that the text names."""
    names = [name for name in ("B04_satellite", "B12_sensor_anomaly", "B13_drug_response") if name in table.index]
    if not names:
        return OPEN
    gap = (table["CatBoost"] - table[SOFT])[names]
    return Finding(", ".join(f"{name} {value:+.3f}" for name, value in gap.items()), bool((gap > 0).all()))


def catboost_on_b04(summary: Summary) -> Finding:
    """Did CatBoost fit into memory as a member of the library on B04?"""
    cells = summary.cells[(summary.cells["dataset"] == "B04_satellite")]
    tried = cells[cells["method"] == "specialist catboost"]
    if tried.empty:
        return OPEN
    ran = tried[tried["status"] == "ok"]
    if ran.empty:
        reasons = tried["reason"].astype(str)
        return Finding(f"it did not run: {reasons.iloc[0]}", bool(reasons.str.contains("memory").all()))
    return Finding(f"it ran on {len(ran)} folds, its process with at most {ran['peak_memory'].max():.0f} MB", False)


def seconds_of_table_5(summary: Summary) -> Finding:
    """Five folds of each method against the printed range."""
    lines, inside = [], []
    for name, (low, high) in printed.SECONDS.items():
        spent = 5 * summary.mean("fit_seconds", name)
        inside.append(bool(spent.between(low, high).all()))
        lines.append(f"{name} {spent.min():.2g} to {spent.max():.2g} s (printed {low} to {high})")
    return Finding("; ".join(lines), all(inside))


def catboost_share(summary: Summary) -> Finding:
    """CatBoost's share of the seconds of fitting the paper's library on all rows, on large sets."""
    members = {name for task in ("classification", "regression") for name in resolve("paper", task).names}
    names = [name for name in summary.scores.columns if name.removeprefix("specialist ") in members]
    seconds = pd.DataFrame({name: summary.mean("fit_seconds", name) for name in names})
    large = [name for name in seconds.index if dataset(name).size == "large"]
    if not large or "specialist catboost" not in seconds:
        return OPEN
    share = (seconds["specialist catboost"] / seconds.sum(axis=1))[large]
    text = f"{share.median():.0%} of the seconds (median of {len(share)} large sets; {share.min():.0%} to"
    return Finding(f"{text} {share.max():.0%})", bool(share.median() > 0.5))


def above_average_member(summary: Summary) -> Finding:
    """Soft Learning's score against the mean score of the paper's specialists."""
    members = {name for task in ("classification", "regression") for name in resolve("paper", task).names}
    names = [name for name in summary.scores.columns if name.removeprefix("specialist ") in members]
    gap = (summary.scores[SOFT] - summary.scores[names].mean(axis=1)).dropna()
    return Finding(f"above the mean of its members on {int((gap > 0).sum())} of {len(gap)}", bool((gap > 0).all()))


def library_size(paper: pd.DataFrame) -> Finding:
    size = len(resolve("paper", "classification"))
    return Finding(f"the theory has {len(printed.THEORY)} specialists, the experiments {size}",
                   size == len(printed.THEORY))  # fmt: skip


def immune_specialists(paper: pd.DataFrame) -> Finding:
    """Of the theory's specialists, those whose prediction is piecewise constant."""
    flat = [s.name for s in resolve("paper", "classification")[printed.THEORY] if s.piecewise_constant]
    return Finding(f"piecewise constant: {', '.join(flat)}", len(flat) == 3)
