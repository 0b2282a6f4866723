"""Attacks and certificates on a fitted classifier: slopes reach the raw columns, certificates hold, trees
are reached.
"""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from softlearning.estimators import SoftClassifier
from softlearning.library import Specialist
from softlearning_bench.audit.attacks import (
    attack_report,
    black_box_distances,
    certify,
    gradient_attack,
    targets_of,
)

SMOOTH = ("logistic", "naive_bayes", "svm_rbf", "spline_logistic")


def weights_of(**shares):
    """A rule that gives the named specialists fixed weights, in the order of the names."""
    fixed = np.array([shares[name] for name in sorted(shares)])
    return lambda predictions, target, sample_weight: fixed


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return train_test_split(X, np.array(["red", "rosé", "white"])[y], random_state=0, stratify=y)


@pytest.fixture(scope="module")
def smooth(wine):
    return SoftClassifier(library=list(SMOOTH), rule="uniform", refit=True).fit(wine[0], wine[2])


@pytest.fixture(scope="module")
def mostly_flat(wine):
    rule = weights_of(decision_tree=0.4, extra_trees=0.5, logistic=0.1)
    return SoftClassifier(library=["decision_tree", "extra_trees", "logistic"], rule=rule).fit(wine[0], wine[2])


def numeric_slope(target, S, label, h=1e-5):
    loss = lambda S: -np.log(target.probability(S)[np.arange(len(S)), label])
    steps = h * np.eye(S.shape[1])
    return np.stack([(loss(S + step) - loss(S - step)) / (2 * h) for step in steps], axis=1)


def check_slopes(model, X, y, rtol=2e-4):
    targets, S = targets_of(model, X)
    label = np.searchsorted(model.classes_, y)
    for name, target in targets.items():
        numeric = numeric_slope(target, S, label)
        assert_allclose(target.slope(S, label), numeric, atol=rtol * np.abs(numeric).max(), err_msg=name)


def test_slopes_pass_through_temperature_and_scaling_to_the_raw_columns(smooth, wine):
    assert (smooth.temperatures_ != 1).any()
    check_slopes(smooth, wine[1][:10], wine[3][:10])


def test_slopes_pass_through_a_stacker_to_the_specialists_it_reads(wine):
    make = lambda shape: LogisticRegression()
    stacker = Specialist("stack", "stacker", make, needs="", level=2, trusted=True)
    model = SoftClassifier(library=["logistic", "naive_bayes", stacker], rule="uniform").fit(wine[0], wine[2])
    check_slopes(model, wine[1][:10], wine[3][:10], rtol=2e-3)


def test_models_of_the_folds_are_attacked_as_their_mean(wine):
    model = SoftClassifier(library=["logistic", "naive_bayes"], rule="uniform", refit=False, cv=3)
    check_slopes(model.fit(wine[0], wine[2]), wine[1][:10], wine[3][:10])


def test_a_gradient_attack_hurts_more_than_noise_of_the_same_length(smooth, wine):
    X, y = wine[1], wine[3]
    scale, epsilon = X.std(axis=0), 0.5
    moved = gradient_attack(smooth, X, y, epsilon)
    assert np.all(np.abs(moved - X) <= epsilon * scale * (1 + 1e-9))
    noise = X + epsilon * scale * np.random.default_rng(0).choice([-1.0, 1.0], X.shape)
    assert smooth.score(moved, y) < smooth.score(noise, y) - 0.1


def test_the_report_has_a_line_for_the_blend_and_each_member(mostly_flat, wine):
    report = attack_report(mostly_flat, wine[1], wine[3], epsilon=0.5).set_index("target")
    assert set(report.index) == {"blend", "decision_tree", "extra_trees", "logistic"}
    assert report.loc[["decision_tree", "extra_trees"], "mean_slope"].eq(0).all()
    assert report.loc["logistic", "pgd"] < report.loc["logistic", "clean"]
    assert_allclose(report.loc["blend", "clean"], mostly_flat.score(wine[1], wine[3]))


def test_no_slope_is_no_robustness_attacks_on_others_transfer_to_trees(mostly_flat, wine):
    report = attack_report(mostly_flat, wine[1], wine[3], epsilon=1.0).set_index("target")
    assert report.loc["decision_tree", "transfer"] < report.loc["decision_tree", "clean"]


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_no_step_within_the_certified_radius_changes_the_class(mostly_flat, wine, norm):
    X = wine[1]
    found = certify(mostly_flat, X, norm=norm)
    assert (found["radius"] > 0).mean() > 0.5
    assert_allclose(found["immune_weight"], 0.9)
    rng, scale = np.random.default_rng(0), X.std(axis=0)
    for _ in range(20):
        step = rng.normal(size=X.shape)
        step /= np.linalg.norm(step, ord=np.inf if norm == "linf" else 2, axis=1, keepdims=True)
        moved = X + 0.999 * found["radius"].to_numpy()[:, None] * step * scale
        assert np.array_equal(mostly_flat.predict(moved), found["label"])


def test_a_certificate_is_stricter_than_the_theorem_s_condition(mostly_flat, wine):
    less_flat = mostly_flat.recombine(rule=weights_of(decision_tree=0.2, extra_trees=0.4, logistic=0.4))
    found = certify(less_flat, wine[1])
    condition, certified = found["theorem_condition"], found["radius"] > 0
    assert (condition & ~certified).any()  # agreement with little probability is not enough


def test_smooth_members_leave_nothing_to_certify(smooth, wine):
    found = certify(smooth, wine[1])
    assert not found["radius"].any()
    assert not found["theorem_condition"].any()


def test_tables_that_are_not_numbers_are_refused(wine):
    frame = pd.DataFrame({"colour": ["a", "b"] * 30, "size": np.arange(60.0)})
    model = SoftClassifier(library=["decision_tree"]).fit(frame, np.arange(60) % 2)
    with pytest.raises(TypeError, match="numeric array"):
        certify(model, frame)


def test_a_missing_toolbox_is_named(mostly_flat, wine, monkeypatch):
    monkeypatch.setitem(sys.modules, "art", None)
    monkeypatch.setitem(sys.modules, "art.attacks.evasion", None)
    with pytest.raises(ImportError, match=r"softlearning-bench\[attack\]"):
        black_box_distances(mostly_flat, wine[1][:2], wine[3][:2])


@pytest.mark.slow
def test_a_black_box_attack_reaches_trees_beyond_their_certified_radius(mostly_flat, wine):
    pytest.importorskip("art")
    X, y = wine[1][:3], wine[3][:3]
    scale = wine[0].std(axis=0)
    distances = black_box_distances(mostly_flat, X, y, scale=scale, max_iter=3, max_eval=100)
    assert np.isfinite(distances["decision_tree"]).all()
    assert (distances["blend"] >= certify(mostly_flat, X, norm="l2", scale=scale)["radius"]).all()
