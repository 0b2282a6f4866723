"""What one system has over another on many tables with several splits each: the statistics of the protocol.

The model of a difference on table t and split s is

    d_ts = mu + u_t + e_ts,   u_t ~ N(0, tau^2),   Var(mean over S splits of e_ts) = sigma_t^2 (1/S + test/train)

Tables are a random effect: the statement is about tables like these, not about these alone. The splits of a table share
training rows, so that the variance of their mean is corrected as Nadeau and Bengio (Machine Learning 52, 2003) do.
tau^2 is the restricted maximum likelihood, the standard error of mu that of Hartung and Knapp (never below the plain
one), with t on T - 1 degrees. Losses are compared as logarithms of their ratio, scores as differences.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import minimize_scalar

from softlearning_bench.significance import holm, wilcoxon

Array = NDArray[np.float64]
FLOOR = 1e-4  # a log loss below this is as good as this: ratios of nothing to nothing say nothing
LEVEL = 0.05  # of every test; intervals are of 1 - LEVEL
MARGINS = {"loss": float(np.log(1.01)), "auc": 0.001, "accuracy": 0.001, "r2": 0.001}  # within it, a table is a tie
SMALLEST = 1e-100  # tables that agree to the last digit have no variance
SPLIT = 3 / 7  # test rows per training row where a result does not tell


@dataclass(frozen=True)
class Effect:
    """The mean difference over tables with its interval, and the interval in which a new table's would lie."""

    tables: int
    splits: int
    mean: float
    low: float
    high: float
    new_low: float
    new_high: float
    p: float


def differences(cells: pd.DataFrame, ours: str, theirs: str, metric: str) -> pd.DataFrame:
    """Per table and split that both finished: `difference`, positive where ours is better, and `ratio` of test rows.

    "loss" is -log(our loss / their loss), log losses not below FLOOR; "auc", "accuracy" and "r2" are ours minus theirs.
    """
    good = cells[cells["failure"].fillna("") == ""]
    of = lambda name: good[good["method"] == name]
    both = of(ours).merge(of(theirs), on=["table", "part", "task", "seed"], suffixes=("_a", "_b"))
    regression = both["task"] == "regression"
    if metric == "loss":
        floor = np.where(regression, np.finfo(float).tiny, FLOOR)
        both["difference"] = np.log(both["loss_b"].clip(lower=floor)) - np.log(both["loss_a"].clip(lower=floor))
    else:
        column = "auc" if metric == "auc" else "score"
        wanted = both["task"].eq("binary") if metric == "auc" else regression == (metric == "r2")
        both = both[wanted].assign(difference=both[f"{column}_a"] - both[f"{column}_b"])
    rows = both["test_rows_a"] / both["rows_a"] if "test_rows_a" in both else pd.Series(np.nan, both.index)
    lines = both.assign(ratio=rows.astype(float).fillna(SPLIT)).dropna(subset="difference")
    return lines[["table", "part", "task", "seed", "difference", "ratio"]]


def by_table(lines: pd.DataFrame) -> pd.DataFrame:
    """Per table: splits, mean difference and its corrected variance.

    A table with one split takes the variance that the others have on average; NaN when no table has two.
    """
    groups = lines.groupby("table", sort=False)
    out = groups.agg(splits=("difference", "size"), mean=("difference", "mean"), ratio=("ratio", "mean"))
    within = groups["difference"].var(ddof=1)
    degrees = (out["splits"] - 1).clip(lower=0)
    pooled = (within * degrees).sum() / degrees.sum() if degrees.sum() else np.nan
    out["variance"] = within.fillna(pooled) * (1 / out["splits"] + out["ratio"])
    return out.reset_index()


def mixed_effect(means: Array, variances: Array, splits: int = 1) -> Effect:
    """mu of the model above from the tables' means and the variances of these; NaN variances are left to tau^2."""
    y, v = np.asarray(means, float), np.nan_to_num(np.asarray(variances, float))
    if len(y) < 2:
        raise ValueError("an effect over tables needs two tables or more")
    tau2 = between_tables(y, v)
    w = 1 / np.maximum(tau2 + v, SMALLEST)
    mu = float((w * y).sum() / w.sum())
    degrees = len(y) - 1
    stretch = max(1.0, float((w * (y - mu) ** 2).sum()) / degrees) if tau2 + v.max() > 0 else 0.0
    error = float(np.sqrt(stretch / w.sum()))
    t = stats.t.ppf(1 - LEVEL / 2, degrees)
    reach = t * np.sqrt(tau2 + error**2)
    p = float(2 * stats.t.sf(abs(mu) / error, degrees)) if error > 0 else float(mu == 0)
    return Effect(len(y), splits, mu, mu - t * error, mu + t * error, mu - reach, mu + reach, p)


def between_tables(y: Array, v: Array) -> float:
    """tau^2 of the largest restricted likelihood."""

    def deviance(tau2: float) -> float:
        w = 1 / np.maximum(tau2 + v, SMALLEST)
        mu = (w * y).sum() / w.sum()
        return float((w * (y - mu) ** 2).sum() - np.log(w).sum() + np.log(w.sum()))

    spread = float(y.var(ddof=1))
    if spread == 0:
        return 0.0
    found = minimize_scalar(deviance, bounds=(0, 4 * spread), method="bounded", options={"xatol": 1e-9 * spread})
    return 0.0 if v.min() > 0 and deviance(0.0) <= found.fun else float(found.x)


def win_tie_loss(lines: pd.DataFrame, metric: str) -> tuple[int, int, int]:
    """Tables that ours wins, ties and loses by its mean over the splits: within the margin it is a tie."""
    means, margin = lines["mean"], MARGINS[metric]
    wins, lost = int((means > margin).sum()), int((means < -margin).sum())
    return wins, len(means) - wins - lost, lost


def verdict(effect: Effect, adjusted: float, metric: str) -> str:
    """ "better" or "worse" where the test says so after Holm; "level" where the interval is within the margin."""
    if adjusted < LEVEL:
        return "better" if effect.mean > 0 else "worse"
    return "level" if max(-effect.low, effect.high) <= MARGINS[metric] else "undecided"


def effects(cells: pd.DataFrame, ours: str) -> pd.DataFrame:
    """Ours against every other system, by part and metric; Holm's family is all rivals of one part and metric."""
    lines = [line for part, here in cells.groupby("part") for line in effects_of_part(here, str(part), ours)]
    return pd.DataFrame(lines)


def effects_of_part(cells: pd.DataFrame, part: str, ours: str) -> list[dict[str, object]]:
    """The lines of `effects` of one part."""
    rivals = [name for name in cells["method"].unique() if name != ours]
    out: list[dict[str, object]] = []
    for metric in MARGINS:
        tables = {name: by_table(differences(cells, ours, name, metric)) for name in rivals}
        family = {name: lines for name, lines in tables.items() if len(lines) > 1}
        found = {n: mixed_effect(t["mean"], t["variance"], int(t["splits"].sum())) for n, t in family.items()}
        adjusted = holm([effect.p for effect in found.values()])
        for (name, effect), p_holm in zip(found.items(), adjusted):
            counts = dict(zip(("wins", "ties", "losses"), win_tie_loss(family[name], metric)))
            signs = wilcoxon(family[name]["mean"], np.zeros(len(family[name]))).p_two_sided
            words = {
                "p_holm": float(p_holm),
                "p_wilcoxon": signs,
                **counts,
                "verdict": verdict(effect, float(p_holm), metric),
            }
            out.append({"part": part, "metric": metric, "system": ours, "against": name} | asdict(effect) | words)
    return out
