"""Running the suite: cells are listed, run in processes of their own, resumed, and fail as lines with a reason."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from softlearning_bench.datasets import dataset
from softlearning_bench.external import ask_part, external_method, python_of
from softlearning_bench.methods import Answer, Method, Skipped
from softlearning_bench.results import append, finished, read
from softlearning_bench.run import Job, chosen, expected_cost, lines, missing_jobs, one_line, run_suite
from softlearning_bench.shared import Specialists, outer_fold

CHEAP = ["Random Forest", "Gradient Boosting"]


@pytest.fixture
def tiny():
    row = dataset("C10")
    return Specialists(outer_fold(row, row.table(), 0, 42))


def test_a_suite_fills_the_table_and_a_second_run_has_nothing_to_do(tmp_path, capfd):
    path = run_suite("paper", tmp_path, datasets=["C10"], methods=["Random Forest"], jobs=2)
    assert len(read(path)) == 5
    assert (read(path)["status"] == "ok").all()
    before = path.read_bytes()
    capfd.readouterr()
    run_suite("paper", tmp_path, datasets=["C10"], methods=["Random Forest"])
    assert path.read_bytes() == before
    assert capfd.readouterr().out == ""


def test_results_do_not_hang_on_how_many_run_side_by_side(tmp_path):
    options = {"datasets": ["C10"], "methods": CHEAP}
    tables = [read(run_suite("paper", tmp_path / str(jobs), jobs=jobs, **options)) for jobs in (1, 2)]
    ordered = [table.sort_values(["method", "fold"])["score"].to_numpy() for table in tables]
    np.testing.assert_array_equal(*ordered)


def test_only_what_is_missing_is_listed(tmp_path):
    path, row = tmp_path / "results.csv", dataset("C10")
    append(path, {"dataset": row.name, "method": "Random Forest", "fold": 0, "seed": 42, "status": "ok"})
    jobs = list(missing_jobs([row], CHEAP, [42], path))
    assert [job.fold for job in jobs] == [0, 1, 2, 3, 4]
    assert [len(job.methods) for job in jobs] == [1, 2, 2, 2, 2]


def test_more_seeds_are_more_jobs(tmp_path):
    jobs = list(missing_jobs([dataset("C10")], CHEAP, range(42, 45), tmp_path / "results.csv"))
    assert len(jobs) == 3 * 5


def test_the_speed_row_runs_on_one_fold(tmp_path):
    jobs = list(missing_jobs([dataset("C10")], ["Deep MLP"], [42], tmp_path / "results.csv"))
    assert [job.fold for job in jobs] == [0]


def test_the_long_sets_come_first():
    names = ["C10_tiny_regression", "A07_covtype_proxy", "A01_iris"]
    jobs = sorted((Job(name, 0, 42, ()) for name in names), key=expected_cost, reverse=True)
    assert jobs[0].dataset == "A07_covtype_proxy"


def test_a_misspelt_method_is_named_with_the_nearest():
    with pytest.raises(ValueError, match="CatBoost"):
        chosen(["CatBost"], "classification", {})


def test_an_unknown_suite_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no suite 'tabzilla'"):
        run_suite("tabzilla", tmp_path)


def test_a_method_that_fails_is_a_line_with_its_reason(tiny):
    def broken(shared):
        raise MemoryError("no room")

    line = one_line(Job("C10_tiny_regression", 0, 42, ()), dataset("C10"), Method("x", "ours", broken), tiny)
    assert (line["status"], line["reason"]) == ("failed", "MemoryError: no room")


def test_a_method_that_does_not_apply_is_skipped_with_its_reason(tiny):
    def not_here(shared):
        raise Skipped("too many rows")

    line = one_line(Job("C10_tiny_regression", 0, 42, ()), dataset("C10"), Method("x", "ours", not_here), tiny)
    assert (line["status"], line["reason"]) == ("skipped", "too many rows")


def test_a_line_holds_scores_seconds_weights_memory_and_versions(tiny):
    perfect = lambda shared: Answer(shared.part.y_test[:, None], 1.5, 0.5, {"a": 0.75, "b": 0.25, "c": 0.0}, "wide")
    line = one_line(Job("C10_tiny_regression", 0, 42, ()), dataset("C10"), Method("x", "ours", perfect), tiny)
    assert (line["score"], line["fit_seconds"], line["predict_seconds"]) == (1.0, 1.5, 0.5)
    assert line["weights"] == '{"a": 0.75, "b": 0.25}'
    assert line["reason"].startswith("wide")  # what is said of the dataset may follow
    assert line["peak_memory"] > 10
    assert "scikit-learn" in line["versions"]


def test_an_absent_dataset_is_a_line_with_the_reason_for_every_method(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setattr("softlearning_bench.datasets.datasets.fetch_california_housing", unreachable)
    found = list(lines(Job("A06_california", 0, 42, tuple(CHEAP))))
    assert [line["status"] for line in found] == ["absent", "absent"]
    assert "could not be downloaded" in found[0]["reason"]


def unreachable(**options):
    raise ConnectionError("no network")


unreachable.__name__ = "fetch_california_housing"


def what_dies_leaves_in(folder):
    """An environment whose temporary files go to this folder: a process that dies cannot remove its own."""
    return os.environ | {"TMPDIR": str(folder)}


def die(shared):
    os._exit(9)


def test_a_process_that_dies_leaves_a_reason_and_the_rest_goes_on(tmp_path, monkeypatch):
    """The forked servant of this test knows the deadly method because it is looked up by name there."""
    script = tmp_path / "deadly.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            from pathlib import Path
            import softlearning_bench.run as run
            from softlearning_bench.methods import Method
            from benchmarks.tests.test_run import die

            run.methods_for = lambda task: (Method("deadly", "ours", die),)
            if __name__ == "__main__":
                run.run_suite("paper", Path(sys.argv[1]), datasets=["C10"], jobs=1)
            """
        )
    )
    environment = what_dies_leaves_in(tmp_path) | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    subprocess.run([sys.executable, script, tmp_path / "out"], check=True, env=environment, capture_output=True)
    table = read(tmp_path / "out" / "results.csv")
    assert len(table) == 5
    assert table["reason"].str.contains("its process ended: 9").all()


def test_a_killed_run_is_resumed_without_losing_or_repeating_a_cell(tmp_path):
    command = "from pathlib import Path; from softlearning_bench.run import run_suite; import sys; "
    command += "run_suite('paper', Path(sys.argv[1]), datasets=['A02_wine'], methods=['Random Forest'], jobs=1)"
    process = subprocess.Popen(
        [sys.executable, "-c", command, tmp_path], stdout=subprocess.DEVNULL, env=what_dies_leaves_in(tmp_path)
    )
    path = tmp_path / "results.csv"
    while len(read(path)) < 2 and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = finished(path)
    assert len(kept) >= 2
    run_suite("paper", tmp_path, datasets=["A02_wine"], methods=["Random Forest"])
    assert len(finished(path)) == 5
    assert len(path.read_text().splitlines()) == 1 + 5


# -- external baselines -----------------------------------------------------------------------------------------------


def test_an_external_baseline_answers_from_its_own_environment(tiny):
    answer = ask_part(tiny, "histgb", sys.prefix)
    assert answer.prediction.shape == (16, 1)
    assert answer.fit_seconds > 0
    assert answer.note.startswith("scikit-learn 1.")


def test_an_external_baseline_enters_the_same_table(tmp_path):
    options = {"datasets": ["C10"], "methods": ["histgb"], "external": {"histgb": sys.prefix}}
    table = read(run_suite("paper", tmp_path, **options))
    assert set(table["method"]) == {"histgb"}
    assert (table["status"] == "ok").all()


def test_a_folder_without_python_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no bin/python"):
        python_of(str(tmp_path))


def test_a_system_that_ends_badly_is_a_failure_with_its_last_words(tiny):
    with pytest.raises(RuntimeError, match="KeyError"):
        ask_part(tiny, "no such system", sys.prefix)


def test_the_external_row_carries_its_name():
    assert external_method("FLAML", "/somewhere").name == "FLAML"
