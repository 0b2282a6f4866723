"""A model from a file."""

from __future__ import annotations

import numpy as np

from softlearning.estimators.classifier import SoftClassifier
from softlearning.estimators.regressor import SoftRegressor
from softlearning.method.record import Leaderboard


def load(path, *, trusted=(), max_bytes: int = 2 << 30, key: bytes | None = None) -> SoftClassifier | SoftRegressor:
    """Read a model that `save` wrote; refuse anything else with a `ModelFileError` that says why.

    Parameters
    ----------
    path : the file
    trusted : full names of classes of your own, such as "mypackage.MyEstimator", that the model may hold. Building
        them runs their code: name only what you know.
    max_bytes : how many bytes the loaded model may take
    key : the bytes that the file must be signed with. Without it, models of CatBoost and LightGBM that this process
        has not written or opened before are first opened, and asked for one prediction, in a process of their own:
        about a second for all of a file. One that crashes there is refused, and no part of the file starts a process.
    """
    from softlearning.storage import ModelFileError, read_model

    found = read_model(path, trusted=trusted, max_bytes=max_bytes, key=key)
    cls = {"SoftClassifier": SoftClassifier, "SoftRegressor": SoftRegressor}.get(found.kind)
    if cls is None:
        raise ModelFileError(f"the file holds a {found.kind[:50]!r}, which softlearning does not have")
    model, record = cls(), found.learned["record_"]
    odd = [name for name in found.learned if not str(name).isidentifier() or hasattr(cls, str(name))]
    if odd or not found.params.keys() <= model.get_params(deep=False).keys():
        raise ModelFileError(f"a {found.kind} in the file has other attributes than this version")
    model.__dict__.update({**found.params, **found.learned, "_notes": found.notes})
    model.leaderboard_ = Leaderboard(model.leaderboard_)  # prints in 80 columns again
    classes = getattr(model, "classes_", None)
    if cls is SoftClassifier and (classes is None or len(classes) != max(record.ensemble.classes, 1)):
        raise ModelFileError("the classes in the file do not fit together")
    if not np.array_equal(model.weights_, record.weights()):
        raise ModelFileError("the weights that the file shows are not those of its record")
    return model
