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
    X, plain = dates_as_numbers(X), lambda column: column.astype(object).where(column.notna(), None)
    known = lambda name: pd.unique(train[name].dropna().astype(object))
    return X.assign(**{name: pd.Categorical(plain(X[name]), known(name)) for name in words_of(train)})


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


def catboost(X, y, ask, tune=False):
    """Defaults; words as categorical features with missing ones as a level of their own."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    words = words_of(X)
    filled = lambda X: {name: X[name].astype(object).where(X[name].notna(), "missing").astype(str) for name in words}
    prepare = lambda X: dates_as_numbers(X).assign(**filled(X))
    kind = CatBoostClassifier if ask["task"] == "classification" else CatBoostRegressor
    make = lambda **found: kind(
        thread_count=ask["cores"], verbose=0, allow_writing_files=False, cat_features=words, **found
    )
    return boosted(make, prepare, X, y, ask, CATBOOST_SPACE if tune else None)


def lightgbm(X, y, ask, tune=False):
    """Defaults; categories are native."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    prepare = lambda table: plain_names(levels(table, X))
    kind = LGBMClassifier if ask["task"] == "classification" else LGBMRegressor
    make = lambda **found: kind(n_jobs=ask["cores"], verbosity=-1, **found)
    return boosted(make, prepare, X, y, ask, LIGHTGBM_SPACE if tune else None)


def histgb(X, y, ask, tune=False):
    """Defaults; categories are native up to the 255 levels that it takes, then their numbers."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    many = [name for name in words_of(X) if X[name].nunique() > 255]
    codes = lambda table: {name: table[name].cat.codes.astype(float).where(table[name].notna()) for name in many}
    prepare = lambda table: (known := levels(table, X)).assign(**codes(known))
    make = HistGradientBoostingClassifier if ask["task"] == "classification" else HistGradientBoostingRegressor
    return boosted(make, prepare, X, y, ask, HISTGB_SPACE if tune else None)


def boosted(make, prepare, X, y, ask, space):
    """A booster as it is, or with the settings that Optuna found."""
    ready = prepare(X)
    found = tuned(make, ready, y, ask, space) if space else {}
    return predicting(make(**found).fit(ready, y), ask, prepare)


# name: (low, high, whether on a logarithmic scale)
CATBOOST_SPACE = {
    "learning_rate": (0.01, 0.3, True),
    "iterations": (100, 1500, True),
    "depth": (3, 9, False),
    "l2_leaf_reg": (0.3, 30.0, True),
    "random_strength": (0.1, 10.0, True),
}
LIGHTGBM_SPACE = {
    "learning_rate": (0.01, 0.3, True),
    "n_estimators": (50, 1500, True),
    "num_leaves": (4, 255, True),
    "min_child_samples": (2, 100, True),
    "colsample_bytree": (0.3, 1.0, False),
    "reg_lambda": (1e-3, 30.0, True),
}
HISTGB_SPACE = {
    "learning_rate": (0.01, 0.3, True),
    "max_iter": (50, 1500, True),
    "max_leaf_nodes": (4, 255, True),
    "min_samples_leaf": (2, 100, True),
    "max_features": (0.3, 1.0, False),
    "l2_regularization": (1e-3, 30.0, True),
}
SEARCH, FOLDS = 0.8, 5  # the share of the time that the search has; folds of each trial


def tuned(make, X, y, ask, space):
    """What Optuna finds by cross-validated loss in its share of the time; the defaults are the first trial.

    `ask["trials"]`, where there is one, is the most trials.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    end = time.monotonic() + SEARCH * ask["seconds"]
    parts = folds_of(X, y, ask)

    def objective(trial):
        found = settings_of(trial, space) if trial.number else {}
        losses = []
        for number, (train, test) in enumerate(parts):
            if time.monotonic() > end:
                raise optuna.TrialPruned
            model = make(**found).fit(X.iloc[train], y.iloc[train])
            losses.append(held_out_loss(model, X.iloc[test], y.iloc[test]))
            trial.report(float(np.mean(losses)), number)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(np.mean(losses))

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=ask["seed"]))
    study.optimize(objective, n_trials=ask.get("trials"), timeout=max(0.0, end - time.monotonic()))
    finished = any(trial.state.name == "COMPLETE" for trial in study.trials)
    return study.best_params if finished else {}


def settings_of(trial, space):
    """A point of the space; bounds that are whole numbers ask for whole numbers."""
    ask = lambda low: trial.suggest_int if isinstance(low, int) else trial.suggest_float
    return {name: ask(low)(name, low, high, log=log) for name, (low, high, log) in space.items()}


def folds_of(X, y, ask):
    """Seeded folds, stratified for classes as far as these have rows."""
    import warnings

    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if ask["task"] == "regression" or y.value_counts().max() < FOLDS else StratifiedKFold
    with warnings.catch_warnings(action="ignore"):
        return list(kind(FOLDS, shuffle=True, random_state=ask["seed"]).split(X, y))


def held_out_loss(model, X, y):
    """Mean squared error, or log loss; a class that the fold lacked costs the floor."""
    if not hasattr(model, "predict_proba"):
        return float(((y - model.predict(X)) ** 2).mean())
    P, classes = model.predict_proba(X), [str(label) for label in model.classes_]
    at = [classes.index(str(label)) if str(label) in classes else None for label in y]
    return float(-np.mean([np.log(max(p[j], 1e-15)) if j is not None else np.log(1e-15) for p, j in zip(P, at)]))


def sklearn_ensemble(X, y, ask, kind):
    """scikit-learn's stacking or soft voting of boosting, two forests and a linear model, on its usual encoding."""
    from sklearn import ensemble, linear_model
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    words, suffix = words_of(X), "Regressor" if ask["task"] == "regression" else "Classifier"
    objects = lambda table: {name: table[name].astype(object).where(table[name].notna(), None) for name in words}
    prepare = lambda table: dates_as_numbers(table).assign(**objects(table))
    one_hot = OneHotEncoder(handle_unknown="ignore", max_categories=50, sparse_output=False)
    rest = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    linear = linear_model.RidgeCV() if suffix == "Regressor" else linear_model.LogisticRegression(max_iter=1000)
    models = {
        name: getattr(ensemble, name + suffix)() for name in ("HistGradientBoosting", "RandomForest", "ExtraTrees")
    }
    options = {"voting": "soft"} if (kind, suffix) == ("Voting", "Classifier") else {}
    together = getattr(ensemble, kind + suffix)([*models.items(), ("linear", linear)], n_jobs=ask["cores"], **options)
    model = make_pipeline(make_column_transformer((one_hot, words), remainder=rest), together)
    return predicting(model.fit(prepare(X), y), ask, prepare)


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
    """H2OAutoML, asked to mind the loss that it is judged by; it needs Java, and its server runs already."""
    import h2o as server
    from h2o.automl import H2OAutoML

    words = words_of(X)
    types = dict.fromkeys(words, "enum") | ({y.name: "enum"} if ask["task"] == "classification" else {})
    known = lambda types, table: {name: kind for name, kind in types.items() if name in table}
    send = lambda table: server.H2OFrame(dates_as_numbers(table), column_types=known(types, table))
    metric = "logloss" if ask["task"] == "classification" else "RMSE"
    model = H2OAutoML(max_runtime_secs=ask["seconds"], sort_metric=metric, seed=ask["seed"])
    train = send(pd.concat([X, y], axis=1))
    model.train(y=y.name, training_frame=train)
    back = lambda table: model.leader.predict(send(table)).as_data_frame()
    if ask["task"] == "regression":  # the size of the model cannot be had: its export wants a licence
        return None, lambda table: back(table)["predict"], None
    return None, lambda table: back(table).iloc[:, 1:], train[y.name].levels()[0]


def start_h2o(ask):
    """Its server, as other systems are imported: before the clock."""
    import h2o as server

    server.init(nthreads=ask["cores"], verbose=False)
    server.no_progress()


def mljar(X, y, ask):
    """AutoML in its mode for competitions, asked to mind the loss that it is judged by."""
    from supervised import AutoML

    prepare = lambda table: table.astype(dict.fromkeys(words_of(table), object))
    metric = "logloss" if ask["task"] == "classification" else "rmse"
    model = AutoML(
        mode="Compete",
        total_time_limit=ask["seconds"],
        eval_metric=metric,
        n_jobs=ask["cores"],
        random_state=ask["seed"],
        results_path="model",
        verbose=0,
    )
    model.fit(prepare(X), y)
    if ask["task"] == "regression":
        return model, lambda table: model.predict(prepare(table)), None
    classes = [name.removeprefix("prediction_") for name in model.predict_all(prepare(X.head(2))) if name != "label"]
    return model, lambda table: model.predict_proba(prepare(table)), classes


# name: (function, its package, options)
SYSTEMS: dict[str, tuple[Callable, str, dict[str, Any]]] = {
    "softlearning": (softlearning, "softlearning", {}),
    "softlearning-nolimit": (softlearning, "softlearning", {"time_limit": None}),
    "softlearning-fast": (softlearning, "softlearning", {"library": "fast"}),
    "softlearning-best": (softlearning, "softlearning", {"library": "best"}),
    "catboost": (catboost, "catboost", {}),
    "lightgbm": (lightgbm, "lightgbm", {}),
    "histgb": (histgb, "scikit-learn", {}),
    "catboost-tuned": (catboost, "catboost", {"tune": True}),
    "lightgbm-tuned": (lightgbm, "lightgbm", {"tune": True}),
    "histgb-tuned": (histgb, "scikit-learn", {"tune": True}),
    "sklearn-stacking": (sklearn_ensemble, "scikit-learn", {"kind": "Stacking"}),
    "sklearn-voting": (sklearn_ensemble, "scikit-learn", {"kind": "Voting"}),
    "mljar": (mljar, "mljar-supervised", {}),
    "autogluon-medium": (autogluon, "autogluon.tabular", {"presets": "medium_quality"}),
    "autogluon-best": (autogluon, "autogluon.tabular", {"presets": "best_quality"}),
    "flaml": (flaml, "flaml", {}),
    "h2o": (h2o, "h2o", {}),
    "AutoGluon": (autogluon, "autogluon.tabular", {}),  # these two names are those of the paper's suite
    "FLAML": (flaml, "flaml", {}),
}


BEFORE = {"h2o": start_h2o}  # what a system does before the clock
MODULES = {"scikit-learn": "sklearn", "mljar-supervised": "supervised"}  # where they are not called as their package


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
    __import__(MODULES.get(package, package))  # importing is not fitting
    BEFORE.get(system, lambda ask: None)(ask)
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
        "version": release(package) + (f", {release('optuna')}" if options.get("tune") else ""),
        "model_bytes": size_of(model),
    }
    (folder / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    # modules beside this one must not be found in place of packages of the same name
    sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # some systems leave threads or servers that would keep the process alive
