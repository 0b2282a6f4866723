"""What a fit leaves behind, as one record, and the tables that are read off it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from softlearning.execution import Failure
from softlearning.library import Library, Shape, Specialist
from softlearning.method.crossfit import CrossFit, Data, read_by
from softlearning.method.ensemble import Team
from softlearning.method.fitting import takes_weight
from softlearning.uncertainty.conformal import leave_fold_out_blend
from softlearning.weights import Solution, held_out_risk, row_losses, solve_weights

COLUMNS = ["specialist", "family", "weight", "cv_risk", "cv_score", "fit_seconds", "predict_seconds", "status", "note"]


@dataclass(frozen=True)
class Learned:
    """The library that was asked for, its out-of-fold predictions, the weights, the fitted team, and the target."""

    library: Library
    crossed: CrossFit
    solution: Solution
    team: Team
    data: Data

    def weights(self) -> pd.Series:
        """By name, in the order of the library."""
        names = self.crossed.library.names
        order = [name for name in self.library.names if name in names] or list(names)
        return pd.Series(self.solution.weights, index=list(names), name="weight").loc[order]

    def certificate(self) -> pd.Series:
        proof = {"objective": self.solution.objective, "gap": self.solution.gap, "unique": self.solution.unique}
        return pd.Series(proof, name="certificate")

    def support(self) -> list[str]:
        """The specialists with weight, in the order in which all sums are taken."""
        return [name for name, w in zip(self.crossed.library.names, self.solution.weights) if w > 0]

    def support_weights(self) -> np.ndarray:
        """Their weights, in the same order."""
        return self.solution.weights[self.solution.weights > 0]

    def heard(self, weights: np.ndarray) -> np.ndarray:
        """Weights (K,) in which a stacker's share goes to the specialists it reads, in the shares they earn without it.

        Their disagreement is the doubt of the blend: a stacker by itself would have nobody to disagree with.
        """
        library, handed = self.crossed.library, weights.copy()
        for k, s in enumerate(library):
            if s.level == 2 and weights[k] > 0:
                read = self.crossed.columns(read_by(s, library))
                earned = np.array([self.crossed.alone[library.names[j]] for j in read])
                handed[k] = 0
                handed[read] += weights[k] * (earned / earned.sum() if earned.any() else 1 / len(read))
        return handed

    def rows_tensor(self) -> np.ndarray:
        """Out-of-fold predictions of the rows that have them."""
        return self.crossed.oof[self.crossed.predicted]

    def rows_target(self) -> np.ndarray:
        return self.data.target[self.crossed.predicted]

    def rows_weight(self) -> np.ndarray | None:
        return None if self.data.weight is None else self.data.weight[self.crossed.predicted]

    def rows_fold(self) -> np.ndarray:
        return self.crossed.fold_of_row[self.crossed.predicted]


def honest_blend(learned: Learned, rule, loss: str) -> tuple[np.ndarray, np.ndarray]:
    """Blend (n, C) and disagreement (n,) of the out-of-fold rows, under weights learnt without each row's fold."""
    P, Y, weight, fold = learned.rows_tensor(), learned.rows_target(), learned.rows_weight(), learned.rows_fold()

    def weights_from(rows: np.ndarray) -> np.ndarray:
        part = None if weight is None else weight[rows]
        solution = solve_weights(P[rows], Y[rows], rule=rule, loss=loss, sample_weight=part, folds=fold[rows])
        return solution.weights

    return leave_fold_out_blend(P, fold, weights_from, learned.heard)


@dataclass(frozen=True)
class Verdict:
    """What held-out rows say of the blend against its best specialist.

    risk : mean loss of the blend when each fold is scored with weights learnt on the others.
    best : the specialist of least cross-validated risk.
    gain, error : mean over rows of the loss of the best specialist (picked without the row's fold) minus that of the
        blend, and the standard error of this mean.
    """

    risk: float
    best: str
    gain: float
    error: float

    @property
    def better(self) -> bool:
        """Beyond noise: the gain is more than two standard errors."""
        return self.gain > 2 * self.error

    @property
    def note(self) -> str:
        return f"best alone; the blend is {'' if self.better else 'not '}better beyond noise"

    def __str__(self) -> str:
        figures = f"{self.gain:.3g} a row, standard error {self.error:.2g}"
        if self.better:
            return f"the blend is better than its best specialist, {self.best} (gain {figures})"
        return f"the blend is not better than its best specialist, {self.best}, beyond noise (gain {figures})"


def judge(learned: Learned, rule, loss: str) -> Verdict:
    """The blend against its best specialist, both chosen without the fold that they are scored on."""
    P, Y, weight = learned.rows_tensor(), learned.rows_target(), learned.rows_weight()
    names = learned.crossed.library.level(1).names  # a stacker is no single specialist: it reads several
    alone = P[:, learned.crossed.columns(names)]
    scored = partial(held_out_risk, target=Y, folds=learned.rows_fold(), loss=loss, sample_weight=weight)
    blend, pick = scored(P, rule=rule), scored(alone, rule="best")
    share = np.full(len(Y), 1 / len(Y)) if weight is None else weight / weight.sum()
    gain = float(share @ (pick - blend))
    error = float(np.sqrt(share**2 @ (pick - blend - gain) ** 2))
    best = int(solve_weights(alone, Y, rule="best", loss=loss, sample_weight=weight).weights.argmax())
    return Verdict(float(share @ blend), names[best], gain, error)


def failure_table(failures: tuple[Failure, ...]) -> pd.DataFrame:
    rows = [(f.specialist, f.fold, f.error, f.seconds) for f in failures]
    return pd.DataFrame(rows, columns=["specialist", "fold", "error", "seconds"])


def leaderboard(learned: Learned, loss: str, score: Callable, verdict: Verdict) -> pd.DataFrame:
    """One line a specialist: what it weighs, how good it is alone, what it cost, what became of it.

    The line of the best specialist notes whether the blend is better than it beyond noise.
    """
    crossed = learned.crossed
    weights, failed = learned.weights(), {f.specialist: f.error.splitlines()[0] for f in crossed.failures}
    lines = []
    for s in {s.name: s for s in (*learned.library, *crossed.library)}.values():
        line = {"specialist": s.name, "family": s.family, "weight": float(weights.get(s.name, 0.0))}
        if s.name in crossed.library:
            line |= alone(learned, s.name, loss, score) | {"status": "ok"}
        elif s.name in crossed.left_out:
            line["status"] = f"left out: {crossed.left_out[s.name]}"
        else:
            line["status"] = f"failed: {failed.get(s.name, 'for an unknown reason')}"
        notes = [verdict.note] if s.name == verdict.best else []
        notes += ["takes no sample weights"] if fitted_without_weights(s, learned.data) else []
        lines.append(line | {"note": "; ".join(notes)})
    board = pd.DataFrame(lines, columns=COLUMNS)
    return board.sort_values(["weight", "cv_risk"], ascending=[False, True], ignore_index=True)


def fitted_without_weights(s: Specialist, data: Data) -> bool:
    """Whether there are sample weights that this specialist could not take; it is used all the same."""
    if data.weight is None:
        return False
    return not takes_weight(s.make(Shape(data.task, data.rows, 1, data.classes, rarest=2, outputs=data.classes)))


def alone(learned: Learned, name: str, loss: str, score: Callable) -> dict[str, float]:
    """How one specialist does by itself, on the out-of-fold rows."""
    P = learned.rows_tensor()[:, learned.crossed.columns([name])]
    target, weight = learned.rows_target(), learned.rows_weight()
    risk = np.average(row_losses(P, target, np.ones(1), loss=loss), weights=weight)
    fit, predict = learned.crossed.seconds[name]
    return {
        "cv_risk": float(risk),
        "cv_score": score(P[:, 0], target, weight),
        "fit_seconds": fit,
        "predict_seconds": predict,
    }
