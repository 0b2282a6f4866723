"""What compiled code reads without looking: checked on plain data, before any object is built.

A guard takes the `Part` of one class and raises when its numbers do not fit together: a node that points backwards or
past the end, a column that does not exist, arrays whose lengths disagree. Forests and boosting are guarded through
their trees. Guards read only attributes by which compiled code indexes; Python code checks its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.tree._tree import NODE_DTYPE

from softlearning.persistence.container import ModelFileError
from softlearning.persistence.native import check_catboost_bytes, check_lightgbm_text

THREADS = ("n_jobs", "thread_count", "num_threads", "nthread")
MOST_THREADS = 1024
MOST_OUTPUTS = 100_000  # columns, classes or outputs that a single number may announce


@dataclass(frozen=True)
class Part:
    """One object of an archive in plain data: the name of its class, its attributes, the arguments that make it."""

    name: str
    state: Any = None
    args: tuple = ()

    def __getitem__(self, key: str) -> Any:
        if not isinstance(self.state, dict) or key not in self.state:
            raise ModelFileError(f"a {self.kind} in the file has no {key}")
        return self.state[key]

    def get(self, key: str) -> Any:
        return self.state.get(key) if isinstance(self.state, dict) else None

    @property
    def kind(self) -> str:
        return self.name.rsplit(".", 1)[-1]

    @property
    def fitted(self) -> bool:
        return self.get("n_features_in_") is not None


def require(condition: Any, part: Part, what: str) -> None:
    if not condition:
        raise ModelFileError(f"a {part.kind} in the file is not sound: {what}")


def check_attributes(part: Part, cls: type) -> None:
    """No attribute hides one of the class (a method could be replaced by it), no number asks for absurd resources."""
    if not isinstance(part.state, dict) or part.kind == "Tree":
        return
    hidden = [name for name in part.state if not name.isidentifier() or hasattr(cls, name)]
    require(not hidden, part, f"it stores {hidden[:1]}, which belongs to the class")
    for name in THREADS:
        threads = part.get(name)
        require(
            threads is None or (type(threads) is int and abs(threads) <= MOST_THREADS), part, f"{name} is {threads!r}"
        )
    for name in (
        "n_classes_",
        "n_outputs_",
        "n_features_out_",
        "n_features_in_",
        "_n_features",
        "n_trees_per_iteration_",
    ):
        value = part.get(name)
        small = not isinstance(value, int) or 0 <= value <= MOST_OUTPUTS * 100
        require(small, part, f"{name} is {value!r}")


def is_array(value: Any, kinds: str, ndim: int) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == ndim and value.dtype.kind in kinds


def whole(value: Any) -> int:
    """A whole number, as Python or numpy store it; -1 for anything else."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu":
        return int(value)
    return value if type(value) is int else -1


# --- trees


def check_children(part: Part, left: np.ndarray, right: np.ndarray, inner: np.ndarray) -> int:
    """Children come after their parent and exist, and every node is reached once; the depth of the tree."""
    n, index = len(left), np.flatnonzero(inner)
    require(n > 0, part, "it has no nodes")
    for child in (left[index], right[index]):
        require((child > index).all() and (child < n).all(), part, "a child is not a later node")
    seen, depth, level = 1, 0, np.zeros(1, dtype=np.int64)
    while len(level := level[inner[level]]):
        level = np.concatenate([left[level], right[level]]).astype(np.int64)
        seen, depth = seen + len(level), depth + 1
        require(seen <= n, part, "a node has two parents")
    require(seen == n, part, "a node is not reached")
    return depth


def check_tree(part: Part) -> None:
    """sklearn.tree._tree.Tree: made by (features, classes of each output, outputs)."""
    require(len(part.args) == 3, part, "it is made in an unknown way")
    features, classes, outputs = whole(part.args[0]), part.args[1], whole(part.args[2])
    require(is_array(classes, "iu", 1) and 1 <= outputs == len(classes) <= MOST_OUTPUTS, part, "its outputs do not fit")
    require((classes >= 1).all() and (classes <= MOST_OUTPUTS).all(), part, "its classes do not fit")
    nodes, values = part["nodes"], part["values"]
    require(isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype == NODE_DTYPE, part, "its nodes are none")
    shape = (len(nodes), outputs, int(classes.max()))
    require(
        is_array(values, "f", 3) and values.dtype == np.float64 and values.shape == shape, part, "its values do not fit"
    )
    require(whole(part["node_count"]) == len(nodes), part, "it does not have as many nodes as it says")
    left, right = nodes["left_child"], nodes["right_child"]
    inner = left != -1
    require((right[~inner] == -1).all(), part, "a leaf has a child")
    feature = nodes["feature"][inner]
    require((feature >= 0).all() and (feature < features).all(), part, "a node asks for a column that is not there")
    depth = check_children(part, left, right, inner)
    require(whole(part["max_depth"]) == depth, part, "it is not as deep as it says")


def check_decision_tree(part: Part) -> None:
    tree = part.get("tree_")
    if tree is None:
        return
    require(isinstance(tree, Part) and tree.kind == "Tree", part, "its tree is none")
    require(whole(tree.args[0]) == whole(part["n_features_in_"]), part, "its columns do not fit its tree")
    require(whole(tree.args[2]) == whole(part["n_outputs_"]), part, "its outputs do not fit its tree")


def check_gradient_boosting(part: Part) -> None:
    """The stages are read by compiled code that takes the trees as they are."""
    if part.get("estimators_") is None:
        return
    stages, width, features = part["estimators_"], whole(part["n_trees_per_iteration_"]), whole(part["n_features_in_"])
    require(
        isinstance(stages, list) and all(isinstance(s, list) and len(s) == width for s in stages),
        part,
        "its stages do not fit",
    )
    for tree in (tree for stage in stages for tree in stage):
        require(isinstance(tree, Part) and tree.kind == "DecisionTreeRegressor", part, "a stage is no tree")
        inner = tree["tree_"]
        one = whole(inner.args[0]) == features and whole(inner.args[2]) == 1 and int(inner.args[1].max()) == 1
        require(one, part, "a tree does not fit its columns")


def check_hist_boosting(part: Part) -> None:
    if part.get("_predictors") is None:
        return
    features, mapper = whole(part["n_features_in_"]), part["_bin_mapper"]
    require(not part.get("_in_fit"), part, "it is in the middle of training")
    require(isinstance(mapper, Part) and mapper.kind == "_BinMapper", part, "its bins are none")
    categorical = mapper["is_categorical_"]
    require(is_array(categorical, "bu", 1) and len(categorical) == features, part, "its columns do not fit its bins")
    check_known_categories(part, mapper["bin_thresholds_"], categorical.astype(bool))
    check_preprocessor(part, part["_preprocessor"], features)
    require(isinstance(part["_predictors"], list), part, "its trees are none")
    for tree in (tree for stage in part["_predictors"] for tree in stage):
        require(isinstance(tree, Part) and tree.kind == "TreePredictor", part, "a stage is no tree")
        check_predictor(tree, categorical.astype(bool))


def check_known_categories(part: Part, thresholds: Any, categorical: np.ndarray) -> None:
    """Categories are bits of a set of 256."""
    require(
        isinstance(thresholds, list) and len(thresholds) == len(categorical), part, "its bins do not fit its columns"
    )
    for known in (thresholds[j] for j in np.flatnonzero(categorical)):
        require(is_array(known, "fiu", 1) and ((known >= 0) & (known < 256)).all(), part, "a category is out of range")


def check_predictor(part: Part, categorical: np.ndarray) -> None:
    nodes, sets = part["nodes"], part["raw_left_cat_bitsets"]
    require(
        isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype == PREDICTOR_RECORD_DTYPE,
        part,
        "its nodes are none",
    )
    require(is_array(sets, "u", 2) and sets.dtype == np.uint32 and sets.shape[1] == 8, part, "its categories are none")
    inner = nodes["is_leaf"] == 0
    feature = nodes["feature_idx"][inner]
    require(((feature >= 0) & (feature < len(categorical))).all(), part, "a node asks for a column that is not there")
    asks = nodes[inner & (nodes["is_categorical"] != 0)]
    require((asks["bitset_idx"] < len(sets)).all(), part, "a node asks for categories that are not there")
    require(categorical[asks["feature_idx"]].all(), part, "a node takes a number for a category")
    check_children(part, nodes["left"].astype(np.int64), nodes["right"].astype(np.int64), inner)


def check_preprocessor(part: Part, encoder: Any, features: int) -> None:
    """Where columns are reordered before the trees, as many must come out as went in."""
    if encoder is None:
        return
    require(isinstance(encoder, Part) and encoder.kind == "ColumnTransformer", part, "its encoder is none")
    kinds = {"encoder": "OrdinalEncoder", "numerical": "FunctionTransformer"}
    columns = encoder["_transformer_to_input_indices"]
    taken = sorted(whole(j) for name in kinds for j in columns[name])
    require(taken == list(range(features)), part, "its encoder does not keep the columns")
    for name, step, chosen in encoder["transformers_"]:
        if name == "remainder":
            require(step == "drop" and not np.any(chosen), part, "its encoder adds columns")
            continue
        require(isinstance(step, Part) and step.kind == kinds.get(name), part, "its encoder is an unknown one")
        mask = np.zeros(features, dtype=bool)
        mask[columns[name]] = True
        require(
            is_array(chosen, "b", 1) and np.array_equal(chosen, mask), part, "its encoder does not keep the columns"
        )
        if name == "numerical":
            func = step["func"]
            require(
                isinstance(func, Part) and func.kind == "check_array" and not func.args,
                part,
                "its encoder is an unknown one",
            )


# --- neighbours


def check_neighbour_tree(part: Part) -> None:
    """KDTree and BallTree: a full binary tree in level order over a permutation of the rows."""
    require(isinstance(part.state, tuple) and len(part.state) == 13, part, "its state is an unknown one")
    data, order, nodes, bounds, _, levels, count = part.state[:7]
    metric, weight = part.state[11:]
    require(is_array(data, "f", 2) and data.dtype == np.float64 and data.size > 0, part, "its rows are none")
    rows, columns = data.shape
    require(is_array(order, "i", 1) and len(order) == rows, part, "its rows are not in order")
    require(np.array_equal(np.sort(order), np.arange(rows)), part, "its rows are not in order")
    require(
        isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype.names is not None, part, "its nodes are none"
    )
    require(
        0 < whole(levels) < 40 and whole(count) == len(nodes) == 2 ** whole(levels) - 1, part, "its levels do not fit"
    )
    sides = 2 if part.kind == "KDTree" else 1
    shape = (sides, len(nodes), columns)
    require(
        is_array(bounds, "f", 3) and bounds.dtype == np.float64 and bounds.shape == shape, part, "its bounds do not fit"
    )
    start, end = nodes["idx_start"], nodes["idx_end"]
    require(((start >= 0) & (start <= end) & (end <= rows)).all(), part, "a node has rows that are not there")
    require((nodes["is_leaf"][len(nodes) // 2 :] != 0).all(), part, "a node of the last level is no leaf")
    require(isinstance(metric, Part) and metric.kind in METRICS, part, "its distance is an unknown one")
    require(weight is None, part, "it has weights")


METRICS = ("EuclideanDistance64", "ManhattanDistance64")


def check_metric(part: Part) -> None:
    require(isinstance(part.state, tuple) and len(part.state) == 3, part, "its state is an unknown one")
    p, vector, matrix = part.state
    require(type(p) is float and is_array(vector, "f", 1) and is_array(matrix, "f", 2), part, "its parameters are none")


def check_neighbours(part: Part) -> None:
    if part.get("_fit_X") is None:
        return
    known, rows, columns = part["_fit_X"], whole(part["n_samples_fit_"]), whole(part["n_features_in_"])
    require(sp.issparse(known) or is_array(known, "f", 2), part, "its rows are none")
    require(known.shape == (rows, columns), part, "its rows do not fit its columns")
    require(1 <= whole(part["n_neighbors"]) <= rows, part, "it asks for more neighbours than there are")
    metrics = ("euclidean", "manhattan", "minkowski", "cosine", "l1", "l2", "cityblock")
    require(
        all(part[name] in metrics for name in ("metric", "effective_metric_")), part, "its distance is an unknown one"
    )
    require(
        not part.get("metric_params") and set(part["effective_metric_params_"]) <= {"p"},
        part,
        "its distance is an unknown one",
    )
    require(part["weights"] in ("uniform", "distance"), part, "its weights are unknown ones")
    tree = part["_tree"]
    require(
        tree is None or (isinstance(tree, Part) and tree.state[0].shape == known.shape),
        part,
        "its tree does not fit its rows",
    )
    target = part["_y"]
    require(isinstance(target, np.ndarray) and len(target) == rows, part, "its targets do not fit its rows")
    if "classes_" in part.state:
        classes = part["classes_"]
        require(isinstance(classes, np.ndarray | list) and is_array(target, "i", 1), part, "its labels are none")
        require((target >= 0).all() and (target < len(classes)).all(), part, "a label is not among its classes")


# --- support vectors


def check_libsvm(part: Part) -> None:
    """The shapes that libsvm takes for granted; k classes need k(k-1)/2 offsets and k-1 rows of coefficients."""
    if part.get("support_") is None:
        return
    require(part["kernel"] in ("linear", "poly", "rbf", "sigmoid"), part, "its kernel is an unknown one")
    vectors, counts, support = part["support_vectors_"], part["_n_support"], part["support_"]
    k = len(part["classes_"]) if part.kind.endswith("SVC") else 2
    n = vectors.shape[0]
    require(
        k >= 2 and is_array(counts, "i", 1) and counts.dtype == np.int32 and len(counts) == k,
        part,
        "its classes do not fit",
    )
    total = int(counts.sum(dtype=np.int64)) if part.kind.endswith("SVC") else int(counts[0])  # a regressor repeats it
    require((counts >= 0).all() and total == n, part, "its support vectors do not fit its classes")
    require(
        is_array(support, "i", 1) and support.dtype == np.int32 and (len(support) == n or part.get("_sparse")),
        part,
        "its support vectors are not numbered",
    )
    require((support >= 0).all(), part, "its support vectors are not numbered")
    check_support_vectors(part, vectors, k, n)
    pairs = k * (k - 1) // 2
    offsets = part["_intercept_"]
    require(
        is_array(offsets, "f", 1) and offsets.dtype == np.float64 and len(offsets) == pairs,
        part,
        "its offsets do not fit",
    )
    for name in ("_probA", "_probB"):
        require(is_array(part[name], "f", 1) and len(part[name]) in (0, pairs), part, f"its {name} does not fit")


def check_support_vectors(part: Part, vectors: Any, k: int, n: int) -> None:
    columns, weights = whole(part["n_features_in_"]), part["_dual_coef_"]
    if part["_sparse"]:
        fits = sp.issparse(vectors) and vectors.format == "csr" and vectors.shape[1] == columns
        require(fits and vectors.data.dtype == np.float64, part, "its support vectors are none")
        require(sp.issparse(weights) and weights.data.dtype == np.float64, part, "its coefficients are none")
        require(len(weights.data) == (k - 1) * n, part, "its coefficients do not fit its support vectors")
        return
    require(is_array(vectors, "f", 2) and vectors.dtype == np.float64, part, "its support vectors are none")
    require(vectors.shape[1] == columns or n == 0, part, "its support vectors do not fit its columns")
    require(
        is_array(weights, "f", 2) and weights.shape == (k - 1, n),
        part,
        "its coefficients do not fit its support vectors",
    )


# --- preprocessing


def check_spline(part: Part) -> None:
    knots, c, k = part["_t"], part["_c"], whole(part["k"])
    require(
        is_array(knots, "f", 1) and knots.dtype == np.float64 and np.isfinite(knots).all(), part, "its knots are none"
    )
    require(
        (np.diff(knots) >= 0).all() and 0 <= k <= 10 and len(knots) >= 2 * k + 2,
        part,
        "its knots do not fit its degree",
    )
    require(isinstance(c, np.ndarray) and c.dtype == np.float64 and c.ndim in (1, 2), part, "its coefficients are none")
    require(len(c) >= len(knots) - k - 1 and whole(part["axis"]) == 0, part, "its coefficients do not fit its knots")


def check_spline_columns(part: Part) -> None:
    if part.get("bsplines_") is None:
        return
    splines = part["bsplines_"]
    require(
        isinstance(splines, list) and len(splines) == whole(part["n_features_in_"]),
        part,
        "its splines do not fit its columns",
    )
    require(all(isinstance(s, Part) and s.kind == "BSpline" for s in splines), part, "its splines are none")
    width = sum(len(s["_t"]) for s in splines)
    require(0 <= whole(part["n_features_out_"]) <= width, part, "it makes more columns than its splines")


def check_one_hot(part: Part) -> None:
    """Positions are computed from `_n_features_outs` and written into a matrix without a look."""
    if part.get("categories_") is None:
        return
    require(not part["_infrequent_enabled"], part, "it groups rare categories, which model files do not keep")
    sizes = [len(categories) for categories in part["categories_"]]
    drop = part["_drop_idx_after_grouping"]
    dropped = [None] * len(sizes) if drop is None else list(drop)
    require(len(dropped) == len(sizes), part, "its columns do not fit its categories")
    require(all(d is None or 0 <= whole(d) < n for d, n in zip(dropped, sizes)), part, "it drops a category it has not")
    wide = [n - (d is not None) for d, n in zip(dropped, sizes)]
    require([whole(n) for n in part["_n_features_outs"]] == wide, part, "its columns do not fit its categories")


# --- boosting with a library of its own


def check_booster(part: Part) -> None:
    check_lightgbm_text(part["_handle"])


def check_catboost(part: Part) -> None:
    if part.get("__model") is not None:
        check_catboost_bytes(part["__model"])


def check_lightgbm(part: Part) -> None:
    """Parameters reach its prediction as text: none may name a file or turn off its checks."""
    odd = [name for name in part["_other_params"] if any(word in name for word in LIGHTGBM_WORDS)]
    require(not odd, part, f"its parameter {odd[:1]} is not among those that model files keep")


LIGHTGBM_WORDS = ("file", "predict", "machine", "config", "model", "result", "port")

_TREES = "sklearn.tree._classes"
_HIST = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting"

GUARDS: dict[str, Callable[[Part], None]] = {
    "sklearn.tree._tree.Tree": check_tree,
    f"{_TREES}.DecisionTreeClassifier": check_decision_tree,
    f"{_TREES}.DecisionTreeRegressor": check_decision_tree,
    f"{_TREES}.ExtraTreeClassifier": check_decision_tree,
    f"{_TREES}.ExtraTreeRegressor": check_decision_tree,
    "sklearn.ensemble._gb.GradientBoostingClassifier": check_gradient_boosting,
    "sklearn.ensemble._gb.GradientBoostingRegressor": check_gradient_boosting,
    f"{_HIST}.HistGradientBoostingClassifier": check_hist_boosting,
    f"{_HIST}.HistGradientBoostingRegressor": check_hist_boosting,
    "sklearn.neighbors._kd_tree.KDTree": check_neighbour_tree,
    "sklearn.neighbors._ball_tree.BallTree": check_neighbour_tree,
    "sklearn.metrics._dist_metrics.EuclideanDistance64": check_metric,
    "sklearn.metrics._dist_metrics.ManhattanDistance64": check_metric,
    "sklearn.neighbors._classification.KNeighborsClassifier": check_neighbours,
    "sklearn.neighbors._regression.KNeighborsRegressor": check_neighbours,
    "sklearn.svm._classes.SVC": check_libsvm,
    "sklearn.svm._classes.NuSVC": check_libsvm,
    "sklearn.svm._classes.SVR": check_libsvm,
    "sklearn.svm._classes.NuSVR": check_libsvm,
    "scipy.interpolate._bsplines.BSpline": check_spline,
    "sklearn.preprocessing._polynomial.SplineTransformer": check_spline_columns,
    "sklearn.preprocessing._encoders.OneHotEncoder": check_one_hot,
    "catboost.core.CatBoostClassifier": check_catboost,
    "catboost.core.CatBoostRegressor": check_catboost,
    "lightgbm.basic.Booster": check_booster,
    "lightgbm.sklearn.LGBMClassifier": check_lightgbm,
    "lightgbm.sklearn.LGBMRegressor": check_lightgbm,
}
