"""Generated weight problems, ordinary and degenerate, and certificates recomputed from the raw arrays."""

import numpy as np

SQUARED_KINDS = (
    "plain",
    "duplicates",
    "near_duplicates",
    "collinear",
    "zero_predictions",
    "perfect_specialist",
    "fewer_rows_than_specialists",
    "spread_over_6_decades",
    "spread_over_24_decades",
    "best_is_a_corner",
    "zero_sample_weights",
)
LOG_KINDS = (
    "plain",
    "exact_zeros",
    "one_hot_predictions",
    "duplicates",
    "near_duplicates",
    "perfect_specialist",
    "impossible_rows",
    "very_sharp",
    "zero_sample_weights",
    "fewer_rows_than_specialists",
)


def squared_problem(seed, kind, K):
    """predictions (n, K, C), target (n, C) at a scale between 1e-150 and 1e150, and sample weights or None."""
    rng = np.random.default_rng([seed, K])
    n = max(1, K // 3) if kind == "fewer_rows_than_specialists" else int(rng.integers(K // 2 + 1, 2 * K + 10))
    C = int(rng.choice([1, 1, 2, 3])) if K <= 100 else 1
    y = rng.normal(size=(n, C))
    E = rng.normal(size=(n, K, C)) * rng.uniform(0.3, 2, (1, K, 1)) + rng.choice([0, 1]) * rng.normal(size=(n, 1, C))
    if kind in ("duplicates", "near_duplicates"):
        E = E[:, rng.integers(0, max(1, K // 2), K)]
    if kind == "near_duplicates":
        E = E * (1 + 1e-15 * rng.integers(-4, 5, size=E.shape))
    if kind == "collinear":
        mixing = rng.normal(size=(max(1, K // 3), K))
        E = np.tensordot(E[:, : len(mixing)], mixing, axes=(1, 0)).transpose(0, 2, 1)
    if kind.startswith("spread"):
        E = E * 10 ** rng.uniform(0, 6 if "over_6" in kind else 24, (1, K, 1))
    if kind == "best_is_a_corner":
        E[:, 1:] = E[:, :1] + np.abs(E[:, 1:]) * np.sign(E[:, :1])
    P = y[:, None] - E
    if kind == "zero_predictions":
        P[:, rng.integers(K)] = 0
    if kind == "perfect_specialist":
        P[:, rng.integers(K)] = y
    scale = 10 ** rng.uniform(-150, 126 if "over_24" in kind else 150)
    return P * scale, y * scale, some_weights(rng, n) if kind == "zero_sample_weights" else None


def log_problem(seed, kind, K):
    """Class probabilities (n, K, C), one-hot target (n, C), sample weights or None."""
    rng = np.random.default_rng([seed, K, 1])
    n = max(1, K // 3) if kind == "fewer_rows_than_specialists" else int(rng.integers(K // 2 + 2, 6 * K + 20))
    C = int(rng.choice([2, 3, 5, 10]))
    Y = np.eye(C)[rng.integers(0, C, n)]
    logits = rng.uniform(0, 3, (1, K, 1)) * Y[:, None] + rng.uniform(0.3, 2) * rng.normal(size=(n, K, C))
    P = softmax(logits * (30 if kind == "very_sharp" else 1))
    if kind in ("exact_zeros", "zero_sample_weights"):
        P = np.where(P.max(axis=2, keepdims=True) * rng.uniform(0, 0.9) > P, 0, P)
        P /= P.sum(axis=2, keepdims=True)
    if kind == "one_hot_predictions":
        P = np.eye(C)[P.argmax(axis=2)]
    if kind in ("duplicates", "near_duplicates"):
        P = P[:, rng.integers(0, max(1, K // 2), K)]
    if kind == "near_duplicates":
        P = np.clip(P * (1 + 1e-15 * rng.integers(-4, 5, size=P.shape)), 0, 1)
    if kind == "perfect_specialist":
        P[:, rng.integers(K)] = Y
    if kind == "impossible_rows":
        P[: n // 5 + 1] = np.roll(Y[: n // 5 + 1], 1, axis=1)[:, None]
    return P, Y, some_weights(rng, n) if kind == "zero_sample_weights" else None


def some_weights(rng, n):
    weights = rng.integers(0, 3, n).astype(float)
    weights[rng.integers(n)] = 1
    return weights


def softmax(logits):
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


def infeasibility(alpha):
    return max(abs(alpha.sum() - 1), -alpha.min())


def squared_gap(P, Y, weight, alpha):
    """min(Frank-Wolfe gap, objective) in units of the best specialist's objective, from the raw arrays.

    With a perfect specialist the unit is zero; then the shortest other column is taken.
    """
    share = np.full(len(Y), 1 / len(Y)) if weight is None else weight / weight.sum()
    E = ((Y[:, None] - P) * np.sqrt(share)[:, None, None]).transpose(0, 2, 1).reshape(-1, P.shape[1])
    largest = np.abs(E).max(axis=0)
    norms = largest * np.linalg.norm(E / np.where(largest > 0, largest, 1), axis=0)
    E = E / min(norms[norms > 0], default=1.0)
    blend = E @ alpha
    gradient = 2 * blend @ E
    return min(max(alpha @ gradient - gradient.min(), 0.0), blend @ blend)


def log_gap(P, Y, weight, alpha):
    """min(Frank-Wolfe gap, objective) of the log loss from the raw arrays."""
    share = np.full(len(Y), 1 / len(Y)) if weight is None else weight / weight.sum()
    likelihood = np.clip((P * Y[:, None]).sum(axis=2), 1e-15, 1)
    blend = likelihood @ alpha
    return min((share @ (likelihood / blend[:, None])).max() - 1, -share @ np.log(blend))


ERROR_KINDS = (
    "plain",
    "duplicates",
    "near_duplicates",
    "collinear",
    "zero_predictions",
    "perfect_specialist",
    "fewer_rows_than_specialists",
    "best_is_a_corner",
    "zero_sample_weights",
    "whole_numbers",
    "heavy_tails",
)


def error_problem(seed, kind, K):
    """predictions (n, K, C), target (n, C) and sample weights for losses of the error; unit between 1e-6 and 1e6."""
    rng = np.random.default_rng([seed, K, 2])
    if kind in SQUARED_KINDS:
        P, y, weight = squared_problem(seed, kind, K)
        largest = np.abs(P - y[:, None]).max() or 1.0
        scale = 10 ** rng.uniform(-6, 6) / largest
        return P * scale, y * scale, weight
    n, C = int(rng.integers(K + 1, 3 * K + 40)), int(rng.choice([1, 1, 2]))
    y = rng.normal(size=(n, C)) * 3
    E = rng.normal(size=(n, K, C)) if kind == "whole_numbers" else rng.standard_t(1.5, size=(n, K, C))
    P = y[:, None] + E + rng.normal(size=(n, 1, C))
    return (np.round(P), np.round(y), None) if kind == "whole_numbers" else (P, y, None)


COUNT_KINDS = (
    "plain",
    "mostly_zeros",
    "duplicates",
    "near_duplicates",
    "perfect_specialist",
    "fewer_rows_than_specialists",
    "large_counts",
    "negative_predictions",
    "zero_sample_weights",
)


def count_problem(seed, kind, K, power=1.0):
    """Positive predictions (n, K, 1) around a mean, and counts (power 1) or compound Poisson amounts with that mean."""
    rng = np.random.default_rng([seed, K, 3])
    n = max(2, K // 3) if kind == "fewer_rows_than_specialists" else int(rng.integers(K + 5, 3 * K + 60))
    level = {"mostly_zeros": -2.0, "large_counts": 5.0}.get(kind, 1.0)
    mean = np.exp(level + 0.7 * rng.normal(size=n))
    y = rng.poisson(mean).astype(float) if power == 1 else compound_poisson(rng, mean, power)
    noise = rng.normal(size=(n, K)) * rng.uniform(0.1, 0.8, K) + rng.normal(size=K) * 0.3
    P = mean[:, None] * np.exp(noise)
    if kind in ("duplicates", "near_duplicates"):
        P = P[:, rng.integers(0, max(1, K // 2), K)]
    if kind == "near_duplicates":
        P = P * (1 + 1e-15 * rng.integers(-4, 5, size=P.shape))
    if kind == "perfect_specialist":
        P[:, rng.integers(K)] = np.maximum(y, 1e-3)
    if kind == "negative_predictions":
        P[rng.random(P.shape) < 0.1] = -0.5
    return P[:, :, None], y[:, None], some_weights(rng, n) if kind == "zero_sample_weights" else None


def compound_poisson(rng, mean, power, dispersion=1.0):
    """Sums of a Poisson number of gamma amounts: the Tweedie distribution of this mean and power."""
    rate = mean ** (2 - power) / (dispersion * (2 - power))
    shape, scale = (2 - power) / (power - 1), dispersion * (power - 1) * mean ** (power - 1)
    number = rng.poisson(rate)
    return np.where(number > 0, rng.gamma(np.maximum(number, 1) * shape, scale), 0.0)


OF_ERRORS = ("absolute", "pinball:0.1", "pinball:0.9", "huber")


def problem_of_loss(seed, loss):
    """A problem of the kinds that a loss meets: sizes 1 to 23, degenerate ones among them."""
    K = 1 + seed % 23
    if loss in OF_ERRORS:
        return error_problem(seed, ERROR_KINDS[seed % len(ERROR_KINDS)], K)
    return count_problem(seed, COUNT_KINDS[seed % len(COUNT_KINDS)], K)


def tweedie_problem(seed, spread):
    rng = np.random.default_rng(seed)
    n, K = int(rng.integers(100, 600)), int(rng.integers(2, 9))
    mean = np.exp(1 + 0.7 * rng.normal(size=n))
    P = mean[:, None] * np.exp(spread * rng.normal(size=(n, K)))
    return P[:, :, None], compound_poisson(rng, mean, 1.5)[:, None]


def optimality_gap(errors, alpha):
    """Upper bound on |errors alpha|^2 minus its minimum; zero exactly at the optimum."""
    gradient = 2 * errors.T @ (errors @ alpha)
    return max(alpha @ gradient - gradient.min(), 0.0)
