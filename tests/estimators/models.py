"""Quick libraries for these tests."""

from dataclasses import replace

from softlearning.library import every_row

POOL = replace(*every_row("classification")["log_pool"], min_rows=0)  # also on few rows

QUICK = ["logistic", "knn_5", "decision_tree", "naive_bayes"]

QUICK_REGRESSION = ["ridge", "knn_5", "decision_tree"]
