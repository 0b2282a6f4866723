"""
1. A first blend
================

Fit a blend, read who got weight and why to believe it, and predict with an uncertainty.
"""

# %%
# Two lines fit a library of specialists and the best convex combination of them. ``library="fast"`` keeps this page
# quick; leave it out for the full library.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from softlearning import SoftClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)
model = SoftClassifier(library="fast").fit(X_train, y_train)

# %%
# The leaderboard has one line per specialist: its weight, its own cross-validated risk and score, and what it cost.
print(model.leaderboard_[["specialist", "family", "weight", "cv_risk", "cv_score"]].to_string(index=False))

# %%
# The certificate: no convex weights have an objective that is lower by more than the gap. On few rows the default rule
# stands back from the optimum, because an optimum follows noise.
print(model.certificate_)

# %%
# Whether blending pays is said plainly, by rows that the weights did not see.
print(model.verdict_)

# %%
# Predictions come with an uncertainty: how far the specialists lie apart on each row.
print("accuracy on new rows:", round(model.score(X_test, y_test), 3))
wrong = model.predict(X_test) != y_test
apart = model.disagreement(X_test)
print("mean disagreement where wrong:", round(apart[wrong].mean(), 4))
print("mean disagreement where right:", round(apart[~wrong].mean(), 4))

# %%
# Disagreement of right and wrong answers side by side.
figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
axes.hist([apart[~wrong], apart[wrong]], bins=20, density=True, label=["right", "wrong"])
axes.set(xlabel="disagreement of the specialists", ylabel="density of new rows")
axes.legend()
plt.show()
