"""Stress tests of the solver: thousands of generated problems, and checks against independent solvers.

Each series writes what it saw to benchmarks/results/solver.csv, so that every figure has a file behind it.
"""

import csv
import time
from itertools import combinations
from pathlib import Path

import clarabel
import mpmath
import numpy as np
import pytest
from scipy import sparse

from softlearning.weights import losses as module
from softlearning.weights import solve_weights
from tests.weights.solver_problems import (
    LOG_KINDS,
    OF_ERRORS,
    SQUARED_KINDS,
    infeasibility,
    log_gap,
    log_problem,
    problem_of_loss,
    squared_gap,
    squared_problem,
    tweedie_problem,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "solver.csv"
FIELDS = (
    "series", "slice", "problems", "exceptions", "worst_infeasibility", "worst_gap", "worst_move_under_permutation",
    "unique", "most_steps", "median_cpu_seconds", "worst_cpu_seconds",
)  # fmt: skip
BUCKETS = ((1, 1), (2, 9), (10, 30), (31, 100), (101, 300), (301, 999), (1000, 1000))


def write(series, rows):
    """Replace the rows of one series in the results file and keep the others."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    kept = []
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["series"] != series]
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(kept + rows, key=lambda row: row["series"]))


def summarise(series, name, runs):
    done = [run for run in runs if run["error"] is None]
    worst = {key: max(run[key] for run in done) for key in ("infeasibility", "gap", "move", "steps", "seconds")}
    return {
        "series": series,
        "slice": name,
        "problems": len(runs),
        "exceptions": len(runs) - len(done),
        "worst_infeasibility": f"{worst['infeasibility']:.1e}",
        "worst_gap": f"{worst['gap']:.1e}",
        "worst_move_under_permutation": f"{worst['move']:.1e}",
        "unique": sum(run["unique"] for run in done),
        "most_steps": worst["steps"],
        "median_cpu_seconds": f"{np.median([run['seconds'] for run in done]):.4f}",
        "worst_cpu_seconds": f"{worst['seconds']:.4f}",
    }


def run_one(problem, gap, loss, steps):
    """Solve a problem twice, the second time with the specialists in another order."""
    P, Y, weight = problem
    order = np.random.default_rng(P.shape).permutation(P.shape[1])
    steps.clear()
    try:
        start = time.process_time()
        solution = solve_weights(P, Y, loss=loss, sample_weight=weight)
        seconds = time.process_time() - start
        permuted = solve_weights(P[:, order], Y, loss=loss, sample_weight=weight)
    except Exception as error:
        return {"error": repr(error)}
    return {
        "infeasibility": infeasibility(solution.weights),
        "gap": gap(P, Y, weight, solution.weights),
        "move": np.abs(permuted.weights - solution.weights[order]).max(),
        "unique": solution.unique,
        "steps": max(steps, default=0),
        "seconds": seconds,
        "error": None,
    }


def run_series(series, kinds, sizes, make, gap, loss, steps):
    cells = [(kinds[seed % len(kinds)], K) for seed, K in enumerate(sizes)]
    runs = [run_one(make(seed, kind, K), gap, loss, steps) for seed, (kind, K) in enumerate(cells)]
    slices = {"all": runs}
    slices |= {kind: [run for run, cell in zip(runs, cells) if cell[0] == kind] for kind in kinds}
    slices |= {f"K {a}..{b}": [run for run, cell in zip(runs, cells) if a <= cell[1] <= b] for a, b in BUCKETS}
    write(series, [summarise(series, name, part) for name, part in slices.items() if part])
    return runs


def sizes(problems, largest, kinds, seed):
    """The largest K once for every kind, then 2 or more with the small ones likelier, and 1 for one in a hundred."""
    u = np.random.default_rng(seed).random(problems - kinds)
    K = np.round(largest ** (0.1 + 0.9 * u**2)).astype(int)
    K[::100] = 1
    return [largest] * kinds + K.tolist()


def test_ten_thousand_least_squares_problems_are_certified():
    K = sizes(10_000, 1000, len(SQUARED_KINDS), seed=0)
    runs = run_series("least squares", SQUARED_KINDS, K, squared_problem, squared_gap, "squared", steps=[])
    assert [run["error"] for run in runs if run["error"]] == []
    assert max(run["infeasibility"] for run in runs) <= 1e-12
    assert max(run["gap"] for run in runs) <= 1e-10
    assert max(run["move"] for run in runs) <= 1e-6


def test_two_thousand_log_loss_problems_are_certified(monkeypatch):
    steps = []

    def counted(likelihood, mass):
        alpha, count = simplex_log_loss(likelihood, mass)
        steps.append(count)
        return alpha, count

    simplex_log_loss = module.simplex_log_loss
    monkeypatch.setattr(module, "simplex_log_loss", counted)
    K = sizes(2_000, 300, len(LOG_KINDS), seed=1)
    runs = run_series("log loss", LOG_KINDS, K, log_problem, log_gap, "log", steps)
    assert [run["error"] for run in runs if run["error"]] == []
    assert max(run["infeasibility"] for run in runs) <= 1e-12
    assert max(run["gap"] for run in runs) <= 1e-9
    assert max(run["steps"] for run in runs) <= 50
    assert max(run["move"] for run in runs) <= 1e-6


@pytest.mark.parametrize("loss", [*OF_ERRORS, "poisson", "tweedie:1.5"])
def test_two_thousand_problems_of_every_other_loss_are_certified(loss):
    """Gaps in shares of the objective, and of 1e-4 of the best specialist's where all rows are interpolated."""
    runs = []
    for seed in range(2_000):
        of_amounts = loss.startswith("tweedie")
        P, Y, weight = (*tweedie_problem(seed, spread=0.1), None) if of_amounts else problem_of_loss(seed, loss)
        start = time.process_time()
        solution = solve_weights(P, Y, loss=loss, sample_weight=weight)
        seconds = time.process_time() - start
        best = solve_weights(P, Y, loss=solution.loss, sample_weight=weight, rule="best").objective
        assert solution.objective <= best * (1 + 1e-12) + 1e-14
        scale = solution.objective + 1e-4 * best
        runs.append((infeasibility(solution.weights), solution.gap / scale if scale else solution.gap, seconds))
    infeasible, gap, seconds = (np.array(values) for values in zip(*runs))
    line = {
        "series": loss,
        "slice": "all",
        "problems": len(runs),
        "exceptions": 0,
        "worst_infeasibility": f"{infeasible.max():.1e}",
        "worst_gap": f"{gap.max():.1e}",
        "median_cpu_seconds": f"{np.median(seconds):.4f}",
        "worst_cpu_seconds": f"{seconds.max():.4f}",
    }
    write(loss, [line])
    assert infeasible.max() <= 1e-12
    assert gap.max() <= 1e-8


# ------------------------------------------------------------------------------------------------ independent solvers

TIGHT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13, "max_iter": 500}


def solve_with_clarabel(P, q, A, b, cones):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for name, value in TIGHT.items():
        setattr(settings, name, value)
    solver = clarabel.DefaultSolver(P, q, sparse.csc_matrix(A), b, cones, settings)
    return np.array(solver.solve().x)


def clarabel_squared(E):
    """min |r|^2 subject to r = E a, sum(a) = 1, a >= 0; variables (a, r)."""
    m, K = E.shape
    A = np.block([[E, -np.eye(m)], [np.ones((1, K)), np.zeros((1, m))], [-np.eye(K), np.zeros((K, m))]])
    b = np.concatenate([np.zeros(m), [1], np.zeros(K)])
    quadratic = sparse.diags(np.repeat([0.0, 2.0], [K, m])).tocsc()
    cones = [clarabel.ZeroConeT(m + 1), clarabel.NonnegativeConeT(K)]
    return solve_with_clarabel(quadratic, np.zeros(K + m), A, b, cones)[:K]


def clarabel_log(likelihood):
    """max mean t subject to (t_i, 1, likelihood_i a) in the exponential cone, a on the simplex."""
    n, K = likelihood.shape
    rows, right = [np.append(np.ones(K), np.zeros(n))], [1.0]
    rows += [np.append(-np.eye(K)[k], np.zeros(n)) for k in range(K)]
    right += [0.0] * K
    for i in range(n):
        rows += [np.append(np.zeros(K), -np.eye(n)[i]), np.zeros(K + n), np.append(-likelihood[i], np.zeros(n))]
        right += [0.0, 1.0, 0.0]
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(K)] + [clarabel.ExponentialConeT()] * n
    q = np.append(np.zeros(K), np.full(n, -1 / n))
    return solve_with_clarabel(sparse.csc_matrix((K + n, K + n)), q, np.array(rows), np.array(right), cones)[:K]


def fifty_digits(E):
    """Smallest |E a|^2 on the simplex by trying every support (K <= 6), in arithmetic of 50 digits."""
    with mpmath.workdps(50):
        M = mpmath.matrix(E.tolist())
        G = M.T * M
        best = None
        for support in (s for size in range(1, E.shape[1] + 1) for s in combinations(range(E.shape[1]), size)):
            alpha = stationary(G, support)
            if alpha is not None and min(alpha) >= 0:
                value = sum(alpha[i] * alpha[j] * G[p, q] for i, p in enumerate(support) for j, q in enumerate(support))
                best = value if best is None else min(best, value)
        return best


def stationary(G, support):
    """The point with sum 1 and equal gradients on a support, or None if there is no single one."""
    size = len(support)
    system = mpmath.matrix(size + 1, size + 1)
    for i, p in enumerate(support):
        for j, q in enumerate(support):
            system[i, j] = G[p, q]
        system[i, size] = system[size, i] = 1
    try:
        return list(mpmath.lu_solve(system, mpmath.matrix([0] * size + [1])))[:size]
    except ZeroDivisionError:
        return None


INDEPENDENT_KINDS = ("plain", "duplicates", "collinear", "perfect_specialist", "zero_predictions", "best_is_a_corner")


def raw_errors(P, Y):
    E = (Y[:, None] - P).transpose(0, 2, 1).reshape(-1, P.shape[1])
    norms = np.linalg.norm(E / np.abs(E).max(), axis=0) * np.abs(E).max()
    return E / min(norms[norms > 0])


def test_two_hundred_least_squares_problems_agree_with_fifty_digits_and_with_clarabel():
    differences, clarabel_excess = [], []
    for seed in range(200):
        P, Y, _ = squared_problem(seed, INDEPENDENT_KINDS[seed % 6], K=1 + seed % 6)
        E, alpha = raw_errors(P, Y), solve_weights(P, Y).weights
        differences.append(abs(float(np.sum((E @ alpha) ** 2) - fifty_digits(E))))
        other = np.maximum(clarabel_squared(E), 0)
        clarabel_excess.append(float(np.sum((E @ other) ** 2) / other.sum() ** 2 - np.sum((E @ alpha) ** 2)))
    report_agreement("least squares, 50 digits", differences)
    report_agreement("least squares, clarabel", np.abs(clarabel_excess))
    assert max(differences) <= 1e-13
    assert min(clarabel_excess) >= -1e-13  # it never finds a better point
    assert max(clarabel_excess) <= 1e-11


def test_a_hundred_log_loss_problems_agree_with_clarabel():
    excess = []
    for seed in range(100):
        P, Y, _ = log_problem(seed, LOG_KINDS[seed % 8], K=1 + seed % 12)
        likelihood = np.clip((P * Y[:, None]).sum(axis=2), 1e-15, 1)
        ours = solve_weights(P, Y, loss="log").objective
        other = np.maximum(clarabel_log(likelihood), 0)
        excess.append(float(-np.log(likelihood @ other / other.sum()).mean() - ours))
    report_agreement("log loss, clarabel", np.abs(excess))
    assert min(excess) >= -1e-9
    assert max(excess) <= 1e-9


def report_agreement(name, differences):
    row = {"series": f"agreement: {name}", "slice": "all", "problems": len(differences), "exceptions": 0}
    write(row["series"], [row | {"worst_gap": f"{max(differences):.1e}"}])
