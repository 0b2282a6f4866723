"""The figures of a report: from the summary to inline SVG, each with its sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from softlearning.report import svg, words
from softlearning.report.svg import Bar, Plane, Point, Series, short

Summary = dict[str, Any]
MOST_BARS = 25
MOST_COLUMNS = 15
LITTLE = 0.02  # weight that a specialist without any might have got; with less it has no bar
MOST_NAMES = 24  # of a heat map


@dataclass(frozen=True)
class Figure:
    """A picture, its title, and what it shows in plain words."""

    name: str
    title: str
    sentence: str
    svg: Markup


def draw_figures(summary: Summary) -> dict[str, Figure]:
    """Every figure that this model has numbers for, by name."""
    drawn = {}
    for name, (title, draw, sentence, wanted) in FIGURES.items():
        if wanted(summary):
            said = sentence(summary)
            drawn[name] = Figure(name, title, said, draw(summary, title, said))
    return drawn


def families(summary: Summary, title: str, about: str) -> Markup:
    lines = [Bar(f["family"], f["weight"], shown=f"{short(100 * f['weight'])} %") for f in summary["families"]]
    return svg.bars(lines, title, about)


def weights(summary: Summary, title: str, about: str) -> Markup:
    lines = [
        Bar(w["specialist"], w["weight"], w["low"], w["high"], f"{w['weight']:.3f}")
        for w in summary["weights"][:MOST_BARS]
        if w["weight"] > 0 or (w["high"] or 0) > LITTLE
    ]
    return svg.bars(lines, title, about)


def calibration(summary: Summary, title: str, about: str) -> Markup:
    points = [
        Point(b["stated"], b["value"], b["low"], b["high"], f"stated {b['stated']:.2f}, true {b['value']:.2f}")
        for b in summary["calibration"]["bins"]
    ]
    plane = Plane((0, 1), (0, 1), "stated probability", "how often it was true", (True, True))
    return svg.against_diagonal(points, plane, title, about)


def sharpness(summary: Summary, title: str, about: str) -> Markup:
    counts, edges = summary["calibration"]["counts"], summary["calibration"]["edges"]
    plane = Plane((0, 1), (0, max(counts) * 1.05), "stated probability", "rows", (True, False))
    return svg.columns(counts, edges, plane, title, about)


def confusion(summary: Summary, title: str, about: str) -> Markup:
    c = summary["confusion"]
    counts = c["counts"]
    strength = [[n / max(sum(row), 1) for n in row] for row in counts]
    off = [[-s if i != j else s for j, s in enumerate(row)] for i, row in enumerate(strength)]
    shown = [[f"{n:,}" if n else "" for n in row] for row in counts]
    return svg.heat(c["classes"], counts, shown, about, title=title, strength=off)


def scatter(summary: Summary, title: str, about: str) -> Markup:
    r = summary["residuals"]
    window = _window([*r["predicted"], *r["true"]])
    plane = Plane(window, window, "predicted", "true", height=300)
    return svg.scatter(r["predicted"], r["true"], plane, title, about)


def histogram(summary: Summary, title: str, about: str) -> Markup:
    r = summary["residuals"]
    plane = Plane((r["edges"][0], r["edges"][-1]), (0, max(r["counts"]) * 1.05), "error (true minus predicted)", "rows")
    return svg.columns(r["counts"], r["edges"], plane, title, about)


def disagreement(summary: Summary, title: str, about: str) -> Markup:
    errors = [b["error"] for b in summary["uncertainty"]["bins"]]
    edges = [k + 0.5 for k in range(len(errors) + 1)]
    name = "share of wrong rows" if summary["classes"] else "mean absolute error"
    across = "tenth of the rows, by rising disagreement"
    top = max(errors) * 1.05 or 1.0
    plane = Plane((0.5, len(errors) + 0.5), (0, top), across, name, (False, bool(summary["classes"])))
    return svg.columns(errors, edges, plane, title, about)


def risk_coverage(summary: Summary, title: str, about: str) -> Markup:
    u = summary["uncertainty"]
    series = [
        Series(f"surest first, by {words.MEASURES[key]}", m["coverage"], m["risk"], LINES[key])
        for key, m in u["measures"].items()
    ]
    top = max(u["all"], *u["best"], *(risk for s in series for risk in s.ys)) * 1.05 or 1.0
    series.append(Series("in random order", (0.05, 1), (u["all"], u["all"]), "reference"))
    series.append(Series("an oracle that knows the errors", u["grid"], u["best"], "faint"))
    name = "share of wrong rows among them" if summary["classes"] else "mean absolute error among them"
    plane = Plane((0, 1), (0, top), "share of rows answered", name, (True, bool(summary["classes"])))
    return svg.lines(series, plane, title, about)


LINES = {"disagreement": "line", "top_probability": "second"}  # measure -> class of its line


def coverage(summary: Summary, title: str, about: str) -> Markup:
    points = [
        Point(c["nominal"], c["value"], c["low"], c["high"], f"nominal {c['nominal']:.2f}, empirical {c['value']:.3f}")
        for c in summary["coverage"]
    ]
    least = min(0.45, *(p.low for p in points))
    plane = Plane((0.45, 1), (least, 1), "nominal coverage", "empirical coverage", (True, True))
    return svg.against_diagonal(points, plane, title, about)


def diversity(summary: Summary, title: str, about: str) -> Markup:
    names, cells = summary["diversity"]["names"][:MOST_NAMES], summary["diversity"]["correlation"]
    cells = [row[: len(names)] for row in cells[: len(names)]]
    shown = [[f"{v:.1f}" if i != j else "" for j, v in enumerate(row)] for i, row in enumerate(cells)]
    return svg.heat(names, cells, shown, about, title=title, strength=cells)


def importance(summary: Summary, title: str, about: str) -> Markup:
    lines = [
        Bar(c["column"], c["mean"], c["mean"] - c["std"], c["mean"] + c["std"], short(c["mean"]))
        for c in summary["importance"]["columns"][:MOST_COLUMNS]
    ]
    return svg.bars(lines, title, about)


def _window(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.03 * (high - low) or abs(low) or 1.0
    return low - margin, high + margin


def _has(*names: str):
    """Whether the summary has numbers under all these names."""
    return lambda summary: all(summary[name] for name in names)


FIGURES = {
    "families": ("Weight by family", families, words.families, _has("families")),
    "weights": ("Weight by specialist", weights, words.weights, _has("weights")),
    "calibration": ("Are the probabilities true?", calibration, words.calibration, _has("calibration")),
    "sharpness": ("How often is it sure?", sharpness, words.sharpness, _has("calibration")),
    "confusion": ("Which classes are confused?", confusion, words.confusion, _has("confusion")),
    "scatter": ("Predicted against true", scatter, words.scatter, _has("residuals")),
    "histogram": ("How large are the errors?", histogram, words.histogram, _has("residuals")),
    "disagreement": (
        "Does disagreement warn of errors?",
        disagreement,
        words.disagreement,
        lambda summary: bool(summary["uncertainty"] and summary["uncertainty"]["bins"]),
    ),
    "risk_coverage": ("What abstaining gains", risk_coverage, words.answering_half, _has("uncertainty")),
    "coverage": ("Is the nominal coverage reached?", coverage, words.coverage, _has("coverage")),
    "diversity": ("Do the specialists err together?", diversity, words.diversity, _has("diversity")),
    "importance": (
        "Which columns matter?",
        importance,
        words.importance,
        lambda summary: bool(summary["importance"] and summary["importance"]["columns"]),
    ),
}
