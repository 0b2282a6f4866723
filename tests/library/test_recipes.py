"""A recipe makes an estimator for the rows that it is told of."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from softlearning.library import Shape, every_row
from softlearning.library import recipes as make

CLASSIFICATION = Shape("classification", rows=300, columns=10, classes=3, rarest=100)


REGRESSION = Shape("regression", rows=300, columns=10)


@pytest.mark.parametrize("size", [(300, 10), (10, 1), (10**6, 30), (320, 4096)], ids=str)
@pytest.mark.parametrize("shape", [CLASSIFICATION, REGRESSION], ids=lambda shape: shape.task)
def test_every_row_makes_an_estimator_at_any_size(shape, size):
    shape = replace(shape, rows=size[0], columns=size[1])
    assert all(hasattr(specialist.make(shape), "fit") for specialist in every_row(shape.task))


def test_wide_tables_are_narrowed_before_covariances_and_products():
    wide = Shape("classification", 300, 4096, 3, 100)
    assert make.qda(wide)[0].n_components == 100
    assert make.quadratic(wide)[0].n_components == 40
    assert len(make.qda(CLASSIFICATION)) == 1


@pytest.mark.parametrize(("rows", "trees"), [(2_000, 100), (2_001, 200)])
def test_forests_grow_with_the_rows(rows, trees):
    shape = Shape("classification", rows, 10, 2, 50)
    assert make.random_forest(shape).n_estimators == make.extra_trees(shape).n_estimators == trees
    assert make.hist_gradient_boosting(shape).max_iter == trees


def test_catboost_of_the_default_is_sparing_with_columns_rounds_and_crosses():
    wide = Shape("classification", 320, 4096, 40, 8)
    usual, faces, long = make.catboost_own(CLASSIFICATION), make.catboost_own(wide), make.catboost_long(CLASSIFICATION)
    names = ("iterations", "rsm", "border_count", "max_ctr_complexity")
    read = lambda model: tuple(model.get_param(name) for name in names)
    assert (read(usual), read(faces)) == ((500, 0.5, 128, 1), (500, 64 / 4096, 64, 1))
    assert read(long) == (2000, 1, 128, None)


def test_catboost_takes_coarser_bins_and_fewer_columns_where_columns_times_classes_are_many():
    usual, faces = make.catboost(CLASSIFICATION), make.catboost(Shape("classification", 320, 4096, 40, 8))
    assert usual.get_param("border_count") is None
    assert (faces.get_param("border_count"), faces.get_param("rsm")) == (32, 64 / 4096)


def test_a_class_of_very_few_rows_gets_no_covariance():
    assert isinstance(make.qda(Shape("classification", 30, 3, 3, rarest=4)), GaussianNB)
    assert not isinstance(make.qda(Shape("classification", 30, 3, 3, rarest=5)), GaussianNB)


def test_qda_bears_a_column_that_hardly_moves_within_a_class(rng):
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2
    X[y == 1, 2] = 1e-3 * rng.normal(size=100)
    model = make.qda(Shape("classification", 200, 3, 2, rarest=100)).fit(X, y)
    assert model.score(X, y) > 0.9


def test_neighbours_are_never_more_than_the_rows():
    assert make.knn(Shape("classification", 3, 2, 2, 1), k=5).n_neighbors == 3


def test_a_network_stops_early_only_where_each_class_can_be_held_out():
    layers = {"layers": (4,), "batch": 32, "epochs": 10}
    assert make.mlp(CLASSIFICATION, **layers).early_stopping
    assert not make.mlp(Shape("classification", 300, 2, 3, rarest=1), **layers).early_stopping
    assert not make.mlp(Shape("regression", 8, 2), **layers).early_stopping


def test_quadratic_features_stop_early_on_many_rows_and_classes():
    assert make.quadratic(Shape("classification", 10_000, 20, 7))[-1].max_iter == 1000
    assert make.quadratic(Shape("classification", 10_667, 54, 7))[-1].max_iter == 200


def test_a_row_far_from_all_others_does_not_run_away_with_the_products(rng):
    X = rng.normal(size=(80, 4))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=80)
    model = make.quadratic(Shape("regression", 80, 4)).fit(X, y)
    assert model.score(X, y) > 0.95
    reach = y.max() - y.min()
    far = model.predict(np.array([[1e3, 1e3, 0, 0], [1e3, -1e3, 0, 0]]))
    assert far == pytest.approx([y.max() + reach, y.min() - reach])
