"""The libraries, as tables of rows.

A new specialist is a new row: a name, its family, the function that makes it, the view of the table it reads, and what
it is expected to cost. `classifiers(name)` and `regressors(name)` give the named libraries, `resolve` whatever a user
may pass as `library=`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from softlearning.data.messages import nearest
from softlearning.library import recipes
from softlearning.library.specialist import Library, Prototype, Shape, Specialist, as_rows

__all__ = [
    "Library",
    "Prototype",
    "Shape",
    "Specialist",
    "classifiers",
    "dummy_row",
    "every_row",
    "regressors",
    "resolve",
]

KERNEL_LIMIT = "the time of a kernel machine grows with the square of the rows"
CUBE = "the time of a Gaussian process grows with the cube of the rows"
SMALL_NETWORK: dict[str, Any] = {"layers": (64, 32), "batch": 32, "epochs": 200}
LARGE_NETWORK: dict[str, Any] = {"layers": (256, 128, 64), "batch": 256, "epochs": 300}

row = partial(Specialist, trusted=True)
flat = partial(row, piecewise_constant=True)

TREE_STACK = flat(
    "tree_stack",
    "stacker",
    recipes.tree_stack,
    needs="ordinal",
    level=2,
    cost=2,
    min_rows=1_000,
    reason="trees on predictions need rows to tell whom to trust where",
)

# fmt: off
CLASSIFIERS = (
    row("logistic",        "linear",        recipes.logistic,                        cost=1),
    row("logistic_strong", "linear",        partial(recipes.logistic, C=0.1),        cost=1),
    row("knn_5",           "instance",      partial(recipes.knn, k=5),               cost=1),
    row("knn_15",          "instance",      partial(recipes.knn, k=15),              cost=1),
    flat("decision_tree",  "tree",          recipes.decision_tree,  needs="ordinal", cost=2),
    flat("random_forest",  "tree",          recipes.random_forest,  needs="ordinal", cost=40),
    flat("extra_trees",    "tree",          recipes.extra_trees,    needs="ordinal", cost=20),
    flat("hist_gradient_boosting", "tree",  recipes.hist_gradient_boosting, needs="native", cost=50, sparse=False),
    flat("catboost",       "tree",          recipes.catboost,       needs="native",  cost=150, sparse=False),
    flat("adaboost",       "tree",          recipes.adaboost,       needs="ordinal", cost=15),
    row("svm_rbf",         "kernel",        recipes.svm_rbf,        max_rows=2_000, reason=KERNEL_LIMIT, cost=5),
    row("mlp_small",       "neural",        partial(recipes.mlp, **SMALL_NETWORK),         cost=30),
    row("mlp_large",       "neural",        partial(recipes.mlp, **LARGE_NETWORK),  cost=30),
    row("naive_bayes",     "complementary", recipes.naive_bayes,                     cost=0.2, sparse=False),
    row("spline_logistic", "complementary", recipes.spline,                          cost=4, sparse=False),
)

REGRESSORS = (
    row("ridge",           "linear",        recipes.ridge,                           cost=0.2),
    row("ridge_strong",    "linear",        partial(recipes.ridge, alpha=10.0),      cost=0.2),
    row("lasso",           "linear",        recipes.lasso,                           cost=0.2),
    row("elastic_net",     "linear",        recipes.elastic_net,                     cost=0.2),
    row("knn_5",           "instance",      partial(recipes.knn, k=5),               cost=1),
    row("knn_15",          "instance",      partial(recipes.knn, k=15),              cost=1),
    flat("decision_tree",  "tree",          recipes.decision_tree,  needs="ordinal", cost=2),
    flat("random_forest",  "tree",          recipes.random_forest,  needs="ordinal", cost=40),
    flat("extra_trees",    "tree",          recipes.extra_trees,    needs="ordinal", cost=40),
    flat("hist_gradient_boosting", "tree",  recipes.hist_gradient_boosting, needs="native", cost=15, sparse=False),
    flat("catboost",       "tree",          recipes.catboost,       needs="native",  cost=30, sparse=False),
    flat("adaboost",       "tree",          recipes.adaboost,       needs="ordinal", cost=15),
    row("svr_rbf",         "kernel",        recipes.svr_rbf,        max_rows=2_000, reason=KERNEL_LIMIT, cost=2),
    row("mlp_small",       "neural",        partial(recipes.mlp, **SMALL_NETWORK),         cost=80),
    row("mlp_large",       "neural",        partial(recipes.mlp, **LARGE_NETWORK), cost=120),
    row("spline_ridge",    "complementary", recipes.spline,                          cost=1, sparse=False),
)

EXTRA_CLASSIFIERS = (
    row("qda",             "complementary", recipes.qda,                             cost=0.5, sparse=False),
    row("nystroem",        "kernel",        recipes.nystroem,                        cost=5),
    row("quadratic",       "complementary", recipes.quadratic,                       cost=5, sparse=False),
    row("svm",             "kernel",        recipes.svm,            max_rows=10_000, reason=KERNEL_LIMIT, cost=10),
    flat("lightgbm",       "tree",          recipes.lightgbm,       needs="ordinal", cost=15),
    flat("catboost_coarse", "tree",         recipes.catboost_coarse, needs="native", cost=80, sparse=False),
    row("log_pool",        "stacker",       recipes.log_pool,       needs="", level=2, cost=1),
    row("logistic_stack",  "stacker",       recipes.logistic_stack, needs="", level=2, cost=1),
    TREE_STACK,
)

EXTRA_REGRESSORS = (
    row("ridge_cv",        "linear",        recipes.ridge_cv,                        cost=0.5),
    row("lasso_cv",        "linear",        recipes.lasso_cv,                        cost=1),
    row("elastic_net_cv",  "linear",        recipes.elastic_net_cv,                  cost=1),
    row("nystroem",        "kernel",        recipes.nystroem,                        cost=3),
    row("quadratic",       "complementary", recipes.quadratic,                       cost=2, sparse=False),
    row("gaussian_process", "kernel",       recipes.gaussian_process, max_rows=500, reason=CUBE, cost=20, sparse=False),
    row("svr",             "kernel",        partial(recipes.scaled_target, make=recipes.svr_rbf), max_rows=10_000,
        reason=KERNEL_LIMIT, cost=3),
    row("mlp_small_scaled", "neural",       partial(recipes.scaled_target, make=recipes.mlp, **SMALL_NETWORK), cost=80),
    row("mlp_large_scaled", "neural",      partial(recipes.scaled_target, make=recipes.mlp, **LARGE_NETWORK), cost=120),
    flat("lightgbm",       "tree",          recipes.lightgbm,       needs="ordinal", cost=6),
    flat("catboost_coarse", "tree",         recipes.catboost_coarse, needs="native", cost=20, sparse=False),
    row("nonnegative_stack", "stacker",     recipes.nonnegative_stack, needs="", level=2, reads="support",
        cost=0.2),
    row("signed_stack",    "stacker",       recipes.signed_stack,   needs="", level=2, cost=0.2),
    TREE_STACK,
)
# fmt: on

DUMMY = row("dummy", "baseline", recipes.dummy, piecewise_constant=True, cost=0.1)

PAPER = {"classification": Library(CLASSIFIERS), "regression": Library(REGRESSORS)}

EXTRA = {"classification": Library(EXTRA_CLASSIFIERS), "regression": Library(EXTRA_REGRESSORS)}

# Rows that earn their seconds in the study of defaults (docs/study.md), and the reason where it is not plain.
DEFAULT = {
    "classification": (
        "logistic",
        "knn_5",
        "knn_15",
        "decision_tree",  # finds rules that are exact, for next to no time
        "extra_trees",  # a random forest costs twice as much and adds nothing beside it
        "lightgbm",  # a third of the seconds of hist_gradient_boosting
        "catboost_coarse",  # a third of the seconds of catboost
        "svm",  # to 10,000 rows: the paper's limit of 2,000 costs accuracy for nothing
        "nystroem",
        "mlp_small",
        "mlp_large",
        "naive_bayes",
        "qda",  # the largest gain for the fewest seconds
        "quadratic",
        "spline_logistic",
        "dummy",
        "log_pool",
        "logistic_stack",  # better than the pool where labels are noisy
        "tree_stack",
    ),
    "regression": (
        "ridge_cv",
        "lasso_cv",
        "knn_5",
        "knn_15",
        "decision_tree",
        "extra_trees",
        "lightgbm",
        "catboost_coarse",
        "svr",
        "nystroem",
        "gaussian_process",
        "mlp_small_scaled",  # faster than on the plain target; the blend does not tell the two apart
        "mlp_large_scaled",
        "quadratic",
        "spline_ridge",
        "dummy",
        "signed_stack",  # subtracts what specialists share: up to 2 % of the loss on real tables
        "tree_stack",
    ),
}

FAST = {
    "classification": ("logistic", "knn_15", "decision_tree", "extra_trees", "naive_bayes", "spline_logistic"),
    "regression": ("ridge", "knn_15", "decision_tree", "extra_trees", "spline_ridge"),
}

NAMES = ("default", "paper", "fast")


def named(name: str, task: str) -> Library:
    """The library of that name for a task."""
    if name not in NAMES:
        raise ValueError(f"no library is called {name!r}; {nearest(name, NAMES)}")
    rows = {"default": DEFAULT[task], "paper": PAPER[task].names, "fast": FAST[task]}[name]
    return every_row(task)[rows]


def classifiers(name: str = "default") -> Library:
    return named(name, "classification")


def regressors(name: str = "default") -> Library:
    return named(name, "regression")


def every_row(task: str) -> Library:
    """All rows that a user may call by name."""
    return PAPER[task] + EXTRA[task] + DUMMY


def resolve(library, task: str) -> Library:
    """The Library meant by what a user passes: a name, a Library, or a list of names, rows, pairs and estimators."""
    if isinstance(library, str):
        return named(library, task)
    if isinstance(library, Library):
        chosen = library
    elif hasattr(library, "__iter__"):
        chosen = Library(tuple(as_rows(library, named=every_row(task))))
    else:
        raise TypeError(f"library is {library!r}; give a name ({', '.join(NAMES)}), a Library or a list of specialists")
    if not chosen.level(1):
        raise ValueError("the library is empty: it needs at least one specialist of level 1")
    for specialist in chosen:
        check_task(specialist, task)
    return chosen


def check_task(specialist: Specialist, task: str) -> None:
    """Refuse an estimator that says of itself that it solves another task: its predictions would be misread."""
    estimator = getattr(specialist.make, "estimator", None)
    tags = getattr(estimator, "__sklearn_tags__", lambda: None)()
    kind = getattr(tags, "estimator_type", None)
    wanted = "classifier" if task == "classification" else "regressor"
    if kind not in (None, wanted):
        what = f"specialist {specialist.name!r} is a {kind} ({type(estimator).__name__})"
        raise TypeError(f"{what}; {task} needs a {wanted}")


def dummy_row() -> Specialist:
    return DUMMY
