"""Figures in the README and in docs/measured.md are those of the committed results."""

import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = (ROOT / "README.md").read_text(encoding="utf-8")
README = PAGE.partition("## What was measured")[2].partition("\n## ")[0]
SHORT = " ".join(README.split())
TEXT = " ".join((ROOT / "docs" / "measured.md").read_text(encoding="utf-8").split())
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


def first_or_tied(table, tolerance=0.0):
    """On how many rows the first column is not below any other."""
    return int((table.iloc[:, 0] >= table.max(axis=1) - tolerance - 1e-9).sum())


def test_the_readme_tells_it_in_25_lines():
    assert len(README.strip().splitlines()) <= 25


def test_first_places_and_ranks_by_one_ruler(suite):
    scores = suite.groupby(["dataset", "method"])["score"].mean().unstack()
    three = ["Logistic/Ridge", "Random Forest", "Gradient Boosting"]
    scores["Best-of-3"] = scores[three].max(axis=1)
    rivals = ["CatBoost", "Tuned MLP", *three, "KAN-like", "NeuroSym", "Basic MLP", "Best-of-3"]
    others = ["exact", "exact and calibrated", "guarded and calibrated", "Stacking", "Soft voting", "Greedy selection"]
    fields = [rivals, [*rivals, "Soft Learning"]]
    fields.append([*fields[1], *others, "NNLS / sum", "Discrete Super Learner"])
    tables = [scores[["softlearning", *names]].dropna() for names in fields]
    (a, a3), (b, b3), (c, c3) = [(first_or_tied(t), first_or_tied(t, 0.001)) for t in tables]
    assert f"exactly tied on {a} against its nine rivals, on {b} with its own method among them, on {c} with" in SHORT
    assert f"on {a} sets against the paper's nine rivals ({a3} within .001), on {b} with the paper's own" in TEXT
    assert f"among them ({b3}), on {c} against all combiners ({c3})" in TEXT
    rank = tables[1].rank(axis=1, ascending=False).mean()
    assert f"Mean rank {rank['softlearning']:.2f}, the paper's method {rank['Soft Learning']:.2f}," in SHORT
    gap = (scores["softlearning"] - scores["CatBoost"]).round(9)
    assert f"{(gap > 0).sum()} wins, {(gap == 0).sum()} ties and a loss" in TEXT
    assert (gap < 0).sum() == 1


def loss_effects(folder):
    effects = pd.read_csv(RESULTS / folder / "real_effects.csv").set_index(["part", "metric"])
    return effects.loc[("confirm", "loss")].set_index("against")


def ratio_and_interval(line):
    """The ratio of losses and its interval, as both pages print them."""
    return [f"{np.exp(-line[name]):.3f}" for name in ("mean", "high", "low")]


def pairs_of(folder):
    return pd.read_csv(RESULTS / folder / "real_pairs.csv").set_index(["system", "against"])


def test_real_tables_in_short():
    effects, pairs = loss_effects("confirmation_3"), pairs_of("confirmation_3").loc["softlearning"]
    for rival, words in (
        (
            "catboost",
            "CatBoost's on {lower}, {} ({} to {}: {verdict}; plain mean {plain:.3f}, and {without:.3f} without {far},"
            " whose text it took for a category), worst {worst:.2f} ({table})",
        ),
        ("lightgbm", "LightGBM's on {lower} and"),
        ("histgb", "HistGradientBoosting's on {lower} ({verdict})"),
    ):
        line, pair = effects.loc[rival], pairs.loc[rival]
        found = {"lower": pair.lower_loss, "verdict": line.verdict}
        found |= {"worst": pair.worst_ratio, "table": pair.worst_table}
        found |= {"plain": pair.mean_ratio, "without": pair.ratio_without, "far": pair.farthest_table}
        assert words.format(*ratio_and_interval(line), **found) in SHORT
    pair = pairs.loc["catboost"]
    assert f"{pair.seconds:.1f} s to fit against CatBoost's {pair.their_seconds:.1f} s" in SHORT
    assert f"{pair.predict_seconds:.3f} s to predict against {pair.their_predict_seconds:.3f} s" in SHORT
    fast = pairs_of("confirmation_3").loc[("softlearning-fast", "catboost")]
    assert f"takes {fast.seconds:.1f} s and has a lower loss than CatBoost on {fast.lower_loss}, mean" in SHORT
    assert f"mean ratio {fast.mean_ratio:.3f}. Goals missed" in SHORT
    line, pair = (of("confirmation_2") for of in (loss_effects, pairs_of))
    line, pair = line.loc["autogluon-medium"], pair.loc[("softlearning", "autogluon-medium")]
    ratio, low, high = ratio_and_interval(line)
    assert (
        f"lower than AutoGluon's (medium quality) on {pair.lower_loss}, {ratio} ({low} to {high}: {line.verdict})"
        in SHORT
    )


def test_the_short_story_has_the_figures_of_the_long_one():
    for figure in (
        "1.94 (standard deviation 0.59)",
        "(sign test p = .07)",
        "90.3 %",
        "9 of 10 sets",
        "in 43 s; 2.5 copies",
    ):
        assert figure in SHORT
        assert figure in TEXT
    for figure in (".0000", ".0017", ".0095", "0.94 times that of", "1.11 times below", "1.01 in regression"):
        assert figure in SHORT
        assert figure in TEXT


def test_seeds_intervals_and_errors():
    cells = pd.read_csv(RESULTS / "coverage.csv")
    assert f"cover {cells['coverage'].mean():.1%} on average over {len(cells)}".replace("%", " %") in TEXT
    auc = pd.read_csv(RESULTS / "uncertainty_measures.csv").pivot(index="dataset", columns="measure", values="auc")
    better = (auc["max_probability"] > auc["disagreement"]).sum()
    assert f"better than disagreement on {better} of {len(auc)} sets" in SHORT
    cost = pd.read_csv(RESULTS / "overhead.csv").set_index("what")
    assert f"from csv to report in {cost.loc['csv to report by the command', 'seconds']:.0f} s" in SHORT
    assert f"{cost.loc['copies in the process that fits', 'ratio']:.1f} copies of a table" in SHORT


def test_the_ledger_is_counted():
    lines = (RESULTS / "paper" / "report.md").read_text(encoding="utf-8").splitlines()
    verdicts = [line for line in lines if "its tables: " in line and line.startswith("| ")]
    fail = sum("its tables: fails" in line for line in verdicts)
    assert f"{len(verdicts)} rows with a verdict that is computed" in SHORT
    assert f"{fail} fail by its own tables" in SHORT
    assert f"{len(verdicts)} rows with a verdict, computed" in TEXT


@pytest.mark.slow
def test_the_first_example_prints_what_the_readme_shows(capsys):
    code, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, flags=re.DOTALL).groups()
    exec(code, {})
    assert capsys.readouterr().out.strip() == shown.strip()


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
    boosting = (ours["predict_seconds"] / seconds.loc["CatBoost"]["predict_seconds"]).median()
    assert f"to predict, {boosting:.0f} times CatBoost's seconds (median)" in TEXT
    assert f"(median; at most {predict.max():.1f}), {boosting:.0f} times as long as CatBoost" in SHORT


def test_the_loss_against_the_oracle(study):
    mean = lambda rows: f"{np.exp(rows['ratio'].groupby(level=0).mean().mean()):.2f}"
    large, classes = study["rows"] >= 1000, study["task"] == "classification"
    assert f"The loss is {mean(study)} times that of the oracle" in TEXT
    assert f"{mean(study[large])} times from 1,000 training rows on, {mean(study[~large])} times below" in TEXT
    assert f"{mean(study[classes])} in classification, {mean(study[~classes])} in regression" in TEXT
    for words, rows in (("tables with classes", study[classes]), ("with numbers", study[~classes])):
        ahead = rows["behind"].groupby(level=0).mean() < -1e-9
        assert f"{ahead.sum()} of {len(ahead)} {words}" in TEXT
    worst = study["behind"].groupby(level=0).mean().nlargest(3)
    for table, words in (("wine_alcohol", "wine alcohol"), ("titanic_fare", "Titanic fares"), ("diabetes", "diabetes")):
        assert f"{worst[table]:.3f} ({words})".removeprefix("0") in TEXT


def test_the_study_tells_its_seconds_of_prediction():
    cells = pd.read_csv(RESULTS / "study_schemes.csv").query("axis == 'method'")
    seconds = cells.pivot_table(index=["dataset", "seed"], columns="scheme", values="test_seconds").dropna()
    ratio = (seconds["default"] / seconds["paper"]).groupby(level=0).mean()
    page = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    words = f"to predict takes {ratio.median():.1f} times the seconds of the paper's library (median over {len(ratio)}"
    assert words in " ".join(page.split())


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


RIVALS = {"catboost": "CatBoost", "lightgbm": "LightGBM", "histgb": "HistGradientBoosting"}
AUTOGLUON = {"autogluon-medium": "AutoGluon 1.6.3, medium quality, 90 s"}


@pytest.mark.parametrize(("folder", "names"), [("confirmation_3", RIVALS), ("confirmation_2", {**RIVALS, **AUTOGLUON})])
def test_the_real_tables(folder, names):
    effects, pairs = loss_effects(folder), pairs_of(folder).loc["softlearning"]
    for rival, name in names.items():
        pair, (ratio, low, high) = pairs.loc[rival], ratio_and_interval(effects.loc[rival])
        ties = {0: "", 1: " (1 tie)"}.get(pair.tied_score, f" ({pair.tied_score} ties)")
        won = f"| {name} | {pair.lower_loss} of {pair.tables} | {pair.better_score}{ties} | {ratio} ({low} to {high})"
        worst = f"{pair.worst_ratio:.2f} {pair.worst_table} | {pair.mean_ratio:.3f}, {pair.ratio_without:.3f}"
        seconds = f"{pair.seconds:.1f} against {pair.their_seconds:.1f}"
        predict = f"{pair.predict_seconds:.3f} against {pair.their_predict_seconds:.3f}"
        size = f"{pair.memory:.0f} against {pair.their_memory:.0f} | {pair['size']:.1f} against {pair.their_size:.1f}"
        costs = f"{seconds} | {predict} | {size} | {pair.failures} against {pair.their_failures} |"
        assert pair.farthest_table == "sms_spam"
        assert f"{won} | {effects.loc[rival].verdict} | {worst} | {costs}" in TEXT


def test_seconds_and_single_tables_of_the_confirmation():
    cells = pd.read_csv(RESULTS / "confirmation_3" / "real.csv").pivot(index="table", columns="method")
    ratio = (cells["loss"]["softlearning"] / cells["loss"]["catboost"]).drop("sms_spam")
    assert f"{(ratio > 1).sum()} lost: {', '.join(f'{t} {r:.3f}' for t, r in lost_first(ratio))}" in TEXT
    assert loss_effects("confirmation_3").loc["catboost", "p_wilcoxon"] < 1e-4
    assert "Wilcoxon's p against CatBoost is below .0001" in TEXT
    ours, fast, theirs = (cells["fit_seconds"][m] for m in ("softlearning", "softlearning-fast", "catboost"))
    assert f"three times CatBoost's and five: {(ours < 3 * theirs + 5).sum()} of {len(cells)}" in TEXT
    assert f"CatBoost's and five: {(fast < theirs + 5).sum()} of {len(cells)}" in TEXT


def lost_first(ratio):
    """Tables with a larger loss than the rival's, the largest first."""
    return ratio[ratio > 1].sort_values(ascending=False).items()


def test_the_confirmation_before():
    cells = pd.read_csv(RESULTS / "confirmation_2" / "real.csv").pivot(index=["table", "seed"], columns="method")
    plain = pairs_of("confirmation_2").loc[("softlearning", "catboost")]
    assert f"geometric mean of the ratios {plain.mean_ratio:.3f} is {plain.ratio_without:.3f} without it" in TEXT
    loss = cells["loss"].groupby(level=0).mean()
    ratio = loss["softlearning"] / loss["catboost"]
    assert f"the ratio there is {ratio['sms_spam']:.2f}" in TEXT
    assert f"On beijing_pm25 ({ratio['beijing_pm25']:.2f})" in TEXT
    unsaved = cells["model_size"]["softlearning"].isna().groupby(level=0).any()
    assert f"On {unsaved.sum()} of the 20 tables ({', '.join(unsaved[unsaved].index)}) the models" in TEXT
    seconds = cells["fit_seconds"]
    slow = (seconds["softlearning"] < 3 * seconds["catboost"] + 5).sum()
    assert f"three times CatBoost's seconds and five, which is met on {slow} of {len(cells)} splits" in TEXT
    soon = (seconds["softlearning-fast"] < seconds["catboost"] + 5).sum()
    assert f"seconds and five is met on {soon} of {len(seconds)} splits" in TEXT


def test_the_real_tables_of_earlier_defaults():
    for folder, words in (
        ("confirmation", "lower than CatBoost's on {}, geometric mean of the loss ratios {:.3f}, 95 % interval"),
        ("choose", "lower on {}, mean ratio {:.3f}"),
    ):
        pair = pairs_of(folder).loc[("softlearning", "catboost")]
        assert words.format(pair.lower_loss, pair.mean_ratio) in TEXT
    pairs = pairs_of("confirmation").loc["softlearning"]
    assert f"worst {pairs.loc['catboost'].worst_ratio:.2f}; lower than HistGradientBoosting's on" in TEXT
    other = pairs.loc["histgb"]
    assert (
        f"on {other.lower_loss}, {other.mean_ratio:.3f}, worst {other.worst_ratio:.2f} (both worst on anneal)" in TEXT
    )
    assert other.worst_table == pairs.loc["catboost"].worst_table == "anneal"
    first = pairs_of("real").reset_index().query("part == 'confirm' and against == 'catboost'").iloc[0]
    assert f"lower on {first.lower_loss} of the 20, {first.mean_ratio:.3f}, worst {first.worst_ratio:.2f}" in TEXT


def test_what_a_model_claims_of_itself():
    lines = pd.read_csv(RESULTS / "claimed_noise.csv")
    gap = ((lines["claimed"] - lines["true"]) / lines["true"]).groupby([lines["classes"], lines["rows"]])
    kinder = (gap.mean() < -gap.sem()).sum()
    assert (
        f"{len(lines)} fits of targets that are noise, {gap.size().min()} or more in each of {gap.ngroups} cells"
        in TEXT
    )
    assert f"called better in {lines['better'].sum()} of them" in TEXT
    assert f"more than one standard error in {kinder} of the {gap.ngroups} cells" in TEXT
    real = pd.read_csv(RESULTS / "claimed_real.csv")
    ratio = (real["claimed"] / real["true"]).groupby(real["case"]).mean()
    draws = f"{len(ratio)} real tables cut to 200 rows, {len(real) // len(ratio)} draws each"
    assert f"{draws}: {ratio.mean():.3f} times the true risk on average" in TEXT
    assert f"(standard error {ratio.sem():.3f}, median {ratio.median():.3f})" in TEXT


def test_the_busy_machine_is_told_as_it_was():
    busy, idle = (pd.read_csv(RESULTS / folder / "real.csv") for folder in ("busy", "confirmation_2"))
    both = busy.merge(idle[idle.seed == 2], on=["table", "method", "seed"], suffixes=("", "_idle"))
    ratio, page = both.loss / both.loss_idle, TEXT
    assert f"mean ratio of the losses {np.exp(np.log(ratio).mean()):.3f} over {len(both)} tables" in page
    assert f"worst {ratio.max():.3f}" in page
    assert f"{both.fit_seconds.median():.1f} s against {both.fit_seconds_idle.median():.1f}" in page


def test_limits_and_latency_are_told_as_they_were():
    scale, page = pd.read_csv(RESULTS / "scale" / "scale.csv"), TEXT
    limits, row_ms = scale[scale.part == "limits"], scale.row_ms[scale.part == "latency"]
    late = (limits.fit_seconds - limits.limit)[limits.fit_seconds > limits.limit]
    assert (limits.status == "ok").all()
    assert f"{len(limits)} fits under limits" in page
    assert f"{len(limits) - len(late)} ended before the limit" in page
    for seconds in late:
        assert f"one {seconds:.1f} s after" in page
    by = row_ms.groupby(scale.system)
    usual, fast = (f"{by.get_group(name).min():.1f} to {by.get_group(name).max():.1f} ms"
                   for name in ("softlearning", "softlearning fast"))  # fmt: skip
    assert f"The default predicts one row in {usual}, the fast library in {fast}" in page
    saved = by.get_group("softlearning").to_numpy() - by.get_group("softlearning slim").to_numpy()
    assert f"`slim` saved at most {saved.max():.1f} ms" in page
    assert f"A fit of 250,000 x 30 took {limits[limits.rows == 250_000].peak_mb.max() / 1000:.1f} GB" in page


def test_the_first_minutes():
    taken = pd.read_csv(RESULTS / "first_minutes.csv")["seconds"].tolist()
    venv, install, _, fast, default, evaluate, predict = taken
    assert (
        f"environment takes {venv} s, `pip install .` {install} s, the first report on 200 rows {fast} s with" in TEXT
    )
    assert f"and {default} s with the default, then `evaluate` {evaluate} s and `predict` {predict} s" in TEXT


def test_the_comparison_beside_tabarena():
    lines = pd.read_csv(RESULTS / "real" / "tabarena.csv")
    best = "AutoGluon 1.4 (best, 4h)"
    ours, boosting, theirs = (f"{np.exp(np.log(lines[name]).mean()):.3f}"
                              for name in ("softlearning", "GBM (tuned + ensemble)", best))  # fmt: skip
    assert f"on {len(lines)} shared tables, seed 0, earlier commits, the error is {ours} times" in TEXT
    assert f"LightGBM has {boosting}, and AutoGluon 1.4 with four hours {theirs}" in TEXT
    assert f"lower than ours on {(lines[best] < lines['softlearning']).sum()} of the {len(lines)}" in TEXT
