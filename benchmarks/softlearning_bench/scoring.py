"""What a prediction on held-out rows is worth, as numbers for the table."""

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

Array = NDArray[np.float64]
FLOOR = 1e-15  # a probability of zero for what happened would cost an infinite log loss
METRICS = ("score", "log_loss", "brier", "auc", "rmse")


def scores(prediction: Array, y: Array, task: str) -> dict[str, float]:
    """The METRICS of predictions (m, C) or (m, 1): `score` is accuracy or R2; what does not apply is NaN."""
    numbers = of_classes(prediction, y.astype(int)) if task == "classification" else of_numbers(prediction[:, 0], y)
    return dict.fromkeys(METRICS, float("nan")) | numbers


def of_classes(P: Array, y: NDArray[np.int_]) -> dict[str, float]:
    """Accuracy, log loss, Brier score (mean squared distance from the one-hot class, 0 to 2) and AUC."""
    right = P[np.arange(len(y)), y]
    return {
        "score": float((P.argmax(axis=1) == y).mean()),
        "log_loss": float(-np.log(np.maximum(right, FLOOR)).mean()),
        "brier": float(((P**2).sum(axis=1) - 2 * right + 1).mean()),
        "auc": area_under_curve(P, y),
    }


def area_under_curve(P: Array, y: NDArray[np.int_]) -> float:
    """Mean over the classes of the area of one against the rest; NaN where a class has no row or all of them."""
    present = np.bincount(y, minlength=P.shape[1])
    if (present == 0).any() or (present == len(y)).any():
        return float("nan")
    if P.shape[1] == 2:
        return float(roc_auc_score(y, P[:, 1]))
    return float(np.mean([roc_auc_score(y == c, P[:, c]) for c in range(P.shape[1])]))


def of_numbers(prediction: Array, y: Array) -> dict[str, float]:
    """R2 against the mean of the held-out rows, and the root of the mean squared error."""
    error = float(((y - prediction) ** 2).mean())
    return {"score": 1 - error / float(y.var()), "rmse": error**0.5}
