"""Our tables beside TabArena's published results: `python -m softlearning_bench.tabarena FOLDER PUBLISHED`.

FOLDER has a `real.csv`, PUBLISHED is a csv of dataset, method, metric_error (first split of each dataset); `--data` is
the folder of real tables, whose index names TabArena's dataset where a table is one of its own. Writes `tabarena.csv`,
`tabarena.md` and `tabarena.svg` into FOLDER.

What it can say: where softlearning stands, in the error that TabArena counts (1 - AUC, log loss, RMSE), between one
default CatBoost, tuned and ensembled LightGBM and four hours of AutoGluon. What it cannot: the splits are others (70/30
here, two thirds there), training rows are capped here, some tables are samples or other copies, and one split moves
an error by about 5 %. So each system is set against the CatBoost of its *own* run, and only means over tables are read.
TabArena bags every method over eight folds; CatBoost here is a single one, which is kinder to softlearning.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from softlearning_bench.drawing import BLACK, BLUE, GREY, NARROW, ORANGE, blank, save_svg
from softlearning_bench.effects import FLOOR, mixed_effect
from softlearning_bench.real import FILE, data_folder, read_real

OURS, ANCHOR = "softlearning", "catboost"
THEIR_ANCHOR = "CAT (default)"
SHOWN = ("GBM (tuned + ensemble)", "AutoGluon 1.4 (best, 4h)")
NOTE = " ".join((__doc__ or "").partition("What it can say")[1:]).replace("\n", " ").replace("say :", "say:").strip()


def errors(cells: pd.DataFrame) -> pd.DataFrame:
    """Tables by method: our error as TabArena counts it, a mean over the seeds that the method finished."""
    good = cells[cells["failure"].fillna("") == ""]
    error = np.where(good["task"] == "binary", 1 - good["auc"], good["loss"].clip(lower=FLOOR))
    return good.assign(error=error).pivot_table(index="table", columns="method", values="error")


def beside(cells: pd.DataFrame, names: pd.Series, published: pd.DataFrame) -> pd.DataFrame:
    """One line per shared table: errors here and there, and each as a ratio to the CatBoost of its own run.

    `names` has TabArena's dataset by table.
    """
    ours = errors(cells)
    shared = ours.dropna(subset=[OURS, ANCHOR]).index.intersection(names.dropna().index)
    theirs = published.pivot_table(index="dataset", columns="method", values="metric_error")
    theirs = theirs.reindex(names[shared])[[THEIR_ANCHOR, *SHOWN]].set_axis(shared)
    about = cells.drop_duplicates("table").set_index("table").loc[shared, ["part", "task", "rows"]]
    lines = about.assign(dataset=names[shared], **{f"{name} here": ours.loc[shared, name] for name in (OURS, ANCHOR)})
    lines[OURS] = lines[f"{OURS} here"] / lines[f"{ANCHOR} here"]
    lines["catboost, here against there"] = lines[f"{ANCHOR} here"] / theirs[THEIR_ANCHOR]
    return lines.join(theirs[list(SHOWN)].div(theirs[THEIR_ANCHOR], axis=0)).dropna(subset=list(SHOWN)).reset_index()


def means(lines: pd.DataFrame) -> pd.DataFrame:
    """Geometric mean of each system's ratio over the tables, with its 95 % interval; tables below 1."""
    out = []
    for name in (OURS, *SHOWN):
        found = mixed_effect(np.log(lines[name]), np.full(len(lines), np.nan))
        mean, low, high = np.exp([found.mean, found.low, found.high])
        out.append((name, len(lines), mean, low, high, int((lines[name] < 1).sum())))
    return pd.DataFrame(out, columns=["system", "tables", "mean", "low", "high", "below 1"])


def draw(lines: pd.DataFrame) -> Figure:
    """One row per table, ratios to CatBoost on a logarithmic scale; means with intervals on top."""
    order = lines.sort_values(OURS, ignore_index=True)
    figure, axes = blank(NARROW, 0.19 * len(order) + 1.6)
    styles = {OURS: ("o", BLUE), SHOWN[0]: ("^", ORANGE), SHOWN[1]: ("s", GREY)}
    summary = means(lines).set_index("system")
    for k, (name, (marker, colour)) in enumerate(styles.items()):
        axes.scatter(order[name], np.arange(len(order)), marker=marker, s=18, color=colour, label=name, zorder=3)
        mean, low, high = summary.loc[name, ["mean", "low", "high"]]
        reach = [[mean - low], [high - mean]]
        axes.errorbar(mean, -1.5 - k, xerr=reach, fmt=marker, color=colour, capsize=3, markersize=5)
    axes.axvline(1, color=BLACK, linewidth=0.8)
    axes.axhline(-0.75, color=GREY, linewidth=0.5)
    axes.set_yticks([*range(len(order)), -2.5], [*order["table"].str.replace("_", " "), "means, 95 %"])
    axes.set_xscale("log")
    axes.set_xticks([0.5, 0.7, 1, 1.4], ["0.5", "0.7", "1", "1.4"], minor=False)
    axes.xaxis.minorticks_off()
    axes.set_xlabel("error as a multiple of CatBoost's in the same run (below 1: better)")
    figure.legend(loc="outside upper left", frameon=False, ncols=3, fontsize=7)
    return figure


def page(lines: pd.DataFrame) -> str:
    """The comparison in words and numbers."""
    gap = lines["catboost, here against there"]
    text = [
        "# Beside TabArena's published results",
        "",
        NOTE,
        "",
        f"CatBoost's own error here is {np.exp(np.log(gap).median()):.2f} times that of TabArena's (median;"
        f" {gap.min():.2f} to {gap.max():.2f}): that much other splits, caps, copies and bagging change alone.",
        "",
        "| system | tables | error / CatBoost's, geometric mean | 95 % interval | below 1 |",
        "| --- | --- | --- | --- | --- |",
    ]
    for m in means(lines).to_dict("records"):
        where = "here" if m["system"] == OURS else "there"
        text.append(f"| {m['system']} ({where}) | {m['tables']} | {m['mean']:.3f} | {m['low']:.3f} to {m['high']:.3f}"
                    f" | {m['below 1']} |")  # fmt: skip
    lost = lines[lines[OURS] > 1].sort_values(OURS, ascending=False)
    listed = ", ".join(f"{line.table} {getattr(line, OURS):.3f}" for line in lost.itertuples())
    return "\n".join([*text, "", "![Errors relative to CatBoost](tabarena.svg)", "",
                      f"softlearning has the larger error on {len(lost)}: {listed or 'none'}.", ""])  # fmt: skip


def main(folder: Path, published: Path, data: Path | None = None) -> pd.DataFrame:
    """Write the three files and return the lines."""
    index = pd.read_csv(data_folder(data) / "index.csv").set_index("name")["tabarena"]
    lines = beside(read_real(folder / FILE), index, pd.read_csv(published))
    if len(lines) < 2:
        raise SystemExit("fewer than two tables of TabArena have a result of softlearning and of catboost")
    lines.round(6).to_csv(folder / "tabarena.csv", index=False, lineterminator="\n")
    save_svg(lambda: draw(lines), folder / "tabarena.svg")
    (folder / "tabarena.md").write_text(page(lines), encoding="utf-8")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("published", type=Path)
    parser.add_argument("--data", type=Path)
    chosen = parser.parse_args()
    main(chosen.folder, chosen.published, chosen.data)
    print((chosen.folder / "tabarena.md").read_text(encoding="utf-8"))
