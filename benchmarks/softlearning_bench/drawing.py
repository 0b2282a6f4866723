"""How every figure is written: searchable text, the same bytes each time, readable on dark pages and small screens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, SKY, RED, YELLOW, GREY, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999", "#000000",
)  # fmt: skip
STYLE: dict[Any, Any] = {"font.size": 8, "svg.fonttype": "none", "axes.spines.top": False, "axes.spines.right": False}
NARROW = 5.6  # inches: letters stay readable when a telephone's 420 pixels show the whole width
DARK = "@media (prefers-color-scheme: dark) { #figure_1 { filter: invert(0.93) hue-rotate(180deg) } }"


def save_svg(draw: Callable[[], Figure], path: Path) -> Path:
    """Draw and write a figure; on a dark page its lightness is turned round, its hues stay."""
    with mpl.rc_context(STYLE | {"svg.hashsalt": path.stem}):
        FigureCanvasSVG(draw()).print_svg(path, metadata={"Date": None})
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('<style type="text/css">', f'<style type="text/css">{DARK}', 1), encoding="utf-8")
    return path


def blank(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """A figure and its axes: one, or an array of them."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)


def bootstrap(values, size: int = 2000) -> np.ndarray:
    """Means of rows drawn with replacement; their 2.5 and 97.5 % points by column, (2, k)."""
    values = np.asarray(values, dtype=float)
    drawn = np.random.default_rng(0).integers(0, len(values), (size, len(values)))
    return np.quantile(values[drawn].mean(axis=1), [0.025, 0.975], axis=0)


def reach_of(mean, interval) -> np.ndarray:
    """Distances of an interval from its centre, as error bars want them."""
    return np.maximum(np.abs(np.asarray(interval) - np.asarray(mean)), 0)
