"""Abstention: answer where the uncertainty is small, at a wanted coverage or below a guaranteed error rate.

A row is accepted when its uncertainty is at most a threshold. Any measure will do (disagreement, entropy, 1 - max
probability); rows are exchangeable, `uncertainty` and `wrong` are (n,).

What is guaranteed. `threshold_for_risk` is exact for rows that played no part in making the predictor. On out-of-fold
rows the guarantee concerns a predictor that treats a new row as those rows were treated; the refitted blend has seen
more rows, so it is close to that predictor but not identical, and the guarantee is approximate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import binom

from softlearning.uncertainty.conformal import conformal_quantile

PILOT_SHARE = 0.2  # rows that choose where to look, so that the others can be tested without a penalty


def threshold_for_coverage(uncertainty: np.ndarray, coverage: float) -> float:
    """Smallest threshold that accepts a new exchangeable row with probability at least `coverage`.

    The ceil((n + 1) coverage)-th smallest uncertainty; infinite when n is too small to guarantee it.
    """
    return conformal_quantile(uncertainty, coverage)


@dataclass(frozen=True)
class RiskThreshold:
    """A threshold with its guarantee: the error rate among accepted rows is at most `risk`, with confidence 1 - delta.

    `threshold` is -inf (accept nothing) when these rows cannot guarantee that; `smallest_risk` is then the smallest
    risk that they could have guaranteed for some rows (1.0 if none), else `risk` itself.
    """

    threshold: float
    smallest_risk: float


def threshold_for_risk(
    uncertainty: np.ndarray, wrong: np.ndarray, risk: float, *, groups: np.ndarray | None = None, delta: float = 0.1,
    seed: int = 0,
) -> RiskThreshold:  # fmt: skip
    """Largest threshold found whose error rate among accepted rows is at most `risk`, with confidence 1 - delta.

    Learn then test: a pilot of rows fixes the thresholds to try and the one to begin with; the remaining rows test
    "the risk at this threshold exceeds `risk`" with the exact binomial p-value, from there upwards, and stop at the
    first threshold that is not rejected. The sequence is fixed before its tests see data, so one delta pays for all
    of them: P(risk of the answer > `risk`) <= delta, for any n and any measure of uncertainty.

    `groups`: rows of a group may depend on each other, so one row of each, drawn at random, is looked at. The guarantee
    is then for a row of a new group.
    """
    for name, value in (("risk", risk), ("delta", delta)):
        if not 0 < value < 1:
            raise ValueError(f"{name} is a probability, above 0 and below 1; got {value!r}")
    uncertainty, wrong = np.asarray(uncertainty, dtype=float), np.asarray(wrong, dtype=bool)
    if groups is not None:
        mixed = np.random.default_rng(seed).permutation(len(wrong))
        one = np.sort(mixed[np.unique(np.asarray(groups)[mixed], return_index=True)[1]])
        uncertainty, wrong = uncertainty[one], wrong[one]
    pilot = np.zeros(len(wrong), dtype=bool)
    pilot[np.random.default_rng(seed).permutation(len(wrong))[: round(PILOT_SHARE * len(wrong))]] = True
    search = partial(_tested_threshold, uncertainty=uncertainty, wrong=wrong, pilot=pilot, delta=delta)
    threshold = search(risk)
    return RiskThreshold(threshold, risk if threshold > -math.inf else _smallest_risk(search, risk))


def _tested_threshold(
    risk: float, uncertainty: np.ndarray, wrong: np.ndarray, pilot: np.ndarray, delta: float
) -> float:
    """The threshold that the rows beyond the pilot guarantee a risk for; -inf if none."""
    sequence = _sequence_from_pilot(uncertainty[pilot], wrong[pilot], risk, n_test=int((~pilot).sum()))
    return _last_rejected(sequence, uncertainty[~pilot], wrong[~pilot], risk, delta)


def _smallest_risk(search: Callable[[float], float], risk: float) -> float:
    """The smallest risk of a grid, from `risk` upwards, at which some row is accepted; 1.0 if there is none."""
    grid = np.geomspace(risk, 0.99, 100)
    return next((float(r) for r in grid if search(float(r)) > -math.inf), 1.0)


def _sequence_from_pilot(uncertainty: np.ndarray, wrong: np.ndarray, risk: float, n_test: int) -> np.ndarray:
    """The pilot's uncertainties in rising order, from the one whose test should be the strongest."""
    if len(uncertainty) == 0:
        return np.empty(0)
    grid, accepted, errors = _counts_by_threshold(uncertainty, wrong)
    expected_n = np.round(accepted * n_test / len(uncertainty))
    expected_errors = np.ceil(expected_n * (errors + 0.5) / (accepted + 1))  # never zero: few rows prove little
    start = int(np.argmin(binom.cdf(expected_errors, expected_n, risk)))
    return np.append(grid[start:], np.inf)


def _last_rejected(
    sequence: np.ndarray, uncertainty: np.ndarray, wrong: np.ndarray, risk: float, delta: float
) -> float:
    """Walk up the sequence while "risk too large" is rejected; -inf when already the first is not."""
    order = np.argsort(uncertainty)
    accepted = np.searchsorted(uncertainty[order], sequence, side="right")
    errors = np.append(0, np.cumsum(wrong[order]))[accepted]
    rejected = np.asarray(binom.cdf(errors, accepted, risk)) <= delta
    passed = len(sequence) if rejected.all() else int(np.argmin(rejected))
    return float(sequence[passed - 1]) if passed else -math.inf


def _counts_by_threshold(uncertainty: np.ndarray, wrong: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct uncertainties in rising order; rows and errors with an uncertainty of at most each."""
    grid, at_most = np.unique(uncertainty, return_inverse=True)
    accepted = np.cumsum(np.bincount(at_most, minlength=len(grid)))
    errors = np.cumsum(np.bincount(at_most, weights=wrong, minlength=len(grid)))
    return grid, accepted, errors


@dataclass(frozen=True)
class RiskCoverage:
    """Risk among accepted rows as the threshold, and with it the coverage, rises; `area` is its mean over coverage."""

    coverage: np.ndarray
    risk: np.ndarray
    area: float


def risk_coverage_curve(uncertainty: np.ndarray, loss: np.ndarray) -> RiskCoverage:
    """The curve at every distinct uncertainty, tied rows entering together; loss (n,) is 0/1 or any loss.

    `area` is the mean, over the n rows in order of uncertainty, of the mean loss so far. Tied rows share the mean
    loss of their tie, so the area does not depend on the order of rows.
    """
    loss = np.asarray(loss, dtype=float)
    _, accepted, total = _counts_by_threshold(np.asarray(uncertainty, dtype=float), loss)
    size, tied_total = np.diff(accepted, prepend=0), np.diff(total, prepend=0.0)
    shared = np.repeat(tied_total / size, size)
    area = float(np.mean(np.cumsum(shared) / np.arange(1, len(loss) + 1)))
    return RiskCoverage(accepted / len(loss), total / accepted, area)
