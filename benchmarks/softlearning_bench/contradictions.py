"""Statements of the paper that another of its own places, or plain arithmetic on results, decides.

A disagreement between two classifiers is at most the sum of their errors; a calibrated forecast has a log loss of at
most the entropy of the classes, so at most log C. Neither needs a prediction: scores are enough.
"""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from softlearning.library import resolve
from softlearning_bench import paper as printed
from softlearning_bench.checks import OPEN, Finding, part_of
from softlearning_bench.datasets import dataset
from softlearning_bench.significance import EPSILON, places, win_tie_loss
from softlearning_bench.summary import SOFT, TOLERANCE, Summary, mean_by_task

PRESETS = Path(__file__).parents[1] / "results" / "autogluon_presets.json"


def figure_1_wins(paper: pd.DataFrame) -> Finding:
    """Wins of Supplementary Figure 1 against those of the printed results, by its own margin of .001."""
    found = {rival: win_tie_loss(paper[SOFT], paper[rival], TOLERANCE).wins for rival in printed.FIGURE_1}
    text = ", ".join(f"{name} {wins} (printed {printed.FIGURE_1[name]})" for name, wins in found.items())
    return Finding(text, found == printed.FIGURE_1)


def figure_1_and_table_3(paper: pd.DataFrame, wins: dict[str, int] = printed.FIGURE_1) -> Finding:
    """A margin of .001 can only turn wins of Table S3 into ties: never more wins than there."""
    more = [f"{name} {n} against {printed.RECORDS_3[name][0]}" for name, n in wins.items()
            if n > printed.RECORDS_3[name][0]]  # fmt: skip
    return Finding(f"more wins with the stricter rule: {', '.join(more) or 'none'}", not more)


def shaded_rows(paper: pd.DataFrame, shaded: tuple[str, ...] = printed.SHADED) -> Finding:
    """Are the rows that Table 1 shades those where no method lies above Soft Learning?"""
    return _marked(paper, shaded, "shaded")


def bold_rows(paper: pd.DataFrame, bold: tuple[str, ...] = printed.BOLD) -> Finding:
    """Is Soft Learning the best of the six methods of Table 1 wherever it is printed bold?"""
    return _marked(paper[[SOFT, *printed.RECORDS_1]], bold, "bold")


def _marked(table: pd.DataFrame, rows: tuple[str, ...], word: str) -> Finding:
    behind = table.max(axis=1) - table[SOFT] > EPSILON
    wrong = [name for name in table.index[behind] if name.startswith(rows)]
    text = f"another method is ahead on {len(wrong)} of {len(rows)} {word} rows"
    return Finding(f"{text}: {', '.join(name[:3] for name in wrong)}" if wrong else text, not wrong)


def shaded_and_counted(paper: pd.DataFrame, counted: int = 26) -> Finding:
    shaded = len(printed.SHADED)
    return Finding(f"{shaded} rows of Table 1 are shaded, {counted} counted in the text", shaded == counted)


def first_by_size(paper: pd.DataFrame, told: dict[str, tuple[int, ...]] = printed.FIRST_BY_SIZE) -> Finding:
    text = "; ".join(f"{where} {', '.join(map(str, shares))} %" for where, shares in told.items())
    return Finding(f"small, medium, large: {text}", len(set(told.values())) == 1)


def most_first_places(table: pd.DataFrame) -> Finding:
    """Which method is most often first or tied, in classification and in regression?"""
    text, right = [], []
    for task in ("classification", "regression"):
        rows = part_of(table, task=task)
        if rows.empty:
            return OPEN
        first = pd.Series([place.first for place in places(rows)], rows.columns)
        text.append(
            f"{task}: {SOFT} {first[SOFT]} of {len(rows)}, {first.drop(SOFT).idxmax()} {first.drop(SOFT).max()}"
        )
        right.append(first[SOFT] > first.drop(SOFT).max())
    return Finding("; ".join(text), all(right))


def figure_4(table: pd.DataFrame) -> Finding:
    """Less than a point behind the best mean accuracy, and 2.4 points ahead of the second mean R2."""
    means = mean_by_task(table)
    if means.isna().any(axis=None):
        return OPEN
    gap = means.loc[SOFT] - means.drop(SOFT).max()
    text = f"{gap['classification']:+.3f} to the best other accuracy, {gap['regression']:+.3f} to the best other R2"
    return Finding(text, bool(gap["classification"] > -0.01 and gap["regression"] >= 0.0235))


def boundary(paper: pd.DataFrame, ranks: tuple[float, ...] = printed.RANKS) -> Finding:
    """Figure 2c draws the boundary at Soft Learning's mean rank plus the critical distance."""
    total = ranks[0] + printed.CRITICAL
    text = f"{ranks[0]:.2f} of the Methods + {printed.CRITICAL:.2f} = {total:.2f}, drawn at {printed.BOUNDARY:.2f}"
    return Finding(text, abs(total - printed.BOUNDARY) < 0.005)


def winning_records(table: pd.DataFrame) -> Finding:
    """More wins than losses against each, and by more than .001 more wins than half of the datasets."""
    found = {name: win_tie_loss(table[SOFT], table[name], TOLERANCE) for name in table.columns if name != SOFT}
    short = [f"{name} {r.wins}-{r.ties}-{r.losses}" for name, r in found.items() if r.wins <= len(table) / 2]
    return Finding(f"not above half of {len(table)}: {', '.join(short) or 'none'}", not short)


def notably_weaker(paper: pd.DataFrame) -> Finding:
    """On which datasets is Soft Learning as far behind the best as on C04, the lesser of the two that are named?"""
    named = ["B04_satellite", "C04_sparse_regression"]
    behind = (paper.max(axis=1) - paper[SOFT]).sort_values(ascending=False)
    far = behind[behind >= behind[named].min() - EPSILON]
    text = ", ".join(f"{name} {value:.3f}" for name, value in far.items())
    return Finding(f"{len(far)} as far behind the best: {text}", set(far.index) == set(named))


def lost_regressions(table: pd.DataFrame) -> Finding:
    """On which regressions is another method ahead?"""
    rows = part_of(table, task="regression")
    lost = [name for name in rows.index if rows.loc[name].max() > rows.loc[name, SOFT] + EPSILON]
    if "C04_sparse_regression" not in rows.index:
        return OPEN
    return Finding(f"behind another on {len(lost)}: {', '.join(lost) or 'none'}", lost == ["C04_sparse_regression"])


def seconds_alone(paper: pd.DataFrame, told: tuple[int, int] = printed.ALONE) -> Finding:
    """The Methods' range for two baselines against Supplementary Table 5."""
    names = ("CatBoost", "Tuned MLP")
    table = min(printed.SECONDS[n][0] for n in names), max(printed.SECONDS[n][1] for n in names)
    return Finding(f"{told[0]} to {told[1]} s, and {table[0]} to {table[1]} s in Table S5", told == table)


def slowest_method(paper: pd.DataFrame, seconds: dict[str, tuple[int, int]] = printed.SECONDS) -> Finding:
    slowest = max(seconds, key=lambda name: seconds[name])
    text = ", ".join(f"{name} {seconds[name][0]} to {seconds[name][1]} s" for name in ("Tuned MLP", slowest))
    return Finding(text, slowest == "Tuned MLP")


def measured_slowest(summary: Summary) -> Finding:
    spent = pd.Series({name: summary.mean("fit_seconds", name).sum() for name in printed.SECONDS})
    text = f"{spent.idxmax()} takes {spent.max() / spent['Tuned MLP']:.3g} times the seconds of the Tuned MLP"
    return Finding(text, spent.idxmax() == "Tuned MLP")


def speedups(paper: pd.DataFrame, told: dict[str, tuple] = printed.SPEEDUPS) -> Finding:
    """Speedups of Supplementary Table 5 against the most seconds of the Tuned MLP over its own, in whole numbers."""
    most = printed.SECONDS["Tuned MLP"][1]
    found = {name: (round(most / slow), round(most / fast)) for name, ((fast, slow), _) in told.items()}
    off = [f"{name} {found[name][0]} to {found[name][1]} (printed {low} to {high})"
           for name, (_, (low, high)) in told.items() if found[name] != (low, high)]  # fmt: skip
    return Finding(f"{len(off)} of {len(told)} are others: {', '.join(off)}", not off)


def operations(paper: pd.DataFrame, most: float, table: dict[tuple[int, int], tuple] = printed.OPERATIONS) -> Finding:
    """The largest share of the deep network's operations that Soft Learning needs in the table of Proof 2."""
    share = {size: soft / deep for size, (deep, soft) in table.items()}
    (rows, columns), worst = max(share.items(), key=lambda item: item[1])
    return Finding(f"at most {worst:.3f}, {1 / worst:.0f} times ({rows:,} x {columns})", worst <= most)


def mixture_on_c06(summary: Summary) -> Finding:
    """Do linear specialists, kernels and splines share the weight on C06?"""
    weights = summary.weights(SOFT).loc["C06_materials"]
    family = summary.family_weights(SOFT).loc["C06_materials"]
    parts = {"linear": family.get("linear", 0.0), "kernel": family.get("kernel", 0.0)}
    parts["spline"] = weights.get("spline_ridge", 0.0)
    text = ", ".join(f"{name} {value:.2f}" for name, value in parts.items())
    return Finding(text, min(parts.values()) > 0.01)


def two_p_values(paper: pd.DataFrame, one_sided: dict[str, float] = printed.ONE_SIDED) -> Finding:
    """A two-sided p is twice the one-sided one of the same test, within the rounding of both."""
    pairs = {name: (p, printed.TWO_SIDED[name]) for name, p in one_sided.items() if name in printed.TWO_SIDED}
    off = [f"{name} {one:g} and {two:g}" for name, (one, two) in pairs.items() if abs(2 * one - two) > 0.0015]
    return Finding(f"two-sided is not twice one-sided: {', '.join(off) or 'none'}", not off)


def two_stacks(paper: pd.DataFrame, stacks: tuple[dict[str, str], ...] = printed.STACKS) -> Finding:
    """The versions in two places of the Methods, where both name one."""
    one, two = stacks
    off = [f"{name} {one[name]} and {two[name]}" for name in one if name in two and one[name] != two[name]]
    return Finding(f"differ: {', '.join(off) or 'none'}", not off)


def disagreement_above(table: pd.DataFrame, names: list[str] | None = None, share: float = 0.05) -> Finding:
    """Do all pairs of members of the library disagree on more than this share of rows?

    `names` are the columns of members; the printed table has those that are methods of their own. A disagreement is at
    most the sum of the two errors, so that a pair with a smaller sum refutes the statement.
    """
    members = names or ["CatBoost", "Tuned MLP", "KAN-like", "Basic MLP", "Logistic/Ridge"]
    rows = part_of(table, task="classification")[members]
    if rows.empty:
        return OPEN
    pairs = {pair: (2 - rows[list(pair)].sum(axis=1)).min() for pair in combinations(members, 2)}
    below = [pair for pair, most in pairs.items() if most < share]
    at_most = float(min(pairs.values()))
    text = f"{len(below)} of {len(pairs)} pairs have errors that sum to less than {share:.0%} on some set"
    return Finding(f"{text}; the smallest possible disagreement is at most {at_most:.1%}", False if below else None)


def measured_disagreement(summary: Summary) -> Finding:
    """The same of every specialist of the paper's library that ran on all classification sets."""
    names = [f"specialist {name}" for name in resolve("paper", "classification").names]
    table = part_of(summary.scores, task="classification").reindex(columns=names).dropna(axis=1)
    return disagreement_above(table, list(table.columns)) if table.shape[1] > 1 and len(table) else OPEN


def calibrated_bayes(summary: Summary) -> Finding:
    """On how many sets does naive Bayes have a log loss above log C, which no calibrated forecast has?"""
    losses = part_of(summary.losses, task="classification")
    loss = losses.reindex(columns=["specialist naive_bayes"]).iloc[:, 0].dropna()
    if loss.empty:
        return OPEN
    most = np.log([dataset(name).classes or 1 for name in loss.index])
    above = loss[loss > most].sort_values(ascending=False)
    text = f"log loss above log C on {len(above)} of {len(loss)} sets"
    worst = "".join(f", {name} {value:.1f}" for name, value in above.head(2).items())
    return Finding(text + worst, above.empty)


def linear_targets(summary: Summary) -> Finding:
    """Figure S3 (ii): most of the weight on linear specialists on the three sets that it names."""
    return _family_share(summary, "linear", ("C09_house_price", "C05_energy", "C04_sparse_regression"), 0.5)


def spread_over_families(summary: Summary) -> Finding:
    """Figure S3 (iii): four or five families above 1 % on the three sets that it names."""
    table = summary.family_weights(SOFT)
    names = [n for n in ("B04_satellite", "C06_materials", "C07_large_regression") if n in table.index]
    counts = (table.loc[names] > 0.01).sum(axis=1)
    text = ", ".join(f"{name} {count}" for name, count in counts.items())
    return Finding(f"families above 1 %: {text}", bool(counts.between(4, 5).all())) if names else OPEN


def neural_sets(summary: Summary) -> Finding:
    """Figure S3 (iv): a fifth of the weight or more on networks for faces and digits, and less elsewhere."""
    table = summary.family_weights(SOFT)["neural"]
    names = [n for n in ("A09_face_recognition", "A04_digits") if n in table.index]
    if len(names) < 2 or len(table) < 4:
        return OPEN
    rest = table.drop(names)
    text = ", ".join(f"{name} {table[name]:.2f}" for name in names)
    high = int((rest > table[names].min()).sum())
    return Finding(f"neural weight: {text}; {high} of {len(rest)} other sets have more than the lower of these",
                   bool(table[names].min() >= 0.2 and high < len(rest) / 2))  # fmt: skip


def _family_share(summary: Summary, family: str, names: tuple[str, ...], share: float) -> Finding:
    table = summary.family_weights(SOFT)
    found = table.loc[[name for name in names if name in table.index], family]
    text = ", ".join(f"{name} {weight:.2f}" for name, weight in found.items())
    return Finding(f"{family} weight: {text}", bool((found > share).all())) if len(found) else OPEN


def autogluon_tunes(summary: Summary, path: Path = PRESETS) -> Finding:
    """Which presets of AutoGluon turn its hyperparameter search on, as read from an installed one."""
    if not path.exists():
        return OPEN
    read = json.loads(path.read_text(encoding="utf-8"))
    on = [name for name, keys in read["presets"].items() if "hyperparameter_tune_kwargs" in keys]
    text = f"AutoGluon {read['version']}: {len(on)} of {len(read['presets'])} presets turn the search on"
    return Finding(f"{text}; without a preset it is {read['default']}", bool(on) or read["default"] != "None")
