"""Fits on a cluster: Dask and Ray on the loopback address, with workers that come, go, starve and are killed.

Whatever happens, the model is that of a fit in this process, bit for bit. Clusters take seconds to start, so all but
one test are slow; the counts of kills are written to the log of stress tests.
"""

import contextlib
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from softlearning import SoftClassifier, load
from softlearning.execution import Failure, Outcome, Task, open_engine, shared
from softlearning.execution.checkpoint import TASK
from softlearning.execution.remote import carried, packed
from softlearning.execution.shared import PREFIX, Scratch
from softlearning.execution.tasks import Job
from tests.execution.calls import die, double, eat, grown, refuse, run
from tests.execution.test_faults import LABELS, SPLITS, X
from tests.execution.test_stress import digest, quiet_fit, record

OWN = ["logistic", "naive_bayes", "decision_tree"]
NO_DASK = "distributed is not installed: pip install softlearning[dask]"
NO_RAY = "ray is not installed: pip install softlearning[ray]"
LOOPBACK = {"host": "127.0.0.1", "dashboard_address": None}


class Slow(LogisticRegression):
    """Takes its time, so that it is under way when its worker dies; and writes into the rows it is given."""

    def fit(self, X, y):
        X *= 1.0
        time.sleep(0.15)
        return super().fit(X, y)


def library():
    return [*OWN, *((f"slow_{C}", Slow(C=C)) for C in (0.1, 1.0, 10.0)), ("bayes", GaussianNB())]


def fitted(engine=None, **options):
    model = quiet_fit(SoftClassifier(library(), cv=SPLITS, engine=engine, refit=True, **options))
    assert model.failures_.empty, model.failures_.to_dict("records")
    return digest(model)


@pytest.fixture(scope="module")
def expected():
    return fitted()


# ------------------------------------------------------------------------------------------- what travels, and how


def test_shared_data_travel_by_name_and_land_once_per_machine(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(shared.tempfile, "gettempdir", lambda: str(tmp_path))
    with Scratch(shared=False, fit="f1") as scratch:
        handle = scratch.share(rng.normal(size=(1000, 5)))
        job = Job(3, Task("a", 0, double, (handle, np.arange(4))))
        pickled, names = packed((job, False, {}))
    assert names == {handle.name}
    assert len(pickled) < 5_000  # the handle and not the data
    for _ in range(2):
        outcome = carried((pickled, "f1", [handle.name]), None, handle.load())
        np.testing.assert_array_equal(outcome.value["prediction"], 2 * handle.load()[:4])
    assert [p.name for p in (tmp_path / f"{PREFIX}fit-f1").glob("*.bin")] == [f"{handle.name}.bin"]
    shared.leave("f1")
    assert list(tmp_path.iterdir()) == []


def test_folders_of_fits_whose_workers_are_all_gone_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(shared.tempfile, "gettempdir", lambda: str(tmp_path))
    gone = tmp_path / f"{PREFIX}fit-old"
    gone.mkdir()
    (gone / f"{shared.machine()}-{2**22 + 1}-1.user").touch()
    live = shared.landing("one")
    shared.landing("two")
    assert not gone.exists()
    assert Path(live).exists()


def test_a_worker_with_other_versions_says_so_instead_of_giving_other_numbers():
    pickled, _ = packed((Job(0, Task("a", 0, grown, (1,))), False, {"numpy": "1.0"}))
    failure = carried((pickled, "versions", []), None)
    shared.leave("versions")
    assert failure.error == f"its worker has numpy {np.__version__} instead of 1.0: results would differ"


def test_data_that_find_no_room_on_the_disk_are_held_in_memory(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(shared.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(shared, "stored", full_disk)
    with Scratch(shared=False, fit="f2") as scratch:
        handle = scratch.share(rng.normal(size=(10, 2)))
    there = shared.landed(pickle.dumps(handle), "f2", {handle.name: handle.load()})
    np.testing.assert_array_equal(there.load(), handle.load())


def full_disk(*_):
    raise OSError("no space left on device")


def test_an_engine_that_nobody_knows_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match="give None, a Dask Client, 'ray' or a joblib backend"):
        open_engine("spork")
    with pytest.raises(ValueError, match="engine is 3"):
        quiet_fit(SoftClassifier(OWN, engine=3))


def test_a_joblib_backend_by_name_carries_a_fit():
    assert digest(quiet_fit(SoftClassifier(OWN, cv=SPLITS, engine="threading", n_jobs=2))) == digest(
        quiet_fit(SoftClassifier(OWN, cv=SPLITS))
    )


def test_dask_in_this_process_gives_the_same_model():
    distributed = pytest.importorskip("distributed", reason=NO_DASK)
    expected = digest(quiet_fit(SoftClassifier(OWN, cv=SPLITS)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
            model = quiet_fit(SoftClassifier(OWN, cv=SPLITS, engine=client))
            with open_engine(client) as engine:
                failed, other = run([Task("a", 0, refuse, ()), Task("b", 0, grown, (1,))], engine=engine)
    assert digest(model) == expected
    assert (failed.kind, failed.error, other.value) == ("error", "ValueError: no", {"number": 1.0})


# --------------------------------------------------------------------------------------- clusters of this machine


@contextlib.contextmanager
def dask_cluster(workers=2, **options):
    distributed = pytest.importorskip("distributed", reason=NO_DASK)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # a LocalCluster would give up a worker that was killed again before it had come back
        stack = pytest.importorskip("dask").config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
        cluster = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, **LOOPBACK, **options
        )
        with stack, cluster, distributed.Client(cluster) as client:
            yield cluster, client


@contextlib.contextmanager
def ray_instance(**options):
    ray = pytest.importorskip("ray", reason=NO_RAY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(include_dashboard=False, logging_level="error", log_to_driver=False, **({"num_cpus": 2} | options))
        try:
            yield ray
        finally:
            ray.shutdown()


def dask_pids(client):
    with contextlib.suppress(Exception):
        return list(client.run(os.getpid, on_error="ignore").values())
    return []


def ray_pids(_):
    """Processes of Ray that carry a task just now."""
    children = psutil.Process().children(recursive=True)
    return [
        p.pid for p in children if p.status() != psutil.STATUS_ZOMBIE and any("ray::carried" in c for c in p.cmdline())
    ]


def fit_under_fire(engine, pids, kills, expected):
    """Fit again and again while workers are killed at random moments; how many were killed, and fits that agreed."""
    killed, stop, same, rng = [], threading.Event(), 0, random.Random(0)

    def shoot():
        while not stop.is_set() and len(killed) < kills:
            time.sleep(rng.uniform(0.3, 1.5))
            with contextlib.suppress(OSError, psutil.Error, IndexError):
                os.kill(victim := rng.choice(pids(engine)), signal.SIGKILL)
                killed.append(victim)

    shooter = threading.Thread(target=shoot)
    shooter.start()
    try:
        while len(killed) < kills:
            assert fitted(engine) == expected
            same += 1
    finally:
        stop.set()
        shooter.join()
    return len(killed), same


@pytest.mark.slow
def test_dask_workers_may_be_killed_at_any_time(expected):
    with dask_cluster() as (_, client):
        assert fitted(client) == expected
        killed, same = fit_under_fire(client, dask_pids, 20, expected)
    record("Dask workers killed", kills=killed, fits=same, same=same)


@pytest.mark.slow
def test_ray_workers_may_be_killed_at_any_time(expected):
    with ray_instance():
        assert fitted("ray") == expected
        killed, same = fit_under_fire("ray", ray_pids, 20, expected)
    record("Ray workers killed", kills=killed, fits=same, same=same)


@pytest.mark.slow
def test_dask_workers_may_come_and_go(expected):
    """An autoscaler adds a worker in the middle of a fit and takes away the one that held the data."""
    with dask_cluster(workers=1) as (cluster, client):
        (first,) = client.nthreads()

        def scale():
            time.sleep(1.0)
            cluster.scale(2)
            client.wait_for_workers(2)
            client.retire_workers([first], close_workers=True)

        with ThreadPoolExecutor() as threads:
            scaled = threads.submit(scale)
            assert fitted(client) == expected
            scaled.result()
        assert fitted(client) == expected
        assert first not in client.nthreads()


@pytest.mark.slow
def test_a_ray_node_may_come_and_go(expected):
    cluster_utils = pytest.importorskip("ray.cluster_utils", reason=NO_RAY)
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        with ray_instance(address=cluster.address, num_cpus=None):
            node = cluster.add_node(num_cpus=1)
            assert fitted("ray") == expected

            with ThreadPoolExecutor() as threads:  # Ray's own cluster is of the main thread
                fit = threads.submit(fitted, "ray")
                time.sleep(0.5)
                cluster.remove_node(node)
                cluster.add_node(num_cpus=1)
                assert fit.result() == expected
    finally:
        cluster.shutdown()


@pytest.mark.slow
def test_a_task_that_starves_its_dask_worker_fails_alone():
    """The nanny ends its worker; with a process of its own it then dies of the worker's memory limit, as "memory"."""
    with dask_cluster(memory_limit="600 MB") as (_, client), open_engine(client) as engine:
        tasks = [Task("greedy", 0, eat, (4,), cost=2), *(Task("a", i, grown, (i,)) for i in range(4))]
        greedy, *others = run(tasks, engine=engine)
    assert greedy.kind == "memory"
    assert [o.value["number"] for o in others] == [0, 1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dask", "ray"])
def test_what_kills_its_worker_fails_alone_and_limits_hold(name):
    with contextlib.ExitStack() as stack:
        chosen = (
            stack.enter_context(dask_cluster())[1] if name == "dask" else stack.enter_context(ray_instance()) and "ray"
        )
        engine = stack.enter_context(open_engine(chosen))
        tasks = [Task("killer", 0, die, (), cost=2), *(Task("a", i, grown, (i,)) for i in range(4))]
        killer, *others = run(tasks, engine=engine)
        assert killer.error.startswith("the process was ended by SIGKILL")  # of Dask under its worker's memory limit
        assert all(isinstance(o, Outcome) for o in others)
        isolating = stack.enter_context(open_engine(chosen, isolate=True))
        hung, greedy = Task("hung", 0, time.sleep, (1000,), limit=1.0), Task("greedy", 0, eat, (2,))
        hung, greedy = run([hung, greedy], engine=isolating, memory_limit="1 GiB")
        assert [hung.kind, greedy.kind] == ["timeout", "memory"]
        assert isinstance(hung, Failure)


def driver(name, folder):
    """What the process that is killed does."""
    with dask_cluster() if name == "dask" else ray_instance() as made:
        print(fitted(made[1] if name == "dask" else "ray", checkpoint=folder), flush=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dask", "ray"])
def test_a_killed_driver_is_resumed_from_its_checkpoint(name, expected, tmp_path):
    code = f"from tests.execution.test_remote import driver; driver({name!r}, {str(tmp_path)!r})"
    start = lambda: subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    kept = lambda: len(list(tmp_path.glob(f"*{TASK}")))
    process = start()
    while process.poll() is None and kept() < 4:
        time.sleep(0.05)
    process.kill()
    process.communicate()
    done = kept()
    assert done >= 4
    assert start().communicate()[0].strip() == expected
    record(f"driver on {name} killed and resumed", kills=1, same=1, tasks_kept=done)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "package", "reason"), [("dask", "distributed", NO_DASK), ("ray", "ray", NO_RAY)])
def test_the_scripts_of_the_guide_run(name, package, reason, tmp_path):
    pytest.importorskip(package, reason=reason)
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]).assign(label=LABELS)
    table.to_csv(tmp_path / "table.csv", index=False)
    script = Path(__file__).parents[2] / "docs" / "guide" / "scripts" / f"on_{name}.py"
    out = tmp_path / "model.softlearning"
    command = [sys.executable, script, "local", tmp_path / "table.csv", "label", out]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert load(out).weights_.sum() == pytest.approx(1)
