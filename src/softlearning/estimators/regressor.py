"""SoftRegressor."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import (
    column_or_1d,
)

from softlearning.estimators.base import SoftLearning
from softlearning.evaluation.aims import aim_of, score_model
from softlearning.method.prediction import Prediction, conformal_interval
from softlearning.uncertainty.disagreement import blend
from softlearning.uncertainty.selective import threshold_for_coverage


class SoftRegressor(RegressorMixin, SoftLearning):
    """The best combination of regressors for the data.

    As `SoftClassifier`, for numbers: the parameters and attributes are the same, without `calibrate`, `class_weight`,
    `threshold` and `classes_`. `loss` is "auto" (squared), "squared", "absolute", "pinball:0.9" (a quantile), "huber",
    "poisson" or "tweedie:1.5"; `metric` is "r2", "neg_mean_absolute_error" (or "mae"), "rmse", "pinball:0.9", ..

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
        metric=None,
        cv=None,
        column_types=None,
        refit="auto",
        time_limit=None,
        memory_limit=None,
        checkpoint=None,
        engine=None,
        n_jobs=None,
        progress=False,
        random_state=42,
    ):
        self.library = library
        self.rule = rule
        self.loss = loss
        self.metric = metric
        self.cv = cv
        self.column_types = column_types
        self.refit = refit
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def predict(self, X, return_std=False):
        """The prediction of each row; with `return_std` also the standard deviation among the specialists."""
        if not return_std:
            return blend(*self._tensor(X))[:, 0]
        f, V = self._with_disagreement(X)
        return f[:, 0], np.sqrt(V)

    def score(self, X, y, sample_weight=None) -> float:
        """The metric of the model on these rows; R2 where no metric was given."""
        return score_model(self, self._aim() or aim_of("r2", self._task), X, y, sample_weight)

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
