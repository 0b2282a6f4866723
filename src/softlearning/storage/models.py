"""Fitted models as bytes, without pickle: the form in which a checkpoint keeps them."""

from __future__ import annotations

import io
import sys
from typing import Any

from sklearn.base import BaseEstimator

from softlearning.execution.fingerprint import is_users
from softlearning.storage.container import LIMIT, pack, unpack
from softlearning.storage.parts import SCHEMA, build, dump, inspect


def dump_model(model: Any) -> bytes:
    """A fitted estimator, without what only training needs."""
    buffer = io.BytesIO()
    pack(buffer, dump(model), compress=False)
    return buffer.getvalue()


def load_model(data: bytes, task: Any) -> Any:
    """The estimator again. Of classes that are not on our list, only those that the task itself will fit are built."""
    members = unpack(data, LIMIT, first=SCHEMA, stored=True)
    return build(data, inspect(members, LIMIT, own_classes(task)).met)


def own_classes(task: Any) -> set[str]:
    """Full names of the user's own classes that a task fits: the user runs their code in any case."""
    estimator = getattr(getattr(getattr(task.args[0], "specialist", None), "make", None), "estimator", None)
    parts = [estimator, *estimator.get_params().values()] if isinstance(estimator, BaseEstimator) else []
    kinds = {type(part) for part in parts}
    own = {kind for kind in kinds if kind.__module__ == "__main__" or is_users(sys.modules.get(kind.__module__))}
    return {f"{kind.__module__}.{kind.__qualname__}" for kind in own}
