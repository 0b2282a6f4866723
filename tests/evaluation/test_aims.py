"""A metric that is aimed at: weights that serve it, scores and verdicts that speak of it, on any labels and weights."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_diabetes, make_classification
from sklearn.metrics import accuracy_score, f1_score, make_scorer, mean_absolute_error, mean_pinball_loss, roc_auc_score

from softlearning import SoftClassifier, SoftRegressor, evaluate, load
from softlearning.cli import main
from softlearning.evaluation import scoring
from softlearning.evaluation.aims import GreedyFor, aim_of, records_of, score, standing, verdict
from softlearning.method import decisions

SMALL = ["logistic", "naive_bayes", "decision_tree"]
NUMBERS = ["ridge", "decision_tree", "knn_5"]


@pytest.fixture(scope="module")
def rare():
    """A table of two classes in words, the second with a share of 12 %."""
    X, y = make_classification(600, 6, n_informative=3, weights=[0.88], flip_y=0.05, class_sep=0.7, random_state=3)
    return X, np.where(y == 1, "sick", "healthy")


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def by_f1(rare):
    return SoftClassifier(SMALL, metric="f1", cv=3).fit(*rare)


@pytest.fixture(scope="module")
def by_mae(diabetes):
    return SoftRegressor(NUMBERS, metric="mae", cv=3).fit(*diabetes)


def test_a_metric_with_its_own_loss_is_minimised_exactly(by_mae, diabetes):
    assert by_mae.record_.loss == "absolute"
    assert "neg_mean_absolute_error itself" in by_mae.aim_
    squared = SoftRegressor(NUMBERS, cv=3).fit(*diabetes)
    P, y = by_mae.oof_[:, :, 0], diabetes[1]
    assert by_mae.certificate_["gap"] <= 1e-8 * by_mae.certificate_["objective"]
    assert np.abs(y - P @ by_mae.weights_).mean() <= np.abs(y - P @ squared.weights_).mean() + 1e-9


def test_score_leaderboard_and_verdict_speak_of_the_metric(by_mae, diabetes):
    X, y = diabetes
    assert by_mae.score(X, y) == pytest.approx(-mean_absolute_error(y, by_mae.predict(X)))
    board = by_mae.leaderboard_.set_index("specialist")
    ridge = -np.abs(y - by_mae.oof_[:, list(by_mae.weights_.index).index("ridge"), 0]).mean()
    assert board.loc["ridge", "cv_score"] == pytest.approx(ridge)
    assert (board["cv_low"] < board["cv_score"]).all()
    assert (board["cv_score"] < board["cv_high"]).all()
    assert "neg_mean_absolute_error" in by_mae.verdict_
    held = by_mae.cv_score_
    rows = by_mae.record_.held_out
    assert held["score"] == pytest.approx(-np.abs(rows.target - rows.blend).mean())
    assert held["low"] < held["score"] < held["high"]


def test_without_a_metric_nothing_changes(rare):
    model = SoftClassifier(SMALL, cv=3).fit(*rare)
    assert "cv_low" not in model.leaderboard_
    assert model.decision_ is None
    assert model.score(*rare) == np.mean(model.predict(rare[0]) == rare[1])
    assert model.cv_score_["metric"] == "accuracy"


def test_for_f1_weights_and_threshold_are_the_best_held_out(by_f1, rare):
    assert "greedy for f1" in by_f1.aim_
    assert "no loss of its own" in by_f1.aim_
    plain = SoftClassifier(SMALL, cv=3).fit(*rare)
    unaimed = f1_score(rare[1], plain.classes_[plain.record_.held_out.blend.argmax(axis=1)], pos_label="sick")
    assert by_f1.cv_score_["score"] > unaimed
    assert by_f1.score(*rare) == pytest.approx(f1_score(rare[1], by_f1.predict(rare[0]), pos_label="sick"))


def test_greedy_selection_is_no_worse_than_the_best_alone(rare):
    rng = np.random.default_rng(0)
    Y = np.eye(2)[(rare[1] == "sick").astype(int)]
    noisy = np.clip(Y[:, None, 1] * 0.3 + rng.random((len(Y), 4)), 0, 1.3) / 1.3
    P = np.stack([1 - noisy, noisy], axis=2)
    weights = GreedyFor("roc_auc")(P, Y, None)
    alone = max(roc_auc_score(Y[:, 1], noisy[:, k]) for k in range(4))
    assert weights.sum() == pytest.approx(1)
    assert roc_auc_score(Y[:, 1], noisy @ weights) > alone


def test_a_pinball_metric_and_a_scorer_are_aims_too(diabetes, monkeypatch):
    monkeypatch.setattr(scoring, "BLOCKS", 5)
    monkeypatch.setattr(decisions, "CUTS", 10)
    X, y = diabetes
    high = SoftRegressor(["ridge", "dummy"], metric="pinball:0.9", cv=3).fit(X, y)
    assert high.record_.loss == "pinball:0.9"
    assert high.score(X, y) == pytest.approx(-mean_pinball_loss(y, high.predict(X), alpha=0.9))
    scorer = make_scorer(f1_score, pos_label="b")
    labels = np.where(y > 150, "b", "a")
    model = SoftClassifier(["naive_bayes"], metric=scorer, cv=2).fit(X, labels)
    assert model.leaderboard_["cv_score"].notna().all()
    assert "f1_score" in model.verdict_


def test_weights_and_groups_count(diabetes):
    X, y = diabetes
    weight, groups = np.where(y > 200, 5.0, 1.0), np.arange(len(y)) // 4
    model = SoftRegressor(NUMBERS, metric="mae", cv=3).fit(X, y, sample_weight=weight, groups=groups)
    held = model.record_.held_out
    expected = np.average(np.abs(held.target - held.blend)[:, 0], weights=weight)
    assert model.cv_score_["score"] == pytest.approx(-expected)


@pytest.mark.parametrize(("metric", "words"), [("acuracy", "accuracy"), ("roc_auc", "roc_auc"), ("r2", "r2")])
def test_a_metric_that_cannot_be_is_refused_before_any_fit(metric, words):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    if metric == "r2":
        y = np.array(["a", "b", "c"])[y]
    with pytest.raises(ValueError, match=words):
        SoftClassifier(["dummy"], metric=metric).fit(X, y)


def test_a_metric_of_one_class_says_of_which(by_f1):
    assert "no loss of its own for f1 of 'sick'" in by_f1.aim_
    assert "f1 of 'sick'" in by_f1.verdict_
    assert aim_of("f1_macro", "classification").shown(by_f1.classes_) == "f1_macro"
    assert aim_of("f1", "classification").shown(None) == "f1"


@pytest.mark.parametrize(
    ("metric", "instead"),
    [("f1", "'f1_macro' or 'f1_weighted'"), ("jaccard", "'jaccard_macro'"), ("auc", "'roc_auc_ovr' or 'roc_auc_ovo'")],
)
def test_a_metric_of_two_classes_names_the_one_of_more(metric, instead):
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    with pytest.raises(ValueError, match=f"of two classes, not 3; give {instead}"):
        SoftClassifier(["dummy"], metric=metric).fit(X, y)
    for name in instead.replace("'", "").split(" or "):
        SoftClassifier(["dummy"], metric=name, cv=2).fit(X, y)


def test_a_short_name_is_measured_as_the_long_one_is():
    """A ranking is measured fold by fold, also where few folds have both classes."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.isin(np.arange(60), (0, 1, 2))
    short, long = (evaluate(SoftClassifier(["naive_bayes"]), X, y, metrics=name).scores for name in ("auc", "roc_auc"))
    assert short.equals(long)


def test_a_ranking_that_no_fold_can_measure_is_refused_in_words():
    X = np.random.default_rng(0).normal(size=(40, 2))
    one = np.where(np.arange(40) == 7, "sick", "well")
    with pytest.raises(ValueError, match="every class both in and outside of some fold; 'sick' has 1 of 40 rows"):
        SoftClassifier(["naive_bayes"], metric="auc").fit(X, one)
    apart = np.where(np.arange(40) < 20, "sick", "well")
    with pytest.raises(ValueError, match="'sick' has 20 of 40 rows"):
        SoftClassifier(["naive_bayes"], metric="auc", cv=2).fit(X, apart, groups=np.arange(40) // 20)
    with pytest.raises(ValueError, match="both in and outside"):
        SoftClassifier(["naive_bayes"], cv=2).fit(X, one).recombine(metric="auc")


def test_a_ranking_is_measured_in_the_folds_that_have_every_class():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.isin(np.arange(60), [5, 9]).astype(int)
    model = SoftClassifier(["naive_bayes", "logistic"], metric="auc", cv=3).fit(X, y)
    held, areas = model.record_.held_out, []
    for fold in np.unique(held.fold):
        rows = held.fold == fold
        if y[rows].any():
            areas.append(roc_auc_score(y[rows], held.blend[rows, 1]))
    assert len(areas) == 2
    assert model.cv_score_["score"] == pytest.approx(np.mean(areas))
    assert np.isfinite(model.cv_score_["std_error"])


def test_without_a_standard_error_no_verdict_is_given(by_f1):
    found = standing(by_f1.record_, aim_of("f1", "classification"))
    unknown = replace(found, differences=found.differences.assign(std_error=np.nan, verdict="no clear difference"))
    said = verdict(unknown, by_f1.record_, aim_of("f1", "classification"))
    assert "too few rows to tell them apart" in said
    assert "level" not in said


def test_the_note_of_the_leaderboard_names_who_is_best_by_the_metric():
    X, y = make_classification(150, 6, n_informative=3, weights=[0.8], flip_y=0.1, random_state=1)
    model = SoftClassifier(["logistic", "knn_15", "naive_bayes"], metric="roc_auc", cv=3).fit(X, y)
    assert model.record_.comparison.rival == "naive_bayes"  # by the loss
    noted = model.leaderboard_[model.leaderboard_["note"] != ""]
    assert noted["specialist"].tolist() == ["knn_15"]
    assert "level with its best single specialist, knn_15" in model.verdict_
    assert noted["note"].tolist() == ["best alone; the blend is level"]


def test_evaluate_begins_with_the_aim(rare):
    found = evaluate(SoftClassifier(["logistic", "dummy"], metric="balanced_accuracy", cv=2), *rare, cv=2)
    assert found.scores["metric"].iloc[0] == "balanced_accuracy"
    assert "accuracy" in set(found.scores["metric"])


def test_an_aimed_model_is_saved_and_loaded(by_f1, rare, tmp_path):
    by_f1.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(rare[0]), by_f1.predict(rare[0]))
    assert again.cv_score_["score"] == pytest.approx(by_f1.cv_score_["score"])
    assert again.aim_ == by_f1.aim_


def test_a_metric_scores_a_record_as_scikit_learn_does():
    rng = np.random.default_rng(1)
    Y, p = np.eye(2)[rng.integers(0, 2, 50)], rng.random(50)
    made = records_of({"": np.column_stack([1 - p, p])}, Y, np.array(["a", "b"]), None)
    assert score(aim_of("auc", "classification"), made, "") == pytest.approx(roc_auc_score(Y[:, 1], p))


def test_the_command_aims_and_its_page_says_so(rare, tmp_path):
    table = pd.DataFrame(rare[0], columns=list("abcdef")).assign(state=rare[1])
    table.to_csv(tmp_path / "rows.csv", index=False)
    words = ["fit", tmp_path / "rows.csv", "--target", "state", "--out", tmp_path / "m", "--library", "naive_bayes"]
    aimed = ["--metric", "f1", "--cv", "2", "--jobs", "1", "--report", tmp_path / "page.html"]
    done = CliRunner().invoke(main, [str(word) for word in (*words, *aimed)])
    assert done.exit_code == 0, done.output
    assert "cv f1" in done.output
    assert "“sick” is answered from a probability of" in " ".join(done.output.split())
    assert "There is no loss of its own for f1" in (tmp_path / "page.html").read_text(encoding="utf-8")
    scored = CliRunner().invoke(main, ["evaluate", str(tmp_path / "m"), str(tmp_path / "rows.csv")])
    assert f"{load(tmp_path / 'm').score(*rare):.4f}" in scored.output


def test_ordered_classes_are_aimed_at_by_their_cumulative_probabilities(diabetes, tmp_path):
    X, y = diabetes
    stars = np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75])) + 1
    ordinal = SoftClassifier(SMALL, metric="ordinal", rule="simplex", cv=3).fit(X, stars)
    nominal = SoftClassifier(SMALL, rule="simplex", cv=3).fit(X, stars)

    def ranked(P):
        return (np.cumsum(P - np.eye(4)[stars - 1], axis=1)[:, :3] ** 2).mean()

    score = {m: ranked(np.einsum("nkc,k->nc", m.oof_, m.weights_)) for m in (ordinal, nominal)}
    assert score[ordinal] <= score[nominal] + 1e-12
    held = ordinal.record_.held_out
    assert ordinal.cv_score_["score"] == pytest.approx(-ranked(held.blend))
    assert ordinal.score(X, stars) == pytest.approx(-ranked(ordinal.predict_proba(X)))
    P = ordinal.predict_proba(X)
    np.testing.assert_array_equal(ordinal.predict(X), 1 + (np.cumsum(P, axis=1) < 0.5).sum(axis=1))
    ordinal.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X), ordinal.predict(X))


WORDS = ["poor", "fair", "good", "superb"]  # not in the order of the alphabet


@pytest.fixture(scope="module")
def graded(diabetes):
    X, y = diabetes
    codes = np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75]))
    return X, pd.Categorical.from_codes(codes, categories=WORDS, ordered=True)


def test_an_ordered_categorical_is_an_ordinal_target(graded, tmp_path):
    X, grades = graded
    model = SoftClassifier(SMALL, cv=3).fit(X, grades)
    assert "the classes have an order, poor < fair < good < superb" in model.aim_
    assert model.classes_.tolist() == sorted(WORDS)  # as scikit-learn's metrics need them
    told = SoftClassifier(SMALL, cv=3, metric="ordinal").fit(X, grades.codes)
    np.testing.assert_allclose(model.weights_, told.weights_)
    order = [model.classes_.tolist().index(word) for word in WORDS]
    np.testing.assert_allclose(model.predict_proba(X)[:, order], told.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), np.array(WORDS)[told.predict(X)])
    assert model.cv_score_["score"] == pytest.approx(told.cv_score_["score"])
    assert model.score(X, grades) == pytest.approx(told.score(X, grades.codes))
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.score(X, grades) == pytest.approx(model.score(X, grades))
    fewer = model.recombine(rule="simplex")
    assert "poor < fair" in fewer.aim_


def test_an_order_of_the_classes_is_overruled_by_a_metric_and_idle_for_two(graded):
    X, grades = graded
    assert SoftClassifier(["naive_bayes"], cv=2, metric="accuracy").fit(X, grades).metric_ == "accuracy"
    two = pd.Series(grades.codes > 1).map({False: "low", True: "high"})
    ordered = two.astype(pd.CategoricalDtype(["low", "high"], ordered=True))
    assert SoftClassifier(["naive_bayes"], cv=2).fit(X, ordered).metric_ is None
    unordered = pd.Series(grades).astype(pd.CategoricalDtype(WORDS))
    assert SoftClassifier(["naive_bayes"], cv=2).fit(X, unordered).metric_ is None


def test_the_command_keeps_an_order_and_hints_at_one(graded, tmp_path):
    X, grades = graded
    frame = pd.DataFrame(X[:, :3], columns=list("abc"))
    frame.assign(grade=grades).to_parquet(tmp_path / "words.parquet")
    frame.assign(grade=grades.codes).to_csv(tmp_path / "numbers.csv", index=False)
    asked = ["--target", "grade", "--library", "naive_bayes", "--cv", "2", "--jobs", "1", "--out", str(tmp_path / "m")]
    done = CliRunner().invoke(main, ["fit", str(tmp_path / "words.parquet"), *asked])
    assert done.exit_code == 0, done.output
    assert "poor < fair < good < superb" in " ".join(done.output.split())
    assert "--metric ordinal" not in done.output
    scored = CliRunner().invoke(main, ["evaluate", str(tmp_path / "m"), str(tmp_path / "words.parquet")])
    assert f"{-load(tmp_path / 'm').score(frame, grades):.4f}" in scored.output
    hinted = CliRunner().invoke(main, ["fit", str(tmp_path / "numbers.csv"), *asked])
    assert "`--metric ordinal` respects their order" in hinted.output


def test_a_label_that_the_model_never_saw_is_a_wrong_answer(diabetes):
    X, y = diabetes
    labels = np.where(y > 150, "b", "a")
    changed = np.where(np.arange(len(y)) % 10 == 0, "aa", labels)
    for metric in (None, "accuracy", "f1_macro"):
        model = SoftClassifier(["naive_bayes"], cv=2, metric=metric).fit(X, labels)
        name = metric or "accuracy"
        expected = {"accuracy": accuracy_score, "f1_macro": lambda y, p: f1_score(y, p, average="macro")}[name]
        assert model.score(X, changed) == pytest.approx(expected(changed, model.predict(X)))


def test_a_metric_of_probabilities_has_no_threshold_and_balanced_accuracy_sets_it(rng):
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.normal(size=200) > 0.5).astype(int)
    names = ["logistic", "naive_bayes"]
    ranked, plain = (SoftClassifier(names, metric=m, threshold="auto").fit(X, y) for m in ("roc_auc", None))
    assert 0.2 < ranked.threshold_ < 0.8
    assert ranked.threshold_ == pytest.approx(plain.threshold_, abs=0.05)
