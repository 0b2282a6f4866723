"""SoftClassifier and SoftRegressor: the four calls of the method, behind scikit-learn's interface."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from softlearning.blend import Team, fold_team, predict_members, refit
from softlearning.crossfit import CrossFit, Data, Resources, cross_fit
from softlearning.folds import make_folds
from softlearning.insight.disagreement import disagreement
from softlearning.library import Library, as_rows, every_row, resolve
from softlearning.tables import admit, describe, is_table, understand
from softlearning.weights import Solution, honest_risk, row_losses, solve_weights

LOSSES = ("squared", "log")


class SoftLearning(BaseEstimator):
    """What both estimators share; they differ in how they encode y and decode the blend."""

    _task: str

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
            return self._fit(X, y, sample_weight, groups)
        except BaseException:
            self._forget()  # a failed fit leaves nothing that could be taken for a model
            raise

    def _fit(self, X, y, sample_weight, groups):
        start = time.monotonic()
        self._check_parameters()
        data = self._admit_training(X, y, sample_weight)
        library = resolve(self.library, self._task)
        splits = make_folds(
            self.cv, data.y, stratify=self._task == "classification", groups=groups, seed=data.seed, X=data.X
        )
        return self._learn(library, data, splits, self._resources(start))

    def _learn(self, library: Library, data: Data, splits, resources, known=None, team=None):
        """Phases 1 to 3. `known` and `team` are what an earlier fit on the same data already has."""
        crossed = cross_fit(
            library, data, splits, resources, calibrate=self._calibrates(), keep=not self.refit, known=known
        )
        while True:
            solution = self._solve(crossed, data)
            chosen = [name for name, w in zip(crossed.library.names, solution.weights) if w > 0]
            if not self.refit:
                team = fold_team(chosen, crossed, data.classes)
                break
            team, failures = refit(chosen, crossed, data, resources, known=team)
            if not failures:
                break
            crossed = self._without(failures, library, crossed, data, resources)
        return self._keep(library, data, crossed, solution, team)

    def _without(self, failures, library: Library, crossed: CrossFit, data: Data, resources) -> CrossFit:
        """The cross-fit without specialists whose refit failed; level 2 is cross-fitted anew, since it read them."""
        lost = {f.specialist for f in failures}
        finished = crossed.only([s.name for s in crossed.library if s.level == 1 and s.name not in lost])
        rest = library - [name for name in library.names if name in lost | {f.specialist for f in crossed.failures}]
        again = cross_fit(rest, data, crossed.splits, resources, calibrate=self._calibrates(), known=finished)
        return CrossFit(**{**vars(again), "failures": again.failures + failures})

    def _solve(self, crossed: CrossFit, data: Data) -> Solution:
        rows = crossed.predicted
        return solve_weights(
            crossed.oof[rows],
            data.target[rows],
            rule=self.rule,
            loss=self.loss,
            sample_weight=None if data.weight is None else data.weight[rows],
            folds=crossed.fold_of_row[rows],
        )

    def _keep(self, library: Library, data: Data, crossed: CrossFit, solution: Solution, team: Team):
        """The learned attributes, all derived from the cross-fit, the solution and the team."""
        self._library, self._data_seed = library, data.seed
        self._crossfit, self._team, self._solution = crossed, team, solution
        self._target, self._row_weight = data.target, data.weight
        self._schema = data.schema
        names = crossed.library.names
        order = [name for name in library.names if name in names] or list(names)
        self.weights_ = pd.Series(solution.weights, index=list(names), name="weight").loc[order]
        self.certificate_ = pd.Series(
            {"objective": solution.objective, "gap": solution.gap, "unique": solution.unique},
            name="certificate",
        )
        self.cv_risk_ = self._honest_risk(crossed, data)
        self.leaderboard_ = leaderboard(self, library)
        self.failures_ = failure_table(crossed.failures)
        self._warn_of_failures()
        return self

    def _honest_risk(self, crossed: CrossFit, data: Data) -> float:
        rows = crossed.predicted
        weight = None if data.weight is None else data.weight[rows]
        loss = honest_risk(
            crossed.oof[rows],
            data.target[rows],
            crossed.fold_of_row[rows],
            rule=self.rule,
            loss=self.loss,
            sample_weight=weight,
        )
        return float(np.average(loss, weights=weight))

    # -- what was learned ---------------------------------------------------------------------------------------------

    @property
    def family_weights_(self) -> pd.Series:
        """Weight of each algorithmic family, largest first."""
        family = {s.name: s.family for s in self._crossfit.library}
        return self.weights_.groupby(family).sum().sort_values(ascending=False).rename_axis("family")

    @property
    def oof_(self) -> np.ndarray:
        """Out-of-fold predictions (n, K, C) in the order of `weights_`; NaN on rows that no fold held out."""
        return self._crossfit.oof[:, self._crossfit.columns(self.weights_.index)]

    @property
    def folds_(self) -> list:
        """The (train, test) rows of each fold."""
        return self._crossfit.splits

    @property
    def specialists_(self) -> dict:
        """The fitted specialists that carry weight, by name; a list of models, one a fold, with `refit=False`."""
        models = {name: [m.model for m in self._team.members[name]] for name in self._support()}
        return {name: found[0] if self.refit else found for name, found in models.items()}

    @property
    def table_(self) -> str:
        """What was understood of the table, in words."""
        return describe(self._schema)

    def _support(self) -> list[str]:
        """The specialists with weight, in the order that all sums are taken in."""
        return [name for name in self._crossfit.library.names if self.weights_[name] > 0]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    # -- prediction ---------------------------------------------------------------------------------------------------

    def _tensor(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Predictions (n, K', C) of the specialists with weight, and these weights."""
        check_is_fitted(self)
        names = self._support()
        table = self._admit(X)
        alpha = self.weights_[names].to_numpy()
        if not table.shape[0]:
            return np.empty((0, len(names), self._team.classes)), alpha
        return predict_members(self._team, names, table), alpha

    def _blend(self, X) -> np.ndarray:
        return blend(*self._tensor(X))

    def specialist_predictions(self, X) -> np.ndarray:
        """Predictions (n, K', C) of the specialists with weight, in the order of `specialists_`."""
        return self._tensor(X)[0]

    def contributions(self, X) -> pd.DataFrame | np.ndarray:
        """alpha_k f_k(x), of shape (n, K', C): what each specialist adds to the blend; they sum to the prediction."""
        P, alpha = self._tensor(X)
        return P * alpha[:, None]

    def disagreement(self, X) -> np.ndarray:
        """V(x) = sum of alpha_k |f_k(x) - f(x)|^2: how far the specialists lie apart on each row."""
        return disagreement(*self._tensor(X))

    # -- another combination of what is already fitted ----------------------------------------------------------------

    def recombine(self, *, rule=None, loss=None, X=None, y=None):
        """A new model under another rule or loss; nothing that is fitted is fitted again.

        X and y, the training data, are needed only when a specialist that has no weight now gets some.
        """
        check_is_fitted(self)
        model = self._sibling(rule=self.rule if rule is None else rule, loss=self.loss if loss is None else loss)
        return model._recombined(self, self._library, self._crossfit, X, y)

    def drop(self, names, X=None, y=None):
        """A new model without the named specialists, the weights solved over the rest."""
        check_is_fitted(self)
        library = self._library - names
        lost = [names] if isinstance(names, str) else list(names)
        readers = [
            s.name for s in self._crossfit.library if s.level == 2 and (s.reads is None or set(lost) & set(s.reads))
        ]
        kept = [n for n in self._crossfit.library.names if n not in set(lost) | set(readers)]
        if not kept:
            raise ValueError("nothing would be left: the model has no other specialist that finished")
        model = self._sibling(library=library)
        if readers:
            return model._expanded(self, library, self._crossfit.only(kept), X, y)
        return model._recombined(self, library, self._crossfit.only(kept), X, y)

    def expand(self, specialists, X, y):
        """A new model with a larger library on the same training data and folds; only the new specialists are fitted."""
        check_is_fitted(self)
        library = self._library + Library(tuple(as_rows(specialists, named=every_row(self._task))))
        model = self._sibling(library=library)
        kept = self._crossfit
        if any(s.level == 2 for s in kept.library):
            kept = kept.only([s.name for s in kept.library if s.level == 1])  # level 2 reads the larger level 1
        return model._expanded(self, library, kept, X, y)

    def _sibling(self, **changed):
        model = clone(self).set_params(**changed)
        model._inherit_schema(self)
        return model

    def _inherit_schema(self, other):
        self._schema, self._mixed = other._schema, other._mixed
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))

    def _recombined(self, other, library: Library, crossed: CrossFit, X, y):
        data = other._remembered() if X is None else other._same_data(X, y)
        solution = self._solve(crossed, data)
        chosen = [name for name, w in zip(crossed.library.names, solution.weights) if w > 0]
        if not self.refit:
            return self._keep(library, data, crossed, solution, fold_team(chosen, crossed, data.classes))
        missing = [name for name in chosen if name not in other._team.members]
        if missing and X is None:
            raise ValueError(
                f"{', '.join(missing)} now get weight and are not fitted: pass the training data, X= and y="
            )
        if missing:
            return self._expanded(other, library, crossed, X, y)
        team = Team(**{**vars(other._team)})
        return self._keep(library, data, crossed, solution, team)

    def _expanded(self, other, library: Library, crossed: CrossFit, X, y):
        if X is None or y is None:
            raise ValueError("the training data are needed here: pass X= and y=")
        resources = self._resources(time.monotonic())
        team = other._team if other.refit else None
        stale = [name for name, row in other._team.rows.items() if row.level == 2] if team else []
        if team is not None and stale and crossed.library.level(2).names != other._crossfit.library.level(2).names:
            members = {n: m for n, m in team.members.items() if n not in stale}
            team = Team(**{**vars(team), "members": members})
        return self._learn(library, other._same_data(X, y), crossed.splits, resources, known=crossed, team=team)

    def _remembered(self) -> Data:
        """The training target without the table: enough to solve for weights."""
        y = self._target[:, 0] if self._task == "regression" else self._target.argmax(axis=1)
        return Data(None, y, self._target, self._row_weight, self._schema, self._task, self._data_seed)

    def _same_data(self, X, y) -> Data:
        """The training data given again, refused where they are others."""
        table = self._admit(X)
        data = self._remembered()
        given = self._encode_again(y)
        if table.shape[0] != data.rows or not np.array_equal(given, data.y):
            raise ValueError("X and y are not the data this model was fitted on: the rows or the target differ")
        return Data(**{**vars(data), "X": table})

    # -- checks -------------------------------------------------------------------------------------------------------

    def _check_parameters(self):
        if self.loss not in LOSSES or (self.loss == "log" and self._task == "regression"):
            allowed = LOSSES if self._task == "classification" else LOSSES[:1]
            raise ValueError(f"loss is {self.loss!r}; for {self._task} it is one of {', '.join(allowed)}")
        for name in ("time_limit", "memory_limit"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is {value!r}; give a positive number or None")

    def _resources(self, start: float) -> Resources:
        deadline = None if self.time_limit is None else start + self.time_limit
        return Resources(self.n_jobs, deadline, self.memory_limit)

    def _calibrates(self) -> bool:
        return self._task == "classification" and self.calibrate

    def _admit_training(self, X, y, sample_weight) -> Data:
        """Check the input, learn its schema, encode the target."""
        table, schema = self._understand(X, y)
        y = column_or_1d(y, warn=True)
        check_consistent_length(table, y)
        codes, target = self._encode(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
        return Data(table, codes, target, sample_weight, schema, self._task, self._seed())

    def _understand(self, X, y) -> tuple:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        self._mixed = is_table(X)  # a table of mixed columns is matched by name; numbers follow scikit-learn's rules
        if self._mixed:
            validate_data(self, X, skip_check_array=True)
        else:
            X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan")
        schema = understand(X)
        return admit(schema, X), schema

    def _admit(self, X):
        """A table to predict, through the one gate."""
        if not self._mixed:
            X = validate_data(
                self,
                X,
                reset=False,
                accept_sparse="csr",
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                ensure_min_samples=0,
            )
        return admit(self._schema, X)

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _forget(self):
        for name in [n for n in vars(self) if n.endswith("_") or (n.startswith("_") and not n.startswith("_sk"))]:
            if name not in self.get_params(deep=False) and not name.startswith("__") and name != "_metadata_request":
                delattr(self, name)

    def _warn_of_failures(self):
        lost = sorted({f.specialist for f in self._crossfit.failures})
        if lost:
            reason = self._crossfit.failures[0].error.splitlines()[0]
            warnings.warn(
                f"{len(lost)} of {len(self._library)} specialists failed and are left out ({', '.join(lost)}); "
                f"the first error is {reason!r}; see failures_",
                UserWarning,
                stacklevel=5,
            )


def blend(P: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """f(x) = sum of alpha_k f_k(x): (n, C) from (n, K, C)."""
    return np.einsum("nkc,k->nc", P, alpha)


def failure_table(failures) -> pd.DataFrame:
    rows = [(f.specialist, f.fold, f.error, f.seconds) for f in failures]
    return pd.DataFrame(rows, columns=["specialist", "fold", "error", "seconds"])


def leaderboard(model: SoftLearning, library: Library) -> pd.DataFrame:
    """One line a specialist of the library: what it weighs, how good it is alone, what it cost, what became of it."""
    crossed = model._crossfit
    rows = crossed.predicted
    target, weight = model._target[rows], None if model._row_weight is None else model._row_weight[rows]
    failed = {f.specialist: f.error.splitlines()[0] for f in crossed.failures}
    lines = []
    for s in {s.name: s for s in (*library, *crossed.library)}.values():
        line = {
            "specialist": s.name,
            "family": s.family,
            "weight": 0.0,
            "cv_risk": np.nan,
            "cv_score": np.nan,
        }
        line |= {"fit_seconds": np.nan, "predict_seconds": np.nan}
        if s.name in crossed.library:
            P = crossed.oof[rows][:, crossed.columns([s.name])]
            alone = row_losses(P, target, np.ones(1), loss=model.loss)
            fit, predict = crossed.seconds[s.name]
            line |= {
                "weight": float(model.weights_[s.name]),
                "cv_risk": float(np.average(alone, weights=weight)),
            }
            line |= {"cv_score": model._score_of(P[:, 0], target, weight)}
            line |= {"fit_seconds": fit, "predict_seconds": predict, "status": "ok"}
        else:
            reason = crossed.left_out.get(s.name)
            line["status"] = f"left out: {reason}" if reason else f"failed: {failed.get(s.name, 'unknown')}"
        lines.append(line)
    board = pd.DataFrame(lines).sort_values(["weight", "cv_risk"], ascending=[False, True], ignore_index=True)
    return board


PARAMETERS = """
    Parameters
    ----------
"""


class SoftClassifier(ClassifierMixin, SoftLearning):
    """The best combination of classifiers for the data.

    A library of very different specialists is cross-fitted, the optimal convex weights of their out-of-fold
    probabilities are found exactly, and the specialists that earned weight are fitted on all rows.

    Parameters
    ----------
    library : str, Library or list, default="default"
        "default", "paper" or "fast"; a `Library`; or a list of names, `Specialist` rows, (name, estimator) pairs and
        scikit-learn estimators, mixed freely.
    rule : str or callable, default="simplex"
        How weights are found: "simplex" (exact), "guarded", "slsqp", "greedy", "nnls", "uniform", "best", or a
        function of (predictions, target, sample_weight).
    loss : {"squared", "log"}, default="squared"
        What the weights minimise on the out-of-fold probabilities.
    calibrate : bool, default=True
        One temperature a specialist, learnt from its out-of-fold probabilities before the weights.
    cv : None, int, splitter or list of (train, test), default=None
        None: 5 folds up to 2,000 rows, else 3, stratified and shuffled.
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
        specialist, family, weight, cv_risk, cv_score, fit_seconds, predict_seconds, status.
    failures_ : DataFrame
        specialist, fold, error, seconds.
    certificate_ : Series
        objective, gap (an upper bound on objective minus optimum) and unique.
    cv_risk_ : float
        Honest risk of the blend: each fold is scored with weights learnt on the other folds.
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
        rule="simplex",
        loss="squared",
        calibrate=True,
        cv=None,
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
        self.refit = refit
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def predict_proba(self, X) -> np.ndarray:
        """Probabilities (n, C), the convex combination of the specialists' probabilities."""
        return self._blend(X)

    def predict(self, X) -> np.ndarray:
        """The most probable class of each row."""
        return self.classes_[self._blend(X).argmax(axis=1)]

    def _encode(self, y):
        check_classification_targets(y)
        if pd.isna(pd.Series(y)).any():
            raise ValueError("y has missing values: leave out these rows, or give them a label")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only, {self.classes_[0]!r}: there is nothing to tell apart")
        return codes, np.eye(len(self.classes_))[codes]

    def _encode_again(self, y):
        position = {label: code for code, label in enumerate(self.classes_.tolist())}
        return np.array([position.get(label, -1) for label in np.asarray(column_or_1d(y)).tolist()])

    def _score_of(self, P, target, weight) -> float:
        return float(np.average(P.argmax(axis=1) == target.argmax(axis=1), weights=weight))


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
        rule="simplex",
        loss="squared",
        cv=None,
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
        self.refit = refit
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def predict(self, X, return_std=False):
        """The prediction of each row; with `return_std` also the standard deviation among the specialists."""
        P, alpha = self._tensor(X)
        mean = blend(P, alpha)[:, 0]
        return (mean, np.sqrt(disagreement(P, alpha))) if return_std else mean

    def _encode(self, y):
        y = np.asarray(y)
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
