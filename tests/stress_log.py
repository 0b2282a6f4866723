"""The log of the long stress tests: a line of JSON per run, in the file that SOFTLEARNING_STRESS names, if any."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from softlearning import __version__


@cache
def commit() -> str:
    """The commit under test, from SOFTLEARNING_COMMIT or git; empty outside a checkout."""
    if told := os.environ.get("SOFTLEARNING_COMMIT"):
        return told
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def record(name: str, **counts: object) -> None:
    """Append what a stress test counted, with version, commit and date."""
    if path := os.environ.get("SOFTLEARNING_STRESS"):
        about = {"version": __version__, "commit": commit(), "date": datetime.now(UTC).date().isoformat()}
        with open(path, "a") as file:
            print(json.dumps({"stress_test": name} | counts | about), file=file)
