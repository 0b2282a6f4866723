"""Specialists that misbehave: one kind of fault each, at one place, in one fold.

`FaultyClassifier(kind, when, fold)` and `FaultyRegressor` learn well (so that they earn weight) until their moment
comes. The moment is read off the data: column 0 holds the number of the row, row r is held out in fold r % `folds`, and
a fit on all `rows` is the refit. Kinds that only do harm around them raise afterwards, so that every kind is a failure
and the right model is always the one without the specialist.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import psutil
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression, Ridge
from threadpoolctl import threadpool_limits

from softlearning.execution import pool

OWNER = os.getpid()


def sleeper(owner):
    """The command of a child that a fault leaves running; it names the process of the test."""
    return ["sleep", f"1000.{owner}"]


def of_joblib(process):
    """Workers that joblib keeps for the next call, and its helper."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return any(name in " ".join(process.cmdline()) for name in ("loky", "resource_tracker"))
    return True


def processes_left(known=()):
    """Processes that the package left running below this one, a moment later; its server may stay.

    `known` are the numbers of processes that other tests keep here.
    """
    for _ in range(100):
        own = [p for p in psutil.Process().children() if not of_joblib(p) and p.pid not in known]
        below = own.copy()
        with contextlib.suppress(psutil.NoSuchProcess):
            below += [p for child in own for p in child.children(recursive=True)]
        kept = pool.started()
        sleepers = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == sleeper(OWNER)]
        if len(below) <= kept and not sleepers:
            return []
        time.sleep(0.05)
    return below + sleepers


class HarmDoneError(RuntimeError):
    """Raised after a harm that is not an error by itself."""


class UnpicklableError(RuntimeError):
    def __init__(self):
        super().__init__("cannot be pickled")
        self.lock = threading.Lock()


def fail(X):
    raise ValueError("I never work")


def leave(X):
    sys.exit(3)


def interrupt(X):
    raise KeyboardInterrupt


def overflow(X):
    raise MemoryError("no memory left")


def import_nothing(X):
    import a_package_that_nobody_has  # noqa: F401


def unpicklable(X):
    raise UnpicklableError


def kill(X):
    os.kill(os.getpid(), signal.SIGKILL)


def segfault(X):
    ctypes.string_at(0)


def abort(X):
    os.abort()


def sleep(X):
    time.sleep(1000)


def hold_the_interpreter(X):
    ctypes.PyDLL(None).sleep(1000)


def deadlock(X):
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def mutate(X):
    X[:] = 0
    raise HarmDoneError


def reseed(X):
    np.random.seed(0)  # noqa: NPY002
    raise HarmDoneError


def change_threads(X):
    threadpool_limits(7)
    os.environ["OMP_NUM_THREADS"] = "7"
    raise HarmDoneError


def change_folder(X):
    os.chdir("/")
    raise HarmDoneError


def flood_output(X):
    for stream in (1, 2):
        os.write(stream, b"x" * 1_000_000)
    print("x" * 1_000_000)
    raise HarmDoneError


def flood_warnings(X):
    for i in range(20_000):
        warnings.warn(f"warning {i}", stacklevel=1)
    raise HarmDoneError


def leave_a_child(X):
    subprocess.Popen(sleeper(os.environ["OWNER_OF_FAULTS"]), start_new_session=True)
    raise HarmDoneError


def not_a_number(P):
    P[0] = np.nan
    return P


def infinite(P):
    P[-1] = np.inf
    return P


def wrong_shape(P):
    return P[:-1]


def foreign_classes(P):
    """The columns belong to classes in an order, and of names, that the target does not have."""
    return P[:, ::-1] if P.ndim == 2 else np.array(["b", "a"] * len(P))[: len(P)]


def missing_class(P):
    return P[:, :-1] if P.ndim == 2 else P.astype(complex)[:0]


ACTIONS = {
    "raise": fail,
    "exit": leave,
    "interrupt": interrupt,
    "memory": overflow,
    "import": import_nothing,
    "unpicklable": unpicklable,
    "sigkill": kill,
    "sigsegv": segfault,
    "sigabrt": abort,
    "sleep": sleep,
    "gil": hold_the_interpreter,
    "deadlock": deadlock,
    "mutate": mutate,
    "reseed": reseed,
    "threads": change_threads,
    "chdir": change_folder,
    "stdout": flood_output,
    "warnings": flood_warnings,
    "child": leave_a_child,
}
PREDICTIONS = {
    "nan": not_a_number,
    "inf": infinite,
    "shape": wrong_shape,
    "class order": foreign_classes,
    "missing class": missing_class,
}
KINDS = (*ACTIONS, *PREDICTIONS)
HANGS = ("sleep", "gil", "deadlock")
DEADLY = ("sigkill", "sigsegv", "sigabrt")


class Fault(BaseEstimator):
    """`when` is "fit", "predict" or "refit"; wrong predictions come from a model that was fitted at that moment."""

    def __init__(self, kind, when="fit", fold=1, rows=60, folds=3, owner=OWNER):
        self.kind = kind
        self.when = when
        self.fold = fold
        self.rows = rows
        self.folds = folds
        self.owner = owner

    def fit(self, X, y):
        absent = set(range(self.rows)) - set(X[:, 0].astype(int).tolist())
        place = min(absent) % self.folds if absent else "refit"
        self.moment_ = place == {"fit": self.fold, "predict": self.fold, "refit": "refit"}.get(self.when)
        if self.moment_ and self.when != "predict":
            self._misbehave(X)
        self.model_ = self._learner().fit(X[:, 1:], y)
        return self

    def _misbehave(self, X):
        if self.when == "refit" and self.kind in PREDICTIONS:
            raise ValueError(f"the fit ended in {self.kind}")
        os.environ["OWNER_OF_FAULTS"] = str(self.owner)
        if self.kind in ACTIONS:
            ACTIONS[self.kind](X.copy() if self.kind != "mutate" else X)

    def _predict(self, X, method):
        if self.moment_ and self.when == "predict":
            self._misbehave(X)
        P = np.array(getattr(self.model_, method)(X[:, 1:]))
        wrong = self.moment_ and self.when != "refit" and self.kind in PREDICTIONS
        return PREDICTIONS[self.kind](P) if wrong else P

    def predict(self, X):
        return self._predict(X, "predict")


class FaultyRegressor(RegressorMixin, Fault):
    def _learner(self):
        return Ridge()


class FaultyClassifier(ClassifierMixin, Fault):
    def _learner(self):
        return LogisticRegression(C=100)

    def fit(self, X, y):
        super().fit(X, y)
        self.classes_ = self.model_.classes_
        if self.moment_ and self.kind == "class order":
            self.classes_ = self.classes_[::-1] + 1  # an order that sorting would hide, and a class nobody has
        return self

    def predict_proba(self, X):
        return self._predict(X, "predict_proba")
