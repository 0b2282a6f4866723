"""What theory promises, as numbers: the oracle inequality, sample efficiency and cost, at a given n.

Each function says what is proved and what is not. In short:

- Theorem 1 states (1 + eps_n) R_oracle + C log(K / delta) / n. Its proof gives something else and weaker: an additive
  2 M sqrt((K log 3n + log(2V / delta)) / 2m) + 2 lambda / n, with m = n / V. That is `paper_deviation`, twice.
- For the squared loss the risk is alpha' G alpha, so only the K(K + 1) / 2 entries of G have to be near their means:
  `gram_deviation` needs no covering of the simplex and grows with sqrt(log K), not with sqrt(K log n).
- Both speak of the blend of the *fold* models under weights chosen from them; that the refitted blend is as good is
  usual, not proved. Both are worst cases: simulations in tests/claims show how far above reality they lie.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class OracleBound:
    """With probability 1 - delta the blend's risk exceeds the best convex combination's by at most `excess`.

    `worth` = 1 - excess / M: what the bound rules out of the possible range of risks; 0 when it says nothing.
    """

    n: int
    K: int
    V: int
    M: float
    delta: float
    excess: float
    method: str

    @property
    def worth(self) -> float:
        return max(0.0, 1.0 - self.excess / self.M)

    def __str__(self) -> str:
        verdict = "says nothing" if self.worth == 0 else f"rules out {self.worth:.0%} of the range"
        return (
            f"risk <= oracle + {self.excess:.3g} with probability {1 - self.delta:.3g} "
            f"(n={self.n}, K={self.K}, V={self.V}, losses up to {self.M:g}): {verdict}"
        )


def paper_deviation(n: int, K: int, V: int, M: float, delta: float, lipschitz: float) -> float:
    """sup over weights of |CV risk - risk| as in step 4 of the proof of Theorem 1, with probability 1 - delta.

    M sqrt((K log 3n + log(2V / delta)) / 2m) + lambda / n. Proved for any bounded Lipschitz loss
    (Hoeffding in each fold and a net of the simplex).
    """
    m = max(n // V, 1)
    return M * math.sqrt((K * math.log(3 * n) + math.log(2 * V / delta)) / (2 * m)) + lipschitz / n


def gram_deviation(n: int, K: int, V: int, M: float, delta: float, *, signed: bool) -> float:
    """The same supremum for the squared loss: max over k, j of |G_kj - its mean| with probability 1 - delta.

    An entry is a mean of products (y - f_k).(y - f_j) of size at most M; Hoeffding in each of V folds for each of K(K
    + 1) / 2 entries gives M s sqrt(log(V K (K + 1) / delta) / 2m), s = 2 for products of either sign (regression) and
    s = 1 for one-hot targets and probabilities, whose products are never negative.
    """
    m = max(n // V, 1)
    return (2 if signed else 1) * M * math.sqrt(math.log(V * K * (K + 1) / delta) / (2 * m))


def selection_deviation(n: int, K: int, V: int, M: float, delta: float) -> float:
    """max over the K specialists alone of |CV risk - risk|: what the discrete Super Learner has to pay."""
    m = max(n // V, 1)
    return M * math.sqrt(math.log(2 * V * K / delta) / (2 * m))


DEVIATIONS: dict[str, Callable[[int, int, int, float, float], float]] = {
    "paper": lambda n, K, V, M, delta: paper_deviation(n, K, V, M, delta, lipschitz=2 * math.sqrt(M)),
    "classification": lambda n, K, V, M, delta: gram_deviation(n, K, V, M, delta, signed=False),
    "regression": lambda n, K, V, M, delta: gram_deviation(n, K, V, M, delta, signed=True),
    "selection": selection_deviation,
}


def oracle_bound(
    n: int, K: int, V: int = 5, M: float = 2.0, delta: float = 0.05, *, method: str = "classification"
) -> OracleBound:
    """Excess risk over the best convex combination: twice the largest deviation of the CV risk.

    Proved for rows drawn independently and losses in [0, M] (M = 2 for one-hot targets and probabilities). `method`:
    "classification" or "regression" (squared loss, through the Gram matrix), "paper" (any Lipschitz loss; slope 2
    sqrt(M), that of the squared loss), "selection" (the best single specialist is chosen, and is the oracle).
    """
    return OracleBound(n, K, V, M, delta, 2 * DEVIATIONS[method](n, K, V, M, delta), method)


def rows_needed(
    excess: float, K: int, V: int = 5, M: float = 2.0, delta: float = 0.05, *, method: str = "classification"
) -> int:
    """Smallest n, to a part in a thousand, at which `oracle_bound` promises at most that excess."""
    low, high = 1, 2
    while oracle_bound(high, K, V, M, delta, method=method).excess > excess:
        low, high = high, 2 * high
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        promised = oracle_bound(middle, K, V, M, delta, method=method).excess
        low, high = (low, middle) if promised <= excess else (middle, high)
    return high


def stated_bound(
    oracle_risk: float, n: int, K: int, V: int = 5, M: float = 2.0, delta: float = 0.05, *, C1: float = 1.0
) -> float:
    """Theorem 1 as it is stated: (1 + eps_n) R_oracle + C1 M^2 log(K / delta) / n, eps_n = 2M sqrt(K log(3n) / 2m).

    Not proved: the proof's additive term does not vanish with R_oracle, and C1 is left open. For comparison only.
    """
    m = max(n // V, 1)
    return (1 + 2 * M * math.sqrt(K * math.log(3 * n) / (2 * m))) * oracle_risk + C1 * M**2 * math.log(K / delta) / n


# -- sample efficiency (S5) ------------------------------------------------------------------------------------------


def estimation_error(vc_dimension: float, n: float) -> float:
    """sqrt(d / n), the order of the estimation error of a class of that VC dimension.

    An upper bound without its constant and logarithm: above 1 it says nothing, and a larger bound is not
    a larger error.
    """
    return math.sqrt(vc_dimension / n)


def specialist_excess(bias: float, vc_dimension: float, K: int, n: float) -> float:
    """epsilon + sqrt(d / n) + log(K) / n, Theorem 5 with every constant taken as 1.

    The log(K) / n term rests on the stated, not on the proved, form of Theorem 1.
    """
    return bias + estimation_error(vc_dimension, n) + math.log(K) / n


def crossover_rows(bias: float, vc_specialist: float, vc_deep: float) -> float:
    """n at which bias + sqrt(d_k / n) = sqrt(d_DL / n): below it the simple class has the smaller *bound*.

    ((sqrt(d_DL) - sqrt(d_k)) / bias)^2; infinite without bias. The paper says d_DL / d_k, which does not
    depend on the bias and does not follow from its formulas.
    """
    return math.inf if bias == 0 else ((math.sqrt(vc_deep) - math.sqrt(vc_specialist)) / bias) ** 2


# -- cost (S3) -------------------------------------------------------------------------------------------------------

# Operations to fit one specialist on n rows of d columns, as the proof of Theorem 2 counts them, with the library's
# own settings: 100 iterations, 100 trees, 255 bins, a 64-32 network, 200 epochs.
SPECIALIST_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "logistic": lambda n, d: n * d * 100,
    "knn": lambda n, d: n * d,
    "decision_tree": lambda n, d: n * d * math.log2(n),
    "random_forest": lambda n, d: n * math.sqrt(d) * math.log2(n) * 100,
    "hist_gradient_boosting": lambda n, d: n * 255 * 100,
    "svm": lambda n, d: n * n * d,
    "mlp": lambda n, d: n * d * 64 * 200,
    "naive_bayes": lambda n, d: n * d,
}


def deep_operations(n: int, *, layers: int = 4, width: int = 256, epochs: int = 100) -> float:
    """n L W^2 E, the operations of a deep network's training in Theorem 2."""
    return float(n) * layers * width**2 * epochs


def soft_operations(
    n: int, d: int, *, V: int = 3, C: int = 2, operations: dict[str, Callable] | None = None
) -> dict[str, float]:
    """Operations of each specialist, V sum_k T_k((V - 1) n / V) + sum_k T_k(n), and K^2 n C for the weights.

    Counts of the paper's formulas, not seconds: constants differ by orders of magnitude between algorithms, and a
    vectorised matrix product is far cheaper per operation than a tree. Measure seconds before claiming speed.
    """
    table = SPECIALIST_OPERATIONS if operations is None else operations
    cost = {name: V * T((V - 1) * n / V, d) + T(n, d) for name, T in table.items()}
    return {**cost, "weights": float(len(table) ** 2 * n * C)}


def cost_ratio(n: int, d: int, *, V: int = 3, operations: dict[str, Callable] | None = None) -> float:
    """T_SL / T_DL of Theorem 2, which says at most 0.01."""
    return sum(soft_operations(n, d, V=V, operations=operations).values()) / deep_operations(n)
