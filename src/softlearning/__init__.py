"""The best combination of algorithms for your data.

The way data goes, one line a module::

    tables       read a table; which column is what; the one gate for training and prediction
                 (cells, containers, reading: values, frames and files behind it)
    prepare      the views of a table that specialists ask for, fitted inside each fold
    library      the specialists, as tables of rows
    folds        who is held out when
    execution    run a flat list of tasks; limits; a failure is a value
                 (tasks, scheduler, plan, engines, pool, worker, shared, threads, progress, callbacks behind it)
    store        finished tasks on disk, told apart by fingerprint
    fitting      fit one specialist and take its predictions, checked
    crossfit     specialist x fold -> the out-of-fold tensor (row, specialist, class)
    calibration  one temperature a specialist
    weights      the point of the simplex that fits it best, with a certificate
    blend        refit what earned weight; predict with the team
    learned      what a fit leaves behind, and the tables read off it
    estimators   SoftClassifier and SoftRegressor: all of the above behind scikit-learn's interface
    insight      doubt, abstention, intervals, diversity, robustness, guarantees, nested evaluation
    report, persistence, bench, cli, serve: pages, files, the benchmark, the command, the server
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
