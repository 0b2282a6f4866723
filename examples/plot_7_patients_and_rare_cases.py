"""
7. Medical data: patients with several visits, and a rare outcome
=================================================================

Visits of one patient resemble each other, and the outcome that matters is rare. Two settings keep the model honest:
``groups`` and ``metric``. The data are drawn here, so that the truth is known.
"""

# %%
# 300 patients with four visits each; about 8 % of the visits end badly. What makes a patient ill is partly their own
# (``frailty``), and a column that identifies them (``baseline``) would let a careless model remember it.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score, recall_score

from softlearning import SoftClassifier

rng = np.random.default_rng(0)
patient = np.repeat(np.arange(300), 4)
frailty = rng.normal(size=300)[patient]
baseline = rng.normal(size=300)[patient]
visits = pd.DataFrame(
    {
        "age": rng.integers(20, 90, 300)[patient],
        "baseline": baseline,
        "pressure": rng.normal(130, 15, 1200).round(),
        "ward": rng.choice(["north", "south", "east"], 1200),
        "marker": np.where(rng.random(1200) < 0.15, np.nan, frailty + rng.normal(size=1200)),
    }
)
odds = -3.6 + 1.4 * frailty + 0.03 * (visits["age"] - 55) + 0.03 * (visits["pressure"] - 130)
outcome = np.where(rng.random(1200) < 1 / (1 + np.exp(-odds)), "1 bad", "0 good")
known, later = patient < 220, patient >= 220
print("share of bad outcomes:", round(float((outcome == "1 bad").mean()), 3))

# %%
# Without groups, visits of a patient stand on both sides of a fold, and the model may know them again. The risk that it
# claims is then about other visits of the same patients, not about new patients.
library = ["logistic", "knn_5", "random_forest"]
careless = SoftClassifier(library).fit(visits[known], outcome[known])
careful = SoftClassifier(library, metric="balanced_accuracy").fit(visits[known], outcome[known], groups=patient[known])
print("claimed without groups:", round(careless.cv_risk_, 4), "with groups:", round(careful.cv_risk_, 4))

# %%
# A rare class is rarely the most probable one. Aiming at balanced accuracy moves the threshold by held-out rows; the
# probabilities stay what they are.
print("bad outcomes are named from a probability of", round(float(careful.decision_.threshold), 3), "on")
truth = outcome[later]
for name, model in (("most probable", careless), ("aimed", careful)):
    said = model.predict(visits[later])
    print(
        f"{name}: balanced accuracy {balanced_accuracy_score(truth, said):.2f},",
        f"bad outcomes found {recall_score(truth, said, pos_label='1 bad'):.0%}",
    )

# %%
# Sets that hold the truth with 90 % *within each class*: the rare class is not sacrificed to the common one.
inside = careful.predict_set(visits[later], coverage=0.9, per_class=True)
held = inside[np.arange(len(truth)), (truth == "1 bad").astype(int)]
print("coverage of bad outcomes:", round(float(held[truth == "1 bad"].mean()), 2))

# %%
p = careful.predict_proba(visits[later])[:, 1]
figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
axes.hist([p[truth == "0 good"], p[truth == "1 bad"]], bins=20, stacked=True, label=["good", "bad"])
axes.axvline(careful.decision_.threshold, linestyle="--", color="black", label="threshold")
axes.set(xlabel="probability of a bad outcome", ylabel="visits", yscale="log", title="Patients the model never met")
axes.legend()
plt.show()
