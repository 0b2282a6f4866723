"""Laws of the 37 datasets: shape, classes, balance, no row in two folds, the same bytes everywhere."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets as sklearn_datasets

from softlearning_bench import datasets
from softlearning_bench.datasets import DATASETS, Absent, dataset, fingerprint
from softlearning_bench.paper import paper_results

HASHES = Path(__file__).parents[1] / "hashes.csv"
KNOWN_DUPLICATES = {"A01_iris": 1}  # two flowers of the real set are alike in all four measurements


@cache
def table_of(row):
    return row.table(download=False)


@pytest.fixture(params=DATASETS, ids=lambda row: row.name)
def row(request):
    return request.param


@pytest.fixture
def table(row, request):
    if row.source == "real":
        request.getfixturevalue("data_home")
    try:
        return table_of(row)
    except Absent as reason:
        pytest.skip(str(reason))


def test_rows_and_columns_are_the_papers(row, table):
    X, y = table
    assert X.shape == (row.n, row.d)
    assert y.shape == (row.n,)
    assert X.dtype == y.dtype == np.float64


def test_every_cell_is_a_finite_number(table):
    assert all(np.isfinite(array).all() for array in table)


def test_classes_are_counted_from_zero_and_balanced_as_printed(row, table):
    if row.task == "regression":
        assert row.classes is None
        return
    labels, counts = np.unique(table[1], return_counts=True)
    assert labels.tolist() == list(range(row.classes))
    assert abs(100 * counts.max() / row.n - row.majority) <= 1


def test_no_row_can_stand_in_two_folds(row, table):
    distinct = len(np.unique(table[0], axis=0))
    assert row.n - distinct == KNOWN_DUPLICATES.get(row.name, 0)


def test_bytes_are_those_of_the_committed_table(row, table):
    committed = pd.read_csv(HASHES, index_col="dataset")["sha256"]
    assert fingerprint(*table) == committed[row.name]


def test_one_bit_changes_the_fingerprint():
    X, y = np.zeros((3, 2)), np.zeros(3)
    changed = X.copy()
    changed[2, 1] = np.nextafter(0, 1)
    assert fingerprint(X, y) != fingerprint(changed, y)


def test_the_rows_are_those_of_the_papers_table():
    assert [row.name for row in DATASETS] == paper_results().index.tolist()


def test_a_dataset_is_found_by_the_start_of_its_name():
    assert dataset("B08").name == "B08_hastie"
    with pytest.raises(ValueError, match="no dataset 'B'"):
        dataset("B")


def test_a_set_that_is_not_cached_is_absent_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    with pytest.raises(Absent, match="fetch_california_housing: not in scikit-learn's data home"):
        dataset("A06").table(download=False)


def test_a_failed_download_is_absent_with_a_reason():
    def fetch_nothing(download_if_missing=True, return_X_y=True):
        raise ConnectionError("no route") if download_if_missing else OSError("no file")

    with pytest.raises(Absent, match="could not be downloaded"):
        datasets._fetched(fetch_nothing, download=True)


def test_sizes_are_grouped_as_in_the_paper():
    groups = pd.Series([row.size for row in DATASETS]).value_counts()
    assert groups.to_dict() == {"small": 7, "medium": 21, "large": 9}


def test_friedmans_first_function_is_scikit_learns():
    X, _ = dataset("C01").table()
    expected, _ = sklearn_datasets.make_friedman1(5_000, noise=1.0, random_state=42)
    np.testing.assert_allclose(X, expected, atol=1e-4)
