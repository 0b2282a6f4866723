"""Theorem 5 (S5), sample efficiency: E(SL) <= eps + O(sqrt(d_k / n)) + O(log K / n), better than deep for
n < d_DL / d_k.

Verdict: holds under a condition. With a specialist of small bias in the library the blend is the better one on few
rows. The crossing point d_DL / d_k does not follow: by the paper's own formulas it is ((sqrt d_DL - sqrt d_k) /
eps)^2, which hangs on the bias. Without a specialist of small bias the network wins far below it. All of it compares
upper bounds; at the paper's example (iris) the bound for the network, 4.9, says nothing about its error.
"""

import numpy as np
import pytest
from sklearn.datasets import make_circles
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor

from softlearning.estimators import SoftClassifier, SoftRegressor
from softlearning_bench.audit.guarantees import crossover_rows, estimation_error

VERDICT = "holds under a condition"
CONDITION = "a specialist of small bias is in the library; the crossing point depends on that bias"

pytestmark = pytest.mark.filterwarnings("ignore:Stochastic Optimizer")


def linear(rng, n):
    X = rng.normal(size=(n, 8))
    return X, X @ np.linspace(1, 2, 8) + rng.normal(size=n)


@pytest.mark.parametrize("seed", range(3))
def test_with_a_fitting_specialist_the_blend_beats_a_network_on_few_rows(seed):
    rng = np.random.default_rng(seed)
    X, y = linear(rng, 30)
    new = linear(rng, 2000)
    blend = SoftRegressor(library=["ridge", "knn_5", "decision_tree"]).fit(X, y)
    network = MLPRegressor(hidden_layer_sizes=(256, 128, 64), max_iter=300, random_state=0).fit(X, y)
    assert blend.score(*new) > network.score(*new) + 0.02


def test_without_one_the_network_wins_below_the_paper_s_crossing_point():
    X, y = make_circles(1300, noise=0.1, factor=0.5, random_state=0)
    n, d_linear, d_network = 300, 3, 2500
    assert n < d_network / d_linear
    lines = SoftClassifier(library=["logistic", "logistic_strong"]).fit(X[:n], y[:n])
    network = MLPClassifier(hidden_layer_sizes=(64, 32), max_iter=300, random_state=0).fit(X[:n], y[:n])
    assert network.score(X[n:], y[n:]) > 0.9
    assert lines.score(X[n:], y[n:]) < 0.65


def test_the_estimation_error_of_a_linear_class_falls_with_n_and_stays_below_its_bound():
    rng = np.random.default_rng(0)
    new, skill = linear_classes(rng, 20_000), 0.8
    for n in (50, 200, 800):
        fits = [LogisticRegression(C=np.inf).fit(*linear_classes(rng, n)) for _ in range(10)]
        excess = np.mean([skill - fitted.score(*new) for fitted in fits])
        assert 0 < excess < estimation_error(5, n) / 2  # the bound is loose, without a constant in its favour


def linear_classes(rng, n):
    """Four columns, a line between two classes, one label in five turned: the best error rate is 0.2."""
    X = rng.normal(size=(n, 4))
    return X, ((X.sum(axis=1) > 0) ^ (rng.random(n) < 0.2)).astype(int)


def test_the_crossing_point_moves_with_the_bias():
    assert crossover_rows(0.5, 5, 2500) < 2500 / 5 * 20
    assert crossover_rows(0.01, 5, 2500) > 2500 / 5 * 1000
    assert crossover_rows(2.5, 5, 2500) < 2500 / 5


def test_the_bound_of_the_iris_example_says_nothing_about_an_error_rate():
    assert estimation_error(2500, 104) > 1
