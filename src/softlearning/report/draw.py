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
    for number, line in enumerate(summary["along"]):
        for figure in (dependence(summary, line, f"answer_{number}"), errors(summary, line, f"error_{number}")):
            drawn[figure.name] = figure
    return drawn


def dependence(summary: Summary, line: dict[str, Any], name: str) -> Figure:
    """What the blend answers when one column is set to each of some values."""
    title, said = f"The answer along {words.name(line['column'])}", words.dependence(summary, line)
    parts, share = line["parts"], bool(summary["classes"])
    if not line["number"]:
        shown = [Bar(p["name"], p["answer"], shown=words.percent(p["answer"], 0) if share else "") for p in parts]
        return Figure(name, title, said, svg.bars(shown, title, said))
    xs, ys = [p["at"] for p in parts], [p["answer"] for p in parts]
    plane = Plane(_window(xs), (0, 1) if share else _window(ys), line["column"], "mean answer", (False, share))
    points = [Point(x, y, y, y, f"{short(x)}: {short(y)}") for x, y in zip(xs, ys)]
    return Figure(name, title, said, svg.lines([Series("mean over rows", xs, ys, "line")], plane, title, said, points))


def errors(summary: Summary, line: dict[str, Any], name: str) -> Figure:
    """Where along a column the model errs."""
    title, said = f"Errors along {words.name(line['column'])}", words.errors_along(summary, line)
    parts, share = line["parts"], bool(summary["classes"])
    low, high = [p["low"] for p in parts], [p["high"] for p in parts]
    if not line["number"]:
        shown = [
            Bar(p["name"], p["error"], a, b, words.percent(p["error"], 0) if share else "")
            for p, a, b in zip(parts, low, high)
        ]
        return Figure(name, title, said, svg.bars(shown, title, said))
    xs = [p["at"] for p in parts]
    points = [Point(x, p["error"], a, b, f"{p['rows']} rows") for x, p, a, b in zip(xs, parts, low, high)]
    middle = summary["uncertainty"]["all"] if share and summary["uncertainty"] else 0.0
    plane = Plane(
        _window(xs), _window([0.0, middle, *low, *high]), line["column"],
        "share of wrong rows" if share else "true minus predicted", (False, share),
    )  # fmt: skip
    reference = Series("all held-out rows" if share else "no error on average", plane.x, (middle, middle), "reference")
    return Figure(name, title, said, svg.lines([reference], plane, title, said, points))


def roc(summary: Summary, title: str, about: str) -> Markup:
    r, c = summary["ranking"], summary["ranking"]["chosen"]
    plane = Plane((0, 1), (0, 1), "false alarms among the others", "found (recall)", (True, True))
    chosen = Point(c["fall_out"], c["recall"], c["recall"], c["recall"], f"threshold {r['threshold']:.2f}")
    series = [Series("blend", r["roc"]["x"], r["roc"]["y"], "line"), Series("chance", (0, 1), (0, 1), "reference")]
    return svg.lines(series, plane, title, about, [chosen])


def precision_recall(summary: Summary, title: str, about: str) -> Markup:
    r, c = summary["ranking"], summary["ranking"]["chosen"]
    plane = Plane((0, 1), (0, 1), "found (recall)", "right among those named (precision)", (True, True))
    chosen = Point(c["recall"], c["precision"], c["precision"], c["precision"], f"threshold {r['threshold']:.2f}")
    curve, base = r["precision_recall"], r["prevalence"]
    series = [Series("blend", curve["x"], curve["y"], "line"), Series("chance", (0, 1), (base, base), "reference")]
    return svg.lines(series, plane, title, about, [chosen])


def times(summary: Summary, title: str, about: str) -> Markup:
    lines = [Bar(t["specialist"], t["folds"] + t["final"], shown=f"{t['folds'] + t['final']:.1f} s")
             for t in summary["times"][:MOST_COLUMNS]]  # fmt: skip
    return svg.bars(lines, title, about)


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
    return svg.heat(c["classes"], counts, shown, about, title=title, strength=off, axes=("truth", "answer"))


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
        Bar(c["column"], c["mean"], c["mean"] - 2 * c["error"], c["mean"] + 2 * c["error"], short(c["mean"]))
        for c in summary["importance"]["columns"][:MOST_COLUMNS]
    ]
    return svg.bars(lines, title, about)


def learning(summary: Summary, title: str, about: str) -> Markup:
    lines = summary["learning"]["points"]
    points = [
        Point(p["rows"], p["value"], p["low"], p["high"], f"{p['rows']:,} rows: {short(p['value'])}") for p in lines
    ]
    xs, ys = [p.x for p in points], [p.y for p in points]
    plane = Plane((0, 1.03 * xs[-1]), (0, 1.05 * max(p.high for p in points)), "rows to learn from",
                  f"held-out loss ({summary['answer']['loss_name']})")  # fmt: skip
    return svg.lines([Series("mean over rows", xs, ys, "line")], plane, title, about, points)


def _window(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.03 * (high - low) or abs(low) or 1.0
    return low - margin, high + margin


def _has(name: str, part: str = ""):
    """Whether the summary has numbers under this name, and in this part of it."""
    return lambda summary: bool(summary[name] and (not part or summary[name][part]))


FIGURES = {
    "families": ("Weight by family", families, words.families, _has("families")),
    "weights": ("Weight by specialist", weights, words.weights, _has("weights")),
    "calibration": ("Are the probabilities true?", calibration, words.calibration, _has("calibration")),
    "sharpness": ("How often is it sure?", sharpness, words.sharpness, _has("calibration")),
    "confusion": ("Which classes are confused?", confusion, words.confusion, _has("confusion")),
    "roc": ("Found against false alarms (ROC)", roc, words.roc, _has("ranking")),
    "precision_recall": ("Precision against recall", precision_recall, words.precision_recall, _has("ranking")),
    "scatter": ("Predicted against true", scatter, words.scatter, _has("residuals")),
    "histogram": ("How large are the errors?", histogram, words.histogram, _has("residuals")),
    "disagreement": (
        "Does disagreement warn of errors?",
        disagreement,
        words.disagreement,
        _has("uncertainty", "bins"),
    ),
    "risk_coverage": ("What abstaining gains", risk_coverage, words.answering_half, _has("uncertainty")),
    "coverage": ("Is the nominal coverage reached?", coverage, words.coverage, _has("coverage")),
    "diversity": ("Do the specialists err together?", diversity, words.diversity, _has("diversity")),
    "learning": ("Is more data worth it?", learning, words.learning, _has("learning", "points")),
    "times": ("Where the time went", times, words.times, _has("times")),
    "importance": ("Which columns matter?", importance, words.importance, _has("importance", "columns")),
}
