"""All that a model says of new rows: prediction, probabilities or interval, disagreement, set; calibrated held out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd

from softlearning.data.messages import nearest
from softlearning.method.record import HeldOut
from softlearning.uncertainty.conformal import calibrate_interval, calibrate_set, fit_scale, interval, predict_set
from softlearning.uncertainty.disagreement import entropy, max_probability_uncertainty
from softlearning.uncertainty.selective import risk_coverage_curve, threshold_for_coverage, threshold_for_risk

MEASURES = {
    "disagreement": lambda f, V: V,
    "entropy": lambda f, V: entropy(f),
    "max_probability": lambda f, V: max_probability_uncertainty(f),
}


@dataclass(frozen=True)
class Prediction:
    """Row by row: value (n,), disagreement (n,); classes add probability and inside (n, C), numbers low and high.

    `inside` says which classes hold the truth with the nominal coverage. What needs the out-of-fold predictions is None
    for a model that was saved without them.
    """

    value: np.ndarray
    disagreement: np.ndarray
    classes: np.ndarray | None = None
    probability: np.ndarray | None = None
    inside: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    @property
    def spread(self) -> np.ndarray:
        """(n,) the disagreement as it is shown: of numbers a standard deviation, in the unit of the target."""
        return np.sqrt(self.disagreement) if self.classes is None else self.disagreement

    def table(self) -> pd.DataFrame:
        """prediction, one probability per class, disagreement (`spread`), and for numbers low and high."""
        columns = {"prediction": self.value}
        if self.classes is not None and self.probability is not None:
            columns |= {f"probability_{label}": self.probability[:, c] for c, label in enumerate(self.classes)}
        columns["disagreement"] = self.spread
        if self.low is not None and self.high is not None:
            columns |= {"low": self.low, "high": self.high}
        return pd.DataFrame(columns)


def conformal_interval(held: HeldOut, f: np.ndarray, V: np.ndarray, coverage: float) -> tuple[np.ndarray, np.ndarray]:
    """Low and high around f (n,): wider where the specialists disagree, as far as that told errors on held-out rows."""
    mean, y = held.blend[:, 0], held.target[:, 0]
    scale = fit_scale(y - mean, held.disagreement)
    quantile = calibrate_interval(
        mean, y, scale(held.disagreement), coverage, sample_weight=held.weight, groups=held.groups
    )
    return interval(f, scale(V), quantile)


def conformal_set(held: HeldOut, probability: np.ndarray, coverage: float, *, per_class: bool = False) -> np.ndarray:
    """Boolean (n, C): the classes that hold the true one with the nominal coverage; no set is empty."""
    label = held.target.argmax(axis=1)
    quantile = calibrate_set(
        held.blend, label, coverage, per_class=per_class, sample_weight=held.weight, groups=held.groups
    )
    return predict_set(probability, quantile)


@dataclass(frozen=True)
class Selection:
    """Which rows to believe: those whose uncertainty by `measure` is at most `threshold`."""

    measure: str
    threshold: float

    def accepts(self, f: np.ndarray, V: np.ndarray) -> np.ndarray:
        return MEASURES[self.measure](f, V) <= self.threshold


def selective_choice(
    held: HeldOut, said: np.ndarray, measure: str, coverage: float, risk: float | None, confidence: float
) -> Selection:
    """The measure of uncertainty and the threshold that held-out rows speak for; said (n,): places of their labels."""
    wrong = said != held.target.argmax(axis=1)
    if measure not in ("auto", *MEASURES):
        raise ValueError(f"measure is {measure!r}; {nearest(measure, ('auto', *MEASURES))}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is a probability, above 0 and below 1; got {confidence!r}")
    name = best_measure(held, wrong) if measure == "auto" else measure
    uncertainty = MEASURES[name](held.blend, held.disagreement)
    if risk is None:
        return Selection(name, threshold_for_coverage(uncertainty, coverage))
    found = threshold_for_risk(uncertainty, wrong, risk, groups=held.groups, delta=1 - confidence)
    if found.smallest_risk > risk:
        able = "none" if found.smallest_risk >= 1 else f"about {found.smallest_risk:.2g}"
        groups = "" if held.groups is None else f" in {len(np.unique(held.groups))} groups"
        warnings.warn(
            f"no row is accepted: these {len(wrong)} held-out rows{groups} cannot guarantee a risk of {risk:g} with "
            f"confidence {confidence:g}; the smallest that they can is {able}",
            UserWarning,
            stacklevel=3,
        )
    return Selection(name, found.threshold)


def best_measure(held: HeldOut, wrong: np.ndarray) -> str:
    """The measure with the least area under its risk-coverage curve on held-out rows."""
    areas = {name: risk_coverage_curve(m(held.blend, held.disagreement), wrong).area for name, m in MEASURES.items()}
    return min(areas, key=lambda name: areas[name])
