"""The page of the suite of real tables: every pair of systems, won and lost alike, from `real.csv` alone."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from softlearning_bench.effects import FLOOR, effects
from softlearning_bench.real import FILE, KEY, read_real
from softlearning_bench.real_figure import draw

OURS = "softlearning"
COSTS = {"fit_seconds": "fit s", "predict_seconds": "predict s", "peak_memory": "memory MB", "model_size": "model MB"}


def report_real(folder: Path) -> Path:
    """Write `real.md`, `real_pairs.csv`, `real_effects.csv`, `real_tables.csv` and `real.svg`; the page's path."""
    cells = read_real(folder / FILE)
    if cells.empty:
        raise ValueError(f"{folder / FILE} has no results yet")
    means, pairs, found = table_means(cells), all_pairs(cells), effects(cells, OURS)
    means.round(6).to_csv(folder / "real_tables.csv", index=False, lineterminator="\n")
    pairs.round(6).to_csv(folder / "real_pairs.csv", index=False, lineterminator="\n")
    found.round(9).to_csv(folder / "real_effects.csv", index=False, lineterminator="\n")
    drawn = draw(cells, OURS, rivals(cells, OURS), folder / "real.svg")
    page = folder / "real.md"
    parts = head(cells, pairs), protocol_tests(found), figure_lines(drawn), losses(cells), all_tables(means)
    page.write_text("\n".join(line for lines in parts for line in lines) + "\n")
    return page


# -- numbers -----------------------------------------------------------------------------------------------------------


def good(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that have a result."""
    return cells[cells["failure"].fillna("") == ""]


def failures(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that have none."""
    return cells[cells["failure"].fillna("") != ""]


def table_means(cells: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds of each table and method, with how many seeds and failures there were."""
    by = ["part", "table", "task", "method"]
    numbers = ["score", "auc", "loss", *COSTS]
    failed = cells.assign(failures=cells["failure"].fillna("") != "", seeds=1)
    counts = failed.groupby(by, sort=False)[["seeds", "failures"]].sum()
    return counts.join(good(cells).groupby(by, sort=False)[numbers].mean()).reset_index()


def compared(cells: pd.DataFrame, ours: str, theirs: str) -> pd.DataFrame:
    """One line per table: means over the seeds that both finished, their ratios and differences."""
    both, failed = good(cells), failures(cells).groupby(["table", "method"]).size()
    of = lambda name: both[both["method"] == name].set_index([*KEY[:2], "part", "task"])[["loss", "score", *COSTS]]
    joined = of(ours).add_suffix("_a").join(of(theirs).add_suffix("_b"), how="inner")
    out = joined.groupby(["table", "part", "task"], sort=False).mean().reset_index()
    for name, side in ((ours, "a"), (theirs, "b")):
        out[f"failures_{side}"] = [int(failed.get((table, name), 0)) for table in out["table"]]
    floor = np.where(out["task"] == "regression", np.finfo(float).tiny, FLOOR)
    out["loss_ratio"] = np.maximum(out["loss_a"], floor) / np.maximum(out["loss_b"], floor)
    return out


def pair(cells: pd.DataFrame, ours: str, theirs: str) -> dict[str, object]:
    """What one system has against another, over the tables that both finished."""
    lines = compared(cells, ours, theirs)
    worst, logs = lines.loc[lines["loss_ratio"].idxmax()], np.log(lines["loss_ratio"])
    far = logs.abs().idxmax()
    return {
        "system": ours,
        "against": theirs,
        "tables": len(lines),
        "lower_loss": int((lines["loss_ratio"] < 1).sum()),
        "better_score": int((lines["score_a"] > lines["score_b"]).sum()),
        "tied_score": int((lines["score_a"] == lines["score_b"]).sum()),
        "mean_ratio": float(np.exp(logs.mean())),
        "farthest_table": lines["table"][far],
        "ratio_without": float(np.exp(logs.drop(far).mean())),
        "worst_ratio": worst["loss_ratio"],
        "worst_table": worst["table"],
        "seconds": lines["fit_seconds_a"].median(),
        "their_seconds": lines["fit_seconds_b"].median(),
        "predict_seconds": lines["predict_seconds_a"].median(),
        "their_predict_seconds": lines["predict_seconds_b"].median(),
        "memory": lines["peak_memory_a"].median(),
        "their_memory": lines["peak_memory_b"].median(),
        "size": lines["model_size_a"].median(),
        "their_size": lines["model_size_b"].median(),
        "failures": int((failures(cells)["method"] == ours).sum()),
        "their_failures": int((failures(cells)["method"] == theirs).sum()),
    }


def all_pairs(cells: pd.DataFrame) -> pd.DataFrame:
    """Every pair of systems, by part, ours first."""
    lines = []
    for part, here in cells.groupby("part"):
        names = sorted(here["method"].unique(), key=lambda name: (not name.startswith(OURS), name))
        for ours, theirs in combinations(names, 2):
            if len(compared(here, ours, theirs)):
                lines.append({"part": part} | pair(here, ours, theirs))
    return pd.DataFrame(lines)


# -- the page ----------------------------------------------------------------------------------------------------------


def head(cells: pd.DataFrame, pairs: pd.DataFrame) -> list[str]:
    counts = cells.groupby("part")["table"].nunique()
    tables = ", ".join(f"{count} tables of part {part}" for part, count in counts.items())
    seeds = ", ".join(map(str, sorted(cells["seed"].unique())))
    text = [
        f"# Real tables: {' and '.join(counts.index)}, seeds {seeds}",
        "",
        f"{tables}; seeds {seeds}. Loss is log loss or RMSE, score is"
        " accuracy or R2; a ratio below 1 is in favour of the system named first. Means over the seeds that both"
        f" systems finished; log losses below {FLOOR:g} count as {FLOOR:g}.",
        "",
        "Without: the mean ratio without the one table that lies farthest from 1. Costs are medians over tables, of the"
        " one / of the other.",
        "",
        "| part | system | against | lower loss | better score | mean loss ratio | without | worst ratio"
        " | fit s | predict s | memory MB | model MB | failures |",
        "|" + " --- |" * 13,
    ]
    for p in pairs.itertuples():
        ties = f" ({p.tied_score} tie{'s' * (p.tied_score > 1)})" if p.tied_score else ""
        text.append(
            f"| {p.part} | {p.system} | {p.against} | {p.lower_loss} of {p.tables}"
            f" | {p.better_score} of {p.tables}{ties} | {p.mean_ratio:.3f} | {p.ratio_without:.3f} {p.farthest_table}"
            f" | {p.worst_ratio:.3f} {p.worst_table} "
            f"| {p.seconds:.1f} / {p.their_seconds:.1f} | {p.predict_seconds:.3f} / {p.their_predict_seconds:.3f}"
            f" | {p.memory:.0f} / {p.their_memory:.0f} | {p.size:.1f} / {p.their_size:.1f}"
            f" | {p.failures} / {p.their_failures} |"
        )
    versions = good(cells).groupby("method", sort=False)["version"].agg(lambda names: ", ".join(sorted(set(names))))
    settings = cells["settings"].unique()
    text += ["", "Versions: " + "; ".join(f"{m}: {v}" for m, v in versions.items()) + ".", ""]
    return [*text, "Settings: " + ", ".join(f"`{words}`" for words in settings) + ".", ""]


TESTED = """## Tested

Mixed model with table as random effect and the variance of splits that share rows (`effects.py`); Holm over the rivals
of one part and metric, level .05; Wilcoxon's signed ranks of the tables' means as a check that few far tables decide
nothing. A loss is a geometric mean of ratios, ours to theirs (below 1 is in our favour), the others are ours minus
theirs, with 95 % intervals. Within 1 % of the loss, or .001 of a score, a table is a tie.

| part | metric | against | tables, splits | effect | a new table | p, Holm, Wilcoxon | won, tied, lost | verdict |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def protocol_tests(found: pd.DataFrame) -> list[str]:
    """The statistics of the protocol, losses first; ratios below 1 and differences above 0 are in favour of ours."""
    lines = []
    for e in found.itertuples():
        mean, own, new = shown(e.metric, e.mean), shown(e.metric, e.low, e.high), shown(e.metric, e.new_low, e.new_high)
        lines.append(
            f"| {e.part} | {e.metric} | {e.against} | {e.tables}, {e.splits} | {mean} ({own}) | {new}"
            f" | {e.p:.2g}, {e.p_holm:.2g}, {e.p_wilcoxon:.2g} | {e.wins}, {e.ties}, {e.losses} | {e.verdict} |"
        )
    return [TESTED, *lines, ""] if lines else []


def shown(metric: str, *values: float) -> str:
    """Log ratios as ratios of losses, differences as they are; two are an interval."""
    if metric == "loss":
        return " to ".join(f"{ratio:.3f}" for ratio in sorted(np.exp(-np.asarray(values))))
    return " to ".join(f"{value:+.4f}" for value in values)


def losses(cells: pd.DataFrame) -> list[str]:
    """For each of our libraries and each rival the tables that were lost, worst first; those of the default not lost.

    Then every failure, and what could not be saved.
    """
    text: list[str] = []
    for ours in sorted({name for name in cells["method"] if name.startswith(OURS)}):
        for rival in rivals(cells, ours):
            lines = compared(cells, ours, rival).sort_values("loss_ratio", ascending=False)
            lost = lines["loss_ratio"] > 1
            for words, here in (("lost", lines[lost]), ("not lost", lines[~lost])):
                if words == "lost" or ours == OURS:
                    text += ["", f"## {ours} against {rival}: {len(here)} of {len(lines)} tables {words}", ""]
                    text += table_of(*beside(here))
    failed = failures(cells)
    text += ["", f"## Failures: {len(failed)} of {len(cells)} cells", ""]
    text += [f"- {c.table}, seed {c.seed}, {c.method}: {c.failure}" for c in failed.itertuples()]
    return text + unsaved(cells)


def beside(lines: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Both systems in each cell, the first named first."""
    names = {"loss": "loss", "score": "score", **COSTS, "failures": "failures"}
    short = lambda value: "-" if value != value else f"{value:.4g}"
    both = {words: [f"{short(a)} / {short(b)}" for a, b in zip(lines[f"{name}_a"], lines[f"{name}_b"])]
            for name, words in names.items()}  # fmt: skip
    return lines.rename(columns={"loss_ratio": "ratio"}).assign(**both), (
        *("table", "part", "task", "ratio"),
        *names.values(),
    )


def unsaved(cells: pd.DataFrame) -> list[str]:
    """The models that have no size, by system: saving failed, or their system does not tell."""
    here = good(cells)
    without = here[here["model_size"].isna()].groupby("method")["table"]
    lines = [f"- {name}: {len(tables)} of {(here['method'] == name).sum()} ({', '.join(tables.unique())})"
             for name, tables in without]  # fmt: skip
    return ["", "## Models without a size: not saved, or not told", "", *(lines or ["None."])]


def all_tables(means: pd.DataFrame) -> list[str]:
    columns = ("part", "table", "method", "seeds", "failures", "loss", "score", "auc", *COSTS.values())
    text = ["", "## Every table", "", "Means over seeds, best loss first; `real.csv` has every seed.", ""]
    return text + table_of(means.rename(columns=COSTS).sort_values(["part", "table", "loss"]), columns)


def table_of(frame: pd.DataFrame, columns: tuple[str, ...]) -> list[str]:
    """A frame as lines of markdown."""
    if frame.empty:
        return ["None."]
    shown = lambda value: ("" if value != value else f"{value:.4g}") if isinstance(value, float) else str(value)
    lines = (" | ".join(map(shown, line)) for line in frame[list(columns)].itertuples(index=False, name=None))
    return [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns), *(f"| {line} |" for line in lines)]


def rivals(cells: pd.DataFrame, ours: str) -> list[str]:
    """The systems to set beside one of ours; the default is set beside our other libraries, not they beside it."""
    names = [name for name in good(cells)["method"].unique() if name != ours]
    names = [name for name in names if ours == OURS or not name.startswith(OURS)]
    return [name for name in names if len(compared(cells, ours, name))]


def figure_lines(drawn: bool) -> list[str]:
    caption = "Every table against every rival: ratio of losses, difference of scores; lines reach over the splits"
    return (
        [f"![{caption}](real.svg)", "", f"*{caption}; grey rows are means over tables with 95 % intervals.*"]
        if drawn
        else []
    )
