"""The fitted specialists, and the blend they make: f(x) = sum of alpha_k f_k(x)."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softlearning.data.views import View
from softlearning.execution import Failure, Outcome, Task
from softlearning.library import Library, Specialist
from softlearning.method.crossfit import (
    CrossFit,
    Data,
    Resources,
    Source,
    beside_predictions,
    prepared_work,
    read_by,
    run_tasks,
    scratch_for,
    view_of,
)
from softlearning.method.fitting import dense_if_needed, fit_whole, predict_tensor, side_by_side, stacker_features
from softlearning.uncertainty.temperature import apply_temperature


@dataclass(frozen=True)
class Member:
    """One fitted model of a specialist; `view` is its key into the team's views, empty where it reads none."""

    model: Any
    view: str


@dataclass(frozen=True)
class Team:
    """The specialists that predict: members (one each, or one a fold), the views they read, their temperatures."""

    rows: dict[str, Specialist]
    members: dict[str, tuple[Member, ...]]
    views: dict[str, View | None]
    temperature: dict[str, float]
    reads: dict[str, tuple[str, ...]]
    classes: int
    seconds: dict[str, float]

    def without_readers(self, library: Library) -> Team:
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


def refit(
    names, crossed: CrossFit, data: Data, resources: Resources, known: Team | None = None
) -> tuple[Team, tuple[Failure, ...]]:
    """The team of the named specialists, fitted on all rows (level 2: on all out-of-fold rows), and what failed.

    Members that `known` (an earlier team on the same data) already has are taken over.
    """
    chosen = crossed.library[needed(names, crossed.library)]
    old = {} if known is None else {n: known.members[n] for n in chosen.names if n in known.members}
    new = Library(tuple(s for s in chosen if s.name not in old))
    with scratch_for(data, new, resources) as scratch:
        source = Source(data, scratch)
        tasks = [refit_task(s, source, crossed) for s in new]
        outcomes = run_tasks(tasks, new, resources)
    views = {} if known is None else dict(known.views)
    views |= {key_of(view, fold): fitted for (view, fold), fitted in source.views.items()}
    team = assemble(chosen, crossed, data.classes, views)
    good = [o for o in outcomes if isinstance(o, Outcome)]
    fresh = {o.specialist: (Member(o.value["model"], view_key(crossed.library, o.specialist, data)),) for o in good}
    seconds = {} if known is None else known.seconds
    seconds = seconds | {o.specialist: o.value["fit_seconds"] for o in good}
    failures = tuple(o for o in outcomes if isinstance(o, Failure))
    return replace(team, members={**old, **fresh}, seconds=seconds), failures


def refit_task(s: Specialist, source: Source, crossed: CrossFit) -> Task:
    work, _ = prepared_work(s, source, "refit", crossed, source.data.live)
    return Task(s.name, "refit", fit_whole, (work,), cost=s.cost, family=s.family)


def key_of(view: str, fold: int | str) -> str:
    """The name of a view in a team: level 2 has its own, fitted on the rows that have predictions."""
    return view if fold == "refit" else f"{view} of level 2"


def view_key(library: Library, name: str, data: Data) -> str:
    s = next(iter(library[name]))
    if s.level == 1:
        return view_of(s, data)
    return f"{beside_predictions(s)} of level 2" if beside_predictions(s) else ""


def assemble(chosen: Library, crossed: CrossFit, classes: int, views: dict[str, View | None]) -> Team:
    temperature = dict(zip(crossed.library.names, crossed.temperature))
    return Team(
        rows={s.name: s for s in chosen},
        members={},
        views=views,
        temperature={name: float(temperature[name]) for name in chosen.names},
        reads={s.name: read_by(s, crossed.library) for s in chosen if s.level == 2},
        classes=classes,
        seconds={},
    )


def fold_team(names, crossed: CrossFit, classes: int) -> Team:
    """The team whose members are the models of the folds, to be averaged: no refit."""
    chosen = crossed.library[needed(names, crossed.library)]
    return with_fold_models(assemble(chosen, crossed, classes, {}), chosen.names, crossed)


def with_fold_models(team: Team, names, crossed: CrossFit) -> Team:
    """The same team, the named specialists standing in by their models of the folds."""
    views: dict[str, View | None] = {}
    members: dict[str, tuple[Member, ...]] = dict.fromkeys(names, ())
    for (name, fold), (model, view) in crossed.models.items():
        if name in members:
            key = "" if view is None else f"{name}/{fold}"
            views[key] = view
            members[name] += (Member(model, key),)
    return replace(team, views={**team.views, **views}, members={**team.members, **members})


MANY = 1_000  # rows from which threads pay for themselves


def predict_members(team: Team, names, X, workers: int = 1) -> np.ndarray:
    """(n, K, C) predictions of the named specialists, each with its temperature; X is canonical."""
    seen = Seen(team, X)
    if workers > 1 and X.shape[0] >= MANY:
        seen.prepare(names, workers)
    return np.stack([seen.prediction(name) for name in names], axis=1)


class Seen:
    """Predictions on one table, each view and each specialist worked out once."""

    def __init__(self, team: Team, X):
        self.team = team
        self.X = X
        self._views: dict[str, Any] = {}
        self._predictions: dict[str, np.ndarray] = {}

    def prepare(self, names, workers: int) -> None:
        """The predictions of level 1 that the named specialists rest on, several at a time."""
        team = self.team
        level_1 = {n for name in names for n in (team.reads.get(name, ()) if team.rows[name].level == 2 else (name,))}
        for member in (member for name in level_1 for member in team.members[name]):
            self._view(member.view)
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(self.prediction, sorted(level_1)))

    def prediction(self, name: str) -> np.ndarray:
        if name not in self._predictions:
            self._predictions[name] = self._predict(name)
        return self._predictions[name]

    def _predict(self, name: str) -> np.ndarray:
        team = self.team
        parts = [self._member(team.rows[name], member) for member in team.members[name]]
        P = parts[0] if len(parts) == 1 else np.mean(parts, axis=0)
        return P if team.classes == 1 else apply_temperature(P, team.temperature[name])

    def _member(self, row: Specialist, member: Member) -> np.ndarray:
        X = self._view(member.view) if row.level == 1 else self._stacked(row, member)
        return predict_tensor(member.model, dense_if_needed(X, row), self.team.classes)

    def _stacked(self, row: Specialist, member: Member):
        level_1 = np.stack([self.prediction(name) for name in self.team.reads[row.name]], axis=1)
        features = stacker_features(level_1)
        return side_by_side(self._view(member.view), features) if member.view else features

    def _view(self, key: str):
        if key not in self._views:
            view = self.team.views.get(key)
            self._views[key] = self.X if view is None else view.transform(self.X)
        return self._views[key]
