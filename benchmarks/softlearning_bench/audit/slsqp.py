"""The paper's solver start by start: SciPy's SLSQP on the squared loss from K + 2 points, to see whether they agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

READINGS = ("scaled", "mean", "sum")


@dataclass(frozen=True)
class Starts:
    """Where the starts ended: weights (S, K), mean squared errors (S,), success (S,) as SLSQP tells it."""

    weights: np.ndarray
    objectives: np.ndarray
    success: np.ndarray


def slsqp_starts(P: np.ndarray, Y: np.ndarray, *, reading: str = "scaled") -> Starts:
    """Run the K + 2 starts of the paper one by one, for predictions P (n, K, C) of a target Y (n, C).

    Starts: uniform, 0.9 on each specialist in turn, and proportional to 1 / risk. `reading` is how the objective is
    handed over: "scaled" by the best specialist's risk with an analytic gradient and ftol 1e-12 (what the rule "slsqp"
    of the library does), or the plain "mean" (the paper's equation 1) or "sum" (its Methods) with SciPy's defaults.
    """
    if reading not in READINGS:
        raise ValueError(f"reading is one of {', '.join(READINGS)}, got {reading!r}")
    n, K, _ = P.shape
    errors = (Y[:, None] - P).transpose(0, 2, 1).reshape(-1, K)
    R: np.ndarray = np.linalg.qr(errors / np.sqrt(n), mode="r")  # type: ignore[assignment]  # risk is |R alpha|^2
    risks = (R**2).sum(axis=0)
    factor = {"scaled": 1 / risks.min(), "mean": 1.0, "sum": float(n)}[reading]
    exact = reading == "scaled"
    options: Any = {"maxiter": 1000, "ftol": 1e-12} if exact else {}
    sum_to_one: Any = {"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(K)}
    ends = [
        minimize(
            lambda a: factor * float((R @ a) @ (R @ a)), start, method="SLSQP", bounds=[(0, 1)] * K,
            jac=(lambda a: 2 * factor * (R.T @ (R @ a))) if exact else None,
            constraints=[sum_to_one], options=options,
        )
        for start in starts(risks)
    ]  # fmt: skip
    weights = np.array([np.clip(end.x, 0.0, 1.0) for end in ends])
    weights /= weights.sum(axis=1, keepdims=True)
    return Starts(weights, ((weights @ R.T) ** 2).sum(axis=1), np.array([bool(end.success) for end in ends]))


def starts(risks: np.ndarray) -> np.ndarray:
    """(K + 2, K) points of the simplex."""
    K = len(risks)
    concentrated = np.full((K, K), 0.1 / (K - 1)) + np.eye(K) * (0.9 - 0.1 / (K - 1))
    return np.vstack([np.full(K, 1 / K), concentrated, 1 / risks / (1 / risks).sum()])
