"""Theorem 2 (S3), training cost: T(SL) / T(DL) <= 0.01, "72 to 435 times faster".

Verdict: fails as stated. Counted with the paper's own formulas and the library's own settings the ratio is 0.05 to
0.39 on the four rows of its table: the network and the support vector machine among the specialists are left out of
the printed T(SL). Without these two it is below 0.01. Operations are not seconds in any case: measured, the eight
specialists take 0.63 to 1.65 times the processor seconds of the network (benchmarks/results/cost.csv).
"""

import time

import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.neural_network import MLPClassifier

from softlearning.estimators import SoftClassifier
from softlearning_bench.audit.guarantees import (
    SPECIALIST_OPERATIONS,
    cost_ratio,
    deep_operations,
    soft_operations,
)
from tests.claims.places import RESULTS

VERDICT = "fails as stated"
CONDITION = "at most 0.01 only without the network and the kernel machine in the library; operations, not seconds"

TABLE = [(500, 30, 1.3e10, 8.2e7), (2000, 100, 5.2e10, 4.1e8), (10_000, 100, 2.6e11, 6.0e8), (5000, 200, 1.3e11, 1.8e9)]


@pytest.mark.parametrize(("n", "d", "deep", "soft"), TABLE)
def test_the_deep_column_follows_its_formula_and_the_ratio_exceeds_one_per_cent(n, d, deep, soft):
    assert_allclose(deep_operations(n), deep, rtol=0.02)
    assert cost_ratio(n, d) > 0.04
    assert sum(soft_operations(n, d).values()) > 7 * soft


@pytest.mark.parametrize(("n", "d"), [row[:2] for row in TABLE])
def test_without_network_and_kernel_machine_the_ratio_is_below_one_per_cent(n, d):
    cheap = {name: T for name, T in SPECIALIST_OPERATIONS.items() if name not in ("mlp", "svm")}
    assert cost_ratio(n, d, operations=cheap) < 0.01


def test_the_network_among_the_specialists_costs_most_of_it():
    cost = soft_operations(10_000, 100)
    assert max(cost, key=cost.get) == "mlp"


PAPER_EIGHT = [
    *("logistic", "knn_5", "decision_tree", "random_forest"),
    *("hist_gradient_boosting", "svm_rbf", "mlp_small", "naive_bayes"),
]


def processor_seconds(model, X, y):
    start = time.process_time()
    model.fit(X, y)
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.timeout(14_400)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_processor_seconds_are_put_onrecord_beside_the_count_of_operations():
    lines = []
    for n, d, _, printed in TABLE:
        X, y = make_classification(n, d, n_informative=10, random_state=0)
        deep = MLPClassifier(hidden_layer_sizes=(256,) * 4, max_iter=100, n_iter_no_change=100, random_state=0)
        soft = SoftClassifier(library=PAPER_EIGHT, rule="simplex", calibrate=False, cv=3)
        seconds = {"soft_seconds": processor_seconds(soft, X, y), "deep_seconds": processor_seconds(deep, X, y)}
        ratios = {"printed_ratio": printed / deep_operations(n), "counted_ratio": cost_ratio(n, d)}
        measured = seconds["soft_seconds"] / seconds["deep_seconds"]
        lines.append({"rows": n, "columns": d, **ratios, "measured_ratio": measured, **seconds})
    RESULTS.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(lines).round(5).to_csv(RESULTS / "cost.csv", index=False)
    assert all(line["soft_seconds"] > 0 for line in lines)
