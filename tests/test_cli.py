"""The command as a newcomer meets it: what it says, what it writes, how it fails."""

import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from softlearning.cli import main

FEW = "logistic,naive_bayes"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words, **options: CliRunner().invoke(main, [str(word) for word in words], **options)


@pytest.fixture
def flowers(tmp_path, rng):
    """A small table with words, a gap and a row without target."""
    n = 90
    size = rng.normal(size=n)
    table = pd.DataFrame(
        {"Size": size, "Colour": rng.choice(["red", "blue"], n), "Species": np.where(size > 0, "a", "b")}
    )
    table.loc[3, "Colour"] = None
    table.loc[5, "Species"] = None
    table.to_csv(tmp_path / "flowers.csv", index=False)
    return tmp_path / "flowers.csv"


def test_help_needs_neither_numpy_nor_scikit_learn():
    heavy = "print({'numpy', 'pandas', 'sklearn', 'scipy', 'jinja2'} & set(sys.modules))"
    code = f"import sys; from softlearning.cli import main\ntry: main(['--help'])\nexcept SystemExit: {heavy}"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "fit" in said
    assert said.strip().endswith("set()")


def test_the_package_can_be_run_as_the_command():
    said = subprocess.run([sys.executable, "-m", "softlearning", "--version"], capture_output=True, text=True).stdout
    assert said.startswith("softlearning, version")


@pytest.mark.parametrize("command", ["fit", "predict", "report", "demo", "bench", "serve"])
def test_every_command_explains_itself(run, command):
    answer = run(command, "--help")
    assert answer.exit_code == 0
    assert "Usage" in answer.output


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
        (["--out", "nowhere/model"], "no folder nowhere"),
        (["--out", "model", "--report", "model"], "two different files"),
        (["--out", "model", "--type", "Colour"], "COLUMN=TYPE"),
        (["--out", "model", "--type", "Color=category"], "did you mean 'Colour'?"),
        (["--out", "model", "--group", "Species"], "different columns"),
        (["--out", "model", "--memory-limit", "much"], "500M"),
        (["--out", "model", "--time-limit", "-1"], "--time-limit"),
        (["--out", "model", "--task", "clustering"], "classification"),
    ],
)
def test_what_cannot_work_is_refused_before_the_work(run, flowers, words, said):
    answer = run("fit", flowers, "--target", "Species", *words)
    assert answer.exit_code == 2
    assert said in answer.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--library", "fst"], "no specialist is called 'fst'"),
        (["--library", "fast", "--task", "regression"], "SoftClassifier"),
    ],
)
def test_what_fails_is_one_sentence_without_a_traceback(run, flowers, tmp_path, words, said):
    answer = run("fit", flowers, "--target", "Species", "--out", "model", *words, "--jobs", 1)
    assert answer.exit_code == 1
    assert said in answer.output
    assert "Traceback" not in answer.output
    assert not (tmp_path / "model").exists()


def test_from_a_table_to_a_model_a_page_and_predictions(run, flowers, tmp_path):
    learnt = run(
        "fit", flowers, "--target", "Species", "--out", "m", "--report", "p.html", "--library", FEW, "--jobs", 1
    )
    assert learnt.exit_code == 0, learnt.output
    for words in (
        "89 rows, 2 columns",
        "classification (guessed from words",
        "logistic",
        "hindsight",
        "How sure",
        "p.html",
    ):
        assert words in learnt.stdout
    assert "1 rows without a value of 'Species' are left out" in learnt.stderr
    answered = run("predict", "m", flowers, "--out", "answers.csv")
    assert answered.exit_code == 0, answered.output
    answers = pd.read_csv("answers.csv")
    assert list(answers) == ["prediction", "probability_a", "probability_b", "disagreement"]
    assert len(answers) == 90
    np.testing.assert_allclose(answers["probability_a"] + answers["probability_b"], 1)
    assert run("report", "m", "--out", "again.html").exit_code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.html", "answers.csv", "flowers.csv", "m", "p.html"]


def test_predictions_follow_the_name_and_the_standard_streams(run, flowers):
    run("fit", flowers, "--target", "Species", "--out", "m", "--library", "logistic", "--jobs", 1)
    run("predict", "m", flowers, "--out", "answers.csv")
    answers = pd.read_csv("answers.csv")
    run("predict", "m", flowers, "--out", "answers.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet("answers.parquet"), answers)
    piped = run("predict", "m", "-", "--out", "-", input=flowers.read_bytes())
    assert piped.exit_code == 0, piped.output
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(piped.stdout)), answers)
    assert "90 predictions" in piped.stderr


def test_a_currency_target_is_a_number_and_a_name_is_found_whatever_its_case(run, tmp_path, rng):
    size = rng.uniform(50, 200, 80)
    prices = [f"${1000 * s:,.0f}" for s in size]
    pd.DataFrame({"Size": size, "PRICE": prices}).to_csv(tmp_path / "t.csv", index=False)
    assert "did you mean 'PRICE'?" in run("fit", "t.csv", "--target", "Price", "--out", "m").output
    answer = run("fit", "t.csv", "--target", "PRICE", "--out", "m", "--library", "ridge", "--jobs", 1)
    assert "regression (guessed from whole numbers" in answer.output


def test_numbers_are_predicted_with_intervals(run, flowers):
    fitted = run("fit", flowers, "--target", "Size", "--out", "m", "--library", "ridge,knn_15", "--jobs", 1)
    assert "regression (guessed from float" in fitted.output
    run("predict", "m", flowers, "--out", "answers.csv", "--coverage", 0.8)
    answers = pd.read_csv("answers.csv")
    assert list(answers) == ["prediction", "disagreement", "low", "high"]
    assert (answers["low"] < answers["prediction"]).all()
    assert (answers["prediction"] < answers["high"]).all()


def test_groups_weights_kinds_and_task_are_followed(run, tmp_path, rng):
    table = pd.DataFrame({"x": rng.normal(size=80), "code": rng.integers(0, 3, 80), "who": np.arange(80) // 4})
    table["w"] = 1.0
    table["y"] = np.where(table["x"] > 0, 2.0, 1.0)
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["--group", "who", "--weight", "w", "--type", "code=category", "--task", "regression", "--library", "ridge"]
    answer = run("fit", "t.csv", "--target", "y", "--out", "m", *words, "--jobs", 1)
    assert answer.exit_code == 0, answer.output
    assert "2 columns: 1 number, 1 category" in answer.output
    assert "Target `y`: regression\n" in answer.output


def test_a_column_that_the_model_needs_is_missed_by_name(run, flowers, tmp_path):
    run("fit", flowers, "--target", "Species", "--out", "m", "--library", FEW, "--jobs", 1)
    pd.read_csv(flowers).rename(columns={"Colour": "Color"}).to_csv(tmp_path / "new.csv", index=False)
    answer = run("predict", "m", "new.csv", "--out", "answers.csv")
    assert answer.exit_code == 1
    assert "Colour" in answer.output
    assert not (tmp_path / "answers.csv").exists()


def test_a_file_that_is_no_model_is_refused_in_one_sentence(run, flowers):
    answer = run("predict", flowers, flowers, "--out", "answers.csv")
    assert answer.exit_code == 1
    assert answer.output.startswith("Error: ")
    assert "Traceback" not in answer.output


def test_labels_that_are_whole_numbers_with_gaps_stay_whole(run, tmp_path, rng):
    table = pd.DataFrame({"x": rng.normal(size=60)})
    table["y"] = (table["x"] > 0).astype(float)
    table.loc[0, "y"] = None
    table.to_csv(tmp_path / "t.csv", index=False)
    run("fit", "t.csv", "--target", "y", "--out", "m", "--library", FEW, "--jobs", 1)
    run("predict", "m", "t.csv", "--out", "answers.csv")
    assert {"probability_0", "probability_1"} <= set(pd.read_csv("answers.csv"))


def test_hostile_labels_reach_a_csv_without_becoming_formulas(run, tmp_path, rng):
    size = rng.normal(size=60)
    labels = np.where(size > 0, "=cmd|' /C calc'!A0", "@SUM(1)")
    pd.DataFrame({"=x": size, "y": labels}).to_csv(tmp_path / "t.csv", index=False)
    run("fit", "t.csv", "--target", "y", "--out", "m", "--library", FEW, "--jobs", 1)
    run("predict", "m", "t.csv", "--out", "answers.csv")
    answers = pd.read_csv("answers.csv")
    assert set(answers["prediction"]) == {"'=cmd|' /C calc'!A0", "'@SUM(1)"}
    assert not any(name.startswith(("=", "@")) for name in answers)


def test_the_demo_shows_all_it_promises(run, tmp_path, monkeypatch):
    monkeypatch.setattr("softlearning.demo.LIBRARY", ("logistic", "naive_bayes"))
    answer = run("demo", "--jobs", 1)
    assert answer.exit_code == 0, answer.output
    for words in ("426 rows", "logistic", "On the 143 rows kept aside", "log loss", "demo/report.html"):
        assert words in answer.output
    assert sorted(p.name for p in (tmp_path / "demo").iterdir()) == ["model.soft", "report.html"]
