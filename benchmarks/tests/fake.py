"""A table of results with known content: the paper's printed scores as if measured, and ours a little above."""

import json

import numpy as np
import pandas as pd

from softlearning_bench.datasets import dataset
from softlearning_bench.methods import methods_for
from softlearning_bench.paper import paper_results
from softlearning_bench.results import COLUMNS

WEIGHTS = {
    "classification": {"catboost": 0.5, "mlp_large": 0.3, "logistic": 0.2},
    "regression": {"ridge": 0.6, "catboost": 0.4},
}


def fake_cells(names=None) -> pd.DataFrame:
    """Two folds of every dataset and method."""
    printed = paper_results()
    rng = np.random.default_rng(0)
    lines = []
    for name in names or printed.index:
        row = dataset(name)
        for method in methods_for(row.task):
            score = printed.loc[name].get(method.name, printed.loc[name, "CatBoost"] + rng.normal() / 100)
            score = printed.loc[name].max() + 0.002 if method.name == "softlearning" else score
            for fold in range(min(2, method.folds)):
                lines.append(cell(row, method, fold, score + (0.5 - fold) / 100, rng))
    return pd.DataFrame(lines).reindex(columns=list(COLUMNS))


def cell(row, method, fold, score, rng):
    weights = method.group in ("change", "combiner", "ours") or method.name == "Soft Learning"
    return {
        "dataset": row.name,
        "method": method.name,
        "fold": fold,
        "seed": 42,
        "score": score,
        "log_loss" if row.task == "classification" else "rmse": 1.01 - score,
        "fit_seconds": row.n * row.d * 1e-5 * (10 if weights else 1),
        "predict_seconds": 0.01,
        "peak_memory": 200,
        "weights": json.dumps(WEIGHTS[row.task]) if weights else "",
        "status": "ok",
        "reason": "",
        "versions": "fake",
    }
