"""Held-out predictions: every specialist fitted without a fold, predicting that fold.

`cross_fit` turns a library, a table and folds into a `CrossFit`: the out-of-fold tensor (row, specialist, class), what
each specialist cost and what failed. It only lists tasks; where they run, and what happens when one dies, is the
business of `execution`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from softlearning.execution import Failure, Outcome, Scheduler, Task, open_engine, run
from softlearning.library import Library, Shape, Specialist, dummy_row
from softlearning.method.fitting import SMALLEST, Work, fewer_rows, fit_and_predict, sampled, seed_for, stacker_features
from softlearning.method.folds import Split, fold_of_row, second_splits
from softlearning.method.preparation import REFIT, Preparation, ViewKey
from softlearning.method.training import Resources, Training, entries
from softlearning.uncertainty.calibration import Calibration, apply_calibration, fit_calibration
from softlearning.uncertainty.sharpening import fit_sharpness, sharpened
from softlearning.weights import Solution, solve_weights

BULKY = 2**26  # bytes of a table of numbers from which its views lie in files also for tasks of this process
SHRINK = 50.0  # nats, by the study of defaults: with less, small tables make specialists overconfident
FEW = 2_000  # rows up to which calibration is cross-fitted; beyond, two numbers flatter by nothing that counts
MORE_ROWS = 1.1  # rounds on all rows for each round in a fold, whose models see fewer
ENOUGH = 5_000  # rows that a calibration is learnt from
AFTER = 5e-7  # seconds for each held-out number that weights and tables are made of, measured on a core of its own
NO_EARLIER_ROWS = "in the first fold nothing is predicted yet that a stacker could learn from"


@dataclass(frozen=True)
class CrossFit:
    """Out-of-fold predictions, and all that weights, uncertainty and report read of them.

    `oof` is (n, K, C), NaN on rows that no fold holds out; its K columns are the specialists of `library`, those that
    finished, in the order of level and name. `calibration` has one entry per specialist, learnt on all rows; in `oof`
    each row is calibrated by what the other folds say. `skipped` has the reason for each specialist that never ran,
    `failures` for each that ran and failed. `rounds` are those of boosting, as its folds
    stopped; `samples` how many rows of a fold a specialist learnt from, where those are not all of them. `models` are
    handles on the models of the folds where they are kept. `alone` are the weights of level 1 when it is solved by
    itself, where there is a level 2. `sharpness` is how far specialists are sharpened in the blend; with few rows the
    held-out ones of a fold by what the others say, `sharpness_of_fold`.
    """

    library: Library
    oof: np.ndarray
    splits: list[Split]
    calibration: tuple[Calibration | None, ...] = ()
    seconds: dict[str, tuple[float, float]] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)
    samples: dict[tuple[str, int], int] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)
    models: dict[tuple[str, int], Any] = field(default_factory=dict)
    alone: dict[str, float] = field(default_factory=dict)
    sharpness: float = 1.0
    sharpness_of_fold: tuple[float, ...] = ()

    @cached_property
    def pooled(self) -> np.ndarray:
        """`oof` as specialists speak in the blend, each row sharpened by what the other folds say."""
        if not self.sharpness_of_fold:
            return sharpened(self.oof, self.sharpness)
        beta = np.array([*self.sharpness_of_fold, 1.0])[self.fold_of_row]  # the last for rows never predicted
        return sharpened(self.oof, beta[:, None, None])

    @cached_property
    def fold_of_row(self) -> np.ndarray:
        """(n,) the fold in which what is learnt from predictions holds a row out; -1 for rows never predicted."""
        self.check_kept()
        return fold_of_row(second_splits(self.splits), len(self.oof))

    def check_kept(self) -> None:
        """Refuse what rests on predictions that were not saved with the model."""
        if self.oof is None:
            raise ValueError("this model was saved without its out-of-fold predictions, which this call rests on")

    @property
    def predicted(self) -> np.ndarray:
        """Rows that some fold held out."""
        return self.fold_of_row >= 0

    def solve(self, P: np.ndarray, training: Training, rule, loss: str) -> Solution:
        """The weights of the specialists by a rule, for predictions P (n, K, C) of the rows that some fold held out."""
        rows = self.predicted
        return weigh(P[rows], training.target[rows], self.library, rule, loss, entries(training.weight, rows))

    def splits_of(self, level: int) -> list[Split]:
        return self.splits if level == 1 else second_splits(self.splits)

    def sample_of(self, name: str, fold: int | None = None) -> int:
        """About how many rows a specialist learns from in a fold, or at least in all of them; 0 for all rows."""
        sizes = [size for (n, f), size in self.samples.items() if n == name and fold in (f, None, REFIT)]
        return min(sizes, default=0)

    def columns(self, names: Iterable[str]) -> list[int]:
        return [self.library.names.index(name) for name in names]

    def only(self, names) -> CrossFit:
        """The same with some specialists only."""
        self.check_kept()
        library = self.library[names]
        chosen = self.columns(library.names)
        calibration = tuple(self.calibration[k] for k in chosen)
        models = {key: model for key, model in self.models.items() if key[0] in library}
        return replace(self, library=library, oof=self.oof[:, chosen], calibration=calibration, models=models)

    def without(self, names, *, stackers: bool = False) -> CrossFit:
        """The same without some specialists and what reads them; with `stackers` all of level 2 goes too."""
        gone = set(names)
        reading = {s.name for s in self.library if s.level == 2 and (stackers or gone & set(read_by(s, self.library)))}
        return self.only([name for name in self.library.names if name not in gone | reading])

    def after_failed_refits(self, failures: tuple[Failure, ...]) -> CrossFit:
        """The same without specialists that failed on all rows; what read them will be cross-fitted anew."""
        return replace(self.without([f.specialist for f in failures]), failures=self.failures + failures)

    def retrying(self, name: str) -> CrossFit:
        """The same, ready to try a specialist again that found no time or failed."""
        skipped = {n: reason for n, reason in self.skipped.items() if n != name}
        return replace(self, skipped=skipped, failures=tuple(f for f in self.failures if f.specialist != name))

    def excluded(self) -> set[str]:
        """Specialists that will not be tried again."""
        return set(self.skipped) | {f.specialist for f in self.failures}


@contextmanager
def workplace(training: Training, library: Library, resources: Resources) -> Iterator[Preparation]:
    """The training table where tasks can read it: in files where they run elsewhere, or where memory would fill."""
    size = getattr(training.X, "nbytes", 0)
    isolate, store = isolated(library, resources), resources.checkpoint
    with open_engine(resources.engine, resources.n_jobs, isolate, store, files=size > BULKY) as engine:
        yield Preparation(training, engine)


def cross_fit(
    library: Library, table: Preparation, splits: list[Split], resources: Resources, *, calibrate: bool, keep=False,
    known: CrossFit | None = None,
) -> CrossFit:  # fmt: skip
    """The out-of-fold tensor of both levels; a specialist with a failed fold is excluded whole.

    Specialists that `known` (an earlier CrossFit on the same rows and folds) already has are not fitted again.
    """
    training = table.training
    usable, skipped = admitted(library, training)
    done = known or CrossFit(Library(()), np.empty((training.rows, 0, training.classes)), splits)
    done = replace(done, skipped={**done.skipped, **skipped})
    done = run_level(1, usable, table, done, resources, calibrate, keep)
    if not done.library:
        late = replace(resources, deadline=None)  # the last resort takes no time, and there may be none left
        done = run_level(1, Library((dummy_row(),)), table, done.retrying("dummy"), late, calibrate, keep)
    if not done.library:
        raise RuntimeError("no specialist finished: " + "; ".join(f"{f.specialist}: {f.error}" for f in done.failures))
    return second_level(usable.level(2), table, done, resources, calibrate, keep)


def second_level(stackers: Library, table: Preparation, done: CrossFit, resources, calibrate, keep) -> CrossFit:
    """What is done, grown by the stackers, where the folds let them learn."""
    if not stackers:
        return done
    if any(not done.predicted[train].any() for train, _ in done.splits_of(2)):
        return replace(done, skipped={**done.skipped, **dict.fromkeys(stackers.names, NO_EARLIER_ROWS)})
    done = replace(done, alone=weights_alone(done, table.training))
    return run_level(2, with_readings(stackers, done), table, done, resources, calibrate, keep)


def weights_alone(done: CrossFit, training: Training) -> dict[str, float]:
    """What each specialist of level 1 weighs when level 1 is solved by itself."""
    level_1 = done.only(done.library.level(1).names)
    solution = level_1.solve(level_1.oof, training, "guarded", "squared" if training.classes == 1 else "log")
    return dict(zip(level_1.library.names, solution.weights.tolist()))


def weigh(P, Y, library: Library, rule, loss: str, sample_weight) -> Solution:
    """The weights of a library's predictions by a rule."""
    prior = np.array([s.prior for s in library])
    return solve_weights(P, Y, rule=rule, loss=loss, sample_weight=sample_weight, prior=prior)


def sharpen(crossed: CrossFit, training: Training, rule, loss: str) -> CrossFit:
    """The same with the sharpness of its blend, where that is one of calibrated probabilities judged by likelihood."""
    if loss != "log" or None in crossed.calibration or len(crossed.library) == 1:
        return replace(crossed, sharpness=1.0, sharpness_of_fold=())
    rows = crossed.predicted
    P, Y, fold = crossed.oof[rows], training.target[rows], crossed.fold_of_row[rows]
    weight, beta = entries(training.weight, rows), 1.0
    for _ in range(2):  # weights and sharpness by turns
        alpha = weigh(sharpened(P, beta), Y, crossed.library, rule, loss, weight).weights
        beta = fit_sharpness(P, Y, alpha, weight)
    others = [fold != f for f in range(fold.max() + 1)] if len(P) <= FEW and fold.max() > 0 else []
    parts = [fit_sharpness(P[o], Y[o], alpha, entries(weight, o)) for o in others]
    return replace(crossed, sharpness=beta, sharpness_of_fold=tuple(parts))


def with_readings(stackers: Library, done: CrossFit) -> Library:
    """The stackers, where one that reads the "support" names the specialists of level 1 that earn weight together.

    So that what has no weight need not be kept for the stacker's sake.
    """
    families = {s.name: s.family for s in done.library}
    support = tuple(name for name, weight in done.alone.items() if weight > 0 and families[name] != "baseline")
    return Library(tuple(replace(s, reads=support) if s.reads == "support" else s for s in stackers))


def admitted(library: Library, training: Training) -> tuple[Library, dict[str, str]]:
    """The specialists that may run at this size, and the reason for each of the others."""
    size = training.rows, training.schema.width, training.classes
    reasons = {s.name: reason for s in library if (reason := s.refusal(*size))}
    return library - list(reasons), reasons


def isolated(library: Library, resources: Resources) -> bool:
    """Whether a process that can be lost is needed: there is a limit to keep, or a specialist is not our own."""
    limited = resources.deadline is not None or resources.memory_limit is not None
    return limited or not all(s.trusted for s in library)


def run_level(level: int, library: Library, table: Preparation, done: CrossFit, resources, calibrate, keep) -> CrossFit:
    """One level of the library, cross-fitted and added to what is done."""
    new = tuple(s for s in library.level(level) if s.name not in done.library and s.name not in done.excluded())
    if not new:
        return done
    work = [work_for(s, table, done, fold, *split) for fold, split in enumerate(done.splits_of(level)) for s in new]
    tasks, each = [fit_task(w, Library(new), keep) for w in work], seconds_after(level, library, done, table.training)
    owed = resources.refits * refit_seconds(done) / table.engine.capacity()
    kept = each * len(done.library)
    outcomes = run_tasks(tasks, table, resources, refits=resources.refits, reserve=kept, owed=owed, each=each)
    return gather(done, new, outcomes, table.training, calibrate, level)


def seconds_after(level: int, library: Library, done: CrossFit, training: Training) -> float:
    """What weights, level 2 and the tables of a fit take for each specialist when the tasks of a level are done."""
    numbers = float(done.predicted.sum() * training.classes)
    return AFTER * crowding() * numbers * (2 if level == 1 and library.level(2) else 1)


def crowding() -> float:
    """How many processes share a core of this machine now; 1 where the system does not tell."""
    return max(getattr(os, "getloadavg", lambda: (1.0,))()[0] / (os.cpu_count() or 1), 1.0)


def refit_seconds(done: CrossFit) -> float:
    """What it takes to fit on all rows what earns weight in level 1 alone: each as long as a fold, and a part more."""
    folds = len(done.splits)
    each = [done.seconds[name][0] / folds for name, weight in done.alone.items() if weight > 0]
    return sum(each) * folds / max(folds - 1, 1)


def work_for(s: Specialist, table: Preparation, done: CrossFit, fold: int, train, test=None) -> Work:
    """A fit as plain data, from as many rows as the specialist takes; in a refit from as many as in the folds."""
    t, seed = table.training, seed_for(table.training.seed, s.name, fold)
    if s.level == 1:
        rounds = done.rounds.get(s.name) if fold == REFIT else None
        work = Work(s, seed, table, fold, ViewKey(view_of(s, table), 1, fold), train, test, rounds=rounds)
    else:
        train = train[done.predicted[train]]
        read = done.oof[:, done.columns(read_by(s, done.library))]
        features = table.engine.share(stacker_features(read))
        work = Work(s, seed, table, fold, ViewKey(s.needs, 2, fold) if s.needs else None, train, test, features)
    return sampled(work, done.sample_of(s.name, fold) or s.most_rows(t.schema.width, t.classes))


def fit_task(work: Work, library: Library, keep: bool) -> Task:
    """A fit as a task; under a limit the specialists are begun in the order of the library."""
    s, training = work.specialist, work.table.training
    fold = "refit" if work.fold == REFIT else work.fold
    seconds = partial(s.seconds, columns=training.schema.width, classes=training.classes)
    cost, rank, shrink = seconds(work.size), library.names.index(s.name), partial(fewer_rows, work, keep)
    least = seconds(min(SMALLEST, work.size)) / cost if cost > 0 else 1.0
    task = partial(Task, s.name, fold, fit_and_predict, (work, keep), cost=cost, rank=rank, trusted=s.trusted)
    return task(shrink=shrink, least=least)


def run_tasks(
    tasks: list[Task],
    table: Preparation,
    resources: Resources,
    refits: int = 0,
    reserve: float = 0.0,
    owed: float = 0.0,
    each: float = 0.0,
) -> list[Outcome | Failure]:
    """Run tasks with the resources of a fit; `reserve` and `owed` are seconds for what follows, as far as there are."""
    left = 0.0 if resources.deadline is None else max(resources.deadline - time.monotonic(), 0.0)
    scheduler = Scheduler(
        tasks,
        deadline=resources.deadline,
        memory=resources.memory_limit,
        store=resources.checkpoint,
        watch=resources.watch,
        refits=refits,
        reserve=min(reserve, left / 5) + min(owed, left / 2),
        each=each,
    )
    return run(scheduler, table.engine)


def read_by(s: Specialist, library: Library) -> tuple[str, ...]:
    """The specialists of level 1 that a stacker reads, of those that finished; the baseline teaches it nothing."""
    return tuple(r.name for r in library.level(1) if r.family != "baseline" and (s.reads is None or r.name in s.reads))


def view_of(s: Specialist, table: Preparation) -> str:
    """The view a specialist asks for; a user's own ("auto") gets the table as it is wherever it can take it."""
    if s.needs != "auto":
        return s.needs
    t, X = table.training, table.X.load()
    estimator = s.make(Shape(t.task, t.rows, 1, t.classes))
    if isinstance(estimator, Pipeline):
        return "raw"
    if isinstance(X, pd.DataFrame):
        return "scaled"
    missing = not sparse.issparse(X) and np.isnan(X).any()
    return "ordinal" if missing and not get_tags(estimator).input_tags.allow_nan else "raw"


def gather(done: CrossFit, new: tuple[Specialist, ...], outcomes, training: Training, calibrate, level) -> CrossFit:
    """What is done, grown by the specialists all of whose folds finished; columns in the order of level and name."""
    failures, skipped = failed_and_skipped([o for o in outcomes if isinstance(o, Failure)])
    lost = {f.specialist for f in failures} | set(skipped)
    finished = [s for s in new if s.name not in lost]
    good = [o for o in outcomes if o.specialist not in lost]
    oof = averaged([s.name for s in finished], good, done.splits_of(level), training)
    calibration: tuple[Calibration | None, ...] = (None,) * len(finished)
    if calibrate and training.classes > 1:
        oof, calibration = calibrated(oof, done.fold_of_row, training)
    library = Library(done.library.specialists + tuple(finished))
    grown = replace(
        done,
        library=library,
        oof=np.concatenate([done.oof, oof], axis=1),
        calibration=done.calibration + calibration,
        seconds={**done.seconds, **spent(good)},
        rounds={**done.rounds, **mean_rounds(good)},
        samples={**done.samples, **{(o.specialist, o.fold): o.value["sample"] for o in good if o.value["sample"]}},
        failures=done.failures + failures,
        skipped={**done.skipped, **skipped},
        models={**done.models, **{(o.specialist, o.fold): o.value["model"] for o in good if "model" in o.value}},
    )
    return grown.only([s.name for s in sorted(library, key=lambda s: (s.level, s.name))])


def failed_and_skipped(failures: list[Failure]) -> tuple[tuple[Failure, ...], dict[str, str]]:
    """What failed, and what the time did not allow; tasks that were not begun because another failed say nothing."""
    failed = tuple(f for f in failures if f.kind not in ("skipped", "cancelled"))
    lost = {f.specialist for f in failed}
    return failed, {f.specialist: f.error for f in failures if f.specialist not in lost}


def averaged(names: list[str], outcomes, splits: list[Split], training: Training) -> np.ndarray:
    """(n, K, C) predictions, the mean over repeats where a row is held out more than once."""
    total = np.zeros((training.rows, len(names), training.classes))
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=training.rows)
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


def mean_rounds(outcomes) -> dict[str, int]:
    """Rounds of boosting per specialist, the mean over its folds, for those that look for them."""
    found: dict[str, list[int]] = {}
    for o in outcomes:
        if o.value["rounds"]:
            found.setdefault(o.specialist, []).append(o.value["rounds"])
    return {name: round(float(np.mean(rounds)) * MORE_ROWS) for name, rounds in found.items()}


def calibrated(oof: np.ndarray, fold: np.ndarray, training: Training) -> tuple[np.ndarray, tuple[Calibration, ...]]:
    """Each specialist's column calibrated, and the calibration itself, learnt from all rows that have predictions.

    On few rows each fold is calibrated by what the others say, so that what is judged by the column is not flattered.
    """
    oof, rows = oof.copy(), np.flatnonzero(fold >= 0)
    parts = [fold[rows] == f for f in np.unique(fold[rows])] if len(rows) <= FEW else []
    found = []
    for k in range(oof.shape[1]):
        P = oof[rows, k]
        found.append(learn_calibration(P, rows, training))
        if len(parts) < 2:
            oof[rows, k] = apply_calibration(P, found[-1])
        for held in parts if len(parts) > 1 else ():
            oof[rows[held], k] = apply_calibration(P[held], learn_calibration(P[~held], rows[~held], training))
    return oof, tuple(found)


def learn_calibration(P: np.ndarray, rows: np.ndarray, training: Training) -> Calibration:
    step = max(1, len(rows) // ENOUGH)  # two numbers need no more rows
    rows = rows[::step]
    return fit_calibration(P[::step], training.target[rows], entries(training.weight, rows), shrink=SHRINK)
