"""How good is the whole procedure on new rows: nested cross-validation, with intervals that hold.

`evaluate` fits the model anew in every outer fold (its own cross-fitting, weights and refit included) and
scores it on the rows held out, next to each specialist, the discrete Super Learner and uniform weights on
the same rows.

What an interval is about: the score, on new rows, of models fitted as those of the outer folds were, that
is on (V - 1) / V of the rows. The model fitted on all rows is usually a little better. The standard error
is that of the held-out rows (jackknife over rows, or over groups), so it does not contain the chance of
drawing another training set: an interval for the *expected* score over training sets would have to be
wider.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.metrics import get_scorer, make_scorer
from sklearn.utils import _safe_indexing

from softlearning.folds import make_folds

BLEND, DISCRETE, UNIFORM = "blend", "discrete super learner", "uniform weights"
METRICS = {True: ("accuracy", "neg_log_loss"), False: ("r2", "neg_root_mean_squared_error")}  # by is_classifier
BLOCKS = 100  # parts that a metric without closed form is jackknifed over
DEPENDENCE = (
    1.1  # models of the folds share training rows: plain standard errors are up to a fifth too small (measured)
)


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
        Default: accuracy and log loss, or R2 and root mean squared error. Greater is better, as for every
        scorer.
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
    y = np.asarray(y)
    classifier = is_classifier(model)
    classes = np.unique(y) if classifier else None
    codes = np.searchsorted(classes, y) if classes is not None else y
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    splits = make_folds(cv, codes, stratify=classifier, groups=groups, seed=random_state, X=X)
    outer = [run_fold(model, X, y, split, classes, groups, weight) for split in splits]
    records = gather(outer, y, classes, groups, weight)
    chosen = [measure(name, scorer, records) for name, scorer in scorers(metrics, classifier).items()]
    return summarise(chosen, records, outer, level, None if groups is None else len(np.unique(groups)))


# -- outer folds -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OuterFold:
    """What one outer fold gave: the rows held out and each candidate's predictions of them, (m, C) or (m,
    1).
    """

    test: np.ndarray
    predictions: dict[str, np.ndarray]
    seconds: float


def run_fold(
    model: Any, X: Any, y: np.ndarray, split: Any, classes: np.ndarray | None, groups: Any, weight: np.ndarray | None
) -> OuterFold:
    """Fit on one outer training part, predict what was held out."""
    start = time.perf_counter()
    train, test = split
    X_train, X_test = _safe_indexing(X, train), _safe_indexing(X, test)
    soft = hasattr(model, "recombine")
    arguments = {} if weight is None else {"sample_weight": weight[train]}
    if soft and groups is not None:
        arguments["groups"] = np.asarray(groups)[train]
    fitted = clone(model).fit(X_train, y[train], **arguments)
    if soft:
        predictions = candidate_predictions(fitted, X_train, y[train], X_test)
    else:
        predictions = {type(model).__name__: outputs(fitted, X_test)}
    if classes is not None:
        predictions = {name: among(P, fitted.classes_, classes) for name, P in predictions.items()}
    return OuterFold(test, predictions, time.perf_counter() - start)


def candidate_predictions(fitted: Any, X: Any, y: np.ndarray, X_test: Any) -> dict[str, np.ndarray]:
    """The blend, the two plain rules and every specialist; only specialists without weight are still to
    be fitted.
    """
    everyone = fitted.recombine(rule="uniform", X=X, y=y)
    names = list(everyone.specialists_)
    P = everyone.specialist_predictions(X_test)
    alpha = fitted.weights_.reindex(names).fillna(0.0).to_numpy()
    board = fitted.leaderboard_.set_index("specialist")["cv_risk"]
    best = names.index(board.reindex(names).idxmin())
    return {
        BLEND: np.einsum("nkc,k->nc", P, alpha),
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


@dataclass(frozen=True)
class Records:
    """Held-out rows one after the other: target, fold, block (row or group), weight, predictions by
    candidate.
    """

    y: np.ndarray
    fold: np.ndarray
    block: np.ndarray
    weight: np.ndarray
    weighted: bool
    classes: np.ndarray | None
    predictions: dict[str, np.ndarray]


def gather(
    outer: list[OuterFold], y: np.ndarray, classes: np.ndarray | None, groups: Any, weight: np.ndarray | None
) -> Records:
    rows = np.concatenate([o.test for o in outer])
    common = [name for name in outer[0].predictions if all(name in o.predictions for o in outer)]
    block = np.unique(rows if groups is None else np.asarray(groups)[rows], return_inverse=True)[1]
    return Records(
        y=y[rows],
        fold=np.repeat(np.arange(len(outer)), [len(o.test) for o in outer]),
        block=block,
        weight=np.ones(len(rows)) if weight is None else weight[rows],
        weighted=weight is not None,
        classes=classes,
        predictions={name: np.concatenate([o.predictions[name] for o in outer]) for name in common},
    )


# -- metrics and their jackknife -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """A metric of every candidate: the score, the scores with each block left out, and each fold's score."""

    name: str
    score: dict[str, float]
    left_out: dict[str, np.ndarray]
    by_fold: np.ndarray


def scorers(metrics: Any, classifier: bool) -> dict[str, Any]:
    """Metric name -> scikit-learn scorer."""
    metrics = METRICS[classifier] if metrics is None else metrics
    metrics = (metrics,) if isinstance(metrics, str) else metrics
    if not isinstance(metrics, Mapping):
        return {name: get_scorer(name) for name in metrics}
    ready = lambda scorer: scorer if hasattr(scorer, "_score_func") else make_scorer(scorer)
    return {name: get_scorer(s) if isinstance(s, str) else ready(s) for name, s in metrics.items()}


def measure(name: str, scorer: Any, records: Records) -> Measured:
    """Score and leave-one-block-out scores of every candidate."""
    statistic = MeanMetric(MEANS[name]) if name in MEANS else ScorerMetric(scorer, ranks=name.startswith(RANKS))
    first = next(iter(records.predictions))
    found = {candidate: statistic(records, candidate) for candidate in records.predictions}
    return Measured(
        name,
        {candidate: score for candidate, (score, _) in found.items()},
        {candidate: left_out for candidate, (_, left_out) in found.items()},
        statistic.by_fold(records, first),
    )


Parts = Callable[[np.ndarray, np.ndarray, np.ndarray | None], np.ndarray]
Combine = Callable[[np.ndarray], np.ndarray]


def _true_column(y: np.ndarray, P: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    assert classes is not None
    return P[np.arange(len(y)), np.searchsorted(classes, y)]


def _one_hot(y: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    assert classes is not None
    return (y[:, None] == classes).astype(float)


def _right(y: np.ndarray, P: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    assert classes is not None
    return (classes[P.argmax(axis=1)] == y)[:, None].astype(float)


def _log_probability(y: np.ndarray, P: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    eps = np.finfo(P.dtype).eps  # as scikit-learn cuts
    return np.log(np.clip(_true_column(y, P, classes), eps, 1.0))[:, None]


def _brier(y: np.ndarray, P: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    squared = ((P - _one_hot(y, classes)) ** 2).sum(axis=1, keepdims=True)
    return -squared / (2 if P.shape[1] == 2 else 1)  # scikit-learn halves it for two classes


def _squared(y: np.ndarray, P: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    return (y[:, None] - P) ** 2


def _absolute(y: np.ndarray, P: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    return -np.abs(y[:, None] - P)


def _squared_and_moments(y: np.ndarray, P: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    centred = y - y.mean()  # keeps digits
    return np.column_stack([(y - P[:, 0]) ** 2, centred**2, centred])


# metric -> what is averaged over rows, (n, q), and what is made of the averages (..., q)
MEANS: dict[str, tuple[Parts, Combine]] = {
    "accuracy": (_right, lambda m: m[..., 0]),
    "neg_log_loss": (_log_probability, lambda m: m[..., 0]),
    "neg_brier_score": (_brier, lambda m: m[..., 0]),
    "neg_mean_squared_error": (_squared, lambda m: -m[..., 0]),
    "neg_root_mean_squared_error": (_squared, lambda m: -np.sqrt(m[..., 0])),
    "neg_mean_absolute_error": (_absolute, lambda m: m[..., 0]),
    "r2": (_squared_and_moments, lambda m: 1 - m[..., 0] / (m[..., 1] - m[..., 2] ** 2)),
}
RANKS = ("roc_auc", "average_precision")  # scores of different models cannot be ranked together: averaged over folds


class MeanMetric:
    """A function of means over rows: leaving a block out is a subtraction."""

    def __init__(self, row: tuple[Parts, Combine]):
        self.parts, self.combine = row

    def __call__(self, records: Records, candidate: str) -> tuple[float, np.ndarray]:
        sums, weight = self._sums(records, candidate, records.block)
        total, mass = sums.sum(axis=0), weight.sum()
        left_out = self.combine((total - sums) / (mass - weight)[:, None])
        return float(self.combine(total / mass)), left_out

    def by_fold(self, records: Records, candidate: str) -> np.ndarray:
        sums, weight = self._sums(records, candidate, records.fold)
        return self.combine(sums / weight[:, None])

    def _sums(self, records: Records, candidate: str, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = self.parts(records.y, records.predictions[candidate], records.classes) * records.weight[:, None]
        sums = np.column_stack([np.bincount(label, weights=column) for column in parts.T])
        return sums, np.bincount(label, weights=records.weight)


class ScorerMetric:
    """Any scorer: called once for each of at most `BLOCKS` parts left out."""

    def __init__(self, scorer: Any, ranks: bool):
        self.scorer, self.ranks = scorer, ranks

    def __call__(self, records: Records, candidate: str) -> tuple[float, np.ndarray]:
        block = few_blocks(records, BLOCKS)
        parts = records.fold if self.ranks else np.zeros(len(block), dtype=int)
        whole = [self._plain(records, candidate, parts == part) for part in range(parts.max() + 1)]
        left_out = [self._without(records, candidate, parts, block == b, whole) for b in range(block.max() + 1)]
        return self._average(records, parts, np.zeros(len(block), dtype=bool), whole), np.array(left_out)

    def _without(
        self, records: Records, candidate: str, parts: np.ndarray, gone: np.ndarray, whole: list[float]
    ) -> float:
        """The score without some records: only the parts that held them are scored again."""
        touched = set(parts[gone].tolist())
        scores = [
            self._plain(records, candidate, (parts == part) & ~gone) if part in touched else score
            for part, score in enumerate(whole)
        ]
        return self._average(records, parts, gone, scores)

    def _average(self, records: Records, parts: np.ndarray, gone: np.ndarray, scores: list[float]) -> float:
        return float(np.average(scores, weights=np.bincount(parts, weights=records.weight * ~gone)))

    def by_fold(self, records: Records, candidate: str) -> np.ndarray:
        folds = np.unique(records.fold)
        return np.array([self._plain(records, candidate, records.fold == fold) for fold in folds])

    def _plain(self, records: Records, candidate: str, keep: np.ndarray) -> float:
        rows = np.flatnonzero(keep)
        arguments = {"sample_weight": records.weight[rows]} if records.weighted else {}
        return float(self.scorer(recorded(records, candidate), rows[:, None], records.y[rows], **arguments))


def few_blocks(records: Records, most: int) -> np.ndarray:
    """Blocks thrown together at random, within their folds, until there are about that many; numbered
    from 0.
    """
    number = records.block.max() + 1
    if number <= most:
        return records.block
    fold_of_block = np.zeros(number, dtype=int)
    fold_of_block[records.block] = records.fold
    shuffled = np.random.default_rng(0).permutation(number)
    order = shuffled[np.argsort(fold_of_block[shuffled], kind="stable")]
    merged = np.empty(number, dtype=int)
    merged[order] = np.arange(number) * most // number  # neighbours in this order share a fold
    return merged[records.block]


class RecordedClassifier(ClassifierMixin, BaseEstimator):
    """Stands in for a fitted classifier before a scorer: its table is row numbers, its answers are on
    record.
    """

    def __init__(self, probability: np.ndarray, classes: np.ndarray):
        self.probability, self.classes = probability, classes
        self.classes_ = classes

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        return self.probability[rows[:, 0]]

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]


class RecordedRegressor(RegressorMixin, BaseEstimator):
    """The same for a regressor."""

    def __init__(self, prediction: np.ndarray):
        self.prediction = prediction
        self.is_fitted_ = True

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return self.prediction[rows[:, 0], 0]


def recorded(records: Records, candidate: str) -> Any:
    P = records.predictions[candidate]
    return RecordedRegressor(P) if records.classes is None else RecordedClassifier(P, records.classes)


# -- standard errors and intervals -----------------------------------------------------------------------------------


def jackknife_error(left_out: np.ndarray) -> float:
    """sqrt((B - 1) / B sum_b (s_b - mean)^2) over the scores with one block left out, (B,), times
    `DEPENDENCE`.
    """
    B = len(left_out)
    spread = np.sum((left_out - left_out.mean()) ** 2)
    return DEPENDENCE * float(np.sqrt((B - 1) / B * spread)) if B > 1 else float("nan")


def score_interval(name: str, score: float, error: float, blocks: int, level: float) -> tuple[float, float]:
    """Interval on the scale where the metric's errors are most nearly normal, with Student's t for the
    blocks.

    Shares (accuracy, areas): Wilson's interval for the number of rows that would have this standard
    error. Losses (names with neg_) and R2: on the logarithm of the loss, or of 1 - R2. Others: as they
    are.
    """
    t = float(stats.t.ppf((1 + level) / 2, max(blocks - 1, 1)))
    if name.startswith(SHARES) and 0 <= score <= 1:
        return _wilson(score, error, blocks, t)
    if name.startswith("neg_") and score < 0:
        return score * np.exp(t * error / -score), score * np.exp(-t * error / -score)
    if name.startswith(BELOW_ONE) and score < 1:
        factor = np.exp(t * error / (1 - score))
        return 1 - (1 - score) * factor, 1 - (1 - score) / factor
    return score - t * error, score + t * error


SHARES = ("accuracy", "balanced_accuracy", "top_k", "f1", "precision", "recall", "jaccard", *RANKS)
BELOW_ONE = ("r2", "explained_variance", "d2_")


def _wilson(score: float, error: float, blocks: int, t: float) -> tuple[float, float]:
    n = score * (1 - score) / error**2 if error > 0 else blocks
    centre = (score + t**2 / (2 * n)) / (1 + t**2 / n)
    half = t / (1 + t**2 / n) * np.sqrt(score * (1 - score) / n + t**2 / (4 * n**2))
    return centre - half, centre + half


def summarise(
    measured: list[Measured], records: Records, outer: list[OuterFold], level: float, groups: int | None
) -> Evaluation:
    """The tables of an evaluation."""
    scores = [score_line(m, candidate, level) for m in measured for candidate in m.score]
    first = next(iter(records.predictions))
    differences = [difference_line(m, first, c, level) for m in measured for c in m.score if c != first]
    folds = {"fold": range(len(outer)), "rows": [len(o.test) for o in outer], "seconds": [o.seconds for o in outer]}
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
