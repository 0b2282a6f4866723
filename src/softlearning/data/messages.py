"""Words for people: the nearest name to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, names: Iterable[str], most: int = 12) -> str:
    """`did you mean 'x'?`, or the names there are."""
    names = [str(n) for n in names]
    close = get_close_matches(str(name), names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    shown = ", ".join(names[:most]) + (", ..." if len(names) > most else "")
    return f"there are: {shown}" if names else "there are none"
