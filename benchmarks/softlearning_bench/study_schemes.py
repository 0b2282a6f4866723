"""Ways to combine cached predictions, as rows of a table, and what each gives on the test part.

A scheme is: which rows of level 1, how they are calibrated, which stackers of level 2 read them, which rule and loss
find the weights. Everything is worked out from the cache with the functions that the estimators use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import roc_auc_score

from softlearning.data.views import fit_view
from softlearning.library import PAPER, TREE_STACK, Shape, every_row, named
from softlearning.library import recipes as shipped
from softlearning.library.stackers import LogPool, SharpenedPool
from softlearning.method.crossfit import Data, admitted
from softlearning.method.fitting import predict_tensor, stacker_features, take
from softlearning.method.folds import fold_of_row
from softlearning.uncertainty.temperature import apply_temperature, fit_temperature
from softlearning.weights import FLOOR, RULES, held_out_risk, row_losses, solve_weights
from softlearning_bench.fits import Fits, Fitted
from softlearning_bench.study import StudyCell


@dataclass
class Cached:
    """What the cache holds of a cell: `oof` (n, K, C), `test` and, if it was kept, `bagged` (m, K, C).

    `memo` keeps stackers that several schemes share.
    """

    cell: StudyCell
    names: list[str]
    oof: np.ndarray
    test: np.ndarray
    bagged: np.ndarray | None
    fitted: dict[str, Fitted]
    failures: dict[str, str]
    memo: dict[Any, Any] = field(default_factory=dict)

    def columns(self, names) -> list[int]:
        return [self.names.index(name) for name in names if name in self.names]

    def has(self, rows) -> bool:
        """Whether the cache knows, of each of these rows, what it predicts or why it could not."""
        wanted = admitted(every_row(self.cell.of.task)[rows], self.cell.data.rows)[0].names
        return set(wanted) <= set(self.names) | set(self.failures)

    @property
    def target(self) -> np.ndarray:
        return self.cell.data.target

    @property
    def fold(self) -> np.ndarray:
        return fold_of_row(self.cell.splits, len(self.target))


def open_cached(cell: StudyCell, folder: Path) -> Cached:
    known = Fits(cell, folder).everything()
    good = {name: fitted for name, fitted in known.items() if not fitted.error}
    tensor = lambda part: np.stack([getattr(fitted, part) for fitted in good.values()], axis=1)
    bagged = tensor("bagged") if all(fitted.bagged is not None for fitted in good.values()) else None
    failures = {name: fitted.error for name, fitted in known.items() if fitted.error}
    return Cached(cell, list(good), tensor("oof"), tensor("test"), bagged, good, failures)


# -- level 2 ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stacker:
    """A candidate of level 2: an estimator, whether it reads X beside predictions, and what it is for."""

    make: Callable[[Shape], Any]
    beside: bool = False
    tasks: tuple[str, ...] = ("classification",)
    min_rows: int = 0

    def suits(self, data: Data) -> bool:
        return data.task in self.tasks and data.rows >= self.min_rows


BOTH = ("classification", "regression")
STACKERS = {
    "log_pool": Stacker(shipped.log_pool),
    "log_pool_10": Stacker(lambda shape: LogPool(shape.outputs, shrink=10.0)),
    "logistic_stack": Stacker(shipped.logistic_stack),
    "sharpened": Stacker(lambda shape: SharpenedPool(shape.outputs)),
    "logistic_.001": Stacker(lambda shape: LogisticRegression(C=0.001, max_iter=500)),
    "logistic_.01": Stacker(lambda shape: LogisticRegression(C=0.01, max_iter=500)),
    "tree_stack": Stacker(TREE_STACK.make, beside=True, tasks=BOTH, min_rows=TREE_STACK.min_rows),
    "ridge": Stacker(lambda shape: RidgeCV(np.logspace(-1, 4, 11)), tasks=("regression",)),
    "signed_stack": Stacker(shipped.signed_stack, tasks=("regression",)),
    "nonnegative_stack": Stacker(shipped.nonnegative_stack, tasks=("regression",)),
}


def stack(cached: Cached, name: str, oof: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, C) cross-fitted and (m, C) test predictions of a stacker that reads these tensors of level 1."""
    cell, row = cached.cell, STACKERS[name]
    learn, ask = stacker_features(oof), stacker_features(test)
    total, times = np.zeros(cell.data.target.shape), np.zeros((cell.data.rows, 1))
    for train, held in cell.splits:
        total[held] += fit_stacker(row, cell, learn, train, take(cell.data.X, held), learn[held])
        times[held] += 1
    return total / times, fit_stacker(row, cell, learn, np.arange(cell.data.rows), cell.X_test, ask)


def fit_stacker(row: Stacker, cell: StudyCell, learn: np.ndarray, train: np.ndarray, X, ask: np.ndarray) -> np.ndarray:
    """Fit on the training rows and predict others, with the ordinal view of the table beside where it is asked for."""
    data, known = cell.data, learn[train]
    if row.beside:
        view, matrix = fit_view("ordinal", data.schema, take(data.X, train), data.y[train], task=data.task)
        known, ask = np.hstack([matrix, known]), np.hstack([view.transform(X), ask])
    shape = Shape(data.task, len(known), known.shape[1], data.classes, outputs=data.classes)
    model = row.make(shape).fit(known, data.y[train])
    return predict_tensor(model, ask, data.classes)


# -- calibration ------------------------------------------------------------------------------------------------------


def brier_temperature(P: np.ndarray, target: np.ndarray) -> float:
    """The temperature of least squared error, by a grid that is then refined."""
    grid = np.geomspace(0.05, 20, 41)
    for _ in range(3):
        risks = [((apply_temperature(P, T) - target) ** 2).sum() for T in grid]
        best = int(np.argmin(risks))
        grid = np.geomspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], 9)
    return float(grid[len(grid) // 2])


TEMPERATURES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "none": lambda P, target: 1.0,
    "log": lambda P, target: fit_temperature(P, target),
    "shrunk_5": lambda P, target: fit_temperature(P, target, shrink=5.0),
    "shrunk_20": lambda P, target: fit_temperature(P, target, shrink=20.0),
    "shrunk_50": lambda P, target: fit_temperature(P, target, shrink=50.0),
    "shrunk_200": lambda P, target: fit_temperature(P, target, shrink=200.0),
    "brier": brier_temperature,
}


def calibrated(oof, test, target, how: str) -> tuple[np.ndarray, np.ndarray]:
    if how == "none" or target.shape[1] == 1:
        return oof, test
    T = [TEMPERATURES[how](oof[:, k], target) for k in range(oof.shape[1])]
    both = [np.stack([apply_temperature(P[:, k], t) for k, t in enumerate(T)], axis=1) for P in (oof, test)]
    return both[0], both[1]


# -- schemes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scheme:
    """A row of the study.

    `reads` of level 2: "all", or "support" (those with weight when level 1 is solved alone). `guard`: take the best
    specialist instead of the blend when the honest gain of the blend is below so many standard errors.
    """

    name: str
    rows: tuple[str, ...]
    calibrate: str = "none"
    level_2: tuple[str, ...] = ()
    reads: str = "all"
    rule: str = "simplex"
    loss: str = "squared"
    bag: bool = False
    blend_temperature: bool = False
    guard: float | None = None


def level_1(cached: Cached, scheme: Scheme) -> tuple[list[str], np.ndarray, np.ndarray]:
    names = [name for name in scheme.rows if name in cached.names]
    key = ("level 1", tuple(names), scheme.calibrate, scheme.bag)
    if key not in cached.memo:
        columns = cached.columns(names)
        source = cached.bagged if scheme.bag else cached.test
        assert source is not None
        test = source[:, columns]
        cached.memo[key] = calibrated(cached.oof[:, columns], test, cached.target, scheme.calibrate)
    return names, *cached.memo[key]


def weights_of(cached: Cached, scheme: Scheme, oof: np.ndarray) -> np.ndarray:
    return solve_weights(oof, cached.target, rule=scheme.rule, loss=scheme.loss, folds=cached.fold).weights


def tensors(cached: Cached, scheme: Scheme) -> tuple[list[str], np.ndarray, np.ndarray, set[str]]:
    """Names and predictions of both levels, and the rows of level 1 that level 2 reads."""
    names, oof, test = level_1(cached, scheme)
    stackers = [s for s in scheme.level_2 if STACKERS[s].suits(cached.cell.data)]
    if not stackers:
        return names, oof, test, set()
    read = np.arange(len(names))
    if scheme.reads == "support":
        read = np.flatnonzero(weights_of(cached, replace(scheme, rule="simplex"), oof) > 0)  # as the estimators do
    columns, columns_test = [], []
    for stacker in stackers:
        key = (stacker, tuple(names[k] for k in read), scheme.calibrate, scheme.bag)
        if key not in cached.memo:
            cached.memo[key] = stack(cached, stacker, oof[:, read], test[:, read])
        fitted, asked = (P[:, None] for P in cached.memo[key])
        fitted, asked = calibrated(fitted, asked, cached.target, scheme.calibrate)
        columns.append(fitted)
        columns_test.append(asked)
    both = np.concatenate([oof, *columns], axis=1), np.concatenate([test, *columns_test], axis=1)
    return names + stackers, *both, {names[k] for k in read}


def blended(P: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    return np.einsum("nkc,k->nc", P, alpha)


def run_scheme(cached: Cached, scheme: Scheme) -> dict[str, Any]:
    """One line of results: the measures on the test part, the seconds of the whole fit."""
    names, oof, test, read = tensors(cached, scheme)
    alpha = weights_of(cached, scheme, oof)
    judged = {}
    if scheme.guard is not None:
        judged = judge(cached, scheme, oof)
        if judged["gain"] < scheme.guard * judged["gain_error"]:
            alpha = weights_of(cached, replace(scheme, rule="best"), oof)
    P = blended(test, alpha)
    if scheme.blend_temperature and P.shape[1] > 1:
        P = apply_temperature(P, fit_temperature(blended(oof, alpha), cached.target))
    support = {name for name, a in zip(names, alpha) if a > 0}
    needed = (support | read if support & set(STACKERS) else support) - set(STACKERS)
    return {
        "scheme": scheme.name,
        **measures(P, cached.cell.target_test),
        **judged,
        "cv_optimised": float(row_losses(oof, cached.target, alpha, scheme.loss).mean()),
        "test_risk": float(row_losses(test, cached.cell.target_test, alpha, scheme.loss).mean()),
        "support": len(support),
        "weight_2": float(sum(a for name, a in zip(names, alpha) if name in STACKERS)),
        "seconds": spent(cached, [n for n in names if n not in STACKERS], needed),
        "test_seconds": sum(cached.fitted[name].test_seconds for name in needed),
    }


def judge(cached: Cached, scheme: Scheme, oof: np.ndarray) -> dict[str, float]:
    """Risk of the blend with weights learnt without each row's fold, and its gain over the specialist so picked."""
    scored = partial(held_out_risk, oof, cached.target, cached.fold, loss=scheme.loss)
    honest = scored(rule=scheme.rule)
    gain, error = paired(scored(rule="best"), honest)
    return {"cv_risk": float(honest.mean()), "gain": gain, "gain_error": error}


def paired(reference: np.ndarray, losses: np.ndarray) -> tuple[float, float]:
    """Mean over rows of reference minus losses, and its standard error."""
    difference = reference - losses
    return float(difference.mean()), float(difference.std(ddof=1) / len(difference) ** 0.5)


def spent(cached: Cached, names, refitted) -> float:
    """CPU seconds of cross-fitting these rows and refitting those with weight."""
    folds = sum(cached.fitted[n].folds_seconds for n in names if n in cached.fitted)
    return folds + sum(cached.fitted[n].refit_seconds for n in refitted if n in cached.fitted)


def measures(P: np.ndarray, target: np.ndarray) -> dict[str, float]:
    """`loss` is the log loss or the RMSE, `score` the accuracy or R2."""
    if target.shape[1] == 1:
        error = float(((P - target) ** 2).mean())
        return {"loss": error**0.5, "score": 1 - error / float(target.var()), "brier": np.nan, "auc": np.nan}
    chosen = np.clip((P * target).sum(axis=1), FLOOR, 1)
    return {
        "loss": float(-np.log(chosen).mean()),
        "score": float((P.argmax(axis=1) == target.argmax(axis=1)).mean()),
        "brier": float(((P - target) ** 2).sum(axis=1).mean()),
        "auc": auc(P, target),
    }


def auc(P: np.ndarray, target: np.ndarray) -> float:
    """Area under the curve, one class against the rest, mean over the classes that the test part has."""
    seen = [c for c in range(target.shape[1]) if 0 < target[:, c].sum() < len(target)]
    return float(np.mean([roc_auc_score(target[:, c], P[:, c]) for c in seen])) if seen else np.nan


# -- what a blend is compared with ------------------------------------------------------------------------------------


def single(cached: Cached, rows: tuple[str, ...], calibrate: str) -> list[dict[str, Any]]:
    """Each specialist alone: its measures, and its cross-validated squared risk."""
    names, oof, test = level_1(cached, Scheme("", rows, calibrate))
    lines = []
    for k, name in enumerate(names):
        risk = row_losses(oof[:, [k]], cached.target, np.ones(1)).mean()
        lines.append({"specialist": name, **measures(test[:, k], cached.cell.target_test), "cv_risk": float(risk)})
    return lines


def sklearn_stacking(cached: Cached, rows: tuple[str, ...]) -> dict[str, Any]:
    """scikit-learn's StackingClassifier or StackingRegressor with the same specialists and folds.

    Its final estimator (LogisticRegression or RidgeCV, both at their defaults) reads raw out-of-fold predictions, of
    two classes only the second.
    """
    names, oof, test = level_1(cached, Scheme("", rows))
    data = cached.cell.data
    first = 1 if data.classes == 2 else 0
    learn, ask = (P[:, :, first:].reshape(len(P), -1) for P in (oof, test))
    final = LogisticRegression() if data.task == "classification" else RidgeCV()
    P = predict_tensor(final.fit(learn, data.y), ask, data.classes)
    seconds = spent(cached, names, names)
    return {"scheme": "sklearn stacking", **measures(P, cached.cell.target_test), "seconds": seconds}


# -- the table of schemes ---------------------------------------------------------------------------------------------

READS = {"all": "all of level 1", "support": "those with weight"}

BASE: dict[str, dict[str, Any]] = {
    "classification": {"calibrate": "shrunk_50", "rule": "guarded", "loss": "log"},
    "regression": {"rule": "guarded"},
}


def default_scheme(task: str) -> Scheme:
    """The default as a scheme: its rows of both levels, and what its stackers read."""
    library = named("default", task)
    reads = "support" if any(s.reads == "support" for s in library) else "all"
    return Scheme("default", library.level(1).names, level_2=library.level(2).names, reads=reads, **BASE[task])


def schemes(task: str) -> list[tuple[str, Scheme]]:
    """(axis, scheme) pairs: the default, and along each axis one thing changed."""
    base, every = default_scheme(task), every_row(task).level(1).names
    default = base.rows
    judged = replace(base, guard=-np.inf)  # judged against its best specialist, and kept whatever the verdict
    paper = Scheme("paper", tuple(PAPER[task].names), guard=-np.inf)
    table = [("method", judged), ("method", paper)]
    table += [
        ("library", replace(base, name="paper", rows=paper.rows)),
        ("library", replace(base, name="all", rows=every)),
    ]
    table += [("row", replace(base, name=f"without {row}", rows=minus(default, row))) for row in default]
    table += [("row", replace(base, name=f"with {row}", rows=(*default, row))) for row in every if row not in default]
    table += [("rule", replace(base, name=rule, rule=rule)) for rule in RULES if rule != "slsqp"]
    table += [("guard", replace(base, name=f"{k:+d} errors", guard=float(k), rule="simplex")) for k in (-1, 0, 1, 2)]
    table += [("refit", replace(base, name="average of folds", bag=True))]
    names = [name for name, row in STACKERS.items() if task in row.tasks]
    table += [("level 2", replace(base, name="none", level_2=()))]
    table += [("level 2", replace(base, name=name, level_2=(name,))) for name in names]
    table += [("level 2", replace(base, name=f"without {s}", level_2=minus(base.level_2, s))) for s in base.level_2]
    reads = {"all": "support", "support": "all"}[base.reads]
    table += [("reads", replace(base, name=READS[reads], reads=reads))]
    if task == "classification":
        table += [("calibrate", replace(base, name=how, calibrate=how)) for how in TEMPERATURES]
        table += [("calibrate", replace(base, name="specialists and blend", blend_temperature=True))]
        table += [("calibrate", replace(base, name="blend", calibrate="none", blend_temperature=True))]
        table += [("loss", replace(base, name=loss, loss=loss)) for loss in ("squared", "log")]
    return table


def minus(rows: tuple[str, ...], row: str) -> tuple[str, ...]:
    return tuple(name for name in rows if name != row)


def evaluate_cell(cached: Cached, axes: list[str] | None = None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Lines of the two tables: schemes along the named axes, or along all, and specialists alone."""
    task, where = cached.cell.of.task, place(cached.cell)
    wanted = [(axis, s) for axis, s in schemes(task) if axes is None or axis in axes]
    possible = [(axis, s) for axis, s in wanted if cached.has(s.rows) and not (s.bag and cached.bagged is None)]
    lines = [where | {"axis": axis} | run_scheme(cached, scheme) for axis, scheme in possible]
    base = schemes(task)[0][1]
    for name, rows in (("default", base.rows), ("paper", tuple(PAPER[task].names))):
        if not cached.has(rows):
            continue
        stacking = sklearn_stacking(cached, rows)
        lines.append(where | {"axis": "peer"} | stacking | {"scheme": f"scikit-learn stacking, {name} rows"})
    alone = single(cached, tuple(cached.names), "none")
    singles = [where | line | seconds_of(cached.fitted[line["specialist"]]) for line in alone]
    lines += [where | {"axis": "peer"} | line for line in picks(alone, base.rows)]
    failed = [where | {"specialist": name, "error": error} for name, error in cached.failures.items()]
    return lines, singles + failed


def seconds_of(fitted: Fitted) -> dict[str, float]:
    return {name: getattr(fitted, name) for name in ("folds_seconds", "refit_seconds", "test_seconds")}


def place(cell: StudyCell) -> dict[str, Any]:
    """The columns that say which cell a line is about."""
    X = cell.data.X
    size = {"rows": cell.data.rows, "columns": X.shape[1], "classes": cell.data.classes}
    return {"dataset": cell.of.name, "seed": cell.seed, "task": cell.of.task, "kind": cell.of.kind} | size


def other_folds(cached: Cached, cv: str) -> dict[str, Any]:
    """The default scheme on other folds."""
    base = schemes(cached.cell.of.task)[0][1]
    number, _, repeats = cv.partition("x")
    name = f"{number} folds, {repeats} repeats" if repeats else f"{number} folds"
    return place(cached.cell) | {"axis": "folds"} | run_scheme(cached, base) | {"scheme": name}


def picks(alone: list[dict[str, Any]], rows: tuple[str, ...]) -> list[dict[str, Any]]:
    """The best specialist with hindsight (least loss on the test part) and by cross-validation (least squared risk)."""
    known = [line for line in alone if line["specialist"] in rows]
    hindsight, picked = min(known, key=lambda line: line["loss"]), min(known, key=lambda line: line["cv_risk"])
    return [{**hindsight, "scheme": "best with hindsight"}, {**picked, "scheme": "picked by cross-validation"}]
