"""One specialist on one split of a table: what it predicts out of fold and on the test rows, and what that cost.

Fitting costs hours and combining costs seconds, so the two are apart: the benchmark and the study of defaults read the
same records. A folder keeps them, one file a specialist, so that a run that was killed goes on where it was.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softlearning.execution import Failure
from softlearning.execution.fingerprint import fingerprint
from softlearning.library import Library, Specialist
from softlearning.method.crossfit import CrossFit, Data, Resources, admitted, cross_fit
from softlearning.method.ensemble import Member, Team, fold_team, predict_members, refit
from softlearning.method.folds import Split

Array = NDArray[np.float64]
HERE = Resources()  # one task after another: cells are run side by side, not the tasks of a cell


@dataclass(frozen=True)
class Cell:
    """A table split into training and test rows, in canonical form; `splits` are folds of the training rows."""

    name: str
    data: Data
    splits: list[Split]
    X_test: Any
    target_test: Array


@dataclass(frozen=True)
class Fitted:
    """Predictions of one specialist, (n, C) out of fold and (m, C) on the test rows, and CPU seconds on one core.

    `bagged` are the test predictions averaged over the models of the folds. With an `error` there is nothing else.
    """

    oof: Array = field(default_factory=lambda: np.empty((0, 0)))
    test: Array = field(default_factory=lambda: np.empty((0, 0)))
    bagged: Array | None = None
    folds_seconds: float = 0.0
    refit_seconds: float = 0.0
    test_seconds: float = 0.0
    error: str = ""


def fit_row(row: Specialist, cell: Cell, bag: bool = False) -> Fitted:
    begin = time.process_time()
    crossed = cross_fit(Library((row,)), cell.data, cell.splits, HERE, calibrate=False, keep=bag)
    if crossed.failures:
        return Fitted(error=crossed.failures[0].error)
    middle = time.process_time()
    team, failures = refit([row.name], crossed, cell.data, HERE)
    if failures:
        return Fitted(error=failures[0].error)
    end = time.process_time()
    test = predict_members(team, [row.name], cell.X_test)[:, 0]
    seconds = middle - begin, end - middle, time.process_time() - end
    averaged = fold_team([row.name], crossed, cell.data.classes) if bag else None
    bagged = predict_members(averaged, [row.name], cell.X_test)[:, 0] if averaged else None
    return Fitted(crossed.oof[:, 0], test, bagged, *seconds)


class Fits:
    """The records of one cell, each fitted when it is first asked for and kept in `folder`, if there is one."""

    def __init__(self, cell: Cell, folder: Path | None = None, bag: bool = False):
        self.cell = cell
        self.folder = folder
        self.bag = bag
        self._known: dict[str, Fitted] = {}

    @cached_property
    def draw(self) -> str:
        """Tells this cell from another draw or split of the same table."""
        cell = self.cell
        return fingerprint(cell.data.X, cell.data.y, cell.splits, cell.X_test, cell.target_test)

    def of(self, row: Specialist) -> Fitted:
        if row.name not in self._known:
            self._known[row.name] = self._kept(row.name) or self._new(row)
        return self._known[row.name]

    def everything(self) -> dict[str, Fitted]:
        """What the folder has, by specialist."""
        names = sorted(path.stem for path in self.folder.glob("*.npz")) if self.folder else []
        kept = {name: self._kept(name) for name in names}
        return {name: fitted for name, fitted in kept.items() if fitted}

    def _kept(self, name: str) -> Fitted | None:
        path = self.folder and self.folder / f"{name}.npz"
        if not path or not path.exists():
            return None
        with np.load(path) as record:
            fields = {key: record[key] for key in record}
        if fields.pop("draw") != self.draw:
            raise ValueError(f"{path} was fitted on another draw of {self.cell.name}: delete it and fit again")
        return Fitted(**{key: value if value.ndim else value.item() for key, value in fields.items()})

    def _new(self, row: Specialist) -> Fitted:
        fitted = fit_row(row, self.cell, self.bag)
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            fields = {key: value for key, value in vars(fitted).items() if value is not None}
            partial = self.folder / f"{row.name}.part"
            with partial.open("wb") as file:
                np.savez(file, draw=self.draw, **fields)
            partial.replace(self.folder / f"{row.name}.npz")
        return fitted

    def cross_fit(self, library: Library) -> CrossFit:
        """What `softlearning.method.crossfit.cross_fit` gives for the level 1 of a library, without temperatures."""
        usable, left_out = admitted(library.level(1), self.cell.data.rows)
        rows = sorted(usable, key=lambda row: row.name)
        errors = {row.name: self.of(row).error for row in rows if self.of(row).error}
        good = [row for row in rows if row.name not in errors]
        return CrossFit(
            library=Library(tuple(good)),
            oof=np.stack([self.of(row).oof for row in good], axis=1),
            splits=self.cell.splits,
            temperature=np.ones(len(good)),
            seconds={row.name: (self.of(row).folds_seconds, 0.0) for row in good},
            failures=tuple(Failure(name, 0, error, 0.0) for name, error in errors.items()),
            left_out=left_out,
        )

    def team(self, library: Library) -> Team:
        """The specialists fitted on all training rows, as far as the test rows can tell: they give what they gave."""
        stand_in = lambda row: Member(Recorded(self.of(row).test), "")
        members: dict[str, tuple[Member, ...]] = {row.name: (stand_in(row),) for row in library}
        return Team(
            rows={row.name: row for row in library},
            members=members,
            views={},
            temperature=dict.fromkeys(members, 1.0),
            reads={},
            classes=self.cell.data.classes,
            seconds={row.name: self.of(row).refit_seconds for row in library},
        )


class Recorded:
    """Stands where a fitted model would, before the test rows it was asked about."""

    def __init__(self, prediction: Array):
        self.prediction = prediction
        self.classes_ = np.arange(prediction.shape[1])

    def predict(self, X) -> Array:
        if len(X) != len(self.prediction):
            raise ValueError("only the predictions on the test rows were recorded")
        return self.prediction

    predict_proba = predict
