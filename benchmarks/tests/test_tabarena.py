"""Errors beside TabArena's are ratios to the CatBoost of their own run; the system answers as TabArena asks."""

import numpy as np
import pandas as pd
import pytest

from softlearning_bench.tabarena import beside, draw, errors, means, page
from softlearning_bench.tabarena_system import SoftLearningSystem

BEST, TUNED, DEFAULT = "AutoGluon 1.4 (best, 4h)", "GBM (tuned + ensemble)", "CAT (default)"


@pytest.fixture
def cells():
    lines = [
        ("a", "binary", 0, "softlearning", 0.3, 0.95),
        ("a", "binary", 1, "softlearning", 0.3, 0.85),
        ("a", "binary", 0, "catboost", 0.3, 0.80),
        ("b", "regression", 0, "softlearning", 30.0, np.nan),
        ("b", "regression", 0, "catboost", 20.0, np.nan),
        ("c", "multiclass", 0, "softlearning", 0.1, np.nan),
        ("c", "multiclass", 0, "catboost", 0.4, np.nan),
        ("ours alone", "binary", 0, "softlearning", 0.3, 0.9),
        ("ours alone", "binary", 0, "catboost", 0.3, 0.9),
    ]
    names = ["table", "task", "seed", "method", "loss", "auc"]
    return pd.DataFrame(lines, columns=names).assign(part="choose", rows=70, failure="")


@pytest.fixture
def published():
    values = {DEFAULT: 0.10, TUNED: 0.08, BEST: 0.05}
    return pd.DataFrame([(d, m, e * k) for k, d in enumerate("ABC", 1) for m, e in values.items()],
                        columns=["dataset", "method", "metric_error"])  # fmt: skip


NAMES = pd.Series({"a": "A", "b": "B", "c": "C", "ours alone": None})


def test_errors_are_counted_as_tabarena_does(cells):
    found = errors(cells)
    assert found.loc["a", "softlearning"] == pytest.approx(0.1)  # 1 - AUC, a mean over the seeds
    assert found.loc["b", "softlearning"] == 30.0
    assert found.loc["c", "catboost"] == 0.4


def test_each_system_is_set_against_the_catboost_of_its_own_run(cells, published):
    lines = beside(cells, NAMES, published).set_index("table")
    assert list(lines.index) == ["a", "b", "c"]
    assert lines["softlearning"].tolist() == pytest.approx([0.5, 1.5, 0.25])
    assert lines[BEST].tolist() == pytest.approx([0.5] * 3)
    assert lines.loc["a", "catboost, here against there"] == pytest.approx(2.0)


def test_the_page_lists_what_is_lost(cells, published):
    lines = beside(cells, NAMES, published)
    found = means(lines).set_index("system")
    assert found.loc["softlearning", "mean"] == pytest.approx((0.5 * 1.5 * 0.25) ** (1 / 3))
    assert found.loc["softlearning", "low"] < found.loc["softlearning", "mean"] < found.loc["softlearning", "high"]
    text = page(lines)
    assert text.count("What it cannot: the splits are others") == 1
    assert "softlearning has the larger error on 1: b 1.500." in text
    labels = [tick.get_text() for tick in draw(lines).axes[0].get_yticklabels()]
    assert labels == ["c", "a", "b", "means, 95 %"]


@pytest.mark.parametrize("problem", ["binary", "regression"])
def test_the_system_fits_raw_columns_and_answers_by_row(rng, problem):
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["x", "y", None], 60)}, index=range(100, 160))
    y = pd.Series(np.where(X["a"] > 0, "yes", "no") if problem == "binary" else 2 * X["a"], index=X.index)
    linear = "logistic" if problem == "binary" else "ridge_cv"
    system = SoftLearningSystem(library=[linear, "dummy"])
    budget = {"num_cpus": 1, "num_gpus": 0, "memory_limit": None, "time_limit": None, "random_state": None}
    told = {"target_name": "y", "eval_metric": None, "validation_metadata": None}
    assert system._fit_system(X, y, problem_type=problem, **told, **budget) is system
    if problem == "binary":
        P = system._predict_proba(X)
        assert list(P.columns) == ["no", "yes"]
        assert (P.idxmax(axis=1) == y).mean() > 0.9
    else:
        P = system._predict(X)
        assert np.corrcoef(P, y)[0, 1] > 0.95
    assert P.index.equals(X.index)
