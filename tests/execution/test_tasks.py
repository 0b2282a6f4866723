"""A task's outcome is a value or a Failure with a kind and a reason; inside there is one thread, and quiet."""

import threading
import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_info

from softlearning.execution.tasks import (
    FAILED,
    Failure,
    Outcome,
    QuietThreads,
    Task,
    one_thread,
    parse_bytes,
    perform,
    quiet,
    say,
)
from tests.execution.calls import grown, refuse


def overflow():
    raise MemoryError("no more")


def test_a_value_comes_with_its_seconds():
    outcome = perform(Task("a", 3, grown, (1,)))
    assert isinstance(outcome, Outcome)
    assert (outcome.specialist, outcome.fold, outcome.value) == ("a", 3, {"number": 1.0})
    assert outcome.seconds >= 0


@pytest.mark.parametrize(
    ("function", "kind", "error"), [(refuse, "error", "ValueError: no"), (overflow, "memory", "MemoryError: no more")]
)
def test_what_a_task_raises_becomes_a_failure_of_its_kind(function, kind, error):
    failure = perform(Task("a", 0, function, ()))
    assert (failure.kind, failure.error) == (kind, error)
    assert function.__name__ in failure.traceback
    assert failure.kind in FAILED


def test_a_failure_that_nobody_classified_is_an_error():
    assert Failure("a", 0, "no", 0.0).kind == "error"
    assert Task("a", 0, grown, ()).failed("skipped", "no time").kind not in FAILED


def test_only_what_is_caught_becomes_a_failure():
    def interrupt():
        raise KeyboardInterrupt

    assert perform(Task("a", 0, interrupt, ())).error == "KeyboardInterrupt"
    with pytest.raises(KeyboardInterrupt):
        perform(Task("a", 0, interrupt, ()), Exception)


def test_numbers_that_are_not_finite_are_a_failure():
    failure = perform(Task("a", 0, lambda: {"prediction": np.array([1.0, np.nan])}, ()))
    assert failure.error == "ValueError: prediction: 1 of 2 numbers are not finite"


def test_an_error_whose_message_cannot_be_made_is_said_all_the_same():
    class Shy(Exception):
        def __str__(self):
            raise RuntimeError

    assert say(Shy()) == "Shy: (its message cannot be printed)"
    assert len(say(ValueError("x" * 10_000))) == 2000


@pytest.mark.parametrize(
    ("amount", "size"),
    [
        *((None, None), (2_000_000_000, 2 * 10**9), (2e9, 2 * 10**9), (np.float64(3e6), 3 * 10**6), ("1024", 1024)),
        *(("2 GB", 2 * 10**9), ("2gb", 2 * 10**9), ("1.5 GiB", 3 * 2**29), ("512M", 512 * 10**6), ("4 kib", 4096)),
        *(("2e9", 2 * 10**9), ("1 TB", 10**12), ("100 b", 100), ("2_000 MB", 2 * 10**9)),
    ],
)
def test_amounts_of_memory_are_taken_as_people_write_them(amount, size):
    assert parse_bytes(amount) == size


@pytest.mark.parametrize(
    "amount", [0, -1, 0.5, "1e30", "", "much", "2 XB", "GB", "-2 GB", True, float("nan"), float("inf"), [2]]
)
def test_what_is_no_amount_of_memory_is_refused_with_an_example(amount):
    with pytest.raises(ValueError, match="is no amount of memory: give bytes, as 2e9, or a text, as '2 GB'"):
        parse_bytes(amount)


# ----------------------------------------------------------- as before outside, and for other threads


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_inside_there_is_one_thread_and_outside_as_before():
    before = blas_threads()
    with one_thread:
        assert blas_threads() == {1}
        with one_thread:
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_the_last_to_leave_restores():
    before = blas_threads()
    inside, leave = threading.Barrier(2), threading.Event()

    def stay():
        with one_thread:
            inside.wait()
            leave.wait()

    other = threading.Thread(target=stay)
    other.start()
    with one_thread:
        inside.wait()
    assert blas_threads() == {1}
    leave.set()
    other.join()
    assert blas_threads() == before


def test_quiet_silences_this_thread_alone():
    before = list(warnings.filters)
    inside, leave = threading.Barrier(2), threading.Event()

    def silent():
        with quiet():
            inside.wait()
            warnings.warn("not to be heard", stacklevel=1)
            leave.wait()

    other = threading.Thread(target=silent)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        other.start()
        inside.wait()
        warnings.warn("to be heard", stacklevel=1)
        leave.set()
        other.join()
    assert [str(w.message) for w in heard] == ["to be heard"]
    assert list(warnings.filters) == before


def test_quiet_ends_with_its_block_and_may_be_nested():
    with quiet(), quiet():
        warnings.warn("not to be heard", stacklevel=1)
    with pytest.warns(UserWarning, match="again"):
        warnings.warn("again", stacklevel=1)


def test_learners_that_copy_warning_filters_find_a_pattern():
    X, y = np.arange(20.0).reshape(-1, 1), np.arange(20) % 2
    with quiet():
        assert RandomForestClassifier(2).fit(X, y).predict(X).shape == (20,)
        assert {f[1].pattern for f in warnings.filters if isinstance(f[1], QuietThreads)} == {".*"}
