"""The statistics of the protocol: against an independent implementation, simulated splits, and cases known by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from softlearning_bench.effects import by_table, differences, effects, mixed_effect, verdict, win_tie_loss


def cells_of(lines):
    names = ["table", "part", "task", "seed", "method", "loss", "score", "auc"]
    return pd.DataFrame(lines, columns=names).assign(failure="", rows=70, test_rows=30)


def simulated(rng, mu, tables=12, splits=6, between=0.05, within=0.1, shared=0.3):
    """Differences of splits that share rows: within a table they have this correlation."""
    table = rng.normal(mu, between, (tables, 1)) + rng.normal(0, within * shared**0.5, (tables, 1))
    cells = table + rng.normal(0, within * (1 - shared) ** 0.5, (tables, splits))
    at = np.indices(cells.shape)
    return pd.DataFrame({"table": at[0].ravel(), "difference": cells.ravel(), "ratio": 3 / 7})


def test_losses_are_log_ratios_with_a_floor_and_scores_differences():
    cells = cells_of(
        [
            ("a", "choose", "binary", 0, "ours", 0.2, 0.9, 0.8),
            ("a", "choose", "binary", 0, "theirs", 0.4, 0.8, 0.9),
            ("b", "choose", "multiclass", 0, "ours", 0.0, 1.0, np.nan),
            ("b", "choose", "multiclass", 0, "theirs", 1e-6, 1.0, np.nan),
            ("c", "choose", "regression", 0, "ours", 1e-6, 0.5, np.nan),
            ("c", "choose", "regression", 0, "theirs", 2e-6, 0.7, np.nan),
            ("c", "choose", "regression", 1, "ours", 1.0, 0.5, np.nan),
        ]
    )
    found = {m: differences(cells, "ours", "theirs", m).set_index("table") for m in ("loss", "auc", "accuracy", "r2")}
    assert found["loss"]["difference"].to_dict() == pytest.approx({"a": np.log(2), "b": 0.0, "c": np.log(2)})
    assert found["auc"]["difference"].to_dict() == pytest.approx({"a": -0.1})
    assert found["accuracy"]["difference"].to_dict() == pytest.approx({"a": 0.1, "b": 0.0})
    assert found["r2"]["difference"].to_dict() == pytest.approx({"c": -0.2})
    assert found["loss"]["ratio"].tolist() == pytest.approx([3 / 7] * 3)


def test_the_variance_of_a_mean_over_splits_counts_the_rows_they_share():
    lines = pd.DataFrame({"table": ["a"] * 4 + ["b"], "difference": [1.0, 2.0, 3.0, 4.0, 9.0], "ratio": 0.5})
    found = by_table(lines).set_index("table")
    assert found.loc["a", "variance"] == pytest.approx(np.var([1, 2, 3, 4], ddof=1) * (1 / 4 + 0.5))
    assert found.loc["b", "variance"] == pytest.approx(np.var([1, 2, 3, 4], ddof=1) * (1 + 0.5))
    assert by_table(lines.iloc[[0, 4]])["variance"].isna().all()


def test_without_repeated_splits_it_is_the_t_test_over_tables(rng):
    y = rng.normal(0.3, 1, 15)
    found = mixed_effect(y, np.full(15, np.nan))
    plain = stats.ttest_1samp(y, 0)
    assert found.p == pytest.approx(plain.pvalue, rel=1e-6)
    assert (found.low, found.high) == pytest.approx(tuple(plain.confidence_interval()), rel=1e-5)
    assert found.new_low < found.low < found.high < found.new_high


def test_mean_and_spread_of_tables_are_those_of_a_mixed_model_by_statsmodels(rng):
    mixedlm = pytest.importorskip("statsmodels.regression.mixed_linear_model", reason="statsmodels is not installed")
    lines = simulated(rng, 0.2, tables=20, splits=8, between=0.3, shared=0.0)
    theirs = mixedlm.MixedLM(lines["difference"], np.ones(len(lines)), groups=lines["table"]).fit(reml=True)
    means = lines.groupby("table")["difference"].mean()
    found = mixed_effect(means, np.full(20, theirs.scale / 8))
    assert found.mean == pytest.approx(theirs.fe_params.iloc[0], rel=1e-6)
    half = (found.high - found.low) / 2 / stats.t.ppf(0.975, 19)
    assert half == pytest.approx(theirs.bse_fe.iloc[0], rel=1e-3)


def test_no_difference_is_seldom_called_one_where_pooled_cells_often_call_it(rng):
    ours, pooled, runs = 0, 0, 120
    for _ in range(runs):
        lines = simulated(rng, 0.0)
        tables = by_table(lines)
        ours += mixed_effect(tables["mean"], tables["variance"]).p < 0.05
        pooled += stats.ttest_1samp(lines["difference"], 0).pvalue < 0.05
    assert ours / runs < 0.08
    assert pooled / runs > 0.15


def test_a_real_difference_is_found_and_its_interval_holds_it(rng):
    covered = found = 0
    for _ in range(50):
        tables = by_table(simulated(rng, 0.15))
        effect = mixed_effect(tables["mean"], tables["variance"])
        covered += effect.low < 0.15 < effect.high
        found += effect.p < 0.05 and effect.mean > 0
    assert covered >= 44
    assert found >= 40


def test_equal_tables_are_no_accident_and_one_table_is_not_enough():
    assert mixed_effect(np.zeros(5), np.zeros(5)).p == 1.0
    assert mixed_effect(np.full(5, 0.2), np.zeros(5)).p == 0.0
    with pytest.raises(ValueError, match="two tables"):
        mixed_effect(np.ones(1), np.ones(1))


def test_within_the_margin_a_table_is_a_tie():
    means = pd.DataFrame({"mean": [0.5, 0.009, -0.009, -0.011, -0.5]})
    assert win_tie_loss(means, "loss") == (1, 2, 2)
    assert win_tie_loss(means, "accuracy") == (2, 0, 3)


@pytest.mark.parametrize(
    ("centre", "spread", "adjusted", "word"),
    [(0.2, 0.01, 0.001, "better"), (-0.2, 0.01, 0.001, "worse"), (0, 0.002, 0.9, "level"), (0, 0.5, 0.9, "undecided")],
)
def test_every_verdict_can_come_out(centre, spread, adjusted, word):
    y = centre + spread * stats.norm.ppf((np.arange(12) + 0.5) / 12)
    assert verdict(mixed_effect(y, np.full(12, np.nan)), adjusted, "loss") == word


def test_every_rival_has_a_line_per_part_and_metric_adjusted_over_the_rivals(rng):
    lines = [
        (f"t{t}", "confirm", "binary", s, name, np.exp(rng.normal(shift, 0.02)), 0.5 - shift, 0.5)
        for t in range(8)
        for s in range(3)
        for name, shift in (("ours", 0.0), ("weak", 0.3), ("alike", 0.0))
    ]
    found = effects(cells_of(lines), "ours").set_index(["metric", "against"])
    assert set(found.index) == {(m, n) for m in ("loss", "auc", "accuracy") for n in ("weak", "alike")}
    weak, alike = found.loc[("loss", "weak")], found.loc[("loss", "alike")]
    assert weak["verdict"] == "better"
    assert (weak["wins"], weak["tables"], weak["splits"]) == (8, 8, 24)
    assert weak["low"] < 0.3 < weak["high"]
    assert weak["p_holm"] == pytest.approx(min(1, 2 * weak["p"]))
    assert alike["verdict"] in ("level", "undecided")
