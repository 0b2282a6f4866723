"""The tables of the study of defaults, as rows: a name, the task, how to draw it, and the seeds it is run with.

A seed draws a generated table anew, samples a large one, and splits every one 80/20. Cheap tables stand first and have
more seeds. Real tables that are not on this machine are left out, and the run says so.
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

FIVE = (42, 0, 1, 2, 3)
THREE, TWO, ONE = FIVE[:3], FIVE[:2], FIVE[:1]
C, R = "classification", "regression"


@dataclass(frozen=True)
class StudySet:
    """One table of the study; `load(seed)` gives X and y, `kind` is "real", "generated" or a "family" of the paper."""

    name: str
    task: str
    load: Callable[[int], tuple[Any, Any]]
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


def faces(seed: int) -> tuple[Any, Any]:
    X, y = datasets.fetch_olivetti_faces(return_X_y=True, download_if_missing=False)
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


def of_paper(name: str, seed: int) -> tuple[Any, Any]:
    """A reconstructed family of the paper's benchmark; the table is fixed, the seed splits it."""
    from softlearning.bench.datasets import dataset

    return dataset(name).table(download=False)


california = partial(sampled, datasets.fetch_california_housing)
covertype = partial(sampled, datasets.fetch_covtype)

SETS = (
    StudySet("iris", C, partial(shipped, datasets.load_iris), FIVE),
    StudySet("wine", C, partial(shipped, datasets.load_wine), FIVE),
    StudySet("penguins", C, partial(messy, "penguins.csv", "species"), FIVE),
    StudySet("diabetes", R, partial(shipped, datasets.load_diabetes), FIVE),
    StudySet("auto_mpg", R, partial(messy, "auto_mpg.csv", "mpg"), FIVE),
    StudySet("B18_tiny_100", C, partial(of_paper, "B18"), FIVE, "family"),
    StudySet("C10_tiny_regression", R, partial(of_paper, "C10"), FIVE, "family"),
    StudySet("C06_materials", R, partial(of_paper, "C06"), FIVE, "family"),
    StudySet("B13_drug_response", C, partial(of_paper, "B13"), FIVE, "family"),
    StudySet("breast_cancer", C, partial(shipped, datasets.load_breast_cancer), FIVE),
    StudySet("titanic", C, partial(messy, "titanic.csv", "Survived"), FIVE),
    StudySet("california_2000", R, partial(california, 2_000), FIVE),
    StudySet("hastie", C, hastie, THREE, "generated"),
    StudySet("friedman1", R, friedman, THREE, "generated"),
    StudySet("covertype_2000", C, partial(covertype, 2_000), THREE),
    StudySet("digits", C, partial(shipped, datasets.load_digits), THREE),
    StudySet("B06_noisy_moons", C, partial(of_paper, "B06"), TWO, "family"),
    StudySet("B07_circles", C, partial(of_paper, "B07"), TWO, "family"),
    StudySet("B12_sensor_anomaly", C, partial(of_paper, "B12"), TWO, "family"),
    StudySet("mc4", C, partial(overlapping, 4_000, 40, 4), TWO, "generated"),
    StudySet("sparse", R, sparse_linear, TWO, "generated"),
    StudySet("newsgroups", C, partial(of_paper, "A08"), ONE),
    StudySet("california_8000", R, partial(california, 8_000), ONE),
    StudySet("covertype_8000", C, partial(covertype, 8_000), ONE),
    StudySet("mc5", C, partial(overlapping, 8_000, 50, 5), ONE, "generated"),
    StudySet("olivetti", C, faces, ONE),
)
