"""The page of the suite of real tables: every pair of systems, won and lost alike, from `real.csv` alone."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from softlearning_bench.drawing import BLACK, BLUE, GREY, NARROW, blank, save_svg
from softlearning_bench.effects import FLOOR, effects
from softlearning_bench.real import FILE, KEY, read_real

OURS = "softlearning"


def report_real(folder: Path) -> Path:
    """Write `real.md`, `real_pairs.csv`, `real_effects.csv`, `real_tables.csv` and `real.svg`; the page's path."""
    cells = read_real(folder / FILE)
    if cells.empty:
        raise ValueError(f"{folder / FILE} has no results yet")
    means, pairs, found = table_means(cells), all_pairs(cells), effects(cells, OURS)
    means.round(6).to_csv(folder / "real_tables.csv", index=False, lineterminator="\n")
    pairs.round(6).to_csv(folder / "real_pairs.csv", index=False, lineterminator="\n")
    found.round(9).to_csv(folder / "real_effects.csv", index=False, lineterminator="\n")
    drawn = draw(cells, folder / "real.svg")
    page = folder / "real.md"
    parts = head(cells, pairs), protocol_tests(found), figure_lines(drawn), losses(cells), all_tables(means)
    page.write_text("\n".join(line for lines in parts for line in lines) + "\n")
    return page


# -- numbers -----------------------------------------------------------------------------------------------------------


def good(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that have a result."""
    return cells[cells["failure"].fillna("") == ""]


def table_means(cells: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds of each table and method, with how many seeds and failures there were."""
    by = ["part", "table", "task", "method"]
    numbers = ["score", "auc", "loss", "fit_seconds", "predict_seconds", "peak_memory", "model_size"]
    failed = cells.assign(failures=cells["failure"].fillna("") != "", seeds=1)
    counts = failed.groupby(by, sort=False)[["seeds", "failures"]].sum()
    return counts.join(good(cells).groupby(by, sort=False)[numbers].mean()).reset_index()


def compared(cells: pd.DataFrame, ours: str, theirs: str) -> pd.DataFrame:
    """One line per table: means over the seeds that both finished, their ratios and differences."""
    both = good(cells)
    numbers = ["loss", "score", "fit_seconds", "predict_seconds"]
    of = lambda name: both[both["method"] == name].set_index([*KEY[:2], "part", "task"])[numbers]
    joined = of(ours).add_suffix("_a").join(of(theirs).add_suffix("_b"), how="inner")
    out = joined.groupby(["table", "part", "task"], sort=False).mean().reset_index()
    floor = np.where(out["task"] == "regression", np.finfo(float).tiny, FLOOR)
    out["loss_ratio"] = np.maximum(out["loss_a"], floor) / np.maximum(out["loss_b"], floor)
    out["seconds_ratio"] = out["fit_seconds_a"] / out["fit_seconds_b"].clip(lower=1e-3)
    return out


def pair(cells: pd.DataFrame, ours: str, theirs: str) -> dict[str, object]:
    """What one system has against another, over the tables that both finished."""
    lines = compared(cells, ours, theirs)
    worst = lines.loc[lines["loss_ratio"].idxmax()]
    return {
        "system": ours,
        "against": theirs,
        "tables": len(lines),
        "lower_loss": int((lines["loss_ratio"] < 1).sum()),
        "better_score": int((lines["score_a"] > lines["score_b"]).sum()),
        "tied_score": int((lines["score_a"] == lines["score_b"]).sum()),
        "mean_ratio": float(np.exp(np.log(lines["loss_ratio"]).mean())),
        "worst_ratio": worst["loss_ratio"],
        "worst_table": worst["table"],
        "seconds": lines["fit_seconds_a"].median(),
        "their_seconds": lines["fit_seconds_b"].median(),
        "predict_seconds": lines["predict_seconds_a"].median(),
        "their_predict_seconds": lines["predict_seconds_b"].median(),
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
    text = [
        "# Real tables",
        "",
        f"{tables}; seeds {', '.join(map(str, sorted(cells['seed'].unique())))}. Loss is log loss or RMSE, score is"
        " accuracy or R2; a ratio below 1 is in favour of the system named first. Means over the seeds that both"
        f" systems finished; log losses below {FLOOR:g} count as {FLOOR:g}.",
        "",
        "| part | system | against | lower loss | better score | mean loss ratio | worst ratio | fit s | predict s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for p in pairs.itertuples():
        ties = f" ({p.tied_score} ties)" if p.tied_score else ""
        text.append(
            f"| {p.part} | {p.system} | {p.against} | {p.lower_loss} of {p.tables}"
            f" | {p.better_score} of {p.tables}{ties} | {p.mean_ratio:.3f} | {p.worst_ratio:.3f} {p.worst_table} "
            f"| {p.seconds:.1f} against {p.their_seconds:.1f}"
            f" | {p.predict_seconds:.2f} against {p.their_predict_seconds:.2f} |"
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
    """Against each rival every table, worst ratio first, lost ones and won ones alike; and every failure."""
    text: list[str] = []
    for rival in rivals(cells):
        lines = compared(cells, OURS, rival).sort_values("loss_ratio", ascending=False)
        names = {"loss_a": f"loss, {OURS}", "loss_b": f"loss, {rival}", "loss_ratio": "ratio"}
        names |= {"score_a": f"score, {OURS}", "score_b": f"score, {rival}"}
        names |= {"fit_seconds_a": f"fit s, {OURS}", "fit_seconds_b": f"fit s, {rival}"}
        for words, here in (("lost", lines[lines["loss_ratio"] > 1]), ("not lost", lines[lines["loss_ratio"] <= 1])):
            text += ["", f"## {OURS} against {rival}: {len(here)} of {len(lines)} tables {words}", ""]
            text += table_of(here.rename(columns=names), ("table", "part", "task", *names.values()))
    failed = cells[cells["failure"].fillna("") != ""]
    text += ["", f"## Failures: {len(failed)} of {len(cells)} cells", ""]
    return text + [f"- {c.table}, seed {c.seed}, {c.method}: {c.failure}" for c in failed.itertuples()]


def all_tables(means: pd.DataFrame) -> list[str]:
    costs = ("fit_seconds", "predict_seconds", "peak_memory", "model_size")
    columns = ("part", "table", "method", "seeds", "failures", "loss", "score", "auc", *costs)
    note = "Means over seeds, best loss first; memory and size in MB; `real.csv` has every seed."
    text = ["", "## Every table", "", note, ""]
    return text + table_of(means.sort_values(["part", "table", "loss"]), columns)


def table_of(frame: pd.DataFrame, columns: tuple[str, ...]) -> list[str]:
    """A frame as lines of markdown."""
    if frame.empty:
        return ["None."]
    shown = lambda value: ("" if value != value else f"{value:.4g}") if isinstance(value, float) else str(value)
    lines = (" | ".join(map(shown, line)) for line in frame[list(columns)].itertuples(index=False, name=None))
    return [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns), *(f"| {line} |" for line in lines)]


def rivals(cells: pd.DataFrame) -> list[str]:
    """The systems to set beside ours; none when ours has no result."""
    names = list(good(cells)["method"].unique())
    return [name for name in names if OURS in names and name != OURS and len(compared(cells, OURS, name))]


def figure_lines(drawn: bool) -> list[str]:
    return ["![Loss ratio against seconds ratio, one point per table](real.svg)"] if drawn else []


def draw(cells: pd.DataFrame, path: Path) -> bool:
    """Loss ratio against seconds ratio, one panel per rival, one point per table; False when there is no rival."""
    names = rivals(cells)
    if names:
        save_svg(lambda: ratios(cells, names), path)
    return bool(names)


def ratios(cells: pd.DataFrame, names: list[str]) -> Figure:
    """The panels; the band is the 95 % interval of the geometric mean ratio on the tables of a part."""
    found = effects(cells, OURS)
    figure, panels = blank(NARROW, 2.6 * len(names) + 0.4, rows=len(names))
    for panel, rival in zip(np.atleast_1d(panels), names):
        lines = compared(cells, OURS, rival)
        for part, marker, colour in (("choose", "o", GREY), ("confirm", "^", BLUE)):
            here = lines[lines["part"] == part]
            if here.empty:
                continue
            panel.scatter(here["seconds_ratio"], here["loss_ratio"], marker=marker, s=16, color=colour, label=part)
            wanted = (found["part"] == part) & (found["metric"] == "loss") & (found["against"] == rival)
            for e in found[wanted].itertuples():
                panel.axhspan(np.exp(-e.high), np.exp(-e.low), color=colour, alpha=0.18, linewidth=0)
        far = lines.loc[[lines["loss_ratio"].idxmax(), lines["loss_ratio"].idxmin()]].drop_duplicates("table")
        for line in far.itertuples():
            at = line.seconds_ratio, line.loss_ratio
            panel.annotate(line.table, at, (4, 4), textcoords="offset points", fontsize=7)
        panel.set(xscale="log", yscale="log", title=f"{OURS} against {rival}")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        panel.axhline(1, color=BLACK, linewidth=0.8)
        panel.set_ylabel("loss ratio (below 1: ours is lower)")
        panel.margins(0.12)
        panel.legend(frameon=False, title="tables (band: mean, 95 %)", fontsize=7, title_fontsize=7)
    panel.set_xlabel("ratio of fit seconds")
    return figure
