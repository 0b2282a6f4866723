"""Weights held near prior shares: loss(alpha) + tau KL(alpha | prior), with a proof of its own.

With n rows tau is `PSEUDO_ROWS` / n nats: the prior counts as much as that many rows, so that it decides on few rows
and says nothing on many. A nat of the squared loss is twice the best specialist's risk, as for Gaussian errors.

Proof: f is convex, so with its gradient g at alpha the penalised minimum is at least
f(alpha) - g.alpha + min over beta of g.beta + tau KL(beta | prior), whose minimum is the softmax
beta = prior exp(-g / tau) / sum. The gap is therefore tau KL(alpha | beta).
"""

from __future__ import annotations

from math import fsum

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

from softlearning.weights.certificates import corner_risks, gradient_at, hessian_at, value_at
from softlearning.weights.problems import Problem
from softlearning.weights.solvers import Floats

PSEUDO_ROWS = 4.0  # that the prior is worth; chosen on real tables (docs/real_tables)
SMALLEST = 0.02  # a share below this, or half of an equal one, is not worth a model: the rest is solved without it
HOPELESS = 1e8  # times the best risk: such a specialist has no place in the prior
APPROACH = (1e4, 1e3, 1e2, 10.0, 1.0)  # times tau: from the prior to the answer
REACH = 20.0  # of a logarithm in one step
LOWEST = -600.0  # logarithm of the smallest weight
MAX_STEPS = 60


def shrunk(problem: Problem) -> Floats:
    """Weights (G,) of least loss + tau KL, without specialists whose share would be too small to keep a model for."""
    rho, tau = prior_shares(problem), nats(problem)
    if tau == 0 or len(rho) == 1:
        return rho
    alpha = approached(problem, rho, tau)
    kept = np.where(alpha >= min(SMALLEST, 0.5 / len(rho)), rho, 0.0)
    return approached(problem, kept / kept.sum(), tau) if 0 < np.count_nonzero(kept) < len(rho) else alpha


def approached(problem: Problem, rho: Floats, tau: float) -> Floats:
    """The minimiser by way of stronger penalties, each found from the one before."""
    alpha = rho
    for more in APPROACH:
        alpha = penalised(problem, rho, more * tau, alpha)
    return alpha


def prior_shares(problem: Problem) -> Floats:
    """(G,) the prior shares of the columns, sum 1; equal ones where none are given."""
    prior = problem.rows.prior
    given = np.ones(len(problem.group)) if prior is None else prior
    shares = np.array([fsum(given[problem.group == g]) for g in range(len(problem.count))])  # exact in any order
    risks = corner_risks(problem)
    shares[~(risks <= HOPELESS * risks.min())] = 0.0
    return shares / shares.sum()


def nats(problem: Problem) -> float:
    """tau in the units of this problem's loss; zero where a specialist makes no error, since nothing can be gained."""
    share = problem.rows.share
    rows = 1 / float(share @ share)  # as many as count, where weights differ
    best = float(corner_risks(problem).min())
    unit = 1.0 if problem.loss.name == "log" else 2 * best
    return PSEUDO_ROWS / rows * unit if best > 0 else 0.0


def penalised_gap(problem: Problem, alpha: Floats) -> float:
    """Upper bound on the penalised objective of these weights minus its minimum over those who have a share."""
    tau, used = nats(problem), alpha > 0
    if tau == 0 or used.sum() == 1:
        return 0.0
    rho = prior_shares(problem)[used]
    gradient = gradient_at(problem.columns(used), alpha[used])
    return _gap(alpha[used], np.log(rho / rho.sum()) - gradient / tau, tau)


def penalised(problem: Problem, rho: Floats, tau: float, start: Floats) -> Floats:
    """Minimiser (G,) of loss + tau KL(alpha | rho) by Newton's method on the logarithms of the weights.

    The step d solves (H + tau / alpha) d = -(g + tau log(alpha / rho)) up to a constant, with sum 0; taken as a
    change d / alpha of the logarithms it keeps weights positive, and is exact where the loss is linear.
    """
    used = rho > 0
    inner, log_rho = problem.columns(used), np.log(rho[used])
    theta, best, smallest = np.log(start[used]), start[used], np.inf
    for _ in range(MAX_STEPS):
        alpha = np.exp(theta)
        aim = log_rho - gradient_at(inner, alpha) / tau
        gap = _gap(alpha, aim, tau)
        stuck = gap > 0.5 * smallest and smallest <= 1e-12 * tau  # rounding is all that is left
        if gap < smallest:
            best, smallest = alpha, gap
        if stuck or gap <= 1e-15 * tau:
            break
        step = _newton(hessian_at(inner, alpha), alpha, theta - aim, tau)
        theta = _line_search(inner, theta, step, log_rho, tau)
    full = np.zeros(len(rho))
    full[used] = best / best.sum()
    return full


def _gap(alpha: Floats, aim: Floats, tau: float) -> float:
    """tau KL(alpha | softmax(aim))."""
    positive = alpha > 0
    log_ratio = np.log(alpha[positive]) - (aim[positive] - logsumexp(aim))
    return max(float(tau * (alpha[positive] @ log_ratio)), 0.0)


def _newton(H: Floats, alpha: Floats, away: Floats, tau: float) -> Floats:
    """Change of log alpha towards the optimum: with S = sqrt(alpha), S H S + tau is as well conditioned as can be."""
    root = np.sqrt(alpha)
    scaled = root[:, None] * H * root
    factor = cho_factor(scaled + (tau + 1e-15 * np.trace(scaled)) * np.eye(len(alpha)))
    free, along = cho_solve(factor, -tau * root * away), cho_solve(factor, root)
    multiplier = -(root @ free) / (root @ along)
    d = root * (free + multiplier * along)
    return (multiplier - H @ d) / tau - away


def _line_search(problem: Problem, theta: Floats, step: Floats, log_rho: Floats, tau: float) -> Floats:
    """theta + t step, normalised, for the first t of 1, 1/2, 1/4 ... that does not raise the penalised objective.

    Each logarithm moves by at most `REACH`, unless that finds nothing: weights that vanish must not slow the others.
    """

    def moved(t: float, step: Floats) -> Floats:
        new = np.maximum(theta + t * step, LOWEST)
        return new - logsumexp(new)

    def objective(new: Floats) -> float:
        alpha = np.exp(new)
        return value_at(problem, alpha) + tau * float(alpha @ (new - log_rho))

    limit = objective(theta)
    limit += 1e-14 * abs(limit)
    for direction in (np.clip(step, -REACH, REACH), step):
        for t in 0.5 ** np.arange(30):
            if objective(moved(t, direction)) <= limit:
                return moved(t, direction)
    return theta
