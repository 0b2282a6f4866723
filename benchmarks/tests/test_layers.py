"""The benchmark reaches the library through public names alone."""

import ast
import re
from pathlib import Path

import pytest

import softlearning_bench

ROOT = Path(softlearning_bench.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
PUBLIC_ROOMS = ("weights", "uncertainty", "data", "library", "estimators", "evaluation", "cli")
INSIDE = {
    # what the audit of the paper's theorems reads of the fitted ensemble itself
    "audit/attacks.py": {"softlearning.method.ensemble", "softlearning.method.fitting"},
    # what an engine costs is measured on tasks that do nothing
    "engines.py": {"softlearning.execution"},
}
OF_SCIKIT_LEARN = {"_fit_X", "_y", "_gamma", "_predictors"}


def nodes(path, *kinds):
    return (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds))


def imported(path):
    """(module, name) of every import of the library, wherever it stands."""
    for node in nodes(path, ast.Import, ast.ImportFrom):
        module = node.module if isinstance(node, ast.ImportFrom) else None
        for alias in node.names:
            where = module or alias.name
            if where == "softlearning" or where.startswith("softlearning."):
                yield where, alias.name if module else None


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_private_name_is_imported_and_no_inner_room_is_entered(path):
    allowed = INSIDE.get(path.relative_to(ROOT).as_posix(), set())
    for module, name in imported(path):
        assert not (name or "").startswith("_"), f"{module}.{name} is private"
        room = module.split(".")[1] if "." in module else ""
        assert not room or room in PUBLIC_ROOMS or module in allowed, f"{module} is an inner room"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_private_attribute_is_read(path):
    for node in nodes(path, ast.Attribute):
        if re.match(r"_[a-zA-Z]", node.attr):
            of_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            known = node.attr in OF_SCIKIT_LEARN or ast.unparse(node) == "os._exit"
            assert of_self or known, f"line {node.lineno} reads {node.attr}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_is(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree) or not tree.body
