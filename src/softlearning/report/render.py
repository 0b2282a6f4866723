"""The page of a model: one file of HTML that needs neither network nor script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from softlearning.data.files import whole_file
from softlearning.report import words
from softlearning.report.draw import draw_figures
from softlearning.report.summarise import summarise_model
from softlearning.report.svg import clean, short

MOST_DETAILS = 200  # columns of the table that are listed


def report_model(model, path: str | Path, X=None, y=None, command: str | None = None) -> Path:
    """Write the page of a fitted model; X and y, rows it has not seen, add the importance of the columns."""
    return write_page(summarise_model(model, X=X, y=y, command=command), path)


def write_page(summary: dict[str, Any], path: str | Path) -> Path:
    """Write the page of a summary, whole or not at all."""
    page = to_html(summary)
    with whole_file(path) as part:
        part.write_text(page, encoding="utf-8")
    return Path(path)


def to_html(summary: dict[str, Any], template: str = "model.html") -> str:
    """The page as text."""
    safe = cleaned(summary)
    page = _environment().get_template(template)
    return page.render(s=safe, figures=draw_figures(safe), words=words, most=MOST_DETAILS)


def cleaned(value: Any) -> Any:
    """The same plain data with every string safe to show."""
    if isinstance(value, str):
        return clean(value, 500)
    if isinstance(value, dict):
        return {clean(key): cleaned(item) for key, item in value.items()}
    return [cleaned(item) for item in value] if isinstance(value, list | tuple) else value


def _environment() -> Environment:
    """Everything is escaped unless it is Markup, and a misspelt name in the template is an error."""
    environment = Environment(
        autoescape=True,
        loader=PackageLoader("softlearning.report", "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"short": short, "percent": words.percent}
    return environment
