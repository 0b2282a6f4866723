import numpy as np
import pytest
from numpy.testing import assert_allclose

from softlearning.weights.evidence import mean_and_error, parts_of
from softlearning.weights.losses import checked


def rows(n, **given):
    rng = np.random.default_rng(0)
    y = rng.normal(size=(n, 1))
    return checked(y[:, None] + rng.normal(size=(n, 3, 1)), y, "squared", **given)[0]


def test_the_error_of_a_plain_mean_is_the_textbook_one():
    values = np.random.default_rng(0).normal(size=40)
    mean, error = mean_and_error(values)
    assert_allclose([mean, error], [values.mean(), values.std(ddof=1) / np.sqrt(40)])


def test_rows_of_a_group_count_as_one():
    values = np.random.default_rng(1).normal(size=30)
    _, single = mean_and_error(values)
    _, repeated = mean_and_error(np.repeat(values, 20), groups=np.repeat(np.arange(30), 20))
    _, pretended = mean_and_error(np.repeat(values, 20))
    assert_allclose(repeated, single)
    assert pretended < 0.3 * single


def test_only_ratios_of_weights_matter():
    values, weight = np.random.default_rng(2).normal(size=(2, 25)) ** 2
    assert_allclose(mean_and_error(values, weight), mean_and_error(values, 1000 * weight))
    assert_allclose(mean_and_error(values, weight)[0], np.average(values, weights=weight))


def test_clustered_errors_cover_the_mean_of_new_groups():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(30), 20)
    covered = []
    for _ in range(400):
        values = np.repeat(rng.normal(size=30), 20) + 0.3 * rng.normal(size=600)
        mean, error = mean_and_error(values, groups=groups)
        covered.append(abs(mean) <= 2 * error)
    assert 0.91 <= np.mean(covered) <= 0.98


def test_one_row_has_no_error_to_show():
    assert mean_and_error(np.array([3.0])) == (3.0, 0.0)


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ({"folds": np.arange(12) % 3}, 3),
        ({"folds": np.zeros(12)}, 5),
        ({}, 5),
        ({"groups": np.arange(12) // 4}, 3),
        ({"folds": np.zeros(12), "groups": np.zeros(12)}, 5),
        ({"sample_weight": np.eye(1, 12)[0]}, 1),
    ],
)
def test_rows_are_parted_by_folds_then_groups_then_as_they_come(given, parts):
    found = parts_of(rows(12, **given))
    assert len(found) == parts
    assert sorted(np.concatenate(found)) == list(range(12))


def test_groups_stay_together_where_folds_are_missing():
    groups = np.arange(40) // 4
    for part in parts_of(rows(40, groups=groups)):
        assert np.isin(groups, groups[part]).sum() == len(part)


def test_no_part_has_all_the_weight():
    weight = np.zeros(20)
    weight[[0, 5, 10]] = 1.0  # all of them in the first of five splits by position
    found = rows(20, sample_weight=weight)
    assert all(found.without(part).share.sum() == pytest.approx(1.0) for part in parts_of(found))
