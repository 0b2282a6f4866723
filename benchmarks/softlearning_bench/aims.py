"""Does aiming at a metric help? Models aimed at a metric, the same models not aimed, and CatBoost tuned for it.

    python -m softlearning_bench.aims run [SEEDS]           ten real tables, five of them with a minority below 10 %
    python -m softlearning_bench.aims run-held-out [SEEDS]  splits and tables that no choice was made on
    python -m softlearning_bench.aims show                  how often and by how much, of both files

The ten tables were looked at, at seed 0, while the ways of serving a metric were chosen. The held-out file has the
other tables of two classes or numbers that are there for choosing, and the ten at other seeds; tables that are kept for
a confirmation stay untouched.

A table is split 70/30, stratified for classes, at most `MOST` rows of it; every metric is measured on the test part.
"default" is the library "fast" without an aim: labels are the most probable, and for a quantile it answers by
`predict_quantile`. "aimed" has `metric=`. "catboost" minimises the metric's own loss where it has one (MAE, Quantile),
stops by the metric on a fifth of its rows, and cuts probabilities where F1 is largest there. Lines are written as they
finish; a second run goes on.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier, CatBoostRegressor
from sklearn.metrics import average_precision_score, f1_score, mean_absolute_error, mean_pinball_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from softlearning import SoftClassifier, SoftRegressor
from softlearning_bench.real import RealTable, data_folder, real_tables
from softlearning_bench.results import append, whole_csv

FILE = Path("benchmarks/results/aims.csv")
HELD_OUT = Path("benchmarks/results/aims_held_out.csv")
FIRST_HELD_OUT = 200  # seed; smaller ones belong to what was chosen on
COLUMNS = ("table", "seed", "metric", "method", "score", "seconds", "note")
RARE = ("seismic_bumps", "polish_bankruptcy", "coil2000", "amazon_access", "nass_cds")
NUMBERS = ("yacht", "qsar_fish", "insurance", "airfoil", "chocolate_ratings")
METRICS = {"binary": ("roc_auc", "average_precision", "f1"), "regression": ("neg_mean_absolute_error", "pinball:0.9")}
METHODS = ("default", "aimed", "catboost")
MOST = 3_000  # rows of a table
CATBOOST = {"iterations": 500, "learning_rate": 0.05, "thread_count": 1, "verbose": 0, "random_seed": 0,
            "allow_writing_files": False}  # fmt: skip
PATIENCE = 50


def halves(table: RealTable, seed: int) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray, np.ndarray]:
    """Training and test rows, and their targets: numbers, or 1 for the rarer class."""
    frame = pd.read_parquet(table.path)
    frame = frame[frame.iloc[:, -1].notna()].reset_index(drop=True)
    X, y = frame.iloc[:, :-1], frame.iloc[:, -1]
    if table.task == "binary":
        y = (y.astype(str) == y.astype(str).value_counts().index[-1]).astype(int)
    rows = np.arange(len(y))
    stratify = y if table.task == "binary" else None
    if len(rows) > MOST:
        rows, _ = train_test_split(rows, train_size=MOST, random_state=seed, stratify=stratify)
    stratify = y.iloc[rows] if table.task == "binary" else None
    train, test = train_test_split(rows, test_size=0.3, random_state=seed, stratify=stratify)
    return X.iloc[train], X.iloc[test], y.iloc[train].to_numpy(), y.iloc[test].to_numpy()


def measured(metric: str, y: np.ndarray, answer: np.ndarray) -> float:
    """Greater is better."""
    found = {
        "roc_auc": roc_auc_score,
        "average_precision": average_precision_score,
        "f1": f1_score,
        "neg_mean_absolute_error": lambda y, f: -mean_absolute_error(y, f),
        "pinball:0.9": lambda y, f: -mean_pinball_loss(y, f, alpha=0.9),
    }
    return float(found[metric](y, answer))


def soft(metric: str, aimed: bool, X, y, new, folder: str) -> tuple[np.ndarray, str]:
    """What softlearning answers; finished work is shared between the metrics of a table through a folder."""
    kind = SoftRegressor if metric not in METRICS["binary"] else SoftClassifier
    model = kind("fast", metric=metric if aimed else None, n_jobs=1, checkpoint=folder).fit(X, y)
    note = getattr(model, "aim_", "")
    if kind is SoftClassifier:
        return model.predict(new) if metric == "f1" else model.predict_proba(new)[:, 1], note
    quantile = metric.startswith("pinball") and not aimed
    return model.predict_quantile(new, 0.9) if quantile else model.predict(new), note


def catboost(metric: str, X, y, new) -> tuple[np.ndarray, str]:
    """CatBoost as somebody who wants this metric would tune it."""
    X, new = (plain(frame) for frame in (X, new))
    words = [name for name in X.columns if X[name].dtype == object]
    classes = metric in METRICS["binary"]
    train, held, seen, judge = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y if classes else None)
    loss = {"neg_mean_absolute_error": "MAE", "pinball:0.9": "Quantile:alpha=0.9"}.get(metric, "Logloss")
    stop = {"roc_auc": "AUC", "average_precision": "PRAUC", "f1": "F1"}.get(metric, loss)
    model = (CatBoostClassifier if classes else CatBoostRegressor)(loss_function=loss, eval_metric=stop, **CATBOOST)
    model.fit(train, seen, cat_features=words, eval_set=(held, judge), early_stopping_rounds=PATIENCE)
    if metric != "f1":
        return model.predict_proba(new)[:, 1] if classes else model.predict(new), ""
    p = model.predict_proba(held)[:, 1]
    cut = max(np.unique(p), key=lambda c: f1_score(judge, p >= c))
    return (model.predict_proba(new)[:, 1] >= cut).astype(int), f"cut {cut:.3g}"


def plain(X: pd.DataFrame) -> pd.DataFrame:
    """Words for CatBoost, dates as numbers."""
    made = {}
    for name, column in X.items():
        if pd.api.types.is_datetime64_any_dtype(column):
            made[name] = column.astype("int64").astype(float)
        elif pd.api.types.is_numeric_dtype(column) and not isinstance(column.dtype, pd.CategoricalDtype):
            made[name] = column.astype(float)
        else:
            made[name] = column.astype(object).where(column.notna(), "missing").astype(str).astype(object)
    return pd.DataFrame(made, index=X.index)


def cells(folder: Path, seeds: int, held_out: bool = False) -> Iterator[tuple[RealTable, int]]:
    """Tables and the seeds of their splits: the ten that were chosen on, or what was not."""
    tables = real_tables(folder, None if held_out else [*RARE, *NUMBERS])
    first = FIRST_HELD_OUT if held_out else 0
    for seed in range(first, first + seeds):
        yield from ((table, seed) for table in tables if table.task in METRICS)


def run(file: Path, todo: Iterable[tuple[RealTable, int]]) -> None:
    """Every line that is missing."""
    done = set()
    if file.exists():
        done = set(whole_csv(file, COLUMNS)[list(COLUMNS[:4])].itertuples(index=False, name=None))
    for table, seed in todo:
        wanted = [(m, how) for m in METRICS[table.task] for how in METHODS if (table.name, seed, m, how) not in done]
        if wanted:
            X, new, y, truth = halves(table, seed)
            with tempfile.TemporaryDirectory() as folder:
                for metric, how in wanted:
                    append(file, line(table, seed, metric, how, X, y, new, truth, folder), COLUMNS)


def line(table: RealTable, seed: int, metric: str, how: str, X, y, new, truth, folder: str) -> dict[str, Any]:
    """One fit, judged on the test part."""
    start = time.perf_counter()
    made = catboost(metric, X, y, new) if how == "catboost" else soft(metric, how == "aimed", X, y, new, folder)
    answer, note = made
    seconds = round(time.perf_counter() - start, 2)
    score = measured(metric, truth, answer)
    print(f"{table.name} seed {seed} {metric} {how}: {score:.4f}, {seconds} s", flush=True)
    return {"table": table.name, "seed": seed, "metric": metric, "method": how, "score": score, "seconds": seconds,
            "note": note}  # fmt: skip


def show(file: Path) -> pd.DataFrame:
    """By metric: cells, the share in which aimed is better than (and no worse than) each rival, and the mean gain.

    Of losses the gain is a share of the rival's, so that tables of different units can be averaged.
    """
    wide = whole_csv(file, COLUMNS).pivot_table(index=["table", "seed", "metric"], columns="method", values="score")
    wide = wide.reindex(columns=list(METHODS)).dropna()
    lines = []
    for metric, part in wide.groupby("metric"):
        for rival in ("default", "catboost"):
            gain = part["aimed"] - part[rival]
            gain = gain / part[rival].abs() if metric in METRICS["regression"] else gain
            lines.append({"metric": metric, "against": rival, "cells": len(gain), "better": (gain > 0).mean(),
                          "no worse": (gain >= 0).mean(), "mean gain": gain.mean(), "error": gain.sem()})  # fmt: skip
    return pd.DataFrame(lines).round(4)


def main(what: str = "show", seeds: str = "1") -> None:
    if what in ("run", "run-held-out"):
        held_out = what == "run-held-out"
        run(HELD_OUT if held_out else FILE, cells(data_folder(), int(seeds), held_out))
    for file in (FILE, HELD_OUT):
        if what == "show" and file.exists():
            print(f"{file}\n{show(file).to_string(index=False)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
