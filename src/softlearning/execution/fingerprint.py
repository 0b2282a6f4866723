"""A SHA-256 of what a result depends on: data, parameters, code, versions.

Equal things have equal fingerprints in every process. Things that cannot be read this way fall back to their pickle:
then equal things may differ, which costs a repeated computation and never gives a wrong one.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import sys
import types
from collections.abc import Callable
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
from scipy import sparse


def fingerprint(*things: Any) -> str:
    """Hexadecimal SHA-256 of the content of `things`."""
    reader = Reader()
    reader.read(things)
    return reader.sha.hexdigest()


class Reader:
    """Feeds the content of things into a SHA-256, each with its type and length so that none runs into the next."""

    def __init__(self) -> None:
        self.sha = hashlib.sha256()
        self.open: list[int] = []  # what is being read, against cycles
        self.seen: dict[Any, int] = {}  # functions and classes, read once

    def read(self, thing: Any) -> None:
        if id(thing) in self.open:
            return self.note("cycle", str(self.open.index(id(thing))))
        if isinstance(thing, types.FunctionType | type):
            if thing in self.seen:
                return self.note("again", str(self.seen[thing]))
            self.seen[thing] = len(self.seen)
        self.open.append(id(thing))
        self.how(thing)(thing)
        self.open.pop()

    def how(self, thing: Any) -> Callable[[Any], None]:
        """The way to read a thing of this type: the first row that fits."""
        for kinds, way in (
            ((type(None), bool, int, str, bytes, float, complex, np.generic), self.plain),
            ((np.ndarray,), self.array),
            ((list, tuple), self.sequence),
            ((dict, types.MappingProxyType), self.mapping),
            ((set, frozenset), self.unordered),
            ((pd.DataFrame,), self.frame),
            ((pd.Series, pd.Index), self.column),
            ((sparse.spmatrix, sparse.sparray), self.matrix),
            ((types.FunctionType,), self.function),
            ((types.CodeType,), self.code),
            ((types.MethodType,), lambda m: self.sequence((m.__func__, m.__self__))),
            ((functools.partial,), lambda p: self.sequence((p.func, p.args, p.keywords))),
            ((type,), self.type_),
        ):
            if isinstance(thing, kinds):
                return way
        return self.state if hasattr(thing, "__dict__") else self.pickled

    def note(self, kind: str, content: str | bytes | memoryview) -> None:
        content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        size = len(content) if isinstance(content, bytes) else content.nbytes
        self.sha.update(f"{kind}:{size}:".encode())
        self.sha.update(content)

    def plain(self, thing: Any) -> None:
        self.note(type(thing).__name__, thing if isinstance(thing, bytes) else repr(thing))

    def array(self, thing: np.ndarray) -> None:
        self.note("array", f"{thing.dtype.str}{thing.shape}")
        if thing.dtype.hasobject:
            self.sequence(thing.ravel().tolist())
        else:
            self.note("bytes", np.ascontiguousarray(thing).reshape(-1).view(np.uint8).data)

    def sequence(self, thing: list | tuple) -> None:
        self.note(type(thing).__name__, str(len(thing)))
        for part in thing:
            self.read(part)

    def mapping(self, thing: Any) -> None:
        self.note("mapping", str(len(thing)))
        for key in sorted(thing, key=lambda k: (type(k).__name__, repr(k))):
            self.read(key)
            self.read(thing[key])

    def unordered(self, thing: set | frozenset) -> None:
        self.sequence(sorted(fingerprint(part) for part in thing))

    def frame(self, thing: pd.DataFrame) -> None:
        self.sequence([list(thing.columns), *(thing.iloc[:, j] for j in range(thing.shape[1]))])

    def column(self, thing: Any) -> None:
        self.note("column", f"{thing.dtype}")
        if isinstance(thing.dtype, pd.CategoricalDtype):
            categorical = pd.Categorical(thing)
            self.read(categorical.categories)
            return self.read(categorical.codes)
        if isinstance(thing.dtype, np.dtype):
            return self.read(thing.to_numpy())
        missing = np.asarray(thing.isna())
        self.read(missing)
        self.sequence(["" if gone else repr(value) for value, gone in zip(thing, missing)])

    def matrix(self, thing: Any) -> None:
        rows = thing.tocoo() if thing.format not in ("csr", "csc") else thing
        parts = (rows.row, rows.col) if rows.format == "coo" else (rows.indices, rows.indptr)
        self.sequence([rows.format, rows.shape, rows.data, *parts])

    def function(self, thing: types.FunctionType) -> None:
        """A function by its code; one without a version, as in a script, also by the functions and classes it names."""
        closed = [cell.cell_contents for cell in thing.__closure__ or ()]
        known, named = self.version(thing), [thing.__globals__.get(name) for name in thing.__code__.co_names]
        named = [] if known else [n for n in named if isinstance(n, types.FunctionType | type)]
        self.sequence([thing.__module__, thing.__qualname__, known, thing.__code__, thing.__defaults__, closed, named])

    def code(self, thing: types.CodeType) -> None:
        self.sequence([thing.co_code, thing.co_names, thing.co_consts])

    def type_(self, thing: type) -> None:
        """A class of a package with a version by name and version; any other, as in a script, by its code too."""
        known = self.version(thing)
        self.sequence([thing.__module__, thing.__qualname__, known])
        if not known:
            own = {k: v for k, v in vars(thing).items() if isinstance(v, types.FunctionType)}
            self.sequence([own, [base for base in thing.__bases__ if base is not object]])

    @staticmethod
    def version(thing: Any) -> str:
        package = (thing.__module__ or "").split(".")[0]
        if package in sys.stdlib_module_names and package != "__main__":
            return platform.python_version()
        return str(getattr(sys.modules.get(package), "__version__", ""))

    def state(self, thing: Any) -> None:
        digest = getattr(thing, "digest", None)
        self.read(type(thing))
        self.read(digest if isinstance(digest, str) else vars(thing))

    def pickled(self, thing: Any) -> None:
        self.note(type(thing).__qualname__, cloudpickle.dumps(thing))
