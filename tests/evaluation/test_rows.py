"""A model scored on a table that comes in parts."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score, root_mean_squared_error

from softlearning import SoftClassifier, SoftRegressor
from softlearning.evaluation.rows import as_labels, score_parts, truth


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": rng.normal(size=160), "z": rng.normal(size=160)})
    frame["label"] = np.where(frame["x"] + 0.7 * rng.normal(size=160) > 0, "yes", "no")
    frame["amount"] = frame["x"] + rng.normal(size=160)
    return frame


def parts(model, frame, step=23):
    for start in range(0, len(frame), step):
        part = frame.iloc[start : start + step]
        yield part, {"model": model.predict_full(part[["x", "z"]])}


@pytest.fixture(scope="module")
def classifier(table):
    return SoftClassifier(["logistic", "naive_bayes"]).fit(table[["x", "z"]][:80], table["label"][:80])


def test_classes_are_scored_as_scikit_learn_does_whatever_the_parts(classifier, table):
    new = table[80:]
    found, notes = score_parts({"model": classifier}, parts(classifier, new))
    P = classifier.predict_proba(new[["x", "z"]])
    score = found.scores.set_index("metric")["score"]
    assert notes == []
    assert -score["neg_log_loss"] == pytest.approx(log_loss(new["label"], P))
    assert score["roc_auc"] == pytest.approx(roc_auc_score(new["label"] == "yes", P[:, 1]))
    assert score["accuracy"] == pytest.approx((classifier.predict(new[["x", "z"]]) == new["label"]).mean())


def test_numbers_are_scored_in_their_own_unit(table):
    model = SoftRegressor(["ridge", "knn_5"]).fit(table[["x", "z"]][:80], table["amount"][:80])
    found, _ = score_parts({"model": model}, parts(model, table[80:]))
    known = root_mean_squared_error(table["amount"][80:], model.predict(table[["x", "z"]][80:]))
    assert -found.scores.set_index("metric")["score"]["neg_root_mean_squared_error"] == pytest.approx(known)


def test_rows_without_truth_are_counted_and_not_scored(classifier, table):
    new = table[80:].reset_index(drop=True)
    new.loc[:3, "label"] = None
    new.loc[4, "label"] = "perhaps"
    found, (note,) = score_parts({"model": classifier}, parts(classifier, new))
    assert note.startswith("5 rows have no target")
    assert found.folds["rows"].sum() == 75


def test_a_group_counts_as_one_and_weights_count(classifier, table):
    new = table[80:].assign(who=np.arange(80) // 20, w=np.where(np.arange(80) < 40, 1.0, 0.0))
    plain, _ = score_parts({"model": classifier}, parts(classifier, new))
    grouped, _ = score_parts({"model": classifier}, parts(classifier, new), group="who")
    half, _ = score_parts({"model": classifier}, parts(classifier, new), weight="w")
    first, _ = score_parts({"model": classifier}, parts(classifier, new[:40]))
    assert grouped.groups == 4
    assert plain.groups is None
    assert half.scores["score"][0] == pytest.approx(first.scores["score"][0])


def test_the_target_is_needed_by_name(classifier, table):
    with pytest.raises(ValueError, match="did you mean 'labels'"):
        score_parts({"model": classifier}, parts(classifier, table.rename(columns={"label": "labels"})))
    nameless = SoftClassifier(["logistic"]).fit(table[["x", "z"]], table["label"].to_numpy())
    with pytest.raises(ValueError, match="name the column"):
        score_parts({"model": nameless}, parts(nameless, table))
    _, (note,) = score_parts({"model": nameless}, parts(nameless, table), target="label")
    assert "was fitted on these rows" in note
    number = SoftRegressor(["ridge"]).fit(table[["x", "z"]][:80], table["amount"][:80])
    assert "was fitted" in score_parts({"model": number}, parts(number, table[:80]))[1][0]


def test_whole_numbers_that_became_floats_are_classes_again(table):
    y = pd.Series([1.0, 0.0, None, 1.0])
    assert as_labels(y.dropna()).tolist() == [1, 0, 1]
    assert as_labels(pd.Series([0.5, 1.0])).tolist() == ["0.5", "1.0"]
    model = SoftClassifier(["logistic"]).fit(table[["x"]], (table["x"] > 0).astype(int))
    np.testing.assert_array_equal(truth(model, y), [1, 0, np.nan, 1])
