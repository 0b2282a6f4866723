"""scikit-learn's callbacks hear of every task, and are simply absent where scikit-learn has none."""

import subprocess
import sys

import pytest

from softlearning.execution import Task, run
from softlearning.execution.callbacks import telling
from tests.execution.calls import grown, refuse


class Heard:
    """Stands for an estimator with callbacks, and for the context of its fit."""

    def __init__(self, stop=False):
        self._skl_callbacks = ["some"]
        self.begun, self.ended, self.stop = [], 0, stop

    def subcontext(self, task_name, task_id):
        self.begun.append((task_name, task_id))
        return self

    def call_on_fit_task_begin(self, estimator):
        return self

    def call_on_fit_task_end(self, estimator):
        self.ended += 1
        return self.stop


def test_each_task_begins_and_ends_once_whatever_becomes_of_it():
    heard = Heard()
    run([Task("a", 0, grown, (1,)), Task("b", "refit", refuse, ())], watch=telling(heard, heard, None))
    assert heard.begun == [("a, fold 0", 0), ("b, fold refit", 1)]
    assert heard.ended == 2


def test_a_callback_may_stop_the_folds_and_not_the_refits():
    for fold, finished in ((0, 1), ("refit", 2)):
        heard = Heard(stop=True)
        outcomes = run([Task(n, fold, grown, (1,)) for n in "ab"], watch=telling(heard, heard, None))
        assert sum(hasattr(o, "value") for o in outcomes) == finished


def test_without_callbacks_the_watch_is_the_callers_own():
    watch = print
    assert telling(object(), None, watch) is watch


WITHOUT = """
import sys
import softlearning.estimators
from sklearn.datasets import load_iris
for name in [m for m in sys.modules if m.startswith(("softlearning.estimators", "softlearning.execution.callbacks"))]:
    del sys.modules[name]  # scikit-learn itself needs what we now take away
sys.modules["sklearn.callback"] = None
from softlearning import SoftClassifier
model = SoftClassifier(["naive_bayes"], cv=3).fit(*load_iris(return_X_y=True))
print(model.weights_.to_dict(), hasattr(model, "set_callbacks"))
"""


def test_a_fit_works_where_scikit_learn_has_no_callbacks():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "{'naive_bayes': 1.0} False", done.stderr


def test_where_there_are_callbacks_the_estimators_take_them():
    pytest.importorskip("sklearn.callback")
    from softlearning import SoftClassifier

    assert hasattr(SoftClassifier(), "set_callbacks")
