"""Train one system on the rows of a folder and write its predictions there.

    python adapters.py SYSTEM FOLDER

Run by path, in whatever environment has the system: nothing but pandas and the system itself is imported here. The
folder holds `question.json`, `train.parquet` (the target is its last column) and `test.parquet` (which has no target);
`answer.npz` and `answer.json` are written beside them. Seconds are wall time around fit and around predict alone.
"""

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# -- columns as the systems want them ----------------------------------------------------------------------------------


def columns_of(X, *types):
    return list(X.select_dtypes(include=list(types)).columns)


def dates_as_numbers(X):
    """Seconds since 1970; a missing date is NaN."""
    dates = columns_of(X, "datetime", "datetimetz")
    seconds = {name: (X[name] - pd.Timestamp(0, tz=X[name].dt.tz)).dt.total_seconds() for name in dates}
    return X.assign(**seconds)


def words_of(X):
    """The names of columns of categories or strings."""
    return columns_of(X, "category", "string", "object")


def levels(X, train):
    """Words as categories that the training rows have; others, and what is missing, are missing."""
    X = dates_as_numbers(X)
    return X.assign(**{name: pd.Categorical(X[name], pd.unique(train[name].dropna())) for name in words_of(train)})


def plain_names(X):
    """LightGBM refuses some characters in the names of columns."""
    return X.set_axis([f"column_{j}" for j in range(X.shape[1])], axis=1)


# -- the systems: each fits and returns (model, predict, classes) ------------------------------------------------------


def predicting(model, ask, prepare=lambda X: X):
    """Predict with a model of scikit-learn's interface, after preparing the columns."""
    if ask["task"] == "regression":
        return model, lambda X: model.predict(prepare(X)), None
    return model, lambda X: model.predict_proba(prepare(X)), model.classes_


def softlearning(X, y, ask, **options):
    from softlearning import SoftClassifier, SoftRegressor

    kind = SoftClassifier if ask["task"] == "classification" else SoftRegressor
    options = {"time_limit": ask["seconds"], "n_jobs": ask["cores"], "random_state": ask["seed"]} | options
    return predicting(kind(**options).fit(X, y), ask)


def catboost(X, y, ask):
    """Defaults; words as categorical features with missing ones as a level of their own."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    words = words_of(X)
    filled = lambda X: {name: X[name].astype(object).where(X[name].notna(), "missing").astype(str) for name in words}
    prepare = lambda X: dates_as_numbers(X).assign(**filled(X))
    kind = CatBoostClassifier if ask["task"] == "classification" else CatBoostRegressor
    model = kind(thread_count=ask["cores"], verbose=0, allow_writing_files=False)
    return predicting(model.fit(prepare(X), y, cat_features=words), ask, prepare)


def lightgbm(X, y, ask):
    """Defaults; categories are native."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    prepare = lambda table: plain_names(levels(table, X))
    kind = LGBMClassifier if ask["task"] == "classification" else LGBMRegressor
    return predicting(kind(n_jobs=ask["cores"], verbosity=-1).fit(prepare(X), y), ask, prepare)


def histgb(X, y, ask):
    """Defaults; categories are native up to the 255 levels that it takes, then their numbers."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    many = [name for name in words_of(X) if X[name].nunique() > 255]
    codes = lambda table: {name: table[name].cat.codes.astype(float).where(table[name].notna()) for name in many}
    prepare = lambda table: (known := levels(table, X)).assign(**codes(known))
    kind = HistGradientBoostingClassifier if ask["task"] == "classification" else HistGradientBoostingRegressor
    return predicting(kind().fit(prepare(X), y), ask, prepare)


def autogluon(X, y, ask, **options):
    """TabularPredictor, asked to mind the loss that it is judged by."""
    from autogluon.tabular import TabularPredictor

    classes = pd.unique(y)
    kind = "regression" if ask["task"] == "regression" else "binary" if len(classes) == 2 else "multiclass"
    metric = "root_mean_squared_error" if kind == "regression" else "log_loss"
    predictor = TabularPredictor(label=y.name, problem_type=kind, eval_metric=metric, path="model", verbosity=0)
    predictor.fit(pd.concat([X, y], axis=1), time_limit=ask["seconds"], num_cpus=ask["cores"], **options)
    if kind == "regression":
        return predictor, predictor.predict, None
    return predictor, predictor.predict_proba, predictor.class_labels


def flaml(X, y, ask):
    """AutoML, asked to mind the loss that it is judged by; it reads strings as objects."""
    from flaml import AutoML

    prepare = lambda table: table.astype(dict.fromkeys(columns_of(table, "string"), object))
    model, metric = AutoML(), "log_loss" if ask["task"] == "classification" else "mse"
    settings = {"task": ask["task"], "metric": metric, "time_budget": ask["seconds"], "n_jobs": ask["cores"]}
    model.fit(prepare(X), y, seed=ask["seed"], verbose=0, **settings)
    return predicting(model, ask, prepare)


def h2o(X, y, ask):
    """H2OAutoML, asked to mind the loss that it is judged by; it needs Java."""
    import h2o as server
    from h2o.automl import H2OAutoML

    server.init(nthreads=ask["cores"], verbose=False)
    server.no_progress()
    words = words_of(X)
    types = dict.fromkeys(words, "enum") | ({y.name: "enum"} if ask["task"] == "classification" else {})
    known = lambda types, table: {name: kind for name, kind in types.items() if name in table}
    send = lambda table: server.H2OFrame(dates_as_numbers(table), column_types=known(types, table))
    metric = "logloss" if ask["task"] == "classification" else "RMSE"
    model = H2OAutoML(max_runtime_secs=ask["seconds"], sort_metric=metric, seed=ask["seed"])
    train = send(pd.concat([X, y], axis=1))
    model.train(y=y.name, training_frame=train)
    back = lambda table: model.leader.predict(send(table)).as_data_frame()
    if ask["task"] == "regression":
        return None, lambda table: back(table)["predict"], None
    return None, lambda table: back(table).iloc[:, 1:], train[y.name].levels()[0]


# name: (function, its package, options)
SYSTEMS: dict[str, tuple[Callable, str, dict[str, Any]]] = {
    "softlearning": (softlearning, "softlearning", {}),
    "softlearning-nolimit": (softlearning, "softlearning", {"time_limit": None}),
    "softlearning-fast": (softlearning, "softlearning", {"library": "fast"}),
    "softlearning-best": (softlearning, "softlearning", {"library": "best"}),
    "catboost": (catboost, "catboost", {}),
    "lightgbm": (lightgbm, "lightgbm", {}),
    "histgb": (histgb, "scikit-learn", {}),
    "autogluon-medium": (autogluon, "autogluon.tabular", {"presets": "medium_quality"}),
    "autogluon-best": (autogluon, "autogluon.tabular", {"presets": "best_quality"}),
    "flaml": (flaml, "flaml", {}),
    "h2o": (h2o, "h2o", {}),
    "AutoGluon": (autogluon, "autogluon.tabular", {}),  # these two names are those of the paper's suite
    "FLAML": (flaml, "flaml", {}),
}


def release(package):
    """The package's version; for a checkout of softlearning also its commit, with a + where files were changed."""
    name = f"{package} {version(package)}"
    if package != "softlearning":
        return name
    import softlearning

    git = ["git", "-C", str(Path(softlearning.__file__).parent)]
    said = lambda *words: subprocess.run([*git, *words], capture_output=True, text=True).stdout.strip()
    try:
        commit = said("ls-files", "__init__.py") and said("rev-parse", "--short", "HEAD")
        return f"{name} ({commit}{'+' if said('status', '--porcelain', '.') else ''})" if commit else name
    except OSError:
        return name


def size_of(model):
    """Bytes of the model on disk, as its own system saves it or as a pickle; None when it cannot be had."""
    try:
        if hasattr(model, "disk_usage"):
            return int(model.disk_usage())
        with tempfile.TemporaryDirectory() as folder:
            if type(model).__module__.startswith("softlearning"):
                model.save(path := Path(folder) / "model")
                return path.stat().st_size
        return len(pickle.dumps(model)) if model is not None else None
    except Exception:
        return None


def main(system, folder):
    folder = Path(folder)
    fit, package, options = SYSTEMS[system]
    ask = json.loads((folder / "question.json").read_text())
    train, test = pd.read_parquet(folder / "train.parquet"), pd.read_parquet(folder / "test.parquet")
    X, y = train.iloc[:, :-1], train.iloc[:, -1]
    __import__(package.replace("scikit-learn", "sklearn"))  # importing is not fitting
    begin = time.perf_counter()
    model, predict, classes = fit(X, y, ask, **options)
    middle = time.perf_counter()
    prediction = np.asarray(predict(test), dtype=float)
    end = time.perf_counter()
    prediction = prediction[:, None] if prediction.ndim == 1 else prediction
    np.savez(folder / "answer.npz", prediction=prediction)
    answer = {
        "classes": None if classes is None else [str(label) for label in classes],
        "fit_seconds": middle - begin,
        "predict_seconds": end - middle,
        "version": release(package),
        "model_bytes": size_of(model),
    }
    (folder / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    # modules beside this one must not be found in place of packages of the same name
    sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # some systems leave threads or servers that would keep the process alive
