"""The layers of the package: a module imports only from its own layer or the ones before it.

Imports inside a function do not count: by them `save` and `report` of an estimator reach the outer ring when called.
"""

import ast
import sys
from pathlib import Path

import pytest

import softlearning

ROOT = Path(softlearning.__file__).parent

MATHEMATICS = {
    "weights",
    "calibration",
    "insight.disagreement",
    "insight.selective",
    "insight.conformal",
    "insight.diversity",
    "insight.explain",
    "insight.robustness",
    "insight.guarantees",
    "bench.significance",
}
WORDS = {"", "messages", "insight"}
DATA = {"tables", "cells", "containers", "reading", "prepare", "folds", "library"}
WORK = {
    "callbacks",
    "learned",
    "threads",
    "execution",
    "tasks",
    "carriers",
    "crew",
    "office",
    "sharing",
    "fingerprint",
    "store",
    "budget",
    "progress",
    "fitting",
    "crossfit",
    "blend",
}
ESTIMATORS = {"estimators", *(f"insight.{name}" for name in ("evaluation", "scoring", "attacks", "cells", "gradients"))}
LAYERS = [MATHEMATICS | WORDS, DATA, WORK, ESTIMATORS]
OUTER = len(LAYERS)


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def layer(module: str) -> int:
    """The number of the layer of a module, or of the package it lies in."""
    for number, names in enumerate(LAYERS):
        if module in names or module.split(".")[0] in names & DATA:
            return number
    return OUTER


def top_level_imports(path: Path):
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            if node.module == "softlearning":
                yield from (f"softlearning.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(("module", "path"), list(modules()), ids=lambda v: v if isinstance(v, str) else "")
def test_a_module_imports_only_from_its_own_layer_or_before(module, path):
    for name in top_level_imports(path):
        if name.startswith("softlearning."):
            imported = name.removeprefix("softlearning.")
            assert layer(imported) <= layer(module), f"{module} imports {imported}, which stands above it"


@pytest.mark.parametrize("module", sorted(MATHEMATICS))
def test_mathematics_needs_numpy_and_scipy_alone(module):
    path = ROOT / (module.replace(".", "/") + ".py")
    allowed = {"numpy", "scipy", "softlearning"} | set(sys.stdlib_module_names)
    outside = {name.split(".")[0] for name in top_level_imports(path)} - allowed
    assert not outside
