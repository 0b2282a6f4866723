"""What is read off the results: scores, best members, weights by family, groups."""

import pytest
from numpy.testing import assert_allclose

from benchmarks.tests.fake import WEIGHTS, fake_cells
from softlearning.library import resolve
from softlearning_bench.paper import paper_results
from softlearning_bench.summary import FIELD, OURS, SOFT, mean_by_task, paper_library_score, summarise


@pytest.fixture(scope="module")
def summary():
    return summarise(fake_cells())


def test_scores_stand_in_the_papers_order_with_its_values(summary):
    printed = paper_results()
    assert summary.scores.index.tolist() == printed.index.tolist()
    assert_allclose(summary.scores["CatBoost"], printed["CatBoost"])


def test_a_dataset_without_all_methods_is_not_ranked():
    cells = fake_cells(["A02_wine", "A04_digits"])
    lacking = cells[~((cells["dataset"] == "A02_wine") & (cells["method"] == "NeuroSym"))]
    assert summarise(lacking).complete().index.tolist() == ["A04_digits"]


def test_methods_keep_the_order_asked_for(summary):
    assert summary.methods() == list(FIELD)
    assert summary.methods((SOFT, "nothing", OURS)) == [SOFT, OURS]


def test_the_best_member_of_the_papers_library_is_a_specialist_by_itself(summary):
    best = summary.best_member("paper")
    members = {name for task in ("classification", "regression") for name in resolve("paper", task).names}
    names = [name for name in summary.scores.columns if name.removeprefix("specialist ") in members]
    assert_allclose(best["score"], summary.scores[names].max(axis=1))
    assert not best["specialist"].str.startswith("specialist").any()


def test_our_members_are_those_that_have_weight_in_the_results(summary):
    best = summary.best_member("default")
    wine, energy = summary.scores.loc["A02_wine"], summary.scores.loc["C05_energy"]
    assert best.loc["A02_wine", "score"] == max(wine[f"specialist {name}"] for name in WEIGHTS["classification"])
    assert best.loc["C05_energy", "score"] == max(energy[f"specialist {name}"] for name in WEIGHTS["regression"])


def test_a_name_of_an_earlier_version_keeps_its_family():
    cells = fake_cells(["A02_wine", "C05_energy"])
    cells.loc[cells["method"] == OURS, "weights"] = '{"catboost_coarse": 0.75, "mlp_large_scaled": 0.25}'
    found = summarise(cells).family_weights(OURS)
    assert found.loc["C05_energy", ["tree", "neural"]].tolist() == [0.75, 0.25]


def test_weights_are_means_over_folds_and_add_up_by_family(summary):
    weights = summary.weights(SOFT).loc["A02_wine"]
    assert_allclose(weights[list(WEIGHTS["classification"])], list(WEIGHTS["classification"].values()))
    families = summary.family_weights(SOFT).loc["A02_wine"]
    assert_allclose(families[["linear", "tree", "neural"]], [0.2, 0.5, 0.3])
    assert_allclose(summary.family_weights(SOFT).sum(axis=1), 1)


def test_groups_label_datasets(summary):
    groups = summary.groups(["A01_iris", "C07_large_regression"])
    assert groups["task"] == ["classification", "regression"]
    assert (groups["source"], groups["size"]) == (["real", "synthetic"], ["small", "large"])


def test_means_by_task_are_those_of_the_papers_table_4():
    means = mean_by_task(paper_results())
    assert_allclose(means.loc["CatBoost"], [0.891, 0.725], atol=6e-4)


def test_members_of_the_papers_library_are_its_seven_baselines():
    printed = paper_results()
    assert paper_library_score(printed)["B04_satellite"] == printed.loc["B04_satellite", "CatBoost"]
    assert paper_library_score(printed)["A01_iris"] == 0.953  # not Best-of-3, which is .967
