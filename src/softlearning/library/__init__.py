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
from softlearning.library.deep import available as torch_is_here
from softlearning.library.specialist import Cost, Library, Prototype, Shape, Specialist, as_rows

__all__ = ["Cost", "Library", "Prototype", "Shape", "Specialist", "classifiers", "dummy_row", "every_row"]
__all__ += ["regressors", "resolve"]

KERNEL_LIMIT = "the time of a kernel machine grows with the square of the rows"
WIDE = "its features are many times the columns, for all rows at once"
FEW_ROWS = "a stacker needs rows to tell whom to trust"
CUBE = "the time of a Gaussian process grows with the cube of the rows"
SMALL_NETWORK: dict[str, Any] = {"layers": (64, 32), "batch": 32, "epochs": 200}
LARGE_NETWORK: dict[str, Any] = {"layers": (256, 128, 64), "batch": 256, "epochs": 300}

row = partial(Specialist, trusted=True)
flat = partial(row, piecewise_constant=True)
native = partial(flat, family="tree", needs="native", sparse=False)
ordinal = partial(flat, family="tree", needs="ordinal")
pairs = partial(flat, family="tree", needs="pairs", sparse=False, sample_rows=300_000)
stacker = partial(row, family="stacker", needs="", level=2, reads="support", min_rows=1_000, prior=0.3, reason=FEW_ROWS)

# fmt: off
NEIGHBOURS_AND_TREES = (
    row("knn_5", "instance", partial(recipes.knn, k=5), cost=Cost(0.003, 1.6), sample_rows=20_000),
    row("knn_15", "instance", partial(recipes.knn, k=15), cost=Cost(0.003, 1.6), sample_rows=20_000),
    ordinal("decision_tree", make=recipes.decision_tree, cost=Cost(0.005, 1.1, 0.8)),
    ordinal("random_forest", make=recipes.random_forest, cost=Cost(0.4, 1.0, 0.4), sample_rows=50_000),
    ordinal("extra_trees", make=recipes.extra_trees, cost=Cost(0.25, 1.0, 0.4), sample_rows=50_000),
    native("hist_gradient_boosting", make=recipes.hist_gradient_boosting, cost=Cost(0.5, 0.8, 0.6, 1.0)),
    native("catboost", make=recipes.catboost, cost=Cost(0.8, 0.8, 0.8, 0.6)),
    ordinal("adaboost", make=recipes.adaboost, cost=Cost(0.2, 1.0, 0.8)),
)
MLPS = (
    row("mlp_small", "neural", partial(recipes.mlp, **SMALL_NETWORK), cost=Cost(0.6), sample_rows=100_000),
    row("mlp_large", "neural", partial(recipes.mlp, **LARGE_NETWORK), cost=Cost(0.5), sample_rows=100_000),
)

CLASSIFIERS = (
    row("logistic", "linear", recipes.logistic, cost=Cost(0.01, 0.8, 0.6, 0.8), sample_rows=200_000),
    row("logistic_strong", "linear", partial(recipes.logistic, C=0.1), cost=Cost(0.01, 0.8, 0.6, 0.8)),
    *NEIGHBOURS_AND_TREES,
    row("svm_rbf", "kernel", recipes.svm_rbf, max_rows=2_000, reason=KERNEL_LIMIT, cost=Cost(0.1, 2.0)),
    *MLPS,
    row("naive_bayes", "complementary", recipes.naive_bayes, cost=Cost(0.002), sparse=False),
    row("spline_logistic", "complementary", recipes.spline, cost=Cost(0.02, 0.8, 0.8, 0.8), sample_cells=1e7,
        sparse=False),
)

REGRESSORS = (
    row("ridge", "linear", recipes.ridge, cost=Cost(0.003)),
    row("ridge_strong", "linear", partial(recipes.ridge, alpha=10.0), cost=Cost(0.003)),
    row("lasso", "linear", recipes.lasso, cost=Cost(0.003)),
    row("elastic_net", "linear", recipes.elastic_net, cost=Cost(0.003)),
    *NEIGHBOURS_AND_TREES,
    row("svr_rbf", "kernel", recipes.svr_rbf, max_rows=2_000, reason=KERNEL_LIMIT, cost=Cost(0.04, 2.0)),
    *MLPS,
    row("spline_ridge", "complementary", recipes.spline, cost=Cost(0.01, 0.9, 1.0), sparse=False, sample_cells=1e7),
)

# What the paper does not have. Seconds and priors come from the tables of docs/real_tables.
OWN_CLASSIFIERS = (
    native("lightgbm", make=recipes.lightgbm, cost=Cost(0.15, 1.2, 0.5, 1.0, 20), prior=4),
    native("catboost_own", make=recipes.catboost_own, cost=Cost(0.4, 0.5, 0.95, 0.65), prior=7),
    ordinal("wide_trees", make=recipes.wide_trees, cost=Cost(0.3, 1.1, 0.4, 0.3), prior=7, sample_rows=200_000),
    pairs("lightgbm_pairs", make=recipes.lightgbm_pairs, cost=Cost(0.4, 1.1, 0.4, 1.0, 20), prior=4),
    row("network", "neural", recipes.network, cost=Cost(0.6, 0.7, 0.4, 0.1), prior=4, sample_rows=200_000,
        sparse=False),
    row("shared_networks", "neural", recipes.shared_networks, cost=Cost(3.0, 0.9, 0.2, 0.2), prior=2,
        sample_rows=100_000, sparse=False),
    row("svm", "kernel", recipes.svm, max_rows=3_000, reason=KERNEL_LIMIT, cost=Cost(0.15, 2.0, 0.4, 0.6), prior=1.5),
    row("quadratic", "complementary", recipes.quadratic, max_rows=20_000, reason=WIDE, cost=Cost(0.03, 1.1, 1.2, 1.0),
        sparse=False),
    row("qda", "complementary", recipes.qda, cost=Cost(0.005, 0.9, 1.0, 0.5), prior=0.5, sparse=False,
        sample_rows=200_000),
    row("nystroem", "kernel", recipes.nystroem, max_rows=20_000, reason=WIDE, cost=Cost(0.1, 1.0, 0.2, 0.8), prior=0.5),
    native("lightgbm_extra", make=recipes.lightgbm_extra, cost=Cost(0.5, 1.2, 0.4, 1.1, 20), prior=2),
    native("catboost_long", make=recipes.catboost_long, cost=Cost(3.0, 0.9, 0.6, 0.8), prior=4),
    stacker("log_pool", make=recipes.log_pool, cost=Cost(0.05, 1.0, 0.0, 1.0)),
    stacker("logistic_stack", make=recipes.logistic_stack, cost=Cost(0.05, 1.0, 0.0, 1.0), sample_cells=2e8),
    stacker("tree_stack", make=recipes.tree_stack, needs="ordinal", cost=Cost(0.1, 1.0, 0.5, 1.0),
            piecewise_constant=True, sample_cells=2e8),
)

OWN_REGRESSORS = (
    native("lightgbm", make=recipes.lightgbm, cost=Cost(0.2, 1.1, 0.5), prior=4),
    native("catboost_own", make=recipes.catboost_own, cost=Cost(0.3, 0.5, 0.9), prior=5),
    ordinal("wide_trees", make=recipes.wide_trees, cost=Cost(0.6, 1.1, 0.8), prior=7, sample_rows=200_000),
    pairs("lightgbm_pairs", make=recipes.lightgbm_pairs, cost=Cost(0.5, 1.1, 0.5), prior=4),
    row("network", "neural", recipes.network, cost=Cost(0.6, 0.7, 0.4), prior=4, sample_rows=200_000, sparse=False),
    row("shared_networks", "neural", recipes.shared_networks, cost=Cost(3.0, 0.9, 0.2, 0.2), prior=2,
        sample_rows=100_000, sparse=False),
    row("ridge_cv", "linear", recipes.ridge_cv, cost=Cost(0.005, 1.0, 1.0), prior=1.5, sample_rows=200_000),
    row("lasso_cv", "linear", recipes.lasso_cv, cost=Cost(0.05, 1.0, 1.0)),
    row("elastic_net_cv", "linear", recipes.elastic_net_cv, cost=Cost(0.05, 1.0, 1.0)),
    row("gaussian_process", "kernel", recipes.gaussian_process, max_rows=500, reason=CUBE, cost=Cost(2.0, 3.0), prior=4,
        sparse=False),
    row("svr", "kernel", partial(recipes.scaled_target, make=recipes.svr_rbf), max_rows=5_000, reason=KERNEL_LIMIT,
        cost=Cost(0.04, 2.0)),
    row("quadratic", "complementary", recipes.quadratic, max_rows=20_000, reason=WIDE, cost=Cost(0.01, 1.0, 1.5),
        sparse=False),
    row("nystroem", "kernel", recipes.nystroem, max_rows=3_000, reason=WIDE, cost=Cost(0.15, 1.2, 0.2)),
    native("lightgbm_extra", make=recipes.lightgbm_extra, cost=Cost(0.5, 1.1, 0.5), prior=2),
    native("catboost_long", make=recipes.catboost_long, cost=Cost(2.0, 0.8, 0.7), prior=4),
    stacker("nonnegative_stack", make=recipes.nonnegative_stack, cost=0.01),
    stacker("signed_stack", make=recipes.signed_stack, cost=0.01),
    stacker("tree_stack", make=recipes.tree_stack, needs="ordinal", cost=Cost(0.1, 1.0, 0.5), sample_cells=2e8,
            piecewise_constant=True),
)
# fmt: on

DUMMY = row("dummy", "baseline", recipes.dummy, piecewise_constant=True, cost=Cost(0.001), prior=0.2)

PAPER = {"classification": Library(CLASSIFIERS), "regression": Library(REGRESSORS)}

OWN = {"classification": Library(OWN_CLASSIFIERS), "regression": Library(OWN_REGRESSORS)}

# In the order in which they are begun under a limit: strength per second, new kinds early.
DEFAULT: dict[str, tuple[str, ...]] = {
    "classification": (
        *("lightgbm", "logistic", "catboost_own", "wide_trees", "lightgbm_pairs", "spline_logistic", "network"),
        *("knn_15", "svm", "quadratic", "qda", "dummy", "log_pool", "logistic_stack", "tree_stack"),
    ),
    "regression": (
        *("lightgbm", "ridge_cv", "catboost_own", "wide_trees", "lightgbm_pairs", "spline_ridge", "network"),
        *("gaussian_process", "svr", "quadratic", "knn_5", "nystroem", "dummy", "signed_stack", "tree_stack"),
    ),
}

BEST: dict[str, tuple[str, ...]] = {
    "classification": (
        *DEFAULT["classification"],
        *("catboost_long", "lightgbm_extra", "random_forest", "nystroem", "shared_networks"),
    ),
    "regression": (
        *DEFAULT["regression"],
        *("catboost_long", "lightgbm_extra", "random_forest", "lasso_cv", "shared_networks"),
    ),
}

FAST: dict[str, tuple[str, ...]] = {
    "classification": ("lightgbm", "logistic", "wide_trees", "spline_logistic", "knn_15", "dummy"),
    "regression": ("lightgbm", "ridge_cv", "wide_trees", "spline_ridge", "knn_5", "dummy"),
}

NAMES = ("default", "best", "fast", "paper")


def named(name: str, task: str) -> Library:
    """The library of that name for a task."""
    if name not in NAMES:
        raise ValueError(f"no library is called {name!r}; {nearest(name, NAMES)}")
    tables = {"default": DEFAULT, "best": BEST, "fast": FAST}
    library = every_row(task)[PAPER[task].names if name == "paper" else tables[name][task]]
    return library if torch_is_here() or "shared_networks" not in library else library - "shared_networks"


def classifiers(name: str = "default") -> Library:
    return named(name, "classification")


def regressors(name: str = "default") -> Library:
    return named(name, "regression")


def every_row(task: str) -> Library:
    """All rows that a user may call by name."""
    return PAPER[task] + OWN[task] + DUMMY


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
