"""What a fit leaves behind, as one record, and what is read off it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd

from softlearning.execution import Failure
from softlearning.library import Library, Shape, Specialist
from softlearning.method.crossfit import CrossFit, read_by, weigh
from softlearning.method.ensemble import Ensemble
from softlearning.method.fitting import takes_weight
from softlearning.method.training import Training, entries
from softlearning.uncertainty.conformal import leave_fold_out_blend
from softlearning.uncertainty.errors import mean_and_error, reach
from softlearning.weights import Solution, row_losses

COLUMNS = ["specialist", "family", "weight", "cv_risk", "cv_score", "fit_seconds", "predict_seconds", "status", "note"]

RELATIONS = {"better": "better than", "worse": "worse than", "level": "level with", "undecided": "beside"}


@dataclass(frozen=True)
class HeldOut:
    """The rows that some fold held out, under weights learnt without each row's fold.

    blend (n, C), disagreement (n,); target (n, C), weight (n,) or None, groups (n,) or None and fold (n,) of the rows.
    """

    blend: np.ndarray
    disagreement: np.ndarray
    target: np.ndarray
    weight: np.ndarray | None
    groups: np.ndarray | None
    fold: np.ndarray

    def part(self, rows: np.ndarray) -> HeldOut:
        """The same of some rows."""
        return HeldOut(*(entries(values, rows) for values in vars(self).values()))


@dataclass(frozen=True)
class Comparison:
    """The blend against its best single specialist, on held-out rows.

    rival : the specialist of level 1 of least cross-validated risk (a stacker reads several, so it is none).
    risk, rival_risk : mean loss of the blend, with weights learnt without each row's fold, and of the rival; to both
        is added what evenly shared folds hide of it (`Record.hidden`).
    gain, error : their difference and its standard error, over groups where there are groups; NaN for a single group.
    reach : how many standard errors are noise: two, or more where rows or groups are few.
    """

    rival: str
    risk: float
    rival_risk: float
    gain: float
    error: float
    reach: float = 2.0

    @property
    def better(self) -> bool:
        """Beyond noise: the gain is more than `reach` standard errors."""
        return self.gain > self.reach * self.error

    @property
    def worse(self) -> bool:
        return self.gain < -self.reach * self.error

    @property
    def word(self) -> str:
        """better, worse, level; or undecided, where a single row or group shows no standard error."""
        if np.isnan(self.error):
            return "undecided"
        return "better" if self.better else "worse" if self.worse else "level"

    def __str__(self) -> str:
        error = f"standard error of the difference {self.error:.2g}"
        if self.word == "undecided":
            error = "a single group of rows cannot tell them apart"
        figures = f"risk {self.risk:.4g} against {self.rival_risk:.4g}, {error}"
        return f"the blend is {RELATIONS[self.word]} its best single specialist, {self.rival}: {figures}"


@dataclass(frozen=True)
class Record:
    """The library that was asked for, its out-of-fold predictions, the weights, the ensemble, and the target."""

    library: Library
    crossed: CrossFit
    solution: Solution
    ensemble: Ensemble
    training: Training
    rule: Any

    @property
    def loss(self) -> str:
        return self.solution.loss

    @property
    def task(self) -> str:
        return self.training.task

    def weights(self) -> pd.Series:
        """By name, in the order of the library."""
        names = self.crossed.library.names
        order = [name for name in self.library.names if name in names] or list(names)
        return pd.Series(self.solution.weights, index=list(names), name="weight").loc[order]

    def certificate(self) -> pd.Series:
        """What was proved: of the weights, of the exact optimum beside them, and of the penalty that lies between."""
        mine, exact = self.solution, self.exact
        proof = {"objective": mine.objective, "gap": mine.gap, "unique": mine.unique}
        proof |= {"optimum": exact.objective, "optimum_gap": exact.gap}
        return pd.Series(proof | {"shrinkage": mine.shrinkage, "penalised_gap": mine.penalised_gap}, name="certificate")

    @cached_property
    def exact(self) -> Solution:
        """The exact optimum of the same predictions."""
        return self.crossed.solve(self.crossed.pooled, self.training, "simplex", self.loss)

    def support(self) -> list[str]:
        """The specialists with weight, in the order in which all sums are taken."""
        return [name for name, w in zip(self.crossed.library.names, self.solution.weights) if w > 0]

    def support_weights(self) -> np.ndarray:
        """Their weights, in the same order."""
        return self.solution.weights[self.solution.weights > 0]

    def handed_down(self, weights: np.ndarray) -> np.ndarray:
        """Weights (K,) in which a stacker's share goes to the specialists it reads, in the shares they earn without it.

        Their disagreement is the uncertainty of the blend: a stacker by itself would have nobody to disagree with.
        """
        library, handed = self.crossed.library, weights.copy()
        for k, s in enumerate(library):
            if s.level == 2 and weights[k] > 0:
                read = self.crossed.columns(read_by(s, library))
                earned = np.array([self.crossed.alone[library.names[j]] for j in read])
                handed[k] = 0
                handed[read] += weights[k] * (earned / earned.sum() if earned.any() else 1 / len(read))
        return handed

    # -- held-out rows ------------------------------------------------------------------------------------------------

    def of_rows(self, values) -> Any:
        """The entries of the rows that some fold held out; None of None."""
        return entries(values, self.crossed.predicted)

    @property
    def pooled(self) -> np.ndarray:
        """(n, K, C) held-out predictions, as they enter the blend."""
        return self.of_rows(self.crossed.pooled)

    @cached_property
    def held_out(self) -> HeldOut:
        """Blend and disagreement of the held-out rows; solved once."""
        t, P = self.training, self.pooled
        Y, weight, groups = self.of_rows(t.target), self.of_rows(t.weight), self.of_rows(t.groups)
        fold = self.of_rows(self.crossed.fold_of_row)

        def weights_from(rows: np.ndarray) -> np.ndarray:
            part = entries(weight, rows)
            return weigh(P[rows], Y[rows], self.crossed.library, self.rule, self.loss, part).weights

        blend, V = leave_fold_out_blend(P, fold, weights_from, self.handed_down)
        return HeldOut(blend, V, Y, weight, groups, fold)

    def losses(self, prediction: np.ndarray) -> np.ndarray:
        """(n,) loss of predictions (n, C) of the held-out rows."""
        return row_losses(prediction[:, None, :], self.held_out.target, np.ones(1), loss=self.loss)

    def risk(self, prediction: np.ndarray) -> float:
        """Expected loss of predictions (n, C) on unseen rows, by the held-out rows."""
        return float(np.average(self.losses(prediction), weights=self.held_out.weight)) + self.hidden

    @cached_property
    def hidden(self) -> float:
        """What folds that share the target evenly hide of every risk: the error of the shares, or the mean, itself.

        The training rows of such a fold have the shares of its held-out rows, which new rows will not do. A constant
        prediction then looks better by C - 1 nats per n rows (twice its risk, for other losses); a model as far as its
        risk comes near that of the constant.
        """
        held, (n, C) = self.held_out, self.held_out.target.shape
        share = np.full(n, 1 / n) if held.weight is None else held.weight / held.weight.sum()
        constant = np.broadcast_to(share @ held.target, (n, C))
        blind, risk = (float(share @ self.losses(p)) for p in (constant, held.blend))
        if blind <= 0:
            return 0.0
        unit = C - 1 if self.loss == "log" else 2 * risk
        even = max(1 - unevenness(held.target, held.fold, share), 0)
        return float(even * unit * (share @ share) * min(1, risk / blind))

    def column(self, name: str) -> np.ndarray:
        """(n, C) held-out predictions of one specialist by itself, not sharpened for the blend."""
        return self.of_rows(self.crossed.oof)[:, self.crossed.columns([name])[0]]

    @cached_property
    def comparison(self) -> Comparison:
        """The blend against its best single specialist."""
        risks = {name: self.risk(self.column(name)) for name in self.crossed.library.level(1).names}
        rival = min(risks, key=lambda name: risks[name])
        return self.compared(self.column(rival), rival)

    def compared(self, rival: np.ndarray, name: str = "") -> Comparison:
        """The blend against predictions (n, C), paired by held-out rows."""
        held, losses = self.held_out, self.losses(rival)
        gain, error = mean_and_error(losses - self.losses(held.blend), held.weight, held.groups)
        far = max(reach(len(losses), held.groups), 2.0)
        return Comparison(name, self.risk(held.blend), self.risk(rival), gain, error, far)


def unevenness(target: np.ndarray, fold: np.ndarray, share: np.ndarray) -> float:
    """How far the folds' means of a target (n, C) lie apart: 0 for evenly shared ones, about 1 where chance decides.

    share (n,) is what each row counts; they sum to 1.
    """
    code = np.unique(fold, return_inverse=True)[1]
    size = np.bincount(code, weights=share)
    centred = target - share @ target
    sums = np.stack([np.bincount(code, weights=share * column) for column in centred.T])
    by_chance = float((share @ centred**2).sum() * (share @ share)) * (len(size) - 1)
    return float((sums**2 / size).sum()) / by_chance if by_chance > 0 else 1.0


class Leaderboard(pd.DataFrame):
    """The leaderboard as a frame; printed, it fits in 80 columns, and what has no score is named below."""

    def __repr__(self) -> str:
        if not set(COLUMNS) <= set(self.columns):
            return super().__repr__()
        finished = self[self["status"] == "ok"]
        shown = pd.DataFrame(finished[COLUMNS[:6]]).rename(columns={"fit_seconds": "seconds"})
        formats = {"weight": "{:.3f}".format, "cv_risk": "{:.4g}".format, "cv_score": "{:.4f}".format}
        lines = [shown.to_string(index=False, formatters=formats | {"seconds": "{:.1f}".format})]
        for line in self[self["status"] != "ok"].itertuples():
            lines += wrap(f"{line.specialist} {line.status}", 80, subsequent_indent="    ")
        return "\n".join(lines)


def failure_table(failures: tuple[Failure, ...]) -> pd.DataFrame:
    rows = [(f.specialist, f.fold, f.kind, f.error, f.seconds) for f in failures]
    return pd.DataFrame(rows, columns=["specialist", "fold", "kind", "error", "seconds"])


def score_of(P: np.ndarray, target: np.ndarray, weight: np.ndarray | None) -> float:
    """Accuracy of probabilities, or R2 of numbers (NaN for a constant target); both (n, C)."""
    if target.shape[1] > 1:
        return float(np.average(P.argmax(axis=1) == target.argmax(axis=1), weights=weight))
    y, prediction = target[:, 0], P[:, 0]
    spread = np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
    return float(1 - np.average((y - prediction) ** 2, weights=weight) / spread) if spread > 0 else np.nan


def leaderboard(record: Record, rival: str, word: str) -> pd.DataFrame:
    """One line per specialist: what it weighs, how good it is alone, what it cost, what became of it.

    The line of the rival, the best single specialist, notes how the blend compares with it, in a word.
    """
    crossed = record.crossed
    weights, failed = record.weights(), {f.specialist: f.error.splitlines()[0] for f in crossed.failures}
    lines = []
    for s in {s.name: s for s in (*record.library, *crossed.library)}.values():
        line = {"specialist": s.name, "family": s.family, "weight": float(weights.get(s.name, 0.0))}
        if s.name in crossed.library:
            line |= alone(record, s.name) | {"status": "ok"}
        elif s.name in crossed.skipped:
            line["status"] = f"skipped: {crossed.skipped[s.name]}"
        else:
            line["status"] = f"failed: {failed.get(s.name, 'for an unknown reason')}"
        notes = [f"best alone; the blend is {word}"] if s.name == rival else []
        notes += [f"learnt from {rows:,} rows of a fold"] if (rows := crossed.sample_of(s.name)) else []
        notes += ["takes no sample weights"] if fitted_without_weights(s, record.training) else []
        lines.append(line | {"note": "; ".join(notes)})
    board = pd.DataFrame(lines, columns=COLUMNS)
    return Leaderboard(board.sort_values(["weight", "cv_risk"], ascending=[False, True], ignore_index=True))


def fitted_without_weights(s: Specialist, training: Training) -> bool:
    """Whether there are sample weights that this specialist could not take; it is used all the same."""
    if training.weight is None:
        return False
    shape = Shape(training.task, training.rows, 1, training.classes, rarest=2, outputs=training.classes)
    return not takes_weight(s.make(shape))


def alone(record: Record, name: str) -> dict[str, float]:
    """How one specialist does by itself, on the held-out rows."""
    P, held = record.column(name), record.held_out
    fit, predict = record.crossed.seconds[name]
    return {
        "cv_risk": record.risk(P),
        "cv_score": score_of(P, held.target, held.weight),
        "fit_seconds": fit,
        "predict_seconds": predict,
    }
