"""The folders are the layers: a room imports only from the rooms before it, and never what another room keeps private.

Imports inside functions and names of modules in strings count as well.
"""

import ast
import re
import sys
from pathlib import Path

import pytest

import softlearning

ROOT = Path(softlearning.__file__).parent

ROOMS = (
    "weights",
    "uncertainty",
    "data",
    "library",
    "execution",
    "method",
    "evaluation",
    "storage",
    "report",
    "estimators",
    "sharing",
    "demo",
    "serve",
    "studio",
    "cli",
    "__main__",
)
MATHEMATICS = ("weights", "uncertainty")


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())


def imports(tree: ast.AST):
    """(module, name) of every import, wherever it stands; name is None where the whole module is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from ((node.module, alias.name) for alias in node.names)


def named_in_strings(tree: ast.AST):
    """Modules of ours that a string names, as lists of what to import do."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and room(node.value)
            and node.value in MODULES
        ):
            yield node.value


def reached(tree: ast.AST):
    for module, name in imports(tree):
        if module == "softlearning" and name is not None and f"softlearning.{name}" in MODULES:
            yield f"softlearning.{name}"
        elif module.startswith("softlearning."):
            yield module
    yield from named_in_strings(tree)


@pytest.mark.parametrize("module", [m for m in MODULES if m != "softlearning"])
def test_a_room_imports_only_from_itself_or_the_rooms_before_it(module):
    for other in reached(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        assert ROOMS.index(room(other)) <= ROOMS.index(room(module)), f"{module} imports {other}, a later room"


@pytest.mark.parametrize("module", MODULES)
def test_no_room_imports_a_private_name_of_another(module):
    for other, name in imports(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if other.startswith("softlearning") and room(other) != room(module):
            assert not (name or "").startswith("_") or name == "__version__", f"{module} imports {other}.{name}"


@pytest.mark.parametrize("module", MODULES)
def test_no_room_reads_a_private_attribute_of_what_another_room_made(module):
    """Underscored attributes are read of `self` and `cls` alone, or where this very file writes them."""
    text = MODULES[module].read_text(encoding="utf-8")
    own = set(re.findall(r"(?:def|class) (_[a-z]\w*)", text)) | set(re.findall(r"self\.(_[a-z]\w*)", text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
            of_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            public = ast.unparse(node) == "os._exit"  # the one documented name of this form
            assert of_self or public or node.attr in own, f"{module}:{node.lineno} reads {node.attr}"


@pytest.mark.parametrize("module", [m for m in MODULES if room(m) in MATHEMATICS])
def test_mathematics_needs_numpy_and_scipy_alone(module):
    allowed = {"numpy", "scipy", "softlearning"} | set(sys.stdlib_module_names)
    outside = {name.split(".")[0] for name, _ in imports(ast.parse(MODULES[module].read_text()))} - allowed
    assert not outside
