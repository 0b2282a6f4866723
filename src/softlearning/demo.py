"""The demonstration: a real dataset, fitted, judged on rows kept aside, saved, with its page."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from softlearning.data.schema import describe, infer_schema
from softlearning.estimators import SoftClassifier
from softlearning.report import console, write_page
from softlearning.report.summarise import summarise_model

LIBRARY = (
    *("logistic", "logistic_strong", "knn_15", "random_forest", "extra_trees", "hist_gradient_boosting"),
    *("svm_rbf", "mlp_large", "naive_bayes", "spline_logistic"),
)  # every family; without CatBoost, which alone takes as long as the others together


def run_demo(folder: Path, jobs: int) -> None:
    """Fit, print, judge, save."""
    X, y = cancer()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    click.echo("Breast cancer Wisconsin (ships with scikit-learn): is a tumour malignant or benign?")
    table = describe(infer_schema(X_train, {})).splitlines()[0]
    click.echo(f"Understood: {table}; {len(X_test)} more rows are kept aside to judge the result.\n")
    start = time.monotonic()
    model = SoftClassifier(list(LIBRARY), n_jobs=jobs, column_types={}, progress=sys.stderr.isatty()).fit(
        X_train, y_train
    )
    seconds = time.monotonic() - start
    summary = summarise_model(model, X=X_train, y=y_train, command="softlearning demo")
    click.echo(f"Fitted {len(summary['leaderboard'])} specialists in {seconds:.0f} seconds:\n")
    click.echo("\n".join(console.model(summary)) + "\n")
    click.echo("\n".join(held_out(model, X_train, y_train, X_test, y_test)) + "\n")
    leave_behind(model, summary, folder)


def cancer() -> tuple[pd.DataFrame, np.ndarray]:
    data = load_breast_cancer(as_frame=True)
    return data.data, data.target_names[data.target.to_numpy()]


def held_out(model, X_train, y_train, X_test, y_test) -> list[str]:
    """Blend and best member on rows that nobody has seen; the member is the one that cross-validation would pick."""
    best = model.recombine(rule="best", X=X_train, y=y_train)
    rivals = {"blend": model, f"best alone ({best.weights_.idxmax()})": best}
    rows = [judged(name, rival, X_test, y_test) for name, rival in rivals.items()]
    gain = rows[1][1] - rows[0][1]
    word = "The blend gains" if gain > 0 else "The blend does not gain here: it loses"
    table = [("", "accuracy", "log loss"), *((name, f"{acc:.4f}", f"{loss:.4f}") for name, loss, acc in rows)]
    return [
        f"On the {len(y_test)} rows kept aside:",
        *console.columns(table, right=(1, 2)),
        f"{word} {abs(gain):.4f} in log loss over its best member.",
        *where_wrong(model, X_test, y_test),
    ]


def where_wrong(model, X, y) -> list[str]:
    """Errors where the specialists agree and where they do not."""
    V, wrong = model.disagreement(X), model.predict(X) != y
    sure = np.median(V) >= V
    if sure.all():
        return ["One specialist carries all the weight, so there is no disagreement to read."]
    agree, apart = (f"{wrong[rows].sum()} of {rows.sum()}" for rows in (sure, ~sure))
    return [f"Wrong: {agree} where the specialists agree most, {apart} on the other half."]


def judged(name: str, model, X, y) -> tuple[str, float, float]:
    return name, float(log_loss(y, model.predict_proba(X), labels=model.classes_)), float(model.score(X, y))


def leave_behind(model, summary, folder: Path) -> None:
    model.save(folder / "model.soft")
    write_page(summary, folder / "report.html")
    click.echo(f"Look next: {folder / 'report.html'} in a browser; the model is {folder / 'model.soft'}.")
    click.echo("On your own table: softlearning fit TABLE.csv --target COLUMN --out MODEL --report PAGE.html")
