"""The command as a newcomer meets it: what it says, what it writes, how it fails."""

import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from softlearning.cli import _bytes, main

FEW = "logistic,naive_bayes"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words, **options: CliRunner().invoke(main, [str(word) for word in words], **options)


@pytest.fixture
def flowers(tmp_path, rng):
    """A small table with words, a missing value and a row without target."""
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


@pytest.mark.parametrize("command", ["fit", "evaluate", "predict", "report", "demo", "bench", "serve"])
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
        (["--out", "model", "--memory-limit", "0"], "500M"),
        (["--out", "model", "--time-limit", "-1"], "--time-limit"),
        (["--out", "model", "--task", "clustering"], "classification"),
        (["--out", "model", "--drop", "Sise"], "did you mean 'Size'?"),
        (["--out", "model", "--time", "Colours"], "did you mean 'Colour'?"),
        (["--out", "model", "--time", "Size", "--group", "Colour"], "--group and --time"),
        (["--out", "model", "--cv", "1"], "--cv"),
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
        "oracle: ",
        "Answering the surest half",
        "p.html",
    ):
        assert words in learnt.stdout
    assert "1 rows without a value of 'Species' are skipped" in learnt.stderr
    answered = run("predict", "m", flowers, "--out", "answers.csv")
    assert answered.exit_code == 0, answered.output
    answers = pd.read_csv("answers.csv")
    assert list(answers) == ["prediction", "probability_a", "probability_b", "disagreement"]
    assert len(answers) == 90
    assert "Scored on 89 rows" in answered.output
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


def test_groups_weights_types_and_task_are_followed(run, tmp_path, rng):
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


def test_labels_that_are_whole_numbers_with_missing_values_stay_whole(run, tmp_path, rng):
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


@pytest.fixture
def fitted(run, flowers):
    """The file of a model of the flowers."""
    answer = run("fit", flowers, "--target", "Species", "--out", "m", "--library", FEW, "--jobs", 1)
    assert answer.exit_code == 0, answer.output
    return "m"


def test_a_model_is_evaluated_on_a_table_with_the_target(run, fitted, flowers):
    answer = run("evaluate", fitted, flowers)
    assert answer.exit_code == 0, answer.output
    for words in ("Scored on 89 rows", "log loss", "accuracy", "AUC", "95 % interval"):
        assert words in answer.stdout
    assert "1 rows have no target" in answer.stderr


def test_an_evaluation_agrees_with_scikit_learn_and_follows_weights(run, fitted, flowers):
    from sklearn.metrics import log_loss

    from softlearning import load

    table = pd.read_csv(flowers).dropna(subset="Species")
    known = log_loss(table["Species"], load(fitted).predict_proba(table[["Size", "Colour"]]))
    assert f"{known:.4f}" in run("evaluate", fitted, flowers).output
    table.assign(w=np.where(table["Species"] == "a", 1, 0)).to_csv("w.csv", index=False)
    weighted = run("evaluate", fitted, "w.csv", "--weight", "w", "--group", "Colour").output
    assert f"{known:.4f}" not in weighted


def test_an_evaluation_needs_the_target_and_a_class_it_knows(run, fitted, flowers):
    table = pd.read_csv(flowers)
    table.drop(columns="Species").to_csv("bare.csv", index=False)
    assert "no column 'Species'" in run("evaluate", fitted, "bare.csv").output
    table.assign(Species="z").to_csv("other.csv", index=False)
    answer = run("evaluate", fitted, "other.csv")
    assert answer.exit_code == 1
    assert "nothing to score" in answer.output
    table.rename(columns={"Species": "Sort"}).to_csv("sort.csv", index=False)
    assert "Scored on 89" in run("evaluate", fitted, "sort.csv", "--target", "Sort").output


@pytest.mark.parametrize(("name", "read"), [
    ("p.csv", pd.read_csv), ("p.parquet", pd.read_parquet), ("p.jsonl", lambda p: pd.read_json(p, lines=True)),
])  # fmt: skip
def test_predictions_are_written_as_the_name_says_with_columns_that_are_kept(run, fitted, flowers, name, read):
    answer = run("predict", fitted, flowers, "--out", name, "--keep", "Size", "--keep", "Species")
    assert answer.exit_code == 0, answer.output
    written = read(name)
    assert list(written)[:3] == ["Size", "Species", "prediction"]
    np.testing.assert_allclose(written["Size"], pd.read_csv(flowers)["Size"])


def test_predictions_go_to_standard_output_and_words_do_not(run, fitted, flowers, monkeypatch):
    answer = run("predict", fitted, flowers, "--out", "-")
    assert answer.stdout.splitlines()[0] == "prediction,probability_a,probability_b,disagreement"
    assert len(answer.stdout.splitlines()) == 91
    assert "90 predictions" in answer.stderr


def test_a_large_table_is_predicted_part_by_part_and_comes_out_the_same(run, fitted, flowers, monkeypatch):
    run("predict", fitted, flowers, "--out", "whole.csv")
    monkeypatch.setattr("softlearning.cli.CHUNK", 7)
    run("predict", fitted, flowers, "--out", "parts.csv")
    pd.testing.assert_frame_equal(pd.read_csv("parts.csv"), pd.read_csv("whole.csv"))


def test_rows_in_time_order_are_predicted_from_earlier_ones(run, tmp_path, rng):
    from softlearning import load

    day = pd.date_range("2024-01-01", periods=80, freq="D")
    table = pd.DataFrame({"x": rng.normal(size=80), "day": day.strftime("%d.%m.%Y"), "note": "n"})
    table["y"] = table["x"] + np.arange(80) / 100
    table.sample(frac=1, random_state=0).to_csv("t.csv", index=False)
    words = ["--time", "day", "--cv", 3, "--drop", "day", "--drop", "note", "--library", "ridge,knn_5", "--jobs", 1]
    answer = run("fit", "t.csv", "--target", "y", "--out", "m", *words)
    assert answer.exit_code == 0, answer.output
    model = load("m")
    assert len(model.folds_) == 3
    assert all(train.max() < test.min() for train, test in model.folds_)
    np.testing.assert_allclose(model.record_.training.y, table["y"], atol=1e-9)  # the order of the days
    assert model.record_.training.schema.names == ("x",)


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

    monkeypatch.setattr("softlearning.cli._fitted", interrupt)
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


@pytest.mark.parametrize(("text", "size"), [("2G", 2**31), ("500M", 500 * 2**20), ("1.5 KiB", 1536), ("64b", 64)])
def test_amounts_of_memory_are_read_as_they_are_written(text, size):
    assert _bytes(text) == size
