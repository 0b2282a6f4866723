"""Fit one specialist and take its predictions, checked: what a worker runs."""

from __future__ import annotations

import hashlib
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from softlearning.execution import Shared
from softlearning.library import Shape, Specialist

LOG_FLOOR = 1e-6  # probabilities below are lifted before a logarithm, so that one bold specialist cannot rule a stacker
DENSE_LIMIT = 2**31  # bytes; a sparse table is not made dense beyond that for a learner that takes no sparse one


@dataclass(frozen=True)
class Rows:
    """Some rows of a shared matrix; `left` are columns that stand before them where a stacker reads both."""

    matrix: Shared
    index: np.ndarray | None = None
    left: Rows | None = None

    def load(self):
        X = self.matrix.load()
        X = X if self.index is None else take(X, self.index)
        return X if self.left is None else side_by_side(self.left.load(), X)


def take(X, rows: np.ndarray):
    """Some rows of an array, a sparse matrix or a frame."""
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def side_by_side(left, right):
    if sparse.issparse(left):
        return sparse.hstack([left, sparse.csr_array(right)]).tocsr()
    return np.hstack([left, right])


@dataclass(frozen=True)
class Work:
    """One fit: which specialist, from which rows, with which seed."""

    specialist: Specialist
    task: str
    seed: int
    X: Rows
    y: Shared
    weight: Shared | None
    train: np.ndarray
    categorical: tuple[int, ...] = ()
    outputs: int = 1


def fit_and_predict(work: Work, held_out: Rows, keep: bool) -> dict[str, Any]:
    """Fit on the training rows and predict the held-out ones; the model itself is given back only to be kept."""
    fitted = fit_whole(work)
    start = time.perf_counter()
    X = dense_if_needed(held_out.load(), work.specialist)
    prediction = predict_tensor(fitted["model"], X, work.outputs)
    seconds = {"fit_seconds": fitted["fit_seconds"], "predict_seconds": time.perf_counter() - start}
    return {"prediction": prediction, **seconds, **({"model": fitted["model"]} if keep else {})}


def fit_whole(work: Work) -> dict[str, Any]:
    """Fit a specialist on its rows."""
    start = time.perf_counter()
    X = dense_if_needed(work.X.load(), work.specialist)
    y = work.y.load()[work.train]
    estimator = ready(work, X, y)
    weight = {} if work.weight is None else weight_argument(estimator, work.weight.load()[work.train])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a learner that stops early shows in its risk; the user need not hear of it
        estimator.fit(X, y, **weight)
    return {"model": estimator, "fit_seconds": time.perf_counter() - start}


def ready(work: Work, X, y):
    """The unfitted estimator of a row for these rows: seeded, on one thread, able to give probabilities."""
    counts = np.unique(y, return_counts=True)[1] if work.task == "classification" else np.zeros(1, int)
    rarest = int(counts.min())
    shape = Shape(work.task, X.shape[0], X.shape[1], len(counts), rarest, work.categorical, work.outputs)
    estimator = single_threaded(seeded(work.specialist.make(shape), work.seed))
    scores_only = hasattr(estimator, "decision_function") and not hasattr(estimator, "predict_proba")
    if work.task == "classification" and is_classifier(estimator) and scores_only:
        return CalibratedClassifierCV(estimator, ensemble=False, cv=max(2, min(5, rarest)))
    return estimator


def seed_for(seed: int, name: str, fold: int | str) -> int:
    """A seed that hangs on the names alone, never on the order of execution."""
    digest = hashlib.sha256(f"{seed}/{name}/{fold}".encode()).digest()
    return int.from_bytes(digest[:4], "little") % (2**31 - 1)


def seeded(estimator, seed: int):
    names = [n for n in estimator.get_params(deep=True) if n.split("__")[-1] == "random_state"]
    return estimator.set_params(**dict.fromkeys(names, seed)) if names else estimator


def single_threaded(estimator):
    """Parallelism is across tasks, so a learner's own threads are turned off (None is one thread in scikit-learn)."""
    own = type(estimator).__module__.startswith("sklearn.")
    threads = {
        n: v for n, v in estimator.get_params(deep=True).items() if n.split("__")[-1] in ("n_jobs", "thread_count")
    }
    chosen = [name for name, value in threads.items() if value is not None or not own]
    return estimator.set_params(**dict.fromkeys(chosen, 1)) if chosen else estimator


def dense_if_needed(X, s: Specialist):
    if not sparse.issparse(X) or s.sparse:
        return X
    if X.shape[0] * X.shape[1] * 8 > DENSE_LIMIT:
        raise MemoryError(f"{s.name} takes no sparse table, and as a dense one these rows need more than 2 GiB")
    return X.toarray()


def takes_weight(estimator) -> bool:
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    return has_fit_parameter(last, "sample_weight")


def weight_argument(estimator, weight: np.ndarray) -> dict[str, np.ndarray]:
    """The keyword that carries sample weights to this estimator; nothing for one that takes none."""
    if not takes_weight(estimator):
        return {}
    prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    return {f"{prefix}sample_weight": weight}


def predict_tensor(estimator, X, classes: int) -> np.ndarray:
    """(n, C) probabilities over all classes, or (n, 1) predictions; checked, since a wrong one would be believed."""
    rows = X.shape[0]
    with np.errstate(all="ignore"):  # what overflows inside shows in the numbers, which are checked below
        if classes == 1:
            prediction = np.asarray(estimator.predict(X), dtype=float)
            return finite(prediction[:, None] if prediction.ndim == 1 else prediction, rows, 1)
        if hasattr(estimator, "predict_proba"):
            given, known = np.asarray(estimator.predict_proba(X), dtype=float), estimator.classes_
        else:
            given, known = np.eye(classes)[np.asarray(estimator.predict(X), dtype=int)], range(classes)
    return probabilities(given, known, rows, classes)


def probabilities(given: np.ndarray, known, rows: int, classes: int) -> np.ndarray:
    """Probabilities of the classes that a specialist knows, placed among all; a class its fold lacked gets 0."""
    known = np.asarray(known)
    finite(given, rows, len(known))
    if not np.isin(known, np.arange(classes)).all() or len(np.unique(known)) != len(known):
        raise ValueError(f"predicts classes that the target does not have: {known}")
    if (given < -1e-6).any() or not np.allclose(given.sum(axis=1), 1, atol=1e-3):
        raise ValueError("predict_proba gives numbers that are no probabilities")
    P = np.zeros((rows, classes))
    P[:, known.astype(int)] = np.clip(given, 0, None)
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
