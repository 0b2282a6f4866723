import numpy as np
from numpy.testing import assert_allclose

from softlearning.weights.evidence import mean_and_error


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
