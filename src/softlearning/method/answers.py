"""All that a model says of new rows in one pass: prediction, probabilities or interval, disagreement, set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from softlearning.method.record import honest_blend
from softlearning.uncertainty.conformal import calibrate_interval, calibrate_set, fit_scale, interval, predict_set


@dataclass(frozen=True)
class Reply:
    """Row by row: prediction (n,), disagreement (n,); classes add probability and inside (n, C), numbers low and high.

    `inside` says which classes hold the truth with the wanted coverage. What needs the out-of-fold predictions is None
    for a model that was saved without them.
    """

    prediction: np.ndarray
    disagreement: np.ndarray
    probability: np.ndarray | None = None
    inside: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None


class Answers:
    """A fitted model with its intervals or sets calibrated once, so that every row is predicted once."""

    def __init__(self, model, coverage: float = 0.9):
        self.model = model
        self.classes = getattr(model, "classes_", None)
        self._scale: Any = None
        self._quantile: Any = None
        if model.record_.crossed.oof is not None:
            self._calibrate(coverage)

    def _calibrate(self, coverage: float) -> None:
        learned = self.model.record_
        f, V = honest_blend(learned, self.model._rule_used(), self.model.record_.solution.loss)
        Y, weight = learned.rows_target(), learned.rows_weight()
        if self.classes is not None:
            self._quantile = calibrate_set(f, Y.argmax(axis=1), coverage, sample_weight=weight)
            return
        self._scale = fit_scale(Y[:, 0] - f[:, 0], V)
        self._quantile = calibrate_interval(f[:, 0], Y[:, 0], self._scale(V), coverage, sample_weight=weight)

    def __call__(self, X) -> Reply:
        f, V = self.model._with_doubt(X)
        if self.classes is not None:
            inside = None if self._quantile is None else predict_set(f, self._quantile)
            return Reply(self.classes[f.argmax(axis=1)], V, probability=f, inside=inside)
        if self._quantile is None:
            return Reply(f[:, 0], V)
        low, high = interval(f[:, 0], self._scale(V), self._quantile)
        return Reply(f[:, 0], V, low=low, high=high)

    def table(self, X) -> pd.DataFrame:
        """prediction, a probability a class, disagreement, and for numbers low and high."""
        reply = self(X)
        columns = {"prediction": reply.prediction}
        if self.classes is not None and reply.probability is not None:
            columns |= {f"probability_{label}": reply.probability[:, c] for c, label in enumerate(self.classes)}
        columns["disagreement"] = reply.disagreement
        if reply.low is not None and reply.high is not None:
            columns |= {"low": reply.low, "high": reply.high}
        return pd.DataFrame(columns)
