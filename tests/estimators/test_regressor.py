"""Numbers in; numbers, their uncertainty and intervals out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from softlearning import SoftRegressor


def test_the_standard_deviation_is_the_root_of_the_disagreement(regressor, diabetes):
    mean, std = regressor.predict(diabetes[0], return_std=True)
    assert_allclose(std**2, regressor.disagreement(diabetes[0]), atol=1e-9)
    assert_array_equal(mean, regressor.predict(diabetes[0]))


def test_intervals_cover_what_they_say():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_500, 3))
    y = X[:, 0] + rng.normal(size=1_500)
    low, high = SoftRegressor(["ridge", "knn_15"]).fit(X[:500], y[:500]).predict_interval(X[500:], coverage=0.9)
    assert 0.86 < ((low <= y[500:]) & (y[500:] <= high)).mean() < 0.94


def test_the_log_loss_is_for_classes(diabetes):
    with pytest.raises(ValueError, match="for regression it is one of auto, squared"):
        SoftRegressor(["ridge"], loss="log").fit(*diabetes)


def test_labels_are_no_numbers(diabetes):
    with pytest.raises(ValueError, match="use SoftClassifier"):
        SoftRegressor(["ridge"]).fit(diabetes[0], np.where(diabetes[1] > 100, "high", "low"))
