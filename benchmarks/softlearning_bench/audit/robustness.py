"""How far a row can be moved before the answer can change: certificates from arrays, attacks from gradients.

Theorem S6 calls a piecewise-constant specialist immune: within its cell nothing moves. Here the cells are measured. A
radius r of a row means: no perturbation of length *less than* r moves the specialist. Lengths are in the unit of the
raw columns when `unit` gives the raw length of one step of each column (the scale that a view divides by).

For a box (a leaf of a tree) the nearest way out is along one axis, so its L-infinity and L2 radius are
equal: the division by the root of d in the paper's proof is not needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Gradient = Callable[[np.ndarray], np.ndarray]  # rows (n, d) -> slope of the attacked loss at each row (n, d)


@dataclass(frozen=True)
class Tree:
    """A binary tree as arrays over its nodes: x[feature] <= threshold goes left; a leaf has left < 0.

    `missing_left` says where a missing value goes; None means to the right.
    """

    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray | None = None


def tree_radius(tree: Tree, X: np.ndarray, *, unit: np.ndarray | None = None, rounding: float = 0.0) -> np.ndarray:
    """Exact distance of each row to the edge of its leaf, in L2 and in L-infinity alike; (n,), inf without a split.

    X (n, d) may hold nan; a missing value is not moved. `rounding` is the relative precision in which the tree
    compares (2^-24 for scikit-learn, which compares in float32); what it could hide is taken off the radius.
    """
    unit = np.ones(X.shape[1]) if unit is None else unit
    node, radius = np.zeros(len(X), dtype=int), np.full(len(X), np.inf)
    rows = np.arange(len(X))
    while len(rows := rows[tree.left[node[rows]] >= 0]):
        here = node[rows]
        x, threshold = X[rows, tree.feature[here]], tree.threshold[here]
        gap = np.abs(x - threshold) - 2 * rounding * np.maximum(np.abs(x), np.abs(threshold))
        gap = np.where(np.isnan(x), np.inf, np.maximum(gap, 0) * unit[tree.feature[here]])
        radius[rows] = np.minimum(radius[rows], gap)
        missing_left = False if tree.missing_left is None else tree.missing_left[here].astype(bool)
        goes_left = np.where(np.isnan(x), missing_left, x <= threshold)
        node[rows] = np.where(goes_left, tree.left[here], tree.right[here])
    return radius


def forest_radius(
    trees: Sequence[Tree], X: np.ndarray, *, unit: np.ndarray | None = None, rounding: float = 0.0
) -> np.ndarray:
    """Distance within which no tree of a forest or of a boosting changes its leaf; (n,)."""
    radius = np.full(len(X), np.inf)
    for tree in trees:
        radius = np.minimum(radius, tree_radius(tree, X, unit=unit, rounding=rounding))
    return radius


def border_radius(
    borders: Sequence[np.ndarray], X: np.ndarray, *, unit: np.ndarray | None = None, rounding: float = 0.0
) -> np.ndarray:
    """Distance to the nearest of all borders of each column; (n,).

    Symmetric trees (CatBoost) ask all their questions of every row, so for them this is exact; for others it is safe.
    """
    radius = np.full(len(X), np.inf)
    for j, edges in enumerate(borders):
        if len(edges) == 0:
            continue
        x, edges = X[:, j], np.sort(edges)
        above = np.searchsorted(edges, x).clip(0, len(edges) - 1)
        gap = np.minimum(np.abs(x - edges[above]), np.abs(x - edges[np.maximum(above - 1, 0)]))
        gap = gap - 2 * rounding * (np.abs(x) + gap)
        gap = np.where(np.isnan(x), np.inf, np.maximum(gap, 0) * (1.0 if unit is None else unit[j]))
        radius = np.minimum(radius, gap)
    return radius


def neighbour_radius(
    train: np.ndarray, X: np.ndarray, k: int, *, norm: str = "l2", unit: np.ndarray | None = None
) -> np.ndarray:
    """Exact distance within which the k nearest training rows stay the same rows; (n,), Euclidean neighbours.

    For i among the k and j not, z is nearer to j beyond the plane that halves their connection, at the distance (|x -
    j|^2 - |x - i|^2) / (2 |i - j|) in L2, with |i - j|_1 in L-infinity; the radius is the smallest of these.
    """
    if norm not in ("l2", "linf"):
        raise ValueError(f"norm is {norm!r}; it is 'l2' or 'linf'")
    unit = np.ones(X.shape[1]) if unit is None else unit
    return np.array([_one_neighbour_radius(train, x, k, norm, unit) for x in X])


def _one_neighbour_radius(train: np.ndarray, x: np.ndarray, k: int, norm: str, unit: np.ndarray) -> float:
    """The radius of one row: all pairs of a neighbour and a stranger."""
    squared = ((train - x) ** 2).sum(axis=1)
    order = np.argsort(squared, kind="stable")
    inside, outside = order[:k], order[k:]
    radius = math.inf
    for i in inside:
        slope = (train[outside] - train[i]) / unit  # change of the margin per raw step of each column
        length = np.linalg.norm(slope, ord=2 if norm == "l2" else 1, axis=1)
        margin = np.maximum(squared[outside] - squared[i], 0) / 2
        reachable = length > 0  # twins of a neighbour tie with it everywhere: swapping them needs a step of 0
        if not reachable.all():
            return 0.0
        if len(outside):
            radius = min(radius, float((margin / length).min()))
    return radius


def immune_weight(alpha: np.ndarray, piecewise_constant: np.ndarray) -> float:
    """w_immune of Theorem S6: the weight on piecewise-constant specialists."""
    return float(alpha[np.asarray(piecewise_constant, dtype=bool)].sum())


def theorem_condition(P: np.ndarray, alpha: np.ndarray, immune: np.ndarray) -> np.ndarray:
    """Rows (n,) where Theorem S6's condition holds: w_immune > 1/2 and the immune specialists name one class.

    It does not suffice: specialists may name a class with little probability. See `stable_rows`.
    """
    immune = np.asarray(immune, dtype=bool) & (alpha > 0)
    label = P[:, immune].argmax(axis=2)
    agree = np.all(label == label[:, :1], axis=1) if immune.any() else np.zeros(len(P), dtype=bool)
    return agree & (immune_weight(alpha, immune) > 0.5)


def stable_rows(P: np.ndarray, alpha: np.ndarray, immune: np.ndarray) -> np.ndarray:
    """Rows (n,) whose class cannot change as long as the immune specialists do not move, whatever the others say.

    With c the blend's class: sum over immune k of alpha_k (f_kc - f_kc') > weight of the others, for every c' != c.
    """
    fixed = np.where(np.asarray(immune, dtype=bool), np.inf, -np.inf)
    return certified_radius(P, alpha, np.broadcast_to(fixed, P.shape[:2])) == np.inf


def certified_radius(P: np.ndarray, alpha: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """Largest r for each row such that no perturbation shorter than r changes the blend's class; (n,).

    P (n, K, C); radius (n, K), of each specialist, 0 (or below) where it may move at once. Below r only the
    specialists with a smaller radius move, and at worst they put all their probability on one other class.
    """
    label = np.einsum("nkc,k->nc", P, alpha).argmax(axis=1)
    lead = np.take_along_axis(P, label[:, None, None], axis=2) - P  # (n, K, C) of each specialist over each class
    order = np.argsort(-radius, axis=1, kind="stable")
    sorted_radius = np.take_along_axis(radius, order, axis=1)
    held = np.cumsum(np.take_along_axis(lead * alpha[None, :, None], order[:, :, None], axis=1), axis=1)
    held[np.arange(len(P)), :, label] = np.inf
    moving = 1 - np.cumsum(alpha[order], axis=1)
    safe = (held > moving[:, :, None] + 1e-12).all(axis=2)  # (n, K): the first m specialists outweigh the rest
    best = np.max(np.where(safe, sorted_radius, 0.0), axis=1, initial=0.0)
    return np.maximum(best, 0.0)


def fgsm(gradient: Gradient, X: np.ndarray, epsilon: float) -> np.ndarray:
    """One step of length epsilon along the sign of the slope: rows (n, d) with |change| <= epsilon in L-infinity."""
    return X + epsilon * np.sign(gradient(X))


def pgd(
    gradient: Gradient,
    X: np.ndarray,
    epsilon: float,
    *,
    norm: str = "linf",
    steps: int = 20,
    seed: int = 0,
    random_start: bool = True,
) -> np.ndarray:
    """Projected gradient ascent within epsilon of each row, in L-infinity or L2; step length 2.5 epsilon / steps."""
    rng = np.random.default_rng(seed)
    change = _project(rng.uniform(-epsilon, epsilon, X.shape), epsilon, norm) if random_start else np.zeros_like(X)
    for _ in range(steps):
        change = change + 2.5 * epsilon / steps * _steepest(gradient(X + change), norm)
        change = _project(change, epsilon, norm)
    return X + change


def _steepest(slope: np.ndarray, norm: str) -> np.ndarray:
    """The direction of unit length in which the loss rises fastest."""
    if norm == "linf":
        return np.sign(slope)
    length = np.linalg.norm(slope, axis=1, keepdims=True)
    return slope / np.where(length > 0, length, 1.0)


def _project(change: np.ndarray, epsilon: float, norm: str) -> np.ndarray:
    """The nearest change that is no longer than epsilon."""
    if norm == "linf":
        return np.clip(change, -epsilon, epsilon)
    length = np.linalg.norm(change, axis=1, keepdims=True)
    return change * np.minimum(1.0, epsilon / np.where(length > 0, length, 1.0))
