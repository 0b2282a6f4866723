"""A model of flowers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from softlearning import SoftClassifier


@pytest.fixture(scope="module")
def flowers():
    table = load_iris(as_frame=True)
    return table.data.iloc[:110], pd.Series(
        np.array(["setosa", "versicolor", "virginica"])[table.target[:110]], name="kind"
    )


@pytest.fixture(scope="module")
def model(flowers):
    return SoftClassifier(["logistic", "naive_bayes"], cv=3, column_types={}).fit(*flowers)
