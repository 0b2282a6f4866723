"""The best combination of algorithms for your data.

    table --> data --> folds --> tasks (specialist x fold) --> out-of-fold tensor (row, specialist, class)
                                                                     |
             report <-- uncertainty <-- ensemble <-- refit <-- weights (a point of the simplex)

The folders are the layers, each importing only from those above it::

    weights      convex problems on the simplex, their solvers and certificates, the table of rules
    uncertainty  disagreement, calibration, selective answers, conformal intervals and sets, diversity
    data         what a table is: inputs, column types, schema, the check of every cell, files, views for specialists
    library      what a specialist is; the libraries as tables of rows; learners and stackers
    execution    where work runs: tasks, plan, process pool, engines, shared arrays, checkpoint, progress
    method       the algorithm: folds, crossfit, level 2, ensemble, the record of what was learnt
    evaluation   metrics with intervals, nested cross-validation, importance of columns on held-out rows
    storage      save and load without pickle
    report       summarise, draw, render one self-contained page
    estimators   SoftClassifier and SoftRegressor: validation and the calls of the method
    sharing      a model as a card, an ONNX graph, a run of MLflow, a nuisance estimator of causal methods
    demo, serve, cli
"""

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "SoftClassifier": "softlearning.estimators",
    "SoftRegressor": "softlearning.estimators",
    "Specialist": "softlearning.library",
    "Library": "softlearning.library",
    "load": "softlearning.estimators",
    "evaluate": "softlearning.evaluation",
}
__all__ = list(_HOME)


def __getattr__(name: str):
    """Public names are imported when first used, so that the command answers before scikit-learn is loaded."""
    if name not in _HOME:
        raise AttributeError(f"module 'softlearning' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
