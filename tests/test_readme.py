"""Figures in the README are those of the committed results."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
TEXT = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
STACKERS = {"log_pool", "logistic_stack", "tree_stack", "signed_stack"}
pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="the results are not part of an installed package")


@pytest.fixture(scope="module")
def suite():
    """Cells of the paper's suite with the first seed that ran through."""
    cells = pd.read_csv(RESULTS / "paper" / "results.csv")
    return cells[(cells["seed"] == 42) & (cells["status"] == "ok")]


@pytest.fixture(scope="module")
def study():
    """Log ratio of the default's loss to the oracle's, one row per table and split."""
    cells = pd.read_csv(RESULTS / "study_schemes.csv").set_index(["dataset", "seed"])
    default = cells[(cells["axis"] == "method") & (cells["scheme"] == "default")]
    oracle = cells[(cells["axis"] == "peer") & (cells["scheme"] == "oracle specialist")].reindex(default.index)
    least = np.where(default["task"] == "classification", 1e-3, 0)  # between perfect predictions nothing is compared
    ratio = np.log(np.maximum(default["loss"], least) / np.maximum(oracle["loss"], least))
    return default.assign(ratio=ratio, behind=oracle["score"] - default["score"])


def test_where_the_gain_comes_from(suite):
    score = suite.groupby(["dataset", "method"])["score"].mean().unstack().mean()
    steps = ["Soft Learning", "exact", "exact and calibrated"]
    exact, calibration = (score[b] - score[a] for a, b in pairwise(steps))
    rest = score["softlearning"] - score["guarded and calibrated"]
    assert f"adds {exact:.4f} to the mean score, calibration {calibration:.4f}".replace(" 0.", " .") in TEXT
    assert f"its stackers {rest:.4f}".replace(" 0.", " .") in TEXT
    weights = suite[suite["method"] == "softlearning"].set_index("dataset")["weights"].map(json.loads)
    heavy = weights.map(lambda w: sum(v for name, v in w.items() if name in STACKERS)).groupby(level=0).mean() > 0.5
    assert f"over half of the weight on {heavy.sum()} of {len(heavy)} sets" in TEXT


def test_seconds_of_the_suite(suite):
    seconds = suite.groupby(["method", "dataset"])[["fit_seconds", "predict_seconds"]].mean()
    ours, papers = seconds.loc["softlearning"], seconds.loc["Soft Learning"]
    assert f"{ours['fit_seconds'].sum() / papers['fit_seconds'].sum():.2f} times the seconds" in TEXT
    predict = ours["predict_seconds"] / papers["predict_seconds"]
    assert f"{predict.median():.1f} times (median; at most {predict.max():.1f}) to predict" in TEXT


def test_the_loss_against_the_oracle(study):
    mean = lambda rows: f"{np.exp(rows['ratio'].groupby(level=0).mean().mean()):.2f}"
    large, classes = study["rows"] >= 1000, study["task"] == "classification"
    assert f"The loss is {mean(study)} times that of the oracle" in TEXT
    assert f"{mean(study[large])} times from 1,000 training rows on, {mean(study[~large])} times below" in TEXT
    assert f"{mean(study[classes])} in classification, {mean(study[~classes])} in regression" in TEXT
    worst = study["behind"].groupby(level=0).mean().nlargest(3)
    for table, words in (("wine_alcohol", "wine alcohol"), ("titanic_fare", "Titanic fares"), ("diabetes", "diabetes")):
        assert f"{worst[table]:.3f} ({words})".removeprefix("0") in TEXT


def test_external_baselines(suite):
    loss = suite.assign(loss=suite["log_loss"].fillna(suite["rmse"])).groupby(["dataset", "method"])["loss"].mean()
    table = loss.unstack()[["softlearning", "AutoGluon", "FLAML"]].dropna()
    wins = (table.idxmin(axis=1) == "softlearning").sum()
    assert (wins, len(table)) == (7, 8)
    assert "on seven of the eight" in TEXT
    ours = suite[(suite["method"] == "softlearning") & suite["dataset"].isin(table.index)]["fit_seconds"]
    assert f"took {ours.min():.0f} to {ours.max():.0f} s" in TEXT


def test_real_mixed_tables():
    score = pd.read_csv(RESULTS / "messy.csv").groupby(["table", "method"])["score"].mean().unstack()
    for table in ("titanic", "penguins", "auto_mpg"):
        ours, theirs = (f"{score.loc[table, m]:.3f}".removeprefix("0") for m in ("softlearning", "CatBoost"))
        assert f"{ours} to {theirs}" in TEXT


def test_the_real_tables():
    pairs = pd.read_csv(RESULTS / "real" / "real_pairs.csv").set_index("part")
    confirm, choose = pairs.loc["confirm"], pairs.loc["choose"]
    assert f"On the {confirm.tables} tables kept for confirmation" in TEXT
    assert f"the loss is lower on {confirm.lower_loss}, the score better on {confirm.better_score} and tied" in TEXT
    assert f"geometric mean of the loss ratios {confirm.mean_ratio:.3f}, worst {confirm.worst_ratio:.2f}" in TEXT
    assert f"median fit {confirm.seconds:.0f} s against {confirm.their_seconds:.1f} s" in TEXT
    assert f"lower on {choose.lower_loss}, mean ratio {choose.mean_ratio:.3f}" in TEXT


def test_what_a_model_claims_of_itself():
    lines = pd.read_csv(RESULTS / "claimed_noise.csv")
    assert not lines["better"].any()
    gap = ((lines["claimed"] - lines["true"]) / lines["true"]).groupby([lines["classes"], lines["rows"]]).mean()
    assert gap.loc[5].min() > -0.035
    assert "up to 3 % too small for five classes" in TEXT
