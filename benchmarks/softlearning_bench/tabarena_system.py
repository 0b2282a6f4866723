"""softlearning as an external system of TabArena, for those who can run that benchmark.

    pip install softlearning tabarena          # TabArena brings AutoGluon; use an environment of its own
    python tabarena_system.py --time-limit 3600 [--subset lite]

`SoftLearningSystem` is what TabArena calls an ExternalSystemModel: it is handed raw columns and labels, prepares them
itself and answers with predictions or probabilities; TabArena keeps the splits and the scoring. It was written after
TabArena's sources of August 2026; the class itself runs in our tests, TabArena around it does not.
"""

from __future__ import annotations

import argparse
from typing import Any

import pandas as pd

try:
    from tabarena.benchmark.exec_models import ExternalSystemModel as Base
except ImportError:  # the class can be read, and tested, without the benchmark
    Base = object

DEFAULT_SEED = 42  # where TabArena gives none


class SoftLearningSystem(Base):
    """SoftClassifier or SoftRegressor with the budget that TabArena gives; `library` is one of ours, by name."""

    def __init__(self, *, library: Any = "default", **options: Any):
        super().__init__(**options)
        self.library = library
        self.model_: Any = None

    def _fit_system(self, X, y, *, problem_type, num_cpus=None, time_limit=None, random_state=None, **_unused):
        from softlearning import SoftClassifier, SoftRegressor

        kind = SoftRegressor if problem_type == "regression" else SoftClassifier
        seed = DEFAULT_SEED if random_state is None else random_state
        self.model_ = kind(self.library, time_limit=time_limit, n_jobs=num_cpus, random_state=seed).fit(X, y)
        return self

    def _predict(self, X: pd.DataFrame) -> pd.Series:
        return pd.Series(self.model_.predict(X), index=X.index)

    def _predict_proba(self, X: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(self.model_.predict_proba(X), index=X.index, columns=self.model_.classes_)


def main(time_limit: int, subset: str) -> None:
    """Run both libraries on a subset of TabArena's tasks and print its leaderboard with them in it."""
    from tabarena.benchmark.experiment import TabArenaV0pt1ExperimentBundle
    from tabarena.contexts import TabArenaContext
    from tabarena.utils.config_utils import SystemConfigGenerator

    configs = [{"library": "default"}, {"library": "best"}]
    systems = SystemConfigGenerator(model_cls=SoftLearningSystem, name="softlearning", manual_configs=configs)
    bundle = TabArenaV0pt1ExperimentBundle(models=[(systems, 0)], system_experiments=True)
    arena = TabArenaContext()
    arena.build_and_run_jobs(bundle.build_experiments(time_limit=time_limit), expname="softlearning", subset=[subset])
    print(arena.compare(output_dir="softlearning_leaderboard"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--time-limit", type=int, default=3600)
    parser.add_argument("--subset", default="lite")
    asked = parser.parse_args()
    main(asked.time_limit, asked.subset)
