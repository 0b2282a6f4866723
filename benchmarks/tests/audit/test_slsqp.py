import numpy as np
import pytest
from numpy.testing import assert_allclose

from softlearning.weights import row_losses, solve_weights
from softlearning_bench.audit.slsqp import slsqp_starts


@pytest.fixture
def problem():
    rng = np.random.default_rng(7)
    Y = np.eye(3)[rng.integers(0, 3, 90)]
    return np.clip(Y[:, None] + 0.3 * rng.normal(size=(90, 6, 3)), 0, 1), Y


def test_it_runs_from_two_more_starts_than_specialists(problem):
    found = slsqp_starts(*problem)
    assert found.weights.shape == (8, 6)
    assert_allclose(found.weights.sum(axis=1), 1)
    assert_allclose(found.objectives, [row_losses(*problem, w).mean() for w in found.weights])


def test_the_scaled_reading_ends_where_the_rule_of_the_library_does(problem):
    found = slsqp_starts(*problem)
    assert_allclose(found.weights[found.objectives.argmin()], solve_weights(*problem, rule="slsqp").weights, atol=1e-6)


def test_another_reading_is_refused(problem):
    with pytest.raises(ValueError, match="reading"):
        slsqp_starts(*problem, reading="median")
