"""The study keeps what specialists predict, combines it as the estimators do, and draws its page from the csv alone."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, load_wine

from softlearning import SoftClassifier
from softlearning_bench.datasets import dataset
from softlearning_bench.shared import LIBRARIES, Specialists, outer_fold
from softlearning_bench.study import MODEL_SEED, evaluate_cell, open_part, run_scheme, schemes
from softlearning_bench.study_report import (
    DEFAULT,
    PICKED,
    SCALED,
    STACKING,
    axis_table,
    family_gaps,
    fill,
    goals_table,
    log_ratios,
    markdown,
    scaling_table,
    unseen_table,
)
from softlearning_bench.study_sets import SETS, StudySet

ROOT = Path(__file__).parents[2]
ROWS = ["logistic", "naive_bayes", "dummy", "log_pool"]


def iris(seed):
    return load_iris(return_X_y=True)


IRIS = StudySet("iris", "classification", iris, (0,))


@pytest.fixture
def shared(monkeypatch):
    """Iris, with a default of three specialists and a stacker."""
    monkeypatch.setitem(LIBRARIES, "default", ROWS)
    monkeypatch.setitem(LIBRARIES, "paper", ROWS[:2])
    return Specialists(open_part(IRIS, 0))


def test_a_part_of_the_study_is_split_by_the_seed_and_keeps_every_class():
    part = open_part(IRIS, 0)
    assert (len(part.y), len(part.y_test), part.classes) == (120, 30, 3)
    assert np.bincount(part.y_test).tolist() == [10, 10, 10]
    assert not np.array_equal(open_part(IRIS, 1).X_test, part.X_test)


def test_a_table_of_the_suite_is_split_as_the_benchmark_does():
    of = next(s for s in SETS if s.name == "C10_tiny_regression")
    row = dataset(of.name)
    np.testing.assert_array_equal(open_part(of, 3).y_test, outer_fold(row, row.table(), 3, MODEL_SEED).y_test)


def test_a_scheme_is_the_estimator_with_its_settings(shared):
    part = shared.part
    line = run_scheme(shared, {"rule": "simplex", "loss": "squared"})
    model = SoftClassifier(ROWS, rule="simplex", loss="squared", random_state=MODEL_SEED).fit(part.X, part.y)
    P = model.predict_proba(part.X_test)
    assert line["loss"] == pytest.approx(-np.log(P[np.arange(30), part.y_test]).mean())
    assert line["cv_risk"] == pytest.approx(model.cv_risk_)
    assert line["support"] == (model.weights_ > 0).sum()
    assert line["weight_2"] == pytest.approx(model.weights_.get("log_pool", 0.0))


def test_a_cell_has_a_line_per_scheme_its_peers_and_every_specialist(shared):
    lines, alone = evaluate_cell(shared, axes=["rule", "level 2"])
    table = pd.DataFrame(lines)
    assert table["axis"].value_counts().to_dict() == {"level 2": 5, "rule": 6, "peer": 4}
    assert table["loss"].between(0, 1).all()
    assert {line["specialist"] for line in alone} == {"logistic", "naive_bayes", "dummy"}
    best = table.set_index("scheme").loc["oracle specialist"]
    assert best["loss"] == min(line["loss"] for line in alone)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_scheme_differs_from_the_others_by_name_and_settings(task):
    table = schemes(task)
    assert len({(axis, name) for axis, name, _ in table}) == len(table)
    assert [name for _, name, settings in table if not settings] == ["default"]


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
    for name, picked in (("a", 0.9), ("b", 2.0)):
        for seed in (0, 1):
            losses = {("method", DEFAULT): 1.0, ("peer", STACKING): 1.1, ("peer", PICKED): picked}
            losses |= {("peer", "oracle specialist"): 0.9, ("method", "paper"): 2.0}
            for (axis, scheme), loss in losses.items():
                seconds = 2.0 if scheme == "paper" else 1.0
                where = {"dataset": name, "seed": seed, "task": "classification", "kind": "real", "rows": 2000}
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


def test_members_of_the_default_are_those_that_the_study_took_away():
    """What the library of today holds is another matter."""
    cells = results().assign(kind="family")
    row = cells[cells["scheme"] == PICKED].assign(axis="row", scheme="without catboost_coarse")
    lines = [{"dataset": "a", "seed": 0, "task": "classification", "specialist": name, "score": score}
             for name, score in (("catboost_coarse", 0.51), ("logistic", 0.9))]  # fmt: skip
    gaps = family_gaps(pd.concat([cells, row]), pd.DataFrame(lines))
    assert gaps.to_dict() == pytest.approx({"a": -0.01})


def test_the_committed_page_is_what_the_committed_results_give():
    page = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    tables = [pd.read_csv(ROOT / "benchmarks" / "results" / f"study_{name}.csv") for name in ("schemes", "specialists")]
    goals = f"<!-- table: goals -->\n{markdown(goals_table(*tables))}\n<!-- end -->"
    assert goals in page


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
