"""Contributions of columns add up exactly, agree with brute force, and are right where the answer is known."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import PartialDependenceDisplay, permutation_importance

from softlearning import SoftClassifier, SoftRegressor
from softlearning.evaluation import explanation
from softlearning.evaluation.explanation import error_slices, holm, shapley


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
    d, total = len(x), np.zeros(len(x))
    orders = list(permutations(range(d)))
    for z in background:
        for order in orders:
            row = z.copy()
            before = f(row[None])[0]
            for j in order:
                row[j] = x[j]
                after = f(row[None])[0]
                total[j] += after - before
                before = after
    return total / len(orders) / len(background)


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


def test_what_is_additive_has_no_error():
    rng = np.random.default_rng(2)
    X, background = rng.normal(size=(3, 8)), rng.normal(size=(6, 8))
    found = shapley(MODELS["linear"], X, background)
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
