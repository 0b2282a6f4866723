"""What a fit leaves behind, as one record, and the tables that are read off it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from softlearning.blend import Team
from softlearning.crossfit import CrossFit, Data
from softlearning.execution import Failure
from softlearning.insight.conformal import leave_fold_out_blend
from softlearning.library import Library
from softlearning.weights import Solution, honest_risk, row_losses, solve_weights


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

    return leave_fold_out_blend(P, fold, weights_from)


def honest_risk_of(learned: Learned, rule, loss: str) -> float:
    """Mean loss of the blend when each fold is scored with weights learnt on the others."""
    weight = learned.rows_weight()
    P, Y = learned.rows_tensor(), learned.rows_target()
    risk = honest_risk(P, Y, learned.rows_fold(), rule=rule, loss=loss, sample_weight=weight)
    return float(np.average(risk, weights=weight))


def failure_table(failures: tuple[Failure, ...]) -> pd.DataFrame:
    rows = [(f.specialist, f.fold, f.error, f.seconds) for f in failures]
    return pd.DataFrame(rows, columns=["specialist", "fold", "error", "seconds"])


def leaderboard(learned: Learned, loss: str, score: Callable) -> pd.DataFrame:
    """One line a specialist: what it weighs, how good it is alone, what it cost, what became of it."""
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
        lines.append(line)
    columns = ["specialist", "family", "weight", "cv_risk", "cv_score", "fit_seconds", "predict_seconds", "status"]
    board = pd.DataFrame(lines, columns=columns)
    return board.sort_values(["weight", "cv_risk"], ascending=[False, True], ignore_index=True)


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
