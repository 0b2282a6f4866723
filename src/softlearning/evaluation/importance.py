"""Which input columns the predictions rely on, judged on rows that the models have not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Predict = Callable[[Any], np.ndarray]


@dataclass(frozen=True)
class Importance:
    """Rise of the loss when a column's values are shuffled: mean and standard deviation over repeats, (d,) each.

    base_loss : the loss before. rows : how many rows were judged.
    """

    mean: np.ndarray
    std: np.ndarray
    base_loss: float
    rows: int


def permutation_importance(
    predict: Predict,
    X: Any,
    y: np.ndarray,
    *,
    loss: Callable[[np.ndarray, np.ndarray], float] | None = None,
    repeats: int = 5,
    seed: int = 0,
) -> Importance:
    """How much predictions rely on each input column.

    Parameters
    ----------
    predict : X -> (n,) or (n, C), for rows that the model has not seen.
    X : (n, d) array, or a frame with `iloc`.
    y : (n,) or (n, C), as the loss wants it.
    loss : (y, prediction) -> float; the squared error summed over classes, unless one is given.

    Correlated columns share what shuffling one of them costs, so a small value does not prove a column useless.
    """
    loss = loss or _mean_squared_norm
    rng = np.random.default_rng(seed)
    base = loss(y, predict(X))
    rise = np.empty((X.shape[1], repeats))
    for j in range(X.shape[1]):
        for r in range(repeats):
            rise[j, r] = loss(y, predict(_with_column_shuffled(X, j, rng.permutation(X.shape[0])))) - base
    return Importance(rise.mean(axis=1), rise.std(axis=1), float(base), X.shape[0])


def _with_column_shuffled(X: Any, j: int, order: np.ndarray) -> Any:
    """A copy of X with the rows of column j in another order; a frame keeps its dtypes."""
    shuffled = X.copy()
    if hasattr(X, "iloc"):
        shuffled.isetitem(j, X.iloc[order, j].array)
    else:
        shuffled[:, j] = X[order, j]
    return shuffled


def _mean_squared_norm(y: np.ndarray, prediction: np.ndarray) -> float:
    """Mean over rows of |y - f|^2, for (n,) or (n, C)."""
    return float(np.sum((np.asarray(y) - prediction) ** 2) / len(prediction))
