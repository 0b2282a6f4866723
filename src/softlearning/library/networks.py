"""Small networks in 32 bits, several at once, on numpy alone.

The members of a committee have weights of their own and hold out different rows to see when to stop, so that together
they have learnt from all rows, and err differently. Numbers enter twice: as they are, and as the share of each of their
quantile bins that lies below them (piecewise linear encoding), which spares a network the learning of thresholds.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

BEND = 3.0  # standard deviations beyond which an input counts less and less
MOST_BINNED = 400  # columns of bins at most
ROWS_AT_ONCE = 4096  # in predictions
FIRST, SECOND, TINY = 0.9, 0.99, 1e-8  # of Adam


class Committee(BaseEstimator):
    """Networks of two hidden layers, each stopped by rows of its own.

    Parameters
    ----------
    members : int
    width : int
        Of both hidden layers.
    bins : int
        Quantile bins of each column that has more than two values.
    dropout, rate, decay : float
        Share of units left out, and the largest rate and the decay of weights of AdamW.
    epochs, patience, batch : int
        Passes at most, passes without gain after which to stop, and rows per step.
    random_state : int or None
    """

    def __init__(
        self, members=4, width=128, bins=8, dropout=0.1, rate=1.5e-3, decay=0.02, epochs=120, patience=12, batch=128,
        random_state=None,
    ):  # fmt: skip
        self.members = members
        self.width = width
        self.bins = bins
        self.dropout = dropout
        self.rate = rate
        self.decay = decay
        self.epochs = epochs
        self.patience = patience
        self.batch = batch
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        target = self._encoded(np.asarray(y))
        weight = np.ones(len(target)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        X = bent(X)
        self.borders_ = quantile_borders(X, self.bins)
        self.n_features_in_ = X.shape[1]
        self.theta_ = self._trained(encoded(X, self.borders_), target, (weight / weight.mean()).astype(np.float32))
        return self

    def _outputs(self, X) -> np.ndarray:
        """(members, n, outputs), as the trained layers give them."""
        check_is_fitted(self)
        X = bent(X)
        parts = np.array_split(X, max(1, -(-len(X) // ROWS_AT_ONCE)))
        layers = views(self.theta_, self.sizes_)
        return np.concatenate([forward(encoded(part, self.borders_)[None], layers)[-1] for part in parts], axis=1)

    def _trained(self, X: np.ndarray, target: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """(members, parameters) of each member's best epoch on the rows that it holds out."""
        random = np.random.default_rng(self.random_state)
        self.sizes_ = (X.shape[1], self.width, self.width, target.shape[1])
        theta = started(random, self.members, self.sizes_)
        trained, held = self._split(random, len(X))
        best, lowest, since = theta.copy(), np.full(self.members, np.inf), 0
        adam = Adam(theta, self.rate, self.decay)
        steps = max(1, round(trained.shape[1] / self.batch))
        for epoch in range(self.epochs):
            order = random.permuted(trained, axis=1)
            for number, rows in enumerate(np.array_split(order, steps, axis=1)):
                progress = (epoch + number / steps) / self.epochs
                gradient = self._gradient(random, theta, X[rows], target[rows], weight[rows])
                adam.step(theta, gradient, progress)
            risk = self._risk(forward(X[held], views(theta, self.sizes_))[-1], target[held], weight[held])
            better = risk < lowest
            best[better], lowest[better] = theta[better], risk[better]
            since = 0 if better.any() else since + 1
            if since >= self.patience:
                break
        return best

    def _split(self, random, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """(members, training rows) and (members, held-out rows); each member holds out others while there are some."""
        held = max(1, min(round(0.15 * rows), rows // self.members)) if rows > 1 else 0
        order = random.permutation(rows)
        turned = np.stack([np.roll(order, -held * member) for member in range(self.members)])
        return turned[:, held:], turned[:, :held] if held else turned

    def _gradient(self, random, theta, X, target, weight) -> np.ndarray:
        """(members, parameters) of the weighted mean loss of these rows, with units left out at random."""
        layers, gradient = views(theta, self.sizes_), np.empty_like(theta)
        into = views(gradient, self.sizes_)
        shape = (self.members, X.shape[1], self.width)
        keep = [(random.random(shape, dtype=np.float32) >= self.dropout) / np.float32(1 - self.dropout) for _ in (0, 1)]
        inputs = forward(X, layers, keep)
        flow = self._slope(inputs[-1], target) * (weight / weight.shape[1])[:, :, None]
        for depth in (2, 1, 0):
            matrix, bias = into[depth]
            np.matmul(inputs[depth].transpose(0, 2, 1), flow, out=matrix)
            bias[...] = flow.sum(axis=1, keepdims=True)
            if depth:
                flow = flow @ layers[depth][0].transpose(0, 2, 1)
                flow *= (inputs[depth] > 0) * keep[depth - 1]
        return gradient


class CommitteeRegressor(RegressorMixin, Committee):
    """As `Committee`, for numbers; wrapped in `ScaledTarget` by its row."""

    def predict(self, X):
        return self._outputs(X)[:, :, 0].mean(axis=0).astype(float)

    def _encoded(self, y):
        return y.astype(np.float32)[:, None]

    def _slope(self, out, target):
        return 2 * (out - target)

    def _risk(self, out, target, weight):
        return (weight * ((out - target) ** 2)[:, :, 0]).mean(axis=1)


class CommitteeClassifier(ClassifierMixin, Committee):
    """As `Committee`, for classes; the probabilities of the members are averaged."""

    def predict_proba(self, X):
        return softmax(self._outputs(X).astype(float), axis=2).mean(axis=0)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _encoded(self, y):
        self.classes_, codes = np.unique(y, return_inverse=True)
        return np.eye(len(self.classes_), dtype=np.float32)[codes]

    def _slope(self, out, target):
        return softmax(out, axis=2) - target

    def _risk(self, out, target, weight):
        likelihood = (softmax(out, axis=2) * target).sum(axis=2)
        return -(weight * np.log(np.maximum(likelihood, 1e-12))).mean(axis=1)


class Adam:
    """AdamW in place, its rate rising over the first tenth and falling to zero along a cosine."""

    def __init__(self, theta: np.ndarray, rate: float, decay: float):
        self.mean, self.square, self.count = np.zeros_like(theta), np.zeros_like(theta), 0
        self.rate, self.decay = rate, decay

    def step(self, theta: np.ndarray, gradient: np.ndarray, progress: float) -> None:
        self.count += 1
        self.mean += (1 - FIRST) * (gradient - self.mean)
        self.square += (1 - SECOND) * (gradient * gradient - self.square)
        scale = np.sqrt(self.square / (1 - SECOND**self.count)) + TINY
        rate = self.rate * min(10 * progress + 0.05, 0.5 + 0.5 * np.cos(np.pi * progress))
        theta *= np.float32(1 - rate * self.decay)
        theta -= np.float32(rate / (1 - FIRST**self.count)) * self.mean / scale


def forward(X: np.ndarray, layers, keep=None) -> list[np.ndarray]:
    """What goes into each layer, and last what comes out; X is (members or 1, n, columns)."""
    inputs = [X]
    for depth, (matrix, bias) in enumerate(layers):
        out = inputs[-1] @ matrix + bias
        if depth < len(layers) - 1:
            np.maximum(out, 0, out=out)
            if keep is not None:
                out *= keep[depth]
        inputs.append(out)
    return inputs


def started(random, members: int, sizes: tuple[int, ...]) -> np.ndarray:
    """(members, parameters): normal matrices, biases of zero; the last layer begins small."""
    theta = np.zeros((members, sum((a + 1) * b for a, b in pairwise(sizes))), dtype=np.float32)
    for depth, (matrix, _) in enumerate(views(theta, sizes)):
        scale = np.sqrt((2.0 if depth < len(sizes) - 2 else 0.1) / matrix.shape[1])
        matrix[...] = scale * random.standard_normal(matrix.shape, dtype=np.float32)
    return theta


def views(theta: np.ndarray, sizes: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Matrix (members, a, b) and bias (members, 1, b) of each layer, in the memory of theta."""
    found, start = [], 0
    for a, b in pairwise(sizes):
        end = start + a * b
        found.append((theta[:, start:end].reshape(-1, a, b), theta[:, None, end : end + b]))
        start = end + b
    return found


def bent(X) -> np.ndarray:
    """The same numbers in 32 bits, drawn towards +-3: an outlier moves a network no further."""
    X = np.asarray(X, dtype=np.float32)
    return X / np.sqrt(1 + (X / np.float32(BEND)) ** 2)


def quantile_borders(X: np.ndarray, bins: int) -> list[tuple[int, np.ndarray]]:
    """(column, borders) of the columns with more than two values, while there is room for their bins."""
    found, room = [], MOST_BINNED
    for j in range(X.shape[1]):
        borders = np.unique(np.quantile(X[:, j], np.linspace(0, 1, bins + 1), method="nearest"))
        if len(borders) > 2 and len(borders) - 1 <= room:
            found.append((j, borders))
            room -= len(borders) - 1
    return found


def encoded(X: np.ndarray, borders: list[tuple[int, np.ndarray]]) -> np.ndarray:
    """X and, of each bin, the share that lies below the number: 0 before it, 1 behind it."""
    shares = [np.clip((X[:, j, None] - b[:-1]) / np.diff(b), 0, 1) for j, b in borders]
    return np.concatenate([X, *shares], axis=1, dtype=np.float32)
