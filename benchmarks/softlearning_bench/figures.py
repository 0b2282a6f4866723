"""The figures of the paper, drawn from the table of results.

Each function takes a Summary and returns a matplotlib Figure; FIGURES lists them with their number in the paper and
what they show. Colours are those of Okabe and Ito, which the colour-blind tell apart; no figure needs colour alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from softlearning_bench.datasets import dataset
from softlearning_bench.significance import breakdown, friedman, nemenyi_distance, places, ranks, win_matrix
from softlearning_bench.summary import CHANGES, FIELD, OURS, SOFT, TOLERANCE, Summary, mean_by_task

BLUE, ORANGE, GREEN, PURPLE, SKY, RED, YELLOW, GREY, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999", "#000000",
)  # fmt: skip
FAMILY_COLOUR = {
    "linear": BLUE,
    "instance": SKY,
    "tree": GREEN,
    "kernel": PURPLE,
    "neural": ORANGE,
    "complementary": YELLOW,
    "stacker": RED,
    "baseline": GREY,
}
HATCH = dict(zip(FAMILY_COLOUR, ("", "//", "", "xx", "..", "\\\\", "", "--")))
STYLE: dict[Any, Any] = {"font.size": 8, "svg.fonttype": "none", "axes.spines.top": False, "axes.spines.right": False}
REPRESENTATIVE = (
    "C09_house_price",
    "C05_energy",
    "C01_friedman1",
    "C07_large_regression",
    "B08_hastie",
    "A04_digits",
)


def _axes(width: float, height: float, columns: int = 1) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns)


def _short(name: str) -> str:
    """A01_iris -> A01 iris"""
    return name.replace("_", " ")


def _colour(method: str) -> str:
    return {OURS: BLUE, SOFT: ORANGE}.get(method, GREY)


def _emphasise(labels) -> None:
    """Our row and the paper's are bold: the eye finds them without colour."""
    for label in labels:
        label.set_fontweight("bold" if label.get_text() in (OURS, SOFT) else "normal")


# -- Figure 2 ---------------------------------------------------------------------------------------------------------


def heatmap(summary: Summary) -> Figure:
    """2a: score of every method on every dataset; the best of a row (within .001) is framed and bold."""
    table = summary.scores[summary.methods()]
    figure, axes = _axes(9, 0.24 * len(table) + 1.2)
    behind = table.rsub(table.max(axis=1), axis=0).clip(upper=0.2)
    axes.imshow(behind, cmap="Blues", aspect="auto", vmin=0, vmax=0.25)
    for i, (_, row) in enumerate(table.iterrows()):
        for j, value in enumerate(row):
            _cell(axes, i, j, value, best=value >= row.max() - TOLERANCE - 1e-9, dark=behind.iloc[i, j] > 0.12)
    _label(axes, [_short(name) for name in table.index], list(table.columns))
    tasks = [dataset(name).task for name in table.index]
    axes.axhline(tasks.count("classification") - 0.5, color=BLACK, linestyle="--", linewidth=1)
    axes.set_title("Accuracy or R2; shade: how far behind the best of the row (darkest: .2 or more)")
    return figure


def _cell(axes: Axes, i: int, j: int, value: float, best: bool, dark: bool) -> None:
    text = "-" if np.isnan(value) else f"{value:.3f}"
    weight = "bold" if best else "normal"
    axes.text(j, i, text, ha="center", va="center", fontsize=6.5, color="white" if dark else BLACK, fontweight=weight)
    if best:
        axes.add_patch(mpl.patches.Rectangle((j - 0.47, i - 0.45), 0.94, 0.9, fill=False, edgecolor=RED, linewidth=1))


def _label(axes: Axes, rows: list[str], columns: list[str]) -> None:
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(range(len(columns)), columns, rotation=35, ha="right")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    _emphasise([*axes.get_xticklabels(), *axes.get_yticklabels()])


def differences(summary: Summary, rival: str = "CatBoost") -> Figure:
    """2b: by dataset, how far the paper's method and ours lie above or below CatBoost."""
    methods = summary.methods((OURS, SOFT))
    table = summary.complete([*methods, rival])
    gain = table[methods].sub(table[rival], axis=0).sort_values(methods[0])
    figure, axes = _axes(6, 0.22 * len(gain) + 1)
    height, y = 0.8 / len(methods), np.arange(len(gain))
    for k, method in enumerate(methods):
        hatch = "" if method == OURS else "///"
        axes.barh(
            y + k * height,
            gain[method],
            height,
            color=_colour(method),
            hatch=hatch,
            label=method,
            edgecolor=BLACK,
            linewidth=0.3,
        )
    axes.set_yticks(y + 0.4 - height / 2, [_short(name) for name in gain.index])
    axes.axvline(0, color=BLACK, linewidth=0.8)
    axes.set_xlabel(f"score minus that of {rival}")
    axes.legend(loc="lower right", frameon=False)
    return figure


def mean_ranks(summary: Summary) -> Figure:
    """2c: mean ranks with the zone in which Nemenyi's test sees no difference from the best."""
    table = summary.complete()
    outcome = friedman(table)
    order = np.argsort(outcome.mean_ranks)
    distance = nemenyi_distance(table.shape[1], len(table))
    best = outcome.mean_ranks[order[0]]
    figure, axes = _axes(6, 3)
    axes.axvspan(best, best + distance, color=SKY, alpha=0.3, label=f"within {distance:.2f} of the best (Nemenyi, 5 %)")
    names = [table.columns[j] for j in order]
    axes.scatter(outcome.mean_ranks[order], range(len(order)), color=[_colour(name) for name in names], zorder=3)
    for i, j in enumerate(order):
        axes.annotate(f"{outcome.mean_ranks[j]:.2f}", (outcome.mean_ranks[j], i), (6, -3), textcoords="offset points")
    axes.set_yticks(range(len(order)), names)
    axes.invert_yaxis()
    axes.set_xlabel(f"mean rank over {len(table)} datasets (1 is best)")
    axes.set_title(f"Friedman chi2 = {outcome.ties_corrected:.2f}, p = {outcome.p:.2g}")
    axes.legend(frameon=False, loc="upper right")
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
    figure, axes = _axes(6.5, 0.32 * k + 1)
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
    figure, axes = _axes(6.5, 2.8)
    width = 0.8 / len(parts)
    for k, (part, found) in enumerate(parts.items()):
        share = [100 * found[j].first / found[j].datasets for j in order]
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
        )
    axes.set_xticks(np.arange(len(order)) + 0.4 - width / 2, [table.columns[j] for j in order], rotation=30, ha="right")
    axes.set_ylabel("first or tied, % of datasets")
    axes.legend(frameon=False)
    _emphasise(axes.get_xticklabels())
    return figure


def by_task(summary: Summary) -> Figure:
    return first_places(summary, "task")


def by_size(summary: Summary) -> Figure:
    return first_places(summary, "size")


# -- Figures 4 and 5 --------------------------------------------------------------------------------------------------


def trade_off(summary: Summary) -> Figure:
    """4: mean accuracy against mean R2, one point a method."""
    means = mean_by_task(summary.complete()).dropna()
    figure, axes = _axes(5, 4)
    for method, (accuracy, r2) in means.iterrows():
        big = method in (OURS, SOFT)
        axes.scatter(accuracy, r2, s=70 if big else 25, color=_colour(str(method)), zorder=3)
        beside = {"xytext": (-7, 4), "ha": "right"} if method == SOFT else {"xytext": (5, 4)}  # the two lie close
        weight = "bold" if big else "normal"
        axes.annotate(str(method), (accuracy, r2), textcoords="offset points", fontweight=weight, **beside)
    for method in means.index.intersection([OURS]):
        axes.axvline(means.loc[method, "classification"], color=GREY, linestyle=":", zorder=1)
        axes.axhline(means.loc[method, "regression"], color=GREY, linestyle=":", zorder=1)
    axes.margins(x=0.2, y=0.1)
    axes.set_xlabel("mean accuracy, classification")
    axes.set_ylabel("mean R2, regression")
    return figure


def _stacked_weights(axes: Axes, table, names: list[str]) -> None:
    left = np.zeros(len(table))
    for family in table.columns:
        share = table[family].fillna(0).to_numpy()
        style: dict[str, Any] = {
            "color": FAMILY_COLOUR[family],
            "hatch": HATCH[family],
            "edgecolor": BLACK,
            "linewidth": 0.3,
        }
        axes.barh(range(len(table)), share, 0.75, left=left, label=family, **style)
        left += share
    axes.set_yticks(range(len(table)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("weight")


def some_weights(summary: Summary) -> Figure:
    """5: weights by family on six representative datasets, the paper's method beside ours."""
    figure, axes = _axes(9, 2.8, columns=2)
    for ax, method in zip(axes, (SOFT, OURS)):
        table = summary.family_weights(method)
        table = table.loc[[name for name in REPRESENTATIVE if name in table.index]]
        scores = summary.scores[method]
        _stacked_weights(ax, table, [f"{_short(name)} ({scores[name]:.3f})" for name in table.index])
        ax.set_title(method)
    figure.legend(*_family_legend(figure), loc="outside lower center", ncols=8, frameon=False)
    return figure


def _family_legend(figure: Figure) -> tuple[list, list]:
    found = {label: handle for ax in figure.axes for handle, label in zip(*ax.get_legend_handles_labels())}
    names = [family for family in FAMILY_COLOUR if family in found]
    return [found[name] for name in names], names


# -- supplementary figures --------------------------------------------------------------------------------------------


def pairwise_wins(summary: Summary) -> Figure:
    """S1: on how many datasets the row method beats the column method by more than .001."""
    table = summary.complete()
    wins = win_matrix(table, TOLERANCE)
    order = np.argsort(-wins.sum(axis=1))
    wins, names = wins[np.ix_(order, order)], [table.columns[j] for j in order]
    figure, axes = _axes(6.5, 5)
    axes.imshow(wins - wins.T, cmap="PuOr_r", vmin=-len(table), vmax=len(table))
    for i in range(len(names)):
        for j in range(len(names)):
            strong = abs(wins[i, j] - wins[j, i]) > 0.7 * len(table)
            text = "-" if i == j else str(wins[i, j])
            axes.text(j, i, text, ha="center", va="center", color="white" if strong else BLACK)
    _label(axes, names, names)
    axes.set_title(f"wins of the row over the column, of {len(table)} (purple: the row loses more often)")
    return figure


def distributions(summary: Summary) -> Figure:
    """S2: box plots of the scores over datasets; diamonds are means."""
    table = summary.complete()
    task = np.array(summary.groups(table.index)["task"])
    figure, axes = _axes(9, 3.6, columns=2)
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
    axes.set_xticks(range(1, table.shape[1] + 1), list(table.columns), rotation=35, ha="right")
    _emphasise(axes.get_xticklabels())


def all_weights(summary: Summary, method: str = SOFT) -> Figure:
    """S3: weights by family on every dataset."""
    table = summary.family_weights(method)
    figure, axes = _axes(6.5, 0.21 * len(table) + 1)
    scores = summary.scores[method]
    _stacked_weights(axes, table, [f"{_short(name)} ({scores[name]:.3f})" for name in table.index])
    tasks = [dataset(name).task for name in table.index]
    axes.axhline(tasks.count("classification") - 0.5, color=BLACK, linestyle="--", linewidth=1)
    axes.set_title(method)
    figure.legend(*_family_legend(figure), loc="outside lower center", ncols=4, frameon=False)
    return figure


def our_weights(summary: Summary) -> Figure:
    """S3 for our defaults."""
    return all_weights(summary, OURS)


# -- beyond the paper -------------------------------------------------------------------------------------------------


def changes(summary: Summary) -> Figure:
    """What each change adds to the paper's method: gain in score by dataset, and its mean."""
    table = summary.complete(CHANGES)
    gain = table.sub(table[SOFT], axis=0).drop(columns=SOFT)
    figure, axes = _axes(6.5, 2.6)
    spread = np.linspace(-0.18, 0.18, len(gain))
    for k, method in enumerate(gain.columns):
        axes.scatter(gain[method].clip(-0.1, 0.1), k + spread, s=9, color=GREY)
        axes.plot([gain[method].mean()] * 2, [k - 0.3, k + 0.3], color=RED, linewidth=2)
        axes.annotate(f"{gain[method].mean():+.4f}", (0.108, k), va="center", annotation_clip=False)
    axes.set_yticks(range(gain.shape[1]), list(gain.columns))
    axes.invert_yaxis()
    axes.axvline(0, color=BLACK, linewidth=0.8)
    axes.set_xlim(-0.105, 0.135)
    axes.set_xlabel(f"score minus that of {SOFT} (cut at .1); the line and the number are the mean")
    return figure


def seconds(summary: Summary) -> Figure:
    """Seconds of one fit on one core against rows times columns."""
    figure, axes = _axes(6, 3.6)
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
            axes.scatter(size, spent, marker=marker, s=18, color=colour, label=method)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rows times columns")
    axes.set_ylabel("seconds of one fit, one core")
    axes.legend(frameon=False)
    return figure


def paper_against_ours(summary: Summary) -> Figure:
    """The score that the paper prints against the one measured here, for its ten methods."""
    figure, axes = _axes(4.6, 4.2)
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
            with mpl.rc_context(STYLE | {"svg.hashsalt": row.file}):
                drawn[row.file] = folder / f"{row.file}.svg"
                row.draw(summary).savefig(drawn[row.file], metadata={"Date": None})
    return drawn
