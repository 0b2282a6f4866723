"""The tables of the study of defaults, as rows: a name, the task, how to draw it, and the seeds it is run with.

A seed draws a generated table anew, samples a large one, and splits every one 80/20. Cheap tables stand first. Real
tables that are not on this machine are skipped, and the run says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import train_test_split

from softlearning_bench.datasets import DATASETS
from softlearning_bench.shared import FOLDS

FIVE = (42, 0, 1, 2, 3)
C, R = "classification", "regression"


@dataclass(frozen=True)
class StudySet:
    """One table of the study; `load(seed)` gives X and y, `kind` is "real", "generated" or a "family" of the paper.

    A table of the paper's suite has no `load`: the benchmark splits and fits it, and its seeds are the outer folds.
    """

    name: str
    task: str
    load: Callable[[int], tuple[Any, Any]] | None
    seeds: tuple[int, ...]
    kind: str = "real"


def shipped(loader: Callable[..., Any], seed: int) -> tuple[Any, Any]:
    return loader(return_X_y=True)


def sampled(loader: Callable[..., Any], rows: int, seed: int) -> tuple[Any, Any]:
    """So many rows of a large table, by classes where it has any."""
    X, y = loader(return_X_y=True, download_if_missing=False)
    classes = y if y.dtype.kind in "iu" else None
    X, _, y, _ = train_test_split(X, y, train_size=rows, random_state=seed, stratify=classes)
    return X.astype(np.float64), y


def tables_folder() -> Path:
    beside = Path(os.environ.get("SCIKIT_LEARN_DATA", "../shared/data/scikit_learn_data")).parent / "tables"
    return Path(os.environ.get("SOFTLEARNING_TABLES", beside))


def messy(file: str, target: str, seed: int) -> tuple[Any, Any]:
    table = pd.read_csv(tables_folder() / file).dropna(subset=[target])
    return table.drop(columns=target), table[target].to_numpy()


def hastie(seed: int) -> tuple[Any, Any]:
    return datasets.make_hastie_10_2(5_000, random_state=seed)


def overlapping(rows: int, columns: int, classes: int, seed: int) -> tuple[Any, Any]:
    return datasets.make_classification(
        rows,
        columns,
        n_informative=12,
        n_redundant=8,
        n_classes=classes,
        n_clusters_per_class=3,
        class_sep=0.8,
        random_state=seed,
    )


def friedman(seed: int) -> tuple[Any, Any]:
    return datasets.make_friedman1(5_000, noise=1.0, random_state=seed)


def sparse_linear(seed: int) -> tuple[Any, Any]:
    return datasets.make_regression(3_000, 200, n_informative=12, noise=10.0, random_state=seed)


california = partial(sampled, datasets.fetch_california_housing)
covertype = partial(sampled, datasets.fetch_covtype)


def column_of(load: Callable[[int], tuple[Any, Any]], column: int, seed: int) -> tuple[Any, Any]:
    """A regression that nobody has tuned to: one column of a table from the others."""
    X, _ = load(seed)
    return np.delete(X, column, axis=1), X[:, column]


DRAWN = (
    StudySet("diabetes", R, partial(shipped, datasets.load_diabetes), FIVE),
    StudySet("breast_cancer", C, partial(shipped, datasets.load_breast_cancer), FIVE),
    StudySet("digits", C, partial(shipped, datasets.load_digits), FIVE),
    StudySet("penguins", C, partial(messy, "penguins.csv", "species"), FIVE),
    StudySet("auto_mpg", R, partial(messy, "auto_mpg.csv", "mpg"), FIVE),
    StudySet("titanic", C, partial(messy, "titanic.csv", "Survived"), FIVE),
    StudySet("california_2000", R, partial(california, 2_000), FIVE),
    StudySet("hastie", C, hastie, FIVE, "generated"),
    StudySet("friedman1", R, friedman, FIVE, "generated"),
    StudySet("covertype_2000", C, partial(covertype, 2_000), FIVE),
    StudySet("mc4", C, partial(overlapping, 4_000, 40, 4), FIVE, "generated"),
    StudySet("sparse", R, sparse_linear, FIVE, "generated"),
    StudySet("wine_alcohol", R, partial(column_of, partial(shipped, datasets.load_wine), 0), FIVE),
    StudySet("penguins_mass", R, partial(messy, "penguins.csv", "body_mass_g"), FIVE),
    StudySet("titanic_fare", R, partial(messy, "titanic.csv", "Fare"), FIVE),
    StudySet("elevation", R, partial(column_of, partial(covertype, 4_000), 0), FIVE),
    StudySet("roads", R, partial(column_of, partial(covertype, 4_000), 5), FIVE),
    StudySet("california_8000", R, partial(california, 8_000), FIVE),
    StudySet("covertype_8000", C, partial(covertype, 8_000), FIVE),
    StudySet("mc5_20k", C, partial(overlapping, 20_000, 50, 5), FIVE, "generated"),
)

SUITE = tuple(
    StudySet(row.name, row.task, None, tuple(range(FOLDS)), "family" if row.source == "synthetic" else "real")
    for row in DATASETS
)

SETS = DRAWN + SUITE
