"""
5. Groups, time, and a specialist that fails
============================================

Folds that respect the structure of the data, and a fit that survives its worst member.
"""

# %%
# Rows of one patient are held out together: pass ``groups``.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import TimeSeriesSplit

from softlearning import SoftRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
y = X @ [1.0, 0.5, 0.0] + 0.3 * rng.normal(size=300)
patients = np.arange(300) // 5
model = SoftRegressor(library=["ridge", "knn_5"]).fit(X, y, groups=patients)
train, test = model.folds_[0]
print("patients in both parts of a fold:", len(set(patients[train]) & set(patients[test])))

# %%
# Time order: any scikit-learn splitter. The first rows are never predicted, and the weights come from the others.
model = SoftRegressor(library=["ridge", "knn_5"], cv=TimeSeriesSplit(4)).fit(X, y)
print("rows with a held-out prediction:", int(np.isfinite(model.oof_).all(axis=(1, 2)).sum()), "of", len(y))


# %%
# A specialist that raises, hangs, eats the memory or kills its process is excluded; the rest go on without it.
class Broken(RegressorMixin, BaseEstimator):
    """Raises in every fit."""

    def fit(self, X, y):
        raise RuntimeError("no license found")


with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    model = SoftRegressor(library=["ridge", "knn_5", ("broken", Broken())]).fit(X, y)
print(heard[-1].message)
print(model.failures_[["specialist", "error"]].head(1).to_string(index=False))
print(model.weights_.round(3))

# %%
# Which rows each fold of a time order learns from, and which it predicts.
folds = SoftRegressor(library=["ridge"], cv=TimeSeriesSplit(4)).fit(X, y).folds_
figure, axes = plt.subplots(figsize=(5, 2.5), layout="constrained")
for number, (train, test) in enumerate(folds):
    axes.plot(train, np.full(len(train), number), "s", markersize=3, color="tab:blue", label="learnt from")
    axes.plot(test, np.full(len(test), number), "s", markersize=3, color="tab:orange", label="predicted")
axes.set(xlabel="row, in time order", ylabel="fold", yticks=range(4))
axes.legend(*(part[:2] for part in axes.get_legend_handles_labels()))
plt.show()
