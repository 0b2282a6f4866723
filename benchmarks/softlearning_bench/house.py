"""What the library is made of: lines of code by room, the largest modules, and the modules that a call passes through.

    python -m softlearning_bench.house [TESTS]

A line of code is one that holds more than a comment or a docstring. The walks are those of a small fit in one process.
"""

from __future__ import annotations

import ast
import io
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import softlearning

HOME = Path(softlearning.__file__).parent
BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
LARGEST = 10  # modules that are listed


def lines_of_code(text: str) -> int:
    """Lines of a module without blank ones, comments and docstrings."""
    words = [
        node.body[0] for node in ast.walk(ast.parse(text)) if isinstance(node, DOCUMENTED) and ast.get_docstring(node)
    ]
    silent = {line for word in words for line in range(word.lineno, (word.end_lineno or word.lineno) + 1)}
    tokens = (t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in BLANK)
    return len({line for t in tokens for line in range(t.start[0], t.end[0] + 1)} - silent)


def sizes(folder: Path) -> dict[str, int]:
    """Lines of code of every module in a folder, by its path there."""
    modules = sorted(folder.rglob("*.py"))
    return {p.relative_to(folder).as_posix(): lines_of_code(p.read_text(encoding="utf-8")) for p in modules}


def walk(call: Callable[[], object]) -> list[str]:
    """The modules of the library that a call passes through in this thread, in the order in which it meets them."""
    met: dict[str, None] = {}

    def note(frame, event, _):
        if event == "call" and (file := frame.f_code.co_filename).startswith(str(HOME)):
            met.setdefault(Path(file).relative_to(HOME).with_suffix("").as_posix().replace("/", "."))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(met)


def walks() -> dict[str, list[str]]:
    """Those of fit, predict_proba, save and load, after one of each: imports are no part of them."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    model = softlearning.SoftClassifier(["logistic", "decision_tree"])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.soft")
        calls: dict[str, Callable[[], object]] = {
            "fit": lambda: model.fit(X, y),
            "predict_proba": lambda: model.predict_proba(X),
            "save": lambda: model.save(path),
            "load": lambda: softlearning.load(path),
        }
        for call in calls.values():
            call()
        return {name: walk(call) for name, call in calls.items()}


def main(tests: str = "") -> None:
    """Print all of it."""
    code = sizes(HOME)
    rooms: Counter[str] = Counter()
    for path, lines in code.items():
        rooms[path.split("/")[0] if "/" in path else "(top)"] += lines
    print(f"{sum(code.values()):,} lines of code in {len(code)} modules")
    print("\n".join(f"{lines:6,}  {room}" for room, lines in rooms.most_common()))
    print("\nthe largest modules")
    print("\n".join(f"{lines:6,}  {path}" for path, lines in sorted(code.items(), key=lambda i: -i[1])[:LARGEST]))
    if tests:
        print(f"\ntests to code: {sum(sizes(Path(tests)).values()) / sum(code.values()):.2f}")
    for name, modules in walks().items():
        print(f"\n{name} passes through {len(modules)} modules: {', '.join(modules)}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
