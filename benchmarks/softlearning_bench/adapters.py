"""Train a foreign system on the rows of an .npz file and write its predictions to another.

Run by path, in the environment of that system: nothing of softlearning is imported here.

    python adapters.py SYSTEM QUESTION.npz ANSWER.npz SECONDS
"""

import sys
import time
from importlib.metadata import version

import numpy as np


def autogluon(X, y, task, seconds, seed):
    """TabularPredictor with its default preset, told to mind the log loss or RMSE; the label column is called y."""
    import pandas as pd
    from autogluon.tabular import TabularPredictor

    name = lambda table: pd.DataFrame(table, columns=[f"x{j}" for j in range(table.shape[1])])
    kind = {"classification": "binary" if len(np.unique(y)) == 2 else "multiclass", "regression": "regression"}[task]
    metric = "log_loss" if task == "classification" else "root_mean_squared_error"
    predictor = TabularPredictor(label="y", problem_type=kind, eval_metric=metric, verbosity=0)
    predictor.fit(name(X).assign(y=y), time_limit=seconds)
    if task == "regression":
        return lambda table: predictor.predict(name(table)).to_numpy()
    return lambda table: predictor.predict_proba(name(table)).to_numpy()


def flaml(X, y, task, seconds, seed):
    from flaml import AutoML

    model = AutoML()
    metric = "log_loss" if task == "classification" else "mse"
    model.fit(X, y, task=task, metric=metric, time_budget=seconds, seed=seed, verbose=0)
    return model.predict if task == "regression" else model.predict_proba


def sklearn(X, y, task, seconds, seed):
    """A small system that every environment has: the example to copy for a new one."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if task == "classification" else HistGradientBoostingRegressor
    model = kind(random_state=seed).fit(X, y)
    return model.predict if task == "regression" else model.predict_proba


SYSTEMS = {
    "AutoGluon": (autogluon, "autogluon.tabular"),
    "FLAML": (flaml, "flaml"),
    "scikit-learn": (sklearn, "scikit-learn"),
}


def main(system, question, answer, seconds):
    fit, package = SYSTEMS[system]
    with np.load(question) as asked:
        X, y, X_test = asked["X"], asked["y"], asked["X_test"]
        task, seed = str(asked["task"]), int(asked["seed"])
    begin = time.perf_counter()
    predict = fit(X, y, task, int(seconds), seed)
    middle = time.perf_counter()
    prediction = np.asarray(predict(X_test), dtype=float)
    end = time.perf_counter()
    prediction = prediction[:, None] if prediction.ndim == 1 else prediction
    name = f"{package} {version(package)}"
    np.savez(answer, prediction=prediction, fit_seconds=middle - begin, predict_seconds=end - middle, version=name)


if __name__ == "__main__":
    main(*sys.argv[1:])
