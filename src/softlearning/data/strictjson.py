"""JSON from outside: one meaning or none."""

from __future__ import annotations

import json
import math
from typing import Any


def read_json(data: bytes) -> Any:
    """The value of a JSON text in UTF-8; ValueError, with the reason, for what is ambiguous or not JSON.

    Repeated keys, NaN, infinities, numbers beyond the range of a float, lone surrogates and nesting without end are
    refused.
    """
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
        if "\\ud" in text.lower():  # half of a character can be read from an escape, and never be written again
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value
