"""A fitted model as a run of MLflow: settings, scores, leaderboard, card, page and model file (extra [mlflow])."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np


def log_to_mlflow(model: Any, uri: str, *, experiment: str = "softlearning", page: bool = True) -> str:
    """Log a fitted model as a finished run, and return its id.

    Parameters
    ----------
    model : SoftClassifier or SoftRegressor, fitted.
    uri : the tracking server or store, such as "http://host:5000", "sqlite:///runs.db" or "file:runs".
    experiment : made if there is none of that name.
    page : whether the report is among the artifacts.

    Logged are the parameters; `cv_risk`, `cv_score` with its interval and the weight of each specialist as metrics; and
    as artifacts leaderboard.csv, card.md, report.html and model.softlearning, which `softlearning.load` reads.
    """
    try:
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise ImportError("logging to MLflow needs the extra: pip install 'softlearning[mlflow]'") from None
    from softlearning.sharing.card import model_card

    client = MlflowClient(tracking_uri=uri)
    found = client.get_experiment_by_name(experiment)
    run = client.create_run(found.experiment_id if found else client.create_experiment(experiment)).info.run_id
    for name, value in model.get_params(deep=False).items():
        client.log_param(run, name, str(value)[:500])
    for name, value in metrics_of(model).items():
        client.log_metric(run, name, value)
    client.set_tag(run, "verdict", model.verdict_)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        model.leaderboard_.to_csv(place / "leaderboard.csv", index=False)
        (place / "card.md").write_text(model_card(model), encoding="utf-8")
        model.save(place / "model.softlearning")
        if page:
            model.report(place / "report.html")
        for path in sorted(place.iterdir()):
            client.log_artifact(run, str(path))
    client.set_terminated(run)
    return run


def metrics_of(model: Any) -> dict[str, float]:
    """What is logged as a metric: finite numbers alone."""
    held = model.cv_score_
    values = {"cv_risk": model.cv_risk_, "cv_score": held["score"], "cv_low": held["low"], "cv_high": held["high"]}
    values |= {f"weight.{name}": weight for name, weight in model.weights_.items() if weight > 0}
    return {name: float(value) for name, value in values.items() if np.isfinite(value)}
