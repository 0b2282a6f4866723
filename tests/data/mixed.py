"""A small table with a column of every type, and the way from a table to a view."""

import numpy as np
import pandas as pd

from softlearning.data.schema import infer_schema
from softlearning.data.validation import validate
from softlearning.data.views import fit_view


def mixed(n=200, seed=0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "flag": rng.random(n) < 0.5,
            "colour": rng.choice(["red", "green", "blue"], n, p=[0.6, 0.3, 0.1]),
            "town": rng.choice([f"town{i}" for i in range(30)], n),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10_000, n), unit="h"),
            "note": [f"{a} {b} thing number {i}" for i, (a, b) in enumerate(rng.choice(["old", "new"], (n, 2)))],
        }
    )
    frame.loc[3, ["colour", "when", "note"]] = None
    return frame


def target_of(frame, task, classes=2):
    score = frame["size"].to_numpy() + (frame["colour"] == "red") + (frame["town"] < "town2")
    if task == "regression":
        return score
    return np.array(["a", "b", "c", "d"])[np.digitize(score, np.linspace(0, 1, classes + 1)[1:-1])]


def prepared(name, frame, y, task, **options):
    schema = infer_schema(frame)
    X = validate(schema, frame)
    return fit_view(name, schema, X, y, task=task, **options), X, schema


def small() -> pd.DataFrame:
    """Thirty rows of a person each."""
    return pd.DataFrame(
        {
            "age": [22.0, np.nan, 26.0, 35.0, 41.0] * 6,
            "sex": ["m", "f", None, "f", "m"] * 6,
            "born": pd.to_datetime(["2001-05-01", "1999-12-31", None, "2000-02-29", "1980-07-07"] * 6),
            "smokes": [True, False, True, False, False] * 6,
            "visits": [1, 2, 3, 2, 1] * 6,
        }
    )
