"""The versions that a result depends on: recorded in checkpoints, model files, reports and benchmark results."""

from __future__ import annotations

import functools
import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("softlearning", "numpy", "scipy", "scikit-learn", "pandas", "skops", "catboost", "lightgbm")


@functools.cache
def versions() -> dict[str, str]:
    """Python, the machine and each package by name; "not installed" where a package is absent."""
    return {"python": platform.python_version(), "machine": platform.machine(), **{p: _version(p) for p in PACKAGES}}


def series(text: object) -> str:
    """`major.minor` of a version."""
    return ".".join(str(text).split(".")[:2])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
