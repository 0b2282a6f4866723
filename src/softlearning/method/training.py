"""What is learnt from, checked and in canonical form, and what the work may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softlearning.data.schema import Schema


@dataclass(frozen=True)
class Training:
    """The training rows: `target` is (n, C), one-hot or the column y; `y` are class codes or the numbers themselves.

    `weight` has mean 1 over the rows that count, so that its scale changes nothing. `labels` are the classes in the
    user's own words, which a user's own estimator is given; `target_name` is the column that y was, if it was one.
    """

    X: Any
    y: np.ndarray
    target: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None
    labels: np.ndarray | None
    schema: Schema
    mixed: bool
    task: str
    seed: int
    target_name: str = ""

    @property
    def rows(self) -> int:
        return len(self.y)

    @property
    def classes(self) -> int:
        return self.target.shape[1]

    @property
    def live(self) -> np.ndarray:
        """The rows that count: a row of weight 0 is as if it were not there."""
        return np.arange(self.rows) if self.weight is None else np.flatnonzero(self.weight > 0)

    def without_table(self) -> Training:
        """The target alone, which is all that weights need."""
        return replace(self, X=None)


@dataclass(frozen=True)
class Resources:
    """How the work is carried: cores, limits, finished tasks on disk, the engine, who watches."""

    n_jobs: int | None = None
    deadline: float | None = None
    memory_limit: int | None = None
    checkpoint: Any = None
    engine: Any = None
    watch: Callable | None = None
    refits: int = 1  # fits on all rows that follow those of the folds


def with_mean_one(weight: np.ndarray) -> np.ndarray:
    """Sample weights divided by their mean over the rows that count; equal ones are exactly 1."""
    weight = weight / weight.max()
    return weight / weight[weight > 0].mean()


def entries(values: np.ndarray | None, rows: np.ndarray) -> Any:
    """The values of some rows; None of None."""
    return None if values is None else values[rows]
