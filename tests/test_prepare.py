"""Views: what each gives a specialist, fitted on training rows alone."""

import numpy as np
import pytest

from softlearning.prepare import VIEWS, fit_view
from softlearning.tables import admit, understand


@pytest.mark.parametrize("name", ["native", "ordinal"])
def test_numbers_without_gaps_are_passed_on_without_a_copy(name, rng):
    X = rng.normal(size=(50, 4))
    schema = understand(X)
    view, matrix = fit_view(name, schema, admit(schema, X), X[:, 0] > 0, task="classification")
    assert matrix is X
    assert view.transform(X) is X


@pytest.mark.parametrize("name", VIEWS)
def test_an_unknown_view_is_refused_and_the_known_ones_are_finite(name, rng):
    X = rng.normal(size=(50, 4))
    X[3, 1] = np.nan
    schema = understand(X)
    view, matrix = fit_view(name, schema, X, X[:, 0], task="regression")
    assert np.isnan(matrix).any() == (name == "native")
    assert view.transform(X[:0]).shape == (0, matrix.shape[1])
    with pytest.raises(ValueError, match="no view"):
        fit_view(name + "x", schema, X, X[:, 0], task="regression")
