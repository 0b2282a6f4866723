"""A small model with every kind of part that compiled code serves or that model files treat as a case of their own."""

from __future__ import annotations

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from softlearning import SoftClassifier, Specialist

QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}


def genuine_table(n=60):
    """Numbers, a category in numbers, and words; three classes."""
    rng = np.random.default_rng(0)
    words = rng.choice(["red", "green", "blue", "and", "or"], (n, 4))
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.integers(0, 4, n).astype(float)})
    X["note"] = [" ".join([*row, str(k)]) for k, row in enumerate(words)]
    return X, np.digitize(X["a"] + X["b"] ** 2 + 0.3 * X["c"], [0.8, 2.0])


def of_union(shape):
    union = FeatureUnion([("scaled", MinMaxScaler()), ("spline", SplineTransformer(n_knots=4))], n_jobs=2)
    return make_pipeline(union, LogisticRegression())


def of_words(shape):
    words = ColumnTransformer(
        [("tfidf", TfidfVectorizer(), "note"), ("count", CountVectorizer(), "note"), ("n", StandardScaler(), ["a"])]
    )
    return make_pipeline(words, LogisticRegression())


def of_hashes(shape):
    return make_pipeline(ColumnTransformer([("hash", HashingVectorizer(n_features=64), "note")]), LogisticRegression())


def of_one_hot(shape):
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(ColumnTransformer([("hot", hot, ["c"])]), LogisticRegression())


def genuine_model():
    """The model, and rows to predict."""
    X, y = genuine_table()
    boosting = {"max_iter": 2, "categorical_features": [2], "min_samples_leaf": 5}
    bagged = BaggingClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=3, n_jobs=2, random_state=0)
    library = [
        ("forest", RandomForestClassifier(3, max_depth=4, random_state=0)),
        ("boosting", GradientBoostingClassifier(n_estimators=2, random_state=0)),
        Specialist("hist", "tree", lambda shape: HistGradientBoostingClassifier(**boosting), needs="ordinal"),
        ("bagging", bagged),
        ("near", KNeighborsClassifier(3, algorithm="kd_tree", leaf_size=5)),
        ("brute", KNeighborsClassifier(3, algorithm="brute")),
        ("vectors", SVC(decision_function_shape="ovr")),
        Specialist("union", "linear", of_union, needs="scaled"),
        Specialist("hot", "linear", of_one_hot, needs="raw"),
        Specialist("words", "linear", of_words, needs="raw"),
        Specialist("hashes", "linear", of_hashes, needs="raw"),
        ("catboost", CatBoostClassifier(iterations=3, depth=3, **QUIET)),
        ("lightgbm", LGBMClassifier(n_estimators=2, num_leaves=4, verbose=-1, min_child_samples=5, n_jobs=1)),
        "logistic",
    ]
    return SoftClassifier(library, rule="uniform", cv=2, calibrate=False, refit=True).fit(X, y), X
