"""Words for people: the nearest name to a misspelt one, names that a terminal can show, cells that do not fit."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def closest(name: str, names: Iterable[Any]) -> str | None:
    """The name that is probably meant: the same but for upper and lower case, or one spelt alike."""
    folded = {str(n).casefold(): str(n) for n in reversed(list(names))}
    found = get_close_matches(str(name).casefold(), folded, n=1, cutoff=0.65)  # `area` is not meant by `target`
    return folded[found[0]] if found else None


def nearest(name: str, names: Iterable[Any], most: int = 12) -> str:
    """`did you mean 'x'?`, or the names there are."""
    names = [str(n) for n in names]
    if (found := closest(name, names)) is not None:
        return f"did you mean {found!r}?"
    shown = ", ".join(printable(n) for n in names[:most]) + (", ..." if len(names) > most else "")
    return f"there are: {shown}" if names else "there are none"


def printable(text: object) -> str:
    """The text with control characters spelt out, so that a name in a file cannot steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def printable_lines(text: object) -> str:
    """The same of a text of several lines."""
    return "\n".join(map(printable, str(text).split("\n")))


class CellError(ValueError):
    """A cell that does not fit: its `column`, `row` (None for the whole column), `value`, and what was `expected`."""

    def __init__(self, column: str, row: int | None, value: Any, expected: str, problem: str = ""):
        super().__init__(column, row, value, expected, problem)
        self.column, self.row, self.value, self.expected = column, row, value, expected
        self.problem = problem or f"{value!r} is not {expected}"

    def __str__(self) -> str:
        place = "" if self.row is None else f", row {self.row}"
        return f"column `{printable(self.column)}`{place}: {self.problem}"
