"""Model files from strangers: no code runs, no process dies or starts, memory stays in its limit, reasons are given."""

import json
import os
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.storage import hostile
from tests.storage.crafted import crafted
from tests.storage.genuine import genuine_model
from tests.stress_log import record

if not Path("/proc/self/clear_refs").exists():
    pytest.skip("resident memory is read from /proc", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
MEGABYTES = (hostile.LIMIT >> 20) + 200  # what opening a file may add to the memory of a process


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    """The path of a genuine model file and of rows to predict."""
    folder = tmp_path_factory.mktemp("genuine")
    model, rows = genuine_model()
    model.save(folder / "model")
    rows.to_json(folder / "rows.json")
    return folder / "model", folder / "rows.json"


class Judge:
    """A process that opens files under watch; a new one when it dies."""

    def __init__(self, genuine):
        self.genuine = genuine
        self.process = None
        self.most_mb, self.slowest_s = 0, 0.0

    def start(self):
        command = [sys.executable, "-m", "tests.storage.hostile", *map(str, self.genuine)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": ""}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, **pipes)

    def open(self, path):
        if self.process is None:
            self.start()
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            report = json.loads(line)
            self.most_mb = max(self.most_mb, report["grown_mb"])
            self.slowest_s = max(self.slowest_s, report["seconds"])
            return report
        code = self.process.wait()
        self.close()
        return {"outcome": f"died of {code}", "reason": "", "seen": [], "grown_mb": 0}

    def close(self):
        if self.process is not None:
            self.process.communicate(timeout=hostile.PATIENCE)
            self.process = None


@pytest.fixture(scope="module")
def judge(genuine):
    judge = Judge(genuine)
    yield judge
    judge.close()


def verdicts(judge, folder, files):
    """(name, report) of each (name, bytes)."""
    for number, (name, data) in enumerate(files):
        path = folder / str(number)
        path.write_bytes(data)
        yield name, judge.open(path)
        path.unlink()


def harmless(report):
    ended = report["outcome"].startswith(("died", "exhausted"))
    return not report["seen"] and report["grown_mb"] <= MEGABYTES and not ended


def test_an_genuine_file_passes_the_judge(judge, genuine):
    report = judge.open(genuine[0])
    assert report["outcome"] == "same"
    assert harmless(report)
    assert judge.open("no-such-file")["outcome"] == "raised"


def in_a_process(code, folder):
    start = f"import os, sys; from tests.storage import hostile; os.chdir({str(folder)!r})"
    command = [sys.executable, "-c", f"{start}; {code}"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout


def test_the_watch_sees_what_code_in_a_file_would_do(tmp_path):
    """In a process of its own, since an audit hook cannot be taken away again."""
    acts = "open('w', 'w').close(); open('/etc/hostname').close(); exec('1'); import wave; os.system('true')"
    seen = in_a_process(f"seen = hostile.forbid_and_report(); {acts}; print(seen)", tmp_path)
    for sign in ("open w w", "open /etc/hostname", "exec", "import wave", "os.system"):
        assert sign in seen


def test_the_watch_sees_memory_that_was_taken_and_given_back(tmp_path):
    take = "hostile.open_file = lambda *a: (bytearray(300 << 20), ('refused', ''))[1]"
    code = f"exec({take!r}); print(hostile.watched('x', None, None, [])['grown_mb'])"
    assert float(in_a_process(code, tmp_path)) >= 290


def check_crafted(judge, genuine, folder, every=1):
    """All crafted files, or every third: `test_guards` looks at the others without a judge."""
    outcomes = Counter()
    for name, report in verdicts(judge, folder, crafted(genuine[0], every)):
        assert harmless(report), (name, report)
        assert report["outcome"] == "refused", (name, report)
        assert report["reason"].strip(), name
        outcomes["refused"] += 1
    assert not list(ROOT.glob("pwned"))
    return outcomes


def test_crafted_files_are_refused_with_a_reason_and_do_no_harm(judge, genuine, tmp_path):
    assert check_crafted(judge, genuine, tmp_path, every=3)["refused"] >= 130


def check_mutated(judge, genuine, folder, seeds):
    good, outcomes = genuine[0].read_bytes(), Counter()
    for name, report in verdicts(judge, folder, ((seed, hostile.mutated(good, seed)) for seed in seeds)):
        assert harmless(report), (name, report)
        assert report["outcome"] in ("refused", "same"), (name, report)
        outcomes[report["outcome"]] += 1
    return outcomes


def check_resealed(judge, genuine, folder, seeds):
    """Who repairs the checksums may change what a model answers, and nothing else."""
    outcomes = Counter()
    for name, report in verdicts(judge, folder, ((seed, hostile.resealed(genuine[0], seed)) for seed in seeds)):
        assert harmless(report), (name, report)
        outcomes[report["outcome"]] += 1
    return outcomes


def test_damaged_files_are_refused_or_answer_as_before(judge, genuine, tmp_path):
    outcomes = check_mutated(judge, genuine, tmp_path, range(80))
    assert outcomes["refused"] > 60


def test_damage_under_repaired_checksums_does_no_harm(judge, genuine, tmp_path):
    outcomes = check_resealed(judge, genuine, tmp_path, range(60))
    assert outcomes["refused"] > 12


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("kind", "check"),
    [
        ("crafted", check_crafted),
        ("mutated", partial(check_mutated, seeds=range(10_000))),
        *((f"resealed from {k}", partial(check_resealed, seeds=range(k, k + 200))) for k in range(10_000, 13_000, 200)),
    ],
)
def test_thousands_of_files_do_no_harm(judge, genuine, tmp_path, kind, check):
    counts = check(judge, genuine, tmp_path)
    most = {"most_mb": judge.most_mb, "slowest_s": judge.slowest_s}
    record(f"hostile files: {kind}", harmless=sum(counts.values()), **counts, **most)
    assert sum(counts.values()) >= {"crafted": 290, "mutated": 10_000}.get(kind, 200)


def test_a_seed_gives_one_file(genuine):
    good = genuine[0].read_bytes()
    assert hostile.mutated(good, 7) == hostile.mutated(good, 7) != good
    assert hostile.resealed(genuine[0], 7) == hostile.resealed(genuine[0], 7)
    assert np.unique([len(hostile.resealed(genuine[0], seed)) for seed in range(8)]).size > 1
