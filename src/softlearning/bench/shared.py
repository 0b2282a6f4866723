"""One outer fold of a dataset, and the specialists fitted on it once for every method that reads them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from softlearning.bench.datasets import Dataset
from softlearning.bench.generators import Table
from softlearning.blend import Team, predict_members, refit
from softlearning.crossfit import CrossFit, Data, Resources, calibrated, cross_fit
from softlearning.estimators import SoftClassifier, SoftRegressor
from softlearning.folds import make_folds
from softlearning.library import resolve

Array = NDArray[np.float64]
FOLDS = 5
ALONE = Resources()  # here, one task after another: cells are run side by side, not the tasks of a cell
ESTIMATORS: dict[str, Any] = {"classification": SoftClassifier, "regression": SoftRegressor}


@dataclass(frozen=True)
class Part:
    """What a method may learn from, and what it is judged on."""

    task: str
    classes: int
    X: Array
    y: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]
    seed: int


def outer_fold(row: Dataset, table: Table, fold: int, seed: int) -> Part:
    """The paper's protocol: five folds, shuffled, stratified by class; the seed shuffles."""
    X, y = table
    y = y.astype(int) if row.task == "classification" else y
    splitter = (StratifiedKFold if row.task == "classification" else KFold)(FOLDS, shuffle=True, random_state=seed)
    train, test = list(splitter.split(X, y))[fold]
    return Part(row.task, row.classes or 1, X[train], y[train], X[test], y[test], seed)


class Specialists:
    """The paper's library and the default one on one Part: cross-fitted, refitted and asked for predictions once.

    Nothing is computed before it is asked for. Probabilities are as the specialists give them; `temperatures` are
    kept apart, so that methods with and without calibration read the same fits.
    """

    def __init__(self, part: Part):
        self.part = part

    @cached_property
    def _paper_model(self):
        return ESTIMATORS[self.part.task](library="paper", random_state=self.part.seed)

    @cached_property
    def data(self) -> Data:
        return self._paper_model._admit_training(self.part.X, self.part.y, None)

    @cached_property
    def crossed(self) -> CrossFit:
        """Out-of-fold predictions of the paper's library, without temperatures."""
        stratify = self.part.task == "classification"
        splits = make_folds(None, self.data.y, stratify=stratify, seed=self.data.seed)
        return cross_fit(resolve("paper", self.part.task), self.data, splits, ALONE, calibrate=False)

    @cached_property
    def team(self) -> Team:
        """Every specialist of the paper's library, fitted on all rows of the part."""
        team, failures = refit(self.crossed.library.names, self.crossed, self.data, ALONE)
        if failures:
            raise RuntimeError("; ".join(f"{f.specialist}: {f.error}" for f in failures))
        return team

    @cached_property
    def calibrated(self) -> CrossFit:
        """The same out-of-fold predictions, each specialist with its temperature."""
        if self.part.task == "regression":
            return self.crossed
        oof, temperature = calibrated(self.crossed.oof, self.crossed.predicted, self.data)
        return replace(self.crossed, oof=oof, temperature=temperature)

    @cached_property
    def tested(self) -> tuple[Array, dict[str, float]]:
        """Predictions (m, K, C) of the paper's library on the test rows, and the seconds each specialist took."""
        team, table = self.team, self._paper_model._admit(self.part.X_test)
        predictions, seconds = [], {}
        for name in self.crossed.library.names:
            begin = time.perf_counter()
            predictions.append(predict_members(team, [name], table)[:, 0])
            seconds[name] = time.perf_counter() - begin
        return np.stack(predictions, axis=1), seconds

    @cached_property
    def default(self):
        """The estimator with all its defaults, as `fit` would leave it, on top of what the paper's library has."""
        model = ESTIMATORS[self.part.task](random_state=self.part.seed)
        data = model._admit_training(self.part.X, self.part.y, None)
        library = resolve(model.library, self.part.task)
        known = self.calibrated if model._calibrates() else self.crossed
        known = known.only([name for name in known.library.names if name in library])
        return model._learn(library, data, known.splits, ALONE, known=known, team=self.team)

    def library_seconds(self, crossed: CrossFit) -> float:
        """Fitting and predicting in all folds, by all specialists."""
        return sum(sum(crossed.seconds[name]) for name in crossed.library.names)
