"""One page about a model: summarise (a dict of plain data), draw (inline SVG), render (one self-contained file)."""


def write_page(summary, path):
    raise ValueError("not yet")
