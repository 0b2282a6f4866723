"""
4. Your own specialist, and another combination
===============================================

Any scikit-learn estimator joins the library. What is fitted is never fitted again: another rule, one specialist more
or one fewer re-solves on the stored out-of-fold predictions.
"""

# %%
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer

from softlearning import SoftClassifier

X, y = load_wine(return_X_y=True)
mine = make_pipeline(PowerTransformer(), LinearDiscriminantAnalysis())
model = SoftClassifier(library=["logistic", "naive_bayes", ("mine", mine)]).fit(X, y)
print(model.weights_.round(3))

# %%
# Another rule: uniform weights. The training data are passed because specialists without weight were never refitted.
print(model.recombine(rule="uniform", X=X, y=y).weights_.round(3))

# %%
# One specialist more costs only itself; dropping one costs nothing.
larger = model.expand(["knn_5"], X, y)
print(larger.weights_.round(3))
print(larger.drop("mine", X, y).weights_.round(3))

# %%
# Weights under the two rules.
rules = {rule: model.recombine(rule=rule, X=X, y=y).weights_ for rule in ("guarded", "uniform")}
axes = pd.DataFrame(rules).plot.barh(figsize=(5, 3), xlabel="weight")
axes.figure.set_layout_engine("constrained")
plt.show()
