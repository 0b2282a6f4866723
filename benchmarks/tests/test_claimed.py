"""Claimed against true risk: the judge is right where the truth is known."""

import numpy as np
from numpy.testing import assert_allclose

from softlearning_bench import claimed


def test_noise_knows_nothing_and_is_the_same_every_time():
    X, y = claimed.noise(2, 60, 3)
    again, _ = claimed.noise(2, 60, 3)
    assert_allclose(X, again)
    assert abs(np.corrcoef(X[:, 0], y)[0, 1]) < 0.05


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(claimed, "judged", lambda *a: calls.append(a) or {"claimed": 1.0, "true": 1.0, "better": 0})
    cases = lambda: (({"case": "x", "classes": 1, "rows": 60, "draw": d}, lambda: ()) for d in range(3))
    claimed.run(cases(), tmp_path / "c.csv")
    claimed.run(cases(), tmp_path / "c.csv")
    assert len(calls) == 3


def test_the_truth_is_measured_on_rows_that_were_not_learnt_from(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    monkeypatch.setattr(claimed, "SoftRegressor", lambda n_jobs: real(["dummy"]))
    real = __import__("softlearning").SoftRegressor
    found = claimed.judged(X, y, np.arange(100), np.arange(100, 200), 1)
    assert_allclose(found["true"], ((y[100:] - y[:100].mean()) ** 2).mean())
