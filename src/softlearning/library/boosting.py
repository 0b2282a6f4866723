"""Boosting that finds its own number of rounds, inside the rows it is given."""

from __future__ import annotations

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

HELD_OUT = 0.15  # of the rows, to see when more rounds do not help
FEWEST = 20  # rounds, however soon the held-out rows are content
SMALL = 60  # rows below which there is nothing to hold out: a fixed number of rounds


class StoppedLightGBM(BaseEstimator):
    """LightGBM on native categories whose rounds are stopped by rows held out of the training rows.

    Parameters
    ----------
    rounds : int or None
        A known number of rounds, as found in folds; None looks for it.
    most, patience : int
        Rounds at most, and rounds without gain after which to stop.
    categorical : tuple of int
        Columns that hold category codes.
    learning_rate, num_leaves, min_child_samples, colsample_bytree, subsample, reg_alpha, reg_lambda, extra_trees
        As in LightGBM, and `max_bin`.
    random_state : int or None
    """

    def __init__(
        self,
        rounds=None,
        most=2000,
        patience=50,
        categorical=(),
        learning_rate=0.05,
        num_leaves=31,
        min_child_samples=20,
        colsample_bytree=0.8,
        subsample=0.8,
        reg_alpha=0.0,
        reg_lambda=1.0,
        extra_trees=False,
        max_bin=255,
        random_state=None,
    ):
        self.rounds = rounds
        self.most = most
        self.patience = patience
        self.categorical = categorical
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.colsample_bytree = colsample_bytree
        self.subsample = subsample
        self.reg_alpha = reg_alpha
        self.reg_lambda = reg_lambda
        self.extra_trees = extra_trees
        self.max_bin = max_bin
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        y = np.asarray(y)
        rounds = self.rounds or (100 if len(y) < SMALL else None)
        if rounds is None:
            self.model_ = self._stopped(X, y, sample_weight)
            self.rounds_ = int(self.model_.best_iteration_ or self.most)
        else:
            self.model_ = self._booster(int(rounds)).fit(X, y, sample_weight, **self._columns())
            self.rounds_ = int(rounds)
        if hasattr(self.model_, "classes_"):
            self.classes_ = self.model_.classes_
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        check_is_fitted(self)
        return self.model_.predict(X)

    def _stopped(self, X, y, weight):
        """The booster of the training part, stopped by the rest."""
        train, held = self._split(y)
        given = (None, None) if weight is None else (weight[train], weight[held])
        return self._booster(self.most).fit(
            X[train],
            y[train],
            given[0],
            eval_X=X[held],
            eval_y=y[held],
            eval_sample_weight=None if weight is None else [given[1]],
            callbacks=[early_stopping(self.patience, first_metric_only=True, verbose=False)],
            **self._columns(),
        )

    def _split(self, y):
        rows = np.arange(len(y))
        return train_test_split(rows, test_size=HELD_OUT, random_state=self.random_state)

    def _columns(self):
        return {"categorical_feature": list(self.categorical)} if self.categorical else {}

    def _booster(self, rounds: int):
        names = ("learning_rate", "num_leaves", "min_child_samples", "colsample_bytree", "subsample")
        settings = {name: getattr(self, name) for name in (*names, "reg_alpha", "reg_lambda", "extra_trees", "max_bin")}
        return self._kind(
            n_estimators=max(rounds, FEWEST),
            subsample_freq=1,
            random_state=self.random_state,
            n_jobs=1,
            verbose=-1,
            **settings,
        )


class StoppedLightGBMRegressor(RegressorMixin, StoppedLightGBM):
    """As `StoppedLightGBM`, for numbers."""

    _kind = LGBMRegressor


class StoppedLightGBMClassifier(ClassifierMixin, StoppedLightGBM):
    """As `StoppedLightGBM`, for classes; the held-out rows have every class that the others have."""

    _kind = LGBMClassifier

    def predict_proba(self, X):
        check_is_fitted(self)
        return self.model_.predict_proba(X)

    def _split(self, y):
        counts = np.unique(y, return_counts=True)[1]
        rows = np.arange(len(y))
        stratify = y if counts.min() >= 2 and HELD_OUT * len(y) >= len(counts) else None
        train, held = train_test_split(rows, test_size=HELD_OUT, random_state=self.random_state, stratify=stratify)
        return train, held[np.isin(y[held], y[train])]


class LogTarget(RegressorMixin, BaseEstimator):
    """A regressor of log(y) where y is positive and skewed, of y itself elsewhere; never beyond the range it has seen.

    exp of a mean of logs lies below the mean, so predictions are multiplied by what makes them right on average.
    """

    def __init__(self, regressor):
        self.regressor = regressor

    def fit(self, X, y, sample_weight=None):
        y = np.asarray(y, dtype=float)
        self.log_ = bool(y.min() > 0 and skewness(y) > 1)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.regressor_ = clone(self.regressor).fit(X, np.log(y) if self.log_ else y, **weight)
        self.rounds_ = getattr(self.regressor_, "rounds_", None)
        self.low_, self.high_, self.ratio_ = float(y.min()), float(y.max()), 1.0
        if self.log_:
            fitted = np.exp(self.regressor_.predict(X))
            self.ratio_ = float(np.average(y, weights=sample_weight) / np.average(fitted, weights=sample_weight))
        return self

    def predict(self, X):
        check_is_fitted(self)
        prediction = self.regressor_.predict(X)
        return np.clip(self.ratio_ * np.exp(prediction), self.low_, self.high_) if self.log_ else prediction


def skewness(y: np.ndarray) -> float:
    """Third standardised moment; 0 for a constant."""
    spread = y.std()
    return float(np.mean(((y - y.mean()) / spread) ** 3)) if spread > 0 else 0.0
