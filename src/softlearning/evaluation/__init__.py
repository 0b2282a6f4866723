"""How good is the whole procedure on new rows: nested cross-validation, with intervals that hold.

`evaluate` fits the model anew in every outer fold (its own cross-fitting, weights and refit included) and scores it
on the rows held out, next to each specialist, the discrete Super Learner and uniform weights on the same rows.

What an interval is about: the score, on new rows, of models fitted as those of the outer folds were, that is on all
rows but one fold. The model fitted on all rows is usually a little better. The standard error is that of the held-out
rows (jackknife over rows, or over groups), times `scoring.DEPENDENCE`, because a held-out row has also trained the
models of the other folds. It does not contain the chance of drawing another training set: an interval for the
*expected* score over training sets would have to be wider.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing

from softlearning.evaluation.scoring import (
    METRICS,
    Measured,
    Records,
    jackknife_error,
    make_records,
    measure,
    metric_name,
    score_interval,
    scorers,
)
from softlearning.method.folds import make_folds

BLEND, DISCRETE, UNIFORM = "blend", "discrete super learner", "uniform weights"


@dataclass(frozen=True)
class Evaluation:
    """Scores with intervals, and paired differences of the blend to every other candidate.

    scores : DataFrame with metric, candidate, score, std_error, low, high; greater is better. differences
    : DataFrame with metric, against, difference (blend minus candidate), std_error, low, high, verdict.
    folds : DataFrame with fold, rows, seconds and the blend's score in each metric. level : the
    confidence of the intervals; groups : how many groups were drawn, None for independent rows.
    """

    scores: pd.DataFrame
    differences: pd.DataFrame
    folds: pd.DataFrame
    level: float
    groups: int | None

    def __repr__(self) -> str:
        rows = int(self.folds["rows"].sum())
        unit = f"{rows} rows" if self.groups is None else f"{rows} rows in {self.groups} groups"
        mine = self.scores[self.scores["candidate"] == self.scores["candidate"].iloc[0]]
        lines = [f"Nested cross-validation: {len(self.folds)} folds, {unit}, {self.level:.0%} intervals"]
        for row in mine.itertuples():
            lines.append(f"  {row.metric}: {row.score:.4f}  [{row.low:.4f}, {row.high:.4f}]")
            lines += [_difference_line(d) for d in self._against_rules(row.metric)]
        return "\n".join(lines)

    def _against_rules(self, metric: str) -> Iterable[Any]:
        chosen = self.differences["metric"].eq(metric) & self.differences["against"].isin((DISCRETE, UNIFORM))
        return self.differences[chosen].itertuples()


def _difference_line(row: Any) -> str:
    return f"    minus {row.against}: {row.difference:+.4f}  [{row.low:+.4f}, {row.high:+.4f}]  {row.verdict}"


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    cv: Any = 5,
    metrics: str | Iterable[str] | Mapping[str, Any] | None = None,
    groups: Any = None,
    *,
    sample_weight: Any = None,
    level: float = 0.95,
    random_state: int = 42,
) -> Evaluation:
    """Nested cross-validation of a model, with standard errors and intervals.

    Parameters
    ----------
    model : SoftClassifier, SoftRegressor or any scikit-learn estimator
        Left as it is; clones are fitted. Specialists are compared with for the first two.
    cv : int, splitter or list of (train, test)
        The outer folds; shuffled, stratified for classes, whole groups where groups are given.
    metrics : scorer names of scikit-learn, or a dict of name -> scorer or function(y_true, y_pred)
        Default: what the model aims at, then accuracy and log loss, or R2 and root mean squared error. Greater is
        better, as for every scorer.
    groups : array (n,)
        Rows of a group are held out together, and the standard errors count groups instead of rows.
    sample_weight : array (n,)
        Reaches the fits and the scores.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from softlearning import SoftClassifier, evaluate
    >>> X, y = load_iris(return_X_y=True)
    >>> result = evaluate(SoftClassifier(library=["logistic", "naive_bayes"]), X, y, metrics="accuracy")
    >>> sorted(result.scores["candidate"])
    ['blend', 'discrete super learner', 'logistic', 'naive_bayes', 'uniform weights']
    """
    given, y = y, np.asarray(y)
    classifier = is_classifier(model)
    aimed = getattr(model, "metric", None)
    if metrics is None and aimed is not None:
        metrics = {metric_name(aimed): aimed} | {name: name for name in METRICS[classifier]}
    classes = np.unique(y) if classifier else None
    codes = np.searchsorted(classes, y) if classes is not None else y
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    splits = make_folds(cv, codes, stratify=classifier, groups=groups, seed=random_state, X=X)
    outer = [run_fold(model, X, given, split, classes, groups, weight) for split in splits]
    records = gather(outer, y, classes, groups, weight)
    chosen = [measure(name, scorer, records) for name, scorer in scorers(metrics, classifier).items()]
    seconds = [o.seconds for o in outer]
    return summarise(chosen, records, level, None if groups is None else len(np.unique(groups)), seconds)


def score_rows(
    y: np.ndarray,
    predictions: Mapping[str, np.ndarray],
    metrics: Iterable[str] | Mapping[str, Any],
    *,
    classes: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
    level: float = 0.95,
    labels: Mapping[str, np.ndarray] | None = None,
) -> Evaluation:
    """Scores, with intervals, of predictions (n, C) or (n, 1) of rows that played no part in any fit.

    The first of `predictions` is compared with the others, pair by pair on the same rows. `classes` are those of the
    columns, None for numbers; `labels` what a candidate answers where that is not its most probable class.
    """
    answers = dict(labels or {})
    records = make_records(y, dict(predictions), classes=classes, groups=groups, weight=sample_weight, labels=answers)
    chosen = [measure(name, scorer, records) for name, scorer in scorers(metrics, classes is not None).items()]
    return summarise(chosen, records, level, None if groups is None else len(np.unique(groups)))


# -- outer folds -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OuterFold:
    """What one outer fold gave: the rows held out and each candidate's predictions of them, (m, C) or (m, 1)."""

    test: np.ndarray
    predictions: dict[str, np.ndarray]
    seconds: float
    labels: dict[str, np.ndarray] = field(default_factory=dict)


def run_fold(
    model: Any, X: Any, y: Any, split: Any, classes: np.ndarray | None, groups: Any, weight: np.ndarray | None
) -> OuterFold:
    """Fit on one outer training part, predict what was held out."""
    start = time.perf_counter()
    train, test = split
    X_train, y_train, X_test = _safe_indexing(X, train), _safe_indexing(y, train), _safe_indexing(X, test)
    soft = hasattr(model, "recombine")
    arguments = {} if weight is None else {"sample_weight": weight[train]}
    if soft and groups is not None:
        arguments["groups"] = np.asarray(groups)[train]
    fitted = clone(model).fit(X_train, y_train, **arguments)
    if soft:
        predictions = candidate_predictions(fitted, X_train, y_train, X_test)
    else:
        predictions = {type(model).__name__: outputs(fitted, X_test)}
    if classes is not None:
        predictions = {name: among(P, fitted.classes_, classes) for name, P in predictions.items()}
    decided = classes is not None and getattr(fitted, "decision_", None) is not None
    labels = {BLEND: fitted.predict(X_test)} if decided else {}
    return OuterFold(test, predictions, time.perf_counter() - start, labels)


def candidate_predictions(fitted: Any, X: Any, y: Any, X_test: Any) -> dict[str, np.ndarray]:
    """The blend, the two plain rules and every specialist; only specialists without weight are still to be fitted."""
    everyone = fitted.recombine(rule="uniform", X=X, y=y)
    names = list(everyone.specialists_)
    P = everyone.specialist_predictions(X_test)
    best = names.index(fitted.leaderboard_.set_index("specialist")["cv_risk"].reindex(names).idxmin())
    return {
        BLEND: outputs(fitted, X_test),
        DISCRETE: P[:, best],
        UNIFORM: P.mean(axis=1),
        **{name: P[:, k] for k, name in enumerate(names)},
    }


def outputs(model: Any, X: Any) -> np.ndarray:
    """Probabilities where there are any, else labels as one-hot rows, or the prediction as a column."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=float)
    prediction = np.asarray(model.predict(X))
    if is_classifier(model):
        return (prediction[:, None] == model.classes_).astype(float)
    return prediction.astype(float)[:, None]


def among(P: np.ndarray, known: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Columns of the classes that a fold knew, among all classes."""
    full = np.zeros((len(P), len(classes)))
    full[:, np.searchsorted(classes, known)] = P
    return full


# -- records: every held-out row as often as it was held out ---------------------------------------------------------


def gather(
    outer: list[OuterFold], y: np.ndarray, classes: np.ndarray | None, groups: Any, weight: np.ndarray | None
) -> Records:
    rows = np.concatenate([o.test for o in outer])
    common = [name for name in outer[0].predictions if all(name in o.predictions for o in outer)]
    return make_records(
        y[rows],
        {name: np.concatenate([o.predictions[name] for o in outer]) for name in common},
        classes=classes,
        weight=None if weight is None else weight[rows],
        fold=np.repeat(np.arange(len(outer)), [len(o.test) for o in outer]),
        groups=rows if groups is None else np.asarray(groups)[rows],
        labels={name: np.concatenate([o.labels[name] for o in outer]) for name in common if name in outer[0].labels},
    )


def summarise(
    measured: list[Measured], records: Records, level: float, groups: int | None, seconds: list[float] | None = None
) -> Evaluation:
    """The tables of an evaluation."""
    scores = [score_line(m, candidate, level) for m in measured for candidate in m.score]
    first = next(iter(records.predictions))
    differences = [difference_line(m, first, c, level) for m in measured for c in m.score if c != first]
    rows = np.bincount(records.fold)
    folds = {"fold": range(len(rows)), "rows": rows, "seconds": seconds or [0.0] * len(rows)}
    columns = ["metric", "against", "difference", "std_error", "low", "high", "verdict"]
    return Evaluation(
        scores=pd.DataFrame(scores),
        differences=pd.DataFrame(differences, columns=columns),
        folds=pd.DataFrame({**folds, **{m.name: m.by_fold for m in measured}}),
        level=level,
        groups=groups,
    )


def score_line(m: Measured, candidate: str, level: float) -> dict[str, Any]:
    score, left_out = m.score[candidate], m.left_out[candidate]
    error = jackknife_error(left_out)
    low, high = score_interval(m.name, score, error, len(left_out), level)
    return {"metric": m.name, "candidate": candidate, "score": score, "std_error": error, "low": low, "high": high}


def difference_line(m: Measured, first: str, other: str, level: float) -> dict[str, Any]:
    """Paired on the same held-out rows, so what both find hard cancels."""
    error = jackknife_error(m.left_out[first] - m.left_out[other])
    reach = float(stats.t.ppf((1 + level) / 2, max(len(m.left_out[first]) - 1, 1))) * error
    difference = m.score[first] - m.score[other]
    low, high = difference - reach, difference + reach
    verdict = "better" if low > 0 else "worse" if high < 0 else "no clear difference"
    return {
        "metric": m.name,
        "against": other,
        "difference": difference,
        "std_error": error,
        "low": low,
        "high": high,
        "verdict": verdict,
    }
