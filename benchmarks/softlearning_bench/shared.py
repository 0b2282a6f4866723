"""One outer fold of a dataset, and the specialists fitted on it once for every method that reads them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from softlearning.estimators import SoftClassifier, SoftRegressor
from softlearning.library import Library, resolve
from softlearning.method.crossfit import CrossFit, calibrated
from softlearning.method.folds import make_folds
from softlearning_bench.datasets import Dataset
from softlearning_bench.fits import HERE, Cell, Fits, Fitted
from softlearning_bench.generators import Table

Array = NDArray[np.float64]
FOLDS = 5
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


def cell_name(dataset: str, fold: int, seed: int) -> str:
    """The folder that keeps the fits of an outer fold."""
    return f"{dataset}-{seed}-{fold}"


def cell_of(part: Part, name: str) -> Cell:
    """The part as the estimators see it: admitted, with the inner folds of the defaults."""
    model = ESTIMATORS[part.task](random_state=part.seed)
    data = model._admit_training(part.X, part.y, None)
    splits = make_folds(None, data.y, stratify=part.task == "classification", seed=data.seed)
    truth = np.eye(data.classes)[part.y_test] if part.task == "classification" else part.y_test[:, None]
    return Cell(name, data, splits, model._admit(part.X_test), truth)


class Specialists:
    """The paper's library and the default one on one Part, each specialist fitted once, when it is first asked for.

    Probabilities are as the specialists give them; temperatures are kept apart, so that methods with and without
    calibration read the same fits.
    """

    def __init__(self, part: Part, name: str = "", folder: Path | None = None):
        self.part = part
        self.fits = Fits(cell_of(part, name), folder)
        self.data = self.fits.cell.data

    @cached_property
    def crossed(self) -> CrossFit:
        """Out-of-fold predictions of the paper's library, without temperatures."""
        return self.fits.cross_fit(resolve("paper", self.part.task))

    @cached_property
    def default_crossed(self) -> CrossFit:
        """The same of level 1 of the default library."""
        return self.fits.cross_fit(resolve("default", self.part.task))

    @cached_property
    def calibrated(self) -> CrossFit:
        return self.with_temperatures(self.crossed)

    def with_temperatures(self, crossed: CrossFit) -> CrossFit:
        """The same out-of-fold predictions, each specialist with its temperature."""
        if self.part.task == "regression":
            return crossed
        oof, temperature = calibrated(crossed.oof, crossed.predicted, self.data)
        return replace(crossed, oof=oof, temperature=temperature)

    def fitted(self, crossed: CrossFit) -> list[Fitted]:
        return [self.fits.of(row) for row in crossed.library]

    @cached_property
    def tested(self) -> Array:
        """Predictions (m, K, C) of the paper's library on the test rows."""
        return np.stack([fitted.test for fitted in self.fitted(self.crossed)], axis=1)

    @cached_property
    def default(self):
        """The estimator with all its defaults, as `fit` would leave it, on top of what is fitted."""
        model = ESTIMATORS[self.part.task](random_state=self.part.seed)
        model._admit_training(self.part.X, self.part.y, None)
        known = self.default_crossed
        team = self.fits.team(known.library)
        known = self.with_temperatures(known) if model._calibrates() else known
        library = resolve(model.library, self.part.task)
        return model._learn(library, self.data, known.splits, HERE, known=known, team=team)

    def library_seconds(self, library: Library) -> float:
        """Fitting and predicting in all folds, by all specialists of level 1."""
        return sum(self.fits.of(row).folds_seconds for row in library.level(1))
