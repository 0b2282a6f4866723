"""Whether a model learnt anything: it must be told from one that gives every row the same answer."""

from __future__ import annotations

import warnings

import numpy as np

from softlearning.library import dummy_row
from softlearning.method.record import Record, score_of


class UselessModelWarning(UserWarning):
    """The model is no better than one that gives every row the same answer."""


def useless(record: Record) -> str:
    """Why a model is of no use; empty where it is of some.

    It is of none when only the baseline finished, or when neither its score (accuracy, R2) nor its loss on held-out
    rows is better than that of the constant answer; for the loss, by more than two standard errors.
    """
    if record.crossed.library.names == (dummy_row().name,):
        return "only the baseline finished: the model gives every row the same answer"
    held = record.held_out
    if not np.ptp(held.target, axis=0).any():
        return "the target never varies on the held-out rows: there is nothing to learn"
    constant = np.broadcast_to(np.average(held.target, axis=0, weights=held.weight), held.target.shape)
    found = record.compared(constant)
    score, least = (score_of(p, held.target, held.weight) for p in (held.blend, constant))
    if not score <= least or found.better or (found.word == "undecided" and found.gain > 0):
        return ""
    same = "always naming the commonest class" if record.task == "classification" else "always predicting the mean"
    return f"the model is no better than {same}: nothing was learnt from the columns"


def warn_if_useless(record: Record, stacklevel: int) -> None:
    """One warning where nothing was learnt."""
    if reason := useless(record):
        warnings.warn(reason, UselessModelWarning, stacklevel=stacklevel)
