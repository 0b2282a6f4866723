"""Models in a checkpoint: the same predictions, and no class that the task does not fit."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from softlearning.library import as_rows
from softlearning.storage import ModelFileError
from softlearning.storage.models import dump_model, load_model, own_classes


class Mine(LogisticRegression):
    """A user's own estimator."""


def task_of(*estimators):
    return SimpleNamespace(args=(SimpleNamespace(specialist=as_rows([("own", e) for e in estimators])[0]),))


@pytest.mark.parametrize("estimator", [RandomForestClassifier(3, random_state=0), LogisticRegression(), Mine()])
def test_a_kept_model_predicts_the_same(estimator, rng):
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    model = estimator.fit(X, y)
    again = load_model(dump_model(model), task_of(estimator))
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_class_that_the_task_does_not_fit_is_not_built(rng):
    data = dump_model(Mine())
    with pytest.raises(ModelFileError, match="Mine"):
        load_model(data, task_of(LogisticRegression()))
    with pytest.raises(ModelFileError, match="Mine"):
        load_model(data, SimpleNamespace(args=(1.0,)))


def test_the_users_own_classes_of_a_task_are_found_in_pipelines_too():
    name = f"{Mine.__module__}.Mine"
    assert own_classes(task_of(Mine())) == {name}
    assert own_classes(task_of(make_pipeline(Mine()))) == {name}
    assert own_classes(task_of(LogisticRegression())) == set()
