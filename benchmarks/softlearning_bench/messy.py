"""The default blend beside CatBoost with its defaults, on tables as they are, on the same folds.

    python -m softlearning_bench.messy benchmarks/results/messy.csv

Three seeds of five folds of each table; a line a fold, written when it is there; a second run goes on. Tables that
are not at hand (see `softlearning_bench.study_sets.tables_folder`) are skipped, and the run says so.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier, CatBoostRegressor
from sklearn.model_selection import KFold, StratifiedKFold

from softlearning.data.files import read_table
from softlearning.estimators import SoftClassifier, SoftRegressor
from softlearning_bench.results import append
from softlearning_bench.scoring import scores
from softlearning_bench.study_sets import tables_folder

TABLES = (
    ("penguins.csv", "species", "classification"),
    ("titanic.csv", "Survived", "classification"),
    ("auto_mpg.csv", "mpg", "regression"),
)
SEEDS = (7, 8, 9)  # the settings of the defaults were looked at on other seeds of these tables
FOLDS = 5


def ours(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame, task: str) -> np.ndarray:
    """As the command fits a file: columns are looked at, nothing else is said."""
    model = (SoftClassifier if task == "classification" else SoftRegressor)(column_types={}).fit(X, y)
    return asked(model, X_test, task)


def catboost(X: pd.DataFrame, y: np.ndarray, X_test: pd.DataFrame, task: str) -> np.ndarray:
    """Every column that holds no numbers is a category, as its documentation advises; all else is left alone."""
    words = [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]
    spelt = lambda table: table.astype(dict.fromkeys(words, object)).fillna(dict.fromkeys(words, "missing"))
    kind = CatBoostClassifier if task == "classification" else CatBoostRegressor
    model = kind(cat_features=words, random_seed=42, thread_count=1, verbose=False, allow_writing_files=False)
    return asked(model.fit(spelt(X), y), spelt(X_test), task)


def asked(model: Any, X: pd.DataFrame, task: str) -> np.ndarray:
    return model.predict_proba(X) if task == "classification" else model.predict(X)[:, None]


METHODS = {"softlearning": ours, "CatBoost": catboost}


def folds_of(file: str, target: str, task: str) -> Iterator[tuple[dict[str, Any], tuple]]:
    """(where, (X, y, X_test, y_test)) of all folds of all seeds."""
    table = read_table(tables_folder() / file).dropna(subset=[target])
    X, y = table.drop(columns=target), table[target].to_numpy()
    y = np.unique(y, return_inverse=True)[1] if task == "classification" else y.astype(float)
    for seed in SEEDS:
        splitter = (StratifiedKFold if task == "classification" else KFold)(FOLDS, shuffle=True, random_state=seed)
        for fold, (train, test) in enumerate(splitter.split(X, y)):
            where = {"table": file.removesuffix(".csv"), "seed": seed, "fold": fold}
            yield where, (X.iloc[train], y[train], X.iloc[test], y[test])


def main(path: str) -> None:
    done = pd.read_csv(path)[["table", "seed", "fold", "method"]].to_numpy().tolist() if Path(path).exists() else []
    for file, target, task in TABLES:
        if not (tables_folder() / file).exists():
            print(f"{file} is skipped: it is not in {tables_folder()}")
            continue
        for where, (X, y, X_test, y_test) in folds_of(file, target, task):
            for name, method in METHODS.items():
                if [*where.values(), name] not in done:
                    begin = time.process_time()
                    with warnings.catch_warnings(action="ignore"):
                        prediction = method(X, y, X_test, task)
                    seconds = {"seconds": round(time.process_time() - begin, 2)}
                    numbers = {k: float(f"{v:.6g}") for k, v in scores(prediction, y_test, task).items()}
                    line = where | {"method": name} | numbers | seconds
                    append(Path(path), line, tuple(line))
    print(summary(pd.read_csv(path)).to_string())


def summary(lines: pd.DataFrame) -> pd.DataFrame:
    """By table: the mean score of each method, and on how many folds ours has the smaller loss."""
    lines = lines.assign(loss=lines["log_loss"].fillna(lines["rmse"]))
    means = lines.pivot_table(index="table", columns="method", values=["score", "loss"])
    means.columns = [f"{what} of {method}" for what, method in means.columns]
    losses = lines.pivot(index=["table", "seed", "fold"], columns="method", values="loss")
    better = (losses["softlearning"] < losses["CatBoost"]).groupby("table").agg(["sum", "size"])
    means["folds with the smaller loss"] = better["sum"].astype(str) + " of " + better["size"].astype(str)
    return means


if __name__ == "__main__":
    main(sys.argv[1])
