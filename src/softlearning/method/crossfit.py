"""Honest predictions: every specialist fitted without a fold, predicting that fold.

`cross_fit` turns a library, a table and folds into a `CrossFit`: the out-of-fold tensor (row, specialist, class), what
each specialist cost and what failed. It only lists tasks; where they run, and what happens when one dies, is the
business of `execution`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from softlearning.data.schema import Schema
from softlearning.data.views import View, fit_view
from softlearning.execution import Failure, Outcome, Scratch, Task, elsewhere, run
from softlearning.library import Library, Shape, Specialist, dummy_row
from softlearning.method.fitting import Rows, Work, fit_and_predict, seed_for, stacker_features, take
from softlearning.method.folds import Split, fold_of_row
from softlearning.uncertainty.temperature import apply_temperature, fit_temperature
from softlearning.weights import solve_weights

BULKY = 2**26  # bytes of a table of numbers from which its views lie in files also for tasks of this process
PARTS = 5  # of the held-out rows, where one split is all there is
TEMPERATURE_SHRINK = 50.0  # nats, by the study of defaults: with less, small tables make specialists overbold


@dataclass(frozen=True)
class Data:
    """What is learnt from, checked and in canonical form: `target` is (n, C), one-hot or the column y."""

    X: Any
    y: np.ndarray
    target: np.ndarray
    weight: np.ndarray | None
    schema: Schema
    task: str
    seed: int

    @property
    def rows(self) -> int:
        return len(self.y)

    @property
    def live(self) -> np.ndarray:
        """The rows that count: a row of weight 0 is as if it were not there."""
        return np.arange(self.rows) if self.weight is None else np.flatnonzero(self.weight > 0)

    def without_table(self) -> Data:
        """The target alone, which is all that weights need."""
        return replace(self, X=None)

    @property
    def classes(self) -> int:
        return self.target.shape[1]


@dataclass(frozen=True)
class Resources:
    """How the work is carried: cores, limits, the store of finished tasks, who watches."""

    n_jobs: int | None = None
    deadline: float | None = None
    memory_limit: int | None = None
    store: Any = None
    watch: Any = None


@dataclass(frozen=True)
class CrossFit:
    """Out-of-fold predictions, and all that weights, insight and report read of them.

    `oof` is (n, K, C), NaN on rows that no fold holds out; its K columns are the specialists of `library`, those that
    finished, in the order of their names. `temperature` has one entry a specialist and is already applied. `left_out`
    has the reason for each specialist that never ran, `failures` for each that ran and failed. `models` holds the
    models of the folds where they are kept, as (specialist, fold) -> (model, view). `alone` are the weights of level 1
    when it is solved by itself, where there is a level 2.
    """

    library: Library
    oof: np.ndarray
    splits: list[Split]
    temperature: np.ndarray
    seconds: dict[str, tuple[float, float]]
    failures: tuple[Failure, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    models: dict[tuple[str, int], tuple[Any, View | None]] = field(default_factory=dict)
    alone: dict[str, float] = field(default_factory=dict)

    @property
    def predicted(self) -> np.ndarray:
        """Rows that some fold held out."""
        return self.fold_of_row >= 0

    @property
    def fold_of_row(self) -> np.ndarray:
        return fold_of_row(self.second_splits, len(self.oof))

    @property
    def second_splits(self) -> list[Split]:
        """Folds of level 2 and of what is learnt from predictions; of a single split, parts of its held-out rows."""
        if len(self.splits) > 1:
            return self.splits
        held_out = self.splits[0][1]
        parts = [held_out[start::PARTS] for start in range(min(PARTS, len(held_out)))]
        return [(np.setdiff1d(held_out, part), part) for part in parts]

    def splits_of(self, level: int) -> list[Split]:
        return self.splits if level == 1 else self.second_splits

    def columns(self, names) -> list[int]:
        return [self.library.names.index(name) for name in names]

    def only(self, names) -> CrossFit:
        """The same with some specialists only."""
        library = self.library[names]
        chosen = self.columns(library.names)
        return replace(self, library=library, oof=self.oof[:, chosen], temperature=self.temperature[chosen])

    def without(self, names, *, stackers: bool = False) -> CrossFit:
        """The same without some specialists and what reads them; with `stackers` all of level 2 goes too."""
        gone = set(names)
        reading = {s.name for s in self.library if s.level == 2 and (stackers or gone & set(read_by(s, self.library)))}
        return self.only([name for name in self.library.names if name not in gone | reading])

    def after_failed_refits(self, failures: tuple[Failure, ...]) -> CrossFit:
        """The same without specialists that failed on all rows; what read them will be cross-fitted anew."""
        return replace(self.without([f.specialist for f in failures]), failures=self.failures + failures)

    def forgiving(self, name: str) -> CrossFit:
        """The same, ready to try a specialist again that found no time or failed."""
        left_out = {n: reason for n, reason in self.left_out.items() if n != name}
        return replace(self, left_out=left_out, failures=tuple(f for f in self.failures if f.specialist != name))

    def excluded(self) -> set[str]:
        """Specialists that will not be tried again."""
        return set(self.left_out) | {f.specialist for f in self.failures}


def cross_fit(
    library: Library,
    data: Data,
    splits: list[Split],
    resources: Resources,
    *,
    calibrate: bool,
    keep=False,
    known=None,
) -> CrossFit:
    """The out-of-fold tensor of both levels; a specialist with a failed fold is excluded whole.

    Specialists that `known` (an earlier CrossFit on the same data and folds) already has are not fitted again.
    """
    usable, left_out = admitted(library, data.rows)
    done = nothing_yet(data, splits) if known is None else known
    done = replace(done, left_out={**done.left_out, **left_out})
    with scratch_for(data, library, resources) as scratch:
        source = Source(data, scratch)
        done = run_level(1, usable, source, done, resources, calibrate, keep)
        if not done.library:
            late = replace(resources, deadline=None)  # the last resort takes no time, and there may be none left
            done = run_level(1, Library((dummy_row(),)), source, done.forgiving("dummy"), late, calibrate, keep)
        if usable.level(2):
            done = replace(done, alone=weights_alone(done, data))
            done = run_level(2, with_readings(usable, done), source, done, resources, calibrate, keep)
    if not done.library:
        raise RuntimeError("no specialist finished: " + "; ".join(f"{f.specialist}: {f.error}" for f in done.failures))
    return done


def weights_alone(done: CrossFit, data: Data) -> dict[str, float]:
    """What each specialist of level 1 weighs when level 1 is solved by itself."""
    rows, names = done.predicted, done.library.level(1).names
    weight = None if data.weight is None else data.weight[rows]
    P, loss = done.oof[rows][:, done.columns(names)], "squared" if data.classes == 1 else "log"
    solution = solve_weights(P, data.target[rows], loss=loss, sample_weight=weight)
    return dict(zip(names, solution.weights.tolist()))


def with_readings(library: Library, done: CrossFit) -> Library:
    """The library, where a row that reads the "support" names the specialists of level 1 that earn weight together.

    So that what has no weight need not be refitted for the stacker's sake.
    """
    support = tuple(name for name, weight in done.alone.items() if weight > 0)
    return Library(tuple(replace(s, reads=support) if s.reads == "support" else s for s in library))


def nothing_yet(data: Data, splits: list[Split]) -> CrossFit:
    return CrossFit(Library(()), np.empty((data.rows, 0, data.classes)), splits, np.ones(0), {})


def admitted(library: Library, rows: int) -> tuple[Library, dict[str, str]]:
    """The specialists that may run at this size, and the reason for each of the others."""
    reasons = {}
    for s in library:
        if s.max_rows is not None and rows > s.max_rows:
            reasons[s.name] = f"more than {s.max_rows:,} rows: {s.reason}"
        elif rows < s.min_rows:
            reasons[s.name] = f"fewer than {s.min_rows:,} rows: {s.reason}"
    return library - list(reasons), reasons


def isolated(library: Library, resources: Resources) -> bool:
    """Whether a process that can be lost is needed: there is a limit to keep, or a specialist is not our own."""
    limited = resources.deadline is not None or resources.memory_limit is not None
    return limited or not all(s.trusted for s in library)


def scratch_for(data: Data, library: Library, resources: Resources) -> Scratch:
    """Where the views of all folds lie: in files where tasks run elsewhere, or where memory would fill with them."""
    size = getattr(data.X, "nbytes", 0)
    return Scratch(shared=size > BULKY or elsewhere(resources.n_jobs, isolated(library, resources)))


def run_level(level: int, library: Library, source: Source, done: CrossFit, resources, calibrate, keep) -> CrossFit:
    """One level of the library, cross-fitted and added to what is done."""
    new = tuple(s for s in library.level(level) if s.name not in done.library and s.name not in done.excluded())
    if not new:
        return done
    tasks = [
        Task(s.name, fold, fit_and_predict, fold_work(s, source, fold, done, keep), cost=s.cost, family=s.family)
        for fold in range(len(done.splits_of(level)))
        for s in new
    ]
    return gather(done, new, run_tasks(tasks, Library(new), resources, refits=1), source, calibrate, level)


def run_tasks(tasks: list[Task], library: Library, resources: Resources, refits: int = 0) -> list[Outcome | Failure]:
    return run(
        tasks,
        n_jobs=resources.n_jobs,
        deadline=resources.deadline,
        memory_limit=resources.memory_limit,
        isolate=isolated(library, resources),
        store=resources.store,
        watch=resources.watch,
        refits=refits,
    )


class Source:
    """The matrices that tasks read: one for each view and fold, made when first asked for and shared from then on."""

    def __init__(self, data: Data, scratch: Scratch):
        self.data = data
        self.scratch = scratch
        self.y = scratch.share(data.y)
        self.weight = None if data.weight is None else scratch.share(data.weight)
        self.views: dict[tuple[str, int | str], View | None] = {}
        self._made: dict[tuple[str, int | str], tuple[Rows, Rows | None]] = {}
        self._whole: Rows | None = None

    def matrices(self, view: str, fold: int | str, train, test=None) -> tuple[Rows, Rows | None]:
        """Training and held-out rows in a view that is fitted on the training rows alone."""
        if (view, fold) not in self._made:
            self._made[view, fold] = self._make(view, fold, train, test)
        return self._made[view, fold]

    def _make(self, view: str, fold: int | str, train, test):
        if view == "raw":
            self.views[view, fold] = None
            return self._rows_of_table(train, test)
        part = (
            self.data.X if len(train) == self.data.rows else take(self.data.X, train)
        )  # all rows: in a refit, in order
        weight = None if self.data.weight is None else self.data.weight[train]
        y = self.data.y[train]
        fitted, matrix = fit_view(
            view, self.data.schema, part, y, task=self.data.task, seed=self.data.seed, sample_weight=weight
        )
        self.views[view, fold] = fitted
        if matrix is part:  # the view is the table itself: it is shared once, and each task takes its rows
            return self._rows_of_table(train, test)
        fitting = Rows(self.scratch.share(matrix))
        del part, matrix  # where they lie in a file by now, the memory is free for the held-out rows
        held_out = None if test is None else Rows(self.scratch.share(fitted.transform(take(self.data.X, test))))
        return fitting, held_out

    def _rows_of_table(self, train, test):
        if self._whole is None:
            self._whole = Rows(self.scratch.share(self.data.X))
        return replace(self._whole, index=train), None if test is None else replace(self._whole, index=test)


def fold_work(s: Specialist, source: Source, fold: int, done: CrossFit, keep: bool) -> tuple:
    """The arguments of `fit_and_predict` for one specialist and fold."""
    train, test = done.splits_of(s.level)[fold]
    work, held_out = prepared_work(s, source, fold, done, train, test)
    return work, held_out, keep


def prepared_work(s: Specialist, source: Source, fold: int | str, done: CrossFit, train, test=None):
    """A fit as plain data, and the held-out rows in the same view."""
    if s.level == 1:
        view = view_of(s, source.data)
        fitting, held_out = source.matrices(view, fold, train, test)
        fitted = source.views[view, fold]
    else:
        fitted = None
        train = train[done.predicted[train]]
        fitting, held_out = stacked_rows(s, source, fold, done, train, test)
    categorical = () if fitted is None else tuple(fitted.categorical)
    seed = seed_for(source.data.seed, s.name, fold)
    return Work(
        s, source.data.task, seed, fitting, source.y, source.weight, train, categorical, source.data.classes
    ), held_out


def stacked_rows(s: Specialist, source: Source, fold: int | str, done: CrossFit, train, test=None):
    """What a row of level 2 reads: predictions of level 1, with a view of the table before them where it asks."""
    features = Rows(source.scratch.share(stacker_features(done.oof[:, done.columns(read_by(s, done.library))])))
    fitting, held_out = (
        replace(features, index=train),
        None if test is None else replace(features, index=test),
    )
    view = beside_predictions(s)
    if view:
        left, right = source.matrices(view, f"{fold} of level 2", train, test)
        fitting, held_out = replace(fitting, left=left), held_out and replace(held_out, left=right)
    return fitting, held_out


def beside_predictions(s: Specialist) -> str:
    """The view that a row of level 2 reads beside the predictions; empty for none."""
    return s.needs.removeprefix("predictions").removeprefix("+")


def read_by(s: Specialist, library: Library) -> tuple[str, ...]:
    """The specialists of level 1 that a row of level 2 reads, of those that finished."""
    return tuple(r.name for r in library.level(1) if s.reads is None or r.name in s.reads)


def view_of(s: Specialist, data: Data) -> str:
    """The view a row asks for; a user's own estimator ("auto") gets the table as it is wherever it can take it."""
    if s.needs != "auto":
        return s.needs
    estimator = s.make(Shape(data.task, data.rows, 1, data.classes))
    if isinstance(estimator, Pipeline):
        return "raw"
    if isinstance(data.X, pd.DataFrame):
        return "scaled"
    gaps = not sparse.issparse(data.X) and np.isnan(data.X).any()
    return "ordinal" if gaps and not get_tags(estimator).input_tags.allow_nan else "raw"


def gather(done: CrossFit, rows: tuple[Specialist, ...], outcomes, source: Source, calibrate, level: int) -> CrossFit:
    """What is done, grown by the specialists all of whose folds finished; columns in the order of level and name."""
    failures, left_out = told_apart([o for o in outcomes if isinstance(o, Failure)])
    lost = {f.specialist for f in failures} | set(left_out)
    finished = [s for s in rows if s.name not in lost]
    good = [o for o in outcomes if o.specialist not in lost]
    oof = averaged([s.name for s in finished], good, done.splits_of(level), source.data)
    temperature = np.ones(len(finished))
    if calibrate and source.data.classes > 1:
        oof, temperature = calibrated(oof, done.predicted, source.data)
    library = Library(done.library.specialists + tuple(finished))
    grown = replace(
        done,
        library=library,
        oof=np.concatenate([done.oof, oof], axis=1),
        temperature=np.concatenate([done.temperature, temperature]),
        seconds={**done.seconds, **spent(good)},
        failures=done.failures + failures,
        left_out={**done.left_out, **left_out},
        models={**done.models, **kept_models(good, rows, source)},
    )
    return grown.only([s.name for s in sorted(library, key=lambda s: (s.level, s.name))])


def told_apart(failures: list[Failure]) -> tuple[tuple[Failure, ...], dict[str, str]]:
    """What failed, and what the time did not allow; tasks that were not begun because a sister failed say nothing."""
    failed = tuple(f for f in failures if not f.error.startswith(("left out:", "not begun:")))
    lost = {f.specialist for f in failed}
    return failed, {f.specialist: reason_of(f) for f in failures if f.specialist not in lost}


def reason_of(failure: Failure) -> str:
    return failure.error.removeprefix("left out:").removeprefix("not begun:").strip()


def averaged(names: list[str], outcomes, splits: list[Split], data: Data) -> np.ndarray:
    """(n, K, C) predictions, the mean over repeats where a row is held out more than once."""
    total = np.zeros((data.rows, len(names), data.classes))
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=data.rows)
    for outcome in outcomes:
        total[splits[outcome.fold][1], names.index(outcome.specialist)] += outcome.value["prediction"]
    return total / np.where(times > 0, times, np.nan)[:, None, None]


def spent(outcomes) -> dict[str, tuple[float, float]]:
    """Seconds of fitting and of predicting, over all folds."""
    seconds: dict[str, tuple[float, float]] = {}
    for o in outcomes:
        fit, predict = seconds.get(o.specialist, (0.0, 0.0))
        seconds[o.specialist] = fit + o.value["fit_seconds"], predict + o.value["predict_seconds"]
    return seconds


def kept_models(outcomes, rows: tuple[Specialist, ...], source: Source):
    views = {s.name: beside_predictions(s) if s.level == 2 else view_of(s, source.data) for s in rows}
    levels = {s.name: s.level for s in rows}
    fold = lambda o: o.fold if levels[o.specialist] == 1 else f"{o.fold} of level 2"
    return {
        (o.specialist, o.fold): (o.value["model"], source.views.get((views[o.specialist], fold(o))))
        for o in outcomes
        if "model" in o.value
    }


def calibrated(oof: np.ndarray, rows: np.ndarray, data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Each specialist's column with its own temperature, learnt from that column and shrunk towards 1."""
    oof = oof.copy()
    weight = None if data.weight is None else data.weight[rows]
    learn = partial(fit_temperature, target=data.target[rows], sample_weight=weight, shrink=TEMPERATURE_SHRINK)
    temperature = np.array([learn(oof[rows, k]) for k in range(oof.shape[1])])
    for k, T in enumerate(temperature):
        oof[rows, k] = apply_temperature(oof[rows, k], T)
    return oof, temperature
