"""A SHA-256 of what a result depends on: data, parameters, code, versions.

Equal things have equal fingerprints in every process. Code is known by the version of its package, code of the user's
by its text: that of its module and of every module of the user's that this one imports, or, in a script or notebook,
that of the functions and classes it reaches with the values they name. What cannot be read raises, and that equal
things differ is possible (sets, dicts in another order): both cost a repeated computation and never give a wrong one.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.machinery
import pickle
import platform
import sys
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

OURS = Path(__file__).parents[1]
STANDARD = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))


def fingerprint(*things: Any) -> str:
    """Hexadecimal SHA-256 of the content of `things`."""
    reader = Reader()
    reader.dump(things)
    return reader.sha.hexdigest()


@functools.cache
def own_text() -> str:
    """SHA-256 of the source of this package: a version alone does not tell what a developer changed."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(OURS.rglob("*.py")))).hexdigest()


# ----------------------------------------------------------------------------------------------------- code of the user


def is_users(module: Any) -> bool:
    """Whether a module is the user's own: from a file that is in no installed package, and not the script itself."""
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and getattr(module, "__name__", "") != "__main__" and is_users_file(file)


def is_users_file(file: str) -> bool:
    """Whether a file lies outside the standard library, installed packages and this package."""
    path = Path(file).absolute()
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    return path.suffix == ".py" and not installed and not any(path.is_relative_to(f) for f in (OURS, *STANDARD))


def source_of(module: types.ModuleType) -> str:
    """SHA-256 of the text of a user's module and of all modules of the user's that it reaches by imports."""
    sha, seen, waiting = hashlib.sha256(), set(), [str(module.__file__)]
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen.add(file)
            now = Path(file).stat()
            text, imported = text_of(file, (now.st_mtime_ns, now.st_size), tuple(sys.path))
            sha.update(text)
            waiting += imported
    return sha.hexdigest()


@functools.lru_cache(1000)
def text_of(file: str, state: tuple[int, int], path: tuple[str, ...]) -> tuple[bytes, list[str]]:
    """SHA-256 of a file, and the files of the user's that it imports, inside functions too; nothing is imported."""
    text, folder, found = Path(file).read_bytes(), Path(file).parent, set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {f for alias in node.names for f in files_of(alias.name.split("."), path)}
        elif isinstance(node, ast.ImportFrom):
            base = (str(folder.parents[node.level - 2] if node.level > 1 else folder),) if node.level else path
            names = node.module.split(".") if node.module else []
            found |= {f for alias in node.names for f in files_of([*names, alias.name], base)}
    return hashlib.sha256(text).digest(), sorted(found)


def files_of(names: list[str], path: Any) -> Iterator[str]:
    """The files of the user's behind a dotted name: those of its packages, and its own."""
    for name in names:
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None:
            return
        if spec.origin and is_users_file(spec.origin):
            yield spec.origin
        path = spec.submodule_search_locations or []


# ------------------------------------------------------------------------------------------------------------ reading


class Reader(pickle.Pickler):
    """A pickle that goes into a SHA-256, in which data is its content and code is where it comes from.

    Without the memory of a pickler, equal things give equal bytes; what holds itself is refused.
    """

    def __init__(self) -> None:
        self.sha = hashlib.sha256()
        super().__init__(SimpleNamespace(write=self.sha.update), protocol=5)
        self.fast = True
        self.seen: dict[Any, int] = {}  # code, read once

    def reducer_override(self, thing: Any) -> Any:
        """What to write in place of a thing; the first row that fits."""
        if isinstance(thing, types.FunctionType | type | types.ModuleType):
            if thing in self.seen:
                return STANDS_FOR, (f"seen {self.seen[thing]}",)
            self.seen[thing] = len(self.seen)
        elif isinstance(digest := getattr(thing, "digest", None), str):
            return STANDS_FOR, (type(thing), digest)
        for kinds, content in WAYS:
            if isinstance(thing, kinds):
                return STANDS_FOR, tuple(content(thing))
        return NotImplemented


def of_array(thing: np.ndarray) -> list:
    """Type, shape and content, wherever they lie in memory."""
    content = thing.ravel().tolist() if thing.dtype.hasobject else np.ascontiguousarray(thing).tobytes()
    return ["array", thing.dtype.str, thing.shape, content]


def of_column(thing: Any) -> list:
    """Type and values of a column; missing ones are told from texts that look alike."""
    if isinstance(thing.dtype, pd.CategoricalDtype):
        categorical = pd.Categorical(thing)
        return ["categories", categorical.categories, categorical.codes]
    if isinstance(thing.dtype, np.dtype):
        return ["column", thing.to_numpy()]
    missing = np.asarray(thing.isna())
    return ["column", str(thing.dtype), missing, ["" if no else repr(value) for value, no in zip(thing, missing)]]


def of_matrix(thing: Any) -> list:
    """A sparse matrix as its format and its rows."""
    rows = thing.tocsr()
    return [thing.format, rows.shape, rows.data, rows.indices, rows.indptr]


def of_function(thing: types.FunctionType) -> list:
    """A function by its code and origin; one of a script or notebook also by all that it names."""
    known = origin(thing.__module__)
    closed = [cell.cell_contents for cell in thing.__closure__ or ()]
    named = {} if known else {name: thing.__globals__.get(name) for name in names_in(thing.__code__)}
    return ["function", thing.__module__, thing.__qualname__, known, thing.__code__, thing.__defaults__, closed, named]


def of_type(thing: type) -> list:
    """A class by name and origin; one of a script or notebook by its content too."""
    known = origin(thing.__module__)
    own = {k: v for k, v in sorted(vars(thing).items()) if not known and k not in HIDDEN}
    return ["class", thing.__module__, thing.__qualname__, known, own, () if known else thing.__bases__]


WAYS: tuple[tuple[Any, Callable[[Any], Iterable]], ...] = (
    (np.ndarray, of_array),
    (pd.DataFrame, lambda t: ["frame", list(t.columns), *(t.iloc[:, j] for j in range(t.shape[1]))]),
    (pd.Series | pd.Index, of_column),
    (sparse.spmatrix | sparse.sparray, of_matrix),
    (types.FunctionType, of_function),
    (types.CodeType, lambda t: ["code", t.co_code, t.co_names, t.co_consts]),
    (types.ModuleType, lambda t: ["module", t.__name__, origin(t.__name__)]),
    (staticmethod | classmethod, lambda t: ["method", t.__func__]),
    (property, lambda t: ["property", t.fget, t.fset]),
    (types.GetSetDescriptorType | types.MemberDescriptorType, lambda t: ["slot", t.__name__]),
    (type, of_type),
)
STANDS_FOR = max  # a reduction must name some function; nobody will ever call it
HIDDEN = ("__dict__", "__weakref__", "__doc__", "__module__", "_abc_impl")


def origin(name: str | None) -> str:
    """The text of a user's module, the version of any other; empty for a script, a notebook or nothing."""
    module = sys.modules.get(name or "")
    if module is None or name == "__main__":
        return ""
    if is_users(module):
        return source_of(module)
    package = str(name).split(".")[0]
    if package in sys.stdlib_module_names:
        return platform.python_version()
    if package == OURS.name:
        return own_text()
    return str(getattr(sys.modules.get(package), "__version__", "")) or "installed"


def names_in(code: types.CodeType) -> list[str]:
    """The global names of a function and of the functions inside it."""
    inner = [name for const in code.co_consts if isinstance(const, types.CodeType) for name in names_in(const)]
    return sorted({*code.co_names, *inner})
