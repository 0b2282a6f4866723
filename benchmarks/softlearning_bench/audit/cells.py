"""Within what distance a fitted specialist cannot move: its cells, read from the model itself.

One row of the table `RADII` for each kind of learner; a kind that is not there is unknown (None), which is safe. `Z`
(n, p) is what the model reads, `unit` (p,) the raw length of one step of each of its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from softlearning_bench.audit.robustness import Tree, border_radius, forest_radius, neighbour_radius

FLOAT32 = 2.0**-24  # scikit-learn's trees and CatBoost compare in single precision


def specialist_radius(model: Any, Z: np.ndarray, unit: np.ndarray, norm: str = "linf") -> np.ndarray | None:
    """Radius (n,) within which the model gives the same answer for each row, or None where that is not known."""
    radius = RADII.get(type(model).__name__)
    return None if radius is None else radius(model, Z, unit, norm)


def nested_trees(model: Any) -> list[Tree]:
    """The trees of a scikit-learn tree, forest or boosting."""
    if hasattr(model, "tree_"):
        t = model.tree_
        return [Tree(t.children_left, t.children_right, t.feature, t.threshold, t.missing_go_to_left)]
    return [tree for part in np.ravel(model.estimators_) for tree in nested_trees(part)]


def tree_cells(model: Any, Z: np.ndarray, unit: np.ndarray, norm: str) -> np.ndarray:
    """Exact for a tree; for several trees, the distance at which the first of them changes its leaf."""
    return forest_radius(nested_trees(model), Z, unit=unit, rounding=FLOAT32)


def histogram_cells(model: Any, Z: np.ndarray, unit: np.ndarray, norm: str) -> np.ndarray | None:
    """HistGradientBoosting, from the nodes of its predictors; unknown with splits on categories."""
    nodes = [predictor.nodes for stage in model._predictors for predictor in stage]
    if any(n["is_categorical"].any() for n in nodes):
        return None
    trees = [_tree_of_nodes(n) for n in nodes]
    return forest_radius(trees, Z, unit=unit)


def _tree_of_nodes(nodes: np.ndarray) -> Tree:
    left = np.where(nodes["is_leaf"] == 1, -1, nodes["left"].astype(int))
    return Tree(
        left,
        nodes["right"].astype(int),
        nodes["feature_idx"],
        nodes["num_threshold"],
        nodes["missing_go_to_left"],
    )


def catboost_cells(model: Any, Z: np.ndarray, unit: np.ndarray, norm: str) -> np.ndarray | None:
    """CatBoost's symmetric trees ask all their questions of every row; unknown with categories."""
    if model.get_cat_feature_indices():
        return None
    found = model.get_borders()
    borders = [np.asarray(found.get(j, [])) for j in range(Z.shape[1])]
    return border_radius(borders, Z, unit=unit, rounding=FLOAT32)


def lightgbm_cells(model: Any, Z: np.ndarray, unit: np.ndarray, norm: str) -> np.ndarray | None:
    """LightGBM, from the thresholds of its dumped trees: a safe bound that counts every split; None with categories."""
    splits: list[tuple[int, float]] = []
    for tree in model.booster_.dump_model()["tree_info"]:
        if not _collect_splits(tree["tree_structure"], splits):
            return None
    borders = [np.array([t for f, t in splits if f == j]) for j in range(Z.shape[1])]
    return border_radius(borders, Z, unit=unit)


def _collect_splits(node: dict, splits: list[tuple[int, float]]) -> bool:
    """Add the (feature, threshold) pairs below a node; False when one of them asks for a category."""
    if "split_feature" not in node:
        return True
    if node["decision_type"] != "<=":
        return False
    splits.append((node["split_feature"], node["threshold"]))
    return _collect_splits(node["left_child"], splits) and _collect_splits(node["right_child"], splits)


def neighbour_cells(model: Any, Z: np.ndarray, unit: np.ndarray, norm: str) -> np.ndarray:
    """k nearest neighbours: exact for the set of neighbours.

    With uniform weights the answer is constant while the set is. With distance weights it moves at once, unless all
    neighbours have the same target: the paper counts k-NN as piecewise constant and weights it by distance.
    """
    if model.effective_metric_ != "euclidean":
        return np.zeros(len(Z))
    radius = neighbour_radius(np.asarray(model._fit_X), Z, model.n_neighbors, norm=norm, unit=unit)
    if model.weights == "uniform":
        return radius
    target = np.asarray(model._y)[model.kneighbors(Z, return_distance=False)]
    return np.where((target == target[:, :1]).all(axis=1), radius, 0.0)


def everywhere(model: Any, Z: np.ndarray, unit: np.ndarray, norm: str) -> np.ndarray:
    return np.full(len(Z), np.inf)


def last_step(model: Any, Z: np.ndarray, unit: np.ndarray, norm: str) -> np.ndarray | None:
    """A pipeline is known when it is nothing but its last step."""
    return specialist_radius(model.steps[-1][1], Z, unit, norm) if len(model.steps) == 1 else None


def _both_tasks(names: Sequence[str], radius: Callable) -> dict[str, Callable]:
    return {f"{name}{task}": radius for name in names for task in ("Classifier", "Regressor")}


RADII: dict[str, Callable[[Any, np.ndarray, np.ndarray, str], np.ndarray | None]] = {
    **_both_tasks(("DecisionTree", "ExtraTree", "RandomForest", "ExtraTrees", "GradientBoosting"), tree_cells),
    **_both_tasks(("AdaBoost",), tree_cells),
    **_both_tasks(("HistGradientBoosting",), histogram_cells),
    **_both_tasks(("CatBoost",), catboost_cells),
    "LGBMClassifier": lightgbm_cells,
    "LGBMRegressor": lightgbm_cells,
    **_both_tasks(("KNeighbors",), neighbour_cells),
    **_both_tasks(("Dummy",), everywhere),
    "Pipeline": last_step,
}
