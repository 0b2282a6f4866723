"""SoftClassifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from softlearning.data.schema import ENOUGH_ROWS
from softlearning.estimators.base import SoftLearning
from softlearning.evaluation.aims import decision_for, said_held_out, score_model
from softlearning.method.decisions import shares_of, with_prior
from softlearning.method.prediction import Prediction, conformal_set, selective_choice
from softlearning.method.record import Record


@dataclass(kw_only=True, eq=False, repr=False)
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
        What the weights minimise on the out-of-fold probabilities; "auto" is "log", or what serves the `metric`.
    metric : str, scorer or None, default=None
        What the model is to be good at, and what `leaderboard_`, `cv_score_`, `verdict_`, `score`, `evaluate` and the
        report speak of: a scorer name of scikit-learn ("roc_auc", "f1", "neg_log_loss", ..), a short name ("auc",
        "mcc", ..), a scorer, or "ordinal" for classes that have an order (the ranked probability score); of an ordered
        categorical with more than two classes, None is "ordinal". A metric with a convex loss of its own is aimed at by
        that loss; for others the weights come from the nearest convex losses or from greedy selection, whichever is
        better on held-out rows beyond noise; `aim_` says which.
    threshold : None, "auto", float or array (C, C), default=None
        How probabilities become labels. None: the most probable class; with a metric of labels such as "f1", its
        held-out optimum. "auto": of two classes, the threshold that is best held out by the metric, or by balanced
        accuracy. A number: the probability from which the second class is answered. A matrix: costs of answering j
        where i is true; the answer is the one of least expected cost.
    calibrate : bool, default=True
        Calibrate the probabilities of each specialist on its out-of-fold rows, before the weights.
    cv : None, int, splitter or list of (train, test), default=None
        None: 5 folds up to 2,000 rows, else 3, stratified and shuffled; of more than 200,000 rows 50,000 are held out.
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
        What the specialists under way may take together, beyond what their processes hold when they begin: bytes, as
        2e9, or a text, as "2 GB". The table and the views in files, which they share, do not count.
    checkpoint : path, default=None
        Folder in which finished work is stored, so that the same call resumes after a crash.
    engine : None, str or Dask Client, default=None
        Where the fit runs: None is this machine, or the joblib backend of `joblib.parallel_config`; else a Dask
        `Client`, "ray" (after ``ray.init``) or the name of a joblib backend. The numbers are the same, bit for bit.
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
    cv_score_ : Series
        metric, score, std_error, low and high of the blend on held-out rows.
    aim_ : str
        With a metric: where the weights come from, and what else was tried.
    decision_ : Decision or None
        How probabilities become labels, with its `threshold`; None is the most probable class.
    verdict_ : str
        Whether the blend is better than its best single specialist beyond noise, with both risks.
    oof_ : array (n, K, C)
        Out-of-fold probabilities, in the order of `weights_`.
    folds_ : list of (train, test)
    specialists_ : dict
        The fitted specialists that carry weight.
    classes_ : array (C,)
    class_order_ : tuple or None
        The labels from the lowest to the highest, where y was an ordered categorical of pandas.

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
    threshold: Any = None
    calibrate: Any = True
    class_weight: Any = None

    def predict_proba(self, X, prior=None) -> np.ndarray:
        """Probabilities (n, C), the convex combination of the specialists' probabilities.

        prior : class shares where the model is used, if they differ from those it was fitted on: a dict by label, or
            numbers in the order of `classes_`. The rows of each class are taken to be as before.
        """
        P = self._blend(X)
        return P if prior is None else self._shifted(P, prior)

    def predict(self, X, prior=None) -> np.ndarray:
        """The label of each row: the most probable class, or what `threshold` decides."""
        return self._decide(self.predict_proba(X, prior))

    def score(self, X, y, sample_weight=None) -> float:
        """The metric of the model on these rows; accuracy where no metric was given."""
        aim = self._aim()
        return super().score(X, y, sample_weight) if aim is None else score_model(self, aim, X, y, sample_weight)

    def _validate_training(self, X, y, sample_weight, groups):
        dtype = getattr(y, "dtype", None)
        self.class_order_ = None
        if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
            self.class_order_ = tuple(dtype.categories.tolist())
        return super()._validate_training(X, y, sample_weight, groups)

    def _shifted(self, P: np.ndarray, prior) -> np.ndarray:
        training = self.record_.training
        learnt = np.average(training.target, axis=0, weights=training.weight)
        return with_prior(P, shares_of(prior, self.classes_), learnt)

    def _decide(self, P: np.ndarray) -> np.ndarray:
        rule = getattr(self, "decision_", None)
        return self.classes_[P.argmax(axis=1) if rule is None else rule.places(P)]

    @property
    def threshold_(self) -> float | None:
        """Of two classes, the probability of the second from which it is answered; None is the most probable class."""
        rule = getattr(self, "decision_", None)
        return None if rule is None else rule.threshold

    def _keep_aim(self, record: Record) -> None:
        super()._keep_aim(record)
        held = record.held_out
        self.decision_ = decision_for(held.blend, held.target, self.classes_, held.weight, self.threshold, self._aim())

    def predict_full(self, X, coverage=0.9) -> Prediction:
        """All that is said of each row: label, probabilities, disagreement, and the set of the nominal coverage."""
        f, V = self._with_disagreement(X)
        inside = None if self.record_.crossed.oof is None else conformal_set(self.record_.held_out, f, coverage)
        return Prediction(self._decide(f), V, self.classes_, probability=f, inside=inside)

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
        said = said_held_out(self.record_, self.threshold, self._aim())
        choice = selective_choice(self.record_.held_out, said, measure, coverage, risk, confidence)
        return self._decide(f), choice.accepts(f, V)

    def predict_set(self, X, coverage=0.9, *, per_class=False) -> np.ndarray:
        """Boolean (n, C): the classes that hold the true one with the nominal coverage; no set is empty.

        With `per_class` the coverage holds within each class, at the price of larger sets.
        """
        return conformal_set(self.record_.held_out, self.predict_proba(X), coverage, per_class=per_class)

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
        if len(self.classes_) == len(y) >= ENOUGH_ROWS:
            raise ValueError(f"each of the {len(y)} rows has a class of its own: an identifier cannot be predicted")
        codes = self._encode_again(y)
        return codes, (codes[:, None] == np.arange(len(self.classes_))).astype(float)

    def _encode_again(self, y):
        position = {label: code for code, label in enumerate(self.classes_.tolist())}
        return np.array([position.get(label, -1) for label in np.asarray(column_or_1d(y)).tolist()])
