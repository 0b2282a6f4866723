"""What a user relies on: the blend is the optimal convex combination, reproducible, explained, and re-solvable."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, RepeatedKFold, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import softlearning
from softlearning import Library, SoftClassifier, SoftRegressor, Specialist
from softlearning.library import classifiers, every_row, regressors
from softlearning.library import recipes as rows
from tests.estimators.models import POOL, QUICK, QUICK_REGRESSION

# -- the method -----------------------------------------------------------------------------------------------------


def test_weights_are_a_point_of_the_simplex_with_a_proof(classifier):
    assert (classifier.weights_ >= 0).all()
    assert classifier.weights_.sum() == pytest.approx(1, abs=1e-12)
    assert classifier.certificate_.gap <= 1e-10 * classifier.certificate_["objective"]


def test_no_specialist_beats_the_blend_on_the_rows_that_weights_were_solved_on(classifier):
    assert classifier.certificate_.objective <= classifier.leaderboard_["cv_risk"].min() + 1e-12


def test_the_held_out_risk_is_not_the_optimised_one(classifier):
    assert classifier.cv_risk_ > classifier.certificate_.objective


def test_the_verdict_names_the_best_specialist_and_the_gain_beyond_noise(rng):
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=300)
    halves = [Specialist(f"half_{j}", "linear", OneColumn(j, Ridge())) for j in (0, 1)]
    blend, alone = SoftRegressor(halves).fit(X, y), SoftRegressor(["ridge"]).fit(X, y)
    assert blend.verdict_.startswith("the blend is better than its best single specialist, half_")
    assert alone.verdict_.startswith("the blend is the same as its best single specialist, ridge: risk ")
    notes = blend.leaderboard_.set_index("specialist")["note"]
    assert sorted(notes) == ["", "best alone; the blend is better"]


def test_the_verdict_states_the_risks_that_the_leaderboard_shows(classifier):
    comparison, board = classifier.record_.comparison, classifier.leaderboard_.set_index("specialist")["cv_risk"]
    assert comparison.rival == board.idxmin()
    assert comparison.rival_risk == board.min()
    assert comparison.risk == classifier.cv_risk_
    assert_allclose(comparison.gain, comparison.rival_risk - comparison.risk)


def test_the_loss_does_not_depend_on_who_is_in_the_library(cancer, diabetes):
    pool = ["logistic", "naive_bayes", "log_pool"]
    models = [SoftClassifier(pool), SoftClassifier(pool, calibrate=False), SoftClassifier(pool[:2])]
    assert {m.fit(*cancer).record_.loss for m in models} == {"log"}
    assert models[0].drop("log_pool", *cancer).record_.loss == "log"
    assert SoftRegressor(["ridge"]).fit(*diabetes).record_.loss == "squared"


def test_a_stacker_that_reads_the_support_reads_only_what_earns_weight(cancer):
    frugal = every_row("classification")["logistic", "naive_bayes", "dummy"] + POOL
    model = SoftClassifier(frugal).fit(*cancer)
    (pool,) = model.record_.crossed.library.level(2)
    assert "logistic" in pool.reads
    assert "dummy" not in pool.reads


def test_only_specialists_with_weight_are_refitted(classifier):
    assert set(classifier.specialists_) == set(classifier.weights_.index[classifier.weights_ > 0])


def test_out_of_fold_predictions_were_made_without_their_row(cancer):
    X, y = cancer
    model = SoftClassifier(["logistic"], calibrate=False).fit(X, y)
    train, test = model.folds_[2]
    plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, tol=1e-4)).fit(X[train], y[train])
    assert_allclose(model.oof_[test, 0], plain.predict_proba(X[test]), atol=1e-9)


def test_neighbours_out_of_fold_equal_the_plain_way(cancer):
    from sklearn.neighbors import KNeighborsClassifier

    X, y = cancer
    model = SoftClassifier(["knn_5", "knn_15"], calibrate=False).fit(X, y)
    for k, neighbours in enumerate((5, 15)):
        train, test = model.folds_[0]
        plain = make_pipeline(StandardScaler(), KNeighborsClassifier(neighbours, weights="distance"))
        assert_allclose(model.oof_[test, k], plain.fit(X[train], y[train]).predict_proba(X[test]), atol=1e-9)


def test_every_specialist_of_the_paper_runs(cancer, diabetes):
    X, y = cancer
    board = SoftClassifier("paper").fit(X[::3], y[::3]).leaderboard_
    assert (board["status"] == "ok").all()
    assert len(board) == 15
    X, y = diabetes
    board = SoftRegressor("paper").fit(X[::3], y[::3]).leaderboard_
    assert (board["status"] == "ok").all()
    assert len(board) == 16


def test_above_its_row_limit_a_specialist_is_left_out_with_the_reason(rng):
    X = rng.normal(size=(2_100, 2))
    board = SoftClassifier(classifiers("paper")["svm_rbf", "naive_bayes"]).fit(X, X[:, 0] > 0).leaderboard_
    status = board.set_index("specialist")["status"]
    assert status["svm_rbf"].startswith("skipped: more than 2,000 rows")
    assert status["naive_bayes"] == "ok"


def test_a_stacker_is_a_specialist_too(rng):
    """Two specialists that see one half of the truth each: only a stacker can multiply them."""
    X = rng.normal(size=(600, 2))
    y = (X.sum(axis=1) > 0).astype(int)
    halves = [Specialist(f"half_{j}", "linear", OneColumn(j)) for j in (0, 1)]
    stacker = Specialist("stacker", "stacker", rows.logistic, needs="", level=2)
    alone, stacked = (
        SoftClassifier(halves, loss="log").fit(X, y),
        SoftClassifier([*halves, stacker], loss="log").fit(X, y),
    )
    assert stacked.weights_["stacker"] > 0.9
    assert stacked.cv_risk_ < 0.7 * alone.cv_risk_
    assert set(stacked.specialists_) >= {"stacker"}
    assert (stacked.predict(X) == y).mean() > 0.95


class OneColumn:
    """Makes a learner, by default a logistic regression, that reads one column."""

    def __init__(self, column, learner=None):
        self.column = column
        self.learner = learner or LogisticRegression()

    def __call__(self, shape):
        from sklearn.compose import ColumnTransformer

        return make_pipeline(ColumnTransformer([("one", "passthrough", [self.column])]), clone(self.learner))


# -- numbers that can be reproduced ---------------------------------------------------------------------------------


def fingerprint(model, X):
    return model.oof_.tobytes(), model.weights_.to_numpy().tobytes(), model.specialist_predictions(X).tobytes()


def test_the_same_numbers_for_any_number_of_cores(cancer):
    X, y = cancer
    library = ["logistic", "decision_tree", "extra_trees", "mlp_small", "catboost"]
    one, two = SoftClassifier(library).fit(X, y), SoftClassifier(library, n_jobs=2).fit(X, y)
    assert fingerprint(one, X) == fingerprint(two, X)


def test_several_cores_predict_the_same(cancer):
    X, y = cancer
    stacker = Specialist("stacker", "stacker", rows.logistic, needs="", level=2, trusted=True)
    model = SoftClassifier([*QUICK, stacker], rule="uniform").fit(X, y)
    many = np.tile(X, (2, 1))
    alone = model.predict_proba(many)
    assert_array_equal(model.set_params(n_jobs=2).predict_proba(many), alone)


def test_the_same_numbers_for_any_order_of_the_library(cancer):
    X, y = cancer
    forth, back = SoftClassifier(QUICK).fit(X, y), SoftClassifier(QUICK[::-1]).fit(X, y)
    assert_array_equal(forth.weights_[QUICK], back.weights_[QUICK])
    assert_array_equal(forth.predict_proba(X), back.predict_proba(X))


def test_another_seed_is_another_fold(cancer):
    X, y = cancer
    one, two = (SoftClassifier(["naive_bayes"], random_state=seed).fit(X, y) for seed in (1, 2))
    assert not np.array_equal(one.folds_[0][1], two.folds_[0][1])


# -- targets and tables ---------------------------------------------------------------------------------------------


def test_sparse_tables_are_taken(rng):
    X = sparse.random_array((200, 30), density=0.2, rng=rng, format="csr")
    y = (X.sum(axis=1) > np.median(X.sum(axis=1))).astype(int)
    dense = SoftClassifier(["decision_tree", "naive_bayes", "logistic"]).fit(X.toarray(), y)
    thin = SoftClassifier(["decision_tree", "naive_bayes", "logistic"]).fit(X, y)
    assert (dense.predict(X.toarray()) == thin.predict(X)).mean() > 0.8
    assert_array_equal(thin.predict(X), thin.predict(sparse.csc_matrix(X)))


def test_gaps_are_taken(cancer, rng):
    X, y = cancer
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    model = SoftClassifier([*QUICK, "hist_gradient_boosting"]).fit(holes, y)
    assert (model.leaderboard_["status"] == "ok").all()
    assert model.score(holes, y) > 0.9


def test_frames_keep_their_names(diabetes):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = SoftRegressor(["ridge"]).fit(X, y)
    assert_array_equal(model.feature_names_in_, X.columns)
    assert_allclose(model.predict(X), SoftRegressor(["ridge"]).fit(X.to_numpy(), y).predict(X.to_numpy()))


def test_polars_frames_give_the_same(diabetes):
    polars = pytest.importorskip("polars")
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    ours = SoftRegressor(["ridge"]).fit(polars.from_pandas(X), y.to_numpy()).predict(polars.from_pandas(X))
    assert_allclose(ours, SoftRegressor(["ridge"]).fit(X, y).predict(X))


def test_a_mixed_table_is_matched_by_name(rng):
    frame = pd.DataFrame({"size": rng.normal(size=80), "colour": rng.choice(["red", "blue"], 80)})
    y = np.where(frame["colour"] == "red", "warm", "cold")
    model = SoftClassifier(["logistic", "catboost", "hist_gradient_boosting"]).fit(frame, y)
    assert_array_equal(model.predict(frame[["colour", "size"]]), y)
    assert "2 columns" in model.table_


# -- folds ----------------------------------------------------------------------------------------------------------


def test_time_series_folds_leave_rows_unpredicted_and_still_give_weights(diabetes):
    model = SoftRegressor(QUICK_REGRESSION, cv=TimeSeriesSplit(3)).fit(*diabetes)
    assert np.isnan(model.oof_[0]).all()
    assert model.weights_.sum() == pytest.approx(1)


def test_repeated_folds_are_averaged(diabetes):
    X, y = diabetes
    model = SoftRegressor(["ridge"], cv=RepeatedKFold(n_splits=3, n_repeats=4, random_state=0)).fit(X, y)
    assert len(model.folds_) == 12
    assert np.isfinite(model.oof_).all()


def test_groups_are_held_out_together(diabetes):
    X, y = diabetes
    groups = np.arange(len(y)) // 4
    for model in (SoftRegressor(["ridge"]), SoftRegressor(["ridge"], cv=GroupKFold(4))):
        for train, test in model.fit(X, y, groups=groups).folds_:
            assert not set(groups[train]) & set(groups[test])


# -- scikit-learn around it -----------------------------------------------------------------------------------------


def test_it_works_inside_scikit_learns_tools(cancer):
    X, y = cancer
    model = SoftClassifier(["logistic", "naive_bayes"])
    assert cross_val_score(model, X, y, cv=3).mean() > 0.95
    search = GridSearchCV(model, {"rule": ["simplex", "uniform"]}, cv=2).fit(X, y)
    assert search.best_params_["rule"] in ("simplex", "uniform")
    assert make_pipeline(StandardScaler(), model).fit(X, y).score(X, y) > 0.95
    assert CalibratedClassifierCV(model, cv=2).fit(X, y).predict_proba(X).shape == (569, 2)
    assert clone(model).get_params()["library"] == ["logistic", "naive_bayes"]


def test_a_library_means_the_same_however_it_is_written(diabetes):
    X, y = diabetes
    named, spelled = SoftRegressor("fast").fit(X, y), SoftRegressor(regressors("fast")).fit(X, y)
    assert_array_equal(named.weights_, spelled.weights_)
    assert_array_equal(named.predict(X), spelled.predict(X))


def test_the_default_needs_no_argument(tmp_path):
    X, y = load_iris(return_X_y=True)
    assert SoftClassifier().fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9


def test_public_names():
    assert {"SoftClassifier", "SoftRegressor", "Specialist", "Library", "load", "evaluate"} <= set(dir(softlearning))
    assert isinstance(regressors("paper"), Library)


@pytest.mark.parametrize("refit", [True, False])
def test_a_single_split_is_enough_for_the_guard_and_for_a_stacker(refit):
    X, y = make_classification(300, 6, n_informative=4, random_state=1)
    splits = [(np.arange(200), np.arange(200, 300))]
    library = ["logistic", "naive_bayes", "decision_tree", POOL]
    model = SoftClassifier(library, rule="guarded", cv=splits, refit=refit).fit(X, y)
    assert model.failures_.empty
    assert "log_pool" in model.weights_.index
    assert np.isnan(model.oof_[:200]).all()
    assert np.isfinite(model.oof_[200:]).all()
    assert model.score(X, y) > 0.8
    assert np.isfinite(model.cv_risk_)
