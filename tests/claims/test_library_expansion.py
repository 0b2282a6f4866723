"""Corollary (S2), monotonicity: expanding the library can only improve performance, up to O(log(K'/K) / n).

Verdict: holds under a condition (large n). The oracle's risk never rises, and with many rows the blend's
does not either. On small samples adding specialists that carry no information raises the risk, by about
(K' - K) / 2n. The rule "guarded" gives part of that back where its prior knows who is likely to be good, as the shipped
libraries' does; with equal prior shares it does not. Nine specialists added one by one on Friedman's
function (benchmarks/results/library_expansion.csv): with 1,500 rows the mean risk never rises, from 7.22 to 2.78;
with 40 rows it is least after two, 6.65, and ends at 6.80.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1

from softlearning.estimators import SoftRegressor
from softlearning.uncertainty.disagreement import blend
from softlearning.weights import solve_weights
from tests.claims.places import RESULTS

VERDICT = "holds under a condition"
CONDITION = "many rows for each specialist added; on small samples useless specialists cost about one over 2n each"


def risk_after_noise(rng, n, added, rule="simplex", prior=None):
    """True risk of the blend of one good specialist and `added` random ones; 1 is the best possible."""
    y = rng.choice([-1.0, 1.0], size=(n, 1))
    P = rng.choice([-1.0, 1.0], size=(n, 1 + added, 1))
    P[:, 0] = 0.0
    alpha = solve_weights(P, y, rule=rule, prior=prior).weights
    return 1 + np.sum(alpha[1:] ** 2)


def mean_risk(n, added, rule="simplex", runs=30, prior=None):
    rng = np.random.default_rng(n + added)
    return np.mean([risk_after_noise(rng, n, added, rule, prior) for _ in range(runs)])


def test_the_oracle_never_gets_worse():
    rng = np.random.default_rng(0)
    P, y = rng.normal(size=(100, 12, 1)), rng.normal(size=(100, 1))
    risks = [solve_weights(P[:, :k], y).objective for k in range(1, 13)]  # these rows as the whole population
    assert np.all(np.diff(risks) <= 1e-12)


def test_with_many_rows_useless_specialists_cost_next_to_nothing():
    assert mean_risk(20_000, 10, runs=5) < 1.002


def test_with_few_rows_useless_specialists_do_harm():
    risks = [mean_risk(50, added) for added in (0, 2, 10)]
    assert risks[0] == 1
    assert risks[1] > 1.005
    assert risks[2] > 1.03


def test_the_guard_gives_part_of_the_loss_back_where_its_prior_knows_who_is_good():
    exact = mean_risk(50, 10) - 1
    assert mean_risk(50, 10, "guarded", prior=[10] + [0.1] * 10) - 1 < 0.5 * exact
    assert mean_risk(50, 10, "guarded") - 1 > exact  # equal prior shares believe in the useless ones


def expansion_curve(n, seed, names):
    """Test risk of the blend of the first k specialists, k = 1..K, with specialists fitted once."""
    X, y = make_friedman1(n + 4000, noise=1.0, random_state=seed)
    model = SoftRegressor(library=list(names), rule="uniform", random_state=seed).fit(X[:n], y[:n])
    fitted = list(model.specialists_)
    order = [fitted.index(name) for name in names]
    new = model.specialist_predictions(X[n:])[:, order]
    oof = model.oof_[:, [list(model.weights_.index).index(name) for name in names]]
    risks = []
    for k in range(1, len(names) + 1):
        alpha = solve_weights(oof[:, :k], y[:n, None]).weights
        risks.append(np.mean((blend(new[:, :k], alpha)[:, 0] - y[n:]) ** 2))
    return risks


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_risk_as_specialists_are_added_one_by_one_to_few_and_to_many_rows():
    names = (
        "ridge",
        "spline_ridge",
        "knn_5",
        "knn_15",
        "decision_tree",
        "lasso",
        "elastic_net",
        "extra_trees",
        "svr_rbf",
    )
    lines = []
    for n, seeds in ((40, 20), (1500, 3)):
        curves = np.array([expansion_curve(n, seed, names) for seed in range(seeds)])
        for k, name in enumerate(names):
            rises = 0.0 if k == 0 else float(np.mean(curves[:, k] > curves[:, k - 1] * (1 + 1e-9)))
            lines.append({"rows": n, "specialists": k + 1, "added": name, "risk": curves[:, k].mean(), "rises": rises})
    table = pd.DataFrame(lines)
    RESULTS.mkdir(parents=True, exist_ok=True)
    table.to_csv(RESULTS / "library_expansion.csv", index=False)
    large = table[table["rows"] == 1500]["risk"].to_numpy()
    assert np.all(large[1:] <= large[:-1] * 1.01)  # many rows: never more than one per cent worse
    assert (table[table["rows"] == 40]["rises"] > 0).any()  # few rows: some additions do harm
