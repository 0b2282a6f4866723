"""Weights of the blend: convex problems on the simplex, each answered together with a proof.

Axis order is (row, specialist, class): predictions P (n, K, C), target Y (n, C), weights alpha (K,).

    objective(alpha) = mean over rows of |Y - P alpha|^2            (loss "squared")
                     = mean over rows of -sum_c Y log(P alpha)      (loss "log")

On the simplex Y - P alpha = (Y 1' - P) alpha, so the squared problem only reads the matrix of *errors*, and a
QR of it leaves at most K rows. The log problem only reads the probabilities given to what happened. Either way
the blend is ``matrix @ alpha`` and the objective a convex function of it: that is what a `Problem` holds, and
every row of the table `RULES` turns a `Problem` into weights.

Proof: for convex f and its gradient g, f(alpha) - min f <= alpha.g - min(g). That is `Solution.gap`.

Order never matters: columns are sorted by their content and equal ones are merged before anything is solved.
So permuting the specialists permutes the weights bit for bit, and duplicates share equally.

Tie rule: among several optima, the one of smallest Euclidean norm; specialists without any error come first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr
from scipy.linalg.lapack import dtrcon
from scipy.optimize import minimize, nnls

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
RuleLike = str | Callable[[Floats, Floats, Floats | None], ArrayLike]

FLOOR = 1e-15  # smaller predicted probabilities count as this: the log loss stays finite, and convex
ROUNDS = 50  # of greedy selection
GUARDS = ("simplex", "best", "uniform")  # what "guarded" compares on held-out folds
MAX_STEPS = 50  # Newton steps for the log loss; single digits are usual
BLOCK = 8192  # rows of the error matrix held at a time


@dataclass(frozen=True)
class Solution:
    """Weights with their certificate.

    weights : (K,) point of the simplex.
    objective : weighted mean over rows of the loss of the blend.
    gap : upper bound on objective minus the smallest objective on the simplex.
    unique : True when the weights are shown to be the only optimum; False when there are others, or when the
        rule did not return an optimum.
    """

    weights: Floats
    objective: float
    gap: float
    unique: bool
    rule: str
    loss: str


@dataclass(frozen=True)
class Rows:
    """Checked input. share (n,) is each row's part of the total weight: sum 1, and 0 means left out."""

    predictions: Floats
    target: Floats
    share: Floats
    sample_weight: Floats | None
    folds: NDArray[Any] | None

    @property
    def live(self) -> Indices:
        return np.flatnonzero(self.share)

    def without(self, held: NDArray[np.bool_]) -> Rows:
        share = np.where(held, 0.0, self.share)
        if not share.any():
            raise ValueError("no row of positive weight remains when a fold is left out; use at least two folds")
        return replace(self, share=share / share.sum())


@dataclass(frozen=True)
class Problem:
    """Minimise risk(matrix @ alpha) * unit^2 over the simplex.

    matrix : (m, G), one column for each *different* specialist, in an order that depends on content alone.
    mass : (m,) weight of each row of the matrix (ones for the squared loss, where it is already inside).
    group : (K,) the column of each specialist; count : (G,) how many specialists share a column.
    keep : (G,) one specialist of each column.
    """

    rows: Rows
    loss: str
    matrix: Floats
    mass: Floats
    unit: float
    group: Indices
    count: Floats
    keep: Indices

    def spread(self, alpha: Floats) -> Floats:
        """Weights of the columns (G,) as weights of the specialists (K,): duplicates share equally."""
        return (alpha / self.count)[self.group]


# ------------------------------------------------------------------------------------------- public functions


def solve_weights(
    predictions: ArrayLike,
    target: ArrayLike,
    *,
    rule: RuleLike = "simplex",
    loss: str = "squared",
    sample_weight: ArrayLike | None = None,
    folds: ArrayLike | None = None,
) -> Solution:
    """Weights on the simplex by a row of `RULES`, with objective, certified gap and uniqueness.

    Parameters
    ----------
    predictions : (n, K, C) out-of-fold predictions; probabilities when loss is "log".
    target : (n, C) the column y, or one-hot classes.
    rule : a name in `RULES`, or a callable(predictions, target, sample_weight) -> (K,) weights.
    loss : "squared" or "log".
    sample_weight : (n,) non-negative; a row of weight zero is as good as absent.
    folds : (n,) fold number of each row; only "guarded" reads it.

    Examples
    --------
    >>> import numpy as np
    >>> from softlearning.weights import solve_weights
    >>> y = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> too_low, too_high = y - 1, y + 3
    >>> solution = solve_weights(np.stack([too_low, too_high], axis=1), y)
    >>> solution.weights.round(6).tolist()
    [0.75, 0.25]
    """
    rows = _check(predictions, target, loss, sample_weight, folds)
    problem = LOSSES[loss].build(rows)
    weights, alpha = _apply(rule, problem)
    value, gap = _certify(problem, alpha)
    unique = gap <= 1e-9 and _is_unique(problem, alpha)
    unit = problem.unit  # its square may underflow or overflow where value * unit does not
    return Solution(weights, value * unit * unit, gap * unit * unit, unique, _rule_name(rule), loss)


def honest_risk(
    predictions: ArrayLike,
    target: ArrayLike,
    folds: ArrayLike,
    *,
    rule: RuleLike = "simplex",
    loss: str = "squared",
    sample_weight: ArrayLike | None = None,
) -> Floats:
    """(n,) loss of the blend in each row, with weights learnt without the fold of that row."""
    rows = _check(predictions, target, loss, sample_weight, folds)
    assert rows.folds is not None
    risk = np.empty(len(rows.target))
    for fold in np.unique(rows.folds):
        held = rows.folds == fold
        weights, _ = _apply(rule, LOSSES[loss].build(rows.without(held)))
        risk[held] = row_losses(rows.predictions[held], rows.target[held], weights, loss)
    return risk


def row_losses(predictions: ArrayLike, target: ArrayLike, weights: ArrayLike, loss: str = "squared") -> Floats:
    """(n,) loss of the blend in each row: sum_c (Y - P alpha)^2, or -sum_c Y log(max(P, 1e-15) alpha)."""
    P, Y, alpha = (np.asarray(a, dtype=np.float64) for a in (predictions, target, weights))
    floor = FLOOR if _known_loss(loss) == "log" else -np.inf
    blend = np.zeros(Y.shape)
    for k in np.flatnonzero(alpha):
        blend += alpha[k] * np.maximum(P[:, k], floor)
    return ((Y - blend) ** 2).sum(axis=1) if loss == "squared" else -_cross_entropy(Y, blend)


def errors(predictions: ArrayLike, target: ArrayLike, sample_weight: ArrayLike | None = None) -> Floats:
    """(nC, K) target minus prediction, each row times the root of its share of the weight.

    So |errors @ alpha|^2 is the squared objective of every alpha whose sum is 1.
    """
    rows = _check(predictions, target, "squared", sample_weight, None)
    return _error_block(rows, np.arange(len(rows.share)), np.arange(rows.predictions.shape[1]), 1.0)


def gram(errors: Floats) -> Floats:
    """(K, K) products of the columns: objective(alpha) = alpha' G alpha. A sum over rows: it adds over folds."""
    return errors.T @ errors


def optimality_gap(errors: Floats, alpha: ArrayLike) -> float:
    """Upper bound on objective(alpha) - optimum for the squared loss; zero exactly at the optimum."""
    alpha = np.asarray(alpha, dtype=np.float64)
    gradient = 2 * errors.T @ (errors @ alpha)
    return float(max(alpha @ gradient - gradient.min(), 0.0))


# ------------------------------------------------------------------------------------------------ the solvers


def simplex_least_squares(errors: Floats) -> Floats:
    """Point of the simplex minimising |errors @ alpha|^2; errors is (m, K), target minus prediction.

    Non-negative least squares |[E; 1'] u - [0; 1]| is homogeneous in E u, so u / sum(u) is exactly the optimum.
    Columns are divided by their norm: a specialist that is wrong by many orders of magnitude spoils nothing.
    """
    norms = column_norms(errors)
    if not norms.all():  # a perfect specialist: nothing can do better
        return _normalised((norms == 0).astype(float))
    scaled, ones = errors / norms, np.maximum(norms.min() / norms, 1e-290)
    right = np.append(np.zeros(len(errors)), 1.0)
    alpha, smallest = _corner(int(norms.argmin()), len(norms)), np.inf
    # The gradient along a column far longer than the best one drowns in rounding. A nudge of its entry in the
    # row of ones makes that gradient safely positive, and costs a gap of only about the nudge.
    for nudge in (1e-14, 1e-13, 1e-12, 1e-11):
        with suppress(RuntimeError):  # a degenerate problem can cycle; the nudged one does not
            u, _ = nnls(np.vstack([scaled, ones + nudge]), right, maxiter=10 * len(norms) + 50)
            candidate = _normalised(u * ones)
            gap = _safe_gap(scaled, ones, candidate)
            if gap < smallest:
                alpha, smallest = candidate, gap
        if smallest <= 1e-13:
            break
    return alpha


def _safe_gap(scaled: Floats, ones: Floats, alpha: Floats) -> float:
    """`optimality_gap` plus what rounding may hide; errors are scaled / ones, the shortest of norm 1."""
    blend = scaled @ (alpha / ones)
    rounding = 4 * np.finfo(float).eps * np.linalg.norm(blend)
    gap = blend @ blend - ((blend @ scaled - rounding) / ones).min()
    return 2 * float(max(gap, 0.0))


def simplex_log_loss(likelihood: Floats, mass: Floats) -> tuple[Floats, int]:
    """Point of the simplex minimising -mass @ log(likelihood @ alpha), and the Newton steps it took.

    With J = likelihood / blend the quadratic model at alpha is mass @ (J v - 2)^2 / 2 up to a constant, and on
    the simplex J v - 2 = (J - 2) v: a Newton step is again `simplex_least_squares`, then a line search.
    """
    alpha = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    root = np.sqrt(mass)[:, None]
    best, smallest = alpha, np.inf
    for step in range(MAX_STEPS):
        J = likelihood / (likelihood @ alpha)[:, None]
        gap = float((mass @ J).max() - mass.sum())
        if gap < smallest:
            best, smallest = alpha, gap
        if gap <= 1e-13:
            return best, step
        newton = simplex_least_squares(_triangle(root * (2 - J)))
        length = _line_minimum(J @ (newton - alpha), mass)
        if length * np.abs(newton - alpha).max() <= 1e-16:  # rounding is all that is left
            return best, step
        alpha = _normalised((1 - length) * alpha + length * newton)
    return best, MAX_STEPS


def _line_minimum(slope: Floats, mass: Floats) -> float:
    """t in [0, 1] minimising -mass @ log(1 + t slope), by bisection of its derivative."""

    def derivative(t: float) -> float:
        return float(-mass @ (slope / (1 + t * slope)))

    low, high = 0.0, 1.0
    if derivative(high) <= 1e-14 - 0.1 * derivative(low):  # close enough, or below what rounding can tell
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if derivative(middle) <= 0 else (low, middle)
    return high


def smallest_norm(matrix: Floats, alpha: Floats, active: Indices, count: Floats) -> Floats:
    """The point of smallest norm among the weights on `active` with the same sum and the same matrix @ alpha.

    The blend is the same for all optima, so they are alpha + N z >= 0 with N a basis of the null space of
    [matrix; 1']. With b = alpha / sqrt(count) the norm over all specialists is |b|, and the smallest
    |b0 + N z| with b0 + N z >= 0 is a least-distance problem: one more NNLS (Lawson and Hanson, chapter 23).
    """
    root = np.sqrt(count[active])
    unit, ones = _unit_columns(matrix[:, active])
    null = _null_space(np.vstack([unit, ones])) * ones[:, None] / root[:, None]
    if null.shape[1] == 0:
        return alpha
    N = np.linalg.qr(null)[0]
    b = alpha[active] / root
    b = b - N @ (N.T @ b)
    if b.min() < 0:
        system = np.vstack([N.T, -b])
        right = np.append(np.zeros(N.shape[1]), 1.0)
        try:
            residual = system @ nnls(system, right, maxiter=10 * len(b) + 50)[0] - right
        except RuntimeError:
            return alpha
        b = b - N @ residual[:-1] / residual[-1]
    result = np.zeros_like(alpha)
    result[active] = np.where(b * root > 1e-13 * ones, b * root, 0.0)  # no specialist lives on rounding alone
    return _normalised(result)


# -------------------------------------------------------------------------------------- the rules, as a table


def _exact(problem: Problem) -> Floats:
    alpha = LOSSES[problem.loss].minimise(problem)
    if not column_norms(problem.matrix).all():  # perfect specialists share the weight among themselves
        return alpha
    settled = smallest_norm(_whitened(problem, alpha), alpha, _tied(problem, alpha), problem.count)
    before, after = _certify(problem, alpha)[1], _certify(problem, settled)[1]
    return settled if after <= max(2 * before, 1e-12) else alpha  # a proof lost is worse than a tie unsettled


def _guarded(problem: Problem) -> Floats:
    """The exact optimum, unless the best specialist or equal weights do better on folds that they are learnt without.

    Then the point of least risk on these folds between the exact optimum and the better of the two. A single
    specialist, with whom nobody disagrees, must be better by more than one standard error of the paired difference.
    """
    rows, live = problem.rows, problem.rows.live
    folds = rows.folds if rows.folds is not None else np.arange(len(rows.share)) % 5
    if len(np.unique(folds[live])) < 2:
        if rows.folds is None:
            return RULES["uniform"].function(problem)  # a single row is no evidence for anything else
        raise ValueError("rule 'guarded' needs at least two folds with rows of positive weight")
    honest = np.empty((len(live), len(GUARDS), rows.target.shape[1]))
    for fold in np.unique(folds[live]):
        learnt = LOSSES[problem.loss].build(rows.without(folds == fold))
        held = folds[live] == fold
        for j, name in enumerate(GUARDS):
            weights = learnt.spread(RULES[name].function(learnt))
            honest[held, j] = _blend(rows.predictions[live[held]], weights, learnt)
    weight = None if rows.sample_weight is None else rows.sample_weight[live]
    solve = partial(solve_weights, target=rows.target[live], loss=problem.loss, sample_weight=weight)
    winner = int(solve(honest, rule="best").weights.argmax())  # of a tie, the first: the exact weights
    single = GUARDS[winner] == "best"
    if winner == 0 or (single and not _beyond_noise(honest[:, [0, winner]], rows.target[live], problem.loss, weight)):
        return RULES["simplex"].function(problem)
    trust = solve(honest[:, [0, winner]]).weights
    return _normalised(trust @ np.array([RULES[GUARDS[j]].function(problem) for j in (0, winner)]))


def _beyond_noise(pair: Floats, target: Floats, loss: str, weight: Floats | None) -> bool:
    """Whether the second of two predictions (n, 2, C) has the smaller loss by more than one standard error."""
    with np.errstate(over="ignore", invalid="ignore"):  # losses beyond floating point settle nothing
        first, second = (row_losses(pair, target, corner, loss) for corner in np.eye(2))
        share = np.full(len(target), 1 / len(target)) if weight is None else weight / weight.sum()
        gain = share @ (first - second)
        return bool(gain > np.sqrt(share**2 @ (first - second - gain) ** 2))


def _slsqp(problem: Problem) -> Floats:
    weights, values, _ = _slsqp_from(problem, 1 / (float(_corner_risks(problem).min()) or 1.0), exact=True)
    return weights[int(values.argmin())]


def _greedy(problem: Problem) -> Floats:
    """Caruana's selection with replacement: a round adds the column that helps most; weight = share of rounds."""
    chosen = np.zeros(problem.matrix.shape[1])
    total = np.zeros(len(problem.matrix))
    for size in range(1, ROUNDS + 1):
        k = int(_risks(problem, (total[:, None] + problem.matrix) / size).argmin())
        chosen[k] += 1
        total += problem.matrix[:, k]
    return chosen / ROUNDS


def _nnls(problem: Problem) -> Floats:
    """Target on predictions with non-negative coefficients, divided by their sum; if all are zero, best."""
    rows = problem.rows
    scale = max(float(np.abs(a[rows.live]).max()) for a in (rows.predictions, rows.target)) or 1.0
    both = _stream(partial(_regression_block, rows, keep=problem.keep, unit=scale), rows)
    P, y = both[:, :-1], both[:, -1]
    norms = column_norms(P)
    norms[norms == 0] = 1.0
    with suppress(RuntimeError):
        u = nnls(P / norms, y, maxiter=10 * len(norms) + 50)[0] / norms
        if u.any():
            return _normalised(u)
    return _best(problem)


def _uniform(problem: Problem) -> Floats:
    return problem.count / problem.count.sum()


def _best(problem: Problem) -> Floats:
    risks = _corner_risks(problem)
    return _corner(int(risks.argmin()), len(risks))


@dataclass(frozen=True)
class Rule:
    """A row of the table of weight rules; function turns a Problem into the weights of its columns."""

    name: str
    function: Callable[[Problem], Floats]
    description: str


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("simplex", _exact, "the exact optimum on the simplex; of several, the one of smallest norm"),
        Rule("guarded", _guarded, "exact weights, unless held-out folds speak for the best or for equal ones"),
        Rule("slsqp", _slsqp, "the paper's solver: sequential quadratic programming from K + 2 starts"),
        Rule("greedy", _greedy, f"greedy selection with replacement, {ROUNDS} rounds"),
        Rule("nnls", _nnls, "non-negative least squares of target on predictions, divided by its sum"),
        Rule("uniform", _uniform, "equal weights"),
        Rule("best", _best, "all weight on the best specialist (the discrete Super Learner)"),
    )
}


# ------------------------------------------------------------------------------------- the paper's own solver


@dataclass(frozen=True)
class Starts:
    """Where the starts of SLSQP ended: weights (S, K), objectives (S,), success (S,) as SLSQP reports it."""

    weights: Floats
    objectives: Floats
    success: NDArray[np.bool_]


def slsqp_starts(
    predictions: ArrayLike,
    target: ArrayLike,
    *,
    reading: str = "scaled",
    loss: str = "squared",
    sample_weight: ArrayLike | None = None,
) -> Starts:
    """Run the K + 2 starts of the paper one by one, to see whether they agree.

    Starts: uniform, 0.9 on each specialist in turn (duplicates count once), and proportional to accuracy (here
    to 1 / risk, which serves both tasks). `reading` is how the objective is handed over: "scaled" by the best
    specialist's risk with an analytic gradient and ftol 1e-12 (what the rule "slsqp" does), or the plain "mean"
    (the paper's equation 1) or "sum" (its Methods) with SciPy's defaults.
    """
    rows = _check(predictions, target, loss, sample_weight, None)
    problem = LOSSES[loss].build(rows)
    square = problem.unit**2
    factors = {
        "scaled": 1 / (float(_corner_risks(problem).min()) or 1.0),
        "mean": square,
        "sum": square * len(rows.live),
    }
    if reading not in factors:
        raise ValueError(f"reading must be one of {sorted(factors)}, got {reading!r}")
    weights, values, success = _slsqp_from(problem, factors[reading], exact=reading == "scaled")
    return Starts(np.array([problem.spread(w) for w in weights]), values * square, success)


def _slsqp_from(problem: Problem, factor: float, exact: bool) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Weights (S, G), values (S,), success (S,) of every start; errors 1e4 times the best one's stay out."""
    risks = _corner_risks(problem)
    sane = np.flatnonzero(risks <= 1e8 * risks.min()) if problem.loss == "squared" else np.arange(len(risks))
    matrix, G = problem.matrix[:, sane], len(sane)

    def value(a: Floats) -> float:
        return float(_risks(problem, (matrix @ a)[:, None])[0]) * factor

    def gradient(a: Floats) -> Floats:
        return matrix.T @ LOSSES[problem.loss].slope(matrix @ a, problem.mass) * factor

    options: Any = {"maxiter": 1000, "ftol": 1e-12} if exact else {}
    sum_to_one: Any = {"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(G)}
    ends = []
    for start in _starts(risks[sane]):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)  # it steps out of bounds, and clips
            end = minimize(
                value, start, jac=gradient if exact else None, method="SLSQP", bounds=[(0, 1)] * G,
                constraints=[sum_to_one], options=options,
            )  # fmt: skip
        feasible = np.nan_to_num(np.clip(end.x, 0.0, 1.0))
        ends.append((_normalised(feasible if feasible.any() else start), end.success))
    weights = np.zeros((len(ends), len(risks)))
    weights[:, sane] = [x for x, _ in ends]
    values = np.array([_value(problem, w) for w in weights])
    return weights, values, np.array([bool(ok) for _, ok in ends])


def _starts(risks: Floats) -> list[Floats]:
    K = len(risks)
    if K == 1:
        return [np.ones(1)] * 3
    concentrated = np.full((K, K), 0.1 / (K - 1)) + np.eye(K) * (0.9 - 0.1 / (K - 1))
    accuracy = 1 / np.maximum(risks, 1e-12 * max(risks.max(), 1e-300))
    return [np.full(K, 1 / K), *concentrated, accuracy / accuracy.sum()]


# ------------------------------------------------------------------------------------- the losses, as a table


def _build_squared(rows: Rows) -> Problem:
    """Errors in units of the best column's norm, reduced to at most K rows by QR, block by block."""
    live, K = rows.live, rows.predictions.shape[1]
    keep, group, count, norms = _canonical(lambda k: _error_block(rows, live, np.array([k]), 1.0)[:, 0], K)
    unit = max(float(min(norms[norms > 0], default=1.0)), float(norms.max()) * 1e-290)  # nothing overflows
    matrix = _stream(partial(_error_block, rows, keep=keep, unit=unit), rows)
    return Problem(rows, "squared", matrix, np.ones(len(matrix)), unit, group, count, keep)


def _build_log(rows: Rows) -> Problem:
    """Probabilities given to what happened: a row for each (row, class) of positive target."""
    i, c = np.nonzero((rows.target > 0) & (rows.share > 0)[:, None])
    mass = rows.share[i] * rows.target[i, c]
    root = np.sqrt(mass)

    def likelihood(k: int) -> Floats:
        return np.clip(rows.predictions[i, k, c], FLOOR, 1.0)

    keep, group, count, _ = _canonical(lambda k: root * likelihood(k), rows.predictions.shape[1])
    matrix = np.stack([likelihood(k) for k in keep]).T
    return Problem(rows, "log", matrix, mass, 1.0, group, count, keep)


@dataclass(frozen=True)
class Loss:
    """A row of the table of losses, as functions of the blended column matrix @ alpha.

    build : Rows -> Problem; risks : columns (m, J), mass (m,) -> (J,); slope : derivative of the risk (m,);
    minimise : Problem -> one optimum (G,).
    """

    build: Callable[[Rows], Problem]
    risks: Callable[[Floats, Floats], Floats]
    slope: Callable[[Floats, Floats], Floats]
    minimise: Callable[[Problem], Floats]


LOSSES: dict[str, Loss] = {
    "squared": Loss(
        _build_squared,
        risks=lambda columns, mass: np.einsum("ij,ij->j", columns, columns),
        slope=lambda blend, mass: 2 * blend,
        minimise=lambda problem: simplex_least_squares(problem.matrix),
    ),
    "log": Loss(
        _build_log,
        risks=lambda columns, mass: -(mass @ np.log(np.maximum(columns, FLOOR))),
        slope=lambda blend, mass: -mass / np.maximum(blend, FLOOR),
        minimise=lambda problem: simplex_log_loss(problem.matrix, problem.mass)[0],
    ),
}


def _risks(problem: Problem, columns: Floats) -> Floats:
    with np.errstate(over="ignore"):  # a hopeless specialist may have an infinite risk
        return LOSSES[problem.loss].risks(columns, problem.mass)


def _corner_risks(problem: Problem) -> Floats:
    return _risks(problem, problem.matrix)


def _value(problem: Problem, alpha: Floats) -> float:
    return float(_risks(problem, (problem.matrix @ alpha)[:, None])[0])


def _gradient(problem: Problem, alpha: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return problem.matrix.T @ LOSSES[problem.loss].slope(problem.matrix @ alpha, problem.mass)


def _certify(problem: Problem, alpha: Floats) -> tuple[float, float]:
    """Objective and gap, in units of unit^2. No loss is negative, so the objective bounds the gap too."""
    value, gradient = _value(problem, alpha), _gradient(problem, alpha)
    used = alpha > 0  # 0 * inf is not a number
    with np.errstate(over="ignore", invalid="ignore"):
        gap = float(alpha[used] @ gradient[used] - gradient.min())
    return value, min(max(gap, 0.0), value) if np.isfinite(gap) else value


# ------------------------------------------------------------------------------------------- ties, uniqueness


def _whitened(problem: Problem, alpha: Floats) -> Floats:
    """A matrix of few rows that maps weights to equal points exactly when their blends are equal."""
    if problem.loss == "squared":
        return problem.matrix
    return _triangle(problem.matrix * (np.sqrt(problem.mass) / (problem.matrix @ alpha))[:, None])


def _tied(problem: Problem, alpha: Floats) -> Indices:
    """Columns that may carry weight in some optimum: those of smallest gradient, within rounding."""
    slope = LOSSES[problem.loss].slope(problem.matrix @ alpha, problem.mass)
    gradient = problem.matrix.T @ slope
    rounding = column_norms(problem.matrix) * (1e-8 * float(np.linalg.norm(slope)) + 1e-12)
    return np.flatnonzero((gradient - gradient.min() <= rounding) | (alpha > 0))


def _is_unique(problem: Problem, alpha: Floats) -> bool:
    """True when no direction leads from the optimum alpha to another one.

    Such a direction d has matrix @ d = 0 and sum 0, lives on the tied columns, and is non-negative where alpha
    is zero. If the support is independent, d must use the idle columns, so a convex combination of them lies in
    the span of the support: the distance of that combination is again `simplex_least_squares`.
    """
    if problem.count[alpha > 0].max() > 1:
        return False
    tied = _tied(problem, alpha)
    unit, ones = _unit_columns(_whitened(problem, alpha)[:, tied])
    lifted = np.vstack([unit, ones])
    used = alpha[tied] > 0
    if _null_space(lifted[:, used]).shape[1]:
        return False
    if used.all():
        return True
    basis = np.linalg.qr(lifted[:, used])[0]
    idle = lifted[:, ~used] - basis @ (basis.T @ lifted[:, ~used])
    return bool(np.linalg.norm(idle @ simplex_least_squares(idle)) > 1e-9)


def _unit_columns(matrix: Floats) -> tuple[Floats, Floats]:
    """Columns divided by their norm, and the row of ones likewise (in units of the shortest column)."""
    norms = column_norms(matrix)
    norms[norms == 0] = norms[norms > 0].min() if norms.any() else 1.0
    return matrix / norms, np.maximum(norms.min() / norms, 1e-290)


def _null_space(matrix: Floats) -> Floats:
    """(K, q) orthonormal basis of the vectors that matrix (m, K) sends to zero, up to rounding."""
    m, K = matrix.shape
    if m >= K and dtrcon(np.linalg.qr(matrix, mode="r"))[0] > 1e-10:  # far from singular: nothing to look for
        return np.empty((K, 0))
    Q, R, _ = qr(matrix.T, pivoting=True)
    pivots = np.abs(np.diag(R))
    rank = int((pivots > 10 * max(m, K) * np.finfo(float).eps * pivots[0]).sum())
    return Q[:, rank:]


# ------------------------------------------------------------------------------------------- arrays and input


def column_norms(matrix: Floats) -> Floats:
    """(K,) Euclidean norms that neither overflow nor underflow."""
    largest = np.abs(matrix).max(axis=0)
    safe = np.where(largest > 0, largest, 1.0)
    return largest * np.sqrt(((matrix / safe) ** 2).sum(axis=0))


def _canonical(column: Callable[[int], Floats], K: int) -> tuple[Indices, Indices, Floats, Floats]:
    """Sort K columns by content and merge equal ones: keep (G,), group (K,), count (G,), norms kept (G,)."""
    norms = np.array([_norm(column(k)) for k in range(K)])
    values, times = np.unique(norms, return_counts=True)
    repeated = set(values[times > 1].tolist())

    def key(k: int) -> tuple[float, bytes]:  # content is read in full only where norms are equal
        return norms[k], blake2b((column(k) + 0.0).tobytes()).digest() if norms[k] in repeated else b""

    keys = [key(k) for k in range(K)]
    order = np.array(sorted(range(K), key=keys.__getitem__), dtype=np.intp)
    new = np.array([i == 0 or keys[order[i]] != keys[order[i - 1]] for i in range(K)])
    group = np.empty(K, dtype=np.intp)
    group[order] = np.cumsum(new) - 1
    keep = order[new]
    return keep, group, np.bincount(group).astype(float), norms[keep]


def _norm(vector: Floats) -> float:
    largest = float(np.abs(vector).max())
    if largest == 0:
        return 0.0
    vector = vector / largest
    return largest * float(np.sqrt(vector @ vector))


def _error_block(rows: Rows, index: Indices, keep: Indices, unit: float) -> Floats:
    """(len(index) * C, len(keep)) weighted errors of some rows and specialists, divided by unit."""
    block = rows.target[index][:, :, None] - rows.predictions[np.ix_(index, keep)].transpose(0, 2, 1)
    block *= np.sqrt(rows.share[index])[:, None, None]
    return np.ascontiguousarray(block.reshape(-1, len(keep))) / unit


def _regression_block(rows: Rows, index: Indices, keep: Indices, unit: float) -> Floats:
    """Like `_error_block`, but predictions, and the target as last column."""
    both = [rows.predictions[np.ix_(index, keep)].transpose(0, 2, 1), rows.target[index][:, :, None]]
    block = np.concatenate(both, axis=2) * np.sqrt(rows.share[index])[:, None, None]
    return block.reshape(-1, block.shape[2]) / unit


def _stream(block: Callable[..., Floats], rows: Rows) -> Floats:
    """Triangular factor of all blocks of rows: same column products, at most K rows, one block in memory."""
    factor: Floats | None = None
    live, size = rows.live, max(1, BLOCK // rows.target.shape[1])
    for start in range(0, len(live), size):
        part = block(index=live[start : start + size])
        factor = _triangle(part if factor is None else np.vstack([factor, part]))
    assert factor is not None
    return factor


def _triangle(matrix: Floats) -> Floats:
    """R of the QR factorisation where that is smaller: R'R = matrix'matrix."""
    if matrix.shape[0] <= matrix.shape[1]:
        return matrix
    R: Floats = np.linalg.qr(matrix, mode="r")  # type: ignore[assignment]  # numpy's stub forgets mode="r"
    return R


def _blend(predictions: Floats, weights: Floats, problem: Problem) -> Floats:
    """(n, C) weighted sum of the predictions, in the problem's order so that the library's does not matter."""
    blend = np.zeros((predictions.shape[0], predictions.shape[2]))
    for k in np.argsort(problem.group, kind="stable"):
        blend += weights[k] * predictions[:, k]
    return blend


def _cross_entropy(target: Floats, blend: Floats) -> Floats:
    """(n,) sum over classes of target * log(blend), with 0 log 0 = 0."""
    return np.where(target > 0, target * np.log(np.clip(blend, FLOOR, 1.0)), 0.0).sum(axis=1)


def _corner(k: int, K: int) -> Floats:
    return np.eye(1, K, k)[0]


def _normalised(weights: Floats) -> Floats:
    weights = weights / weights.max()
    return weights / weights.sum()


def _rule_name(rule: RuleLike) -> str:
    return rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__)


def _apply(rule: RuleLike, problem: Problem) -> tuple[Floats, Floats]:
    """Weights of the specialists (K,) and of the columns (G,) under a rule."""
    if isinstance(rule, str):
        if rule not in RULES:
            raise ValueError(f"unknown rule {rule!r}; choose one of {', '.join(RULES)} or pass a callable")
        alpha = RULES[rule].function(problem)
        return problem.spread(alpha), alpha
    if not callable(rule):
        raise ValueError(f"rule must be a name or a callable, got {type(rule).__name__}")
    weights = _called(rule, problem.rows)
    return weights, np.bincount(problem.group, weights).astype(float)


def _called(rule: Callable[[Floats, Floats, Floats | None], ArrayLike], rows: Rows) -> Floats:
    live = rows.live
    given = None if rows.sample_weight is None else rows.sample_weight[live]
    weights = np.asarray(rule(rows.predictions[live], rows.target[live], given), dtype=np.float64)
    K = rows.predictions.shape[1]
    if weights.shape != (K,):
        raise ValueError(f"the rule returned shape {weights.shape}, expected ({K},)")
    if not (np.isfinite(weights).all() and weights.min() >= 0 and abs(weights.sum() - 1) <= 1e-6):
        raise ValueError("the rule returned weights off the simplex: they must be finite, >= 0 and sum to 1")
    return _normalised(weights)


def _known_loss(loss: str) -> str:
    if loss not in LOSSES:
        raise ValueError(f"unknown loss {loss!r}; choose one of {', '.join(LOSSES)}")
    return loss


def _check(
    predictions: ArrayLike,
    target: ArrayLike,
    loss: str,
    sample_weight: ArrayLike | None,
    folds: ArrayLike | None,
) -> Rows:
    """Arrays of the right shape and range, or a ValueError that names the cause."""
    P = np.asarray(predictions, dtype=np.float64)
    Y = np.asarray(target, dtype=np.float64)
    if P.ndim != 3 or 0 in P.shape:
        raise ValueError(f"predictions must be a non-empty array (rows, specialists, classes), got {P.shape}")
    n, _, C = P.shape
    if Y.shape != (n, C):
        raise ValueError(f"target must have shape {(n, C)} to match predictions, got {Y.shape}")
    for name, values in (("predictions", P), ("target", Y)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name} contains NaN or infinity")
    if max(P.max(), Y.max()) > 1e300 or min(P.min(), Y.min()) < -1e300:
        raise ValueError("predictions and target must stay within 1e300 in absolute value")
    if _known_loss(loss) == "log":
        _check_probabilities(P, Y)
    weight = None if sample_weight is None else _vector(sample_weight, n, "sample_weight")
    fold_of_row = None if folds is None else np.asarray(folds)
    if fold_of_row is not None and fold_of_row.shape != (n,):
        raise ValueError(f"folds must have shape ({n},), got {fold_of_row.shape}")
    return Rows(P, Y, _shares(weight, n), weight, fold_of_row)


def _check_probabilities(P: Floats, Y: Floats) -> None:
    if Y.shape[1] < 2:
        raise ValueError("log loss needs a column for each class (two or more); regression needs loss='squared'")
    if P.min() < -1e-6 or P.max() > 1 + 1e-6:
        raise ValueError("log loss needs predictions that are probabilities, between 0 and 1")
    if Y.min() < 0 or np.abs(Y.sum(axis=1) - 1).max() > 1e-6:
        raise ValueError("log loss needs target rows that are non-negative and sum to 1 (one-hot)")


def _vector(values: ArrayLike, n: int, name: str) -> Floats:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {vector.shape}")
    if not np.isfinite(vector).all() or vector.min() < 0:
        raise ValueError(f"{name} must be finite and non-negative")
    if not vector.any():
        raise ValueError(f"{name} is zero in every row; at least one row must count")
    return vector


def _shares(weight: Floats | None, n: int) -> Floats:
    if weight is None:
        return np.full(n, 1 / n)
    weight = weight / weight.max()
    return weight / weight.sum()
