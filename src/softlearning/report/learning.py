"""Is more data worth it? The held-out loss of some quick specialists of the model, learnt from fewer rows and all.

The folds are those of the model, so every size is judged on the same rows; of each fold's training rows an eighth, a
quarter, a half and all are taken, the smaller within the larger. Losses of that blend L(m) that fall as a power of the
rows, L(m) = a + b m^-c, fall by steps of a constant ratio when m doubles: the next step is the last squared by the one
before. As a share of the loss it is not taken to be larger than the last.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from softlearning.library import Specialist
from softlearning.method.record import Record
from softlearning.report.curves import with_interval
from softlearning.uncertainty.errors import drawn_again

SHARES = (0.125, 0.25, 0.5, 1.0)  # of the training rows
PATIENCE = 20.0  # seconds for all of it, on one core
MOST = 3  # specialists
LEAST_ROWS = 40  # to learn from
DRAWS = 400  # bootstrap samples of the forecast


def learning_curve(model, X, y) -> dict[str, Any]:
    """Loss at each size with its interval, the fall from half to all, and the forecast for twice the rows, if any.

    X, y : the rows that the model was fitted on, in their order.
    """
    record: Record = model.record_
    chosen, training = quick(record), record.training
    splits = [[np.asarray(part) for part in split] for split in record.crossed.splits]
    shares = [s for s in SHARES if s * min(len(train) for train, _ in splits) >= LEAST_ROWS]
    if training.groups is not None and len(np.unique(training.groups)) < 2:
        return _none("rows of a single group show no error")
    if len(y) != training.rows:
        return _none(f"the model was fitted on {training.rows} rows, not on these {len(y)}")
    if not chosen or len(shares) < 3:
        return _none("too few rows" if chosen else f"no specialist is fitted often enough within {PATIENCE:.0f} s")
    ordered = [(nested(train, training, seed), test) for seed, (train, test) in enumerate(splits)]
    losses = np.column_stack([_losses(model, chosen, X, y, part(ordered, share)) for share in shares])
    rows = [int(np.mean([len(train) for train, _ in part(ordered, share)])) for share in shares]
    return {"why": "", "specialists": [s.name for s in chosen], **curve(record, losses, rows)}


def _none(why: str) -> dict[str, Any]:
    return {"why": why, "specialists": [], "points": [], "fall": None, "forecast": None}


def quick(record: Record) -> list[Specialist]:
    """The specialists of least risk among those that can be fitted at all sizes in the time there is."""
    left = PATIENCE / sum(SHARES)
    chosen: list[Specialist] = []
    for row in sorted(record.crossed.library.level(1), key=lambda s: record.risk(record.column(s.name))):
        seconds = sum(record.crossed.seconds.get(row.name, (np.inf,)))
        if seconds <= left and len(chosen) < MOST:
            chosen.append(row)
            left -= seconds
    return chosen


def nested(train: np.ndarray, training: Any, seed: int) -> np.ndarray:
    """The rows in an order of which every beginning is a fair sample: of the classes, or of whole groups."""
    rng = np.random.default_rng(seed)
    if training.groups is not None:
        group = np.unique(training.groups[train], return_inverse=True)[1]
        return train[np.argsort(rng.permutation(group.max() + 1)[group], kind="stable")]
    train = rng.permutation(train)
    kind = training.y[train] if training.task == "classification" else np.zeros(len(train))
    place = np.empty(len(train))
    for value in np.unique(kind):  # evenly along the order, each class by itself
        members = np.flatnonzero(kind == value)
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    return train[np.argsort(place, kind="stable")]


def part(splits: list, share: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """The same folds with the first of their training rows."""
    return [(np.sort(train[: round(share * len(train))]), test) for train, test in splits]


def _losses(model, chosen: list[Specialist], X, y, splits: list) -> np.ndarray:
    """(n,) losses of held-out rows: a blend of the chosen specialists, fitted on these splits."""
    own = dict.fromkeys(("metric", "threshold", "checkpoint", "engine", "time_limit", "memory_limit"))
    own |= {"library": chosen, "cv": splits, "refit": False, "loss": model.record_.loss, "n_jobs": 1, "progress": False}
    small = clone(model).set_params(**{name: own[name] for name in own.keys() & model.get_params(False).keys()})
    training = model.record_.training
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record = small.fit(X, y, sample_weight=training.weight, groups=training.groups).record_
    return record.losses(record.held_out.blend)


def curve(record: Record, losses: np.ndarray, rows: list[int]) -> dict[str, Any]:
    """From losses (n, sizes), smallest size first: points, the last fall, and the forecast for twice the rows."""
    held = record.held_out
    known = held.weight, held.groups
    points = [with_interval(losses[:, j], *known) | {"rows": m} for j, m in enumerate(rows)]
    before, last = (with_interval(losses[:, j] - losses[:, j + 1], *known) for j in (-3, -2))
    slowing = before["low"] > 0 and last["low"] > 0 and last["value"] < before["value"]
    forecast = _forecast(losses, known) if slowing else None
    return {"points": points, "fall": _share(last, points[-2]["value"]), "forecast": forecast}


def _share(line: dict[str, float], whole: float) -> dict[str, float]:
    return {name: value / whole if whole > 0 else 0.0 for name, value in line.items()}


def _forecast(losses: np.ndarray, known: tuple[Any, Any]) -> dict[str, float]:
    """Fall of the loss with twice the rows, as a share of the loss now; interval by drawing rows or groups again."""
    fall = lambda weight: _next_fall(np.average(losses, axis=0, weights=weight))
    low, high = np.quantile(
        [fall(weight) for weight in drawn_again(len(losses), *known, DRAWS)], [0.025, 0.975]
    ).tolist()
    return {"value": fall(known[0]), "low": low, "high": high}


def _next_fall(L: np.ndarray) -> float:
    before, last = L[-3] - L[-2], L[-2] - L[-1]
    if last <= 0:
        return 0.0
    return float(min(last * last / before / L[-1] if before > 0 else 1.0, last / L[-2]))
