"""`softlearning fit` as a newcomer meets it: what it says, what it writes, how it fails."""

import contextlib
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softlearning.cli.learning import _jobs

FEW = "logistic,naive_bayes"


def test_a_misspelt_target_gets_the_nearest_name_and_leaves_nothing(run, flowers, tmp_path):
    answer = run("fit", flowers, "--target", "Specis", "--out", "model")
    assert answer.exit_code == 2
    assert "did you mean 'Species'?" in answer.output
    assert [p.name for p in tmp_path.iterdir()] == ["flowers.csv"]


def test_a_misspelt_file_gets_the_nearest_name(run, flowers):
    answer = run("fit", "flower.csv", "--target", "Species", "--out", "model")
    assert answer.exit_code == 2
    assert "flowers.csv" in answer.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "nowhere/model"], "there is no folder"),
        (["--out", os.devnull], "is not a file"),
        (["--out", "model", "--report", "model"], "two different files"),
        (["--out", "model", "--type", "Colour"], "COLUMN=TYPE"),
        (["--out", "model", "--type", "Color=category"], "did you mean 'Colour'?"),
        (["--out", "model", "--group", "Species"], "different columns"),
        (["--out", "model", "--time-limit", "-1"], "--time-limit"),
        (["--out", "model", "--task", "clustering"], "classification"),
        (["--out", "model", "--drop", "Sise"], "did you mean 'Size'?"),
        (["--out", "model", "--time", "Colours"], "did you mean 'Colour'?"),
        (["--out", "model", "--time", "Size", "--group", "Colour"], "--groups and --time"),
        (["--out", "model", "--cv", "1"], "--cv"),
        (["--out", "model", "--target", "Size", "--threshold", "0.3"], "--threshold is for two classes"),
    ],
)
def test_what_cannot_work_is_refused_before_the_work(run, flowers, words, said):
    answer = run("fit", flowers, "--target", "Species", *words)
    assert answer.exit_code == 2
    assert said in answer.output


def test_a_link_into_nowhere_and_a_working_folder_that_is_gone_are_said_before_the_work(run, flowers, tmp_path):
    (tmp_path / "link").symlink_to("nowhere/model")
    assert "there is no folder" in run("fit", flowers, "--target", "Species", "--out", "link").output
    (tmp_path / "gone").mkdir()
    with contextlib.chdir(tmp_path / "gone"):
        (tmp_path / "gone").rmdir()
        answer = run("fit", flowers, "--target", "Species", "--out", "model")
    assert answer.exit_code == 2
    assert "the working folder is gone" in answer.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--library", "fst"], "no library is called 'fst'; did you mean 'fast'?"),
        (["--library", "logistik"], "did you mean 'logistic'?"),
        (["--library", "fast", "--task", "regression"], "SoftClassifier"),
        (["--memory-limit", "much"], "'512 MiB'"),
        (["--memory-limit", "0"], "'512 MiB'"),
    ],
)
def test_what_fails_is_one_sentence_without_a_traceback(run, flowers, tmp_path, words, said):
    answer = run("fit", flowers, "--target", "Species", "--out", "model", *words, "--jobs", 1)
    assert answer.exit_code == 1
    assert said in answer.output
    assert "Traceback" not in answer.output
    assert not (tmp_path / "model").exists()


def test_a_currency_target_is_a_number_and_a_name_is_found_whatever_its_case(run, tmp_path, rng):
    size = rng.uniform(50, 200, 80)
    prices = [f"${1000 * s:,.0f}" for s in size]
    pd.DataFrame({"Size": size, "PRICE": prices}).to_csv(tmp_path / "t.csv", index=False)
    assert "did you mean 'PRICE'?" in run("fit", "t.csv", "--target", "Price", "--out", "m").output
    answer = run("fit", "t.csv", "--target", "PRICE", "--out", "m", "--library", "ridge", "--jobs", 1)
    assert "regression (guessed from whole numbers" in answer.output


def test_groups_weights_types_and_task_are_followed(run, tmp_path, rng):
    table = pd.DataFrame({"x": rng.normal(size=80), "code": rng.integers(0, 3, 80), "who": np.arange(80) // 4})
    table["w"] = 1.0
    table["y"] = np.where(table["x"] > 0, 2.0, 1.0)
    table.to_csv(tmp_path / "t.csv", index=False)
    words = [
        "--groups",
        "who",
        "--weights",
        "w",
        "--type",
        "code=category",
        "--task",
        "regression",
        "--library",
        "ridge",
    ]
    answer = run("fit", "t.csv", "--target", "y", "--out", "m", *words, "--jobs", 1)
    assert answer.exit_code == 0, answer.output
    assert "2 columns: 1 number, 1 category" in answer.output
    assert "Target `y`: regression\n" in answer.output


def test_a_model_that_learnt_nothing_says_so_and_ends_with_three(run, tmp_path, rng):
    noise = pd.DataFrame({"x": rng.normal(size=60), "y": rng.permutation(np.arange(60) % 3)})
    noise.assign(y=noise["y"].map({0: "a", 1: "a", 2: "b"})).to_csv("classes.csv", index=False)
    noise.assign(y=rng.normal(size=60)).to_csv("numbers.csv", index=False)
    for table, library in (("classes", "decision_tree"), ("numbers", "decision_tree"), ("numbers", "dummy")):
        words = ["fit", f"{table}.csv", "--target", "y", "--out", "m", "--library", library, "--jobs", 1]
        answer = run(*words)
        assert answer.exit_code == 3, answer.output
        assert "Warning: " in answer.stderr
        assert run(*words, "--allow-useless").exit_code == 0


@pytest.mark.parametrize(("words", "said"), [
    ([], "--checkpoint FOLDER would keep finished work"),
    (["--checkpoint", "kept"], "finished work is in kept; the same command goes on"),
])  # fmt: skip
def test_an_interrupted_fit_says_how_to_go_on(run, flowers, monkeypatch, words, said):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("softlearning.cli.learning._fitted", interrupt)
    answer = run("fit", flowers, "--target", "Species", "--out", "m", *words)
    assert answer.exit_code == 130
    assert said in answer.stderr


def test_the_page_of_a_fit_tells_which_columns_matter_only_from_other_rows(run, flowers, tmp_path):
    words = ["--target", "Species", "--out", "m", "--library", FEW, "--jobs", 1, "--report", "p.html"]
    run("fit", flowers, *words)
    assert "Which columns matter?" not in (tmp_path / "p.html").read_text()
    rng = np.random.default_rng(7)
    size = rng.normal(size=50)
    other = pd.DataFrame({"Size": size, "Colour": "red", "Species": np.where(size > 0, "a", "b")})
    other.to_csv("other.csv", index=False)
    answer = run("fit", flowers, *words, "--test", "other.csv")
    assert "Scored on 50 rows" in answer.output, answer.output
    assert "Which columns matter?" in (tmp_path / "p.html").read_text()
    run("report", "m", "--out", "again.html", "--rows", flowers)
    assert "pass rows that it has not seen" in (tmp_path / "again.html").read_text()


def test_the_screen_is_at_most_80_columns_wide_and_shows_no_names_of_the_code(run, tmp_path, rng):
    X = pd.DataFrame(rng.normal(size=(70, 3)), columns=["height", "width", "depth"])
    X.assign(y=X["height"] + rng.normal(size=70)).to_csv("t.csv", index=False)
    answer = run("fit", "t.csv", "--target", "y", "--out", "m", "--library", "ridge,knn_5,tree_stack", "--jobs", 1)
    assert answer.output.count("tree_stack") == 1  # skipped, and told once
    body = answer.stdout.split("specialist", 1)[1]
    assert max(len(line) for line in body.splitlines()) <= 80 + len("specialist")
    for token in ("failures_", "cv_risk", "%plain", "neg_"):
        assert token not in answer.output


def test_a_small_table_takes_one_core_and_a_large_one_all():
    rng = np.random.default_rng(0)
    small, large = (pd.DataFrame(rng.normal(size=(n, 8))) for n in (60, 20_000))
    assert _jobs("fast", "regression", small, small[0]) == 1
    assert _jobs("default", "regression", large, large[0]) == -1
    assert _jobs(["ridge"], "regression", large, large[0]) == 1


def test_whether_more_rows_would_help_is_told_when_asked(run, tmp_path, rng):
    x = rng.normal(size=400)
    pd.DataFrame({"x": x, "y": x + rng.normal(size=400)}).to_csv("t.csv", index=False)
    words = ["--target", "y", "--out", "m", "--library", "ridge,knn_5", "--jobs", 1, "--report", "p.html"]
    assert run("fit", "t.csv", *words).exit_code == 0
    assert "Is more data worth it?" not in Path("p.html").read_text()
    assert run("fit", "t.csv", *words, "--learning-curve").exit_code == 0
    assert "Is more data worth it?" in Path("p.html").read_text()
