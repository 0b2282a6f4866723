"""
9. The effect of a treatment
============================

Double machine learning wants predictions of outcome and treatment for each row by models that never saw it.
``cross_predictions`` gives them on folds of your choice, with propensities kept away from 0 and 1; DoubleML takes them as
``external_predictions``.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold

from softlearning import SoftClassifier, SoftRegressor
from softlearning.sharing.causal import cross_predictions, partially_linear_effect

rng = np.random.default_rng(0)
X = rng.normal(size=(1_000, 3))
treated = (rng.random(1_000) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
outcome = 0.5 * treated + np.sin(X[:, 0]) + X[:, 1] + rng.normal(size=1_000)  # the effect is 0.5

# %%
# Who is treated depends on the first column, which also moves the outcome: plain means mislead.
print("difference of means:", (outcome[treated == 1].mean() - outcome[treated == 0].mean()).round(2))

# %%
# Residuals on residuals of out-of-fold predictions do not.
folds = list(KFold(5, shuffle=True, random_state=0).split(X))
of_outcome = cross_predictions(SoftRegressor(library=["ridge", "spline_ridge"]), X, outcome, folds)
of_treatment = cross_predictions(SoftClassifier(library=["logistic"]), X, treated, folds)
effect, error = partially_linear_effect(outcome, treated, of_outcome, of_treatment)
print(f"effect: {effect:.2f}, 95 % interval {effect - 1.96 * error:.2f} to {effect + 1.96 * error:.2f}")

# %%
plain = outcome[treated == 1].mean() - outcome[treated == 0].mean()
figure, axes = plt.subplots(figsize=(5, 2), layout="constrained")
axes.errorbar([effect], ["residuals on residuals"], xerr=[1.96 * error], fmt="o", capsize=4)
axes.plot([plain], ["difference of means"], "o", color="tab:orange")
axes.axvline(0.5, linestyle="--", color="black")
axes.set(xlabel="effect of the treatment (truth: 0.5)")
axes.margins(y=0.4)
plt.show()
