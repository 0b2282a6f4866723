"""How different the specialists are, and what that is worth to the blend.

P (n, K, C) predictions, target (n, C) one-hot or the column y, alpha (K,) on the simplex; K x K results
are in the order of the specialists.
"""

from __future__ import annotations

import numpy as np


def error_correlation(P: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Correlation of the errors f_k - y over rows and classes; (K, K).

    A specialist whose error never varies has correlation 0 with the others and 1 with itself.
    """
    errors = (P - target[:, None, :]).transpose(0, 2, 1).reshape(-1, P.shape[1])
    size = np.linalg.norm(errors, axis=0)
    errors = errors - errors.mean(axis=0)
    norm = np.linalg.norm(errors, axis=0)
    varies = norm > 1e-12 * size  # less is rounding
    unit = np.where(varies, errors, 0.0) / np.where(varies, norm, 1.0)
    correlation = np.clip(unit.T @ unit, -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def effective_specialists(alpha: np.ndarray) -> float:
    """1 / sum_k alpha_k^2: how many equal weights the weights amount to, from 1 to K."""
    return float(1.0 / np.sum(np.square(alpha)))


def effective_errors(correlation: np.ndarray) -> float:
    """K^2 / sum_kj correlation_kj^2 (participation ratio): K for uncorrelated errors, 1 for identical ones."""
    return float(np.trace(correlation) ** 2 / np.sum(np.square(correlation)))
