"""Categories, dates and texts as numbers; no training row sees its own target."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

from softlearning.data.encodings import HASHING, TargetEncoder, date_parts, encoding_target, look_up, ngram_counts
from softlearning.data.validation import validate
from tests.data.mixed import mixed, prepared, target_of


def test_dates_become_their_parts():
    moments = np.array(["2024-02-29T06:30", "1969-12-31T00:00", "NaT"], dtype="datetime64[us]")
    parts = date_parts(moments, ("year", "month", "day", "weekday", "hour", "elapsed"), origin=19781.0)
    np.testing.assert_allclose(parts[0], [2024, 2, 29, 3, 6.5, 1 + 6.5 / 24])
    np.testing.assert_allclose(parts[1], [1969, 12, 31, 2, 0, -19782])
    assert np.isnan(parts[2]).all()


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", ["ordinal", "scaled"])
def test_target_encoding_does_not_leak_the_target_into_training_rows(name, task, rng):
    n = 2000
    frame = pd.DataFrame(
        {"k": rng.permutation(np.repeat([f"k{i}" for i in range(n // 4)], 4)), "x": rng.normal(size=n)}
    )
    y = rng.normal(size=n)
    y = y if task == "regression" else (y > 0).astype(int)
    (view, matrix), X, _ = prepared(name, frame, y, task)
    column = view.features.index("k~mean0")
    held_out = np.corrcoef(matrix[:, column], y)[0, 1]
    leaking = np.corrcoef(view.transform(X)[:, column], y)[0, 1]
    assert leaking > 0.3  # the encoding of all rows has seen each row's own target
    assert held_out < 0.1


@pytest.mark.parametrize("classes", [2, 3])
def test_values_seen_once_tell_nothing_and_not_even_which_fold_they_are_in(classes, rng):
    names = [f"{'xyz'[i % 3]}{chr(97 + i % 26)}{'q' * (i % 11)}" for i in range(200)]
    frame = pd.DataFrame({"k": names, "x": rng.normal(size=200)})
    y = rng.integers(0, classes, 200)
    (view, matrix), X, _ = prepared("ordinal", frame, y, "classification")
    for column in [j for j, f in enumerate(view.features) if f.startswith("k~mean")]:
        assert np.ptp(matrix[:, column]) == 0
        assert np.ptp(view.transform(X)[:, column]) == 0


def test_rows_of_weight_zero_have_no_part_in_target_encoding(rng):
    frame = pd.DataFrame({"k": rng.choice([f"k{i}" for i in range(25)], 400), "x": rng.normal(size=400)})
    y = (frame["k"] < "k15").to_numpy() + 0.1 * rng.normal(size=400)
    weight = np.ones(400)
    weight[300:] = 0
    (view, _), _, _ = prepared("scaled", frame, y, "regression", sample_weight=weight)
    (other, _), _, _ = prepared("scaled", frame, np.where(weight > 0, y, -y), "regression", sample_weight=weight)
    mean = lambda v: v.lookups[0]["table"][:, 0]
    assert np.corrcoef(mean(view), mean(other))[0, 1] > 1 - 1e-12


def test_target_encoding_finds_a_category_that_tells_the_target(rng):
    levels = np.array([f"k{i}" for i in range(40)])
    k = rng.integers(0, 40, 2000)
    effect = rng.normal(size=40)
    frame = pd.DataFrame({"k": levels[k], "x": rng.normal(size=2000)})
    (view, matrix), _, schema = prepared("scaled", frame, effect[k], "regression")
    column = view.features.index("k~mean0")
    assert np.corrcoef(matrix[:, column], effect[k])[0, 1] > 0.99
    unseen = view.transform(validate(schema, pd.DataFrame({"k": ["new"], "x": [0.0]})))
    assert abs(unseen[0, column]) < 0.1  # the overall mean


def test_texts_that_share_words_lie_close(rng):
    animals = [f"the {a} sleeps in barn {i}" for i, a in enumerate(rng.choice(["horse", "cow"], 50))]
    engines = [f"engine {a} runs at speed {i}" for i, a in enumerate(rng.choice(["diesel", "petrol"], 50))]
    frame = pd.DataFrame({"t": animals + engines, "x": rng.normal(size=100)})
    (view, matrix), _, _ = prepared("native", frame, np.arange(100) % 2, "classification")
    texts = matrix[:, [f.startswith("t:") for f in view.features]]
    texts = texts / np.linalg.norm(texts, axis=1, keepdims=True)
    alike = texts @ texts.T
    assert alike[:50, :50].mean() > 3 * abs(alike[:50, 50:].mean())


@pytest.mark.parametrize("text", ["", "   ", None, "\ud800 lone", "x" * 100_000, "日本語 テキスト", "\x00"])
def test_any_text_has_finite_components(text):
    frame = mixed()
    (view, _), _, schema = prepared("scaled", frame, target_of(frame, "regression"), "regression")
    assert np.isfinite(
        view.transform(validate(schema, frame.head(1).assign(note=pd.Series([text], dtype=object))))
    ).all()


@pytest.mark.parametrize("seed", range(3))
def test_noise_categories_do_not_pass_for_signal_in_training(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"k{j}": rng.choice([f"v{i}" for i in range(19)], 1000) for j in range(6)})
    y = rng.integers(0, 2, 1000)
    (_, matrix), _, _ = prepared("ordinal", frame, y, "classification")
    assert abs(np.corrcoef(matrix.sum(axis=1), y)[0, 1]) < 0.12
    in_sample = pd.concat([pd.Series(y).groupby(frame[k]).transform("mean") for k in frame], axis=1)
    assert np.corrcoef(in_sample.sum(axis=1), y)[0, 1] > 0.25  # what a mean over all rows would claim


def test_a_weight_of_two_is_a_row_given_twice(rng):
    level, target = rng.integers(0, 5, 300), rng.normal(size=(300, 1))
    weight = rng.integers(1, 3, 300).astype(float)
    rows = np.repeat(np.arange(300), weight.astype(int))
    weighted, _ = TargetEncoder(target, weight, 0).means(level, 5)
    repeated, _ = TargetEncoder(target[rows], np.ones(len(rows)), 0).means(level[rows], 5)
    np.testing.assert_allclose(weighted, repeated)


def test_classes_beyond_ten_share_no_column_of_their_own():
    y = np.repeat(np.arange(14), np.arange(14, 28))
    target = encoding_target(y, "classification")
    assert target.shape == (len(y), 10)
    assert not target[y < 4].any()
    assert (target[y >= 4].sum(axis=1) == 1).all()


def test_several_classes_become_one_column_in_the_direction_that_tells_categories_apart(rng):
    k = rng.integers(0, 6, 600)
    y = np.where(rng.random(600) < 0.9, k % 3, rng.integers(0, 3, 600))
    frame = pd.DataFrame({"k": [f"c{i}" for i in k], "x": rng.normal(size=600)})
    (view, _), X, _ = prepared("ordinal", frame, y, "classification")
    assert view.features == ("x", "k")
    code = view.transform(X)[:, 1]
    middle = [code[k % 3 == c].mean() for c in range(3)]
    assert np.ptp(middle) > 10 * max(code[k % 3 == c].std() for c in range(3))


def test_crosses_that_were_never_seen_are_the_overall_mean(rng):
    frame = pd.DataFrame({"a": ["p", "q"] * 50, "b": ["u", "u", "v", "w"] * 25, "x": rng.normal(size=100)})
    y = (frame["a"] + frame["b"] == "pu").to_numpy(float)
    _, X, schema = prepared("native", frame, y, "regression")
    encoder = TargetEncoder(encoding_target(y, "regression"), np.ones(100), 0)
    lookup, crossed = encoder.cross(X, schema.columns[0], schema.columns[1])
    assert lookup["features"] == ("a x b~mean0", "a x b~frequency")
    new = validate(schema, pd.DataFrame({"a": ["p", "p", "z"], "b": ["u", "w", None], "x": 0.0}))
    np.testing.assert_allclose(look_up(new, lookup)[1:], 0, atol=1e-12)
    assert look_up(new, lookup)[0, 0] > 1
    assert crossed.shape == (100, 2)


def test_lightgbm_reads_native_codes_with_missing_and_unseen_ones(rng):
    levels = [f"k{i}" for i in range(300)]
    k = rng.integers(0, 300, 4000)
    frame = pd.DataFrame({"k": np.array(levels, dtype=object)[k], "x": rng.normal(size=4000)})
    frame.loc[::50, "k"] = None
    y = np.sin(k) + 0.1 * rng.normal(size=4000)
    (view, matrix), _, schema = prepared("native", frame, y, "regression")
    booster = lightgbm.LGBMRegressor(n_estimators=50, verbose=-1, n_jobs=1, random_state=0)
    booster.fit(matrix, y, categorical_feature=list(view.categorical))
    assert booster.score(matrix, y) > 0.5
    new = view.transform(validate(schema, pd.DataFrame({"k": ["k1", "never seen", None], "x": 0.0})))
    assert np.isfinite(booster.predict(new)).all()
    assert new[1, view.categorical[0]] == view.levels[0] - 1


def test_the_ngrams_of_words_are_those_of_their_text():
    texts = pd.Series(["The quick brown fox", "", "the  quick   dog's", None, "Ab c"], dtype="str")
    whole = HashingVectorizer(**HASHING.get_params()).transform(texts.fillna("").str.lower())
    np.testing.assert_array_equal(ngram_counts(texts).toarray(), whole.toarray())
