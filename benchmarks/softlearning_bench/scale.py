"""What a fit costs as tables grow, beside LightGBM, CatBoost and scikit-learn's stacking.

    softlearning bench scale --out FOLDER [--part growth|limits|latency] [--systems NAMES] [--most-rows N] [--quick]

growth    seconds of fit and predict, peak memory of all processes together, and loss, against rows, columns, classes
limits    the time limit that was asked for and the seconds that were taken, over 20 shapes
latency   milliseconds of the prediction of one row, for models of several sizes

Every cell runs in a process of its own, whose memory is watched from outside, and its line is written at once: a second
run resumes. `report` makes the tables, the exponents of growth and the figure from the lines.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

from softlearning_bench.results import append

CATEGORIES = 5  # columns of words in a mixed table
TEST_ROWS = 20_000
COLUMNS = (
    *("part", "system", "task", "rows", "columns", "classes", "limit"),
    *("fit_seconds", "peak_mb", "copies", "predict_seconds", "loss", "row_ms", "status", "reason"),
)
KEY = list(COLUMNS[:7])
SYSTEMS = ("softlearning", "lightgbm", "catboost", "stacking")


@dataclass(frozen=True)
class Cell:
    """One measurement; `limit` in seconds holds for every system that takes one, 0 for none."""

    part: str
    system: str
    task: str
    rows: int
    columns: int
    classes: int
    limit: int


# ------------------------------------------------------------------------------------------------------- the cells


def growth_cells(quick: bool, systems: Iterable[str]) -> list[Cell]:
    """Rows, columns and classes grow one at a time."""
    two = "classification"
    if quick:
        shapes = [(two, n, 10, 2, 20) for n in (500, 2_000)] + [(two, 500, 40, 2, 20), (two, 1_000, 10, 8, 20)]
    else:
        shapes = [(two, n, 30, 2, 300) for n in (1_000, 10_000, 100_000)] + [(two, 1_000_000, 30, 2, 600)]
        shapes += [("regression", n, 30, 1, 300) for n in (1_000, 10_000, 100_000)]
        shapes += [("regression", 1_000_000, 30, 1, 600)]
        shapes += [(two, 5_000, d, 2, 300) for d in (10, 100, 500, 2_000)]
        shapes += [(two, 20_000, 30, c, 300) for c in (2, 10, 50, 200)]
    return [Cell("growth", system, *shape) for shape in shapes for system in systems]


def limit_cells(quick: bool) -> list[Cell]:
    """20 shapes, each with a limit that is short for it."""
    two, number = "classification", "regression"
    if quick:
        return [Cell("limits", "softlearning", two, 400, 8, 2, 8), Cell("limits", "softlearning", number, 400, 8, 1, 8)]
    shapes = [(n, 30, 2) for n in (500, 2_000, 10_000, 50_000, 250_000)] + [(2_000, d, 2) for d in (5, 200, 1_000)]
    shapes += [(10_000, 20, c) for c in (5, 30)]
    limits = {500: 10, 2_000: 20, 10_000: 30, 50_000: 60, 250_000: 120}
    cells = [Cell("limits", "softlearning", two, n, d, c, limits[n]) for n, d, c in shapes]
    cells += [Cell("limits", "softlearning", number, n, d, 1, limits[n]) for n, d, c in shapes if c == 2]
    return [*cells, *(Cell("limits", "softlearning", task, 100_000, 60, c, 45) for task, c in ((two, 2), (number, 1)))]


def latency_cells(quick: bool) -> list[Cell]:
    """Models of several sizes on tables of numbers."""
    rows = (500,) if quick else (2_000, 20_000)
    systems = ("softlearning fast",) if quick else ("softlearning fast", "softlearning", "softlearning slim")
    tasks = (("classification", 2), ("regression", 1))
    return [Cell("latency", s, task, n, 20, c, 0) for task, c in tasks for n in rows for s in systems]


PARTS = {
    "growth": growth_cells,
    "limits": lambda quick, _: limit_cells(quick),
    "latency": lambda q, _: latency_cells(q),
}


def run_scale(
    folder: Path, parts: Iterable[str] = PARTS, *, quick: bool = False, systems=SYSTEMS, most_rows: int | None = None
) -> Path:
    """Run the cells that have no line yet, the cheapest first, and write the report."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "scale.csv"
    for part in parts:
        cells = [cell for cell in PARTS[part](quick, systems) if cell.rows <= (most_rows or cell.rows)]
        for cell in sorted(cells, key=lambda c: c.rows * c.columns * c.classes):
            if not known(path, cell):
                line = measured(cell)
                append(path, line, COLUMNS)
                print({name: line.get(name) for name in (*KEY, *COLUMNS[7:])}, flush=True)
    report(folder)
    return path


def known(path: Path, cell: Cell) -> bool:
    """Whether a cell has a line that says "ok"."""
    if not path.exists():
        return False
    table = pd.read_csv(path)
    mine = (table[KEY].astype(str) == pd.Series(asdict(cell)).astype(str)).all(axis=1)
    return bool((mine & (table["status"] == "ok")).any())


# ------------------------------------------------------------------------------------------------- one cell, watched


def measured(cell: Cell) -> dict[str, Any]:
    """Run one cell in a process of its own and watch its memory."""
    command = [sys.executable, "-m", "softlearning_bench.scale", json.dumps(asdict(cell))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peak, handle = 0, psutil.Process(process.pid)
    while True:
        try:
            output, errors = process.communicate(timeout=0.25)
            break
        except subprocess.TimeoutExpired:
            peak = max(peak, together(handle))
    line: dict[str, Any] = asdict(cell) | {"peak_mb": round(peak / 2**20), "status": "failed"}
    line["copies"] = round(peak / (8 * cell.rows * cell.columns), 2)
    if process.returncode:
        return line | {"reason": (errors.strip().splitlines() or [f"exit code {process.returncode}"])[-1][:300]}
    return line | json.loads(output.splitlines()[-1]) | {"status": "ok"}


def together(process: psutil.Process) -> int:
    """Bytes of a process and all that it started; what they share counts once."""
    total = 0
    try:
        for each in (process, *process.children(recursive=True)):
            total += getattr(each.memory_full_info(), "pss", 0)
    except (psutil.Error, OSError):  # one has just ended: the next look sees the others
        pass
    return total


def table(task: str, rows: int, columns: int, classes: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Numbers and, where columns are few and rows many, words; the target bends, crosses and jumps, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    a, b, c, d, e, f, g = (X[:, j % columns] for j in range(7))
    signal = np.sin(2 * a) + b * c + (d > 0.5) + 0.5 * e - 0.3 * f**2
    code = (np.abs(g) * 10).astype(int) % 30
    signal = signal + np.random.default_rng(7).normal(size=30)[code] + rng.normal(size=rows)
    if task == "regression":
        y = signal
    else:
        second = b + f * e + 0.5 * rng.normal(size=rows)
        score = signal + (second if classes > 2 else 0)
        y = np.digitize(score, np.quantile(score[:100_000], np.linspace(0, 1, classes + 1)[1:-1]))
    if not CATEGORIES < columns <= 100:
        return X, y
    frame = pd.DataFrame(X[:, CATEGORIES + 7 :] if columns > 20 else X, copy=False)
    frame.columns = [f"number_{j}" for j in range(frame.shape[1])]
    kept = 7 if columns > 20 else 0
    numbers = pd.DataFrame(X[:, :kept], columns=[f"strong_{j}" for j in range(kept)])
    words = {"place": pd.Categorical.from_codes(code, [f"place {j}" for j in range(30)])}
    for j in range(CATEGORIES - 1 if kept else 0):
        words[f"kind_{j}"] = pd.Categorical.from_codes(rng.integers(0, 4 + j, rows), [f"k{i}" for i in range(4 + j)])
    return pd.concat([numbers, pd.DataFrame(words), frame], axis=1), y


def one_cell(cell: Cell) -> dict[str, float]:
    """Fit and predict; what the parent process cannot see."""
    numeric = cell.part == "latency"
    X, y = table(cell.task, cell.rows + TEST_ROWS, cell.columns, cell.classes)
    if numeric and isinstance(X, pd.DataFrame):
        X = X.select_dtypes("number").to_numpy()
    part = lambda first, last: X[first:last] if isinstance(X, np.ndarray) else X.iloc[first:last]
    model = make(cell)
    start = time.monotonic()
    model.fit(part(0, cell.rows), y[: cell.rows])
    if cell.system.endswith("slim"):
        model = model.slim(part(0, 1), row_ms=5.0)
    fitted = time.monotonic()
    test, truth = part(cell.rows, None), y[cell.rows :]
    prediction = model.predict_proba(test) if cell.task == "classification" else model.predict(test)
    found = {"fit_seconds": round(fitted - start, 2), "predict_seconds": round(time.monotonic() - fitted, 3)}
    if numeric:
        found["row_ms"] = round(row_milliseconds(model, test), 3)
    return found | {"loss": round(float(loss(prediction, truth)), 5)}


def loss(prediction: np.ndarray, truth: np.ndarray) -> float:
    """Log loss of probabilities, root mean squared error of numbers."""
    if prediction.ndim == 1:
        return float(np.sqrt(np.mean((prediction - truth) ** 2)))
    return float(-np.log(np.clip(prediction[np.arange(len(truth)), truth], 1e-15, 1)).mean())


def row_milliseconds(model: Any, X: np.ndarray, times: int = 200) -> float:
    """Median over single rows."""
    taken = []
    for i in range(times):
        start = time.perf_counter()
        model.predict(X[i : i + 1])
        taken.append(time.perf_counter() - start)
    return 1000 * float(np.median(taken))


def make(cell: Cell) -> Any:
    """The system of a cell, on two cores."""
    name, _, variant = cell.system.partition(" ")
    if name == "softlearning":
        from softlearning.estimators import SoftClassifier, SoftRegressor

        kind = SoftClassifier if cell.task == "classification" else SoftRegressor
        library = "fast" if variant == "fast" else "default"
        return kind(library, time_limit=cell.limit or None, n_jobs=1 if cell.part == "latency" else 2)
    return Baseline(name, cell)


class Baseline:
    """LightGBM and CatBoost stopped by a tenth of the rows and by the clock, or scikit-learn's stacking."""

    def __init__(self, name: str, cell: Cell):
        self.name, self.cell = name, cell

    def fit(self, X: Any, y: np.ndarray) -> Baseline:
        classify, seconds = self.cell.task == "classification", self.cell.limit or 1e9
        if self.name == "stacking":
            self.columns = ordinal(X)
            self.model = stacking(classify).fit(self.columns(X), y)
            return self
        held = np.random.default_rng(0).permutation(len(y)) < len(y) // 10
        rows = (lambda mask: X[mask]) if isinstance(X, np.ndarray) else (lambda mask: X.loc[mask])
        train, stop = (rows(~held), y[~held]), (rows(held), y[held])
        self.columns = lambda X: X
        if self.name == "lightgbm":
            import lightgbm

            kind = lightgbm.LGBMClassifier if classify else lightgbm.LGBMRegressor
            self.model = kind(n_estimators=5_000, learning_rate=0.05, n_jobs=2, verbose=-1)
            calls = [lightgbm.early_stopping(50, verbose=False), until(time.monotonic() + 0.95 * seconds)]
            self.model.fit(*train, eval_set=[stop], callbacks=calls)
        else:
            import catboost

            words = [] if isinstance(X, np.ndarray) else list(X.select_dtypes("category").columns)
            kind = catboost.CatBoostClassifier if classify else catboost.CatBoostRegressor
            options: dict[str, Any] = {"thread_count": 2, "verbose": False, "allow_writing_files": False}
            self.model = kind(iterations=5_000, cat_features=words, early_stopping_rounds=50, **options)
            self.model.fit(*train, eval_set=stop, callbacks=[Clock(time.monotonic() + 0.95 * seconds)])
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.ravel(self.model.predict(self.columns(X)))

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.model.predict_proba(self.columns(X))


class Clock:
    """Ends CatBoost at an instant."""

    def __init__(self, end: float):
        self.end = end

    def after_iteration(self, _: Any) -> bool:
        return time.monotonic() < self.end


def until(end: float) -> Any:
    """Ends LightGBM at an instant, with the rounds that it has."""

    def stop(env: Any) -> None:
        if time.monotonic() > end:
            from lightgbm.callback import EarlyStopException

            raise EarlyStopException(env.iteration, env.evaluation_result_list)

    return stop


def ordinal(X: Any) -> Any:
    """Words as codes, for learners that take numbers alone."""
    if isinstance(X, np.ndarray):
        return lambda X: X
    return lambda X: X.apply(lambda c: c.cat.codes if c.dtype == "category" else c)


def stacking(classify: bool) -> Any:
    """scikit-learn's own, over boosting, a forest and a linear model."""
    from sklearn import ensemble, linear_model, pipeline, preprocessing

    if classify:
        linear: Any = linear_model.LogisticRegression(max_iter=500)
        boost, forest = ensemble.HistGradientBoostingClassifier(random_state=0), ensemble.RandomForestClassifier
        whole: Any = ensemble.StackingClassifier
    else:
        linear, whole = linear_model.RidgeCV(), ensemble.StackingRegressor
        boost, forest = ensemble.HistGradientBoostingRegressor(random_state=0), ensemble.RandomForestRegressor
    scaled = pipeline.make_pipeline(preprocessing.StandardScaler(), linear)
    members = [("boosting", boost), ("forest", forest(100, min_samples_leaf=5, random_state=0)), ("linear", scaled)]
    return whole(members, cv=3, n_jobs=2)


# ---------------------------------------------------------------------------------------------------------- the report


def report(folder: Path) -> Path:
    """Tables and exponents as markdown, and the figure."""
    results = pd.read_csv(folder / "scale.csv")
    results = results.drop_duplicates(KEY, keep="last")
    parts = [f"## {part}\n\n{as_text(rows)}\n" for part, rows in results.groupby("part", sort=False)]
    growth = results[(results["part"] == "growth") & (results["status"] == "ok")]
    if len(growth):
        parts.append(f"## exponents\n\nslope of log cost against log size\n\n{as_text(exponents(growth))}\n")
        draw(growth, folder / "scale.svg")
    path = folder / "scale.md"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


def as_text(rows: pd.DataFrame) -> str:
    """A table in markdown, without columns that are empty."""
    rows = rows.dropna(axis=1, how="all")
    head = [f"| {' | '.join(map(str, rows.columns))} |", f"|{'---|' * rows.shape[1]}"]
    said = lambda v: "" if pd.isna(v) else f"{v:,.4g}" if isinstance(v, float) and abs(v) < 1e4 else f"{v}"
    return "\n".join(head + [f"| {' | '.join(said(v) for v in row)} |" for row in rows.itertuples(index=False)])


def exponents(growth: pd.DataFrame) -> pd.DataFrame:
    """The slope of log cost on log size where one size grows and the others stay."""
    found = []
    for what in ("rows", "columns", "classes"):
        others = [name for name in ("task", "rows", "columns", "classes") if name != what]
        for key, rows in growth.groupby(["system", *others]):
            if rows[what].nunique() < 3:
                continue
            line = {"system": key[0], "grows": what, "task": rows["task"].iloc[0]}
            for cost in ("fit_seconds", "peak_mb", "predict_seconds"):
                line[cost] = float(np.polyfit(np.log(rows[what]), np.log(rows[cost].clip(lower=1e-3)), 1)[0])
            found.append(line)
    return pd.DataFrame(found)


def draw(growth: pd.DataFrame, path: Path) -> None:
    """Seconds of the fit against each size, one line per system."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(11, 6), sharex="col")
    for column, what in enumerate(("rows", "columns", "classes")):
        others = [name for name in ("task", "rows", "columns", "classes") if name != what]
        sizes = growth.groupby(others)[what].transform("nunique")
        chosen = growth[(sizes > 1) & (growth["task"] == "classification")]
        for line, cost in enumerate(("fit_seconds", "peak_mb")):
            for system, rows in chosen.groupby("system"):
                ordered = rows.sort_values(what)
                axes[line, column].loglog(ordered[what], ordered[cost], marker="o", label=system)
            axes[line, column].set_xlabel(what)
            axes[line, column].set_ylabel("fit, seconds" if line == 0 else "peak memory, MB")
    axes[0, 0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


if __name__ == "__main__":
    print(json.dumps(one_cell(Cell(**json.loads(sys.argv[1])))))
