"""For causal users: out-of-fold predictions on given folds, and propensities that stay away from 0 and 1.

DoubleML takes nuisance predictions by `external_predictions`; EconML takes estimators and fits them itself. Both want
that no row is predicted by a model that saw it: `cross_predictions` fits a clone on the other folds, with its own
cross-fitting inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.model_selection import cross_val_predict
from sklearn.utils.validation import check_is_fitted

CLIP = 0.01  # propensities stay at least so far from 0 and 1


def cross_predictions(
    model: Any, X: Any, y: Any, folds: Sequence[tuple[np.ndarray, np.ndarray]], *, clip: float = CLIP
) -> np.ndarray:
    """(n,) predictions of each row by a model that saw none of its fold; of two classes, the probability of the second.

    Parameters
    ----------
    model : left as it is; clones are fitted.
    folds : (train, test) rows of each fold; every row is in one test part, as DoubleML's `smpls[r]` has them.
    clip : probabilities stay in [clip, 1 - clip].
    """
    if not is_classifier(model):
        return cross_val_predict(model, X, np.asarray(y), cv=folds)
    P = cross_val_predict(model, X, np.asarray(y), cv=folds, method="predict_proba")
    if P.shape[1] != 2:
        raise ValueError(f"a propensity is of two classes, and there are {P.shape[1]}")
    return np.clip(P[:, 1], clip, 1 - clip)


def external_predictions(
    outcome: Any, treatment: Any, X: Any, y: Any, d: Any, samples: Sequence[Any], *, name: str = "d", clip: float = CLIP
) -> dict[str, dict[str, np.ndarray]]:
    """The `external_predictions` of DoubleML's partially linear regression: {name: {"ml_l": (n, repeats), "ml_m": ..}}.

    outcome, treatment : models of E[y | X] and of E[d | X]. samples : `smpls` of the DoubleML object, repeats of folds.
    """
    ml_l = [cross_predictions(outcome, X, y, folds, clip=clip) for folds in samples]
    ml_m = [cross_predictions(treatment, X, d, folds, clip=clip) for folds in samples]
    return {name: {"ml_l": np.column_stack(ml_l), "ml_m": np.column_stack(ml_m)}}


def partially_linear_effect(y: Any, d: Any, outcome: np.ndarray, treatment: np.ndarray) -> tuple[float, float]:
    """The effect of d on y and its standard error, from out-of-fold predictions of both: residuals on residuals.

    Robinson's estimator, the "partialling out" score of double machine learning.
    """
    u, v = np.asarray(y, dtype=float) - outcome, np.asarray(d, dtype=float) - treatment
    effect = float(v @ u / (v @ v))
    score = v * (u - effect * v)
    return effect, float(np.sqrt(np.mean(score**2) / len(v)) / np.mean(v**2))


class ClippedPropensity(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities stay in [clip, 1 - clip]: the `model_propensity` or `model_t` of EconML.

    Parameters
    ----------
    classifier : such as SoftClassifier(library="fast").
    clip : how far from 0 and 1.
    """

    def __init__(self, classifier, clip=CLIP):
        self.classifier = classifier
        self.clip = clip

    def fit(self, X, y, sample_weight=None):
        """Fit a clone of the classifier."""
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.classifier_ = clone(self.classifier).fit(X, y, **given)
        self.classes_ = self.classifier_.classes_
        return self

    def predict_proba(self, X) -> np.ndarray:
        """Probabilities (n, C), none nearer to 0 or 1 than `clip`."""
        check_is_fitted(self)
        P = np.clip(self.classifier_.predict_proba(X), self.clip, 1 - self.clip)
        return P / P.sum(axis=1, keepdims=True)

    def predict(self, X) -> np.ndarray:
        """The classifier's own labels."""
        check_is_fitted(self)
        return self.classifier_.predict(X)
