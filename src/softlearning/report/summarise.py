"""Everything a report says about a fitted model, as one dict of plain data: numbers first, the page later.

All scores are of held-out rows: a row's prediction comes from specialists that never saw it, under weights learnt
without its fold. Nothing is fitted here, but for the learning curve where it is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from softlearning.data.schema import summary as table_summary
from softlearning.data.versions import versions
from softlearning.evaluation.aims import aim_of, said_held_out
from softlearning.evaluation.scoring import as_read, spoken
from softlearning.execution import one_thread
from softlearning.method.crossfit import read_by, weigh
from softlearning.method.record import Record, score_of
from softlearning.method.usefulness import useless
from softlearning.report import columns, curves, learning
from softlearning.uncertainty.diversity import effective_errors, effective_specialists, error_correlation
from softlearning.uncertainty.errors import drawn_again
from softlearning.weights.reasons import Reason, why_these_weights

SCORE_NAMES = {"classification": "accuracy", "regression": "R²"}
LOSS_NAMES = {
    ("classification", "squared"): "squared error of the probabilities (Brier)",
    ("classification", "log"): "log loss",
    ("regression", "squared"): "mean squared error",
}
DRAWS = 50  # bootstrap samples of the weights
WORK = 1e8  # numbers to go through for them


def summarise_model(
    model,
    *,
    X=None,
    y=None,
    command: str | None = None,
    draws: int = DRAWS,
    name: str = "",
    learning_curve: tuple[Any, Any] | None = None,
    tell: Callable[..., None] = lambda stage, seconds=None: None,
) -> dict[str, Any]:
    """Answer, comparisons, weights, curves, table, failures, times and versions of a fitted model.

    Parameters
    ----------
    model : SoftClassifier or SoftRegressor, fitted
    X, y : rows that the model has not seen, for what is told of the columns; a sample of them is used
    command : what was typed to make the model, shown at the end of the page
    draws : bootstrap samples for the intervals of the weights, at most; 0 for none
    name : of the table, for the title
    learning_curve : X and y that the model was fitted on, to tell whether more rows would help; quick specialists are
        fitted again on fewer rows, for about 20 seconds at most
    tell : hears what is going on, and the seconds that it may take where that is known
    """
    check_is_fitted(model)
    record: Record = model.record_
    if record.crossed.oof is None:
        raise ValueError("this model was saved without its out-of-fold predictions, which a report is made from")
    with one_thread:
        tell("Reading the held-out rows")
        summary = {"name": name, **of_held_out_rows(model, record)}
        summary["weights"] = weight_lines(record, draws, tell)
        summary |= of_columns(model, X, y, tell)
        summary["learning"] = None
        if learning_curve is not None:
            if not isinstance(learning_curve, tuple | list) or len(learning_curve) != 2:
                raise ValueError("learning_curve is a pair, the X and y that the model was fitted on")
            tell("Is more data worth it", learning.PATIENCE)
            summary["learning"] = learning.learning_curve(model, *learning_curve)
        summary["provenance"] = provenance(model, command)
    return finite(summary)


def of_held_out_rows(model, record: Record) -> dict[str, Any]:
    """All that out-of-fold predictions tell."""
    held, classes = record.held_out, [str(c) for c in getattr(model, "classes_", [])]
    said = answered(model, record)
    return {
        "task": record.task,
        "kind": type(model).__name__,
        "target": record.training.target_name,
        "classes": classes,
        "answer": {**answer(record, said), "metric": asked_for(model)},
        "aim": aim(model),
        "useless": useless(record),
        "comparisons": comparisons(record),
        "families": [{"family": str(f), "weight": float(w)} for f, w in model.family_weights_.items() if w > 0],
        "leaderboard": leaderboard_lines(model),
        "stackers": stackers(record),
        "certificate": certificate(record),
        "calibration": curves.calibration(held) if classes else None,
        "confusion": curves.confusion(held, said, classes) if classes else None,
        "per_class": curves.per_class(held, said, classes) if classes else [],
        "ranking": curves.ranking(held, model.threshold_) if len(classes) == 2 else None,
        "residuals": None if classes else curves.residuals(held),
        "uncertainty": curves.uncertainty(held, said),
        "coverage": curves.coverage(held) if len(np.unique(held.fold)) > 1 else [],
        "diversity": diversity(record),
        "failures": failures(record),
        "table": table_summary(record.training.schema),
        "times": times(record),
    }


def of_columns(model, X, y, tell: Callable[..., None]) -> dict[str, Any]:
    """Importance of the columns, and answers and errors along the strongest; nothing without rows of their own."""
    if X is None or y is None:
        return {"importance": None, "along": [], "slices": []}
    tell("Which columns matter", columns.PATIENCE)
    found = columns.importance(model, X, y)
    tell("Answers and errors along the strongest columns", columns.PATIENCE)
    strongest = [line["column"] for line in found["columns"] if line["mean"] > 0]
    along = columns.along(model, X, y, strongest)
    worse = [] if found["why"] == columns.SEEN else columns.slices(model, X, y)
    return {"importance": found, "along": along, "slices": worse}


def answered(model, record: Record) -> np.ndarray:
    """(n,) places of the labels of held-out rows; a threshold, where there is one, is learnt without the row's fold."""
    aim = None if model.metric is None else aim_of(model.metric, record.task)
    return said_held_out(record, getattr(model, "threshold", None), aim)


def finite(value: Any) -> Any:
    """The same plain data with None for what is no number: the R² of a constant target."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


# -- the answer -------------------------------------------------------------------------------------------------------


def answer(record: Record, said: np.ndarray) -> dict[str, Any]:
    """How good the blend is on rows it has not seen, with a 95 % interval; regression also in the target's unit."""
    held, schema = record.held_out, record.training.schema
    if record.task == "classification":
        score, rmse = curves.share(1 - curves.row_errors(held, said), held.weight, held.groups), None
    else:
        score, rmse = curves.r2(held), curves.rmse(held)
    return {
        "score_name": SCORE_NAMES[record.task],
        **score,
        "rmse": rmse,
        "loss_name": LOSS_NAMES.get((record.task, record.loss), f"{record.loss} loss"),
        "loss": record.comparison.risk,
        "rows": schema.rows,
        "columns": schema.width,
        "folds": len(record.crossed.splits),
        "groups": None if held.groups is None else len(np.unique(held.groups)),
        "weighted": held.weight is not None,
    }


def asked_for(model) -> dict[str, Any] | None:
    """The metric that was asked for on the held-out rows, with its interval; a loss as a loss."""
    return None if model.metric_ is None else as_read(model.cv_score_)


def aim(model) -> dict[str, Any] | None:
    """Where weights and labels come from, where the user aims at something."""
    decision = getattr(model, "decision_", None)
    if model.metric_ is None and decision is None:
        return None
    return {
        "metric": None if model.metric_ is None else spoken(str(model.cv_score_["metric"]))[0],
        "verdict": model.verdict_,
        "weights": getattr(model, "aim_", ""),
        "threshold": None if decision is None else decision.threshold,
        "decision": "" if decision is None else decision.words,
    }


def comparisons(record: Record) -> dict[str, dict[str, Any]]:
    """The blend against the oracle, against picking one specialist, equal weights and the trivial answer.

    Oracle and pick are single specialists of level 1. The oracle knows which is best on these very rows; the pick is
    made, like the weights, without the fold it is scored on, and so never has less loss.
    """
    held, oracle = record.held_out, record.comparison.rival
    trivial = np.broadcast_to(np.average(held.target, axis=0, weights=held.weight), held.target.shape)
    return {
        "oracle": _against(record, record.column(oracle), oracle),
        "pick": _against(record, picked(record)),
        "uniform": _against(record, record.pooled.mean(axis=1)),
        "trivial": _against(record, trivial),
    }


def picked(record: Record) -> np.ndarray:
    """(n, C) held-out predictions of the single specialist with the least loss on the other folds."""
    held, names = record.held_out, record.crossed.library.level(1).names
    losses = np.column_stack([record.losses(record.column(name)) for name in names])
    weighted = losses if held.weight is None else losses * held.weight[:, None]
    best = np.empty_like(held.blend)
    for v in np.unique(held.fold):
        rows = held.fold == v
        rest = ~rows if (~rows).any() else rows
        best[rows] = record.column(names[int(weighted[rest].sum(axis=0).argmin())])[rows]
    return best


def _against(record: Record, rival: np.ndarray, name: str = "") -> dict[str, Any]:
    """Mean fall of the loss from rival to blend, paired by rows, groups counted as one."""
    c = record.compared(rival, name)
    return {
        "rival": c.rival,
        "score": score_of(rival, record.held_out.target, record.held_out.weight),
        "loss": c.rival_risk,
        "gain": c.gain,
        "error": c.error,
        "low": c.gain - c.reach * c.error,
        "high": c.gain + c.reach * c.error,
        "share": c.gain / c.rival_risk if c.rival_risk > 0 else 0.0,
        "better": c.better,
        "worse": c.worse,
    }


# -- the weights ------------------------------------------------------------------------------------------------------


def weight_lines(record: Record, draws: int, tell: Callable[..., None]) -> list[dict[str, Any]]:
    """Weight and bootstrap interval of every specialist that finished, heaviest first."""
    alpha = dict(zip(record.crossed.library.names, record.solution.weights.tolist()))
    spans = intervals(record, record.pooled, draws, tell)
    heaviest = sorted(alpha, key=lambda name: -alpha[name])
    return [{"specialist": n, "weight": alpha[n], "low": spans[n][0], "high": spans[n][1]} for n in heaviest]


def intervals(record: Record, P: np.ndarray, draws: int, tell: Callable[..., None] = lambda *_: None) -> dict[str, Any]:
    """95 % bootstrap interval of each weight: rows, or whole groups, are drawn again and the weights solved anew."""
    library, held = record.crossed.library, record.held_out
    if not draws:
        return dict.fromkeys(library.names, (None, None))
    number, drawn, start = int(np.clip(WORK / (P.size * P.shape[1]), min(20, draws), draws)), [], time.monotonic()
    for n, weight in enumerate(drawn_again(len(P), held.weight, held.groups, number)):
        if n == 1:  # now it is known what one takes
            tell("Intervals of the weights", (number - 1) * (time.monotonic() - start))
        drawn.append(weigh(P, held.target, library, record.rule, record.loss, weight).weights)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0).tolist()
    return dict(zip(library.names, zip(low, high)))


def in_words(reason: Reason) -> str:
    """Why a specialist has its weight, as a sentence."""
    words = {
        "only": "the only specialist",
        "earns": "earns its weight",
        "duplicate": f"predicts the same as {reason.other}",
        "dominated": f"nothing to add to {reason.other}",
        "not needed": "the others together leave it nothing to add",
    }
    return words[reason.word]


def leaderboard_lines(model) -> list[dict[str, Any]]:
    """The specialists that finished, with their weight also through stackers, and why; `failures` has the others."""
    record: Record = model.record_
    names, alpha, held = record.crossed.library.names, record.solution.weights, record.held_out
    effective = dict(zip(names, record.handed_down(alpha).tolist()))
    reasons = why_these_weights(names, record.pooled, held.target, alpha, sample_weight=held.weight)
    why = {reason.specialist: in_words(reason) for reason in reasons}
    sign = 1 if model.metric_ is None else spoken(str(model.cv_score_["metric"]))[1]
    board = model.leaderboard_ if sign > 0 else model.leaderboard_.assign(cv_score=-model.leaderboard_["cv_score"])
    lines = ({str(k): v for k, v in line.items()} for line in board.to_dict("records"))
    return [
        {**line, "effective": effective[line["specialist"]], "reason": why[line["specialist"]]}
        for line in lines
        if line["specialist"] in effective
    ]


def stackers(record: Record) -> list[dict[str, Any]]:
    """For each stacker with weight: the specialists it reads, in the shares in which its weight is handed down."""
    library, lines = record.crossed.library, []
    for k, s in enumerate(library):
        weight = float(record.solution.weights[k])
        if s.level == 2 and weight > 0:
            alone = np.zeros(len(library))
            alone[k] = 1.0
            shares = dict(zip(library.names, record.handed_down(alone).tolist()))
            reads = sorted(((n, shares[n]) for n in read_by(s, library) if shares[n] > 0), key=lambda pair: -pair[1])
            lines.append({"stacker": s.name, "weight": weight, "reads": [{"name": n, "share": v} for n, v in reads]})
    return lines


def certificate(record: Record) -> dict[str, Any]:
    """What is proved of the weights, what of the exact optimum, and the share of weight that lies between the two."""
    solution, exact = record.solution, record.exact
    return {
        "rule": solution.rule,
        "objective": float(solution.objective),
        "gap": float(solution.gap),
        "unique": bool(solution.unique),
        "exact_objective": float(exact.objective),
        "exact_gap": float(exact.gap),
        "moved": float(np.abs(solution.weights - exact.weights).sum() / 2),
        "effective": effective_specialists(solution.weights),
    }


def diversity(record: Record) -> dict[str, Any]:
    """Correlation of the errors of the specialists that finished, heaviest first."""
    order = np.argsort(-record.solution.weights, kind="stable")
    correlation = error_correlation(record.pooled[:, order], record.held_out.target)
    names = [record.crossed.library.names[k] for k in order]
    return {"names": names, "correlation": correlation.tolist(), "independent": effective_errors(correlation)}


# -- what happened ----------------------------------------------------------------------------------------------------


def failures(record: Record) -> list[dict[str, Any]]:
    """What failed and what was skipped, once per specialist, with the first reason in one line."""
    found: dict[str, dict[str, Any]] = {}
    for f in record.crossed.failures:
        line = {"specialist": f.specialist, "what": FAILED.get(f.kind, "failed"), "why": first_line(f.error)}
        found.setdefault(f.specialist, line | {"seconds": float(f.seconds)})
    for name, why in record.crossed.skipped.items():
        found.setdefault(name, {"specialist": name, "what": "skipped", "why": why, "seconds": 0.0})
    return list(found.values())


def times(record: Record) -> list[dict[str, Any]]:
    """Seconds of one core by specialist: its folds, and its final fit; longest first."""
    final = record.ensemble.seconds
    lines = [
        {"specialist": name, "folds": float(fit + predict), "final": float(final.get(name, 0.0))}
        for name, (fit, predict) in record.crossed.seconds.items()
    ]
    return sorted(lines, key=lambda line: -line["folds"] - line["final"])


FAILED = {"timeout": "out of time", "memory": "out of memory", "crash": "crashed"}  # kind of failure -> its word


def first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no reason given"


def provenance(model, command: str | None) -> dict[str, Any]:
    """Versions, settings, seconds and the moment: what is needed to make the model again."""
    seconds = model.record_.crossed.seconds
    return {
        "command": command or "",
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "settings": {name: _short(value) for name, value in model.get_params(deep=False).items()},
        "versions": versions(),
        "fit_seconds": float(sum(fit for fit, _ in seconds.values())),
        "predict_seconds": float(sum(predict for _, predict in seconds.values())),
        "refit_seconds": float(sum(model.record_.ensemble.seconds.values())),
    }


def _short(value: Any, most: int = 120) -> str:
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"
