"""What a user says of the columns overrules what was guessed."""

import numpy as np
import pandas as pd
import pytest

from softlearning import SoftRegressor


@pytest.fixture
def numbers(rng):
    table = pd.DataFrame({"id": range(60), "zone": rng.integers(0, 4, 60), "x": rng.normal(size=60)})
    return table, table["x"] + 5 * (table["zone"] == 2)


def test_a_number_told_to_be_a_category_gets_its_own_effect_a_value(numbers):
    X, y = numbers
    plain = SoftRegressor(["ridge"]).fit(X, y)
    told = SoftRegressor(["ridge"], kinds={"zone": "category"}).fit(X, y)
    assert "zone" in told.table_
    assert "as told" in told.table_
    assert told.score(X, y) > plain.score(X, y) + 0.2


def test_kinds_have_numbers_understood_by_name_too(numbers):
    X, y = numbers
    model = SoftRegressor(["ridge"], kinds={}).fit(X, y)
    assert "dropped `id`" in model.table_
    shuffled = X[["x", "zone"]]
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(X))
