"""A model card: what was learnt from, how it was measured, with which versions, and for whom it is not."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from softlearning.data.messages import printable_lines
from softlearning.data.versions import versions

FEW = 30  # rows of a class below which its answers are not to be relied on


def model_card(model: Any, path: Path | None = None) -> str:
    """One page of Markdown about a fitted model; `path` is its file, whose date is told."""
    record, training = model.record_, model.record_.training
    name = code(training.target_name) if training.target_name else "the target"
    parts = [
        f"# A model of {name}",
        f"{type(model).__name__}: {record.task} of {name} by a blend of {len(model.specialists_)} specialists. "
        f"{model.verdict_[:1].upper()}{model.verdict_[1:]}.",
        _section("Learnt from", [*columns(model.table_), *_dates(path), *_rows(training)]),
        _section("Measured", measured(model)),
        _section("How it answers", answers(model)),
        "## Specialists\n\n" + specialists(model),
        _section("Not for", not_for(model)),
        _section("Made with", [", ".join(f"{package} {number}" for package, number in versions().items()) + "."]),
    ]
    return printable_lines("\n\n".join(parts)) + "\n"


def code(text: Any) -> str:
    """A name from the user, as Markdown shows it without reading it."""
    plain = " ".join(str(text).split())
    marks = _longer_than_any(plain, 1)
    return f"{marks} {plain} {marks}" if "`" in plain else f"`{plain}`"


def columns(table: str) -> list[str]:
    """What was understood of the table: a sentence, and the columns as they are laid out."""
    sentence, *lines = table.splitlines()
    marks = _longer_than_any(table, 3)
    return [f"{sentence}.", "\n".join([f"{marks}text", *lines, marks]) if lines else ""]


def _longer_than_any(text: str, least: int) -> str:
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def _section(title: str, lines: list[str]) -> str:
    return f"## {title}\n\n" + "\n\n".join(line for line in lines if line)


def _dates(path: Path | None) -> list[str]:
    if path is None:
        return []
    return [f"Saved {datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d %H:%M} UTC as {code(path.name)}."]


def _rows(training: Any) -> list[str]:
    weighted = "" if training.weight is None else " Rows count by weights."
    groups = "" if training.groups is None else f" Rows come in {len(np.unique(training.groups))} groups."
    return [f"{training.rows:,} rows.{weighted}{groups}"]


def measured(model: Any) -> list[str]:
    """The score on held-out rows, with its interval, and what the interval is about."""
    if model.record_.crossed.oof is None:
        return [f"Held-out {model.record_.loss} loss {model.cv_risk_:.4g}; the predictions behind it were not kept."]
    held, folds = model.cv_score_, len(model.record_.crossed.splits)
    return [
        f"{held['metric']}: {held['score']:.4g} (95 % interval {held['low']:.4g} to {held['high']:.4g}) and "
        f"{model.record_.loss} loss {model.cv_risk_:.4g}, on rows that {folds} folds held out: no specialist, weight "
        "or threshold had seen them.",
        getattr(model, "aim_", "") and f"Aim: {model.aim_}.",
    ]


def answers(model: Any) -> list[str]:
    """What comes out, and how labels are decided."""
    if model.record_.task == "regression":
        return ["A number, the disagreement among the specialists, and intervals with a nominal coverage."]
    classes = ", ".join(code(label) for label in model.classes_[:20])
    more = f" and {len(model.classes_) - 20} more" if len(model.classes_) > 20 else ""
    rule = getattr(model, "decision_", None)
    how = "The label is the most probable class." if rule is None else f"The label is decided by {rule.words}."
    if rule is not None and rule.threshold is not None:
        how = f"{code(model.classes_[1])} is answered from a probability of {rule.threshold:.3g} on ({rule.words})."
    return [f"Probabilities of {classes}{more}. {how}"]


def specialists(model: Any) -> str:
    """The specialists with weight, as a table."""
    board = model.leaderboard_[model.leaderboard_["weight"] > 0]
    cell = lambda text: code(text).replace("|", r"\|")
    lines = [
        f"| {cell(b.specialist)} | {cell(b.family)} | {b.weight:.3f} | {b.cv_risk:.4g} |" for b in board.itertuples()
    ]
    return "\n".join(["| specialist | family | weight | held-out loss alone |", "| --- | --- | --- | --- |", *lines])


def not_for(model: Any) -> list[str]:
    """What the training rows cannot speak for."""
    training = model.record_.training
    lines = ["Rows drawn in another way than those it learnt from; what a column causes; decisions on people without "
             "a check of how errors fall on them (`error_slices` tells where they are more frequent)."]  # fmt: skip
    if model.record_.task == "classification":
        counts = training.target.sum(axis=0)
        rare = [f"{code(label)} ({int(n)} rows)" for label, n in zip(model.classes_, counts) if n < FEW]
        lines.append(f"Classes seen too rarely to rely on: {', '.join(rare)}." if rare else "")
    ranges = [f"{code(c.name)} {c.low:.4g} to {c.high:.4g}" for c in training.schema.kept if c.low is not None][:12]
    lines.append(f"Numbers outside of what was seen: {', '.join(ranges)}." if ranges else "")
    return lines
