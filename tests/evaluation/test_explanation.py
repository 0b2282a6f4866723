"""Contributions of columns add up exactly, agree with brute force, and are right where the answer is known."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.inspection import PartialDependenceDisplay, permutation_importance

from softlearning import SoftClassifier, SoftRegressor
from softlearning.evaluation import explanation
from softlearning.evaluation.explanation import error_slices, holm, interactions, shapley


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 300),
            "plan": rng.choice(["monthly", "yearly", "none"], 300),
            "income": rng.normal(50, 10, 300),
            **{f"noise_{j}": rng.normal(size=300) for j in range(4)},
        }
    )
    y = frame["age"] / 10 + 3.0 * (frame["plan"] == "yearly") + rng.normal(0, 0.1, 300)
    return frame, y.to_numpy()


@pytest.fixture(scope="module")
def regressor(mixed):
    return SoftRegressor(["ridge", "decision_tree"], cv=3).fit(*mixed)


def brute_force(f, x, background):
    """The mean over all orders of what a column changes, averaged over background rows."""
    d, rows = len(x), []
    orders = list(permutations(range(d)))
    for z in background:
        for order in orders:
            rows += [np.where(np.isin(np.arange(d), order[:step]), x, z) for step in range(d + 1)]
    changes = np.diff(f(np.array(rows)).reshape(len(background), len(orders), d + 1), axis=2).mean(axis=0)
    return np.mean([row[np.argsort(order)] for row, order in zip(changes, orders)], axis=0)


MODELS = {
    "product": lambda X: X[:, 0] * X[:, 1] + X[:, 2],
    "largest": lambda X: X.max(axis=1),
    "steps": lambda X: (X[:, 0] > 0) * 2.0 + (X[:, 1] > X[:, 2]),
    "linear": lambda X: X @ np.arange(1.0, X.shape[1] + 1),
    "waves": lambda X: np.sin(X[:, 0]) * X[:, 3] - X[:, 1] ** 2,
}


@pytest.mark.parametrize("name", MODELS)
def test_sampled_and_exact_values_agree_with_brute_force(name, monkeypatch):
    rng = np.random.default_rng(1)
    X, background, f = rng.normal(size=(2, 4)), rng.normal(size=(5, 4)), MODELS[name]
    truth = np.array([brute_force(f, x, background) for x in X])
    np.testing.assert_allclose(shapley(f, X, background).values, truth, atol=1e-12)
    monkeypatch.setattr(explanation, "FEW", 0)
    sampled = shapley(f, X, background, walks=100)
    np.testing.assert_allclose(sampled.values.sum(axis=1), sampled.prediction - sampled.base, atol=1e-9)
    assert (np.abs(sampled.values - truth) <= 5 * sampled.error + 1e-12).all()
    assert (np.argsort(np.abs(sampled.values), axis=1)[:, -1] == np.argsort(np.abs(truth), axis=1)[:, -1]).all()


FITTED = {
    "boosting": SoftRegressor(["lightgbm"], cv=2),
    "neighbours": SoftRegressor(["knn_5", "ridge"], cv=2),
    "kernels": SoftRegressor(["svr_rbf", "decision_tree"], cv=2),
    "classes": SoftClassifier(["logistic", "decision_tree"], cv=2),
    "forest": SoftClassifier(["extra_trees", "naive_bayes"], cv=2),
}


@pytest.mark.parametrize("name", FITTED)
def test_columns_of_fitted_blends_rank_as_by_brute_force_over_all_sets(name, monkeypatch):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(120, 4))
    y = 3 * X[:, 0] - 2 * X[:, 1] * (X[:, 2] > 0) + 0.1 * rng.normal(size=120)
    model = FITTED[name].fit(X, y > 0 if isinstance(FITTED[name], SoftClassifier) else y)
    f = (lambda rows: model.predict_proba(rows)[:, 1]) if hasattr(model, "classes_") else model.predict
    truth = np.array([brute_force(f, x, X[2:6]) for x in X[:2]])
    exact = model.explain(X[:2], X[2:6])
    np.testing.assert_allclose(exact.to_numpy()[:, 1:], truth, atol=1e-9)
    np.testing.assert_allclose(exact.sum(axis=1), f(X[:2]), atol=1e-9)
    monkeypatch.setattr(explanation, "FEW", 0)
    sampled = model.explain(X[:2], X[2:6], walks=200)
    np.testing.assert_allclose(sampled.sum(axis=1), f(X[:2]), atol=1e-9)
    order = np.argsort(np.abs(truth), axis=1)
    np.testing.assert_array_equal(np.argsort(np.abs(sampled.to_numpy()[:, 1:]), axis=1), order)


def test_the_error_that_is_stated_is_the_error_that_is_made(monkeypatch):
    rng = np.random.default_rng(3)
    X, background = rng.normal(size=(4, 6)), rng.normal(size=(8, 6))
    f = lambda rows: np.prod(rows[:, :3], axis=1) + rows[:, 3] * rows[:, 4] + 5 * rows[:, 5]
    runs = [shapley(f, X, background, seed=s) for s in range(100)]
    monkeypatch.setattr(explanation, "FEW", 6)
    truth = shapley(f, X, background).values
    made = np.sqrt(np.mean([(run.values - truth) ** 2 for run in runs], axis=0))
    stated = np.sqrt(np.mean([run.error**2 for run in runs], axis=0))
    np.testing.assert_allclose(stated[:, :3], made[:, :3], rtol=0.2)
    assert (stated[:, 3:] < 1e-12).all()  # of two columns together, a walk and its reverse tell all


def test_trees_explain_themselves_in_another_game():
    X, y = load_diabetes(return_X_y=True)
    model = SoftRegressor(["lightgbm"], cv=2).fit(X[:300], y[:300])
    theirs = model.specialists_["lightgbm"].model_.booster_.predict(X[300:310], pred_contrib=True)
    ours, error = model.explain(X[300:310], X[:300], rows=300, return_error=True)
    np.testing.assert_allclose(theirs.sum(axis=1), model.predict(X[300:310]))
    np.testing.assert_allclose(ours.sum(axis=1), model.predict(X[300:310]), atol=1e-9)
    difference = ours.to_numpy()[:, 1:] - theirs[:, :-1]
    assert stats.spearmanr(np.abs(ours.to_numpy()[:, 1:]).mean(axis=0), np.abs(theirs[:, :-1]).mean(axis=0))[0] > 0.9
    assert np.sqrt(np.mean(difference**2)) > 5 * np.sqrt(np.mean(error.to_numpy() ** 2))


def test_columns_that_work_together_are_found_and_others_are_exactly_apart():
    rng = np.random.default_rng(8)
    X, background = rng.normal(size=(40, 5)), rng.normal(size=(40, 5))
    f = lambda rows: 2 * rows[:, 0] + np.sign(rows[:, 1] * rows[:, 2]) + rows[:, 3] ** 2
    found = interactions(f, X, background, columns=list(range(5)), strongest=4)
    assert len(found) == 6
    assert found.loc[0, ["column", "with"]].tolist() == [1, 2]
    assert found["strength"][0] == pytest.approx(1, abs=4 * found["std_error"][0])
    assert found["share"][0] == pytest.approx(1, abs=0.1)
    assert found["strength"][1:].max() < 1e-12


def test_the_error_of_an_interaction_covers_other_draws():
    rng = np.random.default_rng(9)
    f = lambda rows: rows[:, 0] * rows[:, 1]
    hits = []
    for _ in range(60):
        X, background = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
        line = interactions(f, X, background, columns=[0, 1], strongest=2).iloc[0]
        hits.append(abs(line["strength"] - 1) <= 2 * line["std_error"])
    assert np.mean(hits) >= 0.8


def test_a_model_tells_which_columns_work_together(mixed):
    frame, y = mixed
    together = y + 5 * (frame["plan"] == "yearly") * (frame["income"] > 50)
    model = SoftRegressor(["decision_tree"], cv=2).fit(frame[:200], together[:200])
    found = model.interactions(frame[200:], strongest=3)
    assert {found["column"][0], found["with"][0]} == {"plan", "income"}
    assert found["strength"][0] > 3 * found["std_error"][0]
    three = SoftClassifier(["logistic"], cv=2).fit(frame, np.digitize(y, np.quantile(y, [0.3, 0.7])))
    with pytest.raises(ValueError, match="label="):
        three.interactions(frame)
    assert len(three.interactions(frame, label=2, rows=5, strongest=2)) == 1


def test_what_is_additive_has_no_error():
    rng = np.random.default_rng(2)
    X, background = rng.normal(size=(3, 8)), rng.normal(size=(6, 8))
    found = shapley(MODELS["linear"], X, background)
    assert found.error.max() < 1e-12
    np.testing.assert_allclose(found.values, (X - background.mean(axis=0)) * np.arange(1, 9), atol=1e-12)


def test_rows_of_an_explanation_add_up_to_the_prediction(regressor, mixed):
    frame = mixed[0].iloc[:5].set_axis(list("abcde"))
    found, error = regressor.explain(frame, mixed[0], rows=8, return_error=True)
    assert list(found.columns) == ["(base value)", *frame.columns]
    assert list(found.index) == list("abcde")
    np.testing.assert_allclose(found.sum(axis=1), regressor.predict(frame), atol=1e-9)
    assert found.drop(columns="(base value)").abs().mean().idxmax() in ("age", "plan")
    assert (error.to_numpy() >= 0).all()


def test_classes_are_explained_by_their_probability(mixed):
    frame, y = mixed
    labels = np.array(["low", "mid", "top"])[np.digitize(y, np.quantile(y, [0.3, 0.7]))]
    model = SoftClassifier(["logistic", "dummy"], cv=3).fit(frame, labels)
    P = model.predict_proba(frame.iloc[:4])
    np.testing.assert_allclose(model.explain(frame.iloc[:4], frame, rows=4).sum(axis=1), P.max(axis=1), atol=1e-9)
    of_top = model.explain(frame.iloc[:4], frame, label="top", rows=4)
    np.testing.assert_allclose(of_top.sum(axis=1), P[:, 2], atol=1e-9)
    with pytest.raises(ValueError, match="'low', 'mid', 'top'"):
        model.explain(frame, label="best")


def test_arrays_are_explained_by_position():
    X = np.random.default_rng(3).normal(size=(80, 3))
    model = SoftRegressor(["ridge"], cv=2).fit(X, X @ [3.0, 0, -1])
    found = model.explain(X[:2])
    assert list(found.columns) == ["(base value)", "x0", "x1", "x2"]
    np.testing.assert_allclose(found.sum(axis=1), model.predict(X[:2]), atol=1e-9)


def test_what_specialists_contribute_is_called_so(regressor, mixed):
    parts = regressor.contributions_by_specialist(mixed[0])
    np.testing.assert_allclose(parts.sum(axis=1)[:, 0], regressor.predict(mixed[0]))


def test_a_slice_that_is_worse_is_found_and_said_in_words():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"contract": rng.choice(["month", "year"], 2_000), "tenure": rng.integers(0, 60, 2_000)})
    worse = (frame["contract"] == "month") & (frame["tenure"] <= 6)
    loss = (rng.random(2_000) < np.where(worse, 0.5, 0.1)).astype(float)
    found = error_slices(frame, loss)
    assert "contract" in found["slice"][0]
    assert "tenure <= " in found["slice"][0]
    assert found["loss"][0] > 2 * found["overall"][0]
    assert error_slices(frame, (rng.random(2_000) < 0.2).astype(float)).empty


def test_a_model_tells_its_slices_from_held_out_rows(mixed):
    frame, y = mixed
    hard = frame["plan"] == "monthly"
    noisy = y + hard * np.random.default_rng(5).normal(0, 5, len(y))
    model = SoftRegressor(["ridge"], cv=3).fit(frame, noisy)
    found = model.error_slices(frame, noisy, depth=1)
    assert found["slice"][0] == "plan = monthly"


def test_noise_that_groups_share_is_no_slice():
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(30), 20)
        frame = pd.DataFrame({"site": rng.normal(size=30)[groups], "own": rng.normal(size=600)})
        loss = np.exp(rng.normal(size=30))[groups] + 0.1 * rng.random(600)
        found.append(len(error_slices(frame, loss, groups=groups)))
        assert seed or len(error_slices(frame, loss))  # taken row by row it looks like one
    assert np.count_nonzero(found) <= 2


def test_a_slice_is_found_across_groups():
    rng = np.random.default_rng(6)
    groups = np.repeat(np.arange(60), 20)
    frame = pd.DataFrame({"own": rng.normal(size=1_200)})
    loss = rng.normal(size=60)[groups] ** 2 + 3 * (frame["own"] > 1) + rng.random(1_200)
    assert "own > " in error_slices(frame, loss, groups=groups, depth=1)["slice"][0]


def test_training_rows_are_sliced_in_the_groups_of_the_fit(rng):
    groups = np.repeat(np.arange(24), 15)
    frame = pd.DataFrame({"site": rng.normal(size=24)[groups], "own": rng.normal(size=360)})
    y = frame["own"] + np.exp(1.5 * rng.normal(size=24))[groups] * rng.normal(size=360)
    plain, grouped = (SoftRegressor(["ridge"]).fit(frame, y, groups=g) for g in (None, groups))
    assert len(plain.error_slices(frame, y))
    assert grouped.error_slices(frame, y).empty


def test_slices_are_of_the_labels_that_are_given(rng):
    frame = pd.DataFrame({"own": rng.normal(size=600), "other": rng.normal(size=600)})
    y = (rng.random(600) < 1 / (1 + np.exp(3 - 2 * frame["own"]))).astype(int)
    model = SoftClassifier(["naive_bayes"], threshold=0.05).fit(frame[:300], y[:300])
    for rows in (slice(0, 300), slice(300, 600)):
        found = model.error_slices(frame[rows], y[rows], depth=1)
        wrong = (model.predict(frame[rows]) != y[rows]).mean()
        assert found["overall"][0] == pytest.approx(wrong, abs=0.08)
        assert wrong > 0.25


def test_holm_is_no_smaller_than_the_p_values():
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03])), [0.03, 0.06, 0.06])


def test_scikit_learns_inspection_takes_mixed_frames(regressor, mixed):
    frame, y = mixed
    found = permutation_importance(regressor, frame.iloc[:60], y[:60], n_repeats=2, random_state=0)
    assert set(frame.columns[np.argsort(-found.importances_mean)[:2]]) == {"age", "plan"}
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="partial dependence is drawn with matplotlib")
    shown = PartialDependenceDisplay.from_estimator(
        regressor,
        frame.iloc[:40].astype({"age": float}),
        ["age", "plan"],
        categorical_features=["plan"],
        grid_resolution=5,
    )
    assert len(shown.pd_results) == 2
    pyplot.close("all")


def test_shap_takes_the_prediction(regressor, mixed):
    shap = pytest.importorskip("shap", reason="an optional package of its own")
    numbers = SoftRegressor(["ridge"], cv=2).fit(mixed[0][["age", "income"]], mixed[1])
    found = shap.Explainer(numbers.predict, mixed[0][["age", "income"]].iloc[:20])(mixed[0][["age", "income"]].iloc[:3])
    assert found.values.shape == (3, 2)
