"""One thread, and quiet, inside; as before outside and for other threads."""

import threading
import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_info

from softlearning.execution.threads import QuietThreads, one_thread, quiet


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
