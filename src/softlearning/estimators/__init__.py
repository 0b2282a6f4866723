"""SoftClassifier and SoftRegressor: the four calls of the method, behind scikit-learn's interface.

base         what both share: fit, what was learned, prediction, saving, checks
combining    recombine, drop, expand: another combination of what is fitted
classifier   regressor   how each encodes its target and decodes the blend
loading      a model from a file
"""

from softlearning.estimators.base import SoftLearning
from softlearning.estimators.classifier import SoftClassifier
from softlearning.estimators.learning import FailedSpecialistWarning, TimeLimitWarning
from softlearning.estimators.loading import load
from softlearning.estimators.regressor import SoftRegressor

__all__ = ["FailedSpecialistWarning", "SoftClassifier", "SoftLearning", "SoftRegressor", "TimeLimitWarning", "load"]
