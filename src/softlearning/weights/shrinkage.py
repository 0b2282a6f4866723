"""Weights held near a reference: loss(alpha) + tau KL(alpha | reference), with a proof of its own.

The reference gives equal shares to families of specialists, so that ten boosters do not outvote one linear model.
tau = 0 is the exact optimum, an infinite tau the reference; in between, the strength is chosen by leave-one-fold-out
risk, and of strengths that held-out rows cannot tell apart (one standard error of the paired difference) the largest.

Proof: f is convex, so with its gradient g at alpha the penalised minimum is at least
f(alpha) - g.alpha + min over beta of g.beta + tau KL(beta | reference), whose minimum is the softmax
beta = reference exp(-g / tau) / sum. The gap is therefore tau KL(alpha | beta).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import fsum

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

from softlearning.weights.certificates import corner_risks, gradient_at, hessian_at, value_at
from softlearning.weights.evidence import HeldOut, Solve
from softlearning.weights.problems import Problem
from softlearning.weights.solvers import Floats

STRENGTHS = (np.inf, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0)  # of tau, per unit of the reference's loss
HOPELESS = 1e8  # times the best risk: such a specialist has no place in the reference
REACH = 20.0  # of a logarithm in one step
LOWEST = -600.0  # logarithm of the smallest weight
MAX_STEPS = 60


def reference(problem: Problem) -> Floats:
    """(G,) equal shares of the families, divided equally among the specialists of each; without families, equal."""
    families = problem.rows.families
    size = np.ones(len(problem.group))
    if families is not None:
        _, member, count = np.unique(families, return_inverse=True, return_counts=True)
        size = count[member].astype(float)
    shares = np.array([fsum(1 / size[problem.group == g]) for g in range(len(problem.count))])  # exact in any order
    risks = corner_risks(problem)
    shares[~(risks <= HOPELESS * risks.min())] = 0.0
    return shares / shares.sum()


def _scale(problem: Problem, rho: Floats) -> float:
    """The reference's loss; zero where it is nothing but rounding."""
    value = value_at(problem, rho)
    return value if value > 1e-20 * corner_risks(problem).min() else 0.0


@dataclass(frozen=True)
class Shrunk:
    """The rule "loss plus strength times the reference's loss times KL", as a function of a problem."""

    strength: float
    exact: Solve

    def __call__(self, problem: Problem) -> Floats:
        return weights_path(problem, self.exact, [s for s in STRENGTHS if s >= self.strength])[-1]

    def tau(self, problem: Problem) -> float:
        """The strength in the units of this problem's loss."""
        value = _scale(problem, reference(problem))
        return self.strength * value if self.strength > 0 and value > 0 else 0.0

    def gap(self, problem: Problem, alpha: Floats) -> float:
        """Upper bound on the penalised objective minus its minimum; none is needed at either end of the strengths."""
        tau, rho = self.tau(problem), reference(problem)
        if not 0 < tau < np.inf:
            return 0.0
        inner = _columns(problem, rho > 0)
        gradient = gradient_at(inner, alpha[rho > 0])
        slack = value_at(problem, alpha) - float(alpha[rho > 0] @ gradient) if problem.loss.kinked else 0.0
        return slack + _gap(alpha[rho > 0], np.log(rho[rho > 0]) - gradient / tau, tau)


def tune_strength(problem: Problem, exact: Solve) -> Shrunk:
    """The strongest shrinkage that held-out rows cannot tell from the best one."""
    held_out = HeldOut(problem.rows, problem.loss)
    if not held_out.parts:  # a single row is no evidence for anything but the reference
        return Shrunk(np.inf, exact)
    paths = {id(part): weights_path(part, exact, STRENGTHS) for _, part in held_out.parts}
    solvers: list[Solve] = [partial(_on_path, paths=paths, j=j) for j in range(len(STRENGTHS))]
    losses = [held_out.losses(held_out.blends(solve)) for solve in solvers]
    best = losses[int(np.nanargmin([held_out.mean_and_error(loss)[0] for loss in losses]))]
    for strength, loss in zip(STRENGTHS, losses):
        rise, error = held_out.mean_and_error(loss - best)
        if rise <= error:
            return Shrunk(strength, exact)
    return Shrunk(0.0, exact)


def _on_path(problem: Problem, paths: dict[int, list[Floats]], j: int) -> Floats:
    return paths[id(problem)][j]


def weights_path(problem: Problem, exact: Solve, strengths: Sequence[float]) -> list[Floats]:
    """Weights (G,) for falling strengths, each found from the one before."""
    rho = reference(problem)
    value, path = _scale(problem, rho), []
    for strength in strengths:
        if strength == 0 or value == 0:
            path.append(exact(problem))
        else:
            path.append(rho if np.isinf(strength) else penalised(problem, rho, strength * value, path[-1]))
    return path


def penalised(problem: Problem, rho: Floats, tau: float, start: Floats) -> Floats:
    """Minimiser (G,) of loss + tau KL(alpha | rho) by Newton's method on the logarithms of the weights.

    The step d solves (H + tau / alpha) d = -(g + tau log(alpha / rho)) up to a constant, with sum 0; taken as a
    change d / alpha of the logarithms it keeps weights positive, and is exact where the loss is linear.
    """
    used = rho > 0
    inner, log_rho = _columns(problem, used), np.log(rho[used])
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


def _columns(problem: Problem, used: NDArray[np.bool_]) -> Problem:
    """The problem with some columns, for values and derivatives."""
    return problem if used.all() else replace(problem, matrix=problem.matrix[:, used])


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
