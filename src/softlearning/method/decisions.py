"""From probabilities to labels: a threshold, the costs of errors, other class shares than in training.

Every decision takes the class with the largest score, where the scores are the probabilities times a matrix. Of two
classes, a threshold t on the second is the matrix diag(t, 1 - t); costs[i, j] of answering j where i is true make the
matrix -costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

CUTS = 100  # thresholds that are tried of a metric that is no function of counts

Optimum = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Decision:
    """Scores of the labels are probabilities @ matrix (C, C); the largest wins, of equals the first.

    threshold : of two classes, the probability of the second from which it is answered. words : how it was found.
    """

    matrix: np.ndarray
    threshold: float | None
    words: str

    def places(self, P: np.ndarray) -> np.ndarray:
        """(n,) place of each label among the classes, of probabilities (n, C)."""
        if self.threshold is not None:
            return (P[:, 1] >= self.threshold).astype(int)
        return (P @ self.matrix).argmax(axis=1)


def decision_rule(
    threshold: Any, P: np.ndarray, true: np.ndarray, classes: int, best: Optimum | None
) -> Decision | None:
    """The decision that a user asks for; None is the most probable class.

    Parameters
    ----------
    threshold : None, "auto", a number for the second of two classes, or costs (C, C) of answering j where i is true.
    P, true : probabilities (n, C) and true places (n,) of held-out rows, which "auto" learns from.
    best : (probabilities, true places) -> the threshold of two classes that "auto" takes.
    """
    if threshold is None:
        return None
    if isinstance(threshold, str):
        if threshold != "auto":
            raise ValueError(f"threshold is {threshold!r}; give 'auto', a number, a matrix of costs, or None")
        if classes != 2 or best is None:
            return None
        return by_threshold(best(P, true), "the held-out optimum")
    if np.ndim(threshold) == 0:
        return by_threshold(checked_threshold(threshold, classes), "as given")
    costs = checked_costs(threshold, classes)
    return Decision(-costs, None, "the least expected cost")


def by_threshold(threshold: float, words: str) -> Decision:
    return Decision(np.diag([threshold, 1 - threshold]), float(threshold), words)


def checked_threshold(threshold: Any, classes: int) -> float:
    """A number between 0 and 1 for two classes, or an error."""
    if classes != 2:
        raise ValueError(f"a threshold tells two classes apart, and there are {classes}: give a matrix of costs")
    if not 0 <= float(threshold) <= 1:
        raise ValueError(f"threshold is {threshold!r}; a probability lies between 0 and 1")
    return float(threshold)


def checked_costs(costs: Any, classes: int) -> np.ndarray:
    """A finite matrix (C, C), or an error."""
    matrix = np.asarray(costs, dtype=float)
    if matrix.shape != (classes, classes) or not np.isfinite(matrix).all():
        raise ValueError(
            f"a matrix of costs has a row for each true class and a column for each answer: ({classes}, {classes}) "
            f"finite numbers, got shape {matrix.shape}"
        )
    return matrix


def best_threshold(p: np.ndarray, value: Callable[[np.ndarray], float], cuts: np.ndarray | None = None) -> float:
    """The threshold on the probabilities p (n,) of the second class whose labels are best; of equals the smallest.

    Tried are `CUTS` thresholds evenly between the smallest and the largest probability, as scikit-learn's
    TunedThresholdClassifierCV does.
    """
    cuts = np.linspace(p.min(), p.max(), CUTS) if cuts is None else cuts
    scores = [value((p >= cut).astype(int)) for cut in cuts]
    return float(cuts[int(np.nanargmax(scores))])


def best_of_counts(p: np.ndarray, true: np.ndarray, weight: np.ndarray | None, value: Callable) -> tuple[float, float]:
    """The same over every cut at once, for a value of the counts (tp, fp, fn, tn): the threshold and its value.

    The threshold lies midway between the last probability that is answered yes and the next below it.
    """
    cuts, counts, total = sweep(p, true, weight)
    scores = value(counts / total)
    best = int(np.argmax(scores))
    below = cuts[best + 1] if best + 1 < len(cuts) else 0.0
    return float((cuts[best] + below) / 2), float(scores[best])


def sweep(p: np.ndarray, true: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, float]:
    """The different probabilities (m,), largest first; the weighted counts (tp, fp, fn, tn) (m, 4) when yes is answered
    from each on; and the weight of all rows.
    """
    order = np.argsort(-p, kind="stable")
    w = np.ones(len(p)) if weight is None else weight
    tp, fp = np.cumsum((w * (true == 1))[order]), np.cumsum((w * (true != 1))[order])
    counts = np.column_stack([tp, fp, tp[-1] - tp, fp[-1] - fp])
    last = np.append(np.diff(p[order]) != 0, True)  # of equal probabilities all or none
    return p[order][last], counts[last], counts[0].sum()


def ranking(p: np.ndarray, true: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """Area under the ROC curve, and average precision; NaN where one class has no rows."""
    tp, fp = sweep(p, true, weight)[1][:, :2].T
    if not (tp[-1] and fp[-1]):
        return float("nan"), float("nan")
    area = np.trapezoid(np.append(0, tp), np.append(0, fp)) / (tp[-1] * fp[-1])
    return float(area), float(np.sum(np.diff(np.append(0, tp)) / tp[-1] * tp / (tp + fp)))


# -- other class shares -----------------------------------------------------------------------------------------------


def shares_of(prior: Any, classes: np.ndarray) -> np.ndarray:
    """(C,) class shares that sum to 1, from a dict by label or numbers in the order of the classes."""
    if isinstance(prior, Mapping):
        missing = [label for label in classes.tolist() if label not in prior]
        if missing or len(prior) != len(classes):
            raise ValueError(f"prior needs a share for each class: {', '.join(map(repr, classes.tolist()))}")
        prior = [prior[label] for label in classes.tolist()]
    shares = np.asarray(prior, dtype=float)
    if shares.shape != (len(classes),) or not np.isfinite(shares).all() or shares.min() < 0 or not shares.any():
        raise ValueError(f"prior is {prior!r}; give {len(classes)} shares, none negative and not all zero")
    return shares / shares.sum()


def with_prior(P: np.ndarray, prior: np.ndarray, learnt: np.ndarray) -> np.ndarray:
    """Probabilities where the class shares are `prior` instead of `learnt`: p_c prior_c / learnt_c, normalised.

    Exact where the shares alone differ and the rows of each class are as before (prior shift).
    """
    shifted = P * np.divide(prior, learnt, out=np.zeros_like(prior), where=learnt > 0)
    total = shifted.sum(axis=1, keepdims=True)
    return np.where(total > 0, shifted / np.where(total > 0, total, 1.0), prior)
