"""`evaluate`, `compare`, `predict` and `report`: what they print and write."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

FEW = "logistic,naive_bayes"


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


def test_a_misspelt_column_gets_the_nearest_name_of_the_file(run, flowers):
    run("fit", flowers, "--target", "Species", "--out", "m", "--library", "logistic", "--jobs", 1)
    table = pd.read_csv(flowers)
    first = next(name for name in table.columns if name != "Species")
    table.rename(columns={first: first[:-1]}).to_csv("wrong.csv", index=False)
    refused = run("predict", "m", "wrong.csv", "--out", "a.csv")
    assert refused.exit_code != 0
    assert f"did you mean '{first[:-1]}'" in refused.output


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


def test_numbers_are_predicted_with_intervals(run, flowers):
    fitted = run("fit", flowers, "--target", "Size", "--out", "m", "--library", "ridge,knn_15", "--jobs", 1)
    assert "regression (guessed from numbers with fractions" in fitted.output
    run("predict", "m", flowers, "--out", "answers.csv", "--coverage", 0.8)
    answers = pd.read_csv("answers.csv")
    assert list(answers) == ["prediction", "disagreement", "low", "high"]
    assert (answers["low"] < answers["prediction"]).all()
    assert (answers["prediction"] < answers["high"]).all()


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
    monkeypatch.setattr("softlearning.cli.using.CHUNK", 7)
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


def test_two_models_are_compared_on_the_same_rows(run, fitted, flowers):
    run("fit", flowers, "--target", "Species", "--out", "other", "--library", "dummy", "--jobs", 1, "--allow-useless")
    answer = run("compare", fitted, "other", flowers)
    assert answer.exit_code == 0, answer.output
    for words in ("Scored on 89 rows", "A: m", "B: other", "log loss", "A minus B (95 %)", "A is better"):
        assert words in answer.stdout
    assert max(map(len, answer.stdout.splitlines())) <= 80
    same = run("compare", fitted, fitted, flowers).stdout
    assert "+0.0000 to +0.0000" in same
    assert same.count("no clear difference") == 3


def test_models_of_different_tasks_or_classes_are_not_compared(run, fitted, flowers):
    run("fit", flowers, "--target", "Size", "--out", "number", "--library", "ridge", "--jobs", 1, "--allow-useless")
    answer = run("compare", fitted, "number", flowers)
    assert answer.exit_code == 1
    assert "is a classification" in answer.output
    pd.read_csv(flowers).replace({"Species": {"a": "z"}}).to_csv("z.csv", index=False)
    run("fit", "z.csv", "--target", "Species", "--out", "z", "--library", "logistic", "--jobs", 1)
    assert "different classes" in run("compare", fitted, "z", flowers).output


def test_two_models_share_a_page(run, fitted, flowers):
    run("fit", flowers, "--target", "Species", "--out", "other", "--library", "logistic", "--jobs", 1)
    answer = run("report", fitted, "other", "--out", "both.html", "--rows", flowers)
    assert answer.exit_code == 0, answer.output
    page = Path("both.html").read_text(encoding="utf-8")
    assert "m beside other" in page
    assert "Where their settings differ" in page
    assert run("report", fitted, fitted, fitted, "--out", "three.html").exit_code == 2


def test_a_signed_model_is_read_only_with_its_key(run, flowers, tmp_path):
    (tmp_path / "key").write_text("sixteen bytes at least\n")
    (tmp_path / "short").write_text("guess me")
    (tmp_path / "other").write_text("another key altogether")
    words = ("fit", flowers, "--target", "Species", "--library", FEW, "--jobs", 1, "--out", "model", "--key-file")
    assert "shorter than 16 bytes" in run(*words, "short").output
    assert run(*words, "key").exit_code == 0
    predict = ("predict", "model", flowers, "--out", "p.csv")
    assert run(*predict, "--key-file", "key").exit_code == 0
    for command in (
        predict,
        ("evaluate", "model", flowers),
        ("report", "model", "--out", "r.html"),
        ("serve", "model"),
    ):
        answer = run(*command, "--key-file", "other")
        assert (answer.exit_code, answer.output) == (1, "Error: the file is signed with another key, or was changed\n")
