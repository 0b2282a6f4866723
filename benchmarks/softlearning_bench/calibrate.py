"""Reconstruct the paper's lost generators: search their free parameters, then show its columns against ours.

    python -m softlearning_bench.calibrate search [DATASET ...]     cheap: one fold, fewer trees, no CatBoost
    python -m softlearning_bench.calibrate confirm [DATASET ...]    the paper's protocol: five folds, four baselines
    python -m softlearning_bench.calibrate adopt RESULTS.csv        the same lines from a finished run of the benchmark
    python -m softlearning_bench.calibrate hashes                   fingerprints of all tables that are at hand

`search` and `confirm` append one line at a time to a csv in the folder `benchmarks` and skip what is already there.
`search` tries the values of GRIDS around a row of DATASETS; the nearest point is written into that row by hand, and
`confirm` then measures the row as it stands (a changed row is measured again: its parameters are part of the key).
"""

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from softlearning.library import Shape
from softlearning_bench.datasets import DATASETS, Absent, Dataset, dataset, fingerprint
from softlearning_bench.generators import Table, settle
from softlearning_bench.methods import LINEAR, fit_alone, gradient_boosting, library_row, random_forest
from softlearning_bench.paper import paper_results
from softlearning_bench.results import append, read, score_table
from softlearning_bench.scoring import scores
from softlearning_bench.shared import FOLDS, Part, outer_fold

FOLDER = Path("benchmarks")
SEED = 42
KEPT = 10  # points of a grid that the linear model leaves for the forest and the boosting; more of a small set


def from_library(part: Part, name: dict[str, str]) -> BaseEstimator:
    """A member of the paper's library, as the benchmark runs it."""
    shape = Shape(part.task, len(part.y), part.X.shape[1], part.classes)
    return library_row(name[part.task], part.task).make(shape)


Make = Callable[[Part], BaseEstimator]
linear = partial(from_library, name=LINEAR)
BASELINES: dict[str, Make] = {
    "Logistic/Ridge": linear,
    "Random Forest": random_forest,
    "Gradient Boosting": gradient_boosting,
    "CatBoost": partial(from_library, name=dict.fromkeys(LINEAR, "catboost")),
}
PROXIES: dict[str, Make] = {
    "Random Forest": lambda part: random_forest(part).set_params(n_estimators=40),
    "Gradient Boosting": lambda part: gradient_boosting(part).set_params(max_iter=100),
}


def cross_validated(row: Dataset, table: Table, make: Make, folds: int = FOLDS) -> float:
    """Mean accuracy or R2 over the first of the paper's five outer folds, scaled inside each."""
    parts = [outer_fold(row, table, fold, SEED) for fold in range(folds)]
    answers = [fit_alone(part, make) for part in parts]
    return float(np.mean([scores(a.prediction, p.y_test, p.task)["score"] for a, p in zip(answers, parts)]))


# fmt: off
GRIDS: dict[str, dict[str, tuple]] = {
    "B01_clinical": {"informative": (5, 8, 10, 15, 20), "redundant": (0, 2, 5), "per_class": (1, 2),
                     "separation": (0.8, 0.9, 1.0, 1.2), "flip": (0.01, 0.03)},
    "B02_fraud": {"informative": (5, 10, 15), "per_class": (1, 2), "separation": (0.5, 0.8, 1.0), "flip": (0.01, 0.02)},
    "B03_manufacturing": {"informative": (10, 12, 15, 20), "redundant": (0, 5), "per_class": (1, 2, 3),
                          "separation": (0.5, 0.6, 0.7, 0.8, 1.0), "flip": (0.02, 0.05, 0.1)},
    "B04_satellite": {"informative": (15, 20, 30, 40), "redundant": (0, 20, 50, 80), "per_class": (1, 2),
                      "separation": (1.0, 1.3, 1.5), "flip": (0.03, 0.1)},
    "B05_genomic": {"informative": (4, 5, 6), "redundant": (0, 4, 8), "per_class": (3, 4),
                    "separation": (0.8, 0.9, 1.0, 1.2), "flip": (0.01,)},
    "B06_noisy_moons": {"noise": (0.2, 0.22, 0.24, 0.25, 0.26)},
    "B07_circles": {"noise": (0.11, 0.115, 0.12, 0.14), "factor": (0.4, 0.5)},
    "B08_hastie": {"seed": (42, 43, 44, 45, 46)},
    "B09_xor_manifold": {"spread": (0.5, 0.55, 0.6), "noise": (1.5, 1.75, 2.0)},
    "B11_mixed_features": {"informative": (5, 8, 10, 12, 15), "redundant": (0, 5), "per_class": (1, 2),
                           "separation": (0.8, 1.0, 1.2, 1.5), "flip": (0.01, 0.05, 0.1)},
    "B12_sensor_anomaly": {"dent": (0.0, 0.001, 0.002, 0.005)},
    "B13_drug_response": {"informative": (6, 8, 10, 12, 15, 20), "redundant": (0, 5, 10), "per_class": (1, 2),
                          "separation": (1.0, 1.2, 1.5, 2.0), "flip": (0.0, 0.01), "seed": (42, 43)},
    "B14_customer_churn": {"informative": (2, 3, 4), "slope": (3.5, 4.0)},
    "B15_environmental": {"dent": (0.02, 0.025, 0.03)},
    "B16_large_5class": {"informative": (12, 15, 20), "per_class": (1, 2, 3), "separation": (0.5, 0.6, 0.8),
                         "flip": (0.05, 0.1)},
    "B17_heavy_noise": {"informative": (5, 8, 10, 15), "redundant": (0, 2), "per_class": (1, 2, 3),
                        "separation": (0.8, 1.0, 1.2, 1.5), "flip": (0.3,)},
    "B18_tiny_100": {"informative": (3, 4, 5), "redundant": (0, 2), "per_class": (1, 2), "separation": (0.8, 1.0, 1.2),
                     "flip": (0.01, 0.05), "seed": (42, 43, 44)},
    "C03_friedman3": {"noise": (0.49, 0.5, 0.51)},
    "C04_sparse_regression": {"informative": (10, 15, 20), "decay": (0.7, 0.8, 0.85, 0.9)},
    "C05_energy": {"informative": (2, 3, 4), "decay": (0.2, 0.3, 0.5), "correlation": (0.0, 0.5)},
    "C06_materials": {"informative": (6, 8, 10), "decay": (0.7, 0.8, 0.9)},
    "C07_large_regression": {"informative": (20,), "decay": (0.9, 0.92, 0.95)},
    "C08_noisy_regression": {"active": (2, 4), "interaction": (0.0, 0.3, 0.6), "noise": (0.6, 0.62, 0.65)},
    "C09_house_price": {"informative": (3, 4, 6), "decay": (0.6, 0.8, 1.0)},
    "C10_tiny_regression": {"informative": (2, 3), "decay": (0.25, 0.35), "seed": tuple(range(42, 52))},
}
# fmt: on


def free_parameters(row: Dataset) -> dict[str, object]:
    """What a reconstructed row leaves to choice: the keywords of its generator."""
    assert isinstance(row.load, partial)
    return dict(row.load.keywords)


def points(row: Dataset) -> Iterator[tuple[dict, Table]]:
    """Every point of the row's grid that its generator accepts, with the table it makes."""
    grid = GRIDS.get(row.name, {})
    assert isinstance(row.load, partial)
    for values in itertools.product(*grid.values()):
        parameters = free_parameters(row) | dict(zip(grid, values))
        try:
            yield parameters, settle(*row.load.func(*row.load.args, **parameters))
        except ValueError:  # e.g. more clusters than corners of the cube
            continue


def search(row: Dataset, path: Path) -> pd.DataFrame:
    """Linear model on every point, forest and boosting on the KEPT nearest; one line a point, nearest first."""
    printed = paper_results().loc[row.name]
    folds = 5 if row.n <= 1_000 else 1  # one fold of a small set says nothing
    ranked = []
    for parameters, table in points(row):
        score = cross_validated(row, table, linear, folds)
        ranked.append((abs(score - printed["Logistic/Ridge"]), score, parameters))
    ranked.sort(key=lambda point: point[0])
    done = _done(path, ["dataset", "parameters"])
    for _, score, parameters in ranked[: KEPT if row.n > 1_000 else 4 * KEPT]:
        line = {
            "dataset": row.name,
            "parameters": json.dumps(parameters),
            "tried": len(ranked),
            "Logistic/Ridge": score,
        }
        if (row.name, line["parameters"]) not in done:
            load: Any = row.load  # a partial: its function with other parameters
            table = settle(*load.func(*load.args, **parameters))
            line |= {name: cross_validated(row, table, make, folds) for name, make in PROXIES.items()}
            line["distance"] = np.mean([abs(line[name] - printed[name]) for name in ("Logistic/Ridge", *PROXIES)])
            append(path, {key: _short(value) for key, value in line.items()}, tuple(line))
    found = pd.read_csv(path)
    return found[found["dataset"] == row.name].sort_values("distance")


def confirm(row: Dataset, path: Path) -> None:
    """One line a baseline: what the paper prints, what the row gives under the paper's protocol, the difference."""
    parameters = json.dumps(free_parameters(row))
    done = _done(path, ["dataset", "method", "parameters"])
    table = row.table()
    for method, make in BASELINES.items():
        if (row.name, method, parameters) in done:
            continue
        append(path, line := confirmation(row, method, cross_validated(row, table, make)), tuple(line))


def confirmation(row: Dataset, method: str, ours: float) -> dict[str, object]:
    printed, ours = float(paper_results().loc[row.name, method]), round(ours, 4)
    line = {"dataset": row.name, "method": method, "paper": printed, "ours": ours}
    parameters = json.dumps(free_parameters(row))
    return line | {"difference": round(ours - printed, 4), "note": row.note, "parameters": parameters}


def adopt(results: Path, path: Path) -> None:
    """Write the confirmations anew from a run of the benchmark, which has the same baselines on the same folds.

    Datasets that the run lacks keep the confirmations they have.
    """
    scores = score_table(read(results)).reindex(columns=list(BASELINES))
    rows = [row for row in DATASETS if row.source == "synthetic" and row.name in scores.index]
    known = [(row, method) for row in rows for method in BASELINES if scores.notna().loc[row.name, method]]
    lines = [confirmation(row, method, float(scores.loc[row.name, method])) for row, method in known]
    kept = latest(path) if path.exists() else pd.DataFrame(columns=["dataset"])
    kept = kept[~kept["dataset"].isin([row.name for row, _ in known])]
    pd.concat([pd.DataFrame(lines), kept]).sort_values("dataset", kind="stable").to_csv(path, index=False)


def latest(path: Path) -> pd.DataFrame:
    """The confirmations of the rows as they stand now: those of earlier parameters are skipped."""
    table = pd.read_csv(path, keep_default_na=False, na_values={"ours": [""]})
    current = {row.name: json.dumps(free_parameters(row)) for row in DATASETS if row.source == "synthetic"}
    return table[table["parameters"] == table["dataset"].map(current)]


def write_hashes(path: Path) -> None:
    """A line a dataset with the SHA-256 of its bytes; a real set that is not at hand keeps the line it had."""
    old = pd.read_csv(path, index_col="dataset")["sha256"].to_dict() if path.exists() else {}
    for row in DATASETS:
        try:
            old[row.name] = fingerprint(*row.table(download=False))
        except Absent as reason:
            print(reason)
    names = [row.name for row in DATASETS if row.name in old]
    pd.Series({name: old[name] for name in names}, name="sha256").rename_axis("dataset").to_csv(path)


def _done(path: Path, key: list[str]) -> set[tuple]:
    return set(pd.read_csv(path)[key].itertuples(index=False, name=None)) if path.exists() else set()


def _short(value: object) -> object:
    return round(float(value), 4) if isinstance(value, float) else value


def main(arguments: list[str]) -> None:
    """`search` or `confirm`, then names of datasets (all reconstructed ones when none is given); `adopt`; `hashes`."""
    action, names = arguments[0], arguments[1:]
    if action == "hashes":
        return write_hashes(FOLDER / "hashes.csv")
    if action == "adopt":
        return adopt(Path(names[0]), FOLDER / "calibration.csv")
    rows = [dataset(name) for name in names] or [row for row in DATASETS if row.source == "synthetic"]
    for row in rows:
        if action == "search":
            print(search(row, FOLDER / "calibration_search.csv").head(5).to_string(index=False), flush=True)
        else:
            confirm(row, FOLDER / "calibration.csv")
            print(f"{row.name} confirmed", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
