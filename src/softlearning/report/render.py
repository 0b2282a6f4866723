"""The page of a model, or of two: one file of HTML that needs no network.

Its one script copies tables; the policy in the page allows this script, by its hash, and no other.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from softlearning.data.files import whole_file
from softlearning.report import words
from softlearning.report.draw import draw_figures
from softlearning.report.summarise import summarise_model
from softlearning.report.svg import clean, short

MOST_DETAILS = 200  # columns of the table that are listed
SIDE_BY_SIDE = (
    "calibration", "confusion", "roc", "precision_recall", "scatter", "histogram", "risk_coverage", "coverage",
    "importance", "learning", "times",
)  # fmt: skip


def report_model(model, path: str | Path, X=None, y=None, **asked: Any) -> Path:
    """Write the page of a fitted model; what else is asked goes to `summarise_model`."""
    return write_page(summarise_model(model, X=X, y=y, **asked), path)


def write_page(summary: dict[str, Any], path: str | Path) -> Path:
    """Write the page of a summary, whole or not at all."""
    return _write(to_html(summary), path)


def write_comparison(summaries: Sequence[dict[str, Any]], names: Sequence[str], path: str | Path) -> Path:
    """Write the page that sets two models side by side; names are those of their files."""
    return _write(compared(summaries, names), path)


def _write(page: str, path: str | Path) -> Path:
    with whole_file(path) as part:
        part.write_text(page, encoding="utf-8")
    return Path(path)


def to_html(summary: dict[str, Any]) -> str:
    """The page of one model as text."""
    safe = cleaned(summary)
    return _render("model.html", s=safe, figures=draw_figures(safe), most=MOST_DETAILS)


def compared(summaries: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    """The page of two models as text."""
    safe = [cleaned(summary) for summary in summaries]
    if safe[0]["task"] != safe[1]["task"]:
        raise ValueError(
            f"one model is a {safe[0]['task']}, the other a {safe[1]['task']}: they have nothing to compare"
        )
    weights = [{w["specialist"]: w["weight"] for w in s["weights"]} for s in safe]
    heaviest = sorted(set().union(*weights), key=lambda n: (-max(w.get(n, 0.0) for w in weights), n))
    settings = [s["provenance"]["settings"] for s in safe]
    differing = [n for n in dict.fromkeys([*settings[0], *settings[1]]) if settings[0].get(n) != settings[1].get(n)]
    lines = [(n, [w.get(n, 0.0) for w in weights]) for n in heaviest if any(w.get(n, 0.0) > 0 for w in weights)]
    return _render(
        "compare.html", models=list(zip([clean(n, 60) for n in names], safe, map(draw_figures, safe))), weights=lines,
        settings=[(n, [s.get(n, "") for s in settings]) for n in differing], shown=SIDE_BY_SIDE,
    )  # fmt: skip


def _render(template: str, **values: Any) -> str:
    page = _environment().get_template(template)
    return page.render(words=words, script=Markup(_script()), script_hash=script_hash(), **values)


def script_hash() -> str:
    """The one script of the pages, as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(_script().encode()).digest()).decode()


@cache
def _script() -> str:
    return (Path(__file__).parent / "templates" / "copy.js").read_text(encoding="utf-8")


def cleaned(value: Any) -> Any:
    """The same plain data with every string safe to show."""
    if isinstance(value, str):
        return clean(value, 500)
    if isinstance(value, dict):
        return {clean(key): cleaned(item) for key, item in value.items()}
    return [cleaned(item) for item in value] if isinstance(value, list | tuple) else value


def unbroken(value: Any) -> Any:
    """Text in which no line ends between a number and its percent sign; markup as it is."""
    return re.sub(r"(?<=\d) %(?!\w)", "\u00a0%", value) if type(value) is str else value


def _environment() -> Environment:
    """Everything is escaped unless it is Markup, and a misspelt name in the template is an error."""
    environment = Environment(
        autoescape=True,
        loader=PackageLoader("softlearning.report", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=unbroken,
    )
    environment.filters |= {"short": short, "percent": words.percent}
    return environment
