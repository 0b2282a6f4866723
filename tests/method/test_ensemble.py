"""The fitted ensemble: refit or the mean of the folds, and what another combination takes over."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes

from softlearning import SoftClassifier, SoftRegressor, evaluate
from softlearning.library import every_row
from softlearning.method import ensemble as ensemble_module
from softlearning.method.ensemble import FEWEST, chunks, needed, predict_members


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:150], y[:150]


@pytest.fixture(scope="module")
def folds(diabetes):
    return SoftRegressor(["ridge", "knn_5", "decision_tree"], refit=False).fit(*diabetes)


def test_without_a_refit_the_prediction_is_the_mean_of_the_folds_models(folds, diabetes):
    X, _ = diabetes
    assert {len(models) for models in folds.specialists_.values()} == {5}
    names = folds.record_.support()
    P = predict_members(folds.record_.ensemble, names, X)
    assert_allclose(folds.predict(X), P[:, :, 0] @ folds.record_.support_weights())


def test_a_refitted_specialist_is_one_model(diabetes):
    model = SoftRegressor(["ridge", "knn_5"], refit=True).fit(*diabetes)
    assert not any(isinstance(m, list) for m in model.specialists_.values())


@pytest.mark.parametrize("change", ["recombine", "drop", "expand"])
def test_another_combination_of_folds_models_equals_a_fresh_fit(folds, diabetes, change):
    X, y = diabetes
    if change == "recombine":
        again, fresh = folds.recombine(rule="uniform", X=X, y=y), ["ridge", "knn_5", "decision_tree"]
    elif change == "drop":
        again, fresh = folds.drop("ridge", X, y), ["knn_5", "decision_tree"]
    else:
        again, fresh = folds.expand(["lasso"], X, y), ["ridge", "knn_5", "decision_tree", "lasso"]
    model = SoftRegressor(fresh, refit=False, rule=again.rule).fit(X, y)
    assert_allclose(again.predict(X), model.predict(X), atol=1e-9)


def test_models_of_folds_can_be_evaluated(folds, diabetes):
    table = evaluate(folds, *diabetes, cv=2).scores
    assert np.isfinite(table["score"]).all()


def test_several_threads_predict_the_same(diabetes):
    X, y = diabetes
    model = SoftRegressor(["ridge", "knn_5", "decision_tree"], rule="uniform").fit(X, y)
    many = np.tile(X, (10, 1))
    ensemble, names = model.record_.ensemble, model.record_.support()
    assert_array_equal(predict_members(ensemble, names, many, workers=2), predict_members(ensemble, names, many))


def test_a_stacker_brings_those_it_reads():
    rows = every_row("classification")["logistic", "naive_bayes", "dummy"]
    (pool,) = every_row("classification")["log_pool"]
    assert needed(["log_pool"], rows + type(pool)("log_pool", "stacker", pool.make, needs="", level=2)) == (
        "logistic",
        "naive_bayes",
        "log_pool",
    )


def test_a_class_weight_moves_the_probabilities(rng):
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] + rng.normal(size=300) > 1.5, "rare", "common")
    plain = SoftClassifier(["logistic"]).fit(X, y)
    heavy = SoftClassifier(["logistic"], class_weight={"rare": 5, "common": 1}).fit(X, y)
    rare = list(plain.classes_).index("rare")
    assert heavy.predict_proba(X)[:, rare].mean() > plain.predict_proba(X)[:, rare].mean() + 0.1


@pytest.mark.parametrize(("rows", "columns"), [(1, 3), (16_383, 3), (16_384, 10**6), (100_000, 30), (49_153, 2**20)])
def test_chunks_are_all_rows_in_order_and_none_is_small(rows, columns):
    parts = chunks(rows, columns)
    assert np.concatenate([np.arange(rows)[part] for part in parts]).tolist() == list(range(rows))
    sizes = [part.stop - part.start for part in parts]
    assert min(sizes) >= min(rows, FEWEST)
    assert max(sizes) < 2 * max(FEWEST, ensemble_module.CHUNK // columns)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (SoftClassifier, ["qda", "logistic", "spline_logistic", "decision_tree"]),
        (SoftRegressor, ["ridge_cv", "spline_ridge"]),
        pytest.param(SoftClassifier, ["lightgbm", "catboost_own", "network", "log_pool"], marks=pytest.mark.slow),
        pytest.param(SoftRegressor, ["lightgbm", "wide_trees", "network", "signed_stack"], marks=pytest.mark.slow),
    ],
)
def test_predicting_in_chunks_changes_no_bit(kind, names, rng, monkeypatch):
    X = rng.normal(size=(50_000, 24))
    y = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=len(X))
    y = np.digitize(y, [0, 1]) if kind is SoftClassifier else y
    model = kind(names, rule="uniform", cv=2).fit(X[:400], y[:400])
    assert len(chunks(*X.shape)) == 1
    answers = lambda: (model.specialist_predictions(X), model.disagreement(X), model._blend(X))
    whole = answers()
    monkeypatch.setattr(ensemble_module, "CHUNK", 1)
    assert len(chunks(*X.shape)) == 3
    for part, before in zip(answers(), whole):
        assert_array_equal(part, before)
