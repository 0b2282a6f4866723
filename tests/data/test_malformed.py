"""Malformed training input: a right model, or an error that names the cause and leaves the estimator unfitted."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from softlearning import SoftClassifier, SoftRegressor
from tests.data.malformed import FINITE, GOOD, LABEL, MODEL, VALUE, cases

CASES = cases()
SMALL = {"classification": ["logistic", "decision_tree"], "regression": ["ridge", "decision_tree"]}
ESTIMATOR = {"classification": SoftClassifier, "regression": SoftRegressor}
TARGET = {"classification": LABEL, "regression": VALUE}


def given(case):
    """Estimator, X, y and what else goes to fit."""
    settings = {
        "library": SMALL[case.task],
        "cv": 2,
        "rule": "simplex",
        **{name: make() for name, make in case.settings.items()},
    }
    X = GOOD if case.X is None else case.X()
    y = TARGET[case.task] if case.y is None else case.y()
    return ESTIMATOR[case.task](**settings), X, y, {name: make() for name, make in case.fit.items()}


def fit(model, X, y, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning beside a right model or an error is welcome
        return model.fit(X, y, **options)


def check_model(model, X, y, expected):
    """Predictions are finite and, where the signal is there, better than guessing."""
    n = len(np.asarray(y).ravel())
    given = model.predict_proba(X) if isinstance(model, SoftClassifier) else model.predict(X)
    assert len(given) == n
    assert np.isfinite(given).all()
    assert model.weights_.sum() == pytest.approx(1)
    if expected == MODEL:
        target = np.asarray(y).ravel()
        assert model.score(X, target if isinstance(model, SoftClassifier) else target.astype(float)) > 0.8


def check_unfitted(model):
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert [name for name in vars(model) if name.endswith("_") and not name.startswith("_")] == []


def speed(number, case):
    """Errors come quickly; of the models every eighth is fitted by default and all in the slow run."""
    quick = case.expected not in (MODEL, FINITE) or number % 8 == 0
    return pytest.param(case, id=case.name, marks=[] if quick else [pytest.mark.slow])


def test_there_are_at_least_two_hundred_cases():
    assert len({case.name for case in CASES}) == len(CASES) >= 200


@pytest.mark.parametrize("case", [speed(number, case) for number, case in enumerate(CASES)])
def test_malformed_input_gives_a_right_model_or_an_error_with_the_cause(case):
    model, X, y, options = given(case)
    if case.expected in (MODEL, FINITE):
        check_model(fit(model, X, y, options), X, y, case.expected)
        return
    with pytest.raises((ValueError, TypeError), match=case.expected):
        fit(model, X, y, options)
    check_unfitted(model)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 2, 3, 5])
@pytest.mark.parametrize("task", SMALL)
def test_very_few_rows(task, rows):
    """One row cannot be held out; two rows of two classes, or more, give a model."""
    order = np.argsort(np.abs(GOOD[:, 0]))[::-1]
    order = np.concatenate([[order[LABEL[order] == "yes"][0]], [order[LABEL[order] == "no"][0]], order])[:rows]
    model = ESTIMATOR[task](library=SMALL[task])
    if rows == 1:
        with pytest.raises(ValueError, match=r"row|sample|class"):
            fit(model, GOOD[order], TARGET[task][order], {})
        check_unfitted(model)
    else:
        check_model(fit(model, GOOD[order], TARGET[task][order], {}), GOOD[order], TARGET[task][order], FINITE)


@pytest.mark.slow
def test_a_hundred_thousand_columns():
    X = np.hstack([GOOD, np.random.default_rng(0).normal(size=(len(GOOD), 100_000))])
    check_model(fit(SoftClassifier(library=["logistic"], cv=3), X, LABEL, {}), X, LABEL, FINITE)


def test_a_failed_fit_forgets_the_model_before_it():
    model = SoftClassifier(library=["logistic"], cv=3).fit(GOOD, LABEL)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.where(GOOD > 1, np.inf, GOOD), LABEL)
    check_unfitted(model)
