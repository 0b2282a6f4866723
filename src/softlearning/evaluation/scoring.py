"""Scores of recorded predictions, what they are without some rows, and intervals from that.

Any scikit-learn scorer serves: a stand-in answers it from the record. Metrics that are functions of means over rows
have closed forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names, make_scorer, mean_pinball_loss

from softlearning.data.messages import nearest
from softlearning.uncertainty.errors import wilson_interval

ALIASES = {
    "auc": "roc_auc", "log_loss": "neg_log_loss", "brier": "neg_brier_score", "mse": "neg_mean_squared_error",
    "rmse": "neg_root_mean_squared_error", "mae": "neg_mean_absolute_error", "mcc": "matthews_corrcoef",
    "mape": "neg_mean_absolute_percentage_error", "rmsle": "neg_root_mean_squared_log_error",
    "median_absolute_error": "neg_median_absolute_error", "ordinal": "neg_ranked_probability_score",
}  # fmt: skip
USUAL = ("accuracy", "f1", "r2", *ALIASES)  # what is offered first for a name that is none
SPOKEN = {
    "neg_log_loss": "log loss", "neg_root_mean_squared_error": "RMSE", "neg_mean_absolute_error": "MAE", "r2": "R²",
    "roc_auc": "AUC",
}  # fmt: skip
METRICS = {True: ("accuracy", "neg_log_loss"), False: ("r2", "neg_root_mean_squared_error")}  # by is_classifier
RANKED = "neg_ranked_probability_score"  # of ordered classes; ours, scikit-learn has none
BLOCKS = 100  # parts that a metric without closed form is jackknifed over
# Models of the folds share training rows: plain standard errors are up to a fifth too small (measured).
DEPENDENCE = 1.1


@dataclass(frozen=True)
class Records:
    """Held-out rows one after the other: target, fold, block (row or group), weight, predictions by candidate."""

    y: np.ndarray
    fold: np.ndarray
    block: np.ndarray
    weight: np.ndarray
    weighted: bool
    classes: np.ndarray | None
    predictions: dict[str, np.ndarray]
    labels: dict[str, np.ndarray] | None = None  # of candidates whose answer is not the most probable class

    def answers(self, candidate: str) -> np.ndarray:
        """(n,) the label that a candidate answers."""
        assert self.classes is not None
        given = (self.labels or {}).get(candidate)
        return self.classes[self.predictions[candidate].argmax(axis=1)] if given is None else given


def make_records(
    y: np.ndarray,
    predictions: dict[str, np.ndarray],
    *,
    classes: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    fold: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    labels: dict[str, np.ndarray] | None = None,
) -> Records:
    """Rows as the scorers read them: of one fold, and each row a block, unless folds or groups are given."""
    n = len(y)
    return Records(
        y=y,
        fold=np.zeros(n, dtype=int) if fold is None else np.unique(fold, return_inverse=True)[1],
        block=np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1],
        weight=np.ones(n) if weight is None else weight,
        weighted=weight is not None,
        classes=classes,
        predictions=predictions,
        labels=labels,
    )


@dataclass(frozen=True)
class Measured:
    """A metric of every candidate: the score, the scores with each block left out, and each fold's score."""

    name: str
    score: dict[str, float]
    left_out: dict[str, np.ndarray]
    by_fold: np.ndarray


def scorers(metrics: Any, classifier: bool) -> dict[str, Any]:
    """Metric name -> scorer: any name of scikit-learn, a scorer, or a function(y_true, y_pred).

    Of two classes, named metrics take the second of the sorted labels as the positive one, whatever the labels are;
    scorers and functions that are given see the labels as they are.
    """
    metrics = METRICS[classifier] if metrics is None else metrics
    metrics = (metrics,) if isinstance(metrics, str) else metrics
    named = metrics if isinstance(metrics, Mapping) else {metric_name(name): name for name in metrics}
    return {name: _scorer(metric) for name, metric in named.items()}


def metric_name(metric: Any) -> str:
    """A name for a metric: scikit-learn's own, or that of the function behind a scorer."""
    if isinstance(metric, str):
        return ALIASES.get(metric, metric)
    function = getattr(metric, "_score_func", metric)
    function = getattr(function, "func", function)
    return getattr(function, "__name__", type(metric).__name__)


def spoken(name: str) -> tuple[str, int]:
    """What people call a metric, and the sign they read it with: an error is positive."""
    if name.startswith("neg_"):
        return SPOKEN.get(name, name.removeprefix("neg_").replace("_", " ")), -1
    return SPOKEN.get(name, name), -1 if name.startswith("pinball:") else 1


def as_read(line: Mapping[str, Any]) -> dict[str, Any]:
    """Name, value, low and high of a line of scores as people read them: an error is positive."""
    name, sign = spoken(str(line["metric"]))
    low, high = sorted((sign * float(line["low"]), sign * float(line["high"])))
    return {"name": name, "value": sign * float(line["score"]), "low": low, "high": high}


def _scorer(metric: Any) -> Any:
    if isinstance(metric, str):
        name = metric_name(metric)
        if name.startswith("pinball:"):
            level = float(name.removeprefix("pinball:"))
            return make_scorer(partial(mean_pinball_loss, alpha=level), greater_is_better=False)
        if name == RANKED:
            return RankedScorer()
        if name not in get_scorer_names():
            raise ValueError(f"no metric is called {metric!r}; {nearest(name, (*USUAL, *get_scorer_names()))}")
        return NamedScorer(get_scorer(name))
    return metric if isinstance(metric, RankedScorer) or hasattr(metric, "_score_func") else make_scorer(metric)


@dataclass(frozen=True)
class NamedScorer:
    """A scorer of scikit-learn that sees classes as their places among the sorted labels: 1 is the second."""

    scorer: Any

    def __call__(self, model: Any, rows: np.ndarray, y: np.ndarray, **arguments: Any) -> float:
        if isinstance(model, RecordedClassifier):
            y = np.searchsorted(model.classes_, y)
            places = np.searchsorted(model.classes_, model.labels)
            model = RecordedClassifier(model.probability, np.arange(len(model.classes_)), places)
        return self.scorer(model, rows, y, **arguments)


@dataclass(frozen=True)
class RankedScorer:
    """Minus the ranked probability score of classes in an order of their own: `order` has the labels, lowest first."""

    order: tuple[Any, ...] | None = None

    def __call__(self, model: Any, rows: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> float:
        return float(np.average(self.parts(y, model.predict_proba(rows), model.classes_), weights=sample_weight))

    def parts(self, y: np.ndarray, P: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
        """(n,) for each row the mean squared error of its cumulative probabilities, negative."""
        assert classes is not None
        places = ordered_places(self.order, classes)
        gaps = np.cumsum(P[:, places] - _one_hot(y, classes[places]), axis=1)[:, :-1]
        return -(gaps**2).mean(axis=1)


def ordered_places(order: tuple[Any, ...] | None, classes: np.ndarray) -> np.ndarray:
    """(C,) places of the classes from the lowest on, as they are unless an order is told; a label beyond it is last."""
    rank = {label: r for r, label in enumerate(order or classes.tolist())}
    return np.argsort([rank.get(label, len(rank)) for label in classes.tolist()], kind="stable")


def measure(name: str, scorer: Any, records: Records) -> Measured:
    """Score and leave-one-block-out scores of every candidate."""
    statistic = statistic_of(name, scorer, records)
    first = next(iter(records.predictions))
    found = {candidate: statistic(records, candidate) for candidate in records.predictions}
    return Measured(
        name,
        {candidate: score for candidate, (score, _) in found.items()},
        {candidate: left_out for candidate, (_, left_out) in found.items()},
        statistic.by_fold(records, first),
    )


def statistic_of(name: str, scorer: Any, records: Records) -> MeanMetric | ScorerMetric:
    """A closed form where there is one."""
    if isinstance(scorer, RankedScorer):
        return MeanMetric((lambda y, P, classes: scorer.parts(y, P, classes)[:, None], lambda m: m[..., 0]))
    if name in MEANS:
        return MeanMetric(MEANS[name])
    if name in COUNTS and records.classes is not None and len(records.classes) == 2:
        return MeanMetric((_counts, COUNTS[name]))
    return ScorerMetric(scorer, ranks=name.startswith(RANKS))


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
    return (classes[P.argmax(axis=1)] == y)[:, None].astype(float)  # with P one-hot where labels were decided


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
# metric of two classes -> what is made of the shares of true and false answers (tp, fp, fn, tn), (..., 4)
COUNTS: dict[str, Combine] = {
    "f1": lambda m: _ratio(2 * m[..., 0], 2 * m[..., 0] + m[..., 1] + m[..., 2]),
    "jaccard": lambda m: _ratio(m[..., 0], m[..., 0] + m[..., 1] + m[..., 2]),
    "balanced_accuracy": lambda m: (_ratio(m[..., 0], m[..., 0] + m[..., 2])
                                    + _ratio(m[..., 3], m[..., 3] + m[..., 1])) / 2,
    "matthews_corrcoef": lambda m: _ratio(
        m[..., 0] * m[..., 3] - m[..., 1] * m[..., 2],
        np.sqrt((m[..., 0] + m[..., 1]) * (m[..., 0] + m[..., 2]) * (m[..., 3] + m[..., 1]) * (m[..., 3] + m[..., 2])),
    ),
}  # fmt: skip


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros_like(np.asarray(a, dtype=float)), where=b > 0)


def _counts(y: np.ndarray, P: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    assert classes is not None
    true, said = y == classes[1], P.argmax(axis=1) == 1
    return np.column_stack([true & said, ~true & said, true & ~said, ~true & ~said]).astype(float)


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
        P = records.predictions[candidate]
        if self.parts in (_right, _counts) and candidate in (records.labels or {}):
            P = _one_hot(records.answers(candidate), records.classes)
        parts = self.parts(records.y, P, records.classes) * records.weight[:, None]
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
        weight, defined = np.bincount(parts, weights=records.weight * ~gone), np.isfinite(scores)
        return float(np.average(np.array(scores)[defined], weights=weight[defined])) if defined.any() else float("nan")

    def by_fold(self, records: Records, candidate: str) -> np.ndarray:
        folds = np.unique(records.fold)
        return np.array([self._plain(records, candidate, records.fold == fold) for fold in folds])

    def _plain(self, records: Records, candidate: str, keep: np.ndarray) -> float:
        rows = np.flatnonzero(keep)
        if self.ranks and records.classes is not None and len(np.unique(records.y[rows])) < len(records.classes):
            return float("nan")  # a part without a class has nothing to rank
        arguments = {"sample_weight": records.weight[rows]} if records.weighted else {}
        return float(self.scorer(recorded(records, candidate), rows[:, None], records.y[rows], **arguments))


def few_blocks(records: Records, most: int) -> np.ndarray:
    """Blocks thrown together at random, within their folds, until there are about that many; numbered from 0."""
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
    """Stands in for a fitted classifier before a scorer: its table is row numbers, its answers are on record."""

    def __init__(self, probability: np.ndarray, classes: np.ndarray, labels: np.ndarray):
        self.probability, self.classes, self.labels = probability, classes, labels
        self.classes_ = classes

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        return self.probability[rows[:, 0]]

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return self.labels[rows[:, 0]]


class RecordedRegressor(RegressorMixin, BaseEstimator):
    """The same for a regressor."""

    def __init__(self, prediction: np.ndarray):
        self.prediction = prediction
        self.is_fitted_ = True

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return self.prediction[rows[:, 0], 0]


def recorded(records: Records, candidate: str) -> Any:
    P = records.predictions[candidate]
    if records.classes is None:
        return RecordedRegressor(P)
    return RecordedClassifier(P, records.classes, records.answers(candidate))


# -- standard errors and intervals -----------------------------------------------------------------------------------


def jackknife_error(left_out: np.ndarray) -> float:
    """sqrt((B - 1) / B sum_b (s_b - mean)^2) over the scores with one block left out, (B,), times `DEPENDENCE`.

    A block without which there is no score tells nothing of how far the score may move.
    """
    left_out = left_out[np.isfinite(left_out)]
    B = len(left_out)
    spread = np.sum((left_out - left_out.mean()) ** 2)
    return DEPENDENCE * float(np.sqrt((B - 1) / B * spread)) if B > 1 else float("nan")


def score_interval(name: str, score: float, error: float, blocks: int, level: float) -> tuple[float, float]:
    """Interval on the scale where the metric's errors are most nearly normal, with Student's t for the blocks.

    Shares (accuracy, areas): Wilson's interval for the number of rows that would have this standard error. Losses
    (names with neg_) and R2: on the logarithm of the loss, or of 1 - R2. Others: as they are.
    """
    t = float(stats.t.ppf((1 + level) / 2, max(blocks - 1, 1)))
    if name.startswith(SHARES) and 0 <= score <= 1:
        return wilson_interval(score, error, blocks, t)
    if name.startswith("neg_") and score < 0:
        return score * np.exp(t * error / -score), score * np.exp(-t * error / -score)
    if name.startswith(BELOW_ONE) and score < 1:
        factor = np.exp(t * error / (1 - score))
        return 1 - (1 - score) * factor, 1 - (1 - score) / factor
    return score - t * error, score + t * error


SHARES = ("accuracy", "balanced_accuracy", "top_k", "f1", "precision", "recall", "jaccard", *RANKS)
BELOW_ONE = ("r2", "explained_variance", "d2_")
