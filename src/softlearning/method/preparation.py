"""The matrices that specialists read: one for each view and fold, made by whoever needs it first and kept for the rest.

A view is fitted on the training rows of its fold alone. Tasks ask for it where they run, so that its seconds count as
theirs and nothing is prepared that no task comes to need.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from softlearning.data.views import View, fit_view
from softlearning.execution import Engine, Shared
from softlearning.execution.fingerprint import fingerprint
from softlearning.method.training import Training

REFIT = -1  # the fold number of a fit on all rows


@dataclass(frozen=True)
class ViewKey:
    """Which view of the table, fitted for which level and fold; on how many of its rows, 0 for all of them."""

    view: str
    level: int
    fold: int
    rows: int = 0

    def __str__(self) -> str:
        return f"{self.view}-{self.level}-{self.fold}-{self.rows}"


@dataclass(frozen=True)
class Prepared:
    """A fitted view (None for the table itself), its training matrix, and that of the held-out rows."""

    view: View | None
    training: Any
    held_out: Any


class Preparation:
    """The training table for tasks, wherever they run; it travels as a handle on shared data."""

    def __init__(self, training: Training, engine: Engine):
        self.X = engine.share(training.X)
        self.y = engine.share(training.y)
        self.weight: Shared | None = None if training.weight is None else engine.share(training.weight)
        self.training = training.without_table()
        self.engine, self.scratch = engine, engine.scratch

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "engine": None}  # a task only reads

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what a view depends on, wherever it lies; only a checkpoint asks for it."""
        t, weight = self.training, self.weight and self.weight.digest
        return fingerprint(self.X.digest, self.y.digest, weight, t.schema, t.task, t.seed)

    def get(self, key: ViewKey, train: np.ndarray, test: np.ndarray | None) -> Prepared:
        """The view of a key, made if nobody has made it yet."""
        if key.view == "raw":
            X = self.X.load()
            return Prepared(None, take(X, train), None if test is None else take(X, test))
        return self.scratch.once(str(key), lambda: self._make(key.view, train, test))

    def _make(self, view: str, train: np.ndarray, test: np.ndarray | None) -> Prepared:
        X, y, t = self.X.load(), self.y.load()[train], self.training
        weight = None if self.weight is None else self.weight.load()[train]
        part = X if len(train) == t.rows else take(X, train)  # all rows: in a refit, in order
        fitted, matrix = fit_view(view, t.schema, part, y, task=t.task, seed=t.seed, sample_weight=weight)
        return Prepared(fitted, matrix, None if test is None else fitted.transform(take(X, test)))


def take(X, rows):
    """Some rows of an array, a sparse matrix or a frame."""
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def side_by_side(left, right):
    """Two matrices of the same rows as one."""
    if sparse.issparse(left):
        return sparse.hstack([left, sparse.csr_array(right)]).tocsr()
    return np.hstack([left, right])
