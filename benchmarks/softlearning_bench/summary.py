"""From the table of results to the numbers that figures, claims and the page read.

Every count in the report comes from here or from `significance`; nothing is typed in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from softlearning.library import every_row, resolve
from softlearning_bench.datasets import DATASETS, dataset
from softlearning_bench.methods import METHODS
from softlearning_bench.paper import METHODS as PAPER_METHODS
from softlearning_bench.paper import paper_results
from softlearning_bench.results import score_table, with_best_of_3

TOLERANCE = 0.001  # a tie, as the paper's Supplementary Figure 1 has it
OURS = "softlearning"
SOFT = "Soft Learning"
FIELD = (OURS, *PAPER_METHODS)  # the paper's ten, and ours
COMBINERS = tuple(m.name for m in METHODS if m.group in ("change", "combiner"))
CHANGES = (SOFT, *(m.name for m in METHODS if m.group == "change"), OURS)
FORMER = {
    "catboost_coarse": "tree",
    "mlp_small_scaled": "neural",
    "mlp_large_scaled": "neural",
}  # of 0.1.0
FAMILIES = ("linear", "instance", "tree", "kernel", "neural", "complementary", "stacker", "baseline")


@dataclass(frozen=True)
class Summary:
    """The cells of a run, with Best-of-3, and what is read off them; `seed` is the paper's unless told otherwise."""

    cells: pd.DataFrame
    seed: int = 42

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Datasets, in the paper's order, by methods: means over the outer folds that ran."""
        table = score_table(self.cells, seed=self.seed)
        return table.reindex([row.name for row in DATASETS if row.name in table.index])

    @cached_property
    def losses(self) -> pd.DataFrame:
        """The same of log loss, or of RMSE in regression."""
        return score_table(self.cells.assign(loss=self.cells["log_loss"].fillna(self.cells["rmse"])), "loss", self.seed)

    @cached_property
    def paper(self) -> pd.DataFrame:
        return paper_results()

    def methods(self, names: Sequence[str] = FIELD) -> list[str]:
        """Of these, the ones that ran at all, in the given order."""
        return [name for name in names if name in self.scores.columns]

    @property
    def external(self) -> list[str]:
        """Systems that ran from an environment of their own."""
        own = {*FIELD, *(m.name for m in METHODS)}
        return [m for m in self.scores.columns if m not in own and not m.startswith("specialist ")]

    def complete(self, names: Sequence[str] = FIELD) -> pd.DataFrame:
        """Scores of the datasets on which all of these methods have a value: what ranks may be taken of."""
        return self.scores[self.methods(names)].dropna()

    def mean(self, column: str, method: str) -> pd.Series:
        """Mean over folds of a column of the table, by dataset."""
        return score_table(self.cells, column, self.seed)[method].dropna()

    def ten_methods_seconds(self) -> pd.DataFrame:
        """By dataset: seconds of five folds of the paper's ten methods, which share the fits of Soft Learning.

        Three methods are not in its library and come on top.
        """
        names = (SOFT, "Gradient Boosting", "Random Forest", "NeuroSym")
        return pd.DataFrame({name: 5 * self.mean("fit_seconds", name) for name in names}).dropna()

    def best_member(self, library: str = "paper") -> pd.DataFrame:
        """By dataset: the best score of a specialist of a library by itself, and its name.

        The members of "default" are those that have weight in these results, whatever the library has today.
        """
        best = pd.DataFrame({"score": np.nan, "specialist": ""}, index=self.scores.index)
        for task in ("classification", "regression"):
            rows = [name for name in self.scores.index if dataset(name).task == task]
            found = resolve("paper", task).names if library == "paper" else self._weighted(rows)
            names = [f"specialist {name}" for name in found if f"specialist {name}" in self.scores.columns]
            alone = self.scores.loc[rows, names].dropna(how="all")
            if alone.size:
                best.loc[alone.index, "score"] = alone.max(axis=1)
                best.loc[alone.index, "specialist"] = alone.idxmax(axis=1).str.removeprefix("specialist ")
        return best.dropna()

    def _weighted(self, rows: Sequence[str]) -> list[str]:
        """What has weight in our blend on one of these datasets."""
        table = self.weights(OURS)
        table = table.loc[[name for name in rows if name in table.index]]
        return list(table.columns[(table > 0).any()])

    def weights(self, method: str = SOFT) -> pd.DataFrame:
        """Mean weight of each specialist over the folds: datasets by specialists."""
        good = self.cells[(self.cells["method"] == method) & (self.cells["weights"] != "")]
        good = good[good["seed"] == self.seed]
        lines = [json.loads(text) for text in good["weights"]]
        table = pd.DataFrame(lines, index=good["dataset"].to_numpy()).fillna(0.0)
        order = [row.name for row in DATASETS if row.name in table.index]
        return table.groupby(level=0).mean().reindex(order)

    def family_weights(self, method: str = SOFT) -> pd.DataFrame:
        """The same by algorithmic family, in a fixed order of columns."""
        family = FORMER | {s.name: s.family for task in ("classification", "regression") for s in every_row(task)}
        table = self.weights(method)
        summed = table.T.groupby([family[name] for name in table.columns]).sum().T
        return summed.reindex(columns=[f for f in FAMILIES if f in summed.columns])

    def groups(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Task, source and size of the named datasets, as labels for a breakdown."""
        rows = [dataset(name) for name in names]
        return {"task": [r.task for r in rows], "source": [r.source for r in rows], "size": [r.size for r in rows]}


def summarise(cells: pd.DataFrame, seed: int = 42) -> Summary:
    return Summary(with_best_of_3(cells), seed)


def mean_by_task(scores: pd.DataFrame) -> pd.DataFrame:
    """Methods by (classification, regression): the mean accuracy and the mean R2 over datasets."""
    task = np.array([dataset(name).task for name in scores.index])
    return pd.DataFrame({t: scores[task == t].mean() for t in ("classification", "regression")})


def paper_library_score(paper: pd.DataFrame) -> pd.Series:
    """By dataset, the best printed score among the methods that are members of the paper's own library."""
    return paper.drop(columns=[SOFT, "NeuroSym", "Best-of-3"]).max(axis=1)
