"""A specialist that fails, in whatever way and place, leaves the fit as it would be without it."""

import warnings

import joblib
import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from softlearning import SoftClassifier, SoftRegressor
from softlearning.execution import Failure, Task
from tests.execution.calls import run
from tests.execution.faults import ACTIONS, HANGS, KINDS, FaultyClassifier, FaultyRegressor, processes_left

ROWS, FOLDS = 60, 3


def table():
    """Row numbers, and three features that a linear model reads well."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.arange(ROWS), rng.normal(size=(ROWS, 3))])
    score = X[:, 1:] @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=ROWS)
    return X, score


X, SCORE = table()
LABELS = np.digitize(SCORE, [-1.0, 1.0])
SPLITS = [(np.flatnonzero(X[:, 0] % FOLDS != f), np.flatnonzero(X[:, 0] % FOLDS == f)) for f in range(FOLDS)]


def fit_and_predict(fault, fold):
    """What a task of one fold does, without the checks of the package."""
    train, test = SPLITS[fold]
    return {"prediction": fault.fit(X[train], LABELS[train]).predict_proba(X[test])}


def work(number):
    return {"number": float(number)}


def test_there_are_24_kinds():
    assert len(KINDS) == 24


@pytest.mark.parametrize("when", ["fit", "predict"])
def test_every_kind_of_fault_is_one_failure_and_every_other_task_finishes(when):
    limits = {kind: 2.0 if kind in HANGS else None for kind in ACTIONS}
    faults = [Task(k, 1, fit_and_predict, (FaultyClassifier(k, when), 1), limit=limit) for k, limit in limits.items()]
    others = [Task("good", i, work, (i,), cost=0.5) for i in range(10)]
    outcomes = run(faults + others, n_jobs=2, isolate=True)
    assert all(isinstance(o, Failure) for o in outcomes[: len(faults)])
    assert [o.value["number"] for o in outcomes[len(faults) :]] == list(range(10))
    errors = {o.specialist: o.error for o in outcomes[: len(faults)]}
    assert errors["raise"] == "ValueError: I never work"
    assert errors["sigsegv"] == "the process was ended by SIGSEGV"
    assert all(errors[kind].startswith("TimeoutError") for kind in HANGS)
    assert processes_left() == []


# ---------------------------------------------------------------------------------------------------- the whole fit


def model(task, fault=None, **settings):
    if task == "classification":
        library = [("tree", DecisionTreeClassifier(max_depth=2, random_state=0)), ("near", KNeighborsClassifier())]
        library.append(("bayes", GaussianNB()))
        return SoftClassifier(library + ([("fault", fault)] if fault else []), cv=SPLITS, refit=True, **settings)
    library = [("tree", DecisionTreeRegressor(max_depth=2, random_state=0)), ("near", KNeighborsRegressor())]
    return SoftRegressor(library + ([("fault", fault)] if fault else []), cv=SPLITS, refit=True, **settings)


def fitted(task, fault=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the failure, which is looked at in `failures_`
        return model(task, fault, **settings).fit(X, LABELS if task == "classification" else SCORE)


def numbers(m):
    answer = m.predict_proba if hasattr(m, "predict_proba") else m.predict
    return m.weights_.index.tolist(), m.weights_.to_numpy().tobytes(), m.oof_.tobytes(), np.asarray(answer(X)).tobytes()


FAULTY = {"classification": FaultyClassifier, "regression": FaultyRegressor}
EXPECTED = {}


def expected(task):
    """The numbers of the fit that never knew the specialist."""
    if task not in EXPECTED:
        EXPECTED[task] = numbers(fitted(task))
    return EXPECTED[task]


def check(task, kind, when, **settings):
    if kind in HANGS:
        settings["time_limit"] = 24
    m = fitted(task, FAULTY[task](kind, when), **settings)
    if kind in HANGS and when == "refit":  # under a time limit the models of the folds stand in for a refit
        assert m.weights_["fault"] > 0
        assert np.isfinite(m.predict(X)).all()
        return
    assert numbers(m) == expected(task)
    failed = m.failures_[m.failures_["specialist"] == "fault"]
    assert len(failed)
    assert failed["error"].iloc[0]
    assert processes_left() == []


@pytest.mark.parametrize(
    ("task", "kind", "when"),
    [
        ("classification", "sigkill", "fit"),
        ("classification", "nan", "predict"),
        ("classification", "class order", "fit"),
        ("classification", "missing class", "predict"),
        ("classification", "child", "refit"),
        ("regression", "shape", "fit"),
        ("regression", "exit", "predict"),
        ("regression", "unpicklable", "refit"),
        ("regression", "gil", "fit"),
        ("regression", "sigabrt", "refit"),
        ("regression", "sleep", "refit"),
    ],
)
def test_the_model_is_bit_for_bit_the_one_without_the_failed_specialist(task, kind, when):
    check(task, kind, when, n_jobs=2 if kind == "gil" else None)


def test_a_good_specialist_in_the_same_place_earns_weight():
    """Else the tests of this file could pass without a fault ever being met."""
    fault = FaultyClassifier("raise", when="never")
    assert fitted("classification", fault).weights_["fault"] > 0.2
    assert fitted("regression", FaultyRegressor("raise", when="never")).weights_["fault"] > 0.2


ENGINES = {"one": (None, 1), "two": (None, 2), "loky": ("loky", 2)}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("task", FAULTY)
@pytest.mark.parametrize("when", ["fit", "predict", "refit"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_faults_in_all_places_on_all_engines(kind, when, task, engine):
    backend, n_jobs = ENGINES[engine]
    if backend is None:
        return check(task, kind, when, n_jobs=n_jobs)
    with joblib.parallel_config(backend, n_jobs=n_jobs):
        return check(task, kind, when)
