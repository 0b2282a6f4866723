"""The paper's own solver: sequential quadratic programming from K + 2 starts, kept for comparison."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.optimize import minimize

from softlearning.weights.certificates import corner_risks, gradient_at, value_at
from softlearning.weights.problems import Problem
from softlearning.weights.solvers import Floats, normalised


def slsqp(problem: Problem) -> Floats:
    """Weights (G,) of the best end of all starts, on an objective in units of the best specialist's risk.

    Columns whose errors are 1e4 times the best one's stay out.
    """
    risks = corner_risks(problem)
    sane = np.flatnonzero(risks <= 1e8 * risks.min()) if problem.loss.name == "squared" else np.arange(len(risks))
    inner, factor, weights = problem.columns(sane), 1 / (float(risks.min()) or 1.0), []
    sum_to_one: Any = {"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(len(sane))}
    for start in _starts(risks[sane]):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)  # it steps out of bounds, and clips
            end = minimize(
                lambda a: factor * value_at(inner, a), start, method="SLSQP", bounds=[(0, 1)] * len(sane),
                jac=lambda a: factor * gradient_at(inner, a), constraints=[sum_to_one],
                options={"maxiter": 1000, "ftol": 1e-12},
            )  # fmt: skip
        feasible = np.nan_to_num(np.clip(end.x, 0.0, 1.0))
        found = np.zeros(len(risks))
        found[sane] = normalised(feasible if feasible.any() else start)
        weights.append(found)
    return min(weights, key=lambda found: value_at(problem, found))


def _starts(risks: Floats) -> list[Floats]:
    K = len(risks)
    if K == 1:
        return [np.ones(1)] * 3
    concentrated = np.full((K, K), 0.1 / (K - 1)) + np.eye(K) * (0.9 - 0.1 / (K - 1))
    accuracy = 1 / np.maximum(risks, 1e-12 * max(risks.max(), 1e-300))
    return [np.full(K, 1 / K), *concentrated, accuracy / accuracy.sum()]
