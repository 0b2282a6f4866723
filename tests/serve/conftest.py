"""One fitted model and one running server for all tests of the server."""

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

from softlearning import SoftClassifier
from tests.serve.live import Live, people


@pytest.fixture(scope="package")
def classifier():
    X, y = people()
    return SoftClassifier(["logistic", "naive_bayes", "decision_tree"], column_types={}).fit(X, y)


@pytest.fixture(scope="package")
def live(classifier):
    with Live(classifier) as running:
        yield running
