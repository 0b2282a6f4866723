"""Real faults of the system around a fit: no temporary folder, a small /dev/shm, a full disk, none of them patched."""

import subprocess
import sys

import pytest

from tests.stress_log import record

FIT = """
import ctypes, os, sys, warnings
libc = ctypes.CDLL(None, use_errno=True)

def mount(place, options, flags=0):
    if libc.mount(b"tmpfs", place.encode(), b"tmpfs", flags, options):
        sys.exit(77)

if libc.unshare(0x00020000) or libc.mount(b"none", b"/", None, 0x44000, None):  # CLONE_NEWNS; private, recursive
    sys.exit(77)
os.chdir("/sys")  # where nothing can be written
PREPARE
import numpy as np
from sklearn.tree import DecisionTreeClassifier
from softlearning import SoftClassifier, load

rng = np.random.default_rng(0)
X = rng.normal(size=(3_000, 60))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    library = ["naive_bayes", ("tree", DecisionTreeClassifier(max_depth=3))]
    model = SoftClassifier(library, n_jobs=2, cv=2).fit(X, X[:, 0] > 0)
    SAVE
print(sorted(model.weights_.index), len(model.failures_), [str(w.message) for w in seen])
"""
PLACES = ("/tmp", "/var/tmp", "/usr/tmp", "/dev/shm")
READ_ONLY = f"""
for place in {PLACES}:
    if os.path.isdir(place):
        mount(place, b"size=4k", 1)
"""
FULL = """
mount("/mnt", b"size=8k")
"""
SAVE_TO_FULL = """
    try:
        model.save("/mnt/model")
    except OSError as error:
        assert "No space left" in str(error), error
        assert os.listdir("/mnt") == []
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trouble", "prepare", "save"),
    [
        ("no temporary folder", READ_ONLY, ""),
        ("a /dev/shm of 64 kB", 'mount("/dev/shm", b"size=64k")', ""),
        ("a full disk at the end", FULL, SAVE_TO_FULL),
    ],
)
def test_a_fit_ends_with_its_model_whatever_the_system_lacks(trouble, prepare, save):
    code = FIT.replace("PREPARE", prepare).replace("    SAVE\n", save or "    pass\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this system lets us mount nothing")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("['naive_bayes', 'tree'] 0 "), done.stdout
    record(f"bad day: {trouble}", fits=1, sound=1)
