"""Figures of weights by family: level 1 stacked, level 2 apart from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
    YELLOW,
    blank,
)  # fmt: skip
from softlearning_bench.summary import OURS, SOFT, Summary

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
REPRESENTATIVE = (
    "C09_house_price",
    "C05_energy",
    "C01_friedman1",
    "C07_large_regression",
    "B08_hastie",
    "A04_digits",
)


PAPERS = f"{SOFT} (paper)"  # one letter apart from our name in a small figure is too near


def named(method: object) -> str:
    """How a method is called in a figure."""
    return PAPERS if method == SOFT else "level 2 (stackers)" if method == "stacker" else str(method)


def short(name: str) -> str:
    """A01_iris -> A01 iris"""
    return name.replace("_", " ")


LEVEL_2_AT = 1.1  # where the bars of stackers begin


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
        apart = LEVEL_2_AT if family == "stacker" else left
        axes.barh(range(len(table)), share, 0.75, left=apart, label=named(family), **style)
        left += 0 if family == "stacker" else share
    axes.set_yticks(range(len(table)), names)
    axes.invert_yaxis()
    if "stacker" in table:
        axes.axvline((1 + LEVEL_2_AT) / 2, color=GREY, linestyle=":", linewidth=0.8)
        axes.set_xticks([0, 0.5, 1, LEVEL_2_AT, LEVEL_2_AT + 0.5, LEVEL_2_AT + 1], ["0", ".5", "1", "0", ".5", "1"])
    axes.set_xlim(0, LEVEL_2_AT + 1 if "stacker" in table else 1)
    axes.set_xlabel("weight of level 1, by family; level 2 apart" if "stacker" in table else "weight")


def some_weights(summary: Summary) -> Figure:
    """5: weights by family on six representative datasets, the paper's method beside ours."""
    figure, axes = blank(NARROW, 4.4, rows=2)
    for ax, method in zip(axes, (SOFT, OURS)):
        table = summary.family_weights(method)
        table = table.loc[[name for name in REPRESENTATIVE if name in table.index]]
        scores = summary.scores[method]
        _stacked_weights(ax, table, [f"{short(name)} ({scores[name]:.3f})" for name in table.index])
        ax.set_title(named(method))
    figure.legend(*_family_legend(figure), loc="outside lower center", ncols=4, frameon=False)
    return figure


def _family_legend(figure: Figure) -> tuple[list, list]:
    found = {label: handle for ax in figure.axes for handle, label in zip(*ax.get_legend_handles_labels())}
    names = [named(family) for family in FAMILY_COLOUR if named(family) in found]
    return [found[name] for name in names], names


def all_weights(summary: Summary, method: str = SOFT) -> Figure:
    """S3: weights by family on every dataset."""
    table = summary.family_weights(method)
    figure, axes = blank(NARROW, 0.21 * len(table) + 1)
    scores = summary.scores[method]
    _stacked_weights(axes, table, [f"{short(name)} ({scores[name]:.3f})" for name in table.index])
    tasks = [dataset(name).task for name in table.index]
    axes.axhline(tasks.count("classification") - 0.5, color=BLACK, linestyle="--", linewidth=1)
    axes.set_title(named(method))
    figure.legend(*_family_legend(figure), loc="outside lower center", ncols=4, frameon=False)
    return figure


def our_weights(summary: Summary) -> Figure:
    """S3 for our defaults."""
    return all_weights(summary, OURS)
