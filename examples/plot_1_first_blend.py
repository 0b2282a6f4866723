"""
1. A first blend
================

Fit a blend, read who got weight and why to believe it, and predict with a doubt.
"""

# %%
# Two lines fit a library of specialists and the best convex combination of them. ``library="fast"`` keeps this page
# quick; leave it out for the full library.
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from softlearning import SoftClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=700, random_state=0)
model = SoftClassifier(library="fast").fit(X_train, y_train)

# %%
# The leaderboard has one line a specialist: its weight, its own cross-validated risk and score, and what it cost.
print(model.leaderboard_[["specialist", "family", "weight", "cv_risk", "cv_score"]].to_string(index=False))

# %%
# The weights are optimal, and the certificate proves it: no point of the simplex is better by more than the gap.
print(model.certificate_)

# %%
# Whether blending pays is said plainly, by rows that the weights did not see.
print(model.verdict_)

# %%
# Predictions come with a doubt: how far the specialists lie apart on each row.
print("accuracy on new rows:", round(model.score(X_test, y_test), 3))
wrong = model.predict(X_test) != y_test
doubt = model.disagreement(X_test)
print("mean disagreement where wrong:", round(doubt[wrong].mean(), 4), "and where right:", round(doubt[~wrong].mean(), 4))
