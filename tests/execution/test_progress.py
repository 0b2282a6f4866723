"""Who watches: the live view shows what is known, and scikit-learn's callbacks hear of every task if there are any."""

import io
import subprocess
import sys

import pytest
from rich.console import Console

from softlearning.execution import Event, Task
from softlearning.execution.progress import Board, clock, draw, grouped, headline, telling, watching
from tests.execution.calls import grown, refuse, run


def board(*events, begin=0.0):
    """A board that took (kind, specialist, fold, seconds, cost) at the given instants."""
    made = Board(begin)
    for now, (kind, name, fold, seconds, cost) in events:
        made.take(Event(kind, name, fold, seconds, 0, 0, "ValueError: no" if kind == "failed" else "", cost), now)
    return made


def picture(made, now):
    console = Console(file=io.StringIO(), width=100)
    console.print(draw(made, now))
    return console.file.getvalue()


def test_expected_time_follows_relative_costs_until_a_specialist_is_known():
    made = board(
        (0, ("waiting", "a", 0, 0, 1)),
        (0, ("waiting", "b", 0, 0, 10)),
        (0, ("waiting", "b", 1, 0, 10)),
        (0, ("started", "a", 0, 0, 1)),
    )
    assert made.expected(0.5) is None
    made.take(Event("finished", "a", 0, 2.0, 1, 3), 2.0)
    assert made.expected(2.0) == 40.0
    made.take(Event("started", "b", 0, 0, 1, 3, cost=10), 2.0)
    made.take(Event("finished", "b", 0, 5.0, 2, 3, cost=10), 7.0)
    assert made.expected(7.0) == 5.0


def test_a_running_task_counts_less_as_time_goes_by_and_never_below_nothing():
    made = board((0, ("finished", "a", 0, 4.0, 1)), (4, ("started", "a", 1, 0, 1)))
    assert made.expected(5.0) == 3.0
    assert made.expected(60.0) == 0.0


def test_two_at_once_take_half_the_time():
    made = board((0, ("started", "a", 0, 0, 1)), (0, ("started", "a", 1, 0, 1)), (0, ("waiting", "a", 2, 0, 1)))
    made.take(Event("finished", "a", 0, 4.0, 1, 3), 4.0)
    assert made.expected(4.0) == 2.0


def test_the_picture_has_a_row_a_specialist_a_mark_a_fold_and_the_reason_of_a_failure():
    made = board(
        (0, ("finished", "ridge", 0, 1.5, 1)),
        (0, ("started", "ridge", 1, 0, 1)),
        (0, ("failed", "forest", 0, 0.1, 1)),
        (0, ("waiting", "forest", 1, 0, 1)),
        (0, ("restored", "ridge", "refit", 0, 1)),
    )
    title, head, ridge, forest = (line.split() for line in picture(made, 65.0).splitlines())
    assert " ".join(title) == "3 of 5 tasks, 1:05, about 0:02 more, 1 specialist failed"
    assert head == ["specialist", "0", "1", "refit", "seconds"]
    assert ridge == ["ridge", "✓", "▸", "↺", "1.5"]
    assert forest == ["forest", "✗", "·", "0.1", "ValueError:", "no"]


def test_many_folds_share_columns():
    columns = grouped([*range(30), "refit"])
    assert columns[0] == [0, 1, 2]
    assert columns[-1] == ["refit"]
    assert [fold for group in columns for fold in group] == [*range(30), "refit"]


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3661, "1:01:01")])
def test_clock(seconds, text):
    assert clock(seconds) == text


def test_names_are_shown_as_they_are():
    assert "[red]x[/red]" in picture(board((0, ("waiting", "[red]x[/red]", 0, 0, 1))), 1.0)


def test_a_fit_can_be_watched_live_by_ones_own_function_or_by_nobody():
    tasks = [Task("ridge", fold, dict, ()) for fold in range(2)]
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with watching(True, console) as watch:
        run(tasks, watch=watch)
    assert "2 of 2 tasks" in console.file.getvalue()
    events = []
    with watching(events.append) as watch:
        run(tasks, watch=watch)
    assert [e.kind for e in events].count("finished") == 2
    with watching(False) as watch:
        assert watch is None


# ------------------------------------------------------------------------------------------ scikit-learn's callbacks


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
for name in [m for m in sys.modules if m.startswith(("softlearning.estimators", "softlearning.execution.progress"))]:
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


def test_before_the_first_task_nothing_is_counted():
    board = Board()
    assert headline(board, board.begin + 7) == "Getting ready, 0:07"
