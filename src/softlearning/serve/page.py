"""The page at /docs: how to call the server, in one piece of HTML without script, that needs no network."""

from __future__ import annotations

import json
from html import escape

from softlearning.data.schema import COLUMN_TYPES, Column
from softlearning.serve.limits import Limits
from softlearning.serve.rows import Inputs

CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top}"
    "pre{overflow-x:auto;padding:.8rem;border:1px solid #8888}"
)
EXAMPLES = {"number": 0.5, "boolean": True, "date": "2026-01-31", "text": "some words"}
MOST = 200  # columns that are listed


def describe_page(inputs: Inputs, limits: Limits, needs_token: bool) -> str:
    """Columns, an example to paste, and the limits."""
    shown = [column for column in inputs.columns if column.kept]
    rows = "".join(f"<tr><td><code>{escape(c.name)}</code><td>{c.type}<td>{_meaning(c)}" for c in shown[:MOST])
    more = f"<p>and {len(shown) - MOST} more: see /openapi.json" if len(shown) > MOST else ""
    body = json.dumps({"rows": [{c.name: _example(c) for c in shown[:MOST]}]}, indent=1)
    token = ' -H "Authorization: Bearer $TOKEN"' if needs_token else ""
    call = f'curl http://HOST:PORT/predict{token} -H "Content-Type: application/json" -d @rows.json'
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>softlearning</title><style>{STYLE}</style>'
        f"<h1>Predictions over HTTP</h1><p>POST <code>/predict</code> with JSON: one object per row, "
        f"<code>null</code> for a missing value; columns that are not listed are refused.<pre>{escape(call)}</pre>"
        f"<p>rows.json:<pre>{escape(body)}</pre><h2>Columns</h2><table><tr><th>column<th>type<th>meaning{rows}</table>"
        f"{more}<h2>Limits</h2><p>{limits.rows} rows and {limits.bytes:,} bytes per request, {limits.text:,} "
        f"characters per cell, {limits.seconds:g} s per answer.<p>Also: <code>/health</code>, <code>/ready</code>, "
        f"<code>/metrics</code>, <code>/openapi.json</code>.</html>"
    )


def _meaning(column: Column) -> str:
    if column.type == "category" and column.categories:
        known = ", ".join(column.categories[:8]) + (", .." if len(column.categories) > 8 else "")
        return escape(f"{COLUMN_TYPES['category']}: {known}")
    return escape(COLUMN_TYPES[column.type])


def _example(column: Column) -> object:
    return column.categories[0] if column.categories else EXAMPLES.get(column.type, "a value")
