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

from softlearning.storage import native
from softlearning.storage.container import ModelFileError
from softlearning.storage.trial import NativeModel, catboost_model, lightgbm_model

THREADS = {"n_jobs", "num_threads", "num_thread", "nthread", "nthreads", "thread_count"}
COUNTS = ("n_classes_", "n_outputs_", "n_features_out_", "n_features_in_", "_n_features", "n_trees_per_iteration_")
MOST_OUTPUTS = 100_000  # columns, classes or outputs that a single number may announce
F8, I4 = np.dtype(np.float64), np.dtype(np.int32)


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

    def array(self, key: str, kinds: str, shape: tuple, dtype: Any = None) -> np.ndarray:
        """An attribute that is an array of a type and a shape; None stands for any length."""
        value = self[key]
        self.must(
            fits(value, kinds, shape, dtype), f"its attribute {key} is not an array of the type and shape it needs"
        )
        return value

    def number(self, key: str) -> int:
        return whole(self[key])

    def inner(self, key: str, *kinds: str) -> Part:
        """An attribute that is an object of one of these classes."""
        value = self[key]
        self.must(is_part(value, *kinds), f"its {key} is not a {' or '.join(kinds)}")
        return value

    @property
    def kind(self) -> str:
        return self.name.rsplit(".", 1)[-1]


def fits(value: Any, kinds: str, shape: tuple, dtype: Any = None) -> bool:
    """Whether a value is an array of one of these kinds (or of just this dtype) and of this shape."""
    if not isinstance(value, np.ndarray) or value.ndim != len(shape):
        return False
    alike = value.dtype == dtype if dtype is not None else value.dtype.kind in kinds
    return alike and all(want is None or size == want for size, want in zip(value.shape, shape))


def is_part(value: Any, *kinds: str) -> bool:
    return isinstance(value, Part) and value.kind in kinds


def whole(value: Any) -> int:
    """A whole number, as Python or numpy store it; -1 for anything else."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu":
        return int(value)
    return value if type(value) is int else -1


# --- every object


def check_attributes(part: Part, cls: type) -> None:
    """No attribute hides one of the class (a method could be replaced by it), no number asks for absurd resources."""
    if not isinstance(part.state, dict) or part.kind == "Tree":
        return
    hidden = [name for name in part.state if not name.isidentifier() or hasattr(cls, name)]
    part.must(not hidden, f"it stores {hidden[:1]}, which belongs to the class")
    for name, value in part.state.items():
        if name in COUNTS and isinstance(value, int):
            least = -1 if part.kind in LIGHTGBM and part.get("_Booster") is None else 0  # one that is not fitted
            part.must(least <= value <= 100 * MOST_OUTPUTS, f"{name} is {value!r}")
        for inner in parts_within(value):
            kinds, attribute = OWNERS.get(inner.kind, ((part.kind,), name))
            part.must(part.kind in kinds and name == attribute, f"its {name} is a bare {inner.kind}")


def check_free(value: Any) -> None:
    """What trusts its owner with its input does not stand by itself."""
    for inner in parts_within(value):
        inner.must(inner.kind not in OWNERS, "it stands by itself")


def parts_within(value: Any) -> Iterator[Part]:
    """The objects in a value, through lists, tuples and dicts but not through other objects."""
    if isinstance(value, Part):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from parts_within(item)


TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
GRADIENT = ("GradientBoostingClassifier", "GradientBoostingRegressor")
HIST = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")
NEIGHBOURS = ("KNeighborsClassifier", "KNeighborsRegressor")
METRICS = ("EuclideanDistance64", "ManhattanDistance64")
LIGHTGBM = ("LGBMClassifier", "LGBMRegressor")
CATBOOST = ("CatBoostClassifier", "CatBoostRegressor")
OWNERS: dict[str, tuple[tuple[str, ...], str]] = {  # an object that trusts its owner -> the one place for it
    "Tree": (TREES, "tree_"),
    "TreePredictor": (HIST, "_predictors"),
    "_BinMapper": (HIST, "_bin_mapper"),
    "KDTree": (NEIGHBOURS, "_tree"),
    "BallTree": (NEIGHBOURS, "_tree"),
    **dict.fromkeys(METRICS, ((), "")),  # within a search tree, whose guard looks at it
    "BSpline": (("SplineTransformer",), "bsplines_"),
    "Booster": (LIGHTGBM, "_Booster"),
}


# --- trees


def check_children(part: Part, left: np.ndarray, right: np.ndarray, inner: np.ndarray) -> int:
    """Children come after their parent and exist, and every node is reached once; the depth of the tree."""
    index = np.flatnonzero(inner)
    children = np.concatenate([left[index], right[index]]).astype(np.int64)
    part.must(len(left) > 0 and (children > np.tile(index, 2)).all(), "a child is not a later node")
    part.must(np.array_equal(np.sort(children), np.arange(1, len(left))), "a node does not have one parent")
    depth, level = 0, np.zeros(1, dtype=np.int64)
    while len(level := level[inner[level]]):
        level, depth = np.concatenate([left[level], right[level]]).astype(np.int64), depth + 1
    return depth


def check_tree(part: Part) -> None:
    """sklearn.tree._tree.Tree: made by (features, classes of each output, outputs)."""
    part.must(len(part.args) == 3, "it is made in an unknown way")
    features, classes, outputs = whole(part.args[0]), part.args[1], whole(part.args[2])
    part.must(1 <= outputs <= MOST_OUTPUTS and fits(classes, "iu", (outputs,)), "its outputs do not fit")
    part.must((classes >= 1).all() and (classes <= MOST_OUTPUTS).all(), "its classes do not fit")
    nodes = part.array("nodes", "", (None,), NODE_DTYPE)
    part.array("values", "", (len(nodes), outputs, int(classes.max())), F8)
    part.must(part.number("node_count") == len(nodes), "it does not have as many nodes as it says")
    left, right = nodes["left_child"], nodes["right_child"]
    inner = left != -1
    part.must((right[~inner] == -1).all(), "a leaf has a child")
    feature = nodes["feature"][inner]
    part.must((feature >= 0).all() and (feature < features).all(), "a node asks for a column that is not there")
    part.must(part.number("max_depth") == check_children(part, left, right, inner), "it is not as deep as it says")


def check_decision_tree(part: Part) -> None:
    tree = part.inner("tree_", "Tree")
    part.must(whole(tree.args[0]) == part.number("n_features_in_"), "its columns do not fit its tree")
    part.must(whole(tree.args[2]) == part.number("n_outputs_"), "its outputs do not fit its tree")


def check_gradient_boosting(part: Part) -> None:
    """The stages are read by compiled code that takes the trees as they are."""
    stages, width, features = part["estimators_"], part.number("n_trees_per_iteration_"), part.number("n_features_in_")
    part.must(isinstance(stages, list) and all(len(stage) == width for stage in stages), "its stages do not fit")
    for tree in (tree for stage in stages for tree in stage):
        part.must(is_part(tree, "DecisionTreeRegressor"), "a stage is not a tree")
        features_, classes, outputs = tree.inner("tree_", "Tree").args
        one = whole(features_) == features and whole(outputs) == 1 and int(classes.max()) == 1
        part.must(one, "a tree does not fit its columns")
    if part["init_"] == "zero":
        return
    first = part.inner("init_", "DummyClassifier", "DummyRegressor")
    if first.kind == "DummyRegressor":
        part.must(width == 1 and fits(first["constant_"], "f", (1, 1)), "its first guess does not fit")
    else:
        prior = fits(first["class_prior_"], "f", (max(width, 2),)) and first["strategy"] == "prior"
        part.must(prior, "its first guess does not fit")


def check_hist_boosting(part: Part) -> None:
    features, mapper = part.number("n_features_in_"), part.inner("_bin_mapper", "_BinMapper")
    part.must(not part.get("_in_fit"), "it is in the middle of training")
    categorical = mapper.array("is_categorical_", "bu", (features,)).astype(bool)
    thresholds = mapper["bin_thresholds_"]
    part.must(isinstance(thresholds, list) and len(thresholds) == features, "its bins do not fit its columns")
    for known in (thresholds[j] for j in np.flatnonzero(categorical)):  # categories are bits of a set of 256
        part.must(fits(known, "fiu", (None,)) and ((known >= 0) & (known < 256)).all(), "a category is out of range")
    check_preprocessor(part, features)
    part.must(isinstance(part["_predictors"], list), "its trees are not a list")
    for tree in (tree for stage in part["_predictors"] for tree in stage):
        part.must(is_part(tree, "TreePredictor"), "a stage is not a tree")
        check_predictor(tree, categorical)


def check_predictor(part: Part, categorical: np.ndarray) -> None:
    nodes = part.array("nodes", "", (None,), PREDICTOR_RECORD_DTYPE)
    sets = part.array("raw_left_cat_bitsets", "", (None, 8), np.dtype(np.uint32))
    inner = nodes["is_leaf"] == 0
    feature = nodes["feature_idx"][inner]
    part.must(((feature >= 0) & (feature < len(categorical))).all(), "a node asks for a column that is not there")
    asks = nodes[inner & (nodes["is_categorical"] != 0)]
    part.must((asks["bitset_idx"] < len(sets)).all(), "a node asks for categories that are not there")
    part.must(categorical[asks["feature_idx"]].all(), "a node takes a number for a category")
    check_children(part, nodes["left"].astype(np.int64), nodes["right"].astype(np.int64), inner)


def check_preprocessor(part: Part, features: int) -> None:
    """Where columns are reordered before the trees, as many must come out as went in."""
    if part["_preprocessor"] is None:
        return
    encoder = part.inner("_preprocessor", "ColumnTransformer")
    kinds = {"encoder": "OrdinalEncoder", "numerical": "FunctionTransformer"}
    columns = encoder["_transformer_to_input_indices"]
    taken = sorted(whole(j) for name in kinds for j in columns[name])
    part.must(taken == list(range(features)), "its encoder does not keep the columns")
    for name, step, chosen in encoder["transformers_"]:
        if name == "remainder":
            part.must(step == "drop" and not np.any(chosen), "its encoder adds columns")
            continue
        part.must(name in kinds and is_part(step, kinds[name]), "its encoder is an unknown one")
        mask = np.isin(np.arange(features), columns[name])
        part.must(fits(chosen, "b", (features,)) and (chosen == mask).all(), "its encoder does not keep the columns")
        known = name != "numerical" or (is_part(step["func"], "check_array") and not step["func"].args)
        part.must(known, "its encoder is an unknown one")


# --- neighbours


def check_neighbour_tree(part: Part) -> None:
    """KDTree and BallTree: a full binary tree in level order over a permutation of the rows."""
    part.must(isinstance(part.state, tuple) and len(part.state) == 13, "its state is an unknown one")
    data, order, nodes, bounds, _, levels, count = part.state[:7]
    metric, weight = part.state[11:]
    part.must(fits(data, "", (None, None), F8) and data.size > 0, "its rows are not numbers")
    rows, columns = data.shape
    part.must(fits(order, "i", (rows,)) and (np.sort(order) == np.arange(rows)).all(), "its rows are not in order")
    part.must(isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype.names is not None, "it has no nodes")
    part.must(0 < whole(levels) < 40 and whole(count) == len(nodes) == 2 ** whole(levels) - 1, "its levels do not fit")
    sides = 2 if part.kind == "KDTree" else 1
    part.must(fits(bounds, "", (sides, len(nodes), columns), F8), "its bounds do not fit")
    start, end = nodes["idx_start"], nodes["idx_end"]
    part.must(((start >= 0) & (start <= end) & (end <= rows)).all(), "a node has rows that are not there")
    part.must((nodes["is_leaf"][len(nodes) // 2 :] != 0).all(), "a node of the last level is not a leaf")
    part.must(is_part(metric, *METRICS) and weight is None, "its distance is an unknown one")


def check_metric(part: Part) -> None:
    part.must(isinstance(part.state, tuple) and len(part.state) == 3, "its state is an unknown one")
    p, vector, matrix = part.state
    part.must(type(p) is float and fits(vector, "f", (None,)) and fits(matrix, "f", (None, None)), "its state is odd")


def check_neighbours(part: Part) -> None:
    known, rows, columns = part["_fit_X"], part.number("n_samples_fit_"), part.number("n_features_in_")
    part.must(sp.issparse(known) or fits(known, "f", (None, None)), "its rows are not numbers")
    part.must(known.shape == (rows, columns), "its rows do not fit its columns")
    part.must(1 <= part.number("n_neighbors") <= rows, "it asks for more neighbours than there are")
    metrics = ("euclidean", "manhattan", "minkowski", "cosine", "l1", "l2", "cityblock")
    plain = not part.get("metric_params") and set(part["effective_metric_params_"]) <= {"p"}
    plain = plain and all(part[name] in metrics for name in ("metric", "effective_metric_"))
    part.must(plain, "its distance is an unknown one")
    part.must(part["weights"] in ("uniform", "distance"), "its weights are unknown ones")
    tree = part["_tree"]
    part.must(tree is None or tree.state[0].shape == known.shape, "its tree does not fit its rows")
    target = part["_y"]
    part.must(isinstance(target, np.ndarray) and len(target) == rows, "its targets do not fit its rows")
    if "classes_" in part.state:
        part.must(fits(target, "i", (rows,)), "its labels are not numbers")
        part.must(((target >= 0) & (target < len(part["classes_"]))).all(), "a label is not among its classes")


# --- support vectors


def check_libsvm(part: Part) -> None:
    """The shapes that libsvm takes for granted; k classes need k(k-1)/2 offsets and k-1 rows of coefficients."""
    part.must(part["kernel"] in ("linear", "poly", "rbf", "sigmoid"), "its kernel is an unknown one")
    classifies = part.kind.endswith("SVC")
    k, n = len(part["classes_"]) if classifies else 2, part["support_vectors_"].shape[0]
    part.must(k >= 2, "it has fewer than two classes")
    counts = part.array("_n_support", "", (k,), I4)
    total = int(counts.sum(dtype=np.int64)) if classifies else int(counts[0])  # a regressor repeats it
    part.must((counts >= 0).all() and total == n, "its support vectors do not fit its classes")
    support = part.array("support_", "", (None if part.get("_sparse") else n,), I4)
    part.must((support >= 0).all(), "its support vectors are not numbered")
    check_support_vectors(part, k, n)
    pairs = k * (k - 1) // 2
    part.array("_intercept_", "", (pairs,), F8)
    for name in ("_probA", "_probB"):
        part.must(fits(part[name], "f", (None,)) and len(part[name]) in (0, pairs), f"its {name} does not fit")


def check_support_vectors(part: Part, k: int, n: int) -> None:
    columns, vectors, weights = part.number("n_features_in_"), part["support_vectors_"], part["_dual_coef_"]
    if part["_sparse"]:
        both = sp.issparse(vectors) and sp.issparse(weights) and vectors.data.dtype == weights.data.dtype == F8
        part.must(both and vectors.format == "csr" and vectors.shape[1] == columns, "its support vectors do not fit")
        part.must(len(weights.data) == (k - 1) * n, "its coefficients do not fit its support vectors")
        return
    part.array("support_vectors_", "", (n, columns if n else None), F8)
    part.array("_dual_coef_", "f", (k - 1, n))


# --- preprocessing


def check_spline(part: Part) -> None:
    knots, c, k = part.array("_t", "", (None,), F8), part["_c"], part.number("k")
    part.must(np.isfinite(knots).all() and (np.diff(knots) >= 0).all(), "its knots are not in order")
    part.must(0 <= k <= 10 and len(knots) >= 2 * k + 2, "its knots do not fit its degree")
    part.must(isinstance(c, np.ndarray) and c.dtype == F8 and c.ndim in (1, 2), "its coefficients are not numbers")
    part.must(len(c) >= len(knots) - k - 1 and part.number("axis") == 0, "its coefficients do not fit its knots")


def check_spline_columns(part: Part) -> None:
    splines = part["bsplines_"]
    alike = isinstance(splines, list) and all(is_part(s, "BSpline") for s in splines)
    part.must(alike and len(splines) == part.number("n_features_in_"), "its splines do not fit its columns")
    width = sum(len(s["_t"]) for s in splines)
    part.must(0 <= part.number("n_features_out_") <= width, "it makes more columns than its splines")


def in_order(known: Any) -> bool:
    """Whether categories rise, NaN last; mixed ones are looked up by value and need no order."""
    if isinstance(known, list):
        return True
    if not fits(known, "biufUS", (None,)):
        return False
    body = known[:-1] if known.dtype.kind == "f" and len(known) and np.isnan(known[-1]) else known
    return bool((body[:-1] < body[1:]).all())


def check_one_hot(part: Part) -> None:
    """Positions are computed from `_n_features_outs` and written into a matrix without a look."""
    part.must(not part["_infrequent_enabled"], "it groups rare categories, which model files do not keep")
    part.must(all(in_order(known) for known in part["categories_"]), "its categories are not in order")
    sizes = [len(categories) for categories in part["categories_"]]
    drop = part["_drop_idx_after_grouping"]
    dropped = [None] * len(sizes) if drop is None else list(drop)
    part.must(len(dropped) == len(sizes), "its columns do not fit its categories")
    part.must(all(d is None or 0 <= whole(d) < n for d, n in zip(dropped, sizes)), "it drops a category it has not")
    wide = [n - (d is not None) for d, n in zip(dropped, sizes)]
    part.must([whole(n) for n in part["_n_features_outs"]] == wide, "its columns do not fit its categories")


TOKENS = (r"(?u)\b\w\w+\b", r"(?u)\b\w+\b")


def check_words(part: Part) -> None:
    """Positions of words become columns of a sparse matrix without a look; a pattern could run for hours.

    Cells are the text itself, never the name of a file to read.
    """
    part.must(part["input"] == "content", "it reads files instead of cells")
    part.must(part["analyzer"] in ("word", "char", "char_wb"), "it reads text in an unknown way")
    part.must(part["token_pattern"] in TOKENS, "it reads text by a pattern of its own")
    part.must(all(1 <= whole(n) <= 20 for n in part["ngram_range"]), "its n-grams are too long")
    if part.kind == "HashingVectorizer":
        part.must(1 <= part.number("n_features") <= 1 << 24, "it has too many columns")
    elif part.get("vocabulary_") is not None:
        places = sorted(whole(place) for place in part["vocabulary_"].values())
        part.must(places == list(range(len(places))), "its words are not numbered")


# --- boosting with a library of its own


def check_catboost(part: Part) -> None:
    for name, value in part.state.items():
        if not name.startswith("_"):
            native.check_parameter("CatBoost", name, value, native.CATBOOST_WORD)
    if part.get("__model") is not None:
        native.check_catboost_bytes(part["__model"])


def lightgbm_params(part: Part) -> dict[str, Any]:
    """What reaches its prediction as one text, split at blanks."""
    public = {name: value for name, value in part.state.items() if not name.startswith("_") and name != "fitted_"}
    return {**public, **part["_other_params"], "_objective": part.get("_objective")}


def check_lightgbm(part: Part) -> None:
    check_lightgbm_params(part, lightgbm_params(part))


def check_booster(part: Part) -> None:
    check_lightgbm_params(part, part["params"])
    part.must(-1 <= part.number("best_iteration") < 2**31, "its best iteration is absurd")
    native.check_lightgbm_text(part["_handle"])


def check_lightgbm_params(part: Part, params: dict[str, Any]) -> None:
    """Names are from a list, values are plain."""
    for name, value in params.items():
        known = name in native.LIGHTGBM_NAMES
        part.must(known, f"its parameter {name[:50]!r} is not among those that model files keep")
        native.check_parameter("LightGBM", name, value, native.LIGHTGBM_WORD)


def native_model(part: Part) -> list[NativeModel]:
    """What a library of its own will open, if this is such a part."""
    if part.kind in CATBOOST and part.get("__model") is not None:
        return [catboost_model(part["__model"])]
    if part.kind in LIGHTGBM and part.get("_Booster") is not None:
        return [lightgbm_model(part["_Booster"]["_handle"], lightgbm_params(part))]
    return []


GUARDS: dict[str, tuple[Callable[[Part], None], str | None]] = {  # a check, and what only a fitted one has
    "Tree": (check_tree, None),
    **dict.fromkeys(TREES, (check_decision_tree, "tree_")),
    **dict.fromkeys(GRADIENT, (check_gradient_boosting, "estimators_")),
    **dict.fromkeys(HIST, (check_hist_boosting, "_predictors")),
    **dict.fromkeys(("KDTree", "BallTree"), (check_neighbour_tree, None)),
    **dict.fromkeys(METRICS, (check_metric, None)),
    **dict.fromkeys(NEIGHBOURS, (check_neighbours, "_fit_X")),
    **dict.fromkeys(("SVC", "NuSVC", "SVR", "NuSVR"), (check_libsvm, "support_")),
    "BSpline": (check_spline, None),
    "SplineTransformer": (check_spline_columns, "bsplines_"),
    "OneHotEncoder": (check_one_hot, "categories_"),
    **dict.fromkeys(("CountVectorizer", "HashingVectorizer", "TfidfVectorizer"), (check_words, None)),
    **dict.fromkeys(CATBOOST, (check_catboost, None)),
    **dict.fromkeys(LIGHTGBM, (check_lightgbm, None)),
    "Booster": (check_booster, None),
}


def check(part: Part) -> None:
    """What the table has for this class; one that is not fitted holds nothing to check."""
    guard, fitted = GUARDS.get(part.kind, (lambda part: None, None))
    if fitted is None or part.get(fitted) is not None:
        guard(part)
