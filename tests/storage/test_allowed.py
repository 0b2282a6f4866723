"""What a file may name: an exact list, and the estimators that this package defines."""

import inspect
from importlib import import_module

import pytest
from sklearn.base import BaseEstimator

from softlearning.library import learners, stackers
from softlearning.storage.allowed import FORGOTTEN, FUNCTIONS, KEYS, LOSSES, OBJECTS, class_of, is_allowed


@pytest.mark.parametrize("name", sorted(OBJECTS | LOSSES | FUNCTIONS | KEYS | FORGOTTEN))
def test_every_name_of_the_list_is_one_of_an_installed_package(name):
    module, _, attribute = name.rpartition(".")
    assert attribute.isidentifier()
    assert hasattr(import_module(module), attribute)


def test_every_own_estimator_is_allowed_and_nothing_else_of_these_modules():
    for module in (learners, stackers):
        for name, found in inspect.getmembers(module):
            own = inspect.isclass(found) and issubclass(found, BaseEstimator) and found.__module__ == module.__name__
            assert is_allowed("ObjectNode", f"{module.__name__}.{name}") == own


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "sklearn.pipeline.Pipeline2",
        "sklearn.pipeline.Pipeline.fit",
        "softlearning.library.learners.nothing",
        "softlearning.library.evil.Evil",
        "softlearning.library.learners.sklearn.Pipeline",
        "softlearning.execution.tasks.Failure",
        ".",
    ],
)
def test_names_off_the_list_are_not_allowed(name):
    assert not is_allowed("ObjectNode", name)
    assert not is_allowed("FunctionNode", name)


def test_an_estimator_of_ours_is_allowed_as_an_object_alone():
    name = "softlearning.library.learners.ScaledTarget"
    assert is_allowed("ObjectNode", name)
    assert not is_allowed("FunctionNode", name)
    assert class_of(name) is learners.ScaledTarget
