"""What a worker runs: checked predictions, seeds from names, labels in the user's words."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from softlearning import SoftClassifier, SoftRegressor
from softlearning.library import every_row, resolve
from softlearning.method import crossfit, ensemble
from softlearning.method.fitting import (
    coded,
    part_of,
    predict_tensor,
    probabilities,
    ready,
    seed_for,
    seeded,
    single_threaded,
    stacker_features,
    weight_argument,
)


class Says:
    """Predicts what it was told to."""

    def __init__(self, answer, classes=None):
        self.answer, self.classes_ = np.asarray(answer, dtype=float), classes

    def predict(self, X):
        return self.answer

    predict_proba = predict


def test_a_seed_depends_on_seed_name_and_fold_alone():
    assert seed_for(1, "a", 2) == seed_for(1, "a", 2)
    assert len({seed_for(1, "a", 2), seed_for(1, "a", 3), seed_for(1, "b", 2), seed_for(2, "a", 2)}) == 4


def test_all_steps_are_seeded_and_run_on_one_thread():
    pipeline = make_pipeline(StandardScaler(), KNeighborsClassifier(n_jobs=4))
    assert single_threaded(pipeline).steps[-1][1].n_jobs == 1
    assert seeded(LogisticRegression(), 7).random_state == 7


def test_scores_become_probabilities(rng):
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1], 30)
    (row,) = resolve([RidgeClassifier()], "classification")
    model = ready(row, "classification", 2, 0, X, y, ()).fit(X, y)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_a_class_that_a_fold_lacked_gets_probability_zero():
    P = predict_tensor(Says([[0.25, 0.75]], classes=np.array([0, 2])), np.zeros((1, 1)), 3)
    assert_array_equal(P, [[0.25, 0, 0.75]])


def test_labels_in_the_users_words_find_their_codes():
    labels = np.array(["no", "yes"])
    assert_array_equal(coded(["yes", "no", "maybe"], labels), [1, 0, -1])
    P = predict_tensor(Says([[0.3, 0.7]], classes=np.array(["yes", "no"])), np.zeros((1, 1)), 2, labels)
    assert_array_equal(P, [[0.7, 0.3]])


@pytest.mark.parametrize(
    ("answer", "classes", "message"),
    [
        ([[0.5, 0.6]], [0, 1], "not probabilities"),
        ([[-0.5, 1.5]], [0, 1], "not probabilities"),
        ([[np.nan, 1]], [0, 1], "NaN or infinity"),
        ([[0.5, 0.5]], [0, 7], "classes that the target does not have"),
        ([[0.5, 0.5], [0.5, 0.5]], [0, 1], "shape"),
    ],
)
def test_what_is_not_a_prediction_is_refused(answer, classes, message):
    with pytest.raises(ValueError, match=message):
        predict_tensor(Says(answer, np.array(classes)), np.zeros((1, 1)), 2)


def test_numbers_are_one_column():
    assert_array_equal(predict_tensor(Says([1.0, 2.0]), np.zeros((2, 1)), 1), [[1], [2]])


def test_weights_reach_the_last_step_of_a_pipeline_and_nobody_who_takes_none(rng):
    w = np.ones(3)
    assert list(weight_argument(make_pipeline(StandardScaler(), Ridge()), w)) == ["ridge__sample_weight"]
    assert weight_argument(KNeighborsClassifier(), w) == {}
    assert list(weight_argument(DummyClassifier(), w)) == ["sample_weight"]


def test_a_stacker_reads_logarithms_of_probabilities_and_plain_numbers():
    P = np.array([[[0.0, 1.0], [0.5, 0.5]]])
    assert_allclose(stacker_features(P), [[np.log(1e-6), 0, np.log(0.5), np.log(0.5)]])
    assert_array_equal(stacker_features(np.array([[[3.0], [4.0]]])), [[3, 4]])


def test_rounding_is_forgiven_and_rows_sum_to_one():
    assert_array_equal(probabilities(np.array([[0.2501, 0.75]]), np.array([0, 1]), 1, 2).sum(axis=1), [1])


# ------------------------------------------------------------------------------------------------- growing tables


def test_a_part_of_the_rows_shares_the_classes_evenly_and_keeps_the_rare(rng):
    y = np.repeat([0, 1, 2], [9_000, 990, 10])
    part = part_of(y, 1_000, 3, seed=0)
    assert np.bincount(y[part]).tolist() == [900, 99, 2]
    assert (np.diff(part) > 0).all()
    np.testing.assert_array_equal(part, part_of(y, 1_000, 3, seed=0))
    assert len(set(part_of(y, 1_000, 3, seed=1)) & set(part)) < 500
    assert len(part_of(rng.normal(size=50), 20, 1, seed=0)) == 20


def test_a_specialist_that_grows_too_fast_learns_from_a_stated_part(rng):
    X = rng.normal(size=(1_800, 3))
    row = replace(every_row("regression")["knn_5"].specialists[0], sample_rows=1_000)
    model = SoftRegressor([row, "ridge"], cv=3, refit=True).fit(X, X[:, 0])
    board = model.leaderboard_.set_index("specialist")
    assert "learnt from 1,000 rows of a fold" in board.loc["knn_5", "note"]
    assert "learnt from" not in board.loc["ridge", "note"]
    models = {name: m[0].model for name, m in model.record_.ensemble.members.items()}
    assert models.get("knn_5", SimpleNamespace(n_samples_fit_=1_000)).n_samples_fit_ == 1_000


def test_where_the_part_would_be_too_small_it_is_skipped_and_says_so(rng):
    X = rng.normal(size=(1_200, 3))
    row = replace(every_row("regression")["knn_5"].specialists[0], sample_cells=300)
    model = SoftRegressor([row, "ridge"], cv=3).fit(X, X[:, 0])
    status = model.leaderboard_.set_index("specialist").loc["knn_5", "status"]
    assert status == "skipped: of 3 columns and 1 classes it could learn from 100 rows only"


def shrunk_tasks(monkeypatch, *rooms, share=lambda task: 0.3):
    """Every task of these rooms gives the models of fewer rows, as where time is short."""
    for room in rooms:

        def shrunk(work, *rest, plan=room.fit_task, **named):
            task = plan(work, *rest, **named)
            return replace(task, args=task.shrink(share(task)), shrink=None)

        monkeypatch.setattr(room, "fit_task", shrunk)


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("short", ["folds", "refit", "both", "uneven"])
def test_what_learnt_from_fewer_rows_reads_the_view_of_those_rows(short, refit, rng, monkeypatch):
    X = rng.normal(size=(4_000, 12))
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=4_000), [-1.17, 0.31, 2.03])
    capped = replace(every_row("classification")["lightgbm"].specialists[0], needs="pairs", sample_rows=2_011)
    rooms = {"folds": [crossfit], "refit": [ensemble], "both": [crossfit, ensemble], "uneven": [crossfit]}[short]
    share = (lambda task: 0.3 + 0.1 * task.fold) if short == "uneven" else (lambda task: 0.3)
    shrunk_tasks(monkeypatch, *rooms, share=share)
    model = SoftClassifier([capped, "logistic"], cv=3, refit=refit).fit(X, y)
    members = model.record_.ensemble.members["lightgbm"]
    assert len(members) == (1 if refit else 3)
    for member in members:
        assert 0 < member.view.rows <= 2_011
        view = model.record_.ensemble.views[member.view]
        assert view.transform(X[:5]).shape[1] == member.model.n_features_in_
    assert model.predict_proba(X[:50]).shape == (50, 4)


@pytest.mark.parametrize(
    "forest",
    [
        ExtraTreesClassifier(20, max_leaf_nodes=50),
        RandomForestClassifier(20),
        ExtraTreesRegressor(20),
        RandomForestRegressor(20),
    ],
)
def test_a_forest_tree_by_tree_is_the_forest_bit_for_bit(forest, rng):
    X = rng.normal(size=(200, 4))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    forest.fit(X, y)
    classes = 3 if hasattr(forest, "classes_") else 1
    few = predict_tensor(forest, X[:7], classes)
    P = forest.predict_proba(X[:7]) if classes == 3 else forest.predict(X[:7])[:, None]
    np.testing.assert_array_equal(few, P / P.sum(axis=1, keepdims=True) if classes == 3 else P)
