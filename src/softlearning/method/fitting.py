"""Fit one specialist and take its predictions, checked: what a worker runs."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from softlearning.execution import Shared
from softlearning.library import Shape, Specialist
from softlearning.method.preparation import Preparation, ViewKey, side_by_side

LOG_FLOOR = 1e-6  # lifts probabilities before a logarithm, so that one overconfident specialist cannot rule a stacker
SMALLEST = 1_000  # rows that a specialist learns from however short the time is
FORESTS = (ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor)
FEW_ROWS = 50
DENSE_LIMIT = 2**31  # bytes; a sparse table is not made dense beyond that for a learner that takes no sparse one


@dataclass(frozen=True)
class Work:
    """One fit: which specialist, from which rows in which view, with which seed; `test` are the rows to predict.

    It learns from a `sample` of about so many of the rows `train`, from all of them where that is 0. A stacker reads
    `features`, predictions of level 1 for all rows, beside its view where it has one.
    """

    specialist: Specialist
    seed: int
    table: Preparation
    fold: int
    view: ViewKey | None
    train: np.ndarray
    test: np.ndarray | None = None
    features: Shared | None = None
    rounds: int | None = None  # of boosting, where folds have found them
    sample: int = 0

    @cached_property
    def rows(self) -> np.ndarray:
        """The rows to learn from: the same for all that take a sample of this size from this fold."""
        if not self.sample:
            return self.train
        t = self.table.training
        seed = seed_for(t.seed, f"{self.sample} rows", self.fold)
        return self.train[part_of(self.table.y.load()[self.train], self.sample, t.classes, seed)]

    @property
    def size(self) -> int:
        """About how many rows it learns from."""
        return self.sample or len(self.train)

    def matrices(self) -> tuple[Any, Any, tuple[int, ...]]:
        """Training matrix, held-out matrix, and the positions of category codes in them."""
        if self.features is None:
            assert self.view is not None
            seen = self.table.get(self.view, self.rows, self.test)
            return seen.training, seen.held_out, () if seen.view is None else tuple(seen.view.categorical)
        features = self.features.load()
        fitting, held_out = features[self.rows], None if self.test is None else features[self.test]
        if self.view is None:
            return fitting, held_out, ()
        seen = self.table.get(self.view, self.rows, self.test)
        beside = None if self.test is None else side_by_side(seen.held_out, held_out)
        return side_by_side(seen.training, fitting), beside, ()


def fit_and_predict(work: Work, keep: bool) -> dict[str, Any]:
    """Fit on the training rows and predict the held-out ones, if there are any; a handle on a model to be kept."""
    start = time.perf_counter()
    training, held_out, categorical = work.matrices()
    model = fit_model(work, writable(dense_if_needed(training, work.specialist), work.specialist), categorical)
    fitted = time.perf_counter()
    result: dict[str, Any] = {"fit_seconds": fitted - start, "rounds": int(getattr(model, "rounds_", None) or 0)}
    result["sample"] = work.sample
    if work.test is not None:
        t = work.table.training
        labels = own_labels(work.specialist, t.labels)
        X = dense_if_needed(held_out, work.specialist)
        result["prediction"] = predict_tensor(model, X, t.classes, labels)
        result["predict_seconds"] = time.perf_counter() - fitted
    return result | ({"model": work.table.scratch.keep(model)} if keep else {})


def fit_model(work: Work, X, categorical: tuple[int, ...]):
    """The fitted estimator of a specialist."""
    t, y = work.table.training, work.table.y.load()[work.rows]
    estimator = ready(work.specialist, t.task, t.classes, work.seed, X, y, categorical)
    known = [name for name in estimator.get_params() if name.split("__")[-1] == "rounds"] if work.rounds else []
    estimator.set_params(**dict.fromkeys(known, work.rounds))
    weight = {} if work.table.weight is None else weight_argument(estimator, work.table.weight.load()[work.rows])
    labels = own_labels(work.specialist, t.labels)
    return estimator.fit(X, y if labels is None else labels[y], **weight)


def fewer_rows(work: Work, keep: bool, share: float) -> tuple[Work, bool]:
    """The arguments of a fit that takes about this share of the seconds: it learns from fewer rows."""
    return sampled(work, max(work.specialist.rows_for(share, work.size), SMALLEST)), keep


def sampled(work: Work, most: int) -> Work:
    """The same fit from at most so many rows; specialists that learn from as many share a view."""
    if most >= work.size:
        return work
    return replace(work, view=None if work.view is None else replace(work.view, rows=most), sample=most)


def part_of(y: np.ndarray, most: int, classes: int, seed: int) -> np.ndarray:
    """Sorted positions of `most` rows, drawn at random; a class is represented as in y, and by two rows at least."""
    random = np.random.RandomState(seed)
    if classes == 1:
        return np.sort(random.permutation(len(y))[:most])
    order = random.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]  # class by class, each in random order
    counts = np.bincount(y, minlength=classes)
    taken = np.minimum(np.maximum(np.round(counts * (most / len(y))).astype(int), 2), counts)
    first = np.cumsum(counts) - counts
    return np.sort(np.concatenate([order[a : a + k] for a, k in zip(first, taken)]))


def own_labels(s: Specialist, labels: np.ndarray | None) -> np.ndarray | None:
    """The classes in the user's words for a user's estimator; ours are given codes."""
    return None if s.trusted else labels


def ready(s: Specialist, task: str, outputs: int, seed: int, X, y, categorical: tuple[int, ...]):
    """The unfitted estimator of a row for these rows: seeded, on one thread, able to give probabilities."""
    counts = np.unique(y, return_counts=True)[1] if task == "classification" else np.zeros(1, int)
    rarest = int(counts.min())
    shape = Shape(task, X.shape[0], X.shape[1], len(counts), rarest, categorical, outputs)
    estimator = single_threaded(seeded(s.make(shape), seed))
    scores_only = hasattr(estimator, "decision_function") and not hasattr(estimator, "predict_proba")
    if task == "classification" and is_classifier(estimator) and scores_only:
        return CalibratedClassifierCV(estimator, ensemble=False, cv=max(2, min(5, rarest)))
    return estimator


def seed_for(seed: int, name: str, fold: int) -> int:
    """A seed that depends on the names alone, never on the order of execution."""
    digest = hashlib.sha256(f"{seed}/{name}/{fold}".encode()).digest()
    return int.from_bytes(digest[:4], "little") % (2**31 - 1)


def seeded(estimator, seed: int):
    names = [n for n in estimator.get_params(deep=True) if n.split("__")[-1] == "random_state"]
    return estimator.set_params(**dict.fromkeys(names, seed)) if names else estimator


def single_threaded(estimator):
    """Parallelism is across tasks, so a learner's own threads are turned off (None is one thread in scikit-learn)."""
    own = type(estimator).__module__.startswith("sklearn.")
    parameters = estimator.get_params(deep=True)
    threads = {n: v for n, v in parameters.items() if n.split("__")[-1] in ("n_jobs", "thread_count")}
    chosen = [name for name, value in threads.items() if value is not None or not own]
    return estimator.set_params(**dict.fromkeys(chosen, 1)) if chosen else estimator


def dense_if_needed(X, s: Specialist):
    if not sparse.issparse(X) or s.sparse:
        return X
    if X.shape[0] * X.shape[1] * 8 > DENSE_LIMIT:
        raise MemoryError(f"{s.name} takes no sparse table, and as a dense one these rows need more than 2 GiB")
    return X.toarray()


def writable(X, s: Specialist):
    """Shared data cannot be written; a user's own estimator, which may do so, gets a copy."""
    return X if s.trusted or not isinstance(X, np.ndarray) or X.flags.writeable else X.copy()


def takes_weight(estimator) -> bool:
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return has_fit_parameter(last, "sample_weight")


def weight_argument(estimator, weight: np.ndarray) -> dict[str, np.ndarray]:
    """The keyword that carries sample weights to this estimator; nothing for one that takes none."""
    if not takes_weight(estimator):
        return {}
    prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    return {f"{prefix}sample_weight": weight}


def predict_tensor(estimator, X, classes: int, labels: np.ndarray | None = None) -> np.ndarray:
    """(n, C) probabilities over all classes, or (n, 1) predictions; checked, since a wrong one would be believed.

    `labels` are the classes in the words that the estimator was given, None where it was given codes.
    """
    rows = X.shape[0]
    with np.errstate(all="ignore"):  # what overflows inside shows in the numbers, which are checked below
        dense = isinstance(X, np.ndarray) and X.dtype.kind == "f"
        if rows <= FEW_ROWS and labels is None and type(estimator) in FORESTS and dense:
            return tree_by_tree(estimator, X, classes)
        if classes == 1:
            prediction = np.asarray(estimator.predict(X), dtype=float)
            return finite(prediction[:, None] if prediction.ndim == 1 else prediction, rows, 1)
        if hasattr(estimator, "predict_proba"):
            given, known = np.asarray(estimator.predict_proba(X), dtype=float), coded(estimator.classes_, labels)
        else:
            given, known = np.eye(classes)[coded(estimator.predict(X), labels)], np.arange(classes)
    return probabilities(given, known, rows, classes)


def tree_by_tree(forest, X, classes: int) -> np.ndarray:
    """What a forest predicts of a few rows, bit for bit, without the milliseconds that it takes to share out trees."""
    X = np.ascontiguousarray(X, dtype=np.float32)
    total = np.zeros((len(X), len(forest.classes_) if classes > 1 else 1))
    for tree in forest.estimators_:
        total += tree.tree_.predict(X)[:, : total.shape[1]]
    total /= len(forest.estimators_)
    if classes == 1:
        return finite(total, len(X), 1)
    return probabilities(total, coded(forest.classes_, None), len(X), classes)


def coded(values, labels: np.ndarray | None) -> np.ndarray:
    """Class codes of labels; -1 for one that the target does not have."""
    if labels is None:
        return np.asarray(values, dtype=int)
    position = {label: code for code, label in enumerate(labels.tolist())}
    return np.array([position.get(value, -1) for value in np.asarray(values).ravel().tolist()], dtype=int)


def probabilities(given: np.ndarray, known: np.ndarray, rows: int, classes: int) -> np.ndarray:
    """Probabilities of the classes that a specialist knows, placed among all; a class its fold lacked gets 0."""
    finite(given, rows, len(known))
    if not np.isin(known, np.arange(classes)).all() or len(np.unique(known)) != len(known):
        raise ValueError(f"predicts classes that the target does not have: {known}")
    if (given < -1e-6).any() or not np.allclose(given.sum(axis=1), 1, atol=1e-3):
        raise ValueError("predict_proba gives numbers that are not probabilities")
    P = np.zeros((rows, classes))
    P[:, known] = np.clip(given, 0, None)
    return P / P.sum(axis=1, keepdims=True)


def finite(prediction: np.ndarray, rows: int, columns: int) -> np.ndarray:
    if prediction.shape != (rows, columns):
        raise ValueError(f"predicts an array of shape {prediction.shape} instead of {(rows, columns)}")
    if not np.isfinite(prediction).all():
        raise ValueError("predicts NaN or infinity")
    return prediction


def stacker_features(P: np.ndarray) -> np.ndarray:
    """What a stacker reads of a tensor (n, K, C): (n, K C) logarithms of probabilities, or (n, K) predictions."""
    flat = P.reshape(len(P), -1)
    return flat if P.shape[2] == 1 else np.log(np.clip(flat, LOG_FLOOR, 1))
