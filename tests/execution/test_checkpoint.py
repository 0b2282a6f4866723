"""What is finished is kept, and what is kept is trusted only when it is whole."""

import os
import pickle
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from softlearning.execution import Outcome, Scratch, Task
from softlearning.execution.checkpoint import BEGUN, PART, TASK, Store, checksum
from softlearning.execution.shared import Shared, owner
from tests.execution.calls import run

VALUE = {"prediction": np.arange(12.0).reshape(4, 3), "fit_seconds": 0.25}


def answer(number=1.0):
    return {"prediction": np.full((3, 2), number), "fit_seconds": 0.1}


def task(fold=0, specialist="a", args=(1.0,)):
    return Task(specialist, fold, answer, args)


def only_file(folder):
    [path] = folder.glob(f"*{TASK}")
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


def as_text(model):
    if not isinstance(model, str):
        raise TypeError
    return model.encode()


def from_text(data, task):
    return f"{data.decode()} of {task.specialist}"


def test_models_are_kept_in_the_form_that_the_caller_brings(tmp_path):
    store = Store(tmp_path, dump=as_text, load=from_text)
    store.put(task(), {"model": "a tree", **VALUE})
    assert Store(tmp_path, dump=as_text, load=from_text).get(task())["model"] == "a tree of a"
    store.put(task(), {"model": Shared("a tree")})
    assert store.get(task())["model"].own() == "a tree of a"


def test_a_model_that_cannot_be_kept_or_read_is_computed_again(tmp_path):
    def refuse(*_):
        raise ValueError("not on the list")

    for store in (Store(tmp_path), Store(tmp_path, dump=as_text)):
        store.put(task(), {"model": object()})
        assert store.get(task()) is None
    Store(tmp_path, dump=as_text).put(task(), {"model": "a tree"})
    assert Store(tmp_path, load=refuse).get(task()) is None
    assert Store(tmp_path).get(task()) is None


class Harm:
    def __reduce__(self):
        return os.mkdir, ("harm was done",)


def test_a_file_sealed_by_another_runs_nothing(tmp_path, monkeypatch):
    """The checksum is no secret: whatever the body holds, it is read as arrays and numbers alone."""
    monkeypatch.chdir(tmp_path)
    store = Store(tmp_path)
    key = store.key(task())
    objects = tmp_path / "objects.npz"
    np.savez(objects, **{"array prediction": np.array([Harm()], object)})
    for body in (pickle.dumps(Harm()), objects.read_bytes()):
        (tmp_path / f"{key}{TASK}").write_bytes(checksum(key, body) + body)
        assert store.get(task()) is None
    assert not (tmp_path / "harm was done").exists()


def test_a_new_folder_and_all_files_are_private(tmp_path):
    folder = tmp_path / "deep" / "store"
    Store(folder).put(task(), VALUE)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(only_file(folder).stat().st_mode) == 0o600
    assert len(list(folder.iterdir())) == 1


def test_a_folder_that_exists_is_not_taken_over(tmp_path):
    tmp_path.chmod(0o1777)
    others = {"thesis.tmp-999999", "notes.tmp-old", "a.part", "probe", "manifest.json", f"no.owner{PART}"}
    for name in others:
        (tmp_path / name).write_text("mine")
    Store(tmp_path).put(task(), VALUE)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777
    assert {p.name for p in tmp_path.iterdir()} == others | {only_file(tmp_path).name}


def test_threads_and_processes_may_share_a_folder(tmp_path):
    def use(i):
        store = Store(tmp_path)
        store.put(task(fold=i % 3), answer(float(i % 3)))
        return same(store.get(task(fold=i % 3)), answer(float(i % 3)))

    code = "from tests.execution.test_checkpoint import *\n"
    code += f"for _ in range(50): Store({str(tmp_path)!r}).put(task(), answer(0.0))"
    with subprocess.Popen([sys.executable, "-c", code]) as other, ThreadPoolExecutor(8) as threads:
        assert all(threads.map(use, range(200)))
    assert other.returncode == 0
    assert len(list(tmp_path.iterdir())) == 3


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


def test_a_second_run_computes_only_what_is_missing(tmp_path):
    kinds = []
    run([task(fold) for fold in range(2)], store=Store(tmp_path))
    outcomes = run([task(fold) for fold in range(3)], store=Store(tmp_path), watch=lambda e: kinds.append(e.kind))
    assert kinds == ["restored", "restored", "waiting", "started", "finished"]
    assert all(same(o.value, answer()) for o in outcomes)


# ------------------------------------------------------------------------------------------------- deaths of the driver


DRIVER = """
import os, signal, sys
from softlearning.execution import Task
from softlearning.execution.checkpoint import Store
from tests.execution.calls import run
from tests.execution.test_checkpoint import answer, ends_its_process

run([Task("a", 0, answer, (1.0,)), Task("killer", 0, ends_its_process, ())], store=Store(sys.argv[1]))
"""


def ends_its_process():
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_killed_its_driver_is_given_a_process_of_its_own(tmp_path):
    tasks = [Task("a", 0, answer, (1.0,)), Task("killer", 0, ends_its_process, ())]
    driver = subprocess.run([sys.executable, "-c", DRIVER, str(tmp_path)], check=False)
    assert driver.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob(f"*{BEGUN}"))) == 1
    outcomes = run(tasks, store=Store(tmp_path))
    assert isinstance(outcomes[0], Outcome)
    assert outcomes[1].error == "the process was ended by SIGKILL"
    assert not list(tmp_path.glob(f"*{BEGUN}"))


def dead_owner():
    """The name of a process that has ended."""
    ended = subprocess.run(
        [sys.executable, "-c", "from softlearning.execution.shared import owner; print(owner())"],
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout.strip()


def test_a_task_under_way_whenever_the_driver_died_is_given_up(tmp_path):
    store, dead = Store(tmp_path), dead_owner()
    for n in range(5):
        (tmp_path / f"{store.key(task())}.{dead}{n}{BEGUN}").touch()
    [outcome] = run([task()], store=store)
    assert (outcome.kind, outcome.error) == ("crash", "under way each time when the last 5 fits died")


def test_a_task_under_way_in_five_living_fits_is_no_suspect(tmp_path):
    store = Store(tmp_path)
    for n in range(5):
        (tmp_path / f"{store.key(task())}.another-{n}-1{BEGUN}").touch()
    (tmp_path / f"{store.key(task())}.{owner()}{BEGUN}").touch()
    with store.attempt(task()) as deaths:
        assert deaths == 0


def test_what_a_killed_process_was_writing_is_removed(tmp_path):
    (tmp_path / f"x{TASK}.{dead_owner()}-1{PART}").touch()
    living = tmp_path / f"y{TASK}.{owner()}-1{PART}"
    living.touch()
    Store(tmp_path)
    assert list(tmp_path.iterdir()) == [living]


def test_results_of_old_code_are_not_reused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "edited_helper.py").write_text("RATE = 1.0\n")
    (tmp_path / "edited_module.py").write_text(
        "def work():\n    from edited_helper import RATE\n    return {'rate': RATE}\n"
    )
    import edited_module

    work = Task("a", 0, edited_module.work, ())
    folder = tmp_path / "store"
    assert run([work], store=Store(folder), isolate=True)[0].value == {"rate": 1.0}
    (tmp_path / "edited_helper.py").write_text("RATE = 22.0\n")
    assert Store(folder).get(work) is None
    assert run([work], store=Store(folder), isolate=True)[0].value == {"rate": 22.0}


def test_what_cannot_be_read_for_a_key_is_never_reused(tmp_path):
    loop = []
    loop.append(loop)
    odd = task(args=(loop,))
    Store(tmp_path).put(odd, VALUE)
    assert Store(tmp_path).get(odd) is None


# --------------------------------------------------------------------------------------------------------- bad disks


def test_a_full_disk_costs_the_checkpoint_and_not_the_fit(tmp_path):
    store = Store(tmp_path)
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        with pytest.warns(UserWarning, match=r"can no longer be written \(File too large\)") as seen:
            outcomes = run([task(fold) for fold in range(3)], store=store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(seen) == 1
    assert all(isinstance(o, Outcome) for o in outcomes)
    assert list(tmp_path.iterdir()) == []


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


MOUNT = """
import ctypes, os, sys, warnings
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x00020000) or libc.mount(b"none", b"/", None, 0x44000, None):  # CLONE_NEWNS; private, recursive
    sys.exit(77)
if libc.mount(b"tmpfs", sys.argv[1].encode(), b"tmpfs", 0, b"size=64k"):
    sys.exit(77)
from tests.execution.test_checkpoint import *
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    outcomes = run([Task("a", fold, big, ()) for fold in range(4)], store=Store(sys.argv[1]))
print(sum(isinstance(o, Outcome) for o in outcomes), [str(w.message).split("(")[1].split(")")[0] for w in seen])
if libc.mount(b"none", sys.argv[1].encode(), None, 0x21, None):  # remount, read-only
    sys.exit(77)
try:
    Store(sys.argv[1])
except OSError as error:
    print(error)
"""


def big():
    return {"prediction": np.arange(3000.0)}


def test_a_disk_that_is_really_full_or_read_only(tmp_path):
    done = subprocess.run([sys.executable, "-c", MOUNT, str(tmp_path)], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this system lets us mount nothing")
    first, second = done.stdout.splitlines()
    assert first == "4 ['No space left on device']"
    assert second == f"the checkpoint folder {tmp_path} cannot be used: Read-only file system"
