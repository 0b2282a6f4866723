"""One outer fold of a dataset, and the estimators fitted on it.

Every model is made by `fit` of SoftClassifier or SoftRegressor. They share one checkpoint folder, so that a specialist
is fitted once on each inner fold for all models that have it, and a run that was killed goes on where it was.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from softlearning import SoftClassifier, SoftRegressor
from softlearning.library import Library, every_row, resolve
from softlearning_bench.datasets import Dataset
from softlearning_bench.generators import Table

Array = NDArray[np.float64]
FOLDS = 5
ESTIMATORS: dict[str, Any] = {"classification": SoftClassifier, "regression": SoftRegressor}
LIBRARIES: dict[str, Any] = {"paper": "paper", "default": "default"}  # what `library=` is given
EQUAL = {"rule": "uniform", "loss": "squared", "refit": True}  # each has weight and is fitted on all rows


@dataclass(frozen=True)
class Part:
    """What a method may learn from, and what it is judged on; X is an array or a frame."""

    task: str
    classes: int
    X: Any
    y: NDArray[Any]
    X_test: Any
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


def rows_of(name: str, task: str) -> Library:
    """The rows of a library of the benchmark, "paper" or "default"."""
    return resolve(LIBRARIES[name], task)


class Specialists:
    """The models of one Part, each fitted when it is first asked for.

    Their checkpoint is a folder of its own unless one is given; it is gone with this object, which so has to outlive
    what its models are combined to.
    """

    def __init__(self, part: Part, folder: Path | None = None):
        self.part = part
        self.folder = folder or Path(tempfile.mkdtemp())
        if folder is None:
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self._models: dict[str, Any] = {}

    def model(self, **settings: Any):
        """The estimator with these settings and else its defaults, fitted on the training rows."""
        key = repr(sorted(settings.items()))
        if key not in self._models:
            options = {"library": LIBRARIES["default"], "random_state": self.part.seed, "checkpoint": self.folder}
            self._models[key] = ESTIMATORS[self.part.task](**options | settings).fit(self.part.X, self.part.y)
        return self._models[key]

    def equal(self, library: Any, calibrate: bool = False):
        """All specialists of a library with equal weight, as they are or calibrated."""
        calibration = {"calibrate": calibrate} if self.part.task == "classification" else {}
        return self.model(library=library, **EQUAL, **calibration)

    def paper(self, rule: str, calibrate: bool = False):
        """The paper's library under a rule: another combination of the same fits."""
        every = self.equal(LIBRARIES["paper"], calibrate)
        return every if rule == "uniform" else every.recombine(rule=rule, X=self.part.X, y=self.part.y)

    @cached_property
    def everybody(self):
        """Every specialist of level 1 of the paper's library and of the default, each as it is by itself."""
        libraries = (rows_of(name, self.part.task).level(1).names for name in LIBRARIES)
        names = list(dict.fromkeys(name for library in libraries for name in library))
        return self.equal(every_row(self.part.task)[names])

    @cached_property
    def predictions_of_everybody(self) -> Array:
        """(m, K, C) on the test rows, in the order of `everybody.specialists_`."""
        return self.everybody.specialist_predictions(self.part.X_test)

    def predict(self, model: Any) -> tuple[Array, float]:
        """Predictions (m, C) of a fitted model on the test rows, and the CPU seconds that they took."""
        begin = time.process_time()
        P = model.predict_proba(self.part.X_test) if self.part.classes > 1 else model.predict(self.part.X_test)
        return P.reshape(len(P), -1), time.process_time() - begin


def all_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fold_seconds(model: Any) -> float:
    """Seconds of fitting and predicting in all folds, by all specialists of a model."""
    return float(model.leaderboard_[["fit_seconds", "predict_seconds"]].to_numpy(dtype=float, na_value=0.0).sum())


def refit_seconds(model: Any, names: Any = None) -> float:
    """Seconds of fitting these specialists, or those that the model needs, on all training rows."""
    ensemble = model.record_.ensemble
    return float(sum(ensemble.seconds.get(name, 0.0) for name in (ensemble.specialists if names is None else names)))


def combining_seconds(model: Any) -> float:
    """CPU seconds of the model's own work when every specialist is fitted: weights, guard, what it says of itself."""
    begin = time.process_time()
    model.recombine()
    return time.process_time() - begin
