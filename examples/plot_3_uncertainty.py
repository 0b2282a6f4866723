"""
3. How sure is it?
==================

Abstain where the specialists disagree, and give intervals and sets with a stated coverage. Nothing is fitted again.
"""

# %%
# Selective prediction: answer the surest rows, or as many as a wanted error rate allows.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from softlearning import SoftClassifier, SoftRegressor

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=600, random_state=0)
model = SoftClassifier(library=["logistic", "knn_5", "naive_bayes"]).fit(X_train, y_train)

labels, accepted = model.predict_selective(X_test, coverage=0.8)
print("error on all rows:", round((labels != y_test).mean(), 3))
print("error on the", round(accepted.mean(), 2), "accepted:", round((labels != y_test)[accepted].mean(), 3))

# %%
# Prediction sets hold the true class with the coverage asked for.
sets = model.predict_set(X_test, coverage=0.95)
print(
    "coverage:", round(sets[np.arange(len(y_test)), y_test].mean(), 3), "mean size:", round(sets.sum(axis=1).mean(), 2)
)

# %%
# Intervals for a regression, wider where the specialists disagree as far as that told errors before.
X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = SoftRegressor(library="fast").fit(X_train, y_train)
low, high = model.predict_interval(X_test, coverage=0.9)
print("coverage:", round(((low <= y_test) & (y_test <= high)).mean(), 2), "mean width:", round((high - low).mean()))

# %%
# Intervals around the predictions of new rows.
figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
axes.scatter(model.predict(X_test), y_test, s=10)
order = np.argsort(model.predict(X_test))
axes.fill_between(model.predict(X_test)[order], low[order], high[order], alpha=0.25, label="90 % interval")
axes.set(xlabel="predicted", ylabel="true progression of the disease")
axes.legend()
plt.show()
