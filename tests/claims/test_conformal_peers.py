"""Side by side with MAPIE and crepes: the same data, the same model, the same coverage; width and seconds on record.

MAPIE's CV+ fits the whole procedure once more for each of its folds, crepes sets rows aside for calibration; here the
out-of-fold predictions that the fit has anyway are used. Over 60 sets of 200 rows of each of three kinds, 90 % wanted
(benchmarks/results/conformal_peers.csv): ours cover 90.4 % at a mean width of 5.36 in 0.23 s, MAPIE 90.9 % at 5.46 in
1.51 s, crepes 89.7 % at 5.80 in 0.31 s.
"""

import time
import warnings

import numpy as np
import pandas as pd
import pytest

from softlearning.estimators import SoftRegressor
from tests.claims.places import RESULTS
from tests.claims.test_coverage import REGRESSIONS, REGRESSORS


def ours(X, y, new):
    return SoftRegressor(library=REGRESSORS).fit(X, y).predict_interval(new, coverage=0.9)


def mapie_plus(X, y, new):
    from mapie.regression import CrossConformalRegressor

    model = CrossConformalRegressor(SoftRegressor(library=REGRESSORS), confidence_level=0.9, method="plus", cv=5)
    interval = model.fit_conformalize(X, y).predict_interval(new)[1]
    return interval[:, 0, 0], interval[:, 1, 0]


def crepes_split(X, y, new):
    from crepes import WrapRegressor
    from crepes.extras import DifficultyEstimator

    fitted = 3 * len(y) // 4
    model = WrapRegressor(SoftRegressor(library=REGRESSORS))
    model.fit(X[:fitted], y[:fitted])
    difficulty = DifficultyEstimator()
    difficulty.fit(X=X[:fitted], y=y[:fitted])
    model.calibrate(X[fitted:], y[fitted:], de=difficulty)
    interval = model.predict_int(new, confidence=0.9)
    return interval[:, 0], interval[:, 1]


METHODS = {"softlearning": ours, "mapie_cv_plus": mapie_plus, "crepes_split_normalised": crepes_split}


def side_by_side(sets, rows):
    lines = []
    for seed in range(sets):
        kind = list(REGRESSIONS)[seed % 3]
        X, y = REGRESSIONS[kind](np.random.default_rng(10_000 + seed), rows + 1000)
        for name, method in METHODS.items():
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                low, high = method(X[:rows], y[:rows], X[rows:])
            seconds = time.perf_counter() - start
            covered = np.mean((low <= y[rows:]) & (y[rows:] <= high))
            lines.append(
                {"method": name, "kind": kind, "coverage": covered, "width": np.mean(high - low), "seconds": seconds}
            )
    return pd.DataFrame(lines)


def test_all_three_cover_on_one_set():
    pytest.importorskip("mapie")
    pytest.importorskip("crepes")
    assert side_by_side(1, 120)["coverage"].between(0.75, 1.0).all()


@pytest.mark.slow
@pytest.mark.timeout(14_400)
def test_coverage_width_and_seconds_over_sixty_sets():
    pytest.importorskip("mapie")
    pytest.importorskip("crepes")
    found = side_by_side(60, 200).groupby(["method", "kind"], as_index=False).mean()
    RESULTS.mkdir(parents=True, exist_ok=True)
    found.round(4).to_csv(RESULTS / "conformal_peers.csv", index=False)
    total = found.groupby("method")[["coverage", "width", "seconds"]].mean()
    assert total.loc["softlearning", "coverage"] > 0.88
    assert total.loc["softlearning", "width"] < 1.02 * total["width"].drop("softlearning").min()
