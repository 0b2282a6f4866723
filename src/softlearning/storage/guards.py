"""What compiled code reads without looking: checked on plain data, before any object is built.

A guard takes the `Part` of one class and raises when its numbers do not fit together: a node that points backwards or
past the end, a column that does not exist, arrays whose lengths disagree. Forests and boosting are guarded through
their trees. Guards read only attributes by which compiled code indexes; Python code checks its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.tree._tree import NODE_DTYPE

from softlearning.storage.container import ModelFileError
from softlearning.storage.native import check_catboost_bytes, check_lightgbm_text

THREADS = ("n_jobs", "thread_count", "num_threads", "nthread")
MOST_THREADS = 1024
COUNTS = ("n_classes_", "n_outputs_", "n_features_out_", "n_features_in_", "_n_features", "n_trees_per_iteration_")
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

    def must(self, condition: Any, what: str) -> None:
        if not condition:
            raise ModelFileError(f"a {self.kind} in the file is not sound: {what}")

    @property
    def kind(self) -> str:
        return self.name.rsplit(".", 1)[-1]


def check_attributes(part: Part, cls: type) -> None:
    """No attribute hides one of the class (a method could be replaced by it), no number asks for absurd resources."""
    if not isinstance(part.state, dict) or part.kind == "Tree":
        return
    hidden = [name for name in part.state if not name.isidentifier() or hasattr(cls, name)]
    part.must(not hidden, f"it stores {hidden[:1]}, which belongs to the class")
    for name, value in part.state.items():
        if name in THREADS:
            part.must(value is None or (type(value) is int and abs(value) <= MOST_THREADS), f"{name} is {value!r}")
        if name in COUNTS and isinstance(value, int):
            part.must(0 <= value <= 100 * MOST_OUTPUTS, f"{name} is {value!r}")
        for inner in parts_within(value):
            part.must(inner.kind not in OWNERS or owns(part, name, inner), f"its {name} is a bare {inner.kind}")


def parts_within(value: Any) -> Iterator[Part]:
    """The objects in a value, through lists, tuples and dicts but not through other objects."""
    if isinstance(value, Part):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from parts_within(item)


def owns(part: Part, name: str, inner: Part) -> bool:
    """Whether this is the one place for an object that trusts its owner with its input."""
    kinds, attribute = OWNERS[inner.kind]
    return part.kind in kinds and name == attribute


TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
HIST = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")
NEIGHBOURS = ("KNeighborsClassifier", "KNeighborsRegressor")
OWNERS = {
    "Tree": (TREES, "tree_"),
    "TreePredictor": (HIST, "_predictors"),
    "_BinMapper": (HIST, "_bin_mapper"),
    "KDTree": (NEIGHBOURS, "_tree"),
    "BallTree": (NEIGHBOURS, "_tree"),
    "EuclideanDistance64": ((), ""),  # within a search tree, whose guard looks at it
    "ManhattanDistance64": ((), ""),
    "BSpline": (("SplineTransformer",), "bsplines_"),
    "Booster": (("LGBMClassifier", "LGBMRegressor"), "_Booster"),
}


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
    part.must(n > 0, "it has no nodes")
    for child in (left[index], right[index]):
        part.must((child > index).all() and (child < n).all(), "a child is not a later node")
    seen, depth, level = 1, 0, np.zeros(1, dtype=np.int64)
    while len(level := level[inner[level]]):
        level = np.concatenate([left[level], right[level]]).astype(np.int64)
        seen, depth = seen + len(level), depth + 1
        part.must(seen <= n, "a node has two parents")
    part.must(seen == n, "a node is not reached")
    return depth


def check_tree(part: Part) -> None:
    """sklearn.tree._tree.Tree: made by (features, classes of each output, outputs)."""
    part.must(len(part.args) == 3, "it is made in an unknown way")
    features, classes, outputs = whole(part.args[0]), part.args[1], whole(part.args[2])
    part.must(is_array(classes, "iu", 1) and 1 <= outputs == len(classes) <= MOST_OUTPUTS, "its outputs do not fit")
    part.must((classes >= 1).all() and (classes <= MOST_OUTPUTS).all(), "its classes do not fit")
    nodes, values = part["nodes"], part["values"]
    part.must(isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype == NODE_DTYPE, "its nodes are none")
    shape = (len(nodes), outputs, int(classes.max()))
    part.must(
        is_array(values, "f", 3) and values.dtype == np.float64 and values.shape == shape, "its values do not fit"
    )
    part.must(whole(part["node_count"]) == len(nodes), "it does not have as many nodes as it says")
    left, right = nodes["left_child"], nodes["right_child"]
    inner = left != -1
    part.must((right[~inner] == -1).all(), "a leaf has a child")
    feature = nodes["feature"][inner]
    part.must((feature >= 0).all() and (feature < features).all(), "a node asks for a column that is not there")
    depth = check_children(part, left, right, inner)
    part.must(whole(part["max_depth"]) == depth, "it is not as deep as it says")


def check_decision_tree(part: Part) -> None:
    tree = part.get("tree_")
    if tree is None:
        return
    part.must(isinstance(tree, Part) and tree.kind == "Tree", "its tree is none")
    part.must(whole(tree.args[0]) == whole(part["n_features_in_"]), "its columns do not fit its tree")
    part.must(whole(tree.args[2]) == whole(part["n_outputs_"]), "its outputs do not fit its tree")


def check_gradient_boosting(part: Part) -> None:
    """The stages are read by compiled code that takes the trees as they are."""
    if part.get("estimators_") is None:
        return
    stages, width, features = part["estimators_"], whole(part["n_trees_per_iteration_"]), whole(part["n_features_in_"])
    part.must(
        isinstance(stages, list) and all(isinstance(s, list) and len(s) == width for s in stages),
        "its stages do not fit",
    )
    for tree in (tree for stage in stages for tree in stage):
        part.must(isinstance(tree, Part) and tree.kind == "DecisionTreeRegressor", "a stage is no tree")
        inner = tree["tree_"]
        one = whole(inner.args[0]) == features and whole(inner.args[2]) == 1 and int(inner.args[1].max()) == 1
        part.must(one, "a tree does not fit its columns")
    check_first_guess(part, part["init_"], width)


def check_first_guess(part: Part, first: Any, width: int) -> None:
    """What the stages are added to must be as wide as they are."""
    if first == "zero":
        return
    part.must(
        isinstance(first, Part) and first.kind in ("DummyClassifier", "DummyRegressor"),
        "its first guess is no constant",
    )
    if first.kind == "DummyRegressor":
        constant = first["constant_"]
        part.must(width == 1 and is_array(constant, "f", 2) and constant.size == 1, "its first guess does not fit")
    else:
        prior = first["class_prior_"]
        fits = is_array(prior, "f", 1) and len(prior) == (width if width > 2 else 2) and first["strategy"] == "prior"
        part.must(fits, "its first guess does not fit")


def check_hist_boosting(part: Part) -> None:
    if part.get("_predictors") is None:
        return
    features, mapper = whole(part["n_features_in_"]), part["_bin_mapper"]
    part.must(not part.get("_in_fit"), "it is in the middle of training")
    part.must(isinstance(mapper, Part) and mapper.kind == "_BinMapper", "its bins are none")
    categorical = mapper["is_categorical_"]
    part.must(is_array(categorical, "bu", 1) and len(categorical) == features, "its columns do not fit its bins")
    check_known_categories(part, mapper["bin_thresholds_"], categorical.astype(bool))
    check_preprocessor(part, part["_preprocessor"], features)
    part.must(isinstance(part["_predictors"], list), "its trees are none")
    for tree in (tree for stage in part["_predictors"] for tree in stage):
        part.must(isinstance(tree, Part) and tree.kind == "TreePredictor", "a stage is no tree")
        check_predictor(tree, categorical.astype(bool))


def check_known_categories(part: Part, thresholds: Any, categorical: np.ndarray) -> None:
    """Categories are bits of a set of 256."""
    part.must(isinstance(thresholds, list) and len(thresholds) == len(categorical), "its bins do not fit its columns")
    for known in (thresholds[j] for j in np.flatnonzero(categorical)):
        part.must(is_array(known, "fiu", 1) and ((known >= 0) & (known < 256)).all(), "a category is out of range")


def check_predictor(part: Part, categorical: np.ndarray) -> None:
    nodes, sets = part["nodes"], part["raw_left_cat_bitsets"]
    part.must(
        isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype == PREDICTOR_RECORD_DTYPE,
        "its nodes are none",
    )
    part.must(is_array(sets, "u", 2) and sets.dtype == np.uint32 and sets.shape[1] == 8, "its categories are none")
    inner = nodes["is_leaf"] == 0
    feature = nodes["feature_idx"][inner]
    part.must(((feature >= 0) & (feature < len(categorical))).all(), "a node asks for a column that is not there")
    asks = nodes[inner & (nodes["is_categorical"] != 0)]
    part.must((asks["bitset_idx"] < len(sets)).all(), "a node asks for categories that are not there")
    part.must(categorical[asks["feature_idx"]].all(), "a node takes a number for a category")
    check_children(part, nodes["left"].astype(np.int64), nodes["right"].astype(np.int64), inner)


def check_preprocessor(part: Part, encoder: Any, features: int) -> None:
    """Where columns are reordered before the trees, as many must come out as went in."""
    if encoder is None:
        return
    part.must(isinstance(encoder, Part) and encoder.kind == "ColumnTransformer", "its encoder is none")
    kinds = {"encoder": "OrdinalEncoder", "numerical": "FunctionTransformer"}
    columns = encoder["_transformer_to_input_indices"]
    taken = sorted(whole(j) for name in kinds for j in columns[name])
    part.must(taken == list(range(features)), "its encoder does not keep the columns")
    for name, step, chosen in encoder["transformers_"]:
        if name == "remainder":
            part.must(step == "drop" and not np.any(chosen), "its encoder adds columns")
            continue
        part.must(isinstance(step, Part) and step.kind == kinds.get(name), "its encoder is an unknown one")
        mask = np.zeros(features, dtype=bool)
        mask[columns[name]] = True
        part.must(is_array(chosen, "b", 1) and np.array_equal(chosen, mask), "its encoder does not keep the columns")
        if name == "numerical":
            func = step["func"]
            part.must(
                isinstance(func, Part) and func.kind == "check_array" and not func.args, "its encoder is an unknown one"
            )


# --- neighbours


def check_neighbour_tree(part: Part) -> None:
    """KDTree and BallTree: a full binary tree in level order over a permutation of the rows."""
    part.must(isinstance(part.state, tuple) and len(part.state) == 13, "its state is an unknown one")
    data, order, nodes, bounds, _, levels, count = part.state[:7]
    metric, weight = part.state[11:]
    part.must(is_array(data, "f", 2) and data.dtype == np.float64 and data.size > 0, "its rows are none")
    rows, columns = data.shape
    part.must(is_array(order, "i", 1) and len(order) == rows, "its rows are not in order")
    part.must(np.array_equal(np.sort(order), np.arange(rows)), "its rows are not in order")
    part.must(isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype.names is not None, "its nodes are none")
    part.must(0 < whole(levels) < 40 and whole(count) == len(nodes) == 2 ** whole(levels) - 1, "its levels do not fit")
    sides = 2 if part.kind == "KDTree" else 1
    shape = (sides, len(nodes), columns)
    part.must(
        is_array(bounds, "f", 3) and bounds.dtype == np.float64 and bounds.shape == shape, "its bounds do not fit"
    )
    start, end = nodes["idx_start"], nodes["idx_end"]
    part.must(((start >= 0) & (start <= end) & (end <= rows)).all(), "a node has rows that are not there")
    part.must((nodes["is_leaf"][len(nodes) // 2 :] != 0).all(), "a node of the last level is no leaf")
    part.must(isinstance(metric, Part) and metric.kind in METRICS, "its distance is an unknown one")
    part.must(weight is None, "it has weights")


METRICS = ("EuclideanDistance64", "ManhattanDistance64")


def check_metric(part: Part) -> None:
    part.must(isinstance(part.state, tuple) and len(part.state) == 3, "its state is an unknown one")
    p, vector, matrix = part.state
    part.must(type(p) is float and is_array(vector, "f", 1) and is_array(matrix, "f", 2), "its parameters are none")


def check_neighbours(part: Part) -> None:
    if part.get("_fit_X") is None:
        return
    known, rows, columns = part["_fit_X"], whole(part["n_samples_fit_"]), whole(part["n_features_in_"])
    part.must(sp.issparse(known) or is_array(known, "f", 2), "its rows are none")
    part.must(known.shape == (rows, columns), "its rows do not fit its columns")
    part.must(1 <= whole(part["n_neighbors"]) <= rows, "it asks for more neighbours than there are")
    metrics = ("euclidean", "manhattan", "minkowski", "cosine", "l1", "l2", "cityblock")
    part.must(all(part[name] in metrics for name in ("metric", "effective_metric_")), "its distance is an unknown one")
    part.must(
        not part.get("metric_params") and set(part["effective_metric_params_"]) <= {"p"},
        "its distance is an unknown one",
    )
    part.must(part["weights"] in ("uniform", "distance"), "its weights are unknown ones")
    tree = part["_tree"]
    part.must(
        tree is None or (isinstance(tree, Part) and tree.state[0].shape == known.shape),
        "its tree does not fit its rows",
    )
    target = part["_y"]
    part.must(isinstance(target, np.ndarray) and len(target) == rows, "its targets do not fit its rows")
    if "classes_" in part.state:
        classes = part["classes_"]
        part.must(isinstance(classes, np.ndarray | list) and is_array(target, "i", 1), "its labels are none")
        part.must((target >= 0).all() and (target < len(classes)).all(), "a label is not among its classes")


# --- support vectors


def check_libsvm(part: Part) -> None:
    """The shapes that libsvm takes for granted; k classes need k(k-1)/2 offsets and k-1 rows of coefficients."""
    if part.get("support_") is None:
        return
    part.must(part["kernel"] in ("linear", "poly", "rbf", "sigmoid"), "its kernel is an unknown one")
    vectors, counts, support = part["support_vectors_"], part["_n_support"], part["support_"]
    k = len(part["classes_"]) if part.kind.endswith("SVC") else 2
    n = vectors.shape[0]
    part.must(
        k >= 2 and is_array(counts, "i", 1) and counts.dtype == np.int32 and len(counts) == k, "its classes do not fit"
    )
    total = int(counts.sum(dtype=np.int64)) if part.kind.endswith("SVC") else int(counts[0])  # a regressor repeats it
    part.must((counts >= 0).all() and total == n, "its support vectors do not fit its classes")
    part.must(
        is_array(support, "i", 1) and support.dtype == np.int32 and (len(support) == n or part.get("_sparse")),
        "its support vectors are not numbered",
    )
    part.must((support >= 0).all(), "its support vectors are not numbered")
    check_support_vectors(part, vectors, k, n)
    pairs = k * (k - 1) // 2
    offsets = part["_intercept_"]
    part.must(
        is_array(offsets, "f", 1) and offsets.dtype == np.float64 and len(offsets) == pairs, "its offsets do not fit"
    )
    for name in ("_probA", "_probB"):
        part.must(is_array(part[name], "f", 1) and len(part[name]) in (0, pairs), f"its {name} does not fit")


def check_support_vectors(part: Part, vectors: Any, k: int, n: int) -> None:
    columns, weights = whole(part["n_features_in_"]), part["_dual_coef_"]
    if part["_sparse"]:
        fits = sp.issparse(vectors) and vectors.format == "csr" and vectors.shape[1] == columns
        part.must(fits and vectors.data.dtype == np.float64, "its support vectors are none")
        part.must(sp.issparse(weights) and weights.data.dtype == np.float64, "its coefficients are none")
        part.must(len(weights.data) == (k - 1) * n, "its coefficients do not fit its support vectors")
        return
    part.must(is_array(vectors, "f", 2) and vectors.dtype == np.float64, "its support vectors are none")
    part.must(vectors.shape[1] == columns or n == 0, "its support vectors do not fit its columns")
    part.must(
        is_array(weights, "f", 2) and weights.shape == (k - 1, n), "its coefficients do not fit its support vectors"
    )


# --- preprocessing


def check_spline(part: Part) -> None:
    knots, c, k = part["_t"], part["_c"], whole(part["k"])
    part.must(is_array(knots, "f", 1) and knots.dtype == np.float64 and np.isfinite(knots).all(), "its knots are none")
    part.must(
        (np.diff(knots) >= 0).all() and 0 <= k <= 10 and len(knots) >= 2 * k + 2, "its knots do not fit its degree"
    )
    part.must(isinstance(c, np.ndarray) and c.dtype == np.float64 and c.ndim in (1, 2), "its coefficients are none")
    part.must(len(c) >= len(knots) - k - 1 and whole(part["axis"]) == 0, "its coefficients do not fit its knots")


def check_spline_columns(part: Part) -> None:
    if part.get("bsplines_") is None:
        return
    splines = part["bsplines_"]
    part.must(
        isinstance(splines, list) and len(splines) == whole(part["n_features_in_"]),
        "its splines do not fit its columns",
    )
    part.must(all(isinstance(s, Part) and s.kind == "BSpline" for s in splines), "its splines are none")
    width = sum(len(s["_t"]) for s in splines)
    part.must(0 <= whole(part["n_features_out_"]) <= width, "it makes more columns than its splines")


def in_order(known: Any) -> bool:
    """Whether categories rise, NaN last; mixed ones are looked up by value and need no order."""
    if isinstance(known, list):
        return True
    if not is_array(known, "biufUS", 1):
        return False
    body = known[:-1] if known.dtype.kind == "f" and len(known) and np.isnan(known[-1]) else known
    return bool((body[:-1] < body[1:]).all())


def check_one_hot(part: Part) -> None:
    """Positions are computed from `_n_features_outs` and written into a matrix without a look."""
    if part.get("categories_") is None:
        return
    part.must(not part["_infrequent_enabled"], "it groups rare categories, which model files do not keep")
    part.must(all(in_order(known) for known in part["categories_"]), "its categories are not in order")
    sizes = [len(categories) for categories in part["categories_"]]
    drop = part["_drop_idx_after_grouping"]
    dropped = [None] * len(sizes) if drop is None else list(drop)
    part.must(len(dropped) == len(sizes), "its columns do not fit its categories")
    part.must(all(d is None or 0 <= whole(d) < n for d, n in zip(dropped, sizes)), "it drops a category it has not")
    wide = [n - (d is not None) for d, n in zip(dropped, sizes)]
    part.must([whole(n) for n in part["_n_features_outs"]] == wide, "its columns do not fit its categories")


# --- boosting with a library of its own


def check_booster(part: Part) -> None:
    check_lightgbm_text(part["_handle"])


def check_catboost(part: Part) -> None:
    if part.get("__model") is not None:
        check_catboost_bytes(part["__model"])


def check_lightgbm(part: Part) -> None:
    """Parameters reach its prediction as text: none may name a file or turn off its checks."""
    odd = [name for name in part["_other_params"] if any(word in name for word in LIGHTGBM_WORDS)]
    part.must(not odd, f"its parameter {odd[:1]} is not among those that model files keep")


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
