"""What each part of the default brings: its loss on real tables when that part is taken away.

    python -m softlearning_bench.ablation run --rows 3000    every choose table of at most so many training rows
    python -m softlearning_bench.ablation show

One default model per table; the others come from it by `drop` and `recombine`, so that all share their folds. Lines are
written as they finish; a second run goes on where the first was.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from softlearning import SoftClassifier, SoftRegressor
from softlearning_bench.real import data_folder, real_tables, split
from softlearning_bench.results import append, whole_csv
from softlearning_bench.scoring import scores

PATH = Path("benchmarks/results/ablation.csv")
COLUMNS = ("table", "task", "rows", "seed", "without", "loss", "full")


def families(model, *names: str) -> list[str]:
    """The specialists of a model that belong to these families."""
    board = model.leaderboard_[model.leaderboard_["status"] == "ok"]
    return list(board.loc[board["family"].isin(names), "specialist"])


def named(model, *starts: str) -> list[str]:
    return [name for name in model.weights_.index if name.startswith(starts)]


def dropped(model, X, y, *, find: Callable, what: tuple[str, ...]):
    """The model without these specialists; itself where it has none of them."""
    gone = find(model, *what)
    return model.drop(gone, X, y) if gone else model


def ruled(model, X, y, *, rule: str):
    return model.recombine(rule=rule, X=X, y=y)


PARTS: dict[str, Callable] = {
    "every booster": partial(dropped, find=named, what=("lightgbm", "catboost")),
    "CatBoost": partial(dropped, find=named, what=("catboost",)),
    "LightGBM": partial(dropped, find=named, what=("lightgbm",)),
    "pairs of columns": partial(dropped, find=named, what=("lightgbm_pairs",)),
    "trees that are not boosted": partial(dropped, find=named, what=("wide_trees",)),
    "linear, splines, quadratic": partial(dropped, find=families, what=("linear", "complementary")),
    "kernels and neighbours": partial(dropped, find=families, what=("kernel", "instance")),
    "the network": partial(dropped, find=families, what=("neural",)),
    "level 2": partial(dropped, find=families, what=("stacker",)),
    "the prior (exact weights)": partial(ruled, rule="simplex"),
    "the blend (best specialist)": partial(ruled, rule="best"),
    "weights (equal shares)": partial(ruled, rule="uniform"),
}


def loss_of(model, test: pd.DataFrame, kind: str) -> float:
    """Log loss or RMSE on test rows."""
    X, y = test.iloc[:, :-1], test.iloc[:, -1]
    if kind == "regression":
        return scores(model.predict(X)[:, None], y.to_numpy(dtype=float), kind)["rmse"]
    classes = sorted({*model.classes_, *y.astype(str)})
    P = np.zeros((len(y), len(classes)))
    P[:, [classes.index(label) for label in model.classes_]] = model.predict_proba(X)
    return scores(P, pd.Categorical(y.astype(str), classes).codes, kind)["log_loss"]


def ablate(table, seed: int, path: Path, wanted: list[str]) -> None:
    """The lines of one table and seed that are wanted."""
    train, test = split(pd.read_parquet(table.path), table.kind, seed, 10_000)
    X, y = train.iloc[:, :-1], train.iloc[:, -1]
    y = y if table.kind == "regression" else y.astype(str)
    model = (SoftRegressor if table.kind == "regression" else SoftClassifier)(n_jobs=2).fit(X, y)
    full = loss_of(model, test, table.kind)
    for part in wanted:
        line = {"table": table.name, "task": table.task, "rows": len(train), "seed": seed, "without": part}
        append(path, line | {"loss": loss_of(PARTS[part](model, X, y), test, table.kind), "full": full}, COLUMNS)


def run(path: Path, folder: Path, most: int, seeds: int) -> None:
    """Every table and part that has no line yet."""
    done = whole_csv(path, COLUMNS) if path.exists() else pd.DataFrame(columns=list(COLUMNS))
    have = set(done[["table", "seed", "without"]].itertuples(index=False, name=None))
    for seed in range(seeds):
        for table in real_tables(folder):
            wanted = [part for part in PARTS if (table.name, seed, part) not in have]
            if wanted and 0.7 * table.rows <= most:
                ablate(table, seed, path, wanted)
                print(f"{table.name} seed {seed}", flush=True)


def summary(lines: pd.DataFrame) -> pd.DataFrame:
    """Per part: geometric mean of loss without / loss with, its standard error, and on how many tables it helps."""
    lines = lines.assign(ratio=np.log(lines["loss"] / lines["full"]))
    by_table = lines.groupby(["without", "table"], as_index=False)["ratio"].mean()
    by = by_table.groupby("without")["ratio"]
    table = pd.DataFrame({"tables": by.size(), "ratio": np.exp(by.mean()), "error": by.sem()})
    table["helps"] = by.apply(lambda r: int((r > 1e-9).sum()))
    table["harms"] = by.apply(lambda r: int((r < -1e-9).sum()))
    return table.sort_values("ratio", ascending=False)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("--rows", type=int, default=3000, help="training rows of a table, at most")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=PATH)
    given = parser.parse_args(arguments)
    if given.what == "run":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(given.out, data_folder(given.data), given.rows, given.seeds)
    else:
        print(summary(whole_csv(given.out, COLUMNS)).round(4).to_string())


if __name__ == "__main__":
    main()
