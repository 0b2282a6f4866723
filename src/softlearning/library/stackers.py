"""Specialists of level 2: they read the out-of-fold predictions of level 1 and may do what a convex sum cannot.

Their columns are the logarithms of calibrated probabilities, specialist by specialist: (n, K C); or (n, K) numbers.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.utils.validation import check_is_fitted, validate_data

PENALTIES = np.logspace(-2, 4, 13)  # of a ridge regression whose target has variance 1


class Pool(ClassifierMixin, BaseEstimator):
    """What stackers of probabilities share: reading the columns as a tensor, and predicting by the most probable class.

    Parameters
    ----------
    outputs : int
        Number of classes C in the columns, which may be more than the training rows show.
    """

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_ = np.arange(self.outputs)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self._learn(self._tensor(X), np.eye(self.outputs)[np.asarray(y, dtype=int)], weight)
        return self

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X):
        check_is_fitted(self)
        return self._pool(self._tensor(validate_data(self, X, dtype=np.float64, reset=False)))

    def _tensor(self, X):
        return X.reshape(len(X), -1, self.outputs)


class LogPool(Pool):
    """p proportional to exp(sum of w_k log p_k + b), w >= 0: specialists that agree may be surer together.

    Parameters
    ----------
    outputs : int
    shrink : float
        Penalty shrink / 2 (|w - 1/K|^2 + |b|^2) on the total log loss: with few rows the pool stays near the mean.
    """

    def __init__(self, outputs=2, shrink=1.0):
        self.outputs = outputs
        self.shrink = shrink

    def _learn(self, L, Y, weight):
        K, C = L.shape[1:]
        centre = np.append(np.full(K, 1 / K), np.zeros(C))

        def loss(theta):
            score = log_softmax(np.einsum("nkc,k->nc", L, theta[:K]) + theta[K:], axis=1)
            slope = weight[:, None] * (np.exp(score) - Y)
            away = theta - centre
            gradient = np.append(np.einsum("nkc,nc->k", L, slope), slope.sum(axis=0)) + self.shrink * away
            return -weight @ (score * Y).sum(axis=1) + self.shrink / 2 * away @ away, gradient

        bounds = [(0, None)] * K + [(None, None)] * C
        theta = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500}).x
        self.weights_, self.bias_ = theta[:K], theta[K:]

    def _pool(self, L):
        return softmax(np.einsum("nkc,k->nc", L, self.weights_) + self.bias_, axis=1)


class LogisticStack(Pool):
    """Multinomial logistic regression on the probabilities: it may use one class against another, and be unsure of all.

    Where labels are noisy no probability should come near one, which a pool of logarithms learns less well.

    Parameters
    ----------
    outputs : int
    C : float
        Inverse strength of the penalty, as in scikit-learn.
    """

    def __init__(self, outputs=2, C=1.0):
        self.outputs = outputs
        self.C = C

    def _learn(self, L, Y, weight):
        label = Y.argmax(axis=1)
        self.known_ = np.unique(label)
        if len(self.known_) > 1:
            self.regression_ = LogisticRegression(C=self.C, max_iter=300)
            self.regression_.fit(self._columns(L), label, weight)

    def _pool(self, L):
        P = np.zeros((len(L), self.outputs))
        P[:, self.known_] = self.regression_.predict_proba(self._columns(L)) if len(self.known_) > 1 else 1.0
        return P

    def _columns(self, L):
        first = 1 if self.outputs == 2 else 0  # of two classes one is enough
        return np.exp(L[:, :, first:]).reshape(len(L), -1)


class SignedStack(RegressorMixin, BaseEstimator):
    """Ridge regression on predicted numbers: it may subtract what specialists share, and undo what penalties shrank.

    Parameters
    ----------
    slack : float
        Predictions are held to the range of the target, widened on either side by so many times its length: a
        specialist that runs off the scale on one row would ruin a sum whose weights are not held to the simplex.
    """

    def __init__(self, slack=1.0):
        self.slack = slack

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        beyond = self.slack * np.ptp(y)
        self.low_, self.high_ = float(y.min() - beyond), float(y.max() + beyond)
        self.unit_ = float(y.std()) or 1.0
        self.regression_ = RidgeCV(PENALTIES).fit(self._held(X), y / self.unit_, sample_weight)
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.unit_ * self.regression_.predict(self._held(X))

    def _held(self, X):
        return np.clip(X, self.low_, self.high_) / self.unit_
