"""The paper's own solver: sequential quadratic programming from K + 2 starts, kept for comparison."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from softlearning.weights.certificates import corner_risks, gradient_at, value_at
from softlearning.weights.losses import LossLike, checked, problem_of
from softlearning.weights.problems import Problem
from softlearning.weights.solvers import Floats, normalised


@dataclass(frozen=True)
class Starts:
    """Where the starts of SLSQP ended: weights (S, K), objectives (S,), success (S,) as SLSQP reports it."""

    weights: Floats
    objectives: Floats
    success: NDArray[np.bool_]


def slsqp_starts(
    predictions: ArrayLike,
    target: ArrayLike,
    *,
    reading: str = "scaled",
    loss: LossLike = "squared",
    sample_weight: ArrayLike | None = None,
) -> Starts:
    """Run the K + 2 starts of the paper one by one, to see whether they agree.

    Starts: uniform, 0.9 on each specialist in turn (duplicates count once), and proportional to accuracy (here
    to 1 / risk, which serves both tasks). `reading` is how the objective is handed over: "scaled" by the best
    specialist's risk with an analytic gradient and ftol 1e-12 (what the rule "slsqp" does), or the plain "mean"
    (the paper's equation 1) or "sum" (its Methods) with SciPy's defaults.
    """
    rows, found = checked(predictions, target, loss, sample_weight=sample_weight)
    problem = problem_of(rows, found)
    square = problem.unit**2
    factors = {
        "scaled": 1 / (float(corner_risks(problem).min()) or 1.0),
        "mean": square,
        "sum": square * len(rows.live),
    }
    if reading not in factors:
        raise ValueError(f"reading must be one of {sorted(factors)}, got {reading!r}")
    weights, values, success = slsqp_from(problem, factors[reading], exact=reading == "scaled")
    return Starts(np.array([problem.spread(w) for w in weights]), values * square, success)


def slsqp_from(problem: Problem, factor: float, exact: bool) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Weights (S, G), values (S,), success (S,) of every start; errors 1e4 times the best one's stay out."""
    risks = corner_risks(problem)
    sane = np.flatnonzero(risks <= 1e8 * risks.min()) if problem.loss.name == "squared" else np.arange(len(risks))
    inner, G = problem.columns(sane), len(sane)
    options: Any = {"maxiter": 1000, "ftol": 1e-12} if exact else {}
    sum_to_one: Any = {"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(G)}
    ends = []
    for start in _starts(risks[sane]):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)  # it steps out of bounds, and clips
            end = minimize(
                lambda a: factor * value_at(inner, a), start, method="SLSQP", bounds=[(0, 1)] * G,
                jac=(lambda a: factor * gradient_at(inner, a)) if exact else None,
                constraints=[sum_to_one], options=options,
            )  # fmt: skip
        feasible = np.nan_to_num(np.clip(end.x, 0.0, 1.0))
        ends.append((normalised(feasible if feasible.any() else start), end.success))
    weights = np.zeros((len(ends), len(risks)))
    weights[:, sane] = [x for x, _ in ends]
    values = np.array([value_at(problem, w) for w in weights])
    return weights, values, np.array([bool(ok) for _, ok in ends])


def _starts(risks: Floats) -> list[Floats]:
    K = len(risks)
    if K == 1:
        return [np.ones(1)] * 3
    concentrated = np.full((K, K), 0.1 / (K - 1)) + np.eye(K) * (0.9 - 0.1 / (K - 1))
    accuracy = 1 / np.maximum(risks, 1e-12 * max(risks.max(), 1e-300))
    return [np.full(K, 1 / K), *concentrated, accuracy / accuracy.sum()]
