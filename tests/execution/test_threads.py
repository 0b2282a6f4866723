"""On one thread inside, as before outside, whoever leaves last."""

import threading

import numpy as np
from threadpoolctl import threadpool_info

from softlearning.execution.threads import one_thread


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
