"""What the command prints: lines of text from the summary of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def model(summary: dict[str, Any]) -> list[str]:
    """Leaderboard, failures, gains and doubt, a blank line between them."""
    board = leaderboard(summary["leaderboard"], summary["answer"]["score_name"])
    parts = [board, failed(summary), answer(summary), doubt(summary)]
    return "\n\n".join("\n".join(part) for part in parts if part).splitlines()


def leaderboard(lines: Iterable[dict[str, Any]], score: str) -> list[str]:
    """Specialist, family, weight, cross-validated score, seconds and, where it is not ok, what became of it."""
    head = ("specialist", "family", "weight", f"cv {score}", "seconds", "")
    body = [
        (
            line["specialist"],
            line["family"],
            f"{line['weight']:.3f}" if line["weight"] else "-",
            _number(line["cv_score"], 4),
            _number(line["fit_seconds"], 1),
            "" if line["status"] == "ok" else line["status"],
        )
        for line in lines
    ]
    return columns([head, *body], right=(2, 3, 4))


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Cells padded to the width of their column."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    pad = [str.rjust if j in right else str.ljust for j in range(len(widths))]
    return ["  " + "  ".join(p(c, w) for p, c, w in zip(pad, row, widths)).rstrip() for row in rows]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def answer(summary: dict[str, Any]) -> list[str]:
    """How good, against what, how sure."""
    a = summary["answer"]
    lines = [
        f"Cross-validated {a['score_name']}: {_number(a['score'], 4)} "
        f"(95 % interval {_number(a['low'], 4)} to {_number(a['high'], 4)}), {a['folds']} folds",
        f"Gain of the blend in {a['loss_name']}, {a['loss']:.4g}:",
    ]
    head = ("against", a["score_name"], "loss", "gain", "")
    return lines + columns([head, *map(_comparison, summary["comparisons"])], right=(1, 2, 3))


def _comparison(line: dict[str, Any]) -> tuple[str, ...]:
    return (
        line["name"],
        _number(line["score"], 4),
        f"{line['loss']:.4g}",
        f"{100 * line['share']:+.1f} %",
        line["verdict"],
    )


def doubt(summary: dict[str, Any]) -> list[str]:
    """What the disagreement of the specialists tells, and whether promised coverage was kept."""
    lines, d = [], summary["doubt"]
    if d is None:
        lines.append("How sure: one specialist carries all the weight, so there is no disagreement to read.")
    else:
        lines.append(f"How sure: {doubt_sentence(summary)}")
    for c in summary["coverage"]:
        if c["wanted"] == 0.9:
            kept = f"{100 * c['observed']:.1f} %"
            lines.append(f"Promised 90 % of the truth inside, kept {kept}; {size_words(summary, c)}.")
    return lines


def doubt_sentence(summary: dict[str, Any]) -> str:
    """Error of the surest half of the rows against all."""
    d = summary["doubt"]
    half = min(range(len(d["coverage"])), key=lambda i: abs(d["coverage"][i] - 0.5))
    share = 100 * d["coverage"][half]
    if summary["classes"]:
        return (
            f"on the {share:.0f} % of rows where the specialists agree most, {100 * d['risk'][half]:.1f} % are wrong; "
            f"on all rows {100 * d['all']:.1f} %."
        )
    return (
        f"on the {share:.0f} % of rows where the specialists agree most, the mean absolute error is "
        f"{d['risk'][half]:.4g}; on all rows {d['all']:.4g}."
    )


def size_words(summary: dict[str, Any], line: dict[str, Any]) -> str:
    if line["size"] is None:
        return "too few rows for a finite width"
    return (
        f"{line['size']:.2f} classes a set on average" if summary["classes"] else f"{line['size']:.4g} wide on average"
    )


def failed(summary: dict[str, Any]) -> list[str]:
    """What failed and why; nothing when nothing did."""
    lines = [(f["specialist"], f["where"], f["why"]) for f in summary["failures"]]
    return ["Failed or left out:", *columns(lines)] if lines else []
