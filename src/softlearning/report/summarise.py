"""Everything a report says about a fitted model, as one dict of plain data: numbers first, the page later.

All scores are honest: a row's prediction comes from specialists that never saw it, under weights learnt without its
fold. Nothing is fitted here, and X and y are needed for the importance of the columns alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from softlearning.data.inputs import frame_or_array, is_frame
from softlearning.data.schema import summary as table_summary
from softlearning.data.versions import versions
from softlearning.method.record import Record, score_of
from softlearning.report import curves
from softlearning.uncertainty.diversity import effective_opinions, effective_specialists, error_correlation
from softlearning.weights import row_losses
from softlearning.weights.reasons import Reason, bootstrap_weights, permutation_importance, why_these_weights

SCORE_NAMES = {"classification": "accuracy", "regression": "R²"}
LOSS_NAMES = {
    ("classification", "squared"): "squared error of the probabilities (Brier)",
    ("classification", "log"): "log loss",
    ("regression", "squared"): "mean squared error",
}
DRAWS = 200  # bootstrap samples of the weights
WORK = 4e9  # multiplications to spend on them
SAMPLE = 300  # rows for the importance of columns
PATIENCE = 15.0  # seconds for it


def summarise_model(model, *, X=None, y=None, command: str | None = None) -> dict[str, Any]:
    """Answer, comparisons, weights, curves, table, failures, times and versions of a fitted model.

    Parameters
    ----------
    model : SoftClassifier or SoftRegressor, fitted
    X, y : rows like the training rows, for the importance of the columns; a sample of them is used
    command : what was typed to make the model, shown at the end of the page
    """
    check_is_fitted(model)
    record: Record = model.record_
    if record.crossed.oof is None:
        raise ValueError("this model was saved without its out-of-fold predictions, which a report is made from")
    p, V, fold = honest_predictions(model)
    Y, weight = record.held_out.target, record.held_out.weight
    classes = [str(c) for c in getattr(model, "classes_", [])]
    few = len(np.unique(fold)) < 2
    summary = {
        "task": record.training.task,
        "kind": type(model).__name__,
        "classes": classes,
        "answer": answer(model, p, Y, weight),
        "comparisons": comparisons(model, p),
        "families": [{"family": str(f), "weight": float(w)} for f, w in model.family_weights_.items() if w > 0],
        "weights": weight_lines(model),
        "leaderboard": leaderboard_lines(model),
        "certificate": certificate(model),
        "calibration": curves.calibration(p, Y, weight) if classes else None,
        "confusion": curves.confusion(p, Y, classes) if classes else None,
        "residuals": None if classes else curves.residuals(p[:, 0], Y[:, 0]),
        "doubt": curves.doubt(V, curves.row_errors(p, Y)) if len(record.support()) > 1 else None,
        "coverage": [] if few else curves.coverage(p, Y, V, fold, weight),
        "diversity": diversity(model),
        "importance": None if X is None or y is None else importance(model, X, y),
        "failures": failures(model),
        "table": table_summary(record.training.schema),
        "provenance": provenance(model, command),
    }
    return finite(summary)


def finite(value: Any) -> Any:
    """The same plain data with None for what is no number: the R² of a constant target."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def honest_predictions(model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Blend (n, C), disagreement (n,) and fold (n,) of the rows that some fold held out."""
    record: Record = model.record_
    held = record.held_out
    return held.blend, held.disagreement, held.fold


# -- the answer -------------------------------------------------------------------------------------------------------


def answer(model, p: np.ndarray, Y: np.ndarray, weight: np.ndarray | None) -> dict[str, Any]:
    """How good the blend is on rows it has not seen, with a 95 % interval."""
    task = model.record_.training.task
    score = score_of(p, Y, weight)
    if task == "classification":
        low, high = curves.wilson(score, curves.effective_rows(weight, len(p)))
    else:
        low, high = curves.r2_interval(Y[:, 0] - p[:, 0], Y[:, 0], weight)
    schema = model.record_.training.schema
    return {
        "score_name": SCORE_NAMES[task],
        "score": float(score),
        "low": low,
        "high": high,
        "loss_name": LOSS_NAMES[task, model.record_.solution.loss],
        "loss": float(np.average(losses(model, p), weights=weight)),
        "rows": schema.rows,
        "columns": schema.width,
        "folds": len(model.folds_),
    }


def losses(model, p: np.ndarray) -> np.ndarray:
    """The model's own loss of predictions p (n, C) in each out-of-fold row; (n,)."""
    return row_losses(p[:, None, :], model.record_.held_out.target, np.ones(1), loss=model.record_.solution.loss)


def comparisons(model, p: np.ndarray) -> list[dict[str, Any]]:
    """The blend against its best specialist, against picking one, equal weights and the trivial answer.

    The best specialist is known in hindsight; the pick is made, like the weights, without the fold it is scored on.
    """
    record: Record = model.record_
    P, Y, weight = record.of_rows(record.crossed.oof), record.held_out.target, record.held_out.weight
    best = record.comparison.rival
    trivial = np.broadcast_to(np.average(Y, axis=0, weights=weight), Y.shape)
    rivals = {
        "best": (f"best single specialist in hindsight ({best})", P[:, record.crossed.columns([best])[0]]),
        "pick": (
            "the specialist that looks best on the other folds",
            record.held_out_under("best").blend,
        ),
        "uniform": ("all specialists with equal weights", P.mean(axis=1)),
        "trivial": (f"always the same answer ({'class shares' if Y.shape[1] > 1 else 'the mean'})", trivial),
    }
    return [{"key": key, **_against(model, name, p, rival)} for key, (name, rival) in rivals.items()]


def _against(model, name: str, p: np.ndarray, rival: np.ndarray) -> dict[str, Any]:
    """Mean fall of the loss from rival to blend, paired by rows, with a 95 % interval and a word for it."""
    record: Record = model.record_
    Y, weight = record.held_out.target, record.held_out.weight
    gain, low, high = curves.mean_interval(losses(model, rival) - losses(model, p), weight)
    loss = float(np.average(losses(model, rival), weights=weight))
    return {
        "name": name,
        "score": float(score_of(rival, Y, weight)),
        "loss": loss,
        "gain": gain,
        "low": low,
        "high": high,
        "share": gain / loss if loss > 0 else 0.0,
        "verdict": "better" if low > 0 else "worse" if high < 0 else "no clear difference",
    }


# -- the weights ------------------------------------------------------------------------------------------------------


def weight_lines(model) -> list[dict[str, Any]]:
    """Every specialist that finished: weight, bootstrap interval and the reason for the weight; heaviest first."""
    record: Record = model.record_
    names, alpha = record.crossed.library.names, record.solution.weights
    P, Y, weight = record.of_rows(record.crossed.oof), record.held_out.target, record.held_out.weight
    family = {s.name: s.family for s in record.crossed.library}
    drawn = bootstrap_weights(
        P,
        Y,
        rule=model.record_.rule,
        loss=model.record_.solution.loss,
        sample_weight=weight,
        folds=record.held_out.fold,
        draws=_draws(model, P),
    )
    place = {name: k for k, name in enumerate(names)}
    return [
        {
            "specialist": reason.specialist,
            "family": family[reason.specialist],
            "weight": reason.weight,
            "low": float(drawn.low[place[reason.specialist]]),
            "high": float(drawn.high[place[reason.specialist]]),
            "share": float(drawn.share_positive[place[reason.specialist]]),
            "reason": in_words(reason),
        }
        for reason in why_these_weights(names, P, Y, alpha, sample_weight=weight)
    ]


def _draws(model, P: np.ndarray) -> int:
    """As many bootstrap samples as a few seconds allow; rules without a Gram matrix cost far more each."""
    n, K, C = P.shape
    quick = model.record_.rule == "simplex" and model.record_.solution.loss == "squared"
    return int(np.clip(WORK / (n * K * K * C * (1 if quick else 50)), 20, DRAWS))


def in_words(reason: Reason) -> str:
    """Why a specialist has its weight, as a sentence."""
    if reason.word == "earns":
        return "earns its weight" if np.isfinite(reason.worth) else "the only specialist"
    words = {
        "duplicate": f"predicts the same as {reason.other}",
        "dominated": f"nothing to add to {reason.other}",
        "not needed": "the others together leave it nothing to add",
    }
    return words.get(reason.word, reason.word)


def leaderboard_lines(model) -> list[dict[str, Any]]:
    return [{str(k): v for k, v in line.items()} for line in model.leaderboard_.to_dict("records")]


def certificate(model) -> dict[str, Any]:
    solution = model.record_.solution
    return {
        "rule": solution.rule,
        "loss": solution.loss,
        "objective": float(solution.objective),
        "gap": float(solution.gap),
        "unique": bool(solution.unique),
        "effective": effective_specialists(solution.weights),
    }


def diversity(model) -> dict[str, Any]:
    """Correlation of the errors of the specialists that finished, heaviest first."""
    record: Record = model.record_
    order = np.argsort(-record.solution.weights, kind="stable")
    correlation = error_correlation(record.of_rows(record.crossed.oof)[:, order], record.held_out.target)
    names = [record.crossed.library.names[k] for k in order]
    return {"names": names, "correlation": correlation.tolist(), "opinions": effective_opinions(correlation)}


# -- the columns ------------------------------------------------------------------------------------------------------


def importance(model, X, y) -> dict[str, Any]:
    """Rise of the loss when a column is shuffled, on a sample of the given rows; largest first.

    Tables too wide for the time there is get the reason instead of numbers.
    """
    X = frame_or_array(X) if is_frame(X) else X
    rows = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:SAMPLE])
    X = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    codes = model._encode_again(np.asarray(y)[rows])
    predict, target = _predictor(model, codes)
    start = time.perf_counter()
    predict(X)
    seconds = max(time.perf_counter() - start, 1e-6)
    repeats = int(min(5, PATIENCE / (seconds * X.shape[1])))
    if repeats < 1:
        return {"columns": [], "rows": len(rows), "why": f"{X.shape[1]} columns would take too long"}
    found = permutation_importance(predict, X, target, repeats=repeats)
    names = list(getattr(X, "columns", [f"x{j}" for j in range(X.shape[1])]))
    order = np.argsort(-found.mean, kind="stable")
    lines = [{"column": str(names[j]), "mean": float(found.mean[j]), "std": float(found.std[j])} for j in order]
    return {"columns": lines, "rows": len(rows), "base": found.base_loss, "why": ""}


def _predictor(model, codes: np.ndarray) -> tuple[Callable, np.ndarray]:
    """The function whose squared error is watched, and its target."""
    if model.record_.training.task == "classification":
        return model.predict_proba, np.eye(len(model.classes_))[codes]
    return model.predict, codes


# -- what happened ----------------------------------------------------------------------------------------------------


def failures(model) -> list[dict[str, Any]]:
    """What failed and what was left out, each with its reason in one line."""
    crossed = model.record_.crossed
    lines = [(f.specialist, _where(f.fold), first_line(f.error), float(f.seconds)) for f in crossed.failures]
    lines += [(name, "left out", why, 0.0) for name, why in crossed.skipped.items()]
    return [dict(zip(("specialist", "where", "why", "seconds"), line)) for line in lines]


def _where(fold: int | str) -> str:
    return "refit" if fold == "refit" else f"fold {fold}"


def first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no reason given"


def provenance(model, command: str | None) -> dict[str, Any]:
    """Versions, settings, seconds and the moment: what is needed to make the model again."""
    settings = model.get_params(deep=False)
    seconds = model.record_.crossed.seconds
    return {
        "command": command or "",
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "settings": {name: _short(value) for name, value in settings.items()},
        "versions": versions(),
        "fit_seconds": float(sum(fit for fit, _ in seconds.values())),
        "predict_seconds": float(sum(predict for _, predict in seconds.values())),
        "refit_seconds": float(sum(model.record_.ensemble.seconds.values())),
    }


def _short(value: Any, most: int = 120) -> str:
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"
