"""What a user relies on: the blend is the optimal convex combination, reproducible, explained, and re-solvable."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, RepeatedKFold, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import softlearning
from softlearning import Library, SoftClassifier, SoftRegressor, Specialist
from softlearning.library import classifiers, every_row, regressors
from softlearning.library import recipes as rows
from softlearning.method.ensemble import predict_members

POOL = replace(*every_row("classification")["log_pool"], min_rows=0)  # also on few rows
QUICK = ["logistic", "knn_5", "decision_tree", "naive_bayes"]
QUICK_REGRESSION = ["ridge", "knn_5", "decision_tree"]


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def classifier(cancer):
    return SoftClassifier(QUICK, rule="simplex").fit(*cancer)


@pytest.fixture(scope="module")
def regressor(diabetes):
    return SoftRegressor(QUICK_REGRESSION, rule="simplex").fit(*diabetes)


# -- the method -----------------------------------------------------------------------------------------------------


def test_the_blend_is_the_convex_combination_of_its_specialists(classifier, cancer):
    P = classifier.specialist_predictions(cancer[0])
    alpha = classifier.weights_[list(classifier.specialists_)].to_numpy()
    assert_allclose(classifier.predict_proba(cancer[0]), np.einsum("nkc,k->nc", P, alpha), atol=1e-12)
    assert_allclose(classifier.contributions(cancer[0]).sum(axis=1), classifier.predict_proba(cancer[0]), atol=1e-12)


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


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [7, 3], [-1.0, 1.0]])
def test_labels_of_any_kind_come_back(cancer, labels):
    X, y = cancer
    names = np.array(labels)[y]
    assert set(SoftClassifier(["naive_bayes"]).fit(X, names).predict(X)) == set(labels)


def test_a_class_of_one_row_and_26_classes(rng):
    y = np.append(np.repeat(np.arange(25), 6), 25)
    X = rng.normal(size=(151, 3)) + y[:, None]
    model = SoftClassifier(["logistic", "naive_bayes", "mlp_small"]).fit(X, y)
    assert model.predict_proba(X).shape == (151, 26)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


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


def test_no_rows_give_no_predictions(classifier, regressor):
    assert classifier.predict_proba(np.empty((0, 30))).shape == (0, 2)
    assert regressor.predict(np.empty((0, 10))).shape == (0,)


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


# -- sample weights -------------------------------------------------------------------------------------------------


def test_sample_weights_reach_specialists_and_weights(rng):
    """Two halves with opposite slopes: the half that weighs is the half that is learnt."""
    X = rng.normal(size=(200, 1))
    first = np.arange(200) < 100
    y = np.where(first, 1.0, -1.0) * X[:, 0]
    model = SoftRegressor(["ridge", "lasso"]).fit(X, y, sample_weight=np.where(first, 1.0, 1e-6))
    assert_allclose(model.predict(X[first]), y[first], atol=0.1)
    assert model.cv_risk_ < 0.01


def test_a_specialist_that_takes_no_weights_is_named_and_still_used(cancer):
    X, y = cancer
    board = SoftClassifier(["knn_5", "naive_bayes"]).fit(X, y, sample_weight=np.ones(len(y))).leaderboard_
    notes = board.set_index("specialist")["note"]
    assert "takes no sample weights" in notes["knn_5"]
    assert "takes no sample weights" not in notes["naive_bayes"]
    assert (board["status"] == "ok").all()


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


def test_metadata_routing_carries_weights_and_groups(cancer):
    from sklearn import config_context

    X, y = cancer
    with config_context(enable_metadata_routing=True):
        model = SoftClassifier(["naive_bayes"]).set_fit_request(sample_weight=True, groups=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipe.fit(X, y, sample_weight=np.ones(len(y)), groups=np.arange(len(y)) // 2)
    for train, test in pipe[-1].folds_:
        assert not set(train // 2) & set(test // 2)


def test_a_classifier_without_probabilities_is_calibrated(cancer):
    model = SoftClassifier([LinearSVC(), ("hard", Hard())]).fit(*cancer)
    assert_allclose(model.predict_proba(cancer[0]).sum(axis=1), 1)
    assert (model.leaderboard_["status"] == "ok").all()


class Hard(ClassifierMixin, BaseEstimator):
    """Predicts labels alone."""

    def fit(self, X, y):
        self.inner_ = LogisticRegression(max_iter=5000).fit(X / 1000, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X / 1000)


# -- another combination of what is fitted --------------------------------------------------------------------------


def test_another_rule_is_solved_on_the_stored_predictions(classifier, cancer):
    fresh = SoftClassifier(QUICK, rule="best").fit(*cancer)
    again = classifier.recombine(rule="best")
    assert_array_equal(again.weights_, fresh.weights_)
    assert_array_equal(again.predict_proba(cancer[0]), fresh.predict_proba(cancer[0]))


def test_a_rule_that_needs_more_specialists_asks_for_the_data(classifier, cancer):
    with pytest.raises(ValueError, match="pass the training data"):
        classifier.recombine(rule="uniform")
    fresh = SoftClassifier(QUICK, rule="uniform").fit(*cancer)
    again = classifier.recombine(rule="uniform", X=cancer[0], y=cancer[1])
    assert_allclose(again.predict_proba(cancer[0]), fresh.predict_proba(cancer[0]), atol=1e-9)


@pytest.mark.parametrize("stacked", [False, True])
def test_expanding_equals_a_fresh_fit_with_the_larger_library(diabetes, stacked):
    X, y = diabetes
    stacker = [Specialist("stacker", "stacker", rows.ridge, needs="", level=2)] if stacked else []
    larger = SoftRegressor([*QUICK_REGRESSION, *stacker, "lasso"]).fit(X, y)
    grown = SoftRegressor([*QUICK_REGRESSION, *stacker]).fit(X, y).expand(["lasso"], X, y)
    assert_allclose(grown.predict(X), larger.predict(X), atol=1e-9)
    assert_allclose(grown.weights_, larger.weights_, atol=1e-9)


@pytest.mark.parametrize("stacked", [False, True])
def test_dropping_equals_a_fresh_fit_with_the_smaller_library(diabetes, stacked):
    X, y = diabetes
    stacker = [Specialist("stacker", "stacker", rows.ridge, needs="", level=2)] if stacked else []
    smaller = SoftRegressor(["ridge", "knn_5", *stacker]).fit(X, y)
    shrunk = SoftRegressor([*QUICK_REGRESSION, *stacker]).fit(X, y).drop("decision_tree", X, y)
    assert_allclose(shrunk.predict(X), smaller.predict(X), atol=1e-9)


def test_nothing_that_is_fitted_is_fitted_again(diabetes):
    X, y = diabetes
    counting = CountingRidge()
    model = SoftRegressor([("counting", counting), "ridge", Specialist("other", "linear", rows.lasso)])
    model = model.fit(X, y)
    before = {name: id(m) for name, m in model.specialists_.items()}
    again = model.expand(["knn_5"], X, y)
    for name in set(before) & set(again.specialists_):
        assert id(again.specialists_[name]) == before[name]


class CountingRidge(Ridge):
    """A ridge of the user's own."""


def test_a_library_means_the_same_however_it_is_written(diabetes):
    X, y = diabetes
    named, spelled = SoftRegressor("fast").fit(X, y), SoftRegressor(regressors("fast")).fit(X, y)
    assert_array_equal(named.weights_, spelled.weights_)
    assert_array_equal(named.predict(X), spelled.predict(X))


def test_other_data_are_refused(classifier, cancer):
    with pytest.raises(ValueError, match="not the data this model was fitted on"):
        classifier.expand(["spline_logistic"], cancer[0][:100], cancer[1][:100])


def test_dropping_everything_is_refused(classifier):
    with pytest.raises(ValueError, match="nothing would be left"):
        classifier.drop(QUICK)


def test_fold_models_are_averaged_without_a_refit(diabetes):
    X, y = diabetes
    model = SoftRegressor(QUICK_REGRESSION, refit=False).fit(X, y)
    assert all(len(models) == 5 for models in model.specialists_.values())
    assert model.score(X, y) > 0.4


# -- doubt ----------------------------------------------------------------------------------------------------------


def test_the_standard_deviation_is_the_root_of_the_disagreement(regressor, diabetes):
    mean, std = regressor.predict(diabetes[0], return_std=True)
    assert_allclose(std**2, regressor.disagreement(diabetes[0]), atol=1e-9)
    assert_array_equal(mean, regressor.predict(diabetes[0]))


def test_selective_prediction_answers_about_the_share_asked_for(classifier, cancer):
    labels, accepted = classifier.predict_selective(cancer[0], coverage=0.8)
    assert 0.7 < accepted.mean() < 0.95
    wrong = labels != cancer[1]
    assert wrong[accepted].mean() <= wrong.mean()


def test_a_promised_risk_is_kept_on_the_training_rows(classifier, cancer):
    labels, accepted = classifier.predict_selective(cancer[0], risk=0.05)
    assert (labels != cancer[1])[accepted].mean() < 0.05
    assert accepted.any()


def test_intervals_and_sets_cover_what_they_say():
    X, y = make_classification(1_500, 10, n_informative=5, n_classes=3, random_state=0)
    model = SoftClassifier(["logistic", "naive_bayes", "knn_15"], rule="simplex").fit(X[:500], y[:500])
    sets = model.predict_set(X[500:], coverage=0.9)
    assert sets.any(axis=1).all()
    assert 0.86 < sets[np.arange(1_000), y[500:]].mean() < 0.96
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_500, 3))
    y = X[:, 0] + rng.normal(size=1_500)
    low, high = SoftRegressor(["ridge", "knn_15"]).fit(X[:500], y[:500]).predict_interval(X[500:], coverage=0.9)
    assert 0.86 < ((low <= y[500:]) & (y[500:] <= high)).mean() < 0.94


# -- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "hinge"}, "one of auto, squared, log"),
        ({"time_limit": -1}, "positive number"),
        ({"memory_limit": 0}, "no amount of memory"),
        ({"library": "papre"}, "did you mean 'paper'"),
        ({"cv": 1}, "at least 2 folds"),
        ({"rule": "simplx"}, "simplex"),
        ({"calibrate": "x"}, "calibrate is 'x'; give True or False"),
        ({"progress": "x"}, "a function of events"),
        ({"refit": "never"}, "True, False or 'auto'"),
    ],
)
def test_wrong_parameters_are_named(cancer, change, message):
    model = SoftClassifier(**{"library": ["naive_bayes"], **change})
    with pytest.raises(ValueError, match=message):
        model.fit(*cancer)
    assert not hasattr(model, "n_features_in_")


def test_the_log_loss_is_for_classes(diabetes):
    with pytest.raises(ValueError, match="for regression it is one of auto, squared"):
        SoftRegressor(["ridge"], loss="log").fit(*diabetes)


def test_labels_are_no_numbers(diabetes):
    with pytest.raises(ValueError, match="use SoftClassifier"):
        SoftRegressor(["ridge"]).fit(diabetes[0], np.where(diabetes[1] > 100, "high", "low"))


def test_a_failed_fit_leaves_nothing_behind(cancer):
    model = SoftClassifier(["naive_bayes"]).fit(*cancer)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(cancer[0], np.ones(569))
    assert not hasattr(model, "weights_")


def test_the_default_needs_no_argument(tmp_path):
    X, y = load_iris(return_X_y=True)
    assert SoftClassifier().fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9


def test_public_names():
    assert {"SoftClassifier", "SoftRegressor", "Specialist", "Library", "load", "evaluate"} <= set(dir(softlearning))
    assert isinstance(regressors("paper"), Library)


def test_a_stacker_hands_its_weight_down_to_those_whose_disagreement_is_heard():
    X, y = make_classification(400, 8, n_informative=5, random_state=3)
    model = SoftClassifier(["logistic", "naive_bayes", "knn_15", "decision_tree", POOL]).fit(X[:300], y[:300])
    learned = model.record_
    all_to_the_stacker = (np.array(learned.crossed.library.names) == "log_pool").astype(float)
    model.record_ = replace(learned, solution=replace(learned.solution, weights=all_to_the_stacker))
    read = learned.ensemble.reads["log_pool"]
    f = model.predict_proba(X[300:])
    members = predict_members(learned.ensemble, read, X[300:])
    earned = [learned.crossed.alone[name] for name in read]
    expected = ((members - f[:, None]) ** 2).sum(axis=2) @ earned
    assert_allclose(model.disagreement(X[300:]), expected)
    _, accepted = model.predict_selective(X[300:], coverage=0.7)
    assert 0.5 < accepted.mean() < 0.95  # the held-out rows that set the threshold had other weights


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("time_limit", v) for v in ("5", -1, float("nan"), True)),
        *(("memory_limit", v) for v in ("lots", -1, float("nan"))),
        *(("n_jobs", v) for v in ("two", 0, 1.5)),
        *(("cv", v) for v in ("x", 1, 2.5)),
        *(("rule", v) for v in ("nope", 3, ["best"])),
        *(("refit", "x"), ("loss", "x"), ("checkpoint", 3), ("column_types", [1]), ("library", []), ("library", "x")),
    ],
)
def test_every_parameter_is_checked_before_anything_runs(name, value, monkeypatch):
    def never(*_, **__):
        raise AssertionError("the work has begun")

    monkeypatch.setattr("softlearning.estimators.learning.cross_fit", never)
    X = np.arange(40.0).reshape(20, 2)
    settings = {"library": ["naive_bayes"], name: value}
    with pytest.raises((ValueError, TypeError), match=f"{name}|memory|library"):
        SoftClassifier(**settings).fit(X, np.arange(20) % 2)
