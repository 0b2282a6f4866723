"""One page of a run: what was run, goals, ranks, changes, seconds, figures and the ledger of claims.

The page is a list of Sections made from the table of results alone; `report.html` and `report.md` render that list.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from jinja2 import Environment

from softlearning_bench.claims import goals, ledger
from softlearning_bench.datasets import DATASETS
from softlearning_bench.figures import FIGURES, draw_all
from softlearning_bench.results import read
from softlearning_bench.shared import FOLDS
from softlearning_bench.significance import breakdown, friedman, holm, places, wilcoxon, win_tie_loss
from softlearning_bench.summary import CHANGES, COMBINERS, FIELD, OURS, SOFT, TOLERANCE, Summary, summarise
from softlearning_bench.weight_figures import PAPERS


@dataclass(frozen=True)
class Section:
    """A heading, a paragraph, perhaps a table, perhaps figures (file names with captions)."""

    title: str
    text: str
    table: pd.DataFrame | None = None
    figures: list[tuple[str, str]] = field(default_factory=list)


def report_suite(folder: Path) -> Path:
    """Write report.html, report.md and figures/ beside `folder/results.csv`; return the html page."""
    folder = Path(folder)
    cells = read(folder / "results.csv")
    if cells.empty:
        raise ValueError(f"{folder} has no results.csv with results: run the benchmark first")
    summary = summarise(cells)
    drawn = draw_all(summary, folder / "figures")
    sections = page(summary, list(drawn))
    (folder / "report.md").write_text(to_markdown(sections))
    html = folder / "report.html"
    html.write_text(to_html(sections, drawn))
    return html


def page(summary: Summary, drawn: list[str]) -> list[Section]:
    """The sections that the results allow, in reading order."""
    parts = [what_ran(summary), own_goals(summary), standing(summary, FIELD, "The paper's ten methods and ours")]
    parts += [against(summary), by_group(summary), what_changes_add(summary)]
    parts += [standing(summary, (OURS, SOFT, *COMBINERS), "Combinations of the same specialists, and ours")]
    parts += [external(summary), over_seeds(summary), spent(summary), where_time_goes(summary)]
    parts += [drawings(drawn), claims(summary), not_run(summary)]
    return [never_confused(part) for part in parts if part is not None]


def never_confused(section: Section) -> Section:
    """The paper's method under a name that nobody takes for ours, where it is a cell or a column of a table."""
    if section.table is None or section.title == "The ledger of claims":
        return section
    return replace(section, table=section.table.replace(SOFT, PAPERS).rename(columns={SOFT: PAPERS}))


# -- sections ---------------------------------------------------------------------------------------------------------


def what_ran(summary: Summary) -> Section:
    cells = summary.cells
    good = cells[cells["status"] == "ok"]
    text = (
        f"{len(good)} cells on {good['dataset'].nunique()} of {len(DATASETS)} datasets, seeds {_range(good['seed'])}. "
    )
    text += "Scores are accuracy or R2, means over five outer folds"
    folds = good[good["method"] == SOFT].groupby("dataset")["fold"].nunique()
    fewer = [f"{name} {count}" for name, count in folds.items() if count < FOLDS]
    text += f", but fewer on: {', '.join(fewer)}. " if fewer else ". "
    text += f"Everything but the section Over seeds is of seed {summary.seed}. " if good["seed"].nunique() > 1 else ""
    return Section("What was run", text + "; ".join(sorted(set(good["versions"]))))


def own_goals(summary: Summary) -> Section | None:
    found = goals(summary)
    if found.empty:
        return None
    found["reached"] = np.where(found["reached"], "reached", "missed")
    return Section("Goals of this project", "Measured on the same folds as everything else.", found)


def standing(summary: Summary, names: tuple[str, ...], title: str) -> Section | None:
    """Mean rank, first places and mean scores of some methods, best rank first."""
    table = summary.complete(names)
    if table.shape[1] < 3 or len(table) < 2:
        return None
    test, found = friedman(table), places(table, TOLERANCE)
    lines = pd.DataFrame({
        "method": table.columns,
        "mean rank": test.mean_ranks.round(2),
        "alone first": [p.alone_first for p in found],
        "first or tied": [p.first for p in found],
        "exactly": [p.first for p in places(table)],
        "top two": [p.top_two for p in found],
        "mean score": table.mean().round(4).to_numpy(),
    })  # fmt: skip
    text = f"{len(table)} datasets on which all of them ran; a tie is within {TOLERANCE}, or exact. "
    text += f"Friedman chi2 {test.ties_corrected:.2f} on {test.degrees} degrees, p {test.p:.2g}."
    return Section(title, text, lines.sort_values("mean rank"))


def against(summary: Summary) -> Section | None:
    """Our defaults, or the paper's method while ours have not run, against each other method."""
    own = OURS if OURS in summary.scores.columns else SOFT
    names = [name for name in summary.methods((*FIELD, *COMBINERS)) if name != own]
    if own not in summary.scores.columns or not names:
        return None
    lines = []
    for name in names:
        pair = summary.complete((own, name))
        record, test = win_tie_loss(pair[own], pair[name], TOLERANCE), wilcoxon(pair[own], pair[name])
        sides = (test.p_greater, test.p_less, test.p_two_sided)
        lines.append((name, f"{record.wins}-{record.ties}-{record.losses}", *sides))
    table = pd.DataFrame(lines, columns=["against", "wins-ties-losses", "p better", "p worse", "p two-sided"])
    table["p two-sided, Holm"] = holm(table["p two-sided"])
    numbers = [column for column in table.columns if column.startswith("p ")]
    table[numbers] = table[numbers].map(lambda p: f"{p:.2g}")
    return Section(f"{own} against each", f"Wilcoxon signed ranks over datasets; a tie is within {TOLERANCE}.", table)


def by_group(summary: Summary) -> Section | None:
    """First places by task, source and size, of ours and of the paper's method."""
    table = summary.complete()
    shown = [name for name in (OURS, SOFT) if name in table.columns]
    if table.shape[1] < 3 or not shown or not len(table):
        return None
    lines = []
    for grouping, parts in breakdown(table, summary.groups(list(table.index)), TOLERANCE).items():
        for part, found in parts.items():
            counts = {f"{name}: first or tied": found[table.columns.get_loc(name)].first for name in shown}
            lines.append({"by": grouping, "part": part, "datasets": found[0].datasets} | counts)
    return Section("By task, source and size", "Among the paper's ten methods and ours.", pd.DataFrame(lines))


def what_changes_add(summary: Summary) -> Section | None:
    """Step by step from the paper's method to our defaults: gain over the step before."""
    table = summary.complete(CHANGES)
    if SOFT not in table.columns or table.shape[1] < 2 or len(table) < 2:
        return None
    lines = []
    for before, after in zip(table.columns, table.columns[1:]):
        gain, record = table[after] - table[before], win_tie_loss(table[after], table[before], TOLERANCE)
        line = {"step": f"{before} -> {after}", "mean gain": f"{gain.mean():+.4f}", "worst": f"{gain.min():+.4f}"}
        lines.append(line | {"better-level-worse": f"{record.wins}-{record.ties}-{record.losses}"})
    text = "From the paper's method to our defaults: the exact solve, temperatures, the guard, the library."
    return Section("What each change adds", text, pd.DataFrame(lines))


def external(summary: Summary) -> Section | None:
    """External baselines beside ours: score, and log loss or RMSE, of the datasets that all of them ran on."""
    scores = summary.complete((OURS, *summary.external))
    if not summary.external or OURS not in scores.columns or scores.empty:
        return None
    losses = summary.losses.loc[scores.index, scores.columns]
    lines = scores.map("{:.4f} / ".format) + losses.map("{:.4g}".format)
    first = losses.idxmin(axis=1).value_counts()
    said = summary.cells.loc[summary.cells["method"].isin(summary.external), "reason"].str.split(";").str[0].unique()
    text = f"Score / log loss or RMSE. External baselines use all cores: {'; '.join(sorted(said))}. Least loss: "
    text += ", ".join(f"{name} {first.get(name, 0)}" for name in scores.columns)
    return Section("External baselines", f"{text} of {len(scores)} datasets.", lines.reset_index(names="dataset"))


def over_seeds(summary: Summary) -> Section | None:
    """Mean rank of each method under every seed of the outer folds, on the datasets that have all seeds."""
    seeds = sorted(summary.cells["seed"].unique())
    tables = [Summary(summary.cells, int(seed)).complete() for seed in seeds]
    common = sorted(set.intersection(*(set(table.index) for table in tables)))
    if len(seeds) < 2 or len(common) < 2 or min(table.shape[1] for table in tables) < 3:
        return None
    rank = pd.DataFrame([dict(zip(table.columns, friedman(table.loc[common]).mean_ranks)) for table in tables])
    lines = pd.DataFrame({"method": rank.columns, "mean rank": rank.mean().round(2).to_numpy()})
    lines["standard deviation over seeds"] = rank.std().round(2).to_numpy()
    text = f"{len(seeds)} seeds of the outer folds of {', '.join(common)}."
    return Section("Over seeds", text, lines.sort_values("mean rank"))


def spent(summary: Summary) -> Section:
    """Seconds of fit and predict on one core, and the cells that failed."""
    cells = summary.cells[summary.cells["seed"] == summary.seed]
    cells = cells[~cells["method"].str.startswith("specialist ")]
    good, by = cells[cells["status"] == "ok"], cells.groupby("method", sort=False)
    seconds = good.groupby("method", sort=False)[["fit_seconds", "predict_seconds"]].agg(["median", "max", "sum"])
    seconds.columns = [f"{what.split('_')[0]} s, {how}" for what, how in seconds.columns]
    seconds["cells failed"] = by["status"].agg(lambda status: int((status != "ok").sum()))
    text = "One core. Memory and size of models are told by the pages of real tables alone. A combiner pays for its"
    text += " whole library, so the sums of methods that share fits count them again."
    text += " External baselines: seconds of the clock on all cores." if summary.external else ""
    return Section("Seconds and failures", text, seconds.round(2).reset_index())


def where_time_goes(summary: Summary) -> Section | None:
    """Minutes of the paper's ten methods by dataset, the longest first."""
    if not {SOFT, "Gradient Boosting", "Random Forest", "NeuroSym"} <= set(summary.scores.columns):
        return None
    minutes = summary.ten_methods_seconds() / 60
    minutes["all ten"] = minutes.sum(axis=1)
    total = minutes["all ten"].sum()
    minutes["share of the suite"] = minutes["all ten"] / total
    longest = minutes.sort_values("all ten", ascending=False).head(10).round(2).reset_index()
    text = (
        f"The paper's ten methods share the fits of Soft Learning: {total:.0f} minutes of one core for five folds of "
    )
    return Section("Where the time goes", f"{text}{len(minutes)} datasets. The ten longest, in minutes:", longest)


def drawings(drawn: list[str]) -> Section:
    rows = [row for row in FIGURES if row.file in drawn]
    numbered = [
        (row.file, f"{'Figure ' + row.number + ' of the paper. ' if row.number != '-' else ''}{row.caption}")
        for row in rows
    ]
    return Section("Figures", "The figures of the paper, from the results above.", figures=numbered)


def claims(summary: Summary) -> Section:
    text = "Every checkable statement of the paper: what its own printed tables say, and what was measured here."
    return Section("The ledger of claims", text, ledger(summary))


def not_run(summary: Summary) -> Section | None:
    """Cells without a score, and why."""
    lost = summary.cells[summary.cells["status"] != "ok"]
    if lost.empty:
        return None
    counted = lost.groupby(["dataset", "method", "status", "reason"], sort=False).size().rename("cells")
    return Section("Not run", "Left out, absent or failed, with the reason.", counted.reset_index())


def _range(seeds: pd.Series) -> str:
    low, high = seeds.min(), seeds.max()
    return str(low) if low == high else f"{low} to {high}"


# -- rendering --------------------------------------------------------------------------------------------------------


def to_markdown(sections: list[Section]) -> str:
    lines = ["# Benchmark", ""]
    for section in sections:
        lines += [f"## {section.title}", "", section.text, ""]
        if section.table is not None:
            lines += [*markdown_table(section.table), ""]
        for file, caption in section.figures:
            lines += [f"![{caption}](figures/{file}.svg)", "", f"*{caption}*", ""]
    return "\n".join(lines)


def markdown_table(table: pd.DataFrame) -> list[str]:
    cells = table.astype(str).map(lambda text: text.replace("|", "\\|"))
    rows = [" | ".join(row) for row in cells.itertuples(index=False)]
    return [f"| {' | '.join(table.columns)} |", "|" + " --- |" * table.shape[1], *(f"| {row} |" for row in rows)]


TEMPLATE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>softlearning: the benchmark</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #111 }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px }
td, th { border-bottom: 1px solid #ccc; padding: .25rem .6rem; text-align: left; vertical-align: top }
th { background: #f2f2f2; position: sticky; top: 0 }
.wide { overflow-x: auto } img { max-width: 100%; height: auto } figure { margin: 1.5rem 0 }
figcaption { color: #444; font-size: 13px } nav a { margin-right: 1rem }
@media (prefers-color-scheme: dark) { body { background: #121212; color: #e6e6e6 } a { color: #8ab4f8 }
th { background: #222 } td, th { border-color: #444 } figcaption { color: #aaa } }
@media print { body { max-width: none; font-size: 11px } figure, tr { break-inside: avoid } nav { display: none } }
</style></head><body>
<h1>The benchmark</h1>
<nav>{% for s in sections %}<a href="#s{{ loop.index }}">{{ s.title }}</a>{% endfor %}</nav>
{% for s in sections %}
<section id="s{{ loop.index }}"><h2>{{ s.title }}</h2><p>{{ s.text }}</p>
{% if s.table is not none %}<div class="wide"><table><thead><tr>
{% for name in s.table.columns %}<th>{{ name }}</th>{% endfor %}</tr></thead><tbody>
{% for row in s.table.itertuples(index=False) %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>{% endif %}
{% for file, caption in s.figures %}<figure><img alt="{{ caption }}" src="{{ pictures[file] }}">
<figcaption>{{ caption }}</figcaption></figure>{% endfor %}
</section>{% endfor %}
</body></html>
"""


def to_html(sections: list[Section], drawn: dict[str, Path]) -> str:
    """One self-contained page: pictures are part of it, names and reasons are escaped."""
    pictures = {name: picture(path) for name, path in drawn.items()}
    template = Environment(autoescape=True).from_string(TEMPLATE)
    return template.render(sections=sections, pictures=pictures)


def picture(path: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()
