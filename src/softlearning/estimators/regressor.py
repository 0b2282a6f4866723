"""SoftRegressor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import column_or_1d

from softlearning.estimators.base import SoftLearning
from softlearning.evaluation.aims import score_model
from softlearning.execution import cores, one_thread
from softlearning.library.quantiles import quantile_rows
from softlearning.method.crossfit import cross_fit
from softlearning.method.ensemble import predict_members
from softlearning.method.prediction import Prediction, conformal_interval
from softlearning.method.quantiles import checked_levels, fit_level, predict_levels, widening
from softlearning.method.record import Record
from softlearning.uncertainty.disagreement import blend
from softlearning.uncertainty.selective import threshold_for_coverage


@dataclass(kw_only=True, eq=False, repr=False)
class SoftRegressor(RegressorMixin, SoftLearning):
    """The best combination of regressors for the data.

    As `SoftClassifier`, for numbers: the parameters and attributes are the same, without `calibrate`, `class_weight`,
    `threshold` and `classes_`. `loss` is "auto" (squared), "squared", "absolute", "pinball:0.9" (a quantile), "huber",
    "poisson" or "tweedie:1.5"; `metric` is "r2", "neg_mean_absolute_error" (or "mae"), "rmse", "pinball:0.9", ..

    Parameters
    ----------
    quantiles : sequence of float or None, default=None
        Levels, such as (0.05, 0.5, 0.95), for which specialists of their own are fitted for `predict_quantile` and
        `predict_interval`: boosting and linear regression by pinball loss. Without them quantiles come from the
        held-out residuals of the blend, which costs no further fit.

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
    quantiles: Any = None

    def predict(self, X, return_std=False):
        """The prediction of each row; with `return_std` also the standard deviation among the specialists."""
        if not return_std:
            return self._blend(X)[:, 0]
        f, V = self._with_disagreement(X)
        return f[:, 0], np.sqrt(V)

    def score(self, X, y, sample_weight=None) -> float:
        """The metric of the model on these rows; R2 where no metric was given."""
        aim = self._aim()
        return super().score(X, y, sample_weight) if aim is None else score_model(self, aim, X, y, sample_weight)

    def predict_full(self, X, coverage=0.9) -> Prediction:
        """All that is said of each row: prediction, disagreement, and the interval of the nominal coverage."""
        f, V = self._with_disagreement(X)
        if self.record_.crossed.oof is None:
            return Prediction(f[:, 0], V)
        low, high = conformal_interval(self.record_.held_out, f[:, 0], V, coverage)
        return Prediction(f[:, 0], V, low=low, high=high)

    def predict_selective(self, X, coverage=0.9):
        """Predictions, and which of them to believe: the share `coverage` with the least disagreement."""
        f, V = self._with_disagreement(X)
        return f[:, 0], threshold_for_coverage(self.record_.held_out.disagreement, coverage) >= V

    def predict_interval(self, X, coverage=0.9, *, method="auto") -> tuple[np.ndarray, np.ndarray]:
        """Low and high, each (n,), that hold the truth with the nominal coverage.

        method : "conformal" is symmetric about the prediction, and wider where the specialists disagree as far as that
            told errors before; "quantile" lies between two quantiles, widened as far as held-out rows ask for it;
            "auto" takes the one that is narrower on held-out rows, where `quantiles` were fitted, else "conformal".
        """
        if method not in ("auto", "conformal", "quantile"):
            raise ValueError(f"method is {method!r}; it is 'auto', 'conformal' or 'quantile'")
        f, V = self._with_disagreement(X)
        fits = getattr(self, "quantile_fits_", ())
        if method == "auto":
            method = "quantile" if fits and self._narrower_by_quantiles(coverage) else "conformal"
        if method == "conformal":
            return conformal_interval(self.record_.held_out, f[:, 0], V, coverage)
        more = widening(self.record_, fits, coverage)[0]
        low, high = self.predict_quantile(X, [(1 - coverage) / 2, (1 + coverage) / 2]).T
        return np.minimum(low - more, (low + high) / 2), np.maximum(high + more, (low + high) / 2)

    def predict_quantile(self, X, q) -> np.ndarray:
        """The quantile at level q of each row, (n,); of several levels (n, L). Never crossing.

        They come from the specialists of the level where `quantiles` were fitted, and from the held-out residuals of
        the blend between and beyond these levels, or where there are none.
        """
        levels = checked_levels(q)
        f, V = self._with_disagreement(X)
        table = self._validate(X)
        fits = getattr(self, "quantile_fits_", ())
        values = predict_levels(self.record_, fits, f[:, 0], V, lambda record: self._blend_of(record, table), levels)
        return values[:, 0] if np.ndim(q) == 0 else values

    def _narrower_by_quantiles(self, coverage: float) -> bool:
        held = self.record_.held_out
        low, high = conformal_interval(held, held.blend[:, 0], held.disagreement, coverage)
        return widening(self.record_, self.quantile_fits_, coverage)[1] < np.average(high - low, weights=held.weight)

    def _blend_of(self, record: Record, table) -> np.ndarray:
        """(n,) what the specialists of a level say."""
        if not table.shape[0]:
            return np.empty(0)
        with one_thread:
            P = predict_members(record.ensemble, record.support(), table, cores(self.n_jobs))
        return blend(P, record.support_weights())[:, 0]

    def _learn_more(self, record: Record, table, resources) -> None:
        """The specialists of the quantiles that were asked for."""
        if self.quantiles is None or table.X.load() is None:
            return
        levels = np.unique(checked_levels(self.quantiles))
        self.quantile_fits_ = tuple(
            fit_level(record, self._level_record(q, record, table, resources), q) for q in levels.tolist()
        )

    def _level_record(self, level: float, record: Record, table, resources) -> Record:
        library = quantile_rows(level)
        crossed = cross_fit(
            library, table, record.crossed.splits, resources, calibrate=False, keep=self.refit is not True
        )
        solution = crossed.solve(crossed.oof, table.training, "simplex", f"pinball:{level!r}")
        ensemble, failures = self._complete(solution, crossed, table, resources, None)
        if failures:
            raise RuntimeError(f"the specialists of the quantile {level:g} could not be fitted: {failures[0].error}")
        return Record(library, replace(crossed, models={}), solution, ensemble, record.training, "simplex")

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
