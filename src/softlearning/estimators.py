"""SoftClassifier and SoftRegressor: the four calls of the method, behind scikit-learn's interface."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from softlearning.data.inputs import is_table
from softlearning.data.schema import describe, infer_schema
from softlearning.data.validation import validate
from softlearning.execution import cores, parse_bytes
from softlearning.execution.callbacks import CallbackSupportMixin, telling, with_callbacks
from softlearning.execution.checkpoint import Store
from softlearning.execution.progress import watching
from softlearning.execution.threads import one_thread
from softlearning.library import Library, as_rows, every_row, resolve
from softlearning.method.crossfit import CrossFit, cross_fit, weigh, workplace
from softlearning.method.ensemble import (
    ENOUGH_ROWS,
    assemble,
    average_folds,
    predict_members,
    refit,
    with_fold_models,
)
from softlearning.method.folds import make_folds
from softlearning.method.prediction import Prediction, conformal_interval, conformal_set, selective_choice
from softlearning.method.record import Record, failure_table, leaderboard
from softlearning.method.training import Resources, Training, with_mean_one
from softlearning.uncertainty.disagreement import blend, disagreement
from softlearning.uncertainty.selective import threshold_for_coverage
from softlearning.weights import LOSSES

REFITS = (True, False, "auto")
OF_A_FIT = ("_skl_callbacks", "_parent_callback_ctx")  # scikit-learn's callbacks belong to a fit, not to a model


class FailedSpecialistWarning(UserWarning):
    """Specialists failed and are excluded; `failures_` has the reasons."""


class SoftLearning(CallbackSupportMixin, BaseEstimator):
    """What both estimators share; they differ in how they encode y and decode the blend."""

    _task: str

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
        library = resolve(self.library, self._task)
        stratify = self._task == "classification"
        splits = make_folds(
            self.cv, training.y, stratify=stratify, groups=groups, seed=training.seed, X=training.X, live=training.live
        )
        with watching(self.progress) as watch:
            self._learn(library, training, splits, replace(self._resources(start), watch=telling(self, root, watch)))
        root.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def _learn(self, library: Library, training: Training, splits, resources, known=None, ensemble=None):
        """Phases 1 to 3 of Algorithm S8; `known` and `ensemble` are what an earlier fit on the same rows has."""
        calibrate, keep = self._calibrates(), self.refit is not True or self.time_limit is not None
        with workplace(training, library, resources) as table:
            crossed = cross_fit(library, table, splits, resources, calibrate=calibrate, keep=keep, known=known)
            while True:
                solution = self._solve(crossed, training)
                ensemble, failures = self._complete(solution, crossed, table, resources, ensemble)
                if not failures:
                    break
                rest = crossed.after_failed_refits(failures)
                crossed = cross_fit(library, table, splits, resources, calibrate=calibrate, known=rest)
        crossed, training = replace(crossed, models={}), training.without_table()
        return self._keep(Record(library, crossed, solution, ensemble, training, self.rule))

    def _solve(self, crossed: CrossFit, training: Training):
        rows = crossed.predicted
        weight = None if training.weight is None else training.weight[rows]
        P, Y, fold = crossed.oof[rows], training.target[rows], crossed.fold_of_row[rows]
        return weigh(P, Y, crossed.library, self.rule, self._loss(), weight, fold)

    def _complete(self, solution, crossed: CrossFit, table, resources, known):
        """The specialists with weight, as they were in the folds or fitted on all rows; and what failed."""
        chosen = [name for name, w in zip(crossed.library.names, solution.weights) if w > 0]
        ensemble = assemble(chosen, crossed, table, known)
        averaging = self.refit is False or (self.refit == "auto" and table.training.rows > ENOUGH_ROWS)
        ensemble, failures = (average_folds if averaging else refit)(ensemble, crossed, table, resources)
        if failures and crossed.models:  # kept for this: what cannot be fitted again stands in by its folds' models
            ensemble, failures = with_fold_models(ensemble, crossed, table), ()
        return ensemble, failures

    def _keep(self, record: Record):
        """The learned attributes, all derived from one record."""
        self.record_ = record
        self.weights_ = record.weights()
        self.certificate_ = record.certificate()
        self.cv_risk_, self.verdict_ = record.comparison.risk, str(record.comparison)
        self.failures_ = failure_table(record.crossed.failures)
        self.leaderboard_ = leaderboard(record)
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
        """The fitted specialists that carry weight, by name: one model, or a list of one per fold."""
        members = self.record_.ensemble.members
        models = {name: [m.model for m in members[name]] for name in self.record_.support()}
        return {name: found[0] if len(found) == 1 else found for name, found in models.items()}

    @property
    def temperatures_(self) -> pd.Series:
        """The temperature of each specialist: above 1 it was overconfident, below 1 underconfident."""
        crossed = self.record_.crossed
        values = [1.0 if c is None else c.temperature for c in crossed.calibration]
        return pd.Series(values, index=list(crossed.library.names), name="temperature")

    @property
    def table_(self) -> str:
        """What was understood of the table, in words."""
        return describe(self.record_.training.schema)

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
        table = self._validate(X)
        if not table.shape[0]:
            return np.empty((0, len(names), self.record_.ensemble.classes))
        with one_thread:
            return predict_members(self.record_.ensemble, names, table, cores(self.n_jobs))

    def _with_disagreement(self, X) -> tuple[np.ndarray, np.ndarray]:
        """The blend (n, C), and how far the specialists behind it, also through a stacker, lie from it (n,)."""
        check_is_fitted(self)
        weights = self.record_.solution.weights
        handed = self.record_.handed_down(weights)
        used = (weights > 0) | (handed > 0)
        names = [name for name, use in zip(self.record_.crossed.library.names, used) if use]
        P = self._predict_named(names, X)
        f = blend(P, weights[used])
        return f, disagreement(P, handed[used], around=f)

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
        return self._with_disagreement(X)[1]

    # -- to keep and to show ------------------------------------------------------------------------------------------

    def save(self, path, *, keep_oof: bool = True, key: bytes | None = None) -> None:
        """Write the model to one file, without pickle; `softlearning.load` reads it back.

        The file holds what earned weight, and of the data what the model needs to go on: the target, the folds and the
        out-of-fold predictions, and the rows that neighbours and kernel machines keep. Its owner alone may read it.

        Parameters
        ----------
        path : where to; an existing file is replaced in one step, and a failed save leaves it as it was
        keep_oof : False leaves out the out-of-fold predictions, which intervals, sets, the report and `recombine` need
        key : bytes shared with who loads; the file is then signed (HMAC-SHA256)

        Notes
        -----
        Functions and a user's own library cannot be stored: such a parameter is kept as a note and becomes None.
        Random generators and optimizers of the specialists are left out, and `n_jobs` of a specialist becomes 1.
        """
        from softlearning.storage import write_model

        check_is_fitted(self)
        params = self.get_params(deep=False)
        learned = {name: value for name, value in vars(self).items() if name not in (*params, *OF_A_FIT)}
        if not keep_oof:
            learned["record_"] = replace(self.record_, crossed=replace(self.record_.crossed, oof=None))  # type: ignore[arg-type]
        about = {
            "input": self.table_,
            "weights": {name: float(w) for name, w in self.weights_.items() if w > 0},
            "certificate": {name: float(self.certificate_[name]) for name in ("objective", "gap")},
        }
        write_model(path, type(self).__name__, params, learned, about=about, key=key)

    def report(self, path, X=None, y=None) -> None:
        """Write one self-contained HTML page; with rows the model has not seen, also how much each column matters."""
        from softlearning.report import report_model

        check_is_fitted(self)
        report_model(self, path, X=X, y=y)

    # -- another combination of what is already fitted ----------------------------------------------------------------

    def recombine(self, *, rule=None, loss=None, X=None, y=None):
        """A new model under another rule or loss; nothing that is fitted is fitted again.

        X and y, the training data, are needed only when a specialist that has no weight now gets some and its models
        were not kept.
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
        return clone(self).set_params(library=library)._continue(self, library, rest, X, y)

    def expand(self, specialists, X, y):
        """A new model with a larger library on the same training data and folds; only the new is fitted."""
        check_is_fitted(self)
        library = self.record_.library + as_rows(specialists, named=every_row(self._task))
        known = self.record_.crossed.without([], stackers=bool(library.level(2)))
        return clone(self).set_params(library=library)._continue(self, library, known, X, y)

    def _continue(self, earlier: SoftLearning, library: Library, known: CrossFit, X, y):
        """Learn with what an earlier model on the same rows has; the table is needed only to fit something."""
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(earlier, name):
                setattr(self, name, getattr(earlier, name))
        training, ensemble = earlier._same_training(X, y), earlier.record_.ensemble
        missing = [s.name for s in library if s.name not in known.library and s.name not in known.excluded()]
        if not missing:
            solution = self._solve(known, training)
            chosen = [name for name, w in zip(known.library.names, solution.weights) if w > 0]
            missing = [name for name in chosen if name not in ensemble.members]
        if missing and training.X is None:
            raise ValueError(f"{', '.join(missing)} would have to be fitted: pass the training data, X= and y=")
        resources, ensemble = self._resources(time.monotonic()), ensemble.without_readers(known.library)
        with one_thread:
            return self._learn(library, training, known.splits, resources, known=known, ensemble=ensemble)

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
        if self.refit not in REFITS:
            raise ValueError(f"refit is {self.refit!r}; it is True, False or 'auto'")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"time_limit is {self.time_limit!r}; give a positive number or None")
        parse_bytes(self.memory_limit)

    def _resources(self, start: float) -> Resources:
        deadline = None if self.time_limit is None else start + self.time_limit
        return Resources(self.n_jobs, deadline, parse_bytes(self.memory_limit), self._store())

    def _store(self) -> Store | None:
        if self.checkpoint is None:
            return None
        from softlearning.storage.models import dump_model, load_model

        return Store(self.checkpoint, dump=dump_model, load=load_model)

    def _loss(self) -> str:
        """What the weights minimise: the likelihood of classes, the squared error of numbers."""
        return self.loss if self.loss != "auto" else "log" if self._task == "classification" else "squared"

    def _calibrates(self) -> bool:
        return self._task == "classification" and self.calibrate

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


class SoftClassifier(ClassifierMixin, SoftLearning):
    """The best combination of classifiers for the data.

    A library of very different specialists is cross-fitted, the optimal convex weights of their out-of-fold
    probabilities are found exactly, and the specialists that earned weight are fitted on all rows.

    Parameters
    ----------
    library : str, Library or list, default="default"
        "default", "best" (longer boosting, more trees), "fast" (seconds) or "paper"; a `Library`; or a list of names,
        `Specialist` rows, (name, estimator) pairs and scikit-learn estimators, mixed freely.
    rule : str or callable, default="guarded"
        How weights are found: "simplex" (exact), "guarded" (exact, shrunk where held-out folds say that pure
        optimisation overfits), "slsqp", "greedy", "nnls", "uniform", "best", or a function of (predictions, target,
        sample_weight).
    loss : {"auto", "log", "squared"}, default="auto"
        What the weights minimise on the out-of-fold probabilities; "auto" is "log".
    calibrate : bool, default=True
        Calibrate the probabilities of each specialist on its out-of-fold rows, before the weights.
    cv : None, int, splitter or list of (train, test), default=None
        None: 5 folds up to 2,000 rows, else 3, stratified and shuffled.
    column_types : dict or None, default=None
        Column name -> type ("number", "boolean", "category", "date", "text", "identifier", ..), overruling the guess.
        A dict, even an empty one, has a table of numbers alone understood column by column as well.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count, beside `sample_weight`.
    refit : bool or "auto", default="auto"
        True fits what earned weight on all rows; False averages the models of the folds instead, which costs no further
        fit; "auto" fits again up to 50,000 rows.
    time_limit : float, default=None
        Seconds for the whole fit.
    memory_limit : int, float or str, default=None
        What the specialists under way may hold together: bytes, as 2e9, or a text, as "2 GB".
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
        specialist, fold, kind, error, seconds.
    certificate_ : Series
        objective, gap (an upper bound on objective minus optimum) and unique; optimum and optimum_gap, what was proved
        of the exact weights; shrinkage and penalised_gap, how far the guarded rule leans to the prior shares and the
        proof of that.
    cv_risk_ : float
        Held-out risk of the blend: each fold is scored with weights learnt on the other folds.
    verdict_ : str
        Whether the blend is better than its best single specialist beyond noise, with both risks.
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
        rule="guarded",
        loss="auto",
        calibrate=True,
        cv=None,
        column_types=None,
        class_weight=None,
        refit="auto",
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
        self.column_types = column_types
        self.class_weight = class_weight
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

    def predict_full(self, X, coverage=0.9) -> Prediction:
        """All that is said of each row: label, probabilities, disagreement, and the set of the nominal coverage."""
        f, V = self._with_disagreement(X)
        inside = None if self.record_.crossed.oof is None else conformal_set(self.record_, f, coverage, per_class=False)
        return Prediction(self.classes_[f.argmax(axis=1)], V, self.classes_, probability=f, inside=inside)

    def predict_selective(self, X, coverage=0.9, *, risk=None, confidence=0.9, measure="auto"):
        """Labels, and which of them to believe: (labels, accepted).

        Parameters
        ----------
        coverage : float in (0, 1]
            Share of rows to answer; the threshold comes from the uncertainty of held-out rows.
        risk : float in (0, 1) or None
            Instead of a coverage, the largest error rate among answered rows, kept with `confidence`.
        measure : {"auto", "disagreement", "entropy", "max_probability"}
            The uncertainty that is compared with the threshold; "auto" takes the one that finds most errors on
            held-out rows.
        """
        f, V = self._with_disagreement(X)
        choice = selective_choice(self.record_.held_out, measure, coverage, risk, confidence)
        return self.classes_[f.argmax(axis=1)], choice.accepts(f, V)

    def predict_set(self, X, coverage=0.9, *, per_class=False) -> np.ndarray:
        """Boolean (n, C): the classes that hold the true one with the nominal coverage; no set is empty.

        With `per_class` the coverage holds within each class, at the price of larger sets.
        """
        return conformal_set(self.record_, self.predict_proba(X), coverage, per_class=per_class)

    def _weight_of_rows(self, y, sample_weight):
        if self.class_weight is None:
            return sample_weight
        share = compute_sample_weight(self.class_weight, y)
        return share if sample_weight is None else share * sample_weight

    def _encode(self, y, counts=None):
        if np.asarray(y).dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        if pd.isna(pd.Series(y)).any():
            raise ValueError("Input y contains NaN: leave out these rows, or give them a label")
        check_classification_targets(y)
        self.classes_ = np.unique(y if counts is None else y[counts])
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only, {self.classes_.tolist()[0]!r}: there is nothing to tell apart")
        codes = self._encode_again(y)
        return codes, (codes[:, None] == np.arange(len(self.classes_))).astype(float)

    def _encode_again(self, y):
        position = {label: code for code, label in enumerate(self.classes_.tolist())}
        return np.array([position.get(label, -1) for label in np.asarray(column_or_1d(y)).tolist()])


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
        rule="guarded",
        loss="auto",
        cv=None,
        column_types=None,
        refit="auto",
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
        self.column_types = column_types
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
        f, V = self._with_disagreement(X)
        return f[:, 0], np.sqrt(V)

    def predict_full(self, X, coverage=0.9) -> Prediction:
        """All that is said of each row: prediction, disagreement, and the interval of the nominal coverage."""
        f, V = self._with_disagreement(X)
        if self.record_.crossed.oof is None:
            return Prediction(f[:, 0], V)
        low, high = conformal_interval(self.record_, f[:, 0], V, coverage)
        return Prediction(f[:, 0], V, low=low, high=high)

    def predict_selective(self, X, coverage=0.9):
        """Predictions, and which of them to believe: the share `coverage` with the least disagreement."""
        f, V = self._with_disagreement(X)
        return f[:, 0], threshold_for_coverage(self.record_.held_out.disagreement, coverage) >= V

    def predict_interval(self, X, coverage=0.9) -> tuple[np.ndarray, np.ndarray]:
        """Low and high, each (n,): wider where the specialists disagree, as far as that told errors before."""
        f, V = self._with_disagreement(X)
        return conformal_interval(self.record_, f[:, 0], V, coverage)

    def _encode(self, y, counts=None):
        y = np.asarray(y)
        if y.dtype.kind in "mM":
            raise ValueError(f"y holds dates or durations ({y.dtype}), not numbers: give them in a unit of your choice")
        if y.dtype.kind not in "biuf":
            try:
                y = y.astype(float)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"y holds values that are not numbers ({error}): for labels use SoftClassifier"
                ) from None
        y = y.astype(np.float64)
        if not np.isfinite(y).all():
            raise ValueError("y contains NaN or infinity: leave out these rows")
        return y, y[:, None]

    def _encode_again(self, y):
        return np.asarray(column_or_1d(y)).astype(np.float64)


# -- from a file ------------------------------------------------------------------------------------------------------


def load(path, *, trusted=(), max_bytes: int = 2 << 30, key: bytes | None = None) -> SoftClassifier | SoftRegressor:
    """Read a model that `save` wrote; refuse anything else with a `ModelFileError` that says why.

    Parameters
    ----------
    path : the file
    trusted : full names of classes of your own, such as "mypackage.MyEstimator", that the model may hold. Building
        them runs their code: name only what you know.
    max_bytes : how many bytes the loaded model may take
    key : the bytes that the file must be signed with
    """
    from softlearning.storage import ModelFileError, read_model

    found = read_model(path, trusted=trusted, max_bytes=max_bytes, key=key)
    cls = {"SoftClassifier": SoftClassifier, "SoftRegressor": SoftRegressor}.get(found.kind)
    if cls is None:
        raise ModelFileError(f"the file holds a {found.kind[:50]!r}, which softlearning does not have")
    model, record = cls(), found.learned["record_"]
    odd = [name for name in found.learned if not str(name).isidentifier() or hasattr(cls, str(name))]
    if odd or not found.params.keys() <= model.get_params(deep=False).keys():
        raise ModelFileError(f"a {found.kind} in the file has other attributes than this version")
    model.__dict__.update({**found.params, **found.learned, "_notes": found.notes})
    classes = getattr(model, "classes_", None)
    if cls is SoftClassifier and (classes is None or len(classes) != max(record.ensemble.classes, 1)):
        raise ModelFileError("the classes in the file do not fit together")
    if not np.array_equal(model.weights_, record.weights()):
        raise ModelFileError("the weights that the file shows are not those of its record")
    return model
