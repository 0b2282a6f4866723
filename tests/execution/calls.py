"""What the tasks of these tests do."""

import ctypes
import os
import signal
import time

import numpy as np


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
