"""Attacks on a fitted classifier and what can be certified against them, for the blend and for each member.

Rows are numeric arrays; lengths are in units of `scale`, one for each column (its standard deviation
unless given), so that an epsilon of 0.1 moves every column by a tenth of its spread. Gradient attacks
follow the slopes of the smooth members (`gradients`), certificates the cells of the flat ones (`cells`).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from softlearning.method.ensemble import Ensemble, Member, predict_members
from softlearning.method.fitting import LOG_FLOOR, coded, own_labels, stacker_features
from softlearning.uncertainty.calibration import FLOOR
from softlearning_bench.audit.cells import specialist_radius
from softlearning_bench.audit.gradients import by_differences, pull_back
from softlearning_bench.audit.robustness import Gradient, certified_radius, fgsm, pgd, theorem_condition

PLAIN_VIEWS = ("raw", "native", "ordinal", "scaled")
PARTS_FLOOR = 1e-12  # probabilities below are lifted before a logarithm


class Target:
    """What is attacked: some specialists of a fitted ensemble with their weights, read on rows divided by `scale`."""

    def __init__(self, ensemble: Ensemble, names: Sequence[str], alpha: np.ndarray, scale: np.ndarray):
        self.ensemble, self.names, self.alpha, self.scale = ensemble, list(names), alpha, scale

    def tensor(self, S: np.ndarray) -> np.ndarray:
        """Predictions (n, K, C) on scaled rows."""
        return predict_members(self.ensemble, self.names, S * self.scale)

    def probability(self, S: np.ndarray) -> np.ndarray:
        return np.einsum("nkc,k->nc", self.tensor(S), self.alpha)

    def label(self, S: np.ndarray) -> np.ndarray:
        return self.probability(S).argmax(axis=1)

    def slope(self, S: np.ndarray, label: np.ndarray) -> np.ndarray:
        """Gradient of -log f_label at scaled rows, (n, d)."""
        f = self.probability(S)
        u = np.zeros_like(f)
        rows = np.arange(len(S))
        u[rows, label] = -1 / np.maximum(f[rows, label], PARTS_FLOOR)
        total = np.zeros(S.shape)
        plain = replace(self.ensemble, sharpness=1.0)
        for name, weight in zip(self.names, self.alpha):
            P = predict_members(plain, [name], S * self.scale)[:, 0]
            said = through_temperature(P, 1 / self.ensemble.sharpness, u)
            total += weight * member_slope(plain, name, S * self.scale, said)
        return total * self.scale

    def loss_slope(self, label: np.ndarray) -> Gradient:
        return lambda S: self.slope(S, label)


def targets_of(model: Any, X: Any, scale: np.ndarray | None = None) -> tuple[dict[str, Target], np.ndarray]:
    """The blend and each member with weight as targets, and the rows divided by their scale."""
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "biuf":
        raise TypeError("attacks move numbers: give the model, and this function, a numeric array")
    table = X.astype(float)
    scale = np.nanstd(table, axis=0) if scale is None else np.asarray(scale, dtype=float)
    scale = np.where(scale > 0, scale, 1.0)
    ensemble, names = model.record_.ensemble, model.record_.support()
    alpha = model.weights_[names].to_numpy()
    members = {name: Target(ensemble, [name], np.ones(1), scale) for name in names}
    return {"blend": Target(ensemble, names, alpha, scale), **members}, table / scale


def member_slope(ensemble: Ensemble, name: str, X: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Gradient of u . f_name in the raw columns, through calibration, model and view, not sharpened; (n, d)."""
    calibration = ensemble.calibration[name]
    if calibration is not None:
        P = uncalibrated(ensemble, name, X)
        u = through_temperature(calibration.mixed(P), calibration.temperature, u) * (1 - calibration.prior_share)
    if not all(plain_view(ensemble, member) for member in ensemble.members[name]):
        return by_differences(Whole(ensemble, name), X, u)
    return np.mean([_model_slope(ensemble, name, member, X, u) for member in ensemble.members[name]], axis=0)


def uncalibrated(ensemble: Ensemble, name: str, X: np.ndarray) -> np.ndarray:
    """(n, C) what a specialist says before its calibration."""
    bare = replace(ensemble, calibration={**ensemble.calibration, name: None})
    return predict_members(bare, [name], X)[:, 0]


class Whole:
    """A specialist with its views, as a model of the raw columns."""

    def __init__(self, ensemble: Ensemble, name: str):
        self.ensemble, self.name = ensemble, name

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return uncalibrated(self.ensemble, self.name, X)


def plain_view(ensemble: Ensemble, member: Member) -> bool:
    """Whether the view has the columns of the table one by one, at most with indicators of missing values behind."""
    view = view_of(ensemble, member)
    return view is None or view.name in PLAIN_VIEWS


def view_of(ensemble: Ensemble, member: Member) -> Any:
    """The fitted view that a member reads; None for the table itself."""
    return None if member.view is None else ensemble.views.get(member.view)


def through_temperature(P: np.ndarray, T: float, u: np.ndarray) -> np.ndarray:
    """From slopes in softmax(log(P) / T) to slopes in P."""
    logits = np.log(np.maximum(P, FLOOR)) / T
    Q = np.exp(logits - logits.max(axis=1, keepdims=True))
    Q /= Q.sum(axis=1, keepdims=True)
    by_log = Q * (u - (Q * u).sum(axis=1, keepdims=True)) / T
    return np.where(P > FLOOR, by_log / np.maximum(P, FLOOR), 0.0)


def _read(ensemble: Ensemble, name: str, member: Member, X: np.ndarray) -> np.ndarray:
    """The matrix that a member reads: its view of the table, beside the predictions of level 1 for a stacker."""
    view = view_of(ensemble, member)
    Z = X if view is None else view.transform(X)
    if ensemble.specialists[name].level == 1:
        return Z
    features = stacker_features(predict_members(ensemble, ensemble.reads[name], X))
    return features if member.view is None else np.hstack([Z, features])


def _model_slope(ensemble: Ensemble, name: str, member: Member, X: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Gradient in the raw columns of one fitted model."""
    row, known = ensemble.specialists[name], getattr(member.model, "classes_", None)
    mine = u if known is None or ensemble.classes == 1 else u[:, coded(known, own_labels(row, ensemble.labels))]
    slope = pull_back(member.model, _read(ensemble, name, member, X), mine)
    if row.level == 1:
        return through_view(ensemble, member, slope, X.shape[1])
    width = len(ensemble.reads[name]) * ensemble.classes
    total = np.zeros(X.shape)
    if member.view is not None:
        total = through_view(ensemble, member, slope[:, :-width], X.shape[1])
    return total + _level_one_slope(ensemble, name, X, slope[:, -width:])


def _level_one_slope(ensemble: Ensemble, name: str, X: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """A stacker's slope in what it reads, carried on through the specialists of level 1."""
    P = predict_members(ensemble, ensemble.reads[name], X)
    slope = slope.reshape(P.shape)
    if ensemble.classes > 1:  # stackers read logarithms, cut below
        slope = np.where(P > LOG_FLOOR, slope / np.maximum(P, LOG_FLOOR), 0.0)
    return sum(member_slope(ensemble, read, X, slope[:, k]) for k, read in enumerate(ensemble.reads[name]))  # type: ignore[return-value]


def column_unit(ensemble: Ensemble, member: Member, d: int) -> np.ndarray:
    """The raw length of one step of each of the first d columns of a member's view."""
    view = view_of(ensemble, member)
    if view is None or view.unit is None or view.spread is None:
        return np.ones(d)
    return (view.unit * view.spread)[:d]


def through_view(ensemble: Ensemble, member: Member, slope: np.ndarray, d: int) -> np.ndarray:
    """From slopes in the view to slopes in the raw columns; indicators of missing values do not move."""
    return slope[:, :d] / column_unit(ensemble, member, d)


# -- certificates ----------------------------------------------------------------------------------------------------


def member_radius(ensemble: Ensemble, name: str, X: np.ndarray, scale: np.ndarray, norm: str) -> np.ndarray:
    """Scaled distance within which a member does not move, (n,); 0 where nothing is known."""
    if ensemble.specialists[name].level == 2:
        read = [member_radius(ensemble, one, X, scale, norm) for one in ensemble.reads[name]]
        return np.min(read, axis=0) if ensemble.members[name][0].view is None else np.zeros(len(X))
    if not all(plain_view(ensemble, member) for member in ensemble.members[name]):
        return np.zeros(len(X))
    radius = np.full(len(X), np.inf)
    for member in ensemble.members[name]:
        Z = _read(ensemble, name, member, X)
        unit = np.full(Z.shape[1], np.inf)  # indicators of missing values cannot be moved
        unit[: X.shape[1]] = column_unit(ensemble, member, X.shape[1]) / scale
        found = specialist_radius(member.model, Z, unit, norm)
        radius = np.minimum(radius, 0.0 if found is None else found)
    return radius


def certify(model: Any, X: Any, *, norm: str = "linf", scale: np.ndarray | None = None) -> pd.DataFrame:
    """For each row: the class, the immune weight, whether Theorem S6's condition holds, and two radii.

    `cell_radius`: no immune member moves within it. `radius`: the blend's class does not change within it, whatever
    the other members do (0 where that cannot be promised). A member is immune at a row when its radius there is > 0.
    """
    targets, S = targets_of(model, X, scale)
    blend = targets["blend"]
    radius = np.stack(
        [member_radius(blend.ensemble, n, S * blend.scale, blend.scale, norm) for n in blend.names], axis=1
    )
    P, immune = blend.tensor(S), radius > 0
    condition = [theorem_condition(P[[i]], blend.alpha, immune[i])[0] for i in range(len(P))]
    return pd.DataFrame(
        {
            "label": model.classes_[blend.label(S)],
            "immune_weight": immune @ blend.alpha,
            "theorem_condition": np.array(condition, dtype=bool),
            "cell_radius": np.where(immune, radius, np.inf).min(axis=1),
            "radius": certified_radius(P, blend.alpha, radius),
        }
    )


# -- attacks ---------------------------------------------------------------------------------------------------------

GRADIENT_ATTACKS = {"fgsm": fgsm, "pgd": pgd}


def gradient_attack(
    model: Any, X: Any, y: Any, epsilon: float, *, method: str = "pgd", scale: np.ndarray | None = None
) -> np.ndarray:
    """Rows moved by at most epsilon * scale in every column so as to raise the blend's loss on y; raw units."""
    targets, S = targets_of(model, X, scale)
    blend = targets["blend"]
    moved = GRADIENT_ATTACKS[method](blend.loss_slope(_codes(model, y)), S, epsilon)
    return moved * blend.scale


def attack_report(model: Any, X: Any, y: Any, *, epsilon: float = 0.1, scale: np.ndarray | None = None) -> pd.DataFrame:
    """Accuracy of the blend and of each member under attacks of length epsilon, one line each.

    `fgsm`, `pgd`: attacks along the target's own slope. `transfer`: rows moved against the other targets; the least
    accuracy. `mean_slope` 0 means that a gradient attack has nothing to follow, not that the target is robust.
    """
    targets, S = targets_of(model, X, scale)
    truth = _codes(model, y)
    moved = {
        name: {m: f(t.loss_slope(truth), S, epsilon) for m, f in GRADIENT_ATTACKS.items()}
        for name, t in targets.items()
    }
    lines = []
    for name, target in targets.items():
        score = lambda rows, target=target: float(np.mean(target.label(rows) == truth))
        others = [score(moved[other]["pgd"]) for other in targets if other != name]
        lines.append(
            {
                "target": name,
                "weight": 1.0 if name == "blend" else float(model.weights_[name]),
                "mean_slope": float(np.abs(target.slope(S, truth)).sum(axis=1).mean()),
                "clean": score(S),
                **{m: score(rows) for m, rows in moved[name].items()},
                "transfer": min(others),
            }
        )
    return pd.DataFrame(lines)


def black_box_distances(
    model: Any,
    X: Any,
    y: Any,
    *,
    scale: np.ndarray | None = None,
    max_iter: int = 10,
    max_eval: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """Scaled L2 distance to the adversarial row that HopSkipJump finds, for the blend and each member: (n, 1 + K').

    The attack only asks for labels, so it also reaches trees. Rows that a target gets wrong already have
    distance 0. Needs the extra "attack".
    """
    targets, S = targets_of(model, X, scale)
    truth = _codes(model, y)
    return pd.DataFrame({name: _hop_skip_jump(t, S, truth, max_iter, max_eval, seed) for name, t in targets.items()})


def _hop_skip_jump(
    target: Target, S: np.ndarray, truth: np.ndarray, max_iter: int, max_eval: int, seed: int
) -> np.ndarray:
    """The distances of one target."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from art.attacks.evasion import HopSkipJump
            from art.estimators.classification import BlackBoxClassifier
    except ImportError as error:
        raise ImportError("the black-box attack needs ART: install softlearning-bench[attack]") from error
    C = target.ensemble.classes
    wrapped = BlackBoxClassifier(lambda rows: np.eye(C)[target.label(rows)], S.shape[1:], C)
    right = target.label(S) == truth
    distance = np.zeros(len(S))
    if right.any():
        np.random.seed(seed)  # noqa: NPY002  ART draws from numpy's global state
        attack = HopSkipJump(wrapped, norm=2, max_iter=max_iter, max_eval=max_eval, init_eval=20, verbose=False)
        moved = attack.generate(S[right].astype(np.float64))
        length = np.linalg.norm(moved - S[right], axis=1)
        distance[right] = np.where(target.label(moved) != truth[right], length, np.inf)
    return distance


def _codes(model: Any, y: Any) -> np.ndarray:
    """Positions of labels in the model's classes."""
    return np.searchsorted(model.classes_, np.asarray(y))
