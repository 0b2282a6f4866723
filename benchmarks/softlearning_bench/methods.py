"""What is compared, as rows: the ten methods of the paper, its changes one by one, other combiners, and ours.

A method is a function from the shared Specialists of one outer fold to an Answer. Methods that combine, and the five
of the paper's baselines that are members of its library, read the same fits. Seconds are those that the method alone
would have taken on one core: a combiner is charged for all folds of its library and for the refits it needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

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

from softlearning.library import Shape, Specialist, resolve
from softlearning_bench.shared import Part, Specialists, combining_seconds, fold_seconds, refit_seconds, rows_of

Array = NDArray[np.float64]


class Skipped(RuntimeError):
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
    """The paper's library under a rule of the table; only what has weight is charged for its refit."""
    return answer_of(shared, shared.paper(rule, calibrate), shared.paper("uniform", calibrate) if refit_all else None)


def softlearning_default(shared: Specialists) -> Answer:
    """SoftClassifier() or SoftRegressor(), as a user calls it."""
    return answer_of(shared, shared.model())


def answer_of(shared: Specialists, model: Any, refitted: Any = None) -> Answer:
    """What a fitted model predicts and costs; `refitted` is the model whose refits it is charged for."""
    prediction, predicting = shared.predict(model)
    fitting = fold_seconds(model) + refit_seconds(refitted or model) + combining_seconds(model)
    return Answer(prediction, fitting, predicting, model.weights_.to_dict(), settings_note(shared.part))


def stacked(shared: Specialists, library: str = "paper") -> Answer:
    """scikit-learn's stacking on the same folds and fits: its default final model on the same predictions."""
    model, part = shared.equal(rows_of(library, shared.part.task).level(1)), shared.part
    classification = part.task == "classification"
    final = LogisticRegression() if classification else RidgeCV()
    begin = time.process_time()
    final.fit(stacking_columns(held_out(model)), part.y)
    fitting = fold_seconds(model) + refit_seconds(model) + time.process_time() - begin
    begin = time.process_time()
    columns = stacking_columns(model.specialist_predictions(part.X_test))
    prediction = final.predict_proba(columns) if classification else final.predict(columns)[:, None]
    return Answer(prediction, fitting, time.process_time() - begin, note=settings_note(part))


def held_out(model: Any) -> Array:
    """Out-of-fold predictions in the order of `specialist_predictions`."""
    names = list(model.weights_.index)
    return model.oof_[:, [names.index(name) for name in model.specialists_]]


def stacking_columns(P: Array) -> Array:
    """(n, K C) predictions side by side; of two classes the second alone, as scikit-learn does."""
    return P[:, :, 1] if P.shape[2] == 2 else P.reshape(len(P), -1)


def settings_note(part: Part) -> str:
    """What the library sets so that a wide table with many classes fits a machine."""
    settings = library_settings("catboost", part)
    if settings.get("border_count") is None:
        return ""
    sampled = f"{settings.get('rsm', 1.0):.2f} of the columns per split"
    return "; ".join(filter(None, [f"CatBoost with {settings['border_count']} borders and {sampled}", bins_note(part)]))


def bins_note(part: Part) -> str:
    """What the library sets histogram boosting to, where that is not its default."""
    bins = library_settings("hist_gradient_boosting", part)["max_bins"]
    return "" if bins == 255 else f"histogram boosting with {bins} bins"


def library_settings(name: str, part: Part) -> dict[str, Any]:
    """The parameters that the paper's library gives to a specialist on a table of this shape."""
    return library_row(name, part.task).make(Shape(part.task, len(part.y), part.X.shape[1], part.classes)).get_params()


def library_row(name: str, task: str) -> Specialist:
    """A row of the paper's library."""
    return next(iter(resolve("paper", task)[name]))


# -- one specialist, or one model of its own --------------------------------------------------------------------------


def member(shared: Specialists, name: str | dict[str, str]) -> Answer:
    """One specialist by itself: a name, or one for each task. Its seconds of prediction are those per held-out row."""
    name, model, part = name if isinstance(name, str) else name[shared.part.task], shared.everybody, shared.part
    line = model.leaderboard_.set_index("specialist").loc[name]
    if name in set(model.failures_["specialist"]):
        raise RuntimeError(line["status"])
    if name not in model.specialists_:
        raise Skipped(line["status"])
    notes = {"catboost": settings_note, "hist_gradient_boosting": bins_note}
    prediction = shared.predictions_of_everybody[:, list(model.specialists_).index(name)]
    predicting = line["predict_seconds"] * len(part.y_test) / len(part.y)
    note = notes[name](part) if name in notes else ""
    return Answer(prediction, refit_seconds(model, [name]), predicting, note=note)


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
    bins = library_settings("hist_gradient_boosting", part)["max_bins"]
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
    names = dict.fromkeys((*rows_of("paper", task).names, *rows_of("default", task).level(1).names))
    return tuple(Method(f"specialist {name}", "specialist", partial(member, name=name)) for name in names)


def methods_for(task: str) -> tuple[Method, ...]:
    return METHODS + specialist_rows(task)
