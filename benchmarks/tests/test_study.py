"""The study keeps what specialists predict, combines it as the estimators do, and draws its page from the csv alone."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softlearning import SoftClassifier
from softlearning.library import every_row
from softlearning_bench.study import MODEL_SEED, cached_whole, fit_cell, open_cell
from softlearning_bench.study_report import (
    DEFAULT,
    PICKED,
    SCALED,
    STACKING,
    axis_table,
    fill,
    goals_table,
    log_ratios,
    scaling_table,
    unseen_table,
)
from softlearning_bench.study_schemes import Scheme, measures, open_cached, run_scheme, sklearn_stacking
from softlearning_bench.study_sets import SETS, StudySet

ROWS = ("logistic", "naive_bayes", "dummy")


def iris(seed):
    return load_iris(return_X_y=True)


IRIS = StudySet("iris", "classification", iris, (0,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "iris-0"
    fit_cell(open_cell(IRIS, 0), folder, every_row("classification")[ROWS])
    return folder


@pytest.fixture
def cached(folder):
    return open_cached(open_cell(IRIS, 0), folder)


@pytest.fixture(scope="module")
def parts():
    X, y = iris(0)
    return train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)


def test_a_cell_that_is_whole_is_not_fitted_again(folder):
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    fit_cell(open_cell(IRIS, 0), folder, every_row("classification")[ROWS])
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert set(before) == {f"{row}.npz" for row in ROWS}


def test_predictions_of_another_draw_are_refused(folder):
    with pytest.raises(ValueError, match="another draw"):
        open_cached(open_cell(IRIS, 1), folder)


@pytest.mark.parametrize("cv", [None, "5x2"])
def test_the_default_scheme_on_the_cache_is_the_estimator(cv, parts, tmp_path):
    X, X_test, y, y_test = parts
    cell = open_cell(IRIS, 0, cv)
    fit_cell(cell, tmp_path, every_row("classification")[ROWS])
    cached = open_cached(cell, tmp_path)
    folds = cv and RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=MODEL_SEED)
    model = SoftClassifier([*ROWS, "log_pool"], rule="guarded", cv=folds, random_state=MODEL_SEED).fit(X, y)
    scheme = Scheme("s", ROWS, "shrunk_50", ("log_pool",), "all", "guarded", "log", guard=-np.inf)
    line = run_scheme(cached, scheme)
    ours = measures(model.predict_proba(X_test), np.eye(3)[y_test])
    assert line["loss"] == pytest.approx(ours["loss"], rel=1e-6)
    assert line["score"] == ours["score"]
    assert line["cv_risk"] == pytest.approx(model.cv_risk_, rel=1e-6)


def test_stacking_on_the_cache_is_scikit_learns(cached, parts):
    X, X_test, y, y_test = parts
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, tol=1e-4))
    members = [("logistic", logistic), ("naive_bayes", make_pipeline(StandardScaler(), GaussianNB()))]
    folds = StratifiedKFold(5, shuffle=True, random_state=MODEL_SEED)
    theirs = StackingClassifier(members, cv=folds).fit(X, y).predict_proba(X_test)
    line = sklearn_stacking(cached, ("logistic", "naive_bayes"))
    assert line["loss"] == pytest.approx(measures(theirs, np.eye(3)[y_test])["loss"], rel=1e-3)


def test_a_failed_guard_takes_the_best_specialist(cached):
    always = run_scheme(cached, Scheme("always", ROWS, guard=np.inf))
    assert always["support"] == 1
    assert always["loss"] == run_scheme(cached, Scheme("best", ROWS, rule="best"))["loss"]


def test_measures_of_a_perfect_prediction():
    target = np.eye(2)[[0, 1, 1]]
    assert measures(target, target) == {"loss": 0.0, "score": 1.0, "brier": 0.0, "auc": 1.0}


def test_every_table_of_the_study_has_a_name_of_its_own():
    assert len({s.name for s in SETS}) == len(SETS)


def test_a_column_of_a_table_makes_a_regression_of_the_others():
    wine = next(s for s in SETS if s.name == "wine_alcohol")
    X, y = wine.load(0)
    whole = load_wine().data
    np.testing.assert_array_equal(np.column_stack([y, X]), whole)


def results():
    """Two tables of two seeds; the default has loss 1, stacking 1.1, the pick 0.9 on one table and 2 on the other."""
    lines = []
    for dataset, picked in (("a", 0.9), ("b", 2.0)):
        for seed in (0, 1):
            losses = {("method", DEFAULT): 1.0, ("peer", STACKING): 1.1, ("peer", PICKED): picked}
            losses |= {("peer", "best with hindsight"): 0.9, ("method", "paper"): 2.0}
            for (axis, scheme), loss in losses.items():
                seconds = 2.0 if scheme == "paper" else 1.0
                where = {"dataset": dataset, "seed": seed, "task": "classification", "kind": "real", "rows": 2000}
                lines.append({**where, "axis": axis, "scheme": scheme, "loss": loss, "score": 0.5, "seconds": seconds})
    return pd.DataFrame(lines)


def test_ratios_are_paired_by_table_and_seed():
    ratios = log_ratios(results(), "peer", PICKED)
    assert_allclose(np.exp(ratios.to_numpy()), [0.9, 0.9, 2.0, 2.0])
    table = axis_table(results(), "peer", "classification").set_index("scheme")
    assert table.loc[PICKED, "loss ratio"] == pytest.approx((0.9 * 2) ** 0.5)
    assert table.loc[PICKED, "default better"] == "2 of 4"


def test_goals_are_reached_or_missed_by_their_figures():
    member = {"dataset": "a", "seed": 0, "task": "classification", "specialist": "logistic", "score": 0.52}
    goals = goals_table(results().assign(kind="family"), pd.DataFrame([member]))
    assert goals["measured"].tolist()[0] == "1.111"
    assert goals["measured"].tolist()[5] == "worst -0.0200 (a)"
    assert goals["reached"].tolist() == ["no", "no", "no", "yes", "yes", "no", "yes"]


def test_tables_that_had_no_part_in_the_choice_are_shown_by_themselves():
    schemes = results().assign(dataset=lambda t: t.dataset.replace("b", "mc5_20k"))
    table = unseen_table(schemes, "classification").set_index("scheme")
    assert table.loc[PICKED, "loss ratio"] == pytest.approx(2.0)
    assert table.loc[PICKED, "tables / cells"] == "1 / 2"


def test_a_scaled_target_is_held_against_the_plain_one_on_the_same_cells():
    lines = [
        {"dataset": "a", "seed": seed, "task": "regression", "specialist": name, "score": score, "folds_seconds": 1.0}
        for seed, name, score in ((0, "svr", 0.5), (0, "svr_rbf", 0.1), (1, "svr", 0.9))
    ]
    lines += [{**lines[0], "specialist": name} for pair in list(SCALED.items())[:2] for name in pair]
    table = scaling_table(pd.DataFrame(lines).assign(refit_seconds=1.0)).set_index("specialist")
    assert table.loc["svr_rbf"].tolist() == [0.1, 0.5, 2.0, 2.0, "1 of 1"]


def test_filling_a_page_replaces_what_was_there():
    page = "before <!-- table: t --> old <!-- end --> after"
    tables = {"t": lambda: pd.DataFrame({"x": [1.0, 2.5]})}
    once = fill(page, tables)
    assert "old" not in once
    assert "| 2.500 |" in once
    assert fill(once, tables) == once


def test_a_cell_that_is_cached_in_part_or_not_at_all_is_passed_over(folder, monkeypatch):
    assert cached_whole(folder.parent, IRIS, 0) is None  # three rows are not the whole default
    assert cached_whole(folder.parent, IRIS, 1) is None
    monkeypatch.setattr("softlearning_bench.study.named", lambda library, task: every_row(task)[ROWS])
    assert cached_whole(folder.parent, IRIS, 0).names == sorted(ROWS, key=str)
    assert cached_whole(folder.parent, IRIS, 0, cv="10") is None
