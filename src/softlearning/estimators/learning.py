"""fit: validation, and the four calls of the method."""

from __future__ import annotations

import copy
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, column_or_1d, validate_data

from softlearning.data.inputs import is_table
from softlearning.data.schema import infer_schema
from softlearning.data.validation import validate
from softlearning.evaluation.aims import Aim, Choice, aim_of, check_aim, rival_by, serve, standing, verdict
from softlearning.execution import one_thread, parse_bytes
from softlearning.execution.checkpoint import Store
from softlearning.execution.progress import CallbackSupportMixin, telling, watching, with_callbacks
from softlearning.library import Library, resolve
from softlearning.library.quantiles import aimed_rows
from softlearning.method.crossfit import CrossFit, cross_fit, sharpen, workplace
from softlearning.method.ensemble import ENOUGH_ROWS, assemble, average_folds, refit, with_fold_models
from softlearning.method.folds import make_folds
from softlearning.method.record import Record, failure_table, leaderboard
from softlearning.method.training import Resources, Training, with_mean_one
from softlearning.method.usefulness import warn_if_useless
from softlearning.weights import LOSSES, Solution
from softlearning.weights.rules import RULES

FLAG = (True, False)
CHECKS = (  # parameter, what it may be, and that in words; before anything runs
    ("refit", lambda v: v in FLAG or (isinstance(v, str) and v == "auto"), "True, False or 'auto'"),
    (
        "time_limit",
        lambda v: v is None or (isinstance(v, Real) and v is not True and float(v) > 0),
        "a positive number of seconds or None",
    ),
    ("n_jobs", lambda v: v is None or (isinstance(v, Integral) and v != 0), "a number of cores, -1 for all, or None"),
    ("checkpoint", lambda v: v is None or isinstance(v, str | os.PathLike), "the path of a folder or None"),
    ("column_types", lambda v: v is None or isinstance(v, Mapping), "a dict of column names and types"),
    ("rule", lambda v: callable(v) or (isinstance(v, str) and v in RULES), f"one of {', '.join(RULES)}, or a callable"),
    ("calibrate", lambda v: v in FLAG, "True or False"),
    ("progress", lambda v: callable(v) or v in FLAG, "True, False or a function of events"),
)


class TimeLimitWarning(UserWarning):
    """The time limit was too short for the table, and was not kept."""


class FailedSpecialistWarning(UserWarning):
    """Specialists failed and are excluded; `failures_` has the reasons."""


@dataclass(kw_only=True, eq=False, repr=False)
class Learning(CallbackSupportMixin, BaseEstimator):
    """Validation and the calls of the method, with the parameters of both estimators; a task says how y is encoded."""

    _task: ClassVar[str]
    library: Any = field(default="default", kw_only=False)
    rule: Any = "guarded"
    loss: Any = "auto"
    metric: Any = None
    cv: Any = None
    column_types: Any = None
    refit: Any = "auto"
    time_limit: Any = None
    memory_limit: Any = None
    checkpoint: Any = None
    engine: Any = None
    n_jobs: Any = None
    progress: Any = False
    random_state: Any = 42

    @with_callbacks
    def fit(self, X, y, *, sample_weight=None, groups=None):
        """Cross-fit the library, solve for the weights, complete what earned weight.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, d)
            Strings, categories, dates, text and missing values are taken as they are.
        y : array of shape (n,)
            Labels of any kind, or numbers for a regression.
        sample_weight : array of shape (n,), default=None
            Reaches the specialists that take it, and the weights. Its scale does not matter.
        groups : array of shape (n,), default=None
            Rows of a group are held out together, and count as one in every standard error.

        Returns
        -------
        self
        """
        self._forget()
        try:
            with one_thread:  # tasks bring their own parallelism
                return self._fit(X, y, sample_weight, groups)
        except BaseException:
            self._forget()  # a failed fit leaves nothing that could be taken for a model
            raise

    def _fit(self, X, y, sample_weight, groups):
        start = time.monotonic()
        root = self._init_callback_context(max_subtasks=None, sequential_subtasks=False)
        root.call_on_fit_task_begin(estimator=self, X=X, y=y)
        self._check_parameters()
        training = self._validate_training(X, y, sample_weight, groups)
        library = self._library(self._aim())
        stratify = self._task == "classification"
        splits = make_folds(
            self.cv, training.y, stratify=stratify, groups=groups, seed=training.seed, X=training.X, live=training.live
        )
        ready = time.monotonic()
        with watching(self.progress) as watch:
            self._learn(library, training, splits, replace(self._resources(start), watch=telling(self, root, watch)))
        root.call_on_fit_task_end(estimator=self, X=X, y=y)
        self._warn_of_time(ready - start, time.monotonic() - start)
        return self

    def _learn(self, library: Library, training: Training, splits, resources, known=None, ensemble=None):
        """Phases 1 to 3 of Algorithm S8; `known` and `ensemble` are what an earlier fit on the same rows has."""
        if (aim := self._aim()) is not None:
            check_aim(aim, training, splits)
        calibrate, keep = getattr(self, "calibrate", False), self.refit is not True or self.time_limit is not None
        resources = replace(resources, refits=0 if self._averages(training.rows) else 1)
        with workplace(training, library, resources) as table:
            crossed = cross_fit(library, table, splits, resources, calibrate=calibrate, keep=keep, known=known)
            while True:
                crossed, solution, rule = self._solve(crossed, training)
                ensemble, failures = self._complete(solution, crossed, table, resources, ensemble)
                if not failures:
                    break
                rest = crossed.after_failed_refits(failures)
                crossed = cross_fit(library, table, splits, resources, calibrate=calibrate, known=rest)
            crossed = replace(crossed, models={})
            record = Record(library, crossed, solution, ensemble, training.without_table(), rule)
            self._learn_more(record, table, resources)
        return self._keep(record)

    def _learn_more(self, record: Record, table, resources) -> None:
        """What else is learnt from the same table and folds."""

    def _solve(self, crossed: CrossFit, training: Training) -> tuple[CrossFit, Solution, Any]:
        """Sharpness, weights, and the rule that found them: with a metric, the one that serves it best held out."""
        rule, loss, aim = self.rule, self._loss(), self._aim()
        if aim is not None:
            told = Choice(rule, loss, ())
            unsolved = Solution(np.empty(0), np.nan, np.nan, False, "", loss)
            draft = Record(crossed.library, crossed, unsolved, None, training, rule)  # type: ignore[arg-type]
            choice = serve(aim, draft, rule, self._threshold) if self.loss == "auto" else told
            rule, loss, self.aim_ = choice.rule, choice.loss, choice.words(aim, self.loss != "auto", training.labels)
        crossed = sharpen(crossed, training, rule, loss)
        return crossed, crossed.solve(crossed.pooled, training, rule, loss), rule

    def _complete(self, solution, crossed: CrossFit, table, resources, known):
        """The specialists with weight, as they were in the folds or fitted on all rows; and what failed."""
        chosen = [name for name, w in zip(crossed.library.names, solution.weights) if w > 0]
        ensemble = assemble(chosen, crossed, table, known)
        complete = average_folds if self._averages(table.training.rows) else refit
        ensemble, failures = complete(ensemble, crossed, table, resources)
        if failures and crossed.models:  # kept for this: what cannot be fitted again stands in by its folds' models
            ensemble, failures = with_fold_models(ensemble, crossed, table), ()
        return ensemble, failures

    def _averages(self, rows: int) -> bool:
        """Whether the models of the folds predict, and nothing is fitted on all rows."""
        return self.refit is False or (self.refit == "auto" and rows > ENOUGH_ROWS)

    def _keep(self, record: Record):
        """The learned attributes, all derived from one record."""
        self.record_ = record
        self.weights_ = record.weights()
        self.certificate_ = record.certificate()
        self.cv_risk_, self.verdict_ = record.comparison.risk, str(record.comparison)
        self.failures_ = failure_table(record.crossed.failures)
        self._keep_aim(record)
        self._warn_of_failures()
        warn_if_useless(record, stacklevel=6)
        return self

    def _keep_aim(self, record: Record) -> None:
        """The leaderboard; where there is a metric to aim at, it and the verdict speak of that."""
        aim = self._aim()
        if aim is None:
            self.leaderboard_ = leaderboard(record, record.comparison.rival, record.comparison.word)
            return
        found = standing(record, aim, self._threshold)
        rival, word = rival_by(found, record)
        self.verdict_ = verdict(found, record, aim)
        self.leaderboard_ = leaderboard(record, rival, word)
        scores = found.scores.set_index("candidate").reindex(self.leaderboard_["specialist"])
        self.leaderboard_["cv_score"] = scores["score"].to_numpy()
        place = self.leaderboard_.columns.get_loc("cv_score") + 1
        for name in ("high", "low"):
            self.leaderboard_.insert(place, f"cv_{name}", scores[name].to_numpy())

    # -- on with what this fit has ------------------------------------------------------------------------------------

    def _continued(self, model: Learning, library: Library, known: CrossFit, X, y):
        """Let another model learn with what this one has; the table is needed only to fit something."""
        model._check_parameters()
        for name in ("n_features_in_", "feature_names_in_", "classes_", "class_order_", "quantile_fits_"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        training, ensemble = self._same_training(X, y), self.record_.ensemble
        missing = [s.name for s in library if s.name not in known.library and s.name not in known.excluded()]
        if not missing:
            _, solution, _ = model._solve(known, training)
            chosen = [name for name, w in zip(known.library.names, solution.weights) if w > 0]
            missing = [name for name in chosen if name not in ensemble.members]
        if missing and training.X is None:
            raise ValueError(f"{', '.join(missing)} would have to be fitted: pass the training data, X= and y=")
        resources, ensemble = model._resources(time.monotonic()), ensemble.without_readers(known.library)
        with one_thread:
            return model._learn(library, training, known.splits, resources, known=known, ensemble=ensemble)

    def _same_training(self, X, y) -> Training:
        """The training data given again, refused where they are others; without them the target alone."""
        training = self.record_.training
        if X is None:
            return training
        table = self._validate(X)
        if y is None or table.shape[0] != training.rows or not np.array_equal(self._encode_again(y), training.y):
            raise ValueError("X and y are not the data this model was fitted on: the rows or the target differ")
        return replace(training, X=table)

    # -- checks -------------------------------------------------------------------------------------------------------

    def _check_parameters(self):
        allowed = ("auto", *(name for name in LOSSES if self._task == "regression" or name in ("squared", "log")))
        allowed = tuple(name for name in allowed if self._task == "classification" or name != "log")
        if str(self.loss).split(":")[0] not in allowed:
            raise ValueError(f"loss is {self.loss!r}; for {self._task} it is one of {', '.join(allowed)}")
        for name, holds, form in CHECKS:
            if hasattr(self, name) and not holds(value := getattr(self, name)):
                raise ValueError(f"{name} is {value!r}; give {form}")
        parse_bytes(self.memory_limit)
        self._aim()

    def _aim(self) -> Aim | None:
        """What the model is to be good at, if the user says."""
        return None if self.metric_ is None else aim_of(self.metric_, self._task, getattr(self, "class_order_", None))

    @property
    def metric_(self):
        """The metric that is aimed at, if any: "ordinal" where y was an ordered categorical, unless another is told."""
        ordered = self.metric is None and getattr(self, "class_order_", None) is not None
        return "ordinal" if ordered and len(getattr(self, "classes_", ())) > 2 else self.metric

    @property
    def _threshold(self):
        return getattr(self, "threshold", None)

    def _library(self, aim: Aim | None) -> Library:
        """The library asked for; a named one is joined by specialists of the quantile that is aimed at."""
        library = resolve(self.library, self._task)
        level = None if aim is None or self.loss != "auto" else aim.level
        return library if level is None or not isinstance(self.library, str) else library + aimed_rows(level)

    def __sklearn_clone__(self):
        """An engine is a connection, which cannot be copied: clones share it."""
        bare = copy.copy(self)
        bare.engine = None
        twin = super(Learning, bare).__sklearn_clone__()
        twin.engine = self.engine
        return twin

    def _resources(self, start: float) -> Resources:
        deadline = None if self.time_limit is None else start + self.time_limit
        return Resources(self.n_jobs, deadline, parse_bytes(self.memory_limit), self._store(), self.engine)

    def _store(self) -> Store | None:
        if self.checkpoint is None:
            return None
        from softlearning.storage.parts import dump_model, load_model

        return Store(self.checkpoint, dump=dump_model, load=load_model)

    def _loss(self) -> str:
        """What the weights minimise: the likelihood of classes, the squared error of numbers."""
        return self.loss if self.loss != "auto" else "log" if self._task == "classification" else "squared"

    def _validate_training(self, X, y, sample_weight, groups) -> Training:
        """Check the input, learn its schema, encode the target."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        name = getattr(y, "name", None)
        # a table of mixed columns is matched by name; numbers follow scikit-learn's rules unless types are given
        mixed = is_table(X) or self.column_types is not None
        if mixed:
            validate_data(self, X, skip_check_array=True)
        else:
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan")
        schema = infer_schema(X, self.column_types)
        table = validate(schema, X)
        y = column_or_1d(y, warn=True)
        check_consistent_length(table, y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
            if not sample_weight.any():
                raise ValueError("sample_weight is zero on every row: there is nothing to learn from")
        codes, target = self._encode(y, None if sample_weight is None else sample_weight > 0)
        weight = self._weight_of_rows(y, sample_weight)
        return Training(
            X=table,
            y=codes,
            target=target,
            weight=None if weight is None else with_mean_one(weight),
            groups=None if groups is None else np.asarray(groups),
            labels=getattr(self, "classes_", None),
            schema=schema,
            mixed=mixed,
            task=self._task,
            seed=self._seed(),
            target_name="" if name is None else str(name),
        )

    def _weight_of_rows(self, y, sample_weight):
        return sample_weight

    def _validate(self, X):
        """A table to predict, checked cell by cell."""
        training = self.record_.training
        if not training.mixed:
            missing = {"ensure_all_finite": "allow-nan", "ensure_min_samples": 0}
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64, **missing)
        return validate(training.schema, X)

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _forget(self):
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]

    def _warn_of_time(self, before: float, taken: float):
        """A limit that was too short for this table, with what it needs."""
        limit, least = self.time_limit, 2 * before + 2
        if limit is not None and taken > limit + max(2.0, 0.05 * limit):
            cause = f"a table of this size needs about {least:.0f} s before anything but the baseline can be learnt"
            if least < limit:
                cause = "what follows the last specialist took longer than expected, as it does on a busy machine"
            text = f"the fit took {taken:.0f} s, its time limit is {limit:g} s: {cause}"
            warnings.warn(text, TimeLimitWarning, stacklevel=5)

    def _warn_of_failures(self):
        failures = self.record_.crossed.failures
        lost = sorted({f.specialist for f in failures})
        if lost:
            warnings.warn(
                f"{len(lost)} of {len(self.record_.library)} specialists failed and are excluded "
                f"({', '.join(lost)}); the first error is {failures[0].error.splitlines()[0]!r}; see failures_",
                FailedSpecialistWarning,
                stacklevel=5,
            )
