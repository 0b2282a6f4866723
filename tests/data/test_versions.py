"""One record of versions."""

import platform

import numpy as np

from softlearning import __version__
from softlearning.data import versions as module
from softlearning.data.versions import series, versions


def test_versions_are_those_of_what_runs():
    found = versions()
    assert found["python"] == platform.python_version()
    assert found["numpy"] == np.__version__
    assert found["softlearning"] == __version__
    assert set(module.PACKAGES) < found.keys()


def test_a_package_that_is_absent_is_said_to_be(monkeypatch):
    monkeypatch.setattr(module, "PACKAGES", ("no-such-package-at-all",))
    assert versions.__wrapped__()["no-such-package-at-all"] == "not installed"


def test_a_series_is_major_and_minor():
    assert [series("1.9.1"), series("2"), series(None)] == ["1.9", "2", "None"]
