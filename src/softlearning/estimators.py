"""SoftClassifier and SoftRegressor: the four calls of the method, behind scikit-learn's interface."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from softlearning.data.schema import admit, describe, is_table, understand
from softlearning.execution import cores
from softlearning.execution.callbacks import telling
from softlearning.execution.checkpoint import Store
from softlearning.execution.progress import watching
from softlearning.execution.threads import one_thread
from softlearning.library import Library, as_rows, every_row, resolve
from softlearning.method.crossfit import CrossFit, Data, Resources, cross_fit
from softlearning.method.ensemble import fold_team, predict_members, refit, with_fold_models
from softlearning.method.folds import make_folds
from softlearning.method.record import Learned, failure_table, honest_blend, judge, leaderboard
from softlearning.uncertainty.conformal import calibrate_interval, calibrate_set, fit_scale, interval, predict_set
from softlearning.uncertainty.disagreement import blend, disagreement, entropy, max_probability_doubt
from softlearning.uncertainty.selective import threshold_for_coverage, threshold_for_risk
from softlearning.weights import Solution, solve_weights

LOSSES = ("squared", "log")


class SoftLearning(CallbackSupportMixin, BaseEstimator):
    """What both estimators share; they differ in how they encode y and decode the blend."""

    _task: str

    @with_callbacks
    def fit(self, X, y, *, sample_weight=None, groups=None):
        """Cross-fit the library, solve for the weights, refit what earned weight.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, d)
            Strings, categories, dates, text and gaps are taken as they are.
        y : array of shape (n,)
            Labels of any kind, or numbers for a regression.
        sample_weight : array of shape (n,), default=None
            Reaches the specialists that take it, and the weights.
        groups : array of shape (n,), default=None
            Rows of a group are held out together.

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
        data = self._admit_training(X, y, sample_weight)
        library = resolve(self.library, self._task)
        stratify = self._task == "classification"
        splits = make_folds(self.cv, data.y, stratify=stratify, groups=groups, seed=data.seed, X=data.X, live=data.live)
        with watching(self.progress) as watch:
            resources = replace(self._resources(start), watch=telling(self, root, watch))
            self._learn(library, data, splits, resources)
        root.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def _learn(self, library: Library, data: Data, splits, resources, known=None, team=None):
        """Phases 1 to 3; `known` and `team` are what an earlier fit on the same data already has."""
        calibrate, keep = self._calibrates(), not self.refit or self.time_limit is not None
        crossed = cross_fit(library, data, splits, resources, calibrate=calibrate, keep=keep, known=known)
        while True:
            solution = self._solve(crossed, data)
            team, failures = self._team(solution, crossed, data, resources, team)
            if not failures:
                crossed = replace(crossed, models={})
                return self._keep(Learned(library, crossed, solution, team, data.without_table()))
            rest = crossed.after_failed_refits(failures)
            crossed = cross_fit(library, data, splits, resources, calibrate=calibrate, known=rest)

    def _solve(self, crossed: CrossFit, data: Data) -> Solution:
        rows = crossed.predicted
        weight = None if data.weight is None else data.weight[rows]
        folds = crossed.fold_of_row[rows]
        P, Y, loss = crossed.oof[rows], data.target[rows], self._loss_for(crossed.library)
        return solve_weights(P, Y, rule=self._rule_used(), loss=loss, sample_weight=weight, folds=folds)

    def _team(self, solution: Solution, crossed: CrossFit, data: Data, resources, known):
        """The specialists with weight, fitted on all rows or as they were in the folds; and what failed."""
        chosen = [name for name, w in zip(crossed.library.names, solution.weights) if w > 0]
        if not self.refit:
            return fold_team(chosen, crossed, data.classes), ()
        team, failures = refit(chosen, crossed, data, resources, known=known)
        if failures and self.time_limit is not None:  # kept for this: no time is left to refit without them
            team, failures = with_fold_models(team, [f.specialist for f in failures], crossed), ()
        return team, failures

    def _keep(self, learned: Learned):
        """The learned attributes, all derived from one record."""
        self.record_ = learned
        self.weights_ = learned.weights()
        self.certificate_ = learned.certificate()
        verdict = judge(learned, self._rule_used(), learned.solution.loss)
        self.cv_risk_, self.verdict_ = verdict.risk, str(verdict)
        self.failures_ = failure_table(learned.crossed.failures)
        self.leaderboard_ = leaderboard(learned, learned.solution.loss, self._score_of, verdict)
        self._warn_of_failures()
        return self

    # -- what was learned ---------------------------------------------------------------------------------------------

    @property
    def family_weights_(self) -> pd.Series:
        """Weight of each algorithmic family, largest first."""
        family = {s.name: s.family for s in self.record_.crossed.library}
        return self.weights_.groupby(family).sum().sort_values(ascending=False).rename_axis("family")

    @property
    def oof_(self) -> np.ndarray:
        """Out-of-fold predictions (n, K, C) in the order of `weights_`; NaN on rows that no fold held out."""
        crossed = self.record_.crossed
        return crossed.oof[:, crossed.columns(self.weights_.index)]

    @property
    def folds_(self) -> list:
        """The (train, test) rows of each fold."""
        return self.record_.crossed.splits

    @property
    def specialists_(self) -> dict:
        """The fitted specialists that carry weight, by name; a list of models, one a fold, with `refit=False`."""
        models = {name: [m.model for m in self.record_.team.members[name]] for name in self.record_.support()}
        return {name: found[0] if self.refit else found for name, found in models.items()}

    @property
    def temperatures_(self) -> pd.Series:
        """The temperature of each specialist: above 1 it was too bold, below 1 too timid."""
        crossed = self.record_.crossed
        return pd.Series(crossed.temperature, index=list(crossed.library.names), name="temperature")

    @property
    def table_(self) -> str:
        """What was understood of the table, in words."""
        return describe(self.record_.data.schema)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "record_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    # -- prediction ---------------------------------------------------------------------------------------------------

    def _tensor(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Predictions (n, K', C) of the specialists with weight, and these weights."""
        check_is_fitted(self)
        return self._predict_named(self.record_.support(), X), self.record_.support_weights()

    def _predict_named(self, names: list[str], X) -> np.ndarray:
        table = self._admit(X)
        if not table.shape[0]:
            return np.empty((0, len(names), self.record_.team.classes))
        with one_thread:
            return predict_members(self.record_.team, names, table, cores(self.n_jobs))

    def _with_doubt(self, X) -> tuple[np.ndarray, np.ndarray]:
        """The blend (n, C), and how far the specialists that it hears, also through a stacker, lie from it (n,)."""
        check_is_fitted(self)
        learned = self.record_
        weights, heard = learned.solution.weights, learned.heard(learned.solution.weights)
        used = (weights > 0) | (heard > 0)
        names = [name for name, use in zip(learned.crossed.library.names, used) if use]
        P = self._predict_named(names, X)
        f = blend(P, weights[used])
        return f, disagreement(P, heard[used], around=f)

    def specialist_predictions(self, X) -> np.ndarray:
        """Predictions (n, K', C) of the specialists with weight, in the order of `specialists_`."""
        return self._tensor(X)[0]

    def contributions(self, X) -> np.ndarray:
        """alpha_k f_k(x), of shape (n, K', C): what each specialist adds; they sum to the prediction."""
        P, alpha = self._tensor(X)
        return P * alpha[:, None]

    def disagreement(self, X) -> np.ndarray:
        """``V(x) = sum of alpha_k |f_k(x) - f(x)|^2``: how far the specialists lie apart on each row.

        The weight of a stacker counts as that of the specialists it reads, in the shares that they earn without it.
        """
        return self._with_doubt(X)[1]

    # -- to keep and to show ------------------------------------------------------------------------------------------

    def save(self, path) -> None:
        """Write the model to one file, without pickle; `softlearning.load` reads it back."""
        from softlearning.storage import save

        check_is_fitted(self)
        save(self, path)

    def report(self, path, X=None, y=None) -> None:
        """Write one self-contained HTML page; with data, also how much each column matters."""
        from softlearning.report import report_model

        check_is_fitted(self)
        report_model(self, path, X=X, y=y)

    # -- another combination of what is already fitted ----------------------------------------------------------------

    def recombine(self, *, rule=None, loss=None, X=None, y=None):
        """A new model under another rule or loss; nothing that is fitted is fitted again.

        X and y, the training data, are needed only when a specialist that has no weight now gets some.
        """
        check_is_fitted(self)
        model = clone(self).set_params(rule=rule or self.rule, loss=loss or self.loss)
        model._check_parameters()
        return model._continue(self, self.record_.library, self.record_.crossed, X, y)

    def drop(self, names, X=None, y=None):
        """A new model without the named specialists, the weights solved over the rest."""
        check_is_fitted(self)
        names = [names] if isinstance(names, str) else list(names)
        library = self.record_.library - names
        rest = self.record_.crossed.without(names)
        if not rest.library:
            raise ValueError("nothing would be left: the model has no other specialist that finished")
        return clone(self).set_params(library=library, rule=self._rule_used())._continue(self, library, rest, X, y)

    def expand(self, specialists, X, y):
        """A new model with a larger library on the same training data and folds; only the new is fitted."""
        check_is_fitted(self)
        library = self.record_.library + as_rows(specialists, named=every_row(self._task))
        known = self.record_.crossed.without([], stackers=bool(library.level(2)))
        return clone(self).set_params(library=library, rule=self._rule_used())._continue(self, library, known, X, y)

    def _continue(self, earlier: SoftLearning, library: Library, known: CrossFit, X, y):
        """Learn with what an earlier model on the same data has; the table is needed only to fit something."""
        for name in ("n_features_in_", "feature_names_in_", "classes_", "_schema", "_mixed"):
            if hasattr(earlier, name):
                setattr(self, name, getattr(earlier, name))
        data = earlier._same_data(X, y)
        missing = [s.name for s in library if s.name not in known.library and s.name not in known.excluded()]
        solution = None if missing else self._solve(known, data)
        if solution is not None and self.refit:
            chosen = [name for name, w in zip(known.library.names, solution.weights) if w > 0]
            missing = [name for name in chosen if name not in earlier.record_.team.members]
        if missing and data.X is None:
            raise ValueError(f"{', '.join(missing)} would have to be fitted: pass the training data, X= and y=")
        team = earlier.record_.team.without_readers(known.library) if self.refit else None
        with one_thread:
            return self._learn(library, data, known.splits, self._resources(time.monotonic()), known=known, team=team)

    def _same_data(self, X, y) -> Data:
        """The training data given again, refused where they are others; without them the target alone."""
        data = self.record_.data
        if X is None:
            return data
        table = self._admit(X)
        if y is None or table.shape[0] != data.rows or not np.array_equal(self._encode_again(y), data.y):
            raise ValueError("X and y are not the data this model was fitted on: the rows or the target differ")
        return replace(data, X=table)

    # -- checks -------------------------------------------------------------------------------------------------------

    def _check_parameters(self):
        allowed = LOSSES if self._task == "classification" else LOSSES[:1]
        if self.loss is not None and self.loss not in allowed:
            raise ValueError(f"loss is {self.loss!r}; for {self._task} it is None or one of {', '.join(allowed)}")
        for name in ("time_limit", "memory_limit"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is {value!r}; give a positive number or None")

    def _resources(self, start: float) -> Resources:
        deadline = None if self.time_limit is None else start + self.time_limit
        store = None if self.checkpoint is None else Store(self.checkpoint)
        return Resources(self.n_jobs, deadline, self.memory_limit, store)

    def _rule_used(self):
        """The rule asked for; by default the exact one, and for the default library the guarded one (docs/study.md)."""
        return self.rule or ("guarded" if isinstance(self.library, str) and self.library == "default" else "simplex")

    def _loss_for(self, library: Library) -> str:
        """What the weights minimise: stackers learn by likelihood, and beside them all are judged by it."""
        return self.loss or ("log" if self._calibrates() and library.level(2) else "squared")

    def _calibrates(self) -> bool:
        return self._task == "classification" and self.calibrate

    def _admit_training(self, X, y, sample_weight) -> Data:
        """Check the input, learn its schema, encode the target."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        # a table of mixed columns is matched by name; numbers follow scikit-learn's rules unless kinds are told
        self._mixed = is_table(X) or self.kinds is not None
        if self._mixed:
            validate_data(self, X, skip_check_array=True)
        else:
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan")
        self._schema = understand(X, self.kinds)
        table = admit(self._schema, X)
        y = column_or_1d(y, warn=True)
        check_consistent_length(table, y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
        codes, target = self._encode(y, None if sample_weight is None else sample_weight > 0)
        return Data(table, codes, target, sample_weight, self._schema, self._task, self._seed())

    def _admit(self, X):
        """A table to predict, through the one gate."""
        if not self._mixed:
            gaps = {"ensure_all_finite": "allow-nan", "ensure_min_samples": 0}
            X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64, **gaps)
        return admit(self._schema, X)

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _forget(self):
        learned = [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]
        for name in (*learned, "record_", "_schema", "_mixed"):
            self.__dict__.pop(name, None)

    def _warn_of_failures(self):
        failures = self.record_.crossed.failures
        lost = sorted({f.specialist for f in failures})
        if lost:
            warnings.warn(
                f"{len(lost)} of {len(self.record_.library)} specialists failed and are left out "
                f"({', '.join(lost)}); the first error is {failures[0].error.splitlines()[0]!r}; see failures_",
                UserWarning,
                stacklevel=5,
            )


class SoftClassifier(ClassifierMixin, SoftLearning):
    """The best combination of classifiers for the data.

    A library of very different specialists is cross-fitted, the optimal convex weights of their out-of-fold
    probabilities are found exactly, and the specialists that earned weight are fitted on all rows.

    Parameters
    ----------
    library : str, Library or list, default="default"
        "default", "paper" or "fast"; a `Library`; or a list of names, `Specialist` rows, (name, estimator) pairs and
        scikit-learn estimators, mixed freely.
    rule : str, callable or None, default=None
        How weights are found: "simplex" (exact), "guarded" (exact, unless held-out folds speak for the best specialist
        or for equal weights), "slsqp", "greedy", "nnls", "uniform", "best", or a function of (predictions, target,
        sample_weight). None is "guarded" for the default library and "simplex" for any other.
    loss : {"squared", "log"} or None, default=None
        What the weights minimise on the out-of-fold probabilities. None is "log" for calibrated probabilities in a
        library with a stacker, as the default one is, and "squared" for any other.
    calibrate : bool, default=True
        One temperature a specialist, learnt from its out-of-fold probabilities before the weights.
    cv : None, int, splitter or list of (train, test), default=None
        None: 5 folds up to 2,000 rows, else 3, stratified and shuffled.
    kinds : dict or None, default=None
        Column name -> kind ("numeric", "category", "datetime", "text", "identifier", ..) where the guess is overruled.
        A dict, even an empty one, has a table of numbers alone understood column by column as well.
    refit : bool, default=True
        Fit what earned weight on all rows; False averages the models of the folds instead.
    time_limit : float, default=None
        Seconds for the whole fit.
    memory_limit : int, default=None
        Bytes that one specialist may take.
    checkpoint : path, default=None
        Folder in which finished work is stored, so that the same call resumes after a crash.
    n_jobs : int, default=None
        Cores to use, in fit and in predict; -1 for all.
    progress : bool, default=False
        Show a live view of the fit.
    random_state : int, RandomState or None, default=42
        The same number gives the same model, bit for bit, whatever `n_jobs` is.

    Attributes
    ----------
    weights_ : Series
        Weight of each specialist that finished; they sum to 1.
    family_weights_ : Series
        The same by algorithmic family.
    leaderboard_ : DataFrame
        specialist, family, weight, cv_risk, cv_score, fit_seconds, predict_seconds, status, note.
    failures_ : DataFrame
        specialist, fold, error, seconds.
    certificate_ : Series
        objective, gap (an upper bound on objective minus optimum) and unique.
    cv_risk_ : float
        Honest risk of the blend: each fold is scored with weights learnt on the other folds.
    verdict_ : str
        Whether the blend is better than its best specialist beyond noise, by how much.
    oof_ : array (n, K, C)
        Out-of-fold probabilities, in the order of `weights_`.
    folds_ : list of (train, test)
    specialists_ : dict
        The fitted specialists that carry weight.
    classes_ : array (C,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from softlearning import SoftClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SoftClassifier(library="fast").fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> bool(abs(model.weights_.sum() - 1) < 1e-12)
    True
    """

    _task = "classification"

    def __init__(
        self,
        library="default",
        *,
        rule=None,
        loss=None,
        calibrate=True,
        cv=None,
        kinds=None,
        refit=True,
        time_limit=None,
        memory_limit=None,
        checkpoint=None,
        n_jobs=None,
        progress=False,
        random_state=42,
    ):
        self.library = library
        self.rule = rule
        self.loss = loss
        self.calibrate = calibrate
        self.cv = cv
        self.kinds = kinds
        self.refit = refit
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def predict_proba(self, X) -> np.ndarray:
        """Probabilities (n, C), the convex combination of the specialists' probabilities."""
        return blend(*self._tensor(X))

    def predict(self, X) -> np.ndarray:
        """The most probable class of each row."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most_probable]

    def predict_selective(self, X, coverage=0.9, *, risk=None, confidence=0.9, doubt="disagreement"):
        """Labels, and which of them to believe: (labels, accepted).

        Parameters
        ----------
        coverage : float
            Share of rows to answer; the threshold comes from the doubt on out-of-fold rows.
        risk : float or None
            Instead of a coverage, the largest error rate among answered rows, promised with `confidence`.
        doubt : {"disagreement", "entropy", "max_probability"}
            What is compared with the threshold.
        """
        p, here = self._with_doubt(X)
        probability, V = honest_blend(self.record_, self._rule_used(), self.record_.solution.loss)
        measure = doubt_measure(doubt)
        known = measure(probability, V)
        if risk is None:
            threshold = threshold_for_coverage(known, coverage)
        else:
            wrong = probability.argmax(axis=1) != self.record_.rows_target().argmax(axis=1)
            threshold = threshold_for_risk(known, wrong, risk, delta=1 - confidence).threshold
        return self.classes_[p.argmax(axis=1)], measure(p, here) <= threshold

    def predict_set(self, X, coverage=0.9, *, per_class=False) -> np.ndarray:
        """Boolean (n, C): the classes that hold the true one with the wanted coverage; no set is empty.

        With `per_class` the coverage holds within each class, at the price of larger sets.
        """
        probability, _ = honest_blend(self.record_, self._rule_used(), self.record_.solution.loss)
        label = self.record_.rows_target().argmax(axis=1)
        weight = self.record_.rows_weight()
        quantile = calibrate_set(probability, label, coverage, per_class=per_class, sample_weight=weight)
        return predict_set(self.predict_proba(X), quantile)

    def _encode(self, y, counts=None):
        if np.asarray(y).dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        if pd.isna(pd.Series(y)).any():
            raise ValueError("Input y contains NaN: leave out these rows, or give them a label")
        check_classification_targets(y)
        self.classes_ = np.unique(y if counts is None else y[counts])
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only, {self.classes_[0]!r}: there is nothing to tell apart")
        codes = self._encode_again(y)
        return codes, (codes[:, None] == np.arange(len(self.classes_))).astype(float)

    def _encode_again(self, y):
        position = {label: code for code, label in enumerate(self.classes_.tolist())}
        return np.array([position.get(label, -1) for label in np.asarray(column_or_1d(y)).tolist()])

    def _score_of(self, P, target, weight) -> float:
        return float(np.average(P.argmax(axis=1) == target.argmax(axis=1), weights=weight))


DOUBTS = {
    "disagreement": lambda probability, V: V,
    "entropy": lambda probability, V: entropy(probability),
    "max_probability": lambda probability, V: max_probability_doubt(probability),
}


def doubt_measure(name: str):
    if name not in DOUBTS:
        raise ValueError(f"doubt is {name!r}; it is one of {', '.join(DOUBTS)}")
    return DOUBTS[name]


class SoftRegressor(RegressorMixin, SoftLearning):
    """The best combination of regressors for the data.

    As `SoftClassifier`, for numbers: the parameters and attributes are the same, without `calibrate` and `classes_`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from softlearning import SoftRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SoftRegressor(library="fast").fit(X, y)
    >>> mean, std = model.predict(X[:2], return_std=True)
    >>> mean.shape, std.shape
    ((2,), (2,))
    """

    _task = "regression"

    def __init__(
        self,
        library="default",
        *,
        rule=None,
        loss=None,
        cv=None,
        kinds=None,
        refit=True,
        time_limit=None,
        memory_limit=None,
        checkpoint=None,
        n_jobs=None,
        progress=False,
        random_state=42,
    ):
        self.library = library
        self.rule = rule
        self.loss = loss
        self.cv = cv
        self.kinds = kinds
        self.refit = refit
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def predict(self, X, return_std=False):
        """The prediction of each row; with `return_std` also the standard deviation among the specialists."""
        if not return_std:
            return blend(*self._tensor(X))[:, 0]
        f, V = self._with_doubt(X)
        return f[:, 0], np.sqrt(V)

    def predict_selective(self, X, coverage=0.9):
        """Predictions, and which of them to believe: the share `coverage` with the least disagreement."""
        f, doubt = self._with_doubt(X)
        _, V = honest_blend(self.record_, self._rule_used(), self.record_.solution.loss)
        return f[:, 0], doubt <= threshold_for_coverage(V, coverage)

    def predict_interval(self, X, coverage=0.9) -> tuple[np.ndarray, np.ndarray]:
        """Low and high, each (n,): wider where the specialists disagree, as far as that told errors before."""
        f, doubt = self._with_doubt(X)
        mean, V = honest_blend(self.record_, self._rule_used(), self.record_.solution.loss)
        y, weight = self.record_.rows_target()[:, 0], self.record_.rows_weight()
        scale = fit_scale(y - mean[:, 0], V)
        quantile = calibrate_interval(mean[:, 0], y, scale(V), coverage, sample_weight=weight)
        return interval(f[:, 0], scale(doubt), quantile)

    def _encode(self, y, counts=None):
        y = np.asarray(y)
        if y.dtype.kind in "mM":
            raise ValueError(f"y holds dates or durations ({y.dtype}), no numbers: give them in a unit of your choice")
        if y.dtype.kind not in "biuf":
            try:
                y = y.astype(float)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"y holds values that are no numbers ({error}): for labels use SoftClassifier"
                ) from None
        y = y.astype(np.float64)
        if not np.isfinite(y).all():
            raise ValueError("y contains NaN or infinity: leave out these rows")
        return y, y[:, None]

    def _encode_again(self, y):
        return np.asarray(column_or_1d(y)).astype(np.float64)

    def _score_of(self, P, target, weight) -> float:
        spread = np.average((target[:, 0] - np.average(target[:, 0], weights=weight)) ** 2, weights=weight)
        error = np.average((target[:, 0] - P[:, 0]) ** 2, weights=weight)
        return float(1 - error / spread) if spread > 0 else np.nan
