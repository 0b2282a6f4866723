"""Views: what each gives a specialist, fitted on training rows alone."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import skops.io

from softlearning.data.files import read_table
from softlearning.data.schema import infer_schema
from softlearning.data.validation import validate
from softlearning.data.views import FARTHEST, VIEWS, fit_view
from tests.data.mixed import mixed, prepared, target_of

TASKS = [("classification", 2), ("classification", 3), ("regression", 1)]


@pytest.mark.parametrize("name", ["native", "ordinal"])
def test_numbers_without_missing_values_are_passed_on_without_a_copy(name, rng):
    X = rng.normal(size=(50, 4))
    schema = infer_schema(X)
    view, matrix = fit_view(name, schema, validate(schema, X), X[:, 0] > 0, task="classification")
    assert matrix is X
    assert view.transform(X) is X


@pytest.mark.parametrize(("task", "classes"), TASKS)
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_a_mixed_table_is_a_float_matrix(name, task, classes):
    frame = mixed()
    (view, matrix), X, _ = prepared(name, frame, target_of(frame, task, classes), task)
    assert matrix.dtype == (np.float32 if name == "pairs" else np.float64)
    assert matrix.shape == (len(frame), len(view.features))
    assert np.isnan(matrix).any() == (name in ("native", "pairs"))
    assert not np.isinf(matrix).any()
    assert view.transform(X.iloc[:0]).shape == (0, matrix.shape[1])
    assert len(view.categorical) == (2 if name == "native" else 0)


@pytest.mark.parametrize(("task", "classes"), TASKS)
@pytest.mark.parametrize("name", VIEWS)
def test_training_rows_differ_from_new_ones_only_where_a_row_would_see_itself(name, task, classes):
    frame = mixed()
    (view, matrix), X, _ = prepared(name, frame, target_of(frame, task, classes), task)
    differs = ~np.isclose(matrix, view.transform(X), equal_nan=True).all(axis=0)
    used = np.array([feature.startswith(("town", "colour")) for feature in view.features])
    assert not differs[~used].any()
    assert differs.any() == (name != "native")


@pytest.mark.parametrize("name", ["ordinal", "scaled"])
def test_a_category_of_one_training_row_looks_like_one_that_is_new(name):
    frame = pd.DataFrame({"model": [f"model {i}" for i in range(60)] + ["model 0", "model 1"] * 10, "size": range(80)})
    (view, matrix), _, schema = prepared(name, frame, np.arange(80.0), "regression", seed=1)
    assert schema.columns[0].type == "category"
    unseen = view.transform(validate(schema, frame.assign(model="quite another")))
    frequency = view.features.index("model~frequency")
    np.testing.assert_allclose(matrix[2:60, frequency], unseen[2:60, frequency])
    assert (matrix[60:, frequency] > unseen[60:, frequency]).all()


@pytest.mark.parametrize("name", VIEWS)
def test_a_row_alone_is_the_row_in_its_table(name):
    frame = mixed()
    (view, _), X, _ = prepared(name, frame, target_of(frame, "regression"), "regression")
    whole = view.transform(X)
    for i in (0, 3, 77):
        np.testing.assert_allclose(view.transform(X.iloc[[i]])[0], whole[i], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", VIEWS)
def test_the_same_seed_gives_the_same_numbers(name):
    frame = mixed()
    (_, first), _, _ = prepared(name, frame, target_of(frame, "classification"), "classification", seed=3)
    (_, again), _, _ = prepared(name, frame, target_of(frame, "classification"), "classification", seed=3)
    np.testing.assert_array_equal(first, again)


def test_what_is_not_in_the_training_rows_changes_nothing():
    frame = mixed()
    y = target_of(frame, "classification")
    schema = infer_schema(frame)
    X = validate(schema, frame)
    other = X.copy()
    other.loc[150:, "size"] = 1e9
    other.loc[150:, "colour"] = "blue"
    for name in VIEWS:
        view, matrix = fit_view(name, schema, X.iloc[:150], y[:150], task="classification")
        _, again = fit_view(name, schema, other.iloc[:150], y[:150], task="classification")
        np.testing.assert_array_equal(matrix, again)
        assert view.transform(X.iloc[150:]).shape[1] == matrix.shape[1]


def test_an_unknown_view_is_refused(rng):
    X = rng.normal(size=(5, 2))
    with pytest.raises(ValueError, match="no view 'raw'; the views are native, ordinal, pairs, scaled"):
        fit_view("raw", infer_schema(X), X, X[:, 0], task="regression")


# --- categories


def codes_view(rows, new, **kinds):
    frame = pd.DataFrame({"a": rows, "x": np.linspace(0, 1, len(rows))})
    schema = infer_schema(frame, kinds)
    view, matrix = fit_view("native", schema, validate(schema, frame), np.arange(len(rows)) % 2, task="classification")
    given = validate(schema, pd.DataFrame({"a": new, "x": np.zeros(len(new))}))
    return view, matrix[:, view.categorical[0]], view.transform(given)[:, view.categorical[0]]


def test_native_codes_fall_with_frequency_and_keep_a_place_for_the_unseen():
    view, training, new = codes_view(["b"] * 5 + ["c"] * 9 + ["a"] * 3 + [None], ["c", "b", "a", "z", None])
    assert view.levels == (4,)
    assert training[:2].tolist() == [1, 1]
    np.testing.assert_array_equal(new, [0, 1, 2, 3, np.nan])


def test_a_category_absent_from_these_rows_is_unseen_to_their_view():
    frame = pd.DataFrame({"a": ["p"] * 10 + ["q"] * 10 + ["r"] * 10})
    schema = infer_schema(frame)
    X = validate(schema, frame)
    view, _ = fit_view("native", schema, X.iloc[:20], np.arange(20) % 2, task="classification")
    assert view.levels == (3,)
    assert view.transform(X)[[0, 10, 20], 0].tolist() == [0, 1, 2]
    scaled, _ = fit_view("scaled", schema, X.iloc[:20], np.arange(20) % 2, task="classification")
    assert scaled.features == ("a=p", "a=q")
    np.testing.assert_allclose(scaled.transform(X)[[0, 10, 20]], [[1, -1], [-1, 1], [-1, -1]])


def test_ordinal_categories_stand_in_the_order_of_their_mean_target():
    frame = pd.DataFrame({"a": ["low", "high", "middle", None] * 30, "x": np.arange(120) % 7})
    y = np.tile([1.0, 9.0, 5.0, 20.0], 30)
    (view, matrix), X, schema = prepared("ordinal", frame, y, "regression")
    column = view.features.index("a")
    for shown in (matrix, view.transform(X)):
        assert np.argsort(shown[:4, column]).tolist() == [0, 2, 1, 3]
    new = validate(schema, pd.DataFrame({"a": ["other"], "x": [1]}))
    low, _, high = np.sort(view.transform(X)[:3, column])
    assert low < view.transform(new)[0, column] < high  # the overall mean


def test_ordered_categories_keep_their_own_order():
    sizes = pd.Categorical(["s", "l", "m"] * 10, categories=["s", "m", "l"], ordered=True)
    frame = pd.DataFrame({"a": sizes, "x": np.arange(30) % 7})
    (view, matrix), _, _ = prepared("ordinal", frame, np.tile([5.0, 6.0, 99.0], 10), "regression")
    assert matrix[:3, view.features.index("a")].tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    "y", [np.array(["a"] * 100), np.array(["a"] * 99 + ["b"]), np.arange(100) % 26, np.array([1e100, -1e100] * 50)]
)
@pytest.mark.parametrize("name", VIEWS)
def test_odd_targets_give_finite_views(name, y):
    frame = mixed(100)
    task = "regression" if y.dtype == float else "classification"
    (_, matrix), _, _ = prepared(name, frame, y, task)
    assert not np.isinf(matrix).any()
    assert name in ("native", "pairs") or not np.isnan(matrix).any()


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", VIEWS)
def test_very_few_rows_are_enough(name, n):
    frame = mixed()
    schema = infer_schema(frame)
    X = validate(schema, frame)
    y = target_of(frame, "regression")
    view, matrix = fit_view(name, schema, X.iloc[:n], y[:n], task="regression")
    assert np.isfinite(view.transform(X)).all() or name in ("native", "pairs")
    assert len(matrix) == n


def test_a_one_hot_target_is_as_good_as_labels():
    frame = mixed()
    y = target_of(frame, "classification", 3)
    onehot = pd.get_dummies(pd.Series(y)).to_numpy(float)
    (_, by_label), _, _ = prepared("scaled", frame, y, "classification")
    (_, by_onehot), _, _ = prepared("scaled", frame, onehot, "classification")
    np.testing.assert_array_equal(by_label, by_onehot)


# --- dates and texts


def test_hours_are_given_only_where_there_are_any():
    frame = pd.DataFrame({"d": pd.date_range("2024-01-01", periods=30), "x": np.arange(30) % 7})
    (view, _), _, _ = prepared("native", frame, np.arange(30.0), "regression")
    assert view.features == ("x", "d:year", "d:month", "d:day", "d:weekday", "d:elapsed")


def test_a_missing_date_has_one_indicator():
    frame = mixed()
    (view, _), _, _ = prepared("ordinal", frame, target_of(frame, "regression"), "regression")
    assert [f for f in view.features if f.endswith(" missing")] == ["gaps missing", "when:year missing"]


# --- missing values and scale


def test_missing_values_are_filled_with_medians_and_told(rng):
    X = rng.normal(size=(100, 3))
    X[:10, 1] = np.nan
    view, matrix = fit_view("ordinal", infer_schema(X), X, X[:, 0], task="regression")
    assert matrix.shape == (100, 4)
    np.testing.assert_array_equal(matrix[:, 3], np.arange(100) < 10)
    np.testing.assert_array_equal(matrix[:10, 1], np.median(X[10:, 1]))
    late = np.array([[np.nan, 0.0, 0.0]])
    np.testing.assert_array_equal(view.transform(late), [[np.median(X[:, 0]), 0, 0, 0]])


def test_missing_values_that_come_only_after_training_are_filled(rng):
    X = rng.normal(size=(100, 3))
    X[99, 1] = np.nan
    schema = infer_schema(X)
    part = X[:90]
    for name in ("ordinal", "scaled"):
        view, matrix = fit_view(name, schema, part, X[:90, 0], task="regression")
        assert matrix is not part  # "itself" would tell the caller that new rows need nothing either
        assert np.isfinite(view.transform(X[90:])).all()


def test_a_column_without_a_value_in_these_rows_becomes_zero(rng):
    X = rng.normal(size=(20, 2))
    X[:10, 0] = np.nan
    for name in ("ordinal", "scaled"):
        view, matrix = fit_view(name, infer_schema(X), X[:10], X[:10, 1], task="regression")
        np.testing.assert_array_equal(matrix[:, 0], 0.0)
        assert np.isfinite(view.transform(X)).all()


def test_scaled_columns_have_mean_zero_and_deviation_one(rng):
    X = rng.normal(3, 5, size=(1000, 4))
    before = X.copy()
    view, matrix = fit_view("scaled", infer_schema(X), X, X[:, 0], task="regression")
    np.testing.assert_allclose(matrix.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(matrix.std(axis=0), 1)
    np.testing.assert_array_equal(X, before)  # the table itself is left alone
    np.testing.assert_allclose(view.transform(X), matrix)


@pytest.mark.parametrize("scale", [1e-308, 1e-150, 1e-30, 1.0, 1e30, 1e150, 1e307])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
def test_any_scale_is_standardised_without_overflow(scale, offset, rng):
    X = (rng.normal(size=(200, 2)) + offset) / max(1.0, offset) * scale
    X[:, 1] = X[0, 1]
    view, matrix = fit_view("scaled", infer_schema(X), X, X[:, 0], task="regression")
    np.testing.assert_allclose(matrix[:, 0].std(), 1, rtol=1e-6)
    np.testing.assert_array_equal(matrix[:, 1], 0)
    far = view.transform(np.array([[1e308, 0.0], [-1e308, 1e308]]))
    assert np.isfinite(far).all()
    assert np.abs(far).max() <= FARTHEST


@pytest.mark.parametrize("name", ["native", "ordinal"])
@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e307])
def test_trees_are_given_numbers_that_32_bits_hold(name, scale, rng):
    X = rng.normal(size=(100, 2)) * [scale, 1.0]
    view, matrix = fit_view(name, infer_schema(X), X, X[:, 1], task="regression")
    short = matrix.astype(np.float32)
    assert np.isfinite(short).all()
    np.testing.assert_array_equal(np.argsort(short[:, 0]), np.argsort(X[:, 0]))
    np.testing.assert_array_equal(matrix[:, 1], X[:, 1])
    assert np.isfinite(view.transform(np.array([[1e308, -1e308]])).astype(np.float32)).all()
    matrix, dense = (
        fit_view(name, infer_schema(sp.csr_matrix(X)), sp.csr_matrix(X), X[:, 1], task="regression")[1],
        matrix,
    )
    np.testing.assert_array_equal(matrix.toarray(), dense)


def test_a_huge_number_that_comes_only_after_training_is_cut(rng):
    X = rng.normal(size=(100, 2))
    X[99, 1] = 1e300
    schema = infer_schema(X)
    part = X[:90]
    view, matrix = fit_view("native", schema, part, X[:90, 0], task="regression")
    assert matrix is not part
    assert np.isfinite(view.transform(X[90:]).astype(np.float32)).all()


def test_whole_weights_scale_like_repeated_rows(rng):
    X = rng.normal(size=(50, 3))
    X[40:, 2] = 1e3
    weight = np.append(rng.integers(1, 4, 40), np.zeros(10)).astype(float)
    _, weighted = fit_view("scaled", infer_schema(X), X, X[:, 0], task="regression", sample_weight=weight)
    rows = np.repeat(np.arange(50), weight.astype(int))
    view, _ = fit_view("scaled", infer_schema(X), X[rows], X[rows, 0], task="regression")
    np.testing.assert_allclose(weighted, view.transform(X))


def test_sparse_tables_stay_sparse(rng):
    X = sp.random(40, 6, density=0.3, format="csr", random_state=1) * 50
    X = sp.hstack([X, sp.csr_matrix((40, 1))]).tocsr()
    schema = infer_schema(X)
    X = validate(schema, X)
    for name in ("native", "ordinal"):
        view, matrix = fit_view(name, schema, X, np.arange(40.0), task="regression")
        assert matrix is X
        assert view.transform(X) is X
    view, matrix = fit_view("scaled", schema, X, np.arange(40.0), task="regression")
    assert matrix.format == "csr"
    np.testing.assert_allclose(abs(matrix).max(axis=0).toarray().ravel(), [1] * 6 + [0])
    np.testing.assert_array_equal(view.transform(X[:3]).toarray(), matrix[:3].toarray())


# --- precision


@pytest.mark.parametrize("name", ["native", "ordinal"])
def test_many_rows_are_held_in_32_bits_where_that_loses_nothing(name, rng):
    n = 20_000
    frame = pd.DataFrame({"x": rng.normal(size=n), "k": rng.choice(["a", "b", "c"], n)})
    y = frame["x"].to_numpy()
    (view, matrix), X, _ = prepared(name, frame, y, "regression")
    assert matrix.dtype == view.transform(X.head(3)).dtype == np.float32
    close = frame.assign(moment=1.7e9 + rng.uniform(size=n))  # 32 bits would make one value of all
    (view, matrix), _, _ = prepared(name, close, y, "regression")
    assert matrix.dtype == np.float64
    assert len(np.unique(matrix[:, 1])) > n / 2
    (_, few), _, _ = prepared(name, frame.head(1000), y[:1000], "regression")
    assert few.dtype == np.float64


# --- as a whole


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_survives_skops_with_no_type_but_its_own(name):
    frame = mixed()
    (view, _), X, _ = prepared(name, frame, target_of(frame, "classification", 3), "classification")
    data = skops.io.dumps(view)
    assert skops.io.get_untrusted_types(data=data) == ["softlearning.data.views.View"]
    again = skops.io.loads(data, trusted=["softlearning.data.views.View"])
    np.testing.assert_array_equal(again.transform(X), view.transform(X))
    assert (again.categorical, again.levels, again.features) == (view.categorical, view.levels, view.features)


@pytest.mark.parametrize(
    ("table", "target", "task"),
    [
        ("titanic", "Survived", "classification"),
        ("penguins", "species", "classification"),
        ("auto_mpg", "mpg", "regression"),
    ],
)
def test_real_tables_are_ready_for_every_specialist(messy_tables, table, target, task):
    frame = read_table(messy_tables / f"{table}.csv")
    y = frame.pop(target)
    schema = infer_schema(frame)
    X = validate(schema, frame)
    half = np.arange(len(frame)) % 2 == 0
    for name in VIEWS:
        view, matrix = fit_view(name, schema, X[half], y[half], task=task)
        held_out = view.transform(X[~half])
        assert matrix.shape == (half.sum(), held_out.shape[1])
        assert name in ("native", "pairs") or np.isfinite(np.vstack([matrix, held_out])).all()
        for j, levels in zip(view.categorical, view.levels):
            assert np.nanmax(held_out[:, j]) < levels
