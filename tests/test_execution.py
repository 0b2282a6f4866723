"""A failure is a value with a reason, wherever and however a task runs."""

import os
import signal
import time

import numpy as np
import psutil
import pytest

from softlearning import crew
from softlearning.execution import Failure, Outcome, Scratch, Task, elsewhere, run

WAYS = {"here": {}, "crew of one": {"isolate": True}, "crew of two": {"n_jobs": 2}}


def double(handle, rows):
    return {"prediction": 2 * handle.load()[rows]}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def refuse():
    raise ValueError("no")


def hold_everything():
    """Sleep in native code without letting go of the interpreter: no Python signal handler can run."""
    import ctypes

    ctypes.PyDLL(None).sleep(1000)


def eat(gigabytes):
    return {"size": float(np.ones(int(gigabytes * 2**27)).size)}


def grown(number):
    return {"number": float(number)}


def hands():
    """Processes that a crew left running (its office may stay)."""
    return psutil.Process().children(recursive=True)[1:] if crew._office else []


@pytest.mark.parametrize("way", WAYS)
def test_outcomes_come_in_the_order_of_the_tasks_whatever_their_cost(way, rng):
    X = rng.normal(size=(20, 3))
    with Scratch(shared=elsewhere(WAYS[way].get("n_jobs"), WAYS[way].get("isolate", False))) as scratch:
        handle = scratch.share(X)
        tasks = [Task("a", fold, double, (handle, np.arange(fold + 1)), cost=fold % 3) for fold in range(7)]
        outcomes = run(tasks, **WAYS[way])
    assert [o.fold for o in outcomes] == list(range(7))
    for fold, outcome in enumerate(outcomes):
        np.testing.assert_array_equal(outcome.value["prediction"], 2 * X[: fold + 1])


@pytest.mark.parametrize("way", WAYS)
def test_a_task_that_raises_fails_alone_and_says_where(way):
    outcomes = run([Task("a", 0, refuse, ()), Task("b", 0, grown, (1,))], **WAYS[way])
    assert isinstance(outcomes[1], Outcome)
    assert outcomes[0].error == "ValueError: no"
    assert "refuse" in outcomes[0].traceback


def test_a_task_that_kills_its_process_kills_nothing_else():
    tasks = [Task("killer", 0, die, ()), *(Task("a", i, grown, (i,)) for i in range(5))]
    outcomes = run(tasks, isolate=True)
    assert outcomes[0].error == "the process was ended by SIGKILL"
    assert [o.value["number"] for o in outcomes[1:]] == list(range(5))
    assert hands() == []


def test_a_task_that_holds_the_interpreter_is_ended_and_the_others_get_their_turn():
    tasks = [Task("hung", 0, hold_everything, (), cost=9), Task("a", 0, grown, (1,))]
    hung, other = run(tasks, deadline=time.monotonic() + 3)
    assert hung.error.startswith("TimeoutError")
    assert "hold_everything" in hung.traceback
    assert other.value == {"number": 1.0}


def test_what_is_not_begun_at_the_deadline_is_a_failure_with_that_reason():
    [outcome] = run([Task("a", 0, grown, (1,))], deadline=time.monotonic() - 1)
    assert outcome == Failure("a", 0, "not begun: the time limit was reached", 0.0)


def test_a_task_that_wants_too_much_memory_fails_alone():
    tasks = [Task("greedy", 0, eat, (2,)), Task("modest", 0, eat, (0.01,))]
    greedy, modest = run(tasks, memory_limit=2**30)
    assert greedy.error.startswith("MemoryError")
    assert isinstance(modest, Outcome)


def test_a_task_that_needs_more_than_its_share_of_memory_gets_all_of_it_alone():
    outcomes = run([Task(str(i), 0, eat, (0.6,)) for i in range(2)], memory_limit=2**30, n_jobs=2)
    assert all(isinstance(o, Outcome) for o in outcomes)


def test_after_one_failed_fold_the_others_of_that_specialist_are_not_begun():
    outcomes = run([Task("a", fold, refuse, ()) for fold in range(3)])
    assert [o.error for o in outcomes] == ["ValueError: no"] + ["not begun: fold 0 failed"] * 2
