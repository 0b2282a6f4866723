"""Tables and figures of the study's page, from its two csv files alone.

Ratios are of losses (log loss or RMSE) on the same test rows. The seeds of a table are averaged first, as
logarithms, so that each table counts once; intervals are bootstrapped over tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from softlearning.library import named
from softlearning_bench.drawing import BLACK, BLUE, GREEN, NARROW, ORANGE, blank, save_svg
from softlearning_bench.shared import FOLDS

DEFAULT, PAPER = "default", "paper"
TASKS = ("classification", "regression")
STACKING = "scikit-learn stacking, default rows"
ORACLE, PICKED = "oracle specialist", "picked by cross-validation"
CELL = ["dataset", "seed"]
SOLVED = 1e-3  # log loss: what lies below counts as this, or the ratio of two perfect predictions would decide
AXIS_COLUMNS = ["scheme", "tables / cells", "loss ratio", "95 % interval", "default better", "default worse"]
AXIS_COLUMNS += ["score minus default"]
UNSEEN = (  # tables that nobody had looked at when the level 2 of their task was chosen
    "A07_covtype_proxy",
    "A09_face_recognition",
    "B04_satellite",
    "B16_large_5class",
    "covertype_2000",
    "covertype_8000",
    "elevation",
    "mc5_20k",
    "penguins_mass",
    "roads",
    "titanic_fare",
    "wine_alcohol",
)
SCALED = {"mlp_small": "mlp_small_scaled", "mlp_large": "mlp_large_scaled", "svr_rbf": "svr"}


def log_ratios(schemes: pd.DataFrame, axis: str, scheme: str, task: str | None = None) -> pd.Series:
    """log(loss of the scheme / loss of the default) by cell, on the cells that have both."""
    part = schemes if task is None else schemes[schemes.task == task]
    solved = (part.task == "classification") & (part.loss < SOLVED)
    part = part.assign(loss=part.loss.mask(solved, SOLVED))
    ours = part[(part.axis == "method") & (part.scheme == DEFAULT)].set_index(CELL).loss
    theirs = part[(part.axis == axis) & (part.scheme == scheme)].set_index(CELL).loss
    return np.log(theirs / ours).dropna()


def by_table(ratios: pd.Series) -> pd.Series:
    return ratios.groupby("dataset").mean()


def interval(values: np.ndarray, draws: int = 4000) -> tuple[float, float]:
    """95 % bootstrap interval of the mean."""
    rng = np.random.default_rng(0)
    means = rng.choice(values, size=(draws, len(values))).mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def axis_table(schemes: pd.DataFrame, axis: str, task: str) -> pd.DataFrame:
    """For each scheme of an axis: its loss as a multiple of the default's, with interval, and who wins how often."""
    part = schemes[(schemes.axis == axis) & (schemes.task == task)]
    score = schemes.pivot_table(index=CELL, columns=["axis", "scheme"], values="score")
    lines = []
    for scheme in part.scheme.drop_duplicates():
        ratios = log_ratios(schemes, axis, scheme, task)
        tables = by_table(ratios).to_numpy()
        low, high = interval(tables)
        gain = (score[axis, scheme] - score["method", DEFAULT]).loc[ratios.index].groupby("dataset").mean().mean()
        lines.append(
            {
                "scheme": scheme,
                "tables / cells": f"{len(tables)} / {len(ratios)}",
                "loss ratio": np.exp(tables.mean()),
                "95 % interval": f"{np.exp(low):.3f} to {np.exp(high):.3f}",
                "default better": f"{(ratios > 1e-6).sum()} of {len(ratios)}",
                "default worse": f"{(ratios < -1e-6).sum()} of {len(ratios)}",
                "score minus default": gain,
            }
        )
    return pd.DataFrame(lines, columns=AXIS_COLUMNS).sort_values("loss ratio", ignore_index=True)


def unseen_table(schemes: pd.DataFrame, task: str) -> pd.DataFrame:
    """Rivals, and the default with another level 2, on the tables that had no part in choosing level 2."""
    part = schemes[schemes.dataset.isin(UNSEEN)]
    tables = [axis_table(part, axis, task) for axis in ("peer", "reads", "level 2")]
    return pd.concat([table for table in tables if len(table)], ignore_index=True)


def scaling_table(specialists: pd.DataFrame) -> pd.DataFrame:
    """Specialists on the target as it is and on a standardised one: R2 and seconds, means over the cells with both."""
    part = specialists[specialists.task == "regression"].assign(cpu=lambda t: t.folds_seconds + t.refit_seconds)
    score, cpu = (part.pivot_table(index=CELL, columns="specialist", values=name) for name in ("score", "cpu"))
    lines = []
    for plain, scaled in SCALED.items():
        both = score[[plain, scaled]].dropna().index
        better = f"{(score[scaled] > score[plain])[both].sum()} of {len(both)}"
        means = [table.loc[both, name].mean() for table in (score, cpu) for name in (plain, scaled)]
        lines.append((plain, *means, better))
    columns = ["specialist", "R2", "R2, scaled target", "CPU seconds", "CPU seconds, scaled target", "scaled is better"]
    return pd.DataFrame(lines, columns=columns)


def cost_ratio(schemes: pd.DataFrame) -> pd.Series:
    """CPU seconds of the default over those of the paper's library, by cell."""
    seconds = schemes[schemes.axis == "method"].pivot_table(index=CELL, columns="scheme", values="seconds").dropna()
    return seconds[DEFAULT] / seconds[PAPER]


def tables_table(schemes: pd.DataFrame) -> pd.DataFrame:
    ours = schemes[(schemes.axis == "method") & (schemes.scheme == DEFAULT)]
    paper = schemes[(schemes.axis == "method") & (schemes.scheme == PAPER)].groupby("dataset").seed.count()
    grouped = ours.groupby("dataset", sort=False)
    table = grouped[["task", "kind", "rows", "columns", "classes"]].first()
    table["seeds"] = grouped.seed.count()
    table["seeds with the paper's rows"] = paper.reindex(table.index).fillna(0).astype(int)
    return table.reset_index()


def issue_table(schemes: pd.DataFrame) -> pd.DataFrame:
    """Score and loss of each method, mean over the seeds that all have; without the paper where it never ran."""
    whole = schemes[schemes.scheme == PAPER].groupby(CELL).size()
    tables = whole.index.get_level_values("dataset")
    known = schemes.set_index(CELL).index
    schemes = schemes[known.isin(whole.index) | ~schemes.dataset.isin(tables).to_numpy()]
    wanted = [("method", DEFAULT), ("method", PAPER), ("peer", STACKING), ("peer", ORACLE), ("peer", PICKED)]
    columns = {}
    for axis, scheme in wanted:
        part = schemes[(schemes.axis == axis) & (schemes.scheme == scheme)]
        means = part.groupby("dataset", sort=False)[["score", "loss"]].mean()
        columns[scheme] = means.apply(lambda r: f"{r.score:.4f} / {r.loss:.4g}", axis=1)
    return (
        pd.DataFrame(columns).reindex(schemes.dataset.drop_duplicates()).fillna("").rename_axis("dataset").reset_index()
    )


def goals_table(schemes: pd.DataFrame, specialists: pd.DataFrame) -> pd.DataFrame:
    """Each goal, the figure measured, and whether it is reached."""
    oracle, picked = log_ratios(schemes, "peer", ORACLE), log_ratios(schemes, "peer", PICKED)
    stacking = log_ratios(schemes, "peer", STACKING)
    larger = schemes[schemes.rows >= 1_000].dataset.unique()
    behind = np.exp(-by_table(oracle).mean())
    behind_large = np.exp(-by_table(oracle[oracle.index.isin(larger, level=0)]).mean())
    better, best_of = (picked > 0).mean(), (stacking > 0).mean()
    worst, loser, lost = np.exp(-stacking.min()), stacking.idxmin()[0], (stacking < -np.log(1.02)).sum()
    tables, families = by_table(stacking), family_gaps(schemes, specialists)
    cost = cost_ratio(schemes)
    rows = [
        ("loss against the oracle specialist, geometric mean <= 1.01", f"{behind:.3f}", behind <= 1.01),
        ("the same on tables of 1,000 training rows and more", f"{behind_large:.3f}", behind_large <= 1.01),
        (
            "better than the cross-validated pick on >= 80 % of cells",
            f"{better:.0%}; at most 1 % worse on {(picked > -0.01).mean():.0%}",
            better >= 0.8,
        ),
        (
            "better than scikit-learn's stacking on >= 75 % of cells",
            f"{best_of:.0%}; mean over splits better on {(tables > 0).sum()} of {len(tables)} tables",
            best_of >= 0.75,
        ),
        (
            "never worse than scikit-learn's stacking by > 2 %",
            f"worse on {lost} of {len(stacking)} cells, at worst {worst:.2f} times ({loser}); "
            f"mean over splits on {(tables < -np.log(1.02)).sum()} tables, at worst {np.exp(-tables.min()):.2f} times",
            worst <= 1.02,
        ),
        (
            "generated families: score never > .005 below the best member, means over seeds",
            "not run" if families.empty else f"worst {families.min():+.4f} ({families.idxmin()})",
            bool(len(families)) and families.min() >= -0.005,
        ),
        (
            "seconds <= 1.5 times the paper's library",
            f"mean {cost.mean():.2f}, most {cost.max():.2f}",
            cost.max() <= 1.5,
        ),
    ]
    table = pd.DataFrame(rows, columns=["goal", "measured", "reached"])
    return table.assign(reached=table.reached.map({True: "yes", False: "no"}))


def family_gaps(schemes: pd.DataFrame, specialists: pd.DataFrame) -> pd.Series:
    """Score of the default minus that of its best member, both as means over all splits, for the paper's families."""
    ours = schemes[(schemes.kind == "family") & (schemes.axis == "method") & (schemes.scheme == DEFAULT)]
    ours = ours[ours.groupby("dataset").seed.transform("count") >= min(FOLDS, schemes.seed.nunique())]
    rows = schemes[schemes.axis == "row"]  # the default's rows then, whatever they are today
    members = set(zip(rows.task, rows.scheme)) or {
        (t, f"without {name}") for t in TASKS for name in named("default", t).names
    }
    own = [(row.task, f"without {row.specialist}") in members for row in specialists.itertuples()]
    best = specialists[own].groupby(["dataset", "specialist"]).score.mean().groupby("dataset").max()
    return (ours.groupby("dataset").score.mean() - best).dropna()


def optimism_table(schemes: pd.DataFrame) -> pd.DataFrame:
    """Held-out risk (`cv_risk_`), optimised objective and test risk of the default, mean over cells of a size."""
    part = schemes[(schemes.axis == "method") & (schemes.scheme == DEFAULT)].copy()
    part["size"] = np.where(part.rows < 1_000, "below 1,000 training rows", "1,000 and more")
    for name in ("cv_optimised", "cv_risk"):
        part[name] = np.log(part[name].clip(lower=1e-6) / part.test_risk.clip(lower=1e-6))
    means = np.exp(part.groupby(["task", "size"])[["cv_optimised", "cv_risk"]].mean())
    means["cells"] = part.groupby(["task", "size"]).seed.count()
    names = {"cv_optimised": "optimised objective / test risk", "cv_risk": "cv_risk_ / test risk"}
    return means.rename(columns=names).reset_index()


def seconds_table(specialists: pd.DataFrame, schemes: pd.DataFrame, task: str) -> pd.DataFrame:
    """Each row of level 1: its share of the seconds of all rows, and the loss ratio of taking it away or adding it."""
    part = specialists[specialists.task == task].copy()
    part["cpu"] = part.folds_seconds + part.refit_seconds
    whole = part.groupby(CELL).specialist.transform("count")
    part = part[whole == whole.max()] if len(part) else part
    part["share"] = part.cpu / part.groupby(CELL).cpu.transform("sum")
    table = part.groupby("specialist").agg(share=("share", "mean")).reset_index()
    effects = axis_table(schemes, "row", task).set_index("scheme")
    for name in ("without", "with"):
        table[name] = [effects["loss ratio"].get(f"{name} {row}", np.nan) for row in table.specialist]
    columns = {"share": "share of seconds", "without": "loss ratio without it", "with": "loss ratio with it added"}
    return table.sort_values("share", ignore_index=True).rename(columns=columns)


# -- the page ---------------------------------------------------------------------------------------------------------


def markdown(table: pd.DataFrame) -> str:
    def cell(value: object) -> str:
        if isinstance(value, float):
            return "" if np.isnan(value) else f"{value:.4g}" if abs(value) >= 10 else f"{value:.3f}"
        return str(value)

    lines = ["| " + " | ".join(map(str, table.columns)) + " |", "|" + "---|" * len(table.columns)]
    lines += ["| " + " | ".join(cell(v) for v in row) + " |" for row in table.itertuples(index=False)]
    return "\n".join(lines)


def blocks(schemes: pd.DataFrame, specialists: pd.DataFrame) -> dict[str, Callable[[], pd.DataFrame]]:
    """The tables of the page by name; each is worked out when the page asks for it."""
    C, R = "classification", "regression"
    table: dict[str, Callable[[], pd.DataFrame]] = {
        "goals": lambda: goals_table(schemes, specialists),
        "methods": lambda: issue_table(schemes),
        "tables": lambda: tables_table(schemes),
        "optimism": lambda: optimism_table(schemes),
        "scaling": lambda: scaling_table(specialists),
        "unseen classification": lambda: unseen_table(schemes, C),
        "unseen regression": lambda: unseen_table(schemes, R),
        "rows classification": lambda: seconds_table(specialists, schemes, C),
        "rows regression": lambda: seconds_table(specialists, schemes, R),
    }
    for axis in (
        "method",
        "peer",
        "library",
        "calibrate",
        "level 2",
        "reads",
        "loss",
        "rule",
        "guard",
        "refit",
        "folds",
    ):
        for task in (C, R):
            table[f"{axis} {task}"] = partial(axis_table, schemes, axis, task)
    return table


def fill(page: str, tables: dict[str, Callable[[], pd.DataFrame]]) -> str:
    """The page with each `<!-- table: name -->` ... `<!-- end -->` replaced by the table of that name."""

    def fresh(found: re.Match[str]) -> str:
        return f"<!-- table: {found[1]} -->\n{markdown(tables[found[1]]())}\n<!-- end -->"

    return re.sub(r"<!-- table: (.*?) -->.*?<!-- end -->", fresh, page, flags=re.DOTALL)


def draw(schemes: pd.DataFrame, specialists: pd.DataFrame, folder: Path) -> None:
    """Two figures: methods against the default by table, and what each row costs and gives."""
    folder.mkdir(parents=True, exist_ok=True)
    save_svg(partial(methods_figure, schemes), folder / "study_methods.svg")
    save_svg(partial(rows_figure, schemes, specialists), folder / "study_rows.svg")


def methods_figure(schemes: pd.DataFrame) -> Figure:
    """Loss of other methods as a multiple of the default's: means of tables, lines from the least split to the most."""
    names = list(schemes.dataset.drop_duplicates())
    figure, axes = blank(NARROW, 0.25 * len(names) + 1)
    rivals = (
        ("Soft Learning (paper)", "method", PAPER, "s", ORANGE),
        ("scikit-learn stacking", "peer", STACKING, "o", GREEN),
        ("oracle specialist", "peer", ORACLE, "^", BLACK),
    )
    for k, (label, axis, scheme, marker, colour) in enumerate(rivals):
        found = log_ratios(schemes, axis, scheme).groupby("dataset").agg(["mean", "min", "max"])
        ratio = np.exp(found).clip(0.1, 10)
        reach = [ratio["mean"] - ratio["min"], ratio["max"] - ratio["mean"]]
        y = [names.index(name) + 0.26 * (k - 1) for name in ratio.index]
        axes.errorbar(
            ratio["mean"], y, xerr=reach, fmt=marker, color=colour, markersize=3.2, elinewidth=0.5, label=label
        )
    axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names], fontsize=7)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.axvline(1, color=BLACK, linewidth=0.8)
    axes.set(
        xscale="log", xlabel="loss as a multiple of the default's \n(above 1: the default is better; cut at .1 and 10)"
    )
    figure.legend(loc="outside upper left", frameon=False, ncols=3, fontsize=7)
    return figure


def rows_figure(schemes: pd.DataFrame, specialists: pd.DataFrame) -> Figure:
    """Loss without each row of level 1, with 95 % intervals over tables; in brackets its share of the seconds."""
    tables = {task: seconds_table(specialists, schemes, task).dropna(subset="loss ratio without it") for task in TASKS}
    figure, panels = blank(NARROW, 0.2 * sum(map(len, tables.values())) + 1.6, rows=len(tables))
    for panel, (task, table) in zip(np.atleast_1d(panels), tables.items()):
        table = table.sort_values("loss ratio without it", ascending=False)
        for i, name in enumerate(table.specialist):
            values = by_table(log_ratios(schemes, "row", f"without {name}", task)).to_numpy()
            low, high = np.exp(interval(values))
            panel.plot([low, high], [i, i], color=BLUE, linewidth=0.8)
            panel.plot(np.exp(values.mean()), i, "o", color=BLUE, markersize=3.5)
        shares = zip(table.specialist, table["share of seconds"])
        panel.set_yticks(range(len(table)), [f"{name} ({share:.1%})" for name, share in shares], fontsize=7)
        panel.invert_yaxis()
        panel.axvline(1, color=BLACK, linewidth=0.8)
        panel.set(title=task, xlabel="loss without the row, as a multiple of the default's")
    return figure
