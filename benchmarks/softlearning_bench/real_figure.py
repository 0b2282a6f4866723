"""The figure of the suite of real tables: every table against every rival, in the loss and in the score, with means."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from softlearning_bench.drawing import BLACK, BLUE, GREEN, GREY, NARROW, ORANGE, PURPLE, RED, SKY, blank, save_svg
from softlearning_bench.effects import differences, effects

MARKS = tuple(zip("osD^vPX", (ORANGE, GREEN, BLACK, BLUE, PURPLE, RED, SKY)))
SCORES = ("accuracy", "r2")
MEANS = {"loss": "mean of the losses", "accuracy": "mean accuracy", "r2": "mean R2"}


def draw(cells: pd.DataFrame, ours: str, rivals: list[str], path: Path) -> bool:
    """Write the figure; False when there is no rival."""
    if rivals:
        save_svg(lambda: figure_of(cells, ours, rivals), path)
    return bool(rivals)


def figure_of(cells: pd.DataFrame, ours: str, rivals: list[str]) -> Figure:
    """A line per table with a mark per rival, best first; below them the means over tables with their intervals."""
    found, gaps = effects(cells, ours), {rival: by_table(cells, ours, rival) for rival in rivals}
    names = rows_of(gaps[rivals[0]], found)
    figure, axes = blank(NARROW, (0.11 + 0.06 * len(rivals)) * len(names) + 1.1, columns=2)
    for k, rival in enumerate(rivals):
        marker, colour = MARKS[k % len(MARKS)]
        style = {"fmt": marker, "color": colour, "markersize": 3.2, "elinewidth": 0.6, "label": rival}
        shift = 0.8 * ((k + 0.5) / len(rivals) - 0.5)
        lines = pd.concat([gaps[rival], means_of(found[found["against"] == rival])])
        for panel, left in zip(axes, (True, False)):
            here = lines[(lines["metric"] == "loss") == left]
            if left:  # a ratio of losses instead of minus its logarithm
                mean, low, high = (np.exp(-here[name].astype(float)) for name in ("mean", "high", "low"))
            else:
                mean, low, high = (here[name].astype(float) for name in ("mean", "low", "high"))
            reach = np.maximum([mean - low, high - mean], 0)
            panel.errorbar(mean, [names.index(row) + shift for row in here["row"]], xerr=reach, **style)
    for panel in axes:
        frame(panel, names)
    axes[0].set(xscale="log", xlabel=f"loss of {ours} / of the rival\n(below 1: {ours} is better)")
    axes[1].set(xlabel="accuracy or R2, difference\n(above 0: it is better)", yticklabels=[])
    axes[0].axvline(1, color=BLACK, linewidth=0.8)
    axes[1].axvline(0, color=BLACK, linewidth=0.8)
    low, high = axes[0].get_xlim()
    axes[0].xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 30 else (1,)))
    axes[0].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes[0].xaxis.set_minor_formatter(NullFormatter())
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", frameon=False, ncols=3, fontsize=7)
    return figure


def by_table(cells: pd.DataFrame, ours: str, rival: str) -> pd.DataFrame:
    """Per table and metric the mean difference over splits, and the least and the most of them; positive is ours."""
    parts = [differences(cells, ours, rival, metric).assign(metric=metric) for metric in MEANS]
    lines = pd.concat([part for part in parts if len(part)])
    found = lines.groupby(["part", "table", "metric"], sort=False)["difference"].agg(["mean", "min", "max"])
    found = found.reset_index().rename(columns={"min": "low", "max": "high"})
    return found.assign(row=found["table"])


def means_of(found: pd.DataFrame) -> pd.DataFrame:
    """The means over tables with their 95 % intervals, as further rows."""
    found = found[found["metric"].isin(MEANS)]
    rows = [mean_row(part, metric) for part, metric in zip(found["part"], found["metric"])]
    return found[["part", "metric", "mean", "low", "high"]].assign(row=rows)


def mean_row(part: str, metric: str) -> str:
    return f"{part}: {MEANS[metric]}"


def rows_of(gaps: pd.DataFrame, found: pd.DataFrame) -> list[str]:
    """Tables part by part, the one with the lowest ratio of losses first, and the means of the part after them."""
    names: list[str] = []
    for part, lines in gaps[gaps["metric"] == "loss"].groupby("part"):
        names += list(lines.sort_values("mean", ascending=False)["row"])
        there = found[found["part"] == part]["metric"].unique()
        names += [mean_row(str(part), metric) for metric in MEANS if metric in there]
    return names


def frame(panel: Axes, names: list[str]) -> None:
    panel.set_yticks(range(len(names)), [name.replace("_", " ") for name in names], fontsize=7)
    panel.set_ylim(len(names) - 0.4, -0.6)
    for i, name in enumerate(names):
        if ": " in name:
            panel.axhspan(i - 0.5, i + 0.5, color=GREY, alpha=0.18, linewidth=0)
