"""The paper (Methods, Optimization): "All initializations converge to the same optimum in practice".

Found: not so under SciPy's default options, in either reading of the objective that the paper gives. It becomes
true once the objective is scaled and the tolerance tightened, and then the exact rule gives the same answer.
"""

import numpy as np
import pytest

from softlearning.weights import solve_weights
from softlearning_bench.audit.slsqp import slsqp_starts
from tests.weights.solver_problems import softmax

K = 15


def regression():
    """Errors of 15 specialists that share a part, target of mean 150 and deviation 75."""
    rng = np.random.default_rng(0)
    y = 150 + 75 * rng.normal(size=400)
    shared = 40 * rng.normal(size=400)
    E = shared[:, None] * rng.uniform(0.8, 1.2, K) + rng.normal(size=(400, K)) * rng.uniform(5, 40, K)
    return (y[:, None] - E)[:, :, None], y[:, None]


def classification():
    rng = np.random.default_rng(0)
    Y = np.eye(10)[rng.integers(0, 10, 600)]
    skill = rng.uniform(3, 7, size=(1, K, 1))
    return softmax(skill * Y[:, None] + rng.normal(size=(600, 1, 10)) + rng.normal(size=(600, K, 10))), Y


def disagreement_of_starts(problem, reading):
    """Largest L1 distance between the weights of two starts, and the excess over the optimum: best and worst."""
    starts = slsqp_starts(*problem, reading=reading)
    assert len(starts.weights) == K + 2
    assert starts.success.all()  # SLSQP itself sees nothing wrong
    distance = np.abs(starts.weights[:, None] - starts.weights).sum(axis=2).max()
    excess = starts.objectives / solve_weights(*problem).objective - 1
    return distance, excess.min(), excess.max()


def test_on_the_sum_of_squares_no_start_reaches_the_optimum_in_regression():
    distance, best, worst = disagreement_of_starts(regression(), "sum")
    assert distance > 1
    assert best > 0.01
    assert worst > 1


def test_on_the_mean_the_starts_disagree_in_classification():
    distance, _, worst = disagreement_of_starts(classification(), "mean")
    assert distance > 0.01
    assert worst > 1e-4


@pytest.mark.parametrize("problem", [regression, classification])
def test_with_a_scaled_objective_and_a_tight_tolerance_they_agree(problem):
    distance, _, worst = disagreement_of_starts(problem(), "scaled")
    assert distance < 1e-4
    assert worst < 1e-10
