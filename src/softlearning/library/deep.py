"""Networks that share their weights: trained with PyTorch, kept as arrays, and predicting without it.

Several members read the same rows through one set of layers; each has scales of its own for what goes into a layer and
what comes out, and a last layer of its own. They cost little more than one network and err differently (the idea of
BatchEnsemble and TabM).
"""

from __future__ import annotations

from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from softlearning.library.networks import bent

HELD_OUT = 0.15  # of the rows, to see when to stop
ROWS_AT_ONCE = 4096  # in predictions


def available() -> bool:
    """Whether PyTorch is installed."""
    return find_spec("torch") is not None


class SharedNetworks(BaseEstimator):
    """Members of one network, early-stopped on rows held out of the training rows.

    Parameters
    ----------
    members, layers, width : int
        How many networks share the weights, and of how many layers of which width.
    dropout, rate, decay : float
        Of AdamW.
    epochs, patience, batch : int
        Passes at most, passes without gain after which to stop, and rows per step.
    random_state : int or None
    """

    def __init__(
        self, members=8, layers=3, width=192, dropout=0.1, rate=2e-3, decay=0.02, epochs=200, patience=16, batch=128,
        random_state=None,
    ):  # fmt: skip
        self.members = members
        self.layers = layers
        self.width = width
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
        self.arrays_ = self._trained(bent(dense(X)), target, (weight / weight.mean()).astype(np.float32))
        self.n_features_in_ = X.shape[1]
        return self

    def _outputs(self, X) -> np.ndarray:
        """(n, members, outputs), as the trained layers give them."""
        check_is_fitted(self)
        X = bent(dense(X))
        parts = [forward(X[start : start + ROWS_AT_ONCE], self.arrays_) for start in range(0, len(X), ROWS_AT_ONCE)]
        return np.concatenate(parts).astype(float) if parts else np.empty((0, self.members, len(self.arrays_["bias"])))

    def _trained(self, X, target, weight) -> dict[str, Any]:
        """The arrays of the epoch that is best on the held-out rows."""
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.random_state or 0)
                return self._epochs(torch, X, target, weight)
        finally:
            torch.set_num_threads(before)

    def _epochs(self, torch, X, target, weight) -> dict[str, Any]:
        train, held = self._split(target)
        net = shared_layers(torch, X.shape[1], self.members, self.layers, self.width, self.dropout, self._width(target))
        steps = torch.optim.AdamW(net.parameters(), lr=self.rate, weight_decay=self.decay)
        X, target, weight = (torch.from_numpy(np.ascontiguousarray(a)) for a in (X, target, weight))
        order = np.random.RandomState(self.random_state)
        best, lowest, since = net.arrays(), np.inf, 0
        for _ in range(self.epochs):
            net.train()
            for rows in np.array_split(order.permutation(train), max(1, round(len(train) / self.batch))):
                steps.zero_grad()
                self._losses(torch, net(X[rows]), target[rows], weight[rows]).backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                steps.step()
            net.eval()
            with torch.no_grad():
                risk = float(self._held_out(torch, net(X[held]), target[held], weight[held]))
            if risk < lowest:
                best, lowest, since = net.arrays(), risk, 0
            elif (since := since + 1) >= self.patience:
                break
        return best


class SharedNetworksRegressor(RegressorMixin, SharedNetworks):
    """As `SharedNetworks`, for numbers; wrapped in `ScaledTarget` by its row."""

    def predict(self, X):
        return self._outputs(X)[:, :, 0].mean(axis=1)

    def _encoded(self, y):
        return y.astype(np.float32)

    def _width(self, target):
        return 1

    def _split(self, target):
        return train_test_split(np.arange(len(target)), test_size=HELD_OUT, random_state=self.random_state)

    def _losses(self, torch, out, target, weight):
        return (weight[:, None] * (out[:, :, 0] - target[:, None]) ** 2).mean()

    def _held_out(self, torch, out, target, weight):
        return (weight * (out[:, :, 0].mean(dim=1) - target) ** 2).mean()


class SharedNetworksClassifier(ClassifierMixin, SharedNetworks):
    """As `SharedNetworks`, for classes; the probabilities of the members are averaged."""

    def predict_proba(self, X):
        return softmax(self._outputs(X), axis=2).mean(axis=1)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _encoded(self, y):
        self.classes_, codes = np.unique(y, return_inverse=True)
        return codes.astype(np.int64)

    def _width(self, target):
        return len(self.classes_)

    def _split(self, target):
        rows, counts = np.arange(len(target)), np.bincount(target)
        stratify = target if counts.min() >= 2 and HELD_OUT * len(target) >= len(counts) else None
        return train_test_split(rows, test_size=HELD_OUT, random_state=self.random_state, stratify=stratify)

    def _losses(self, torch, out, target, weight):
        each = torch.nn.functional.cross_entropy(
            out.flatten(0, 1), target.repeat_interleave(out.shape[1]), reduction="none"
        )
        return (weight.repeat_interleave(out.shape[1]) * each).mean()

    def _held_out(self, torch, out, target, weight):
        P = torch.softmax(out, dim=2).mean(dim=1)
        return -(weight * torch.log(P[torch.arange(len(P)), target].clamp_min(1e-12))).mean()


def dense(X) -> np.ndarray:
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)


def forward(X: np.ndarray, arrays: dict[str, Any]) -> np.ndarray:
    """(n, members, outputs) of the trained layers, in numpy."""
    h = np.repeat(X[:, None, :], len(arrays["last"]), axis=1)
    for into, matrix, out, bias in arrays["layers"]:
        h = np.maximum((h * into) @ matrix * out + bias, 0)
    return np.einsum("nmw,mwo->nmo", h, arrays["last"]) + arrays["bias"]


def shared_layers(torch, columns: int, members: int, layers: int, width: int, dropout: float, outputs: int):
    """The module that is trained; made here, so that PyTorch is imported only when it is used."""

    class Layers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            sizes = [columns, *[width] * layers]
            signs = [torch.randint(0, 2, (members, a)) * 2.0 - 1 for a in sizes[:-1]]  # members begin apart
            normal = lambda a, b: torch.randn(a, b) * (2 / a) ** 0.5
            self.into = torch.nn.ParameterList(
                [sign if i == 0 else torch.ones_like(sign) for i, sign in enumerate(signs)]
            )
            self.matrix = torch.nn.ParameterList([normal(a, b) for a, b in pairwise(sizes)])
            self.out = torch.nn.ParameterList([torch.ones(members, b) for b in sizes[1:]])
            self.shift = torch.nn.ParameterList([torch.zeros(members, b) for b in sizes[1:]])
            self.last = torch.nn.Parameter(torch.randn(members, width, outputs) * width**-0.5)
            self.bias = torch.nn.Parameter(torch.zeros(members, outputs))
            self.drop = torch.nn.Dropout(dropout)

        def forward(self, X):
            h = X[:, None, :].expand(-1, members, -1)
            for into, matrix, out, shift in zip(self.into, self.matrix, self.out, self.shift):
                h = self.drop(torch.relu((h * into) @ matrix * out + shift))
            return torch.einsum("nmw,mwo->nmo", h, self.last) + self.bias

        def arrays(self) -> dict[str, Any]:
            """What `forward` reads, as arrays."""
            copy = lambda p: p.detach().numpy().copy()
            parts = zip(self.into, self.matrix, self.out, self.shift)
            return {
                "layers": [tuple(map(copy, part)) for part in parts],
                "last": copy(self.last),
                "bias": copy(self.bias),
            }

    return Layers()
