"""Data that many tasks read is held once, cannot be written, and leaves no file behind."""

import contextlib
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from softlearning.execution import Processes, Task
from softlearning.execution.shared import PREFIX, Scratch, is_gone, owner, started, sweep
from tests.execution.calls import run


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csr_matrix, pd.DataFrame])
def test_shared_data_arrives_unchanged_and_cannot_be_changed(shared, make, rng):
    X = make(np.where(rng.random((30, 4)) < 0.5, 0.0, rng.normal(size=(30, 4))))
    original = X.copy()
    with Scratch(shared=shared) as scratch:
        handle = scratch.share(X)
        seen = handle.load()
        assert type(seen) is type(X)
        if make is pd.DataFrame:
            with contextlib.suppress(ValueError):  # pandas copies on write where it can
                seen.iloc[0, 0] = 7.0
        else:
            with pytest.raises(ValueError, match="read-only"):
                (seen if make is np.asarray else seen.data)[:] = 7.0
        again = handle.load()
        assert (original != again).sum().sum() == 0
        assert not shared or len(pickle.dumps(handle)) < 2000


def test_shared_frames_keep_their_types_and_missing_values():
    frame = pd.DataFrame({"a": pd.Categorical(["x", None, "y"]), "b": ["u", "v", None], "c": [1.0, np.nan, 3.0]})
    with Scratch(shared=True) as scratch:
        pd.testing.assert_frame_equal(scratch.share(frame).load(), frame)


def test_scratch_is_private_and_gone_at_the_end(rng):
    with Scratch(shared=True) as scratch:
        scratch.share(rng.normal(size=10))
        assert stat.S_IMODE(os.stat(scratch.folder).st_mode) == 0o700
    assert not os.path.exists(scratch.folder)


def test_without_room_or_a_temporary_folder_the_data_travel_with_the_tasks(rng, monkeypatch):
    X = rng.normal(size=(200, 3))
    resource = pytest.importorskip("resource")
    with Scratch(shared=True) as scratch:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
            handle = scratch.share(X)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert not handle.path
        np.testing.assert_array_equal(handle.load(), X)
    monkeypatch.setattr(tempfile, "tempdir", "/proc/no/such/folder")
    with Scratch(shared=True) as scratch:
        np.testing.assert_array_equal(scratch.share(X).load(), X)


KILLED = """
import os, signal
from softlearning.execution.shared import Scratch
scratch = Scratch(shared=True).__enter__()
scratch.share([1])
print(scratch.folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    left = Path(done.stdout.strip())
    assert list(left.iterdir())
    others = [f"{PREFIX}notes", f"{PREFIX}a-b-c-d", left.name.replace(PREFIX, f"{PREFIX}0"), "thesis"]
    for name in others:
        (tmp_path / name).mkdir()
    with Scratch(shared=True) as live:
        sweep(tmp_path)
        assert sorted(os.listdir(tmp_path)) == sorted([*others, os.path.basename(live.folder)])


def test_a_process_is_known_by_number_and_start():
    machine, pid, start = owner().split("-")
    assert (int(pid), start) == (os.getpid(), started(os.getpid()))
    assert not is_gone(owner())
    assert is_gone(f"{machine}-{pid}-{start}0")
    assert not is_gone(f"another-{pid}-{start}0")
    assert not is_gone("notes")


def kept(scratch, value):
    return scratch.keep(value)


def test_what_a_task_has_made_lies_in_a_file_for_the_driver_and_lives_on_without_it():
    made = np.arange(1000.0)
    with Processes() as engine:
        [outcome] = run([Task("a", 0, kept, (engine.scratch, made))], engine=engine)
        assert outcome.value.path.startswith(engine.scratch.folder)
        own = outcome.value.own()
    assert own.flags.writeable
    np.testing.assert_array_equal(own, made)


def test_what_is_made_in_the_driver_or_on_another_machine_is_held():
    with Scratch(shared=True) as here, Scratch(shared=False, fit="x") as far:
        for scratch in (here, far):
            made = object()
            assert scratch.keep(made).own() is made
