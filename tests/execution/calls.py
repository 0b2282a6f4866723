"""What the tasks of these tests do, and how they are run."""

import ctypes
import os
import signal
import time

import numpy as np

from softlearning import execution
from softlearning.execution import Scheduler, open_engine, parse_bytes


def run(tasks, engine=None, *, n_jobs=None, isolate=False, memory_limit=None, deadline=None, store=None, **settings):
    """What became of the tasks, on a given engine or on the one that a fit would open for them."""
    settings |= {"memory": parse_bytes(memory_limit), "deadline": deadline, "store": store}
    if engine is not None:
        return execution.run(Scheduler(tasks, **settings), engine)
    isolate = isolate or memory_limit is not None or deadline is not None
    with open_engine(n_jobs=n_jobs, isolate=isolate, store=store) as opened:
        return execution.run(Scheduler(tasks, **settings), opened)


def double(handle, rows):
    return {"prediction": 2 * handle.load()[rows]}


def grown(number):
    return {"number": float(number)}


def refuse():
    raise ValueError("no")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def hold_everything():
    """Sleep in native code without letting go of the interpreter: no Python signal handler can run."""
    ctypes.PyDLL(None).sleep(1000)


def eat(gigabytes):
    """Fill memory in steps, as a learner does."""
    return {"size": float(np.ones(int(gigabytes * 2**27)).size)}


def nap(seconds):
    time.sleep(seconds)
    return {}


def who():
    return {"pid": float(os.getpid())}
