"""What held-out rows say: parts of the rows learnt from without each other, and means with their standard errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softlearning.weights.losses import Loss, problem_of, row_losses
from softlearning.weights.problems import Problem, Rows
from softlearning.weights.solvers import Floats, Indices

SPLITS = 5  # parts of the rows where no folds are known
Solve = Callable[[Problem], Floats]  # weights (G,) of the columns of a problem


def mean_and_error(
    values: NDArray, weight: NDArray | None = None, groups: NDArray | None = None
) -> tuple[float, float]:
    """Weighted mean of values (n,) and its standard error; rows of a group may depend on each other (sandwich).

    The error is zero for a single row or group: nothing shows how far the mean may move.
    """
    values = np.asarray(values, dtype=np.float64)
    share = np.full(len(values), 1 / len(values)) if weight is None else np.asarray(weight) / np.sum(weight)
    mean = float(share @ values)
    parts = share * (values - mean)
    if groups is not None:
        parts = np.bincount(np.unique(groups, return_inverse=True)[1], weights=parts)
    m = max(len(parts), 2)
    return mean, float(np.sqrt(m / (m - 1) * (parts @ parts)))


def parts_of(rows: Rows) -> list[Indices]:
    """All rows, fold by fold; parts of the groups, or of the rows, where fewer than two folds have rows of weight.

    No part has all the weight, except where a single row has it.
    """
    live = rows.live
    if rows.folds is not None and len(np.unique(rows.folds[live])) >= 2:
        code = np.unique(rows.folds, return_inverse=True)[1]
    else:
        code = np.zeros(len(rows.share), dtype=np.intp)
        units = np.arange(len(live)) if rows.groups is None else np.unique(rows.groups[live], return_inverse=True)[1]
        code[live] = (units if units.max() else np.arange(len(live))) % SPLITS
    return [np.flatnonzero(code == c) for c in range(code.max() + 1)]


class HeldOut:
    """Problems of all rows but one part, with that part: weights are learnt on the former and judged on the latter."""

    def __init__(self, rows: Rows, loss: Loss) -> None:
        self.rows, self.loss, parts = rows, loss, parts_of(rows)
        self.parts = [(part, problem_of(rows.without(part), loss)) for part in parts if len(parts) > 1]

    def blends(self, solve: Solve, specialists: Indices | None = None) -> Floats:
        """(n, C) blend of each row under the weights that `solve` learns without its part, among some specialists."""
        blends = np.zeros(self.rows.target.shape)
        for part, problem in self.parts:
            smaller = problem if specialists is None else problem.only(specialists)
            weights = smaller.spread(solve(smaller))
            blends[part] = blend(smaller.rows.predictions[part], weights, smaller)
        return blends

    def losses(self, blends: Floats) -> Floats:
        """(n,) loss of blends (n, C) of the rows, in the unit of the first problem."""
        unit = self.parts[0][1].unit
        with np.errstate(over="ignore", invalid="ignore"):  # losses beyond floating point settle nothing
            return row_losses(blends[:, None, :] / unit, self.rows.target / unit, np.ones(1), self.loss)

    def mean_and_error(self, losses: Floats) -> tuple[float, float]:
        """`mean_and_error` with the weights and groups of the rows."""
        live = self.rows.live
        groups = None if self.rows.groups is None else self.rows.groups[live]
        with np.errstate(over="ignore", invalid="ignore"):
            return mean_and_error(losses[live], self.rows.share[live], groups)


def blend(predictions: Floats, weights: Floats, problem: Problem) -> Floats:
    """(n, C) weighted sum of the predictions, in the problem's order so that the library's does not matter."""
    total = np.zeros((predictions.shape[0], predictions.shape[2]))
    for k in np.argsort(problem.group, kind="stable"):
        total += weights[k] * predictions[:, k]
    return total
