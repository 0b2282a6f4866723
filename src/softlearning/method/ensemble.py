"""The fitted ensemble: the models that predict, and the blend they make, f(x) = sum of alpha_k f_k(x).

A specialist predicts by one model fitted on all rows, or by the mean of the models of its folds, which costs no further
fit and averages what differs between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softlearning.data.views import View
from softlearning.execution import Failure
from softlearning.library import Library, Specialist
from softlearning.method.crossfit import CrossFit, fit_task, read_by, run_tasks, seconds_after, work_for
from softlearning.method.fitting import Work, dense_if_needed, own_labels, predict_tensor, sampled, stacker_features
from softlearning.method.preparation import REFIT, Preparation, ViewKey, side_by_side, take
from softlearning.method.training import Resources
from softlearning.uncertainty.calibration import Calibration, apply_calibration
from softlearning.uncertainty.sharpening import sharpened

MANY = 1_000  # rows from which threads pay for themselves
CHUNK = 2**20  # cells of a table that are predicted at a time: wide views have thirty numbers for each
FEWEST = 2**14  # rows of a chunk at least
ENOUGH_ROWS = 50_000  # from here on one more fit on all rows costs much and buys nothing that can be measured


@dataclass(frozen=True)
class Member:
    """One fitted model of a specialist, and the key of the view it reads; None where it reads predictions alone."""

    model: Any
    view: ViewKey | None


@dataclass(frozen=True)
class Ensemble:
    """The specialists that predict: their members (one, or one per fold), the views they read, their calibration.

    In the blend each is sharpened by `sharpness`; a stacker reads them as they are.
    """

    specialists: dict[str, Specialist]
    members: dict[str, tuple[Member, ...]]
    views: dict[ViewKey, View | None]
    calibration: dict[str, Calibration | None]
    reads: dict[str, tuple[str, ...]]
    classes: int
    labels: np.ndarray | None
    seconds: dict[str, float]
    sharpness: float = 1.0

    def without_readers(self, library: Library) -> Ensemble:
        """The same without stackers that do not read just the specialists of this library any more."""
        current = {s.name: read_by(s, library) for s in library if s.level == 2}
        stale = {name for name, reads in self.reads.items() if current.get(name) != reads}
        return replace(self, members={name: m for name, m in self.members.items() if name not in stale})


def needed(names: Iterable[str], library: Library) -> tuple[str, ...]:
    """The named specialists, and those of level 1 that a named one of level 2 reads."""
    wanted = set(names)
    for s in library:
        if s.level == 2 and s.name in wanted:
            wanted |= set(read_by(s, library))
    return tuple(s.name for s in library if s.name in wanted)


def assemble(names, crossed: CrossFit, table: Preparation, known: Ensemble | None = None) -> Ensemble:
    """The ensemble of the named specialists before any model is in it, but for those that `known` has."""
    chosen = crossed.library[needed(names, crossed.library)]
    calibration = dict(zip(crossed.library.names, crossed.calibration))
    old = {} if known is None else {n: known.members[n] for n in chosen.names if n in known.members}
    return Ensemble(
        specialists={s.name: s for s in chosen},
        members=old,
        views={m.view: known.views[m.view] for n in old for m in old[n] if m.view} if known else {},
        calibration={name: calibration[name] for name in chosen.names},
        reads={s.name: read_by(s, crossed.library) for s in chosen if s.level == 2},
        classes=table.training.classes,
        labels=table.training.labels,
        seconds={} if known is None else {n: s for n, s in known.seconds.items() if n in old},
        sharpness=crossed.sharpness,
    )


def refit(ensemble: Ensemble, crossed: CrossFit, table: Preparation, resources: Resources) -> tuple[Ensemble, tuple]:
    """The ensemble with every specialist that lacks a model fitted on all rows, and what failed.

    A stacker is fitted on all rows that have predictions.
    """
    new = lacking(ensemble)
    work = [work_for(s, table, crossed, REFIT, table.training.live) for s in new]
    tasks, kept = (
        [fit_task(w, new, keep=True) for w in work],
        seconds_after(2, new, crossed, table.training) * len(crossed.library),
    )
    return completed(ensemble, work, table, run_tasks(tasks, table, resources, reserve=kept))


def average_folds(
    ensemble: Ensemble, crossed: CrossFit, table: Preparation, resources: Resources
) -> tuple[Ensemble, tuple]:
    """The ensemble where every specialist that lacks a model predicts by the mean of its folds' models; what failed.

    Models that the cross-fitting did not keep are fitted once more.
    """
    ensemble = with_fold_models(ensemble, crossed, table)
    new = lacking(ensemble)
    work = [
        work_for(s, table, crossed, fold, *split) for s in new for fold, split in enumerate(crossed.splits_of(s.level))
    ]
    return completed(ensemble, work, table, run_tasks([fit_task(w, new, keep=True) for w in work], table, resources))


def lacking(ensemble: Ensemble) -> Library:
    """The specialists of an ensemble that have no model yet."""
    return Library(tuple(s for s in ensemble.specialists.values() if s.name not in ensemble.members))


def completed(ensemble: Ensemble, work: list[Work], table: Preparation, outcomes) -> tuple[Ensemble, tuple]:
    """The ensemble with the models that tasks gave, in the order of the tasks, and what failed."""
    failures = tuple(o for o in outcomes if isinstance(o, Failure))
    lost = {f.specialist for f in failures}
    done = [(w, o.value) for w, o in zip(work, outcomes) if w.specialist.name not in lost]
    good = [(sampled(w, value["sample"] or w.size), value) for w, value in done]  # where time was short, fewer rows
    views = {w.view: table.get(w.view, w.rows, w.test).view for w, _ in good if w.view is not None}
    members: dict[str, tuple[Member, ...]] = {}
    seconds: dict[str, float] = {}
    for w, value in good:
        name = w.specialist.name
        members[name] = (*members.get(name, ()), Member(value["model"].own(), w.view))
        seconds[name] = seconds.get(name, 0.0) + value["fit_seconds"]
    grown = replace(
        ensemble,
        members=ensemble.members | members,
        views=ensemble.views | views,
        seconds=ensemble.seconds | seconds,
    )
    return grown, failures


def with_fold_models(ensemble: Ensemble, crossed: CrossFit, table: Preparation) -> Ensemble:
    """The ensemble with the models of the folds that were kept, for every specialist that lacks a model."""
    views: dict[ViewKey, View | None] = {}
    members: dict[str, tuple[Member, ...]] = {}
    for name, fold in sorted(crossed.models):
        if name in ensemble.specialists and name not in ensemble.members:
            s = ensemble.specialists[name]
            work = work_for(s, table, crossed, fold, *crossed.splits_of(s.level)[fold])
            if (key := work.view) is not None and key not in views:
                views[key] = table.get(key, work.rows, work.test).view
            members[name] = (*members.get(name, ()), Member(crossed.models[name, fold].own(), key))
    return replace(ensemble, views=ensemble.views | views, members=ensemble.members | members)


def predict_members(ensemble: Ensemble, names, X, workers: int = 1) -> np.ndarray:
    """(n, K, C) predictions of the named specialists as they speak in the blend; X is canonical."""
    whole = np.empty((X.shape[0], len(names), ensemble.classes))
    for rows, part in predict_chunks(ensemble, names, X, workers):
        whole[rows] = part
    return whole


def predict_chunks(ensemble: Ensemble, names, X, workers: int = 1) -> Iterator[tuple[slice, np.ndarray]]:
    """The same some rows at a time, so that views and what specialists make of them stay small."""
    for rows in chunks(X.shape[0], X.shape[1]):
        table = Table(ensemble, X if rows == slice(0, X.shape[0]) else take(X, rows))
        if workers > 1 and X.shape[0] >= MANY:
            table.prepare(names, workers)
        yield rows, sharpened(np.stack([table.prediction(name) for name in names], axis=1), ensemble.sharpness)


def chunks(rows: int, columns: int) -> list[slice]:
    """Consecutive rows of about `CHUNK` cells; the last are never few, since small products are summed otherwise."""
    size = max(CHUNK // max(columns, 1) // FEWEST, 1) * FEWEST
    starts = [0, *range(size, rows - size + 1, size)]
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], rows])]


class Table:
    """Predictions on one table, each view and each specialist worked out once."""

    def __init__(self, ensemble: Ensemble, X):
        self.ensemble = ensemble
        self.X = X
        self._views: dict[ViewKey, Any] = {}
        self._predictions: dict[str, np.ndarray] = {}

    def prepare(self, names, workers: int) -> None:
        """The predictions of level 1 that the named specialists rest on, several at a time."""
        e = self.ensemble
        level_1 = sorted({n for name in names for n in e.reads.get(name, (name,))})
        keys = {member.view for name in level_1 for member in e.members[name] if member.view is not None}
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(self.view, sorted(keys, key=str)))
            list(pool.map(self.prediction, level_1))

    def prediction(self, name: str) -> np.ndarray:
        """(n, C) calibrated predictions of one specialist."""
        if name not in self._predictions:
            e = self.ensemble
            parts = [self._member(e.specialists[name], member) for member in e.members[name]]
            P = parts[0] if len(parts) == 1 else np.mean(parts, axis=0)
            calibration = e.calibration[name]
            self._predictions[name] = P if calibration is None else apply_calibration(P, calibration)
        return self._predictions[name]

    def view(self, key: ViewKey | None):
        """The table in a view; the table itself where there is none."""
        fitted = None if key is None else self.ensemble.views.get(key)
        if key is None or fitted is None:
            return self.X
        if key not in self._views:
            self._views[key] = fitted.transform(self.X)
        return self._views[key]

    def _member(self, s: Specialist, member: Member) -> np.ndarray:
        X = self.view(member.view) if s.level == 1 else self._stacked(s, member)
        e = self.ensemble
        return predict_tensor(member.model, dense_if_needed(X, s), e.classes, own_labels(s, e.labels))

    def _stacked(self, s: Specialist, member: Member):
        level_1 = np.stack([self.prediction(name) for name in self.ensemble.reads[s.name]], axis=1)
        features = stacker_features(level_1)
        return features if member.view is None else side_by_side(self.view(member.view), features)
