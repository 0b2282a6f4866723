"""Estimators that scikit-learn does not have in the form a library row needs."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

COUPLED = 2**22  # numbers in the linear systems that are solved at a time


class PlattSVC(ClassifierMixin, BaseEstimator):
    """Support vector classifier with probabilities from cross-validated margins.

    A sigmoid for each pair of classes is fitted to out-of-fold margins (Platt 1999, with his smoothed targets), and the
    pairwise probabilities are coupled by the second method of Wu, Lin and Weng (2004), solved exactly.

    Parameters
    ----------
    C, gamma
        As in `sklearn.svm.SVC`, always with the RBF kernel.
    cv : int
        Folds for the margins; fewer where the rarest class has fewer rows.
    random_state : int or None
        Seed of these folds.
    """

    def __init__(self, C=1.0, gamma="scale", cv=5, random_state=None):
        self.C = C
        self.gamma = gamma
        self.cv = cv
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"needs two classes, y has one: {self.classes_.tolist()[0]!r}")
        weight = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.pairs_ = np.transpose(np.triu_indices(len(self.classes_), 1))
        margins = self._out_of_fold_margins(X, codes, weight)
        self.sigmoids_ = np.array([self._sigmoid(margins[:, p], codes, weight, p) for p in range(len(self.pairs_))])
        self.svc_ = self._svc().fit(X, codes, sample_weight=weight)
        return self

    def predict_proba(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        slope, offset = self.sigmoids_.T
        first = 1 / (1 + np.exp(np.clip(slope * pair_margins(self.svc_, X) + offset, -500, 500)))
        return couple(first, len(self.classes_))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _svc(self):
        return SVC(C=self.C, gamma=self.gamma, decision_function_shape="ovo", cache_size=500)

    def _out_of_fold_margins(self, X, codes, weight):
        """(n, pairs) margins, NaN where the rows of a fold's training part lack one of the two classes."""
        margins = np.full((X.shape[0], len(self.pairs_)), np.nan)
        number = {tuple(pair): p for p, pair in enumerate(self.pairs_)}
        for train, test in inner_folds(codes, self.cv, self.random_state):
            if len(present := np.unique(codes[train])) < 2:
                continue
            svc = self._svc().fit(X[train], codes[train], sample_weight=weight[train])
            columns = [number[a, b] for i, a in enumerate(present) for b in present[i + 1 :]]
            margins[np.ix_(test, columns)] = pair_margins(svc, X[test])
        return margins

    def _sigmoid(self, margin, codes, weight, pair):
        """Slope and offset (A, B) of P(first class) = 1 / (1 + exp(A margin + B))."""
        first, second = self.pairs_[pair]
        rows = np.isfinite(margin) & np.isin(codes, (first, second))
        positive = codes[rows] == first
        if positive.all() or not positive.any():
            return -1.0, 0.0  # nothing to fit on: the plain logistic of the margin
        return platt_sigmoid(margin[rows], positive, weight[rows])


def inner_folds(codes, cv, seed):
    """Stratified folds, fewer where the rarest class has fewer rows; two plain halves at the least."""
    folds = max(2, min(cv, np.bincount(codes).min()))
    if np.bincount(codes).min() >= 2:
        return list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(codes, codes))
    half = np.random.RandomState(seed).permutation(len(codes)) % folds
    return [(np.flatnonzero(half != f), np.flatnonzero(half == f)) for f in range(folds)]


def pair_margins(svc, X):
    """(n, pairs) margins, positive for the first class of the pair."""
    margins = svc.decision_function(X)
    return -margins[:, None] if margins.ndim == 1 else margins  # of two classes, scikit-learn scores the second


def platt_sigmoid(margin, positive, weight, steps=100):
    """Newton's method on the cross entropy with Platt's targets; A is kept below 0 by the data."""
    weight = weight / weight.mean()
    above, below = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (above + 1) / (above + 2), 1 / (below + 2))
    A, B = 0.0, np.log((below + 1) / (above + 1))
    loss = sigmoid_loss(A, B, margin, target, weight)
    for _ in range(steps):
        p = 1 / (1 + np.exp(np.clip(A * margin + B, -500, 500)))
        slope = weight * (target - p)
        gradient = np.array([slope @ margin, slope.sum()])
        curvature = weight * p * (1 - p)
        cross = curvature @ margin
        hessian = np.array([[curvature @ margin**2, cross], [cross, curvature.sum()]]) + 1e-12 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        scale = 1.0
        while scale > 1e-10:
            trial = sigmoid_loss(A - scale * step[0], B - scale * step[1], margin, target, weight)
            if trial <= loss:
                break
            scale /= 2
        A, B = A - scale * step[0], B - scale * step[1]
        if loss - trial < 1e-12 * (abs(loss) + 1):
            break
        loss = trial
    return A, B


def sigmoid_loss(A, B, margin, target, weight):
    z = A * margin + B
    return weight @ (np.logaddexp(0, z) - (1 - target) * z)


def couple(first, classes):
    """(n, C) probabilities from (n, pairs) probabilities of the first class of each pair.

    Minimises sum over i, j of (r_ji p_i - r_ij p_j)^2 with sum p = 1: one linear system a row, some rows at a time.
    """
    rows = max(1, COUPLED // (classes + 1) ** 2)
    return np.concatenate([coupled(first[at : at + rows], classes) for at in range(0, max(len(first), 1), rows)])


def coupled(first, classes):
    """`couple` for as many rows as memory likes."""
    n = len(first)
    rows, columns = np.triu_indices(classes, 1)
    first = np.clip(first, 1e-7, 1 - 1e-7)
    r = np.zeros((n, classes, classes))
    r[:, rows, columns], r[:, columns, rows] = first, 1 - first
    Q = np.zeros((n, classes + 1, classes + 1))
    Q[:, :classes, :classes] = -r * r.transpose(0, 2, 1)
    diagonal = np.arange(classes)
    Q[:, diagonal, diagonal] = (r**2).sum(axis=1)
    Q[:, :classes, classes] = Q[:, classes, :classes] = 1
    side = np.zeros((n, classes + 1, 1))
    side[:, classes] = 1
    p = np.clip(np.linalg.solve(Q, side)[:, :classes, 0], 0, None)
    return p / p.sum(axis=1, keepdims=True)


class ScaledTarget(RegressorMixin, BaseEstimator):
    """A regressor fitted on (y - mean) / standard deviation: margins and step sizes no longer depend on y's unit.

    Its predictions stay within one range of y above and below what it has seen: products and networks of a row far from
    all others know no bound, and one such row would cost more than all the rest.
    """

    def __init__(self, regressor):
        self.regressor = regressor

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.centre_ = float(np.average(y, weights=sample_weight))
        self.spread_ = float(np.sqrt(np.average((y - self.centre_) ** 2, weights=sample_weight))) or 1.0
        self.low_, self.high_ = float(2 * y.min() - y.max()), float(2 * y.max() - y.min())
        self.regressor_ = clone(self.regressor).fit(X, (y - self.centre_) / self.spread_, **weight)
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.clip(self.centre_ + self.spread_ * self.regressor_.predict(X), self.low_, self.high_)


class CapCategories(TransformerMixin, BaseEstimator):
    """Category codes above `most` share one code: learners that bin take few categories. Codes are frequent first."""

    def __init__(self, columns=(), most=254):
        self.columns = columns
        self.most = most

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        X = np.array(X, dtype=float)
        columns = list(self.columns)
        X[:, columns] = np.minimum(X[:, columns], self.most)
        return X

    def __sklearn_is_fitted__(self):
        return True


class CodesToFrame(TransformerMixin, BaseEstimator):
    """Category codes as whole numbers in a frame, for learners that refuse floats as categories; missing is -1."""

    def __init__(self, columns=()):
        self.columns = columns

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        frame = pd.DataFrame(np.asarray(X))
        for column in self.columns:
            frame[column] = frame[column].fillna(-1).astype(np.int64)
        return frame

    def __sklearn_is_fitted__(self):
        return True
