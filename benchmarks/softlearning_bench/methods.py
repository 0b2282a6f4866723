"""What is compared, as rows: the ten methods of the paper, its changes one by one, other combiners, and ours.

A method is a function from the shared Specialists of one outer fold to an Answer. Methods that combine, and the five
of the paper's baselines that are members of its library, read the same fits. Seconds are CPU seconds that the method
alone would have taken on one core: a combiner is charged for all folds of its library and for the refits it needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from softlearning.library import Library, Shape, Specialist, every_row, resolve
from softlearning.library.recipes import histogram_bins
from softlearning.method.crossfit import admitted
from softlearning.uncertainty.temperature import apply_temperature
from softlearning.weights import solve_weights
from softlearning_bench.shared import Part, Specialists

Array = NDArray[np.float64]


class LeftOut(RuntimeError):
    """The method does not run on this dataset; the message says why."""


@dataclass(frozen=True)
class Answer:
    """Predictions (m, C) on the test rows, what they cost, and who had weight in them."""

    prediction: Array
    fit_seconds: float
    predict_seconds: float
    weights: dict[str, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Method:
    """One row: `group` is "paper" (its ten), "change", "combiner", "ours", "speed", "specialist" or "external".

    `folds` is how many of the five outer folds it is run on.
    """

    name: str
    group: str
    answer: Callable[[Specialists], Answer]
    folds: int = 5


# -- combinations of the paper's library ------------------------------------------------------------------------------


def weighted(shared: Specialists, rule: str, calibrate: bool = False, refit_all: bool = False) -> Answer:
    """Weights by a rule of the table, on the shared out-of-fold predictions; only what has weight is refitted."""
    crossed = shared.calibrated if calibrate else shared.crossed
    begin = time.process_time()
    solution = solve_weights(crossed.oof, shared.data.target, rule=rule, folds=crossed.fold_of_row)
    solving = time.process_time() - begin
    names = crossed.library.names
    P = shared.tested
    if calibrate and shared.part.task == "classification":
        P = np.stack([apply_temperature(P[:, k], T) for k, T in enumerate(crossed.temperature)], axis=1)
    support = crossed.library[[name for name, weight in zip(names, solution.weights) if weight > 0]]
    return Answer(
        np.einsum("mkc,k->mc", P, solution.weights),
        shared.library_seconds(crossed.library)
        + solving
        + refit_seconds(shared, crossed.library if refit_all else support),
        test_seconds(shared, support),
        dict(zip(names, solution.weights.tolist())),
        settings_note(shared.part),
    )


def stacked(shared: Specialists) -> Answer:
    """scikit-learn's stacking on the same folds and fits: its default final model on the same predictions."""
    library, target = shared.crossed.library, shared.data.y
    classification = shared.part.task == "classification"
    final = LogisticRegression() if classification else RidgeCV()
    begin = time.process_time()
    final.fit(stacking_columns(shared.crossed.oof), target)
    spent = shared.library_seconds(library) + refit_seconds(shared, library) + time.process_time() - begin
    columns = stacking_columns(shared.tested)
    prediction = final.predict_proba(columns) if classification else final.predict(columns)[:, None]
    return Answer(prediction, spent, test_seconds(shared, library), note=settings_note(shared.part))


def stacking_columns(P: Array) -> Array:
    """(n, K C) predictions side by side; of two classes the second alone, as scikit-learn does."""
    return P[:, :, 1] if P.shape[2] == 2 else P.reshape(len(P), -1)


def refit_seconds(shared: Specialists, library: Iterable[Specialist]) -> float:
    """Seconds of fitting these specialists on all training rows."""
    return sum(shared.fits.of(row).refit_seconds for row in library)


def test_seconds(shared: Specialists, library: Iterable[Specialist]) -> float:
    """Seconds of their predictions on the test rows."""
    return sum(shared.fits.of(row).test_seconds for row in library)


def settings_note(part: Part) -> str:
    """What the library sets so that a wide table with many classes fits a machine."""
    shape = Shape(part.task, len(part.y), part.X.shape[1], part.classes)
    settings = library_row("catboost", part.task).make(shape).get_params()
    if settings.get("border_count") is None:
        return ""
    sampled = f"{settings.get('rsm', 1.0):.2f} of the columns a split"
    return "; ".join(filter(None, [f"CatBoost with {settings['border_count']} borders and {sampled}", bins_note(part)]))


def bins_note(part: Part) -> str:
    bins = histogram_bins(part.X.shape[1], part.classes)
    return "" if bins == 255 else f"histogram boosting with {bins} bins"


def library_row(name: str, task: str) -> Specialist:
    return next(iter(resolve("paper", task)[name]))


# -- ours -------------------------------------------------------------------------------------------------------------


def softlearning_default(shared: Specialists) -> Answer:
    """SoftClassifier() or SoftRegressor(), as a user calls it."""
    begin = time.process_time()
    model = shared.default
    combining = time.process_time() - begin
    X, level_1 = shared.part.X_test, model.record_.team.members.keys() - set(model.record_.library.level(2).names)
    prediction = model.predict_proba(X) if shared.part.task == "classification" else model.predict(X)[:, None]
    used = shared.default_crossed.library[list(level_1)]
    spent = shared.library_seconds(shared.default_crossed.library) + combining + refit_seconds(shared, used)
    return Answer(prediction, spent, test_seconds(shared, used), model.weights_.to_dict(), settings_note(shared.part))


# -- one specialist, or one model of its own --------------------------------------------------------------------------


def member(shared: Specialists, name: str | dict[str, str]) -> Answer:
    """One specialist by itself: a name, or one for each task."""
    name = name if isinstance(name, str) else name[shared.part.task]
    row = next(iter(every_row(shared.part.task)[name]))
    _, left_out = admitted(Library((row,)), shared.data.rows)
    if left_out:
        raise LeftOut(left_out[name])
    fitted = shared.fits.of(row)
    if fitted.error:
        raise RuntimeError(fitted.error)
    notes = {"catboost": settings_note, "catboost_coarse": settings_note, "hist_gradient_boosting": bins_note}
    note = notes[name](shared.part) if name in notes else ""
    return Answer(fitted.test, fitted.refit_seconds, fitted.test_seconds, note=note)


def alone(shared: Specialists, make: Callable[[Part], BaseEstimator], note=lambda part: "") -> Answer:
    """A model that no library has."""
    return replace(fit_alone(shared.part, make), note=note(shared.part))


def fit_alone(part: Part, make: Callable[[Part], BaseEstimator]) -> Answer:
    """A model scaled, fitted and asked by itself."""
    begin = time.process_time()
    model = make_pipeline(StandardScaler(), make(part)).fit(part.X, part.y)
    middle = time.process_time()
    classification = part.task == "classification"
    prediction = model.predict_proba(part.X_test) if classification else model.predict(part.X_test)[:, None]
    return Answer(prediction, middle - begin, time.process_time() - middle)


def random_forest(part: Part) -> BaseEstimator:
    """100 trees. In regression every split sees all columns: the paper writes sqrt(d) but its numbers are these."""
    kind = RandomForestClassifier if part.task == "classification" else RandomForestRegressor
    return kind(100, random_state=part.seed)


def gradient_boosting(part: Part) -> BaseEstimator:
    kind = HistGradientBoostingClassifier if part.task == "classification" else HistGradientBoostingRegressor
    bins = histogram_bins(part.X.shape[1], part.classes)
    return kind(
        max_iter=200, max_depth=6, learning_rate=0.1, max_bins=bins, early_stopping=False, random_state=part.seed
    )


def perceptron(part: Part, layers: tuple[int, ...], epochs: int, batch: int, early_stopping: bool = True):
    kind = MLPClassifier if part.task == "classification" else MLPRegressor
    return kind(
        hidden_layer_sizes=layers,
        batch_size=min(batch, len(part.y)),
        max_iter=epochs,
        early_stopping=early_stopping,
        validation_fraction=0.15,
        n_iter_no_change=10 if early_stopping else epochs,
        random_state=part.seed,
    )


def neuro_symbolic(part: Part) -> BaseEstimator:
    network = perceptron(part, (64, 32), epochs=200, batch=32)
    return make_pipeline(TreeBeside(part.task, part.seed), network)


def deep_network(part: Part) -> BaseEstimator:
    """What the paper's speed claim is measured against: four layers of 256, 100 epochs, no early stop."""
    return perceptron(part, (256,) * 4, epochs=100, batch=200, early_stopping=False)


class TreeBeside(TransformerMixin, BaseEstimator):
    """The columns, and beside them what a decision tree of depth 6 makes of them: class shares or the mean."""

    def __init__(self, task="classification", seed=42):
        self.task = task
        self.seed = seed

    def fit(self, X, y):
        kind = DecisionTreeClassifier if self.task == "classification" else DecisionTreeRegressor
        self.tree_ = kind(max_depth=6, random_state=self.seed).fit(X, y)
        return self

    def transform(self, X):
        check_is_fitted(self)
        beside = self.tree_.predict_proba(X) if self.task == "classification" else self.tree_.predict(X)[:, None]
        return np.hstack([X, beside])


# -- the rows ---------------------------------------------------------------------------------------------------------

LINEAR = {"classification": "logistic", "regression": "ridge"}
SPLINE = {"classification": "spline_logistic", "regression": "spline_ridge"}

# fmt: off
METHODS = (
    Method("Soft Learning",          "paper",    partial(weighted, rule="slsqp", refit_all=True)),
    Method("CatBoost",               "paper",    partial(member, name="catboost")),
    Method("Tuned MLP",              "paper",    partial(member, name="mlp_large")),
    Method("Gradient Boosting",      "paper",    partial(alone, make=gradient_boosting, note=bins_note)),
    Method("Random Forest",          "paper",    partial(alone, make=random_forest)),
    Method("KAN-like",               "paper",    partial(member, name=SPLINE)),
    Method("NeuroSym",               "paper",    partial(alone, make=neuro_symbolic)),
    Method("Basic MLP",              "paper",    partial(member, name="mlp_small")),
    Method("Logistic/Ridge",         "paper",    partial(member, name=LINEAR)),
    Method("exact",                  "change",   partial(weighted, rule="simplex")),
    Method("exact and calibrated",   "change",   partial(weighted, rule="simplex", calibrate=True)),
    Method("guarded and calibrated", "change",   partial(weighted, rule="guarded", calibrate=True)),
    Method("softlearning",           "ours",     softlearning_default),
    Method("Stacking",               "combiner", stacked),
    Method("Soft voting",            "combiner", partial(weighted, rule="uniform")),
    Method("Greedy selection",       "combiner", partial(weighted, rule="greedy")),
    Method("NNLS / sum",             "combiner", partial(weighted, rule="nnls")),
    Method("Discrete Super Learner", "combiner", partial(weighted, rule="best")),
    Method("Deep MLP",               "speed",    partial(alone, make=deep_network), folds=1),
)
# fmt: on

BEST_OF_3 = ("Logistic/Ridge", "Random Forest", "Gradient Boosting")


def specialist_rows(task: str) -> tuple[Method, ...]:
    """Every member of both libraries as a method of its own: they cost nothing beside the combiners."""
    default = resolve("default", task).level(1).names
    names = dict.fromkeys((*resolve("paper", task).names, *default))
    return tuple(Method(f"specialist {name}", "specialist", partial(member, name=name)) for name in names)


def methods_for(task: str) -> tuple[Method, ...]:
    return METHODS + specialist_rows(task)
