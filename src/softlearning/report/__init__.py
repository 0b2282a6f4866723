"""One page about a model: summarise (a dict of plain data), draw (inline SVG), render (one self-contained file)."""

from softlearning.report.render import report_model, to_html, write_comparison, write_page
from softlearning.report.summarise import summarise_model

__all__ = ["report_model", "summarise_model", "to_html", "write_comparison", "write_page"]
