"""
8. In production: abstain, give intervals, notice when the world changes
========================================================================

A model in use should answer what it knows, hand over what it does not, and be watched.
"""

# %%
# A classifier that may pass a row on to a person. The error rate among the rows it answers is kept with a stated
# confidence, by held-out rows alone.
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_digits

from softlearning import SoftClassifier, SoftRegressor, load

X, y = load_digits(return_X_y=True)
model = SoftClassifier(["logistic", "knn_5", "naive_bayes"]).fit(X[:900], y[:900])
labels, answered = model.predict_selective(X[900:], risk=0.03, confidence=0.9)
print("answered:", round(float(answered.mean()), 2))
print("wrong among them:", round(float((labels != y[900:])[answered].mean()), 3))
print("wrong had it answered all:", round(float((labels != y[900:]).mean()), 3))

# %%
# The saved model does all of this: what it needs is in the file, and nothing in the file can run code.
file = Path(mkdtemp()) / "digits.soft"
model.save(file)
same, again = load(file).predict_selective(X[900:], risk=0.03, confidence=0.9)
print("same answers after loading:", bool((again == answered).all() and (same == labels).all()))

# %%
# Intervals for numbers. Watch the share of truths inside as they come in: far below the nominal coverage means that the
# rows are no longer those of the training.
X, y = load_diabetes(return_X_y=True)
number = SoftRegressor(["ridge", "knn_15", "decision_tree"]).fit(X[:300], y[:300])
low, high = number.predict_interval(X[300:], coverage=0.9)
print("inside:", round(float(((low <= y[300:]) & (y[300:] <= high)).mean()), 2))
shifted = y[300:] + 120  # the world changes
print("inside after a shift:", round(float(((low <= shifted) & (shifted <= high)).mean()), 2))

# %%
# Rows unlike those of the training make the specialists disagree, before any truth is known.
strange = X[300:] + np.random.default_rng(0).normal(scale=0.15, size=X[300:].shape)
usual, odd = number.predict(X[300:], return_std=True)[1], number.predict(strange, return_std=True)[1]
print("median disagreement, usual and strange rows:", np.median(usual).round(1), np.median(odd).round(1))

# %%
order = np.argsort(number.predict(X[300:]))
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.fill_between(range(len(order)), low[order], high[order], alpha=0.3, label="90 % interval")
axes.plot(number.predict(X[300:])[order], label="prediction")
axes.plot(y[300:][order], ".", markersize=4, label="truth")
axes.set(xlabel="new rows, by prediction", ylabel="progression of the disease")
axes.legend()
plt.show()
