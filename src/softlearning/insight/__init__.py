"""What the blend can say about itself, one question a module::

    disagreement    how far do the specialists disagree at a row, and does that find the errors?
    selective       when should it abstain, to answer a wanted share of rows or to keep a promised error rate?
    conformal       which interval or set holds the truth with a stated probability?
    diversity       what is the difference between specialists worth, and how many opinions are there?
    explain         why this weight, how certain is it, what does each specialist and column contribute?
    robustness      how far can a row be moved before the answer can change? (arrays)
    cells           within what distance can a fitted specialist not move?
    gradients       which way does a fitted specialist move?
    attacks         what do attacks do to a fitted classifier and its members?
    guarantees      what does theory promise at this n, and what is it worth?
    scoring         what is a score worth: any metric with rows left out, and intervals
    evaluation      how good is the whole procedure on new rows, with intervals?

Names are imported when first used, so that arrays need neither scikit-learn nor pandas.
"""

from importlib import import_module

_NAMES = {
    "disagreement": "Doubt blend compare_doubts detector_auc disagreement_pairwise entropy max_probability_doubt",
    "selective": "RiskCoverage RiskThreshold risk_coverage_curve threshold_for_coverage threshold_for_risk",
    "conformal": "DoubtScale calibrate_interval calibrate_set conformal_quantile cv_plus_interval fit_scale interval "
    "leave_fold_out_blend predict_set",
    "diversity": "Ambiguity DiversityBound ambiguity_decomposition diversity_bound double_fault effective_opinions "
    "effective_specialists error_correlation label_disagreement pairwise_distance",
    "explain": "Importance Reason WeightIntervals bootstrap_weights contributions family_totals "
    "permutation_importance why_these_weights",
    "robustness": "certified_radius forest_radius immune_weight neighbour_radius stable_rows theorem_condition "
    "tree_radius",
    "cells": "specialist_radius",
    "gradients": "pull_back",
    "attacks": "attack_report black_box_distances certify gradient_attack",
    "guarantees": "OracleBound cost_ratio crossover_rows estimation_error oracle_bound rows_needed soft_operations",
    "scoring": "jackknife_error score_interval",
    "evaluation": "Evaluation evaluate",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = [*_NAMES, *_HOME]


def __getattr__(name: str):
    if name in _NAMES:
        return import_module(f"softlearning.insight.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'softlearning.insight' has no attribute {name!r}")
    return getattr(import_module(f"softlearning.insight.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
