"""Benchmark tests read scikit-learn's cache when this machine has one."""

import pytest


@pytest.fixture
def data_home(real_data, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(real_data))
    return real_data
