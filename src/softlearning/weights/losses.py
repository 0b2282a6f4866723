"""What the weights minimise: a table of losses, each with its derivatives by the blend and its solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from softlearning.weights.problems import (
    FLOOR,
    Problem,
    Rows,
    build_errors,
    build_log,
    build_positive,
    build_squared,
    check_rows,
)
from softlearning.weights.solvers import (
    Floats,
    pinball_programme,
    simplex_least_squares,
    simplex_log_loss,
    simplex_newton,
)

LossLike = str | tuple[str, float]
KINK = 1e-3  # of the mean absolute error: the width over which shrinkage rounds off the kink of a pinball loss
HUBER = 1.345 / 0.6745  # median absolute errors: 95 % as efficient as squares where errors are normal


@dataclass(frozen=True)
class Loss:
    """A row of the table of losses; y is the target, b the blend, arrays of one shape.

    pointwise : (y, b) -> loss; slope, curvature : its derivatives by b (of a rounded loss, where it has a kink).
    build : (Rows, Loss) -> Problem. minimise : Problem -> an optimum (G,) and the slope that proves it, if it is not
    the derivative there. check : (predictions, target) -> ValueError where they do not fit.
    floor : smaller predictions count as this. kinked : positively homogeneous in b - y, so that the slope alone bounds
    it. least : of a loss that is not convex everywhere, (y, low, high) -> smallest curvature for b in between.
    """

    name: str
    pointwise: Callable[[Floats, Floats], Floats]
    slope: Callable[[Floats, Floats], Floats]
    curvature: Callable[[Floats, Floats], Floats]
    build: Callable[[Rows, Loss], Problem]
    minimise: Callable[[Problem], tuple[Floats, Floats | None]]
    check: Callable[[Floats, Floats], None] = lambda P, Y: None
    floor: float = -np.inf
    kinked: bool = False
    least: Callable[[Floats, Floats, Floats], Floats] | None = None


def _newton(problem: Problem) -> tuple[Floats, None]:
    loss, y, mass = problem.loss, problem.y, problem.mass
    return simplex_newton(
        problem.matrix,
        value=lambda b: float(mass @ loss.pointwise(y, b)),
        slope=lambda b: mass * loss.slope(y, b),
        curvature=lambda b: mass * loss.curvature(y, b),
    ), None


# ---------------------------------------------------------------------------------------------------------- the losses


def _squared() -> Loss:
    return Loss(
        "squared",
        pointwise=lambda y, b: (y - b) ** 2,
        slope=lambda y, b: 2 * (b - y),
        curvature=lambda y, b: np.full_like(b, 2.0),
        build=build_squared,
        minimise=lambda problem: (simplex_least_squares(problem.matrix), None),
    )


def _log() -> Loss:
    return Loss(
        "log",
        pointwise=lambda y, b: np.where(y > 0, -y * np.log(np.maximum(b, FLOOR)), 0.0),
        slope=lambda y, b: -y / np.maximum(b, FLOOR),
        curvature=lambda y, b: y / np.maximum(b, FLOOR) ** 2,
        build=build_log,
        minimise=lambda problem: (simplex_log_loss(problem.matrix, problem.mass)[0], None),
        check=_check_probabilities,
        floor=FLOOR,
    )


def _absolute() -> Loss:
    return _kinked("absolute", 1.0, 1.0)


def _pinball(q: float = 0.5) -> Loss:
    """q (y - b) where the blend is too low, (1 - q) (b - y) where it is too high: least at the q-quantile."""
    if not 0 < q < 1:
        raise ValueError(f"the pinball loss needs a quantile between 0 and 1, got {q:g}")
    return _kinked(f"pinball:{float(q)!r}", q, 1 - q)


def _kinked(name: str, low: float, high: float) -> Loss:
    """low per unit that the blend is too low, high per unit that it is too high."""

    def rounded(y: Floats, b: Floats) -> tuple[Floats, float]:
        width = KINK * float(np.abs(b - y).mean()) or 1.0
        return (b - y) * (low + high) / width + (high - low) / 2, width

    return Loss(
        name,
        pointwise=lambda y, b: np.maximum(low * (y - b), high * (b - y)),
        slope=lambda y, b: np.clip(rounded(y, b)[0], -low, high),
        curvature=lambda y, b: np.where(
            (rounded(y, b)[0] > -low) & (rounded(y, b)[0] < high), (low + high) / rounded(y, b)[1], 0.0
        ),
        build=build_errors,
        minimise=lambda problem: pinball_programme(problem.matrix, problem.mass, low, high),
        kinked=True,
    )


def _huber(delta: float) -> Loss:
    """(b - y)^2 / 2 up to delta, then straight on: errors in the target's unit."""
    if not delta > 0:
        raise ValueError(f"the Huber loss needs a positive width, got {delta:g}")

    def pointwise(y: Floats, b: Floats) -> Floats:
        error = np.abs(b - y)
        return np.where(error <= delta, error**2 / 2, delta * (error - delta / 2))

    return Loss(
        f"huber:{float(delta)!r}",
        pointwise=pointwise,
        slope=lambda y, b: np.clip(b - y, -delta, delta),
        curvature=lambda y, b: (np.abs(b - y) <= delta).astype(float),
        build=partial(build_errors, scaled=False),
        minimise=_newton,
    )


def _poisson() -> Loss:
    return Loss(
        "poisson",
        pointwise=lambda y, b: np.maximum(2 * (_y_log_ratio(y, b) - y + b), 0.0),
        slope=lambda y, b: 2 * (1 - y / np.maximum(b, FLOOR)),
        curvature=lambda y, b: 2 * y / np.maximum(b, FLOOR) ** 2,
        build=build_positive,
        minimise=_newton,
        check=_check_counts,
        floor=FLOOR,
    )


def _tweedie(power: float = 1.5) -> Loss:
    """Deviance of the compound Poisson family, 1 < power < 2; its curvature is negative far above the target."""
    p = power
    if not 1 < p < 2:
        raise ValueError(
            f"the Tweedie deviance needs a power between 1 and 2, got {p:g}; 'poisson' and 'squared' are the ends"
        )

    def pointwise(y: Floats, b: Floats) -> Floats:
        return 2 * (y ** (2 - p) / ((1 - p) * (2 - p)) - y * b ** (1 - p) / (1 - p) + b ** (2 - p) / (2 - p))

    def curvature(y: Floats, b: Floats) -> Floats:
        return 2 * (p * y - (p - 1) * b) * b ** (-p - 1)

    return Loss(
        f"tweedie:{float(p)!r}",
        pointwise=pointwise,
        slope=lambda y, b: 2 * (b - y) * b**-p,
        curvature=curvature,
        build=build_positive,
        minimise=_newton,
        check=_check_counts,
        floor=FLOOR,
        least=lambda y, low, high: curvature(y, np.clip(y * (p + 1) / (p - 1), low, high)),
    )


def _y_log_ratio(y: Floats, b: Floats) -> Floats:
    return np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / b), 0.0)


def _check_probabilities(P: Floats, Y: Floats) -> None:
    if Y.shape[1] < 2:
        raise ValueError("log loss needs a column for each class (two or more); regression needs loss='squared'")
    if P.min() < -1e-6 or P.max() > 1 + 1e-6:
        raise ValueError("log loss needs predictions that are probabilities, between 0 and 1")
    if Y.min() < 0 or np.abs(Y.sum(axis=1) - 1).max() > 1e-6:
        raise ValueError("log loss needs target rows that are non-negative and sum to 1 (one-hot)")


def _check_counts(P: Floats, Y: Floats) -> None:
    if Y.min() < 0:
        raise ValueError(f"a deviance needs a target that is never negative; its smallest value is {Y.min():g}")


LOSSES: dict[str, Callable[..., Loss]] = {
    "squared": _squared,
    "log": _log,
    "absolute": _absolute,
    "pinball": _pinball,
    "huber": _huber,
    "poisson": _poisson,
    "tweedie": _tweedie,
}


def loss_named(loss: LossLike | Loss) -> Loss:
    """The row of the table: "squared", "pinball:0.9", ("pinball", 0.9) ...; or a ValueError that says what there is."""
    if isinstance(loss, Loss):
        return loss
    name, _, number = loss.partition(":") if isinstance(loss, str) else (loss[0], ":", str(loss[1]))
    if name not in LOSSES or (number and name not in ("pinball", "huber", "tweedie")):
        raise ValueError(f"unknown loss {loss!r}; choose one of {', '.join(LOSSES)}, or name:number, as in pinball:0.9")
    try:
        return LOSSES[name](float(number)) if number else LOSSES[name]()
    except TypeError:
        raise ValueError("the Huber loss needs its width, as in huber:1.5") from None


def checked(
    predictions: ArrayLike, target: ArrayLike, loss: LossLike | Loss, **given: ArrayLike | None
) -> tuple[Rows, Loss]:
    """Rows that fit together and fit the loss, or a ValueError that names the cause.

    "huber" without a width takes `HUBER` median absolute errors of the specialist for which that is least.
    """
    rows = check_rows(predictions, target, **given)
    if loss == "huber":
        widths = np.median(np.abs(rows.target[rows.live, None] - rows.predictions[rows.live]), axis=(0, 2))
        loss = ("huber", float(HUBER * widths.min()) or 1.0)
    found = loss_named(loss)
    found.check(rows.predictions, rows.target)
    return rows, found


def row_losses(
    predictions: ArrayLike, target: ArrayLike, weights: ArrayLike, loss: LossLike | Loss = "squared"
) -> Floats:
    """(n,) loss of the blend in each row, summed over classes."""
    P, Y, alpha = (np.asarray(a, dtype=np.float64) for a in (predictions, target, weights))
    found = loss_named(loss)
    blend = np.zeros(Y.shape)
    for k in np.flatnonzero(alpha):
        blend += alpha[k] * np.maximum(P[:, k], found.floor)
    return found.pointwise(Y, blend).sum(axis=1)


def problem_of(rows: Rows, loss: Loss) -> Problem:
    """The problem that a loss makes of rows."""
    return loss.build(rows, loss)
