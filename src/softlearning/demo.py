"""The demonstration: the default on a real table, beside two rivals, judged on rows kept aside; saved, with its page.

The table is Gapminder's (CC BY 4.0): life expectancy, population and income of 142 countries since 1952. It comes with
plotly, which CatBoost brings along.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
import numpy as np
import pandas as pd
from catboost import CatBoostRegressor
from sklearn.model_selection import train_test_split

from softlearning.data.files import write_table
from softlearning.data.schema import describe, infer_schema
from softlearning.estimators import SoftRegressor
from softlearning.evaluation import score_rows
from softlearning.report import console, summarise_model, write_page

COLUMNS = ["country", "continent", "year", "pop", "gdpPercap"]
TARGET = "lifeExp"


def gapminder() -> pd.DataFrame:
    """1,704 rows: what is known of a country in a year, and the life expectancy at birth."""
    from plotly.data import gapminder

    return gapminder()[[*COLUMNS, TARGET]]


def run_demo(folder: Path, jobs: int, library="default") -> None:
    """Fit, print, judge, save."""
    train, test = train_test_split(gapminder(), test_size=0.3, random_state=0)
    X, y = train[COLUMNS], train[TARGET]
    click.echo("Gapminder (CC BY 4.0): how long do people live in a country in a year, in years?")
    table = describe(infer_schema(X, {})).splitlines()[0]
    click.echo(f"Understood: {table}; {len(test)} more rows are kept aside to judge the result.\n")
    start = time.monotonic()
    model = SoftRegressor(library, n_jobs=jobs, progress=sys.stderr.isatty()).fit(X, y)
    click.echo(f"Fitted {len(model.leaderboard_)} specialists in {time.monotonic() - start:.0f} seconds.\n")
    summary = summarise_model(model, X=test[COLUMNS], y=test[TARGET], command="softlearning demo", name="Gapminder")
    click.echo("\n".join(console.model(summary)) + "\n")
    click.echo("\n".join(rivals(model, train, test, jobs)) + "\n")
    leave_behind(model, summary, test, folder)


def rivals(model, train: pd.DataFrame, test: pd.DataFrame, jobs: int) -> list[str]:
    """The blend, its best specialist and one untouched CatBoost, on rows that none of them has seen."""
    X, y = train[COLUMNS], train[TARGET]
    best = model.record_.comparison.rival
    alone = model.drop([name for name in model.weights_.index if name != best], X, y)
    catboost = CatBoostRegressor(cat_features=["country", "continent"], thread_count=jobs, verbose=0)
    catboost.fit(X, y)
    names = ("softlearning", f"its best specialist, {best}", "CatBoost()")
    said = {n: np.asarray(m.predict(test[COLUMNS]))[:, None] for n, m in zip(names, (model, alone, catboost))}
    found = score_rows(test[TARGET].to_numpy(), said, ["neg_root_mean_squared_error"])
    errors = dict(zip(found.scores["candidate"], -found.scores["score"]))
    less = {d.against: f"{-d.high:.2f} to {-d.low:.2f}, {d.verdict}" for d in found.differences.itertuples()}
    rows = [(name, f"{errors[name]:.2f}", less.get(name, "")) for name in names]
    head = ("", "RMSE", "softlearning minus it (95 %)")
    return [
        f"On the {len(test)} rows kept aside (error in years of life):",
        *console.columns([head, *rows], right=(1,)),
    ]


def leave_behind(model, summary, test: pd.DataFrame, folder: Path) -> None:
    """Model, page and the rows kept aside, and what to type next."""
    model.save(folder / "model.soft")
    write_page(summary, folder / "report.html")
    write_table(test, folder / "test.csv")
    click.echo(f"Look at {folder / 'report.html'} in a browser. Then type:")
    click.echo(f"  softlearning evaluate {folder / 'model.soft'} {folder / 'test.csv'}")
    click.echo("  softlearning fit TABLE.csv --target COLUMN --out MODEL --report PAGE.html")
