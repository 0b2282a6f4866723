"""Shared by all tests: seeded generators, and where the optional real data lies."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.stress_log import record

SHARED = Path(__file__).resolve().parents[1] / "shared" / "data"


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def real_data():
    """scikit-learn's data home with the larger real sets, when this machine has one."""
    home = Path(os.environ.get("SCIKIT_LEARN_DATA", SHARED / "scikit_learn_data"))
    if not home.exists():
        pytest.skip("the larger real datasets are not here: set SCIKIT_LEARN_DATA to a scikit-learn data home")
    return home


@pytest.fixture(scope="session")
def messy_tables():
    """The folder of messy csv tables, when this machine has one."""
    folder = Path(os.environ.get("SOFTLEARNING_TABLES", SHARED / "tables"))
    if not folder.exists():
        pytest.skip("the messy tables are not here: set SOFTLEARNING_TABLES to a folder with titanic.csv and others")
    return folder


def pytest_terminal_summary(terminalreporter):
    """How many long tests of each file passed and failed, appended to the log of stress tests, if there is one."""
    if hasattr(terminalreporter.config, "workerinput"):  # a worker of xdist has its own summary
        return
    counts = {}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            if "slow" in report.keywords:
                counts.setdefault(report.nodeid.split("::")[0], {"passed": 0, "failed": 0})[outcome] += 1
    for name, both in sorted(counts.items()):
        record(name, **both)
