"""What the command prints: lines of text, at most 80 columns wide where names allow it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

from softlearning.data.messages import printable
from softlearning.evaluation.scoring import spoken
from softlearning.report import words

WIDTH = 80


def model(summary: dict[str, Any]) -> list[str]:
    """Leaderboard, failures, gains and uncertainty, a blank line between them."""
    aimed = summary.get("aim")
    board = leaderboard(summary["leaderboard"], (aimed and aimed["metric"]) or summary["answer"]["score_name"])
    said = wrap(printable(words.aim(summary)), WIDTH) if aimed else []
    parts = [board, failed(summary), answer(summary), said, uncertainty(summary)]
    return "\n\n".join("\n".join(part) for part in parts if part).splitlines()


def leaderboard(lines: Iterable[dict[str, Any]], score: str) -> list[str]:
    """Specialist, family, weight, cross-validated score and seconds."""
    head = ("specialist", "family", "weight", f"cv {score}", "cv loss", "seconds")
    body = [
        (
            line["specialist"],
            line["family"],
            f"{line['weight']:.3f}" if line["weight"] else "-",
            number(line["cv_score"]),
            f"{line['cv_risk']:.4g}",
            f"{line['fit_seconds']:.1f}",
        )
        for line in lines
    ]
    return columns([head, *body], right=(2, 3, 4, 5))


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Cells padded to the width of their column."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    pad = [str.rjust if j in right else str.ljust for j in range(len(widths))]
    return ["  " + "  ".join(p(c, w) for p, c, w in zip(pad, row, widths)).rstrip() for row in rows]


def number(value: float | None, sign: str = "") -> str:
    """Four decimals, or one where the value is in a large unit."""
    if value is None:
        return "-"
    return f"{value:{sign}.4f}" if abs(value) < 100 else f"{value:{sign},.1f}"


def answer(summary: dict[str, Any]) -> list[str]:
    """How good, against what, and what of it is proved."""
    head = ("against", summary["answer"]["score_name"], "loss", "gain", "")
    body = [
        (words.rival(key, c), number(c["score"]), f"{c['loss']:.4g}", f"{100 * c['share']:+.1f} %", words.verdict(c))
        for key, c in summary["comparisons"].items()
    ]
    a = summary["answer"]
    return [
        *wrap(words.headline(summary), WIDTH),
        "",
        f"Gain of the blend in {a['loss_name']} ({a['loss']:.4g}), {a['folds']} folds:",
        *columns([head, *body], right=(1, 2, 3)),
        *wrap(words.certainty(summary), WIDTH),
    ]


def uncertainty(summary: dict[str, Any]) -> list[str]:
    """What the measures of uncertainty tell, and the empirical coverage."""
    said = [words.answering_half(summary)] if summary["uncertainty"] else []
    said += [words.coverage(summary)] if summary["coverage"] else []
    return [line for sentence in said for line in wrap(sentence, WIDTH)]


def failed(summary: dict[str, Any]) -> list[str]:
    """What failed or was skipped, and why; nothing when nothing did."""
    said = (printable(f"  {f['specialist']} {f['what']}: {f['why']}") for f in summary["failures"])
    lines = [line for text in said for line in wrap(text, WIDTH, subsequent_indent="    ")]
    return ["Failed or skipped:", *lines] if lines else []


def scores(found: Any) -> list[str]:
    """Metrics with intervals of an `Evaluation`, one line per metric; losses as losses."""
    title = f"Scored on {int(found.folds['rows'].sum())} rows:"
    rows = [("", "score", "95 % interval")]
    for line in found.scores.itertuples():
        name, sign = spoken(line.metric)
        low, high = sorted((sign * line.low, sign * line.high))
        rows.append((name, number(sign * line.score), f"{number(low)} to {number(high)}"))
    return [title, *columns(rows, right=(1,))]


def differences(found: Any, names: dict[str, str]) -> list[str]:
    """Two models on the same rows: each metric of both, and their difference with its interval."""
    first, second = names
    titles = [f"{key}: {printable(name)}" for key, name in names.items()]
    rows = [("", first, second, f"{first} minus {second} (95 %)", "")]
    scores = found.scores.set_index(["metric", "candidate"])["score"]
    for d in found.differences.itertuples():
        name, sign = spoken(d.metric)
        span = " to ".join(number(end, "+") for end in sorted((sign * d.low, sign * d.high)))
        ours, theirs = (number(sign * scores[d.metric, key]) for key in names)
        verdict = d.verdict if d.verdict == "no clear difference" else f"{first} is {d.verdict}"
        rows.append((name, ours, theirs, span, verdict))
    return [f"Scored on {int(found.folds['rows'].sum())} rows.", *titles, *columns(rows, right=(1, 2, 3))]
