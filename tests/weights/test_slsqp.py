import numpy as np
import pytest
from numpy.testing import assert_allclose

from softlearning.weights import solve_weights
from tests.weights.solver_problems import softmax

LOSSES = ("squared", "log")


@pytest.fixture
def classes():
    rng = np.random.default_rng(7)
    Y = np.eye(3)[rng.integers(0, 3, 90)]
    P = softmax(rng.uniform(0.5, 3, (1, 6, 1)) * Y[:, None] + rng.normal(size=(90, 6, 3)))
    return P, Y


@pytest.mark.parametrize("loss", LOSSES)
def test_slsqp_on_a_scaled_objective_reaches_the_optimum(loss, classes):
    slsqp = solve_weights(*classes, rule="slsqp", loss=loss)
    assert_allclose(slsqp.weights, solve_weights(*classes, loss=loss).weights, atol=1e-4)
