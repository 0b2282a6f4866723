"""Every row is held out as asked, and a bad request says what is wrong with it."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import RepeatedKFold, TimeSeriesSplit

from softlearning.method.folds import fold_of_row, make_folds


def held_out(splits):
    return np.sort(np.concatenate([test for _, test in splits]))


@pytest.mark.parametrize(("n", "folds"), [(50, 5), (2_000, 5), (2_001, 3)])
def test_the_papers_rule_takes_five_folds_up_to_2000_rows_and_three_above(n, folds):
    y = np.arange(n) % 3
    splits = make_folds(None, y, stratify=True)
    assert len(splits) == folds
    assert_array_equal(held_out(splits), np.arange(n))


def test_classes_are_spread_evenly():
    y = np.repeat([0, 1], [40, 10])
    assert [int(y[test].sum()) for _, test in make_folds(None, y, stratify=True)] == [2] * 5


def test_a_class_of_one_row_is_allowed():
    y = np.array([0] * 10 + [1] * 10 + [2])
    assert_array_equal(held_out(make_folds(None, y, stratify=True)), np.arange(21))


def test_all_classes_rarer_than_the_folds_still_split():
    y = np.arange(6) % 3
    assert_array_equal(held_out(make_folds(None, y, stratify=True)), np.arange(6))


def test_groups_are_never_split():
    groups = np.repeat(np.arange(12), 5)
    y = np.random.default_rng(0).integers(0, 2, 60)
    for train, test in make_folds(None, y, stratify=True, groups=groups):
        assert not set(groups[train]) & set(groups[test])


def test_fewer_groups_than_folds_gives_one_fold_a_group():
    assert len(make_folds(None, np.zeros(9), stratify=False, groups=np.repeat([1, 2, 3], 3))) == 3


def test_a_time_series_leaves_the_first_rows_unpredicted():
    splits = make_folds(TimeSeriesSplit(3), np.zeros(20), stratify=False)
    fold = fold_of_row(splits, 20)
    assert (fold[:5] == -1).all()
    assert (fold[5:] >= 0).all()


def test_repeats_hold_each_row_out_more_than_once():
    splits = make_folds(RepeatedKFold(n_splits=4, n_repeats=2, random_state=0), np.zeros(20), stratify=False)
    assert_array_equal(np.bincount(held_out(splits)), np.full(20, 2))


def test_masks_are_taken_as_rows():
    mask = np.arange(6) < 3
    (train, test), _ = make_folds([(mask, ~mask), (~mask, mask)], np.zeros(6), stratify=False)
    assert_array_equal(train, [0, 1, 2])
    assert_array_equal(test, [3, 4, 5])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "at least 2 folds"),
        (50, "asks for 50 folds, the table has 10 rows"),
        ([], "no split"),
        ([([0, 1], [1, 2])], "both in train and in test"),
        ([([0, 1], [10])], "outside 0..9"),
        ([([0, 1], [])], "empty part"),
        ([([0, 1], [2.5])], "outside"),
        ([(0, 1, 2)], "not a pair"),
        ([(np.ones(3, bool), np.zeros(3, bool))], "mask of 3 rows"),
    ],
)
def test_a_bad_request_says_what_is_wrong(cv, message):
    with pytest.raises(ValueError, match=message):
        make_folds(cv, np.zeros(10), stratify=False)


def test_something_else_is_no_cv():
    with pytest.raises(TypeError, match="give None, a number of folds"):
        make_folds("five", np.zeros(10), stratify=False)


def test_one_row_cannot_be_cross_fitted():
    with pytest.raises(ValueError, match="at least 2 rows"):
        make_folds(None, np.zeros(1), stratify=False)


def test_one_group_cannot_be_held_out():
    with pytest.raises(ValueError, match="one group only"):
        make_folds(None, np.zeros(4), stratify=False, groups=np.zeros(4))
