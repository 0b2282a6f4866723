"""Whole fits under trouble, many times over: kills, hangs, memory, determinism, leaks, threads.

Each stress test has a short form for every day and a long one under `slow`, which appends a line to the log of stress
tests (`tests.stress_log`).
"""

import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import psutil
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from softlearning import SoftClassifier
from softlearning.execution.checkpoint import TASK
from softlearning.execution.shared import PREFIX
from tests.execution.faults import FaultyClassifier, processes_left
from tests.execution.test_faults import LABELS, SPLITS, X
from tests.stress_log import record

OWN = ["logistic", "knn_5", "decision_tree", "naive_bayes", "spline_logistic"]  # rows that may run in this process


def many(short, long):
    return pytest.mark.parametrize("count", [short, pytest.param(long, marks=pytest.mark.slow)])


def digest(model):
    """SHA-256 of weights, out-of-fold predictions and predictions."""
    parts = (model.weights_.to_numpy(), model.oof_, model.predict_proba(X))
    return hashlib.sha256(b"".join(np.ascontiguousarray(p).tobytes() for p in parts)).hexdigest()


def quiet_fit(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, LABELS)


# ------------------------------------------------------------------------------------------- a killed fit goes on


class Counted(LogisticRegression):
    """Leaves a line in a file whenever it is fitted, and takes its time."""

    def __init__(self, log="", C=1.0):
        super().__init__(C=C)
        self.log = log

    def fit(self, X, y):
        with open(self.log, "a") as file:
            file.write(f"{self.C} {len(y)}\n")
        time.sleep(0.05)
        return super().fit(X, y)


def driver(folder, log, n_jobs):
    """What the processes that are killed do."""
    library = [(f"counted_{C}", Counted(log, C)) for C in (0.1, 1.0, 10.0)] + [("bayes", GaussianNB())]
    model = SoftClassifier(library, cv=SPLITS, refit=True, checkpoint=folder or None, n_jobs=n_jobs)
    print(digest(quiet_fit(model)), flush=True)


def start_driver(folder, log, n_jobs=2):
    code = f"from tests.execution.test_stress import driver; driver({str(folder)!r}, {str(log)!r}, {n_jobs})"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def kill_and_resume(tmp_path, rng, kills):
    """Kill a fit up to `kills` times, each at a random moment, and let it end: digest, kills, fits in folds.

    The refits of an estimator that is not ours are not kept, since nothing here unpickles: they are not counted.
    """
    folder, log = tmp_path / "store", tmp_path / "log"
    log.write_text("")
    done = 0
    for _ in range(kills):
        begun = len(log.read_text().splitlines())
        process = start_driver(folder, log)
        while process.poll() is None and len(log.read_text().splitlines()) == begun:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.6))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        done += process.returncode == -signal.SIGKILL
        if process.returncode == 0:
            break
    return start_driver(folder, log).communicate()[0].strip(), done, fits_in_folds(log)


def fits_in_folds(log):
    return sum(not line.endswith(f" {len(X)}") for line in log.read_text().splitlines())


@many(1, 300)
def test_a_killed_fit_goes_on_and_ends_with_the_same_model(tmp_path, rng, count):
    undisturbed, log = start_driver("", tmp_path / "undisturbed"), tmp_path / "undisturbed"
    expected = undisturbed.communicate()[0].strip()
    tasks = fits_in_folds(log)
    kills = repeated = 0
    while kills < count:
        part = tmp_path / str(kills)
        part.mkdir()
        got, killed, fits = kill_and_resume(part, rng, min(4, count - kills))
        assert got == expected
        assert fits - tasks <= 2 * killed  # at most the tasks under way, and there are two workers
        assert not [p for p in (part / "store").iterdir() if not p.name.endswith(TASK)]
        kills, repeated = kills + max(killed, 1), repeated + fits - tasks
    record("killed and resumed", kills=kills, same=kills, tasks_repeated=repeated)


# --------------------------------------------------------------------------------------------------- time and memory


@many(1, 100)
def test_a_native_hang_ends_with_the_time_limit(count):
    late = []
    for _ in range(count):
        start = time.monotonic()
        model = SoftClassifier(
            [("hung", FaultyClassifier("gil")), ("bayes", GaussianNB())], cv=SPLITS, time_limit=5 if count > 1 else 20
        )
        quiet_fit(model)
        late.append(time.monotonic() - start - model.time_limit)
        assert "hung" not in model.weights_.index
    if count > 1:
        record("native hang under a limit of 5 s", fits=count, in_time=sum(x <= 3 for x in late), latest=max(late))
        assert max(late) <= 3


def test_when_there_is_no_time_at_all_the_baseline_answers():
    m = quiet_fit(SoftClassifier(time_limit=1e-6))
    assert m.weights_.index.tolist() == ["dummy"]
    np.testing.assert_allclose(m.predict_proba(X)[0], np.bincount(LABELS) / len(LABELS), atol=0.01)


class Greedy(GaussianNB):
    """Asks for far more memory than it may have, in numpy or in CatBoost, which does not raise but aborts."""

    def __init__(self, native=False):
        super().__init__()
        self.native = native

    def fit(self, X, y):
        if not self.native:
            self.kept_ = np.ones(2**29)
        else:
            from catboost import CatBoostClassifier

            large = np.zeros((400_000, 100), np.float32)
            CatBoostClassifier(iterations=2, verbose=False, allow_writing_files=False).fit(
                large, np.arange(400_000) % 2
            )
        return super().fit(X, y)


@many(2, 50)
def test_who_goes_over_the_memory_limit_dies_alone(count):
    limit = 300 * 2**20
    before = psutil.Process().memory_info().rss
    for i in range(count):
        library = [("greedy", Greedy(native=bool(i % 2))), ("tree", DecisionTreeClassifier(max_depth=2))]
        model = quiet_fit(SoftClassifier(library, cv=SPLITS, memory_limit=limit))
        assert model.weights_.index.tolist() == ["tree"]
        assert model.record_.crossed.failures[0].kind == "memory"
        assert model.failures_["error"][0].startswith("the process was ended by SIGABRT" if i % 2 else "MemoryError")
        assert psutil.Process().memory_info().rss - before < limit
    if count > 2:
        record("over the memory limit", fits=count, stopped=count)


# -------------------------------------------------------------------------------------------------------- determinism

SAME = """
import contextlib, json, joblib
from tests.execution.test_stress import OWN, digest, quiet_fit, SoftClassifier, SPLITS
seen = {}
for backend in BACKENDS:
    for n_jobs in (1, 2, 4):
        for repeat in range(REPEATS):
            with joblib.parallel_config(backend) if backend else contextlib.nullcontext():
                model = quiet_fit(SoftClassifier(OWN, cv=SPLITS, n_jobs=n_jobs))
            seen[f"{backend} {n_jobs} {repeat}"] = digest(model)
print(json.dumps(seen))
"""


def digests(backends, repeats, hash_seed, threads):
    code = f"BACKENDS, REPEATS = {backends!r}, {repeats}\n{SAME}"
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed), "OMP_NUM_THREADS": str(threads)}
    environment["OPENBLAS_NUM_THREADS"] = str(threads)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout.splitlines()[-1]).values())


def test_the_number_of_cores_and_of_threads_changes_no_bit():
    seen = [*digests([None], 1, hash_seed=1, threads=2), digest(quiet_fit(SoftClassifier(OWN, cv=SPLITS)))]
    assert len(set(seen)) == 1


@pytest.mark.slow
def test_nothing_about_the_machine_changes_a_bit():
    seen = []
    for hash_seed in (0, 1, 2):
        for threads in (1, 2):
            seen += digests([None, "loky", "threading", "sequential"], 3, hash_seed, threads)
    record("determinism", fits=len(seen), hashes=len(set(seen)))
    assert len(set(seen)) == 1


# ----------------------------------------------------------------------------------------------- leaks and threads


def belongings():
    """Files that this program has open, and its files in the temporary folders."""
    places = [Path(tempfile.gettempdir()), Path("/dev/shm")]
    files = [p.name for place in places if place.exists() for p in place.glob(f"{PREFIX}*-{os.getpid()}-*")]
    return psutil.Process().num_fds(), files


def cycle(i):
    library = [("tree", DecisionTreeClassifier(max_depth=2)), ("near", KNeighborsClassifier()), *OWN[:1]]
    if i % 4 == 1:
        library.append(("fault", FaultyClassifier(("raise", "sigkill", "nan", "child")[i // 4 % 4])))
    return quiet_fit(SoftClassifier(library, cv=SPLITS, n_jobs=1 + i % 2)).predict(X)


@many(3, 200)
def test_fits_leave_nothing_behind(count):
    known = {process.pid for process in psutil.Process().children(recursive=True)}
    for i in range(2 if count == 3 else 20):
        cycle(i)
    gc.collect()
    files, memory = belongings(), psutil.Process().memory_info().rss
    for i in range(count):
        cycle(i)
    gc.collect()
    assert belongings() == files
    assert processes_left(known) == []
    grown = psutil.Process().memory_info().rss / memory - 1
    if count > 3:
        record("fit-predict cycles", cycles=count, memory_grown=grown, files_left=0, processes_left=0)
        assert grown < 0.05


@many(20, 1000)
def test_threads_may_predict_at_once(count):
    model = quiet_fit(SoftClassifier(OWN, cv=SPLITS))
    expected = model.predict_proba(X).tobytes()
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda _: model.predict_proba(X).tobytes() == expected, range(8 * count))
        assert all(answers)
    record("predictions from 8 threads", predictions=8 * count, same=8 * count)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_may_fit_at_once(n_jobs):
    model = SoftClassifier(OWN, cv=SPLITS, n_jobs=n_jobs)
    expected = digest(quiet_fit(model))
    with warnings.catch_warnings(), ThreadPoolExecutor(4) as threads:
        warnings.simplefilter("ignore")
        fits = threads.map(lambda _: digest(SoftClassifier(OWN, cv=SPLITS, n_jobs=n_jobs).fit(X, LABELS)), range(4))
        assert set(fits) == {expected}


def test_a_fit_inside_workers_of_joblib_is_the_same():
    model = SoftClassifier(["logistic", ("tree", DecisionTreeClassifier(max_depth=2, random_state=0))], cv=SPLITS)
    expected = digest(quiet_fit(model))
    assert set(joblib.Parallel(2)(joblib.delayed(fitted_digest)(model) for _ in range(2))) == {expected}


def fitted_digest(model):
    return digest(quiet_fit(model))
