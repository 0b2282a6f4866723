"""What is finished is kept, and what is kept is trusted only when it is whole."""

import functools
import os
import resource
import signal
import stat
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from softlearning.execution import Failure, Outcome, Scratch, Task, run
from softlearning.execution.checkpoint import Store
from softlearning.execution.fingerprint import fingerprint

VALUE = {"prediction": np.arange(12.0).reshape(4, 3), "fit_seconds": 0.25}


def answer(number=1.0):
    return {"prediction": np.full((3, 2), number), "fit_seconds": 0.1}


def task(fold=0, specialist="a", args=(1.0,)):
    return Task(specialist, fold, answer, args)


def only_file(folder):
    [path] = folder.glob("*.task")
    return path


def same(left, right):
    return left.keys() == right.keys() and all(np.array_equal(left[k], right[k]) for k in left)


def test_what_is_put_is_got_in_a_new_store_on_the_same_folder(tmp_path):
    Store(tmp_path).put(task(), VALUE)
    value = Store(tmp_path).get(task())
    assert same(value, VALUE)
    assert isinstance(value["fit_seconds"], float)


@pytest.mark.parametrize("other", [task(fold=1), task(specialist="b"), task(args=(2.0,)), Task("a", 0, max, (1.0,))])
def test_another_task_is_another_entry(tmp_path, other):
    store = Store(tmp_path)
    store.put(task(), VALUE)
    assert store.get(other) is None


def test_other_settings_and_other_data_lie_side_by_side(tmp_path, rng):
    X = rng.normal(size=(5, 2))
    with Scratch(shared=True) as files, Scratch(shared=False) as memory:
        first, same_data, other = (s.share(x) for s, x in ((files, X), (memory, X.copy()), (memory, X + 1e-15)))
        Store(tmp_path, "settings").put(task(args=(first,)), VALUE)
        assert same(Store(tmp_path, "settings").get(task(args=(same_data,))), VALUE)
        assert Store(tmp_path, "settings").get(task(args=(other,))) is None
        assert Store(tmp_path, "other settings").get(task(args=(first,))) is None


def test_models_are_kept_and_predict_the_same(tmp_path, rng):
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    Store(tmp_path).put(task(), {"model": model})
    restored = Store(tmp_path).get(task())["model"]
    np.testing.assert_array_equal(restored.predict_proba(X), model.predict_proba(X))


def test_a_model_that_cannot_be_kept_is_computed_again(tmp_path):
    model = Ridge()
    model.lock = threading.Lock()
    store = Store(tmp_path)
    store.put(task(), {"model": model})
    assert store.get(task()) is None


def test_the_folder_and_its_files_are_private(tmp_path):
    folder = tmp_path / "deep" / "store"
    Store(folder).put(task(), VALUE)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not [p for p in folder.iterdir() if "tmp-" in p.name]


def damages(rng, whole, foreign):
    """Ways in which a file may be wrong, without end."""
    yield from (b"", whole[:-1], whole + b"\0", foreign, whole[32:], b"PK" + whole)
    while True:
        kind, at = rng.integers(3), int(rng.integers(len(whole)))
        flipped = bytes([whole[at] ^ (1 << int(rng.integers(8)))])
        yield (whole[:at], whole[:at] + flipped + whole[at + 1 :], whole[:at] + bytes(len(whole) - at - 1))[kind]


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_damaged_files_are_computed_again_and_give_the_same(tmp_path, rng, count):
    store = Store(tmp_path)
    store.put(task(fold=1), answer(2.0))
    foreign = only_file(tmp_path).read_bytes()
    only_file(tmp_path).unlink()
    [undisturbed] = run([task()], store=store)
    path = only_file(tmp_path)
    whole = path.read_bytes()
    for _, damaged in zip(range(count), damages(rng, whole, foreign)):
        if damaged == whole:
            continue
        path.write_bytes(damaged)
        fresh = Store(tmp_path)
        assert fresh.get(task()) is None
        [outcome] = run([task()], store=fresh)
        assert same(outcome.value, undisturbed.value)
        assert path.read_bytes()[32:64] == whole[32:64]


def test_a_pickle_in_place_of_an_array_is_not_opened(tmp_path):
    store = Store(tmp_path)
    store.put(task(), {"prediction": np.array([{}], dtype=object)})
    assert store.get(task()) is None


def test_a_second_run_computes_only_what_is_missing(tmp_path):
    kinds = []
    run([task(fold) for fold in range(2)], store=Store(tmp_path))
    outcomes = run([task(fold) for fold in range(3)], store=Store(tmp_path), watch=lambda e: kinds.append(e.kind))
    assert kinds == ["restored", "restored", "waiting", "started", "finished"]
    assert all(same(o.value, answer()) for o in outcomes)


# ------------------------------------------------------------------------------------------------- deaths of the driver


DRIVER = """
import os, signal, sys
from softlearning.execution import Task, run
from softlearning.execution.checkpoint import Store
from tests.execution.test_checkpoint import answer, ends_its_process

run([Task("a", 0, answer, (1.0,)), Task("killer", 0, ends_its_process, ())], store=Store(sys.argv[1]))
"""


def ends_its_process():
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_killed_its_driver_is_given_a_process_of_its_own(tmp_path):
    tasks = [Task("a", 0, answer, (1.0,)), Task("killer", 0, ends_its_process, ())]
    driver = subprocess.run([sys.executable, "-c", DRIVER, str(tmp_path)], check=False)
    assert driver.returncode == -signal.SIGKILL
    assert [p.suffix for p in tmp_path.glob("*.attempt-*")] == [".attempt-1"]
    outcomes = run(tasks, store=Store(tmp_path))
    assert isinstance(outcomes[0], Outcome)
    assert outcomes[1].error == "the process was ended by SIGKILL"
    assert not list(tmp_path.glob("*.attempt-*"))


def test_a_task_under_way_whenever_the_driver_died_is_given_up(tmp_path):
    store = Store(tmp_path)
    for n in range(5):
        (tmp_path / f"{store.key(task())}.attempt-{n + 1}").touch()
    [outcome] = run([task()], store=store)
    assert isinstance(outcome, Failure)
    assert outcome.error == "under way each time when the last 5 fits died"


def test_what_a_killed_process_was_writing_is_removed(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / f"x.task.tmp-{ended.pid}").touch()
    (tmp_path / f"y.task.tmp-{os.getpid()}").touch()
    Store(tmp_path)
    assert [p.name for p in tmp_path.glob("*.tmp-*")] == [f"y.task.tmp-{os.getpid()}"]


# --------------------------------------------------------------------------------------------------------- bad disks


def test_a_full_disk_costs_the_checkpoint_and_not_the_fit(tmp_path):
    store = Store(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        with pytest.warns(UserWarning, match=r"can no longer be written \(File too large\)") as seen:
            outcomes = run([task(fold) for fold in range(3)], store=store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(seen) == 1
    assert all(isinstance(o, Outcome) for o in outcomes)
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]


def fails(error):
    def function(*_, **__):
        raise error

    return function


@pytest.mark.parametrize(
    "number", [28, 30, 13, 122, 5], ids=["full", "read-only", "no rights", "quota", "input/output"]
)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_whatever_the_disk_refuses_is_an_error_at_the_start_or_a_warning_later(tmp_path, monkeypatch, number, call):
    error = OSError(number, os.strerror(number))
    store = Store(tmp_path)
    monkeypatch.setattr(os, call, fails(error))
    with pytest.warns(UserWarning, match=os.strerror(number)):
        [outcome] = run([task()], store=store)
    assert isinstance(outcome, Outcome)
    with pytest.raises(OSError, match=rf"checkpoint folder .* cannot be used: {os.strerror(number)}"):
        Store(tmp_path)


def test_a_file_in_place_of_the_folder_is_an_error_at_the_start(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="checkpoint folder"):
        Store(tmp_path / "file")


# ------------------------------------------------------------------------------------------------------- fingerprints


class Fitted:
    def __init__(self, x):
        self.x = x


def adder(n):
    return lambda x: x + n


FRAME = pd.DataFrame({"a": [1.0, np.nan], "b": pd.Categorical(["u", None]), "c": ["x", None], "d": [1, 2]})
DIFFERENT = [
    *(1, 1.0, True, "1", b"1", None, np.float64(1), np.float32(1), -0.0, 0.0, 1e300, np.nan, [1], (1,), {1}, {"a": 1}),
    *(np.zeros(2), np.zeros((2, 1)), np.zeros((1, 2)), np.zeros(2, np.float32), np.array([0, -0.0])),
    *(["ab", "c"], ["a", "bc"], [["a"], "b"], [[], ["a", "b"]], np.array(["ab", "c"]), np.array(["a", 1], object)),
    *(FRAME, FRAME.rename(columns={"a": "z"}), FRAME[["b", "a", "c", "d"]], FRAME.iloc[::-1], FRAME.fillna({"a": 0.0})),
    *(
        FRAME.assign(b=pd.Categorical(["u", "u"])),
        FRAME.assign(c=["x", "None"]),
        FRAME.astype({"d": "Int64"}),
        FRAME["a"],
    ),
    *(
        sparse.csr_array(np.eye(2)),
        sparse.csr_array(np.eye(3)),
        sparse.csc_array(np.eye(2)),
        sparse.coo_array(np.eye(2)),
    ),
    *(LogisticRegression(), LogisticRegression(C=2), Ridge(), Ridge, Fitted(1), Fitted(2), Fitted, Fitted(Fitted(1))),
    *(adder(1), adder(2), lambda x: x - 1, lambda x: x - 2, functools.partial(max, 1), functools.partial(max, 2), max),
]


def test_different_things_have_different_fingerprints():
    prints = [fingerprint(thing) for thing in DIFFERENT]
    assert len(set(prints)) == len(DIFFERENT)


def test_equal_things_have_equal_fingerprints_in_another_process():
    code = "from tests.execution.test_checkpoint import DIFFERENT, fingerprint; print(*map(fingerprint, DIFFERENT))"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=fresh_hash())
    assert seen.stdout.split() == [fingerprint(thing) for thing in DIFFERENT]


def fresh_hash():
    return os.environ | {"PYTHONHASHSEED": "7"}


def test_a_function_is_known_by_what_it_calls_too():
    def names(helper):
        scope = {"__name__": "script"}
        exec(f"def helper(): return {helper}\ndef make(): return helper()", scope)
        return scope["make"]

    assert fingerprint(names(1)) == fingerprint(names(1))
    assert fingerprint(names(1)) != fingerprint(names(2))


def test_a_thing_that_holds_itself_has_a_fingerprint():
    thing = Fitted(1)
    thing.x = [thing]
    assert fingerprint(thing) == fingerprint(thing)
