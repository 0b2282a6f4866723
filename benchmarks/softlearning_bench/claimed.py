"""Is what a model says of itself true? Its stated risk against the risk on rows that nobody has seen.

    python -m softlearning_bench.claimed noise 200    targets that are noise: the claim may not be kinder than the
                                                      truth, nor the blend look better than its best specialist
    python -m softlearning_bench.claimed real 3       real tables cut to 200 rows, judged on all the other rows
    python -m softlearning_bench.claimed show         both tables in short

The number is that of draws.

Every fit is of the default estimator. Lines are written as they finish; a second run goes on where the first was.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from softlearning import SoftClassifier, SoftRegressor
from softlearning.weights import row_losses
from softlearning_bench.real import data_folder, real_tables
from softlearning_bench.results import append, whole_csv

RESULTS = Path("benchmarks/results")
NOISE = RESULTS / "claimed_noise.csv"
REAL = RESULTS / "claimed_real.csv"
COLUMNS = ("case", "classes", "rows", "draw", "claimed", "true", "better")
SIZES = (60, 100, 300, 1_000)
KINDS = (1, 2, 5)  # outputs: 1 is a regression
COLUMNS_OF_NOISE = 5
FRESH = 5_000  # rows that measure the truth
CUT = 200  # rows of a real table that are learnt from
TABLES = 20


def noise(kind: int, rows: int, draw: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and a target that know nothing of each other."""
    rng = np.random.default_rng([kind, rows, draw])
    X = rng.normal(size=(rows + FRESH, COLUMNS_OF_NOISE))
    y = rng.normal(size=rows + FRESH) if kind == 1 else rng.integers(kind, size=rows + FRESH)
    return X, y


def judged(X, y, train, test, classes: int) -> dict[str, object]:
    """Claimed and true risk of the default model of the training rows, and whether it calls its blend better."""
    take = (lambda rows: X.iloc[rows]) if isinstance(X, pd.DataFrame) else (lambda rows: X[rows])
    model = (SoftRegressor if classes == 1 else SoftClassifier)(n_jobs=1).fit(take(train), y[train])
    if classes == 1:
        target, prediction = y[test][:, None], model.predict(take(test))[:, None]
    else:
        known = np.isin(y[test], model.classes_)  # a label that the training rows lack has no probability to judge
        test = test[known]
        target, prediction = (y[test][:, None] == model.classes_).astype(float), model.predict_proba(take(test))
    true = row_losses(prediction[:, None, :], target, np.ones(1), loss=model.record_.loss).mean()
    return {"claimed": model.cv_risk_, "true": float(true), "better": int(model.record_.comparison.better)}


def noise_cases(draws: int) -> Iterator[tuple[dict[str, object], object]]:
    for draw in range(draws):
        for rows in SIZES:
            for kind in KINDS:
                line = {"case": "noise", "classes": kind, "rows": rows, "draw": draw}
                yield line, lambda kind=kind, rows=rows, draw=draw: (
                    *noise(kind, rows, draw), np.arange(rows), np.arange(rows, rows + FRESH), kind,
                )  # fmt: skip


def real_cases(folder: Path, draws: int) -> Iterator[tuple[dict[str, object], object]]:
    for draw in range(draws):
        for table in [t for t in real_tables(folder) if t.rows >= 4 * CUT][:TABLES]:
            line = {"case": table.name, "classes": 0, "rows": CUT, "draw": draw}
            yield line, lambda table=table, draw=draw: cut(table, draw)


def cut(table, draw: int) -> tuple:
    """A real table, 200 of its rows to learn from and the rest to measure."""
    frame = pd.read_parquet(table.path)
    frame = frame[frame.iloc[:, -1].notna()].reset_index(drop=True)
    X, y = frame.iloc[:, :-1], frame.iloc[:, -1]
    y = y.to_numpy(dtype=float) if table.kind == "regression" else y.astype(str).to_numpy()
    order = np.random.default_rng(draw).permutation(len(y))
    classes = 1 if table.kind == "regression" else len(np.unique(y[order[:CUT]]))
    return X, y, order[:CUT], order[CUT : CUT + FRESH], classes


def run(cases: Iterator, path: Path) -> None:
    """Every case that has no line yet."""
    key = ["case", "classes", "rows", "draw"]
    done = set(whole_csv(path, COLUMNS)[key].itertuples(index=False, name=None)) if path.exists() else set()
    for line, make in cases:
        if tuple(line.values()) not in done:
            append(path, line | judged(*make()), COLUMNS)


def show() -> None:
    """Mean of claimed minus true with its standard error, and how often the blend is called better."""
    noise_table = whole_csv(NOISE, COLUMNS)
    noise_table["gap"] = (noise_table["claimed"] - noise_table["true"]) / noise_table["true"]
    by = noise_table.groupby(["classes", "rows"])
    print(by.agg(draws=("gap", "size"), gap=("gap", "mean"), error=("gap", "sem"), better=("better", "mean")).round(4))
    real_table = whole_csv(REAL, COLUMNS)
    ratio = (real_table["claimed"] / real_table["true"]).groupby(real_table["case"]).mean()
    draws = len(real_table) / len(ratio)
    print(
        f"real tables: {len(ratio)}, {draws:.3g} draws of {CUT} rows each, "
        f"mean of claimed over true {ratio.mean():.4f}, standard error {ratio.sem():.4f}, median {ratio.median():.4f}"
    )


if __name__ == "__main__":
    what, draws, *_ = [*sys.argv[1:], "", ""]
    if what == "noise":
        run(noise_cases(int(draws or 200)), NOISE)
    elif what == "real":
        run(real_cases(data_folder(), int(draws or 1)), REAL)
    else:
        show()
