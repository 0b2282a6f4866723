"""The figures of the paper, drawn from the table of results.

Each function takes a Summary and returns a matplotlib Figure; FIGURES lists them with their number in the paper and
what they show. Colours are those of Okabe and Ito, which the colour-blind tell apart; no figure needs colour alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from softlearning_bench.datasets import dataset
from softlearning_bench.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    NARROW,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    blank,
    bootstrap,
    reach_of,
    save_svg,
)
from softlearning_bench.significance import breakdown, friedman, nemenyi_distance, places, ranks, win_matrix
from softlearning_bench.summary import CHANGES, FIELD, OURS, SOFT, TOLERANCE, Summary, mean_by_task
from softlearning_bench.weight_figures import PAPERS, all_weights, named, our_weights, short, some_weights


def _of_folds(summary: Summary, metric: str, method: str, rival: str) -> pd.DataFrame:
    """By dataset: mean over the folds of a metric's difference from a rival, and half its 95 % interval.

    The folds share training rows: their variance counts 1/5 + 1/4 times (Nadeau and Bengio). "loss" is the log ratio.
    """
    cells = summary.cells[(summary.cells["seed"] == summary.seed) & (summary.cells["status"] == "ok")]
    if metric == "loss":
        raw = cells["log_loss"].fillna(cells["rmse"]).clip(lower=1e-3)
        cells = cells.assign(loss=np.log(raw.astype(float)))
    wide = cells.pivot_table(index=["dataset", "fold"], columns="method", values=metric)[[method, rival]].dropna()
    folds = (wide[method] - wide[rival]).groupby(level=0, sort=False)
    n = folds.size()
    half = stats.t.ppf(0.975, (n - 1).clip(lower=1)) * folds.std() * np.sqrt(1 / n + 1 / (n - 1).clip(lower=1))
    return pd.DataFrame({"mean": folds.mean(), "half": half})


def _colour(method: str) -> str:
    return {OURS: BLUE, SOFT: ORANGE}.get(method, GREY)


def _emphasise(labels) -> None:
    """Our row and the paper's are bold: the eye finds them without colour."""
    for label in labels:
        label.set_fontweight("bold" if label.get_text() in (OURS, PAPERS) else "normal")


# -- Figure 2 ---------------------------------------------------------------------------------------------------------


def heatmap(summary: Summary) -> Figure:
    """2a: score of every method on every dataset; the best of a row (within .001) is framed and bold."""
    table = summary.scores[summary.methods()]
    figure, axes = blank(NARROW, 0.22 * len(table) + 1.2)
    behind = table.rsub(table.max(axis=1), axis=0).clip(upper=0.2)
    axes.imshow(behind, cmap="Blues", aspect="auto", vmin=0, vmax=0.25)
    for i, (_, row) in enumerate(table.iterrows()):
        for j, value in enumerate(row):
            _cell(axes, i, j, value, best=value >= row.max() - TOLERANCE - 1e-9, dark=behind.iloc[i, j] > 0.12)
    _label(axes, [short(name) for name in table.index], list(table.columns))
    tasks = [dataset(name).task for name in table.index]
    axes.axhline(tasks.count("classification") - 0.5, color=BLACK, linestyle="--", linewidth=1)
    axes.set_title("accuracy or R2; shade: how far behind the best of the row", fontsize=8)
    return figure


def _cell(axes: Axes, i: int, j: int, value: float, best: bool, dark: bool) -> None:
    text = "-" if np.isnan(value) else f"{value:.3f}".replace("0.", ".").replace("1.000", "1.0")
    weight = "bold" if best else "normal"
    axes.text(j, i, text, ha="center", va="center", fontsize=7.5, color="white" if dark else BLACK, fontweight=weight)
    if best:
        axes.add_patch(mpl.patches.Rectangle((j - 0.47, i - 0.45), 0.94, 0.9, fill=False, edgecolor=RED, linewidth=1))


def _label(axes: Axes, rows: list[str], columns: list[str]) -> None:
    axes.set_yticks(range(len(rows)), map(named, rows))
    axes.set_xticks(range(len(columns)), map(named, columns), rotation=35, ha="right")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    _emphasise([*axes.get_xticklabels(), *axes.get_yticklabels()])


def differences(summary: Summary, rival: str = "CatBoost", metric: str = "score") -> Figure:
    """2b: by dataset, how far the paper's method and ours lie above or below CatBoost, with intervals over folds."""
    methods = summary.methods((OURS, SOFT))
    found = {method: _of_folds(summary, metric, method, rival) for method in methods}
    order = found[methods[0]]["mean"].sort_values().index
    figure, axes = blank(NARROW, 0.24 * len(order) + 1)
    for k, (method, lines) in enumerate(found.items()):
        here = lines.reindex(order)
        style: dict[str, Any] = {"fmt": "o" if method == OURS else "s", "markersize": 3.5, "elinewidth": 0.7}
        y = np.arange(len(order)) + 0.22 * k
        axes.errorbar(here["mean"], y, xerr=here["half"], color=_colour(method), label=named(method), **style)
    axes.set_yticks(np.arange(len(order)) + 0.11, [short(name) for name in order])
    axes.set_ylim(-0.7, len(order))
    axes.axvline(0, color=BLACK, linewidth=0.8)
    axes.margins(x=0.03)
    axes.set_xlabel(
        f"score minus that of {rival}" if metric == "score" else f"log(loss / loss of {rival}); left is better"
    )
    figure.legend(loc="outside upper left", frameon=False, ncols=2)
    return figure


def loss_differences(summary: Summary) -> Figure:
    """The same of log loss or RMSE."""
    return differences(summary, metric="loss")


def mean_ranks(summary: Summary) -> Figure:
    """2c: mean ranks with the zone in which Nemenyi's test sees no difference from the best."""
    table = summary.complete()
    outcome = friedman(table)
    order = np.argsort(outcome.mean_ranks)
    distance = nemenyi_distance(table.shape[1], len(table))
    best = outcome.mean_ranks[order[0]]
    figure, axes = blank(NARROW, 3)
    interval = bootstrap(ranks(table))[:, order]
    axes.axvspan(best, best + distance, color=SKY, alpha=0.3, label=f"within {distance:.2f} of the best (Nemenyi, 5 %)")
    names = [table.columns[j] for j in order]
    axes.scatter(outcome.mean_ranks[order], range(len(order)), color=[_colour(name) for name in names], zorder=3)
    axes.errorbar(outcome.mean_ranks[order], range(len(order)), xerr=reach_of(outcome.mean_ranks[order], interval),
                  fmt="none", color=GREY, elinewidth=0.8, zorder=2)  # fmt: skip
    for i, j in enumerate(order):
        axes.annotate(f"{outcome.mean_ranks[j]:.2f}", (interval[1, i], i), (4, -3), textcoords="offset points")
    axes.set_yticks(range(len(order)), map(named, names))
    axes.invert_yaxis()
    axes.set_xlabel(f"mean rank over {len(table)} datasets (1 is best)")
    test = f"Friedman chi2 = {outcome.ties_corrected:.2f}, p = {outcome.p:.2g}"
    axes.set_title(f"{test}\nbars: 95 %, bootstrap over datasets", fontsize=8)
    axes.margins(x=0.12)
    figure.legend(loc="outside lower left", frameon=False)
    _emphasise(axes.get_yticklabels())
    return figure


# -- Figure 3 ---------------------------------------------------------------------------------------------------------


def rank_distribution(summary: Summary) -> Figure:
    """3a: on how many datasets a method had which rank (shared ranks are rounded up)."""
    table = summary.complete()
    R = np.ceil(ranks(table)).astype(int)
    k = table.shape[1]
    counts = np.array([np.bincount(R[:, j], minlength=k + 1)[1:] for j in range(k)])
    order = np.argsort(ranks(table).mean(axis=0))
    figure, axes = blank(NARROW, 0.32 * k + 1)
    axes.imshow(counts[order], cmap="Blues", aspect="auto")
    for i, j in enumerate(order):
        for rank, count in enumerate(counts[j]):
            colour = "white" if count > counts.max() / 2 else BLACK
            axes.text(rank, i, str(count or ""), ha="center", va="center", color=colour)
    _label(axes, [table.columns[j] for j in order], [str(rank) for rank in range(1, k + 1)])
    axes.set_xticks(range(k), range(1, k + 1), rotation=0, ha="center")
    axes.set_xlabel("rank")
    return figure


def first_places(summary: Summary, grouping: str) -> Figure:
    """3b, 3c: share of datasets on which a method is first or within .001 of the first, by task or by size."""
    table = summary.complete()
    parts = breakdown(table, {grouping: summary.groups(table.index)[grouping]}, TOLERANCE)[grouping]
    overall = [p.first for p in places(table, TOLERANCE)]
    order = np.argsort(overall)[::-1][: 6 if grouping == "size" else None]
    figure, axes = blank(NARROW, 3)
    width = 0.8 / len(parts)
    for k, (part, found) in enumerate(parts.items()):
        share = np.array([100 * found[j].first / found[j].datasets for j in order])
        proportion = [stats.binomtest(found[j].first, found[j].datasets).proportion_ci(method="wilson") for j in order]
        reach = reach_of(share, 100 * np.array(proportion).T)
        label = f"{part} ({found[0].datasets})"
        colour, hatch = (BLUE, ORANGE, GREEN)[k], ("", "///", "...")[k]
        axes.bar(
            np.arange(len(order)) + k * width,
            share,
            width,
            label=label,
            color=colour,
            hatch=hatch,
            edgecolor=BLACK,
            linewidth=0.3,
            yerr=reach,
            error_kw={"elinewidth": 0.7},
        )
    names = [named(table.columns[j]) for j in order]
    axes.set_xticks(np.arange(len(order)) + 0.4 - width / 2, names, rotation=30, ha="right")
    axes.set_ylabel("first or tied, % of datasets (95 %)")
    axes.legend(frameon=False)
    _emphasise(axes.get_xticklabels())
    return figure


def by_task(summary: Summary) -> Figure:
    return first_places(summary, "task")


def by_size(summary: Summary) -> Figure:
    return first_places(summary, "size")


# -- Figures 4 and 5 --------------------------------------------------------------------------------------------------


def trade_off(summary: Summary) -> Figure:
    """4: mean accuracy against mean R2, one point a method; names stand in a column beside, so that none overlap."""
    table = summary.complete()
    means = mean_by_task(table).dropna().sort_values("regression")
    figure, axes = blank(NARROW, 3.8)
    reach = {t: bootstrap(table[np.array(summary.groups(table.index)["task"]) == t]) for t in means.columns}
    column = {name: k for k, name in enumerate(table.columns)}
    leader: dict[str, Any] = {"arrowstyle": "-", "relpos": (0, 0.5)}
    for k, (method, (accuracy, r2)) in enumerate(means.iterrows()):
        big, colour = method in (OURS, SOFT), _colour(str(method))
        spread = [reach_of(value, reach[t][:, column[method]])[:, None] for t, value in means.loc[method].items()]
        axes.errorbar(accuracy, r2, xerr=spread[0], yerr=spread[1], color=GREY, elinewidth=0.3, zorder=1)
        axes.scatter(accuracy, r2, s=50 if big else 20, color=colour, marker="s" if method == SOFT else "o", zorder=3)
        height = (k + 0.5) / len(means)
        axes.annotate(named(method), (accuracy, r2), (1.03, height), textcoords="axes fraction", va="center",
                      fontweight="bold" if big else "normal", annotation_clip=False,
                      arrowprops=leader | {"linewidth": 1 if big else 0.4, "color": colour})  # fmt: skip
    axes.set_xlabel("mean accuracy, classification")
    axes.set_ylabel("mean R2, regression")
    axes.set_title("bars: 95 %, bootstrap over datasets", fontsize=8)
    return figure


# -- supplementary figures --------------------------------------------------------------------------------------------


def pairwise_wins(summary: Summary) -> Figure:
    """S1: on how many datasets the row method beats the column method by more than .001."""
    table = summary.complete()
    wins = win_matrix(table, TOLERANCE)
    order = np.argsort(-wins.sum(axis=1))
    wins, names = wins[np.ix_(order, order)], [table.columns[j] for j in order]
    figure, axes = blank(NARROW, 4.8)
    axes.imshow(wins - wins.T, cmap="PuOr_r", vmin=-len(table), vmax=len(table))
    for i in range(len(names)):
        for j in range(len(names)):
            strong = abs(wins[i, j] - wins[j, i]) > 0.7 * len(table)
            text = "-" if i == j else str(wins[i, j])
            axes.text(j, i, text, ha="center", va="center", color="white" if strong else BLACK)
    _label(axes, names, names)
    axes.set_title(f"wins of the row over the column, of {len(table)} (purple: loses more often)")
    return figure


def distributions(summary: Summary) -> Figure:
    """S2: box plots of the scores over datasets; diamonds are means."""
    table = summary.complete()
    task = np.array(summary.groups(table.index)["task"])
    figure, axes = blank(NARROW, 6, rows=2)
    for ax, (kind, label) in zip(axes, (("classification", "accuracy"), ("regression", "R2"))):
        part = table[task == kind]
        if len(part):
            _boxes(ax, part)
        ax.set_title(f"{kind} ({len(part)} datasets)")
        ax.set_ylabel(label)
    return figure


def _boxes(axes: Axes, table) -> None:
    diamond = {"marker": "D", "markerfacecolor": "white", "markeredgecolor": BLACK, "markersize": 4}
    drawn = axes.boxplot(table.to_numpy(), showmeans=True, meanprops=diamond, patch_artist=True)
    for box, method in zip(drawn["boxes"], table.columns):
        box.set_facecolor(_colour(method))
    for line in drawn["medians"]:
        line.set_color(BLACK)
    axes.set_xticks(range(1, table.shape[1] + 1), map(named, table.columns), rotation=35, ha="right")
    _emphasise(axes.get_xticklabels())


# -- beyond the paper -------------------------------------------------------------------------------------------------


def changes(summary: Summary) -> Figure:
    """What each change adds to the paper's method: gain in score by dataset, and its mean."""
    table = summary.complete(CHANGES)
    gain = table.sub(table[SOFT], axis=0).drop(columns=SOFT)
    figure, axes = blank(NARROW, 2.8)
    interval = bootstrap(gain)
    spread = np.linspace(-0.18, 0.18, len(gain))
    for k, method in enumerate(gain.columns):
        axes.scatter(gain[method].clip(-0.1, 0.1), k + spread, s=9, color=GREY)
        axes.plot([gain[method].mean()] * 2, [k - 0.3, k + 0.3], color=RED, linewidth=2)
        axes.plot(interval[:, k], [k, k], color=RED, linewidth=1)
        text = f"{gain[method].mean():+.4f}\n({interval[0, k]:+.4f} to {interval[1, k]:+.4f})"
        axes.annotate(text, (0.108, k), va="center", annotation_clip=False, fontsize=6.5)
    axes.set_yticks(range(gain.shape[1]), list(gain.columns))
    axes.invert_yaxis()
    axes.axvline(0, color=BLACK, linewidth=0.8)
    axes.set_xlim(-0.105, 0.19)
    axes.set_xlabel(f"score minus that of {PAPERS} (cut at .1); mean and 95 %")
    return figure


def seconds(summary: Summary) -> Figure:
    """Seconds of one fit on one core against rows times columns."""
    figure, axes = blank(NARROW, 3.6)
    shown = {
        OURS: ("o", BLUE),
        SOFT: ("s", ORANGE),
        "CatBoost": ("^", GREEN),
        "Tuned MLP": ("v", PURPLE),
        "Deep MLP": ("x", BLACK),
    }
    for method, (marker, colour) in shown.items():
        if method in summary.scores.columns:
            spent = summary.mean("fit_seconds", method)
            size = [dataset(name).n * dataset(name).d for name in spent.index]
            axes.scatter(size, spent, marker=marker, s=18, color=colour, label=named(method))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rows times columns")
    axes.set_ylabel("seconds of one fit, one core")
    axes.legend(frameon=False)
    return figure


def paper_against_ours(summary: Summary) -> Figure:
    """The score that the paper prints against the one measured here, for its ten methods."""
    figure, axes = blank(4.6, 4.2)
    for method in summary.methods(FIELD[1:]):
        both = summary.scores[method].dropna()
        odd = method == "Best-of-3"  # defined as a maximum of three columns, printed as something else
        style: dict[str, Any] = {"marker": "x", "color": RED, "label": method} if odd else {"color": _colour(method)}
        axes.scatter(summary.paper.loc[both.index, method], both, s=12, **style)
    axes.axline((0, 0), slope=1, color=BLACK, linewidth=0.8)
    axes.set_xlabel("printed in the paper")
    axes.set_ylabel("measured here")
    axes.legend(frameon=False)
    return figure


RANKED = ("CatBoost", "Random Forest", "Gradient Boosting")  # with fewer methods there is nothing to rank


@dataclass(frozen=True)
class FigureRow:
    """A figure: its file, its number in the paper, the function, what the page says, and which methods it needs."""

    file: str
    number: str
    draw: Callable[[Summary], Figure]
    caption: str
    needs: tuple[str, ...] = RANKED


# fmt: off
FIGURES = (
    FigureRow("heatmap", "2a", heatmap, "Scores of all methods on all datasets.", ()),
    FigureRow("differences", "2b", differences, "The paper's method and ours against CatBoost, by dataset.",
              (SOFT, "CatBoost")),
    FigureRow("loss_differences", "-", loss_differences, "The same of log loss or RMSE.", (OURS, SOFT, "CatBoost")),
    FigureRow("mean_ranks", "2c", mean_ranks, "Mean ranks, and what Nemenyi's test cannot tell from the best."),
    FigureRow("rank_distribution", "3a", rank_distribution, "How often a method had which rank."),
    FigureRow("by_task", "3b", by_task, "First or tied within .001, by task."),
    FigureRow("by_size", "3c", by_size, "First or tied within .001, by number of rows; the six best methods."),
    FigureRow("trade_off", "4", trade_off, "Mean accuracy against mean R2."),
    FigureRow("some_weights", "5", some_weights, "Weights by family on six datasets; the score stands in brackets.",
              (SOFT, OURS)),
    FigureRow("pairwise_wins", "S1", pairwise_wins, "Wins of each method over each other."),
    FigureRow("distributions", "S2", distributions, "Scores over datasets."),
    FigureRow("all_weights", "S3", all_weights, "Weights by family of the paper's method on every dataset.", (SOFT,)),
    FigureRow("our_weights", "-", our_weights, "Weights by family of our defaults on every dataset.", (OURS,)),
    FigureRow("changes", "-", changes, "What exact weights, calibration, the guard and our library add.", CHANGES),
    FigureRow("seconds", "-", seconds, "Seconds of a fit.", ()),
    FigureRow("paper_against_ours", "-", paper_against_ours, "Printed scores against measured ones.", ("Best-of-3",)),
)
# fmt: on


def draw_all(summary: Summary, folder: Path) -> dict[str, Path]:
    """Write every figure whose methods have run as .svg; name -> path."""
    folder.mkdir(parents=True, exist_ok=True)
    ran = set(summary.scores.columns)
    drawn = {}
    for row in FIGURES:
        if set(row.needs) <= ran and len(summary.complete(row.needs)):
            drawn[row.file] = save_svg(partial(row.draw, summary), folder / f"{row.file}.svg")
    return drawn
