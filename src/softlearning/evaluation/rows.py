"""Scores of a fitted model on the rows of a table that it has not seen, read part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from softlearning.data.messages import nearest
from softlearning.data.schema import read_target
from softlearning.evaluation import Evaluation, score_rows
from softlearning.evaluation.scoring import RANKED, RankedScorer, metric_name, ordered_places
from softlearning.method.prediction import Prediction

RARE = 10  # rows of a class from which its ranking is measured


def score_parts(
    models: dict[str, Any],
    parts: Iterable[tuple[pd.DataFrame, dict[str, Prediction]]],
    *,
    target: str | None = None,
    group: str | None = None,
    weight: str | None = None,
) -> tuple[Evaluation, list[str]]:
    """Scores with intervals; and what a reader has to know of them: rows that are not scored, or were trained on.

    models : one or several of one target, by name; the first is compared with the others, row by row. parts : rows, and
    what each model says of them. target, group, weight : columns; the target is the one that the model was fitted on
    unless another is named.
    """
    model = next(iter(models.values()))
    if len({tuple(map(str, getattr(m, "classes_", ()))) for m in models.values()}) > 1:
        raise ValueError("the models know different classes: they cannot be compared on the same rows")
    roles = {"target": target or model.record_.training.target_name, "group": group, "weight": weight}
    if not roles["target"]:
        raise ValueError("the model does not know what its target was called: name the column")
    found: dict[str, list[np.ndarray]] = {role: [] for role, name in roles.items() if name}
    predicted: dict[str, list[np.ndarray]] = {name: [] for name in models}
    answered: dict[str, list[np.ndarray]] = {name: [] for name in models}
    read: dict[str, Callable[[pd.Series], np.ndarray]] = {
        "target": partial(truth, model), "group": pd.Series.to_numpy, "weight": weights,
    }  # fmt: skip
    for frame, answers in parts:
        for role, columns in found.items():
            column = named(frame, str(roles[role]))
            columns.append(read[role](column))
        for name, said in answers.items():
            predicted[name].append(said.value[:, None] if said.probability is None else said.probability)
            answered[name].append(said.value)
    taken = {role: np.concatenate(columns) for role, columns in found.items()}
    known, y = np.isfinite(taken["target"]), taken["target"]
    if not known.any():
        raise ValueError("no row has a target that the model knows: there is nothing to score")
    scores = score_rows(
        y[known],
        {name: np.concatenate(P)[known] for name, P in predicted.items()},
        usual_metrics(model, y[known]),
        classes=np.arange(len(model.classes_)) if model.record_.task == "classification" else None,
        groups=taken["group"][known] if group else None,
        sample_weight=taken["weight"][known] if weight else None,
        labels={
            name: np.searchsorted(m.classes_, np.concatenate(answered[name])[known])
            for name, m in models.items()
            if getattr(m, "decision_", None) is not None
        },
    )
    notes = []
    if not known.all():
        notes.append(f"{(~known).sum()} rows have no target, or a class the model never saw: not scored")
    if any(fitted_on(m, y[known]) for m in models.values()):
        notes.append("a model was fitted on these rows, and remembers them: score rows that it has not seen")
    return scores, notes


def fitted_on(model: Any, y: np.ndarray) -> bool:
    """Whether these are the answers, as numbers or places among the classes, that the model learnt from."""
    Y = model.record_.training.target
    return np.array_equal(Y[:, 0] if model.record_.task == "regression" else Y.argmax(axis=1), y)


def named(frame: pd.DataFrame, name: str) -> pd.Series:
    """The column of this name, or an error with the nearest one."""
    if name not in frame.columns:
        raise ValueError(f"the table has no column {name!r}; {nearest(name, frame.columns)}")
    return frame[name]


def weights(column: pd.Series) -> np.ndarray:
    """A column of weights, which may be strings that are numbers."""
    found = read_target(column)
    if found.dtype.kind not in "biuf":
        raise ValueError(f"column `{column.name}` cannot weigh rows: {found.iloc[0]!r} is not a number")
    return found.to_numpy(float)


def truth(model: Any, column: pd.Series) -> np.ndarray:
    """The target as numbers or places among the classes; NaN where it is missing or a class is unknown."""
    y, found = read_target(column), np.full(len(column), np.nan)
    known = y.notna().to_numpy()
    if model.record_.task == "regression":
        found[known] = y[known].astype(float)
    else:
        place = {str(label): code for code, label in enumerate(model.classes_)}
        found[known] = [place.get(str(label), np.nan) for label in as_labels(y[known])]
    return found


def as_labels(y: pd.Series) -> pd.Series:
    """Classes: whole numbers that a missing value had turned to floats are whole again."""
    if y.dtype.kind != "f":
        return y
    return y.astype(int) if (y == y.round()).all() else y.astype(str)


def usual_metrics(model: Any, y: np.ndarray) -> dict[str, Any]:
    """What the model aims at; log loss, accuracy and for two classes the area under the ROC curve; or RMSE and R2."""
    aimed = [metric_name(model.metric_)] if isinstance(model.metric_, str) else []
    usual = ["neg_root_mean_squared_error", "r2"]
    if model.record_.task == "classification":
        two = len(model.classes_) == 2 and min((y == 0).sum(), (y == 1).sum()) >= RARE
        usual = ["neg_log_loss", "accuracy", *(["roc_auc"] if two else [])]
    metrics: dict[str, Any] = {name: name for name in [*aimed, *usual]}
    if RANKED in metrics:
        order = ordered_places(getattr(model, "class_order_", None), model.classes_)
        metrics[RANKED] = RankedScorer(tuple(order.tolist()))
    return metrics
