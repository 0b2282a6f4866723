"""What softlearning costs beside its specialists.

    python -m softlearning_bench.overhead benchmarks/results/overhead.csv [PART ...]

Parts are import, breast_cancer, digits, diabetes, preparation, command, memory
and install; all when none is named.
Every figure is a ratio or a difference within one run. Run it on a quiet machine.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pandas as pd
from packaging.requirements import Requirement
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from softlearning.data.schema import infer_schema
from softlearning.data.validation import validate
from softlearning.data.views import fit_view
from softlearning.estimators import SoftClassifier, SoftRegressor
from softlearning_bench.shared import fold_seconds, refit_seconds

SETS = {"breast_cancer": load_breast_cancer, "digits": load_digits, "diabetes": load_diabetes}


def seconds(work: Callable[[], object], times: int = 1) -> float:
    """The least of a few runs: what disturbs a run only adds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def fit_cost(name: str) -> list[dict]:
    """The paper's library: the whole fit beside the sum of what its specialists took, on one core and on two."""
    X, y = SETS[name](return_X_y=True)
    kind = SoftRegressor if name == "diabetes" else SoftClassifier
    rows = []
    for cores in (1, 2):
        model = kind("paper", n_jobs=cores)
        whole = seconds(partial(model.fit, X, y))
        own = fold_seconds(model) + refit_seconds(model)
        rows.append(line(f"fit, {cores} core(s)", name, whole, own / cores))
    return [*rows, predict_cost(name, model, X)]


def predict_cost(name: str, model, X) -> dict:
    """Prediction beside what the weighted specialists took for the same rows in the folds, on views made already."""
    whole = seconds(lambda: model.specialist_predictions(X), 15)
    board = model.leaderboard_
    return line("predict", name, whole, float(board.loc[board["weight"] > 0, "predict_seconds"].sum()))


def line(what: str, where: str, whole: float, own: float) -> dict:
    return {"what": what, "where": where, "seconds": whole, "specialists": own, "ratio": whole / own}


def mixed_table(rows: int = 50_000, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """40 columns: 25 numeric with missing values, 10 categories, 3 of many categories, 2 dates."""
    rng = np.random.default_rng(seed)
    frame = {f"number_{j}": np.where(rng.random(rows) < 0.05, np.nan, rng.normal(size=rows)) for j in range(25)}
    frame |= {f"kind_{j}": rng.choice([f"k{i}" for i in range(3 + j)], rows) for j in range(10)}
    frame |= {f"place_{j}": rng.choice([f"p{i}" for i in range(2_000)], rows) for j in range(3)}
    day = np.datetime64("2020-01-01") + rng.integers(0, 2_000, rows).astype("timedelta64[D]")
    frame |= {"begin": day, "end": day + rng.integers(0, 90, rows).astype("timedelta64[D]")}
    table = pd.DataFrame(frame)
    return table, (table["number_0"].fillna(0) + (table["kind_3"] == "k1") + rng.normal(size=rows) > 0).to_numpy()


def preparation_cost() -> list[dict]:
    """Inference of types, validation and all views of a mixed table, beside a fit of three specialists on it."""
    X, y = mixed_table()
    model = SoftClassifier(["logistic", "hist_gradient_boosting", "extra_trees"], n_jobs=1)
    whole = seconds(lambda: model.fit(X, y))
    schema = infer_schema(X)
    table = validate(schema, X)
    views = lambda: [
        fit_view(view, schema, table.iloc[train], y[train].astype(int), task="classification")[0].transform(
            table.iloc[test]
        )
        for train, test in model.folds_
        for view in ("native", "ordinal", "scaled")
    ]
    prepared = seconds(lambda: (infer_schema(X), validate(schema, X))) + seconds(views)
    one = X.iloc[:1]
    outside = seconds(lambda: validate(model.record_.training.schema, one), 30)
    views_of_one = validate(model.record_.training.schema, one)
    for view in model.record_.ensemble.views.values():
        outside += 0.0 if view is None else seconds(partial(view.transform, views_of_one), 30)
    return [
        {"what": "preparation in a fit", "where": "50,000 x 40 mixed", "seconds": prepared, "ratio": prepared / whole},
        {"what": "one row outside the specialists", "where": "the same table", "seconds": outside},
    ]


def memory_cost(rows: int = 1_000_000, columns: int = 30) -> list[dict]:
    """Copies of the table that a fit on two cores holds: in the process that fits, and in a worker (Linux alone).

    A worker's own memory is what its specialist makes; what it reads is mapped, so that all workers read one copy.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    y = X[:, 0] + rng.normal(size=rows)
    before = memory_of(os.getpid())["RssAnon"]
    with watched_memory() as most:
        SoftRegressor(["ridge", "hist_gradient_boosting"], n_jobs=2).fit(X, y)
    where = f"{rows:,} x {columns}, the table itself counted"
    copies = {
        "copies in the process that fits": (most["here"]["RssAnon"] - before) / X.nbytes + 1,
        "copies that a worker maps": most["workers"]["RssFile"] / X.nbytes,
        "copies of its own in a worker": most["workers"]["RssAnon"] / X.nbytes,
    }
    return [{"what": what, "where": where, "ratio": ratio} for what, ratio in copies.items()]


def memory_of(process: int) -> dict[str, int]:
    """Bytes of a process: its own (RssAnon), and of files that it maps (RssFile)."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    fields = (line.split() for line in lines if line.startswith(("RssAnon", "RssFile")))
    return {name.rstrip(":"): int(kilobytes) * 1024 for name, kilobytes, _ in fields}


@contextlib.contextmanager
def watched_memory() -> Iterator[dict[str, dict[str, int]]]:
    """The most memory of this process, and of any process it started, while the block runs."""
    most: dict[str, dict[str, int]] = {place: {"RssAnon": 0, "RssFile": 0} for place in ("here", "workers")}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            here = [os.getpid()]
            for place, processes in (("here", here), ("workers", descendants(os.getpid()))):
                for process in processes:
                    with contextlib.suppress(OSError):  # it has ended meanwhile
                        for kind, amount in memory_of(process).items():
                            most[place][kind] = max(most[place][kind], amount)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


def descendants(process: int) -> list[int]:
    found = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, file.read_text().split()):
                found += [child, *descendants(child)]
    return found


def import_cost() -> list[dict]:
    """A fresh Python that imports the library, beside one that imports what it stands on; and the command's help."""
    fresh = lambda code: seconds(
        lambda: subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL), 5
    )
    bare, scikit = fresh("import softlearning"), fresh("import sklearn")
    ours = fresh("from softlearning import SoftClassifier")
    theirs = fresh("import sklearn.ensemble, sklearn.linear_model, pandas, catboost, lightgbm")
    help_page = fresh("from softlearning.cli import main; main(['--help'], standalone_mode=False)")
    nothing = fresh("")
    return [
        {"what": "import softlearning", "where": "beyond import sklearn", "seconds": bare - scikit},
        {"what": "import of SoftClassifier", "where": "beside what it stands on", "seconds": ours,
         "specialists": theirs, "ratio": ours / theirs},
        {"what": "softlearning --help", "where": "beyond an empty Python", "seconds": help_page - nothing},
    ]  # fmt: skip


def command_cost() -> list[dict]:
    """From a csv of 10,000 rows and 20 mixed columns to a model and its report, by the command, on two cores."""
    table, y = mixed_table(10_000)
    names = [*table.columns[:12], *table.columns[25:30], table.columns[35], *table.columns[-2:]]
    with tempfile.TemporaryDirectory() as folder:
        table[names].assign(label=np.where(y, "yes", "no")).to_csv(f"{folder}/table.csv", index=False)
        files = ["--out", f"{folder}/model", "--report", f"{folder}/page.html"]
        command = ["fit", f"{folder}/table.csv", "--target", "label", "--jobs", "2", *files]
        code = f"from softlearning.cli import main; main({command!r})"
        taken = seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL))
    return [{"what": "csv to report by the command", "where": "10,000 x 20 mixed, 2 cores", "seconds": taken}]


def install_cost() -> list[dict]:
    """What `pip install softlearning` brings: packages, itself counted, and their files in GB."""
    names: set[str] = set()
    wanted = ["softlearning"]
    while wanted:
        name = wanted.pop()
        if name not in names:
            names.add(name)
            needs = (Requirement(text) for text in distribution(name).requires or ())
            wanted += [
                need.name.lower() for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})
            ]
    files = [Path(str(file.locate())) for name in names for file in distribution(name).files or ()]
    size = sum(file.stat().st_size for file in files if file.exists())
    where = "the default set"
    return [
        {"what": "packages installed", "where": where, "ratio": len(names)},
        {"what": "GB installed", "where": where, "ratio": size / 1e9},
    ]


PARTS: dict[str, Callable[[], list[dict]]] = {
    "import": import_cost,
    **{name: partial(fit_cost, name) for name in SETS},
    "preparation": preparation_cost,
    "command": command_cost,
    "memory": memory_cost,
    "install": install_cost,
}


def main(path: str, *names: str) -> None:
    """The named parts, or all; each is written when it is done, over what the file had of it."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    for name in names or PARTS:
        fresh = pd.DataFrame(PARTS[name]())
        old = pd.read_csv(path) if Path(path).exists() else fresh[:0]
        key = ["what", "where"]
        kept = old[~old.set_index(key).index.isin(fresh.set_index(key).index)]
        pd.concat([kept, fresh] if len(kept) else [fresh]).to_csv(path, index=False, float_format="%.4g")
        print(fresh.to_string(index=False), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
