"""
2. A table as it is
===================

Strings, categories, dates, missing values, an identifier: the table goes in as it is, and the model says what it
understood.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from softlearning import SoftClassifier

rng = np.random.default_rng(0)
n = 400
visits = pd.DataFrame(
    {
        "patient": [f"P-{i:05d}" for i in range(n)],
        "ward": rng.choice(["north", "south", "east"], n),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(60, 15, n).round()),
        "admitted": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
        "temperature": rng.normal(37, 0.8, n).round(1).astype(str),
    }
)
fever = visits["temperature"].astype(float) > 37.5
returned = np.where(fever | (visits["ward"] == "east") & (rng.random(n) < 0.7), "yes", "no")

model = SoftClassifier(library=["logistic", "lightgbm", "naive_bayes"]).fit(visits, returned)
print(model.table_)

# %%
# At prediction time one input validation stands before all specialists: columns are matched by name in any order, an
# unseen ward is allowed, and a missing column is refused by name.
new = visits.sample(3, random_state=1)[["ward", "temperature", "admitted", "age", "patient"]]
new.loc[new.index[0], "ward"] = "a new ward"
print(model.predict(new))
try:
    model.predict(new.drop(columns="ward"))
except ValueError as error:
    print(error)

# %%
# What the columns tell of one row: contributions that add up to the prediction.
values = model.explain(visits[:1], visits[100:130], label="yes")
figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
values.drop(columns="(base value)").iloc[0].plot.barh(ax=axes)
axes.set(xlabel="contribution to the probability of a return")
plt.show()
