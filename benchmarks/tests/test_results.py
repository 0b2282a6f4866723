"""The table of results survives a kill at any byte, and what is read off it is what it says."""

import numpy as np
import pytest

from softlearning_bench.results import COLUMNS, append, finished, read, score_table, seed_range, with_best_of_3


def line(dataset="A01_iris", method="CatBoost", fold=0, score=0.9, status="ok", **other):
    return {"dataset": dataset, "method": method, "fold": fold, "seed": 42, "score": score, "status": status} | other


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.csv"


def test_no_file_is_an_empty_table(path):
    assert read(path).empty
    assert finished(path) == set()


def test_a_line_comes_back_as_it_was_written(path):
    append(path, line(weights='{"knn_5": 0.5, "ridge": 0.5}', reason="a, b\nand c", rmse=float("nan")))
    row = read(path).iloc[0]
    assert list(read(path).columns) == list(COLUMNS)
    assert (row["weights"], row["reason"]) == ('{"knn_5": 0.5, "ridge": 0.5}', "a, b and c")
    assert row["score"] == 0.9
    assert np.isnan(row["rmse"])


def test_a_kill_at_any_byte_loses_the_last_line_at_most(path):
    for fold in range(3):
        append(path, line(fold=fold))
    whole = path.read_bytes()
    second = whole.index(b"\n", whole.index(b"\n", whole.index(b"\n") + 1) + 1) + 1
    for cut in range(second, len(whole)):
        path.write_bytes(whole[:cut])
        assert len(read(path)) == 2
    append(path, line(fold=4))
    assert read(path)["fold"].tolist() == [0, 1, 4]


def test_a_failed_cell_is_tried_again_and_its_last_line_counts(path):
    append(path, line(status="failed", score=float("nan"), reason="MemoryError"))
    assert finished(path) == set()
    append(path, line(status="ok", score=0.8))
    assert finished(path) == {("A01_iris", "CatBoost", 0, 42)}
    assert read(path)["score"].tolist() == [0.8]


def test_what_was_skipped_with_a_reason_is_not_tried_again(path):
    append(path, line(status="skipped", reason="too many rows"))
    assert len(finished(path)) == 1
    assert score_table(read(path)).empty


def test_scores_are_means_over_folds_of_one_seed(path):
    for fold, score in enumerate([0.8, 0.9]):
        append(path, line(fold=fold, score=score))
    append(path, line(score=0.1, seed=43))
    assert score_table(read(path)).loc["A01_iris", "CatBoost"] == pytest.approx(0.85)


def test_means_over_different_folds_are_not_compared(path):
    for fold in range(3):
        append(path, line(method="CatBoost", fold=fold))
    append(path, line(method="Tuned MLP", fold=0, score=1.0))
    append(path, line(method="Deep MLP", fold=0, score=1.0))  # meant for one fold
    table = score_table(read(path)).loc["A01_iris"]
    assert np.isnan(table["Tuned MLP"])
    assert (table["CatBoost"], table["Deep MLP"]) == (pytest.approx(0.9), 1.0)


def test_numbers_of_a_failed_cell_are_missing_and_not_text(path):
    append(path, line())
    append(path, line(fold=1, status="failed", score=float("nan")))
    assert read(path)["fit_seconds"].dtype.kind == "f"


def test_best_of_3_is_the_maximum_of_its_members_means(path):
    members = {"Logistic/Ridge": (0.9, 0.7), "Random Forest": (0.8, 0.85), "Gradient Boosting": (0.6, 0.95)}
    for method, values in members.items():
        for fold, score in enumerate(values):
            append(path, line(method=method, fold=fold, score=score))
    table = score_table(with_best_of_3(read(path))).loc["A01_iris"]
    assert table["Best-of-3"] == pytest.approx(max(table[list(members)]))
    assert table["Best-of-3"] == pytest.approx(0.825)


def test_best_of_3_waits_until_all_its_members_have_run(path):
    append(path, line(method="Random Forest"))
    assert "Best-of-3" not in set(with_best_of_3(read(path))["method"])


def test_seeds_are_a_number_or_a_range():
    assert list(seed_range(3)) == list(seed_range("3")) == [0, 1, 2]
    assert list(seed_range(2, first=42)) == [42, 43]
    assert list(seed_range("1-3", first=42)) == [1, 2, 3]
    for wrong in ("3-1", "x", "1-x", "-2", "0"):
        with pytest.raises(ValueError, match="a range such as 1-10"):
            seed_range(wrong)


def test_a_file_with_other_columns_is_not_added_to(path):
    path.write_text("dataset,method\nA01_iris,CatBoost\n")
    with pytest.raises(ValueError, match="other columns than this version writes"):
        append(path, line())
