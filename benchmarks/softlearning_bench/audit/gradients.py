"""Slopes of fitted specialists: for weights u on the outputs, the gradient of u . f(x) in x.

One row of the table `PULL_BACK` for each kind of learner: (model, Z (n, p), u (n, C)) -> (n, p), analytic. Trees have
slope 0. A smooth learner that is not in the table is differentiated by central differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from softlearning.library.learners import couple, pair_margins

PullBack = Callable[[Any, np.ndarray, np.ndarray], np.ndarray]


def pull_back(model: Any, Z: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Gradient of sum_c u_c f_c(z) at each row; (n, p). u (n, C) has a column a class of the model, or one column."""
    return PULL_BACK.get(type(model).__name__, by_differences)(model, Z, u)


def outputs(model: Any, Z: np.ndarray) -> np.ndarray:
    """Probabilities (n, C), or predictions (n, 1)."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(Z), dtype=float)
    return np.asarray(model.predict(Z), dtype=float).reshape(len(Z), -1)


def by_differences(model: Any, Z: np.ndarray, u: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central differences, column by column: 2p predictions of all rows."""
    slope = np.empty(Z.shape)
    for j in range(Z.shape[1]):
        h = step * np.maximum(1.0, np.abs(Z[:, j]))
        up, down = Z.copy(), Z.copy()
        up[:, j] += h
        down[:, j] -= h
        slope[:, j] = ((outputs(model, up) - outputs(model, down)) * u).sum(axis=1) / (2 * h)
    return slope


def through_softmax(P: np.ndarray, u: np.ndarray) -> np.ndarray:
    """From slopes in probabilities to slopes in logits: p_c (u_c - sum p u)."""
    return P * (u - (P * u).sum(axis=1, keepdims=True))


def flat(model: Any, Z: np.ndarray, u: np.ndarray) -> np.ndarray:
    return np.zeros(Z.shape)


def logistic(model: Any, Z: np.ndarray, u: np.ndarray) -> np.ndarray:
    P = model.predict_proba(Z)
    if len(model.coef_) == 1:
        return (P[:, 0] * P[:, 1] * (u[:, 1] - u[:, 0]))[:, None] * model.coef_
    return through_softmax(P, u) @ model.coef_


def linear(model: Any, Z: np.ndarray, u: np.ndarray) -> np.ndarray:
    return u[:, :1] * np.reshape(model.coef_, (1, -1))


ACTIVATION_SLOPE: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # in terms of the activation itself
    "relu": lambda a: (a > 0).astype(float),
    "tanh": lambda a: 1 - a**2,
    "logistic": lambda a: a * (1 - a),
    "identity": np.ones_like,
}
ACTIVATION: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "logistic": expit,
    "identity": lambda z: z,
    "softmax": lambda z: softmax(z, axis=1),
}


def network(model: Any, Z: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Multilayer perceptron: forward through the layers, back through their slopes."""
    layers = [Z]
    last = len(model.coefs_) - 1
    for i, (W, b) in enumerate(zip(model.coefs_, model.intercepts_)):
        layers.append(ACTIVATION[model.out_activation_ if i == last else model.activation](layers[-1] @ W + b))
    out = layers[-1]
    if model.out_activation_ == "softmax":
        slope = through_softmax(out, u)
    elif u.shape[1] == 2:  # one logistic unit stands for two classes
        slope = out * (1 - out) * (u[:, 1:] - u[:, :1])
    else:
        slope = u * ACTIVATION_SLOPE[model.out_activation_](out)
    for i in range(last, -1, -1):
        slope = slope @ model.coefs_[i].T
        if i > 0:
            slope = slope * ACTIVATION_SLOPE[model.activation](layers[i])
    return slope


def naive_bayes(model: Any, Z: np.ndarray, u: np.ndarray) -> np.ndarray:
    slope = through_softmax(model.predict_proba(Z), u)
    away = (Z[:, None, :] - model.theta_) / model.var_  # (n, C, p): minus the slope of the log density
    return -np.einsum("nc,ncp->np", slope, away)


def rbf_sum(Z: np.ndarray, centres: np.ndarray, gamma: float, coefficient: np.ndarray) -> np.ndarray:
    """Slope of sum_i coefficient_ni exp(-gamma |z_n - x_i|^2) in z_n; coefficient (n, centres)."""
    squared = (Z**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * Z @ centres.T
    kernel = coefficient * np.exp(-gamma * np.maximum(squared, 0))
    return -2 * gamma * (kernel.sum(axis=1, keepdims=True) * Z - kernel @ centres)


def support_vector_regression(model: Any, Z: np.ndarray, u: np.ndarray) -> np.ndarray:
    if model.kernel != "rbf":
        return by_differences(model, Z, u)
    return rbf_sum(Z, model.support_vectors_, model._gamma, u[:, :1] * model.dual_coef_)


def platt_machine(model: Any, Z: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Pairwise margins have analytic slopes; the coupling of pairs is differentiated in its few arguments."""
    slope, offset = model.sigmoids_.T
    classes = len(model.classes_)
    first = expit(-(slope * pair_margins(model.svc_, Z) + offset))
    by_first = np.empty_like(first)
    h = 1e-6
    for pair in range(first.shape[1]):
        step = h * (np.arange(first.shape[1]) == pair)
        by_first[:, pair] = ((couple(first + step, classes) - couple(first - step, classes)) * u).sum(1) / (2 * h)
    by_margin = by_first * -slope * first * (1 - first)
    return rbf_sum(Z, model.svc_.support_vectors_, model.svc_._gamma, by_margin @ pair_coefficients(model.svc_))


def pair_coefficients(svc: Any) -> np.ndarray:
    """Dual coefficients by pair, (pairs, support vectors), positive margins for the first class of the pair."""
    if len(svc.classes_) == 2:
        return -svc.dual_coef_  # scikit-learn turns the sign of a single pair
    start = np.concatenate([[0], np.cumsum(svc.n_support_)])
    pairs = np.transpose(np.triu_indices(len(svc.classes_), 1))
    table = np.zeros((len(pairs), svc.dual_coef_.shape[1]))
    for row, (i, j) in enumerate(pairs):
        table[row, start[i] : start[i + 1]] = svc.dual_coef_[j - 1, start[i] : start[i + 1]]
        table[row, start[j] : start[j + 1]] = svc.dual_coef_[i, start[j] : start[j + 1]]
    return table


def neighbours(model: Any, Z: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Distance-weighted k-NN: f = sum w_i y_i / sum w_i with w_i = 1 / |z - x_i|. Uniform weights have slope 0."""
    if model.weights != "distance" or model.effective_metric_ != "euclidean":
        return flat(model, Z, u)
    distance, nearest = model.kneighbors(Z)
    target = np.asarray(model._y)[nearest]
    score = u[:, 0, None] * target if u.shape[1] == 1 else np.take_along_axis(u, target, axis=1)
    on_a_row = (distance == 0).any(axis=1)  # there the answer is that row's, and has no slope
    w = 1 / np.where(distance > 0, distance, 1.0)
    f = (w * score).sum(axis=1, keepdims=True) / w.sum(axis=1, keepdims=True)
    by_weight = (score - f) / w.sum(axis=1, keepdims=True)
    towards = Z[:, None, :] - np.asarray(model._fit_X)[nearest]
    slope = -np.einsum("nk,nkp->np", by_weight * w**3, towards)
    return np.where(on_a_row[:, None], 0.0, slope)


def pipeline(model: Any, Z: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Transformers that treat each column alone, then a model: the chain rule from the end."""
    inner = [Z]
    for _, step in model.steps[:-1]:
        if type(step).__name__ not in COLUMN_SLOPES:
            return by_differences(model, Z, u)
        inner.append(step.transform(inner[-1]))
    slope = pull_back(model.steps[-1][1], inner[-1], u)
    for (_, step), matrix in zip(reversed(model.steps[:-1]), reversed(inner[:-1])):
        slope = COLUMN_SLOPES[type(step).__name__](step, matrix, slope)
    return slope


def spline_columns(step: Any, Z: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """From slopes in the basis functions to slopes in the columns; beyond the outer knots the basis is constant."""
    if step.extrapolation != "constant" or not step.include_bias:
        raise NotImplementedError("slopes of splines are known for constant extrapolation with all basis functions")
    width = slope.shape[1] // Z.shape[1]
    result = np.zeros(Z.shape)
    for j, basis in enumerate(step.bsplines_):
        low, high = basis.t[basis.k], basis.t[-basis.k - 1]
        inside = (Z[:, j] >= low) & (Z[:, j] <= high)
        derivative = basis.derivative()(np.clip(Z[:, j], low, high))[:, :width]
        result[:, j] = inside * (derivative * slope[:, j * width : (j + 1) * width]).sum(axis=1)
    return result


def scaled_columns(step: Any, Z: np.ndarray, slope: np.ndarray) -> np.ndarray:
    return slope if step.scale_ is None else slope / step.scale_


COLUMN_SLOPES: dict[str, PullBack] = {"SplineTransformer": spline_columns, "StandardScaler": scaled_columns}

FLAT = (
    *("DecisionTree", "ExtraTree", "RandomForest", "ExtraTrees", "GradientBoosting", "HistGradientBoosting"),
    *("AdaBoost", "CatBoost", "LGBM", "Dummy"),
)

PULL_BACK: dict[str, PullBack] = {
    **{f"{name}{task}": flat for name in FLAT for task in ("Classifier", "Regressor")},
    "LogisticRegression": logistic,
    **dict.fromkeys(("LinearRegression", "Ridge", "Lasso", "ElasticNet"), linear),
    "MLPClassifier": network,
    "MLPRegressor": network,
    "GaussianNB": naive_bayes,
    "SVR": support_vector_regression,
    "PlattSVC": platt_machine,
    "KNeighborsClassifier": neighbours,
    "KNeighborsRegressor": neighbours,
    "Pipeline": pipeline,
}
