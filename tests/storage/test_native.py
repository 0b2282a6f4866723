"""Models of CatBoost and LightGBM: what they write themselves is let through, anything that leads outside is not."""

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRegressor

from softlearning.storage.container import ModelFileError
from softlearning.storage.native import (
    CATBOOST_WORD,
    LIGHTGBM_NAMES,
    LIGHTGBM_WORD,
    check_catboost_bytes,
    check_lightgbm_numbers,
    check_lightgbm_text,
    check_parameter,
)

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(120, 3)), columns=list("abc"))
X["d"] = RNG.integers(0, 6, 120)
TARGETS = {"two": X["a"] > 0, "three": np.digitize(X["a"] + X["d"], [1, 3]), "number": X["a"] * X["d"]}
TREES = {"iterations": 5, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("categories", [[], ["d"]])
def test_what_catboost_writes_is_let_through(target, categories):
    make = CatBoostRegressor if target == "number" else CatBoostClassifier
    model = make(**TREES, one_hot_max_size=2).fit(X, TARGETS[target], cat_features=categories)
    check_catboost_bytes(bytes(model._serialize_model()))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("categories", ["auto", ["d"]])
def test_what_lightgbm_writes_is_let_through(target, categories):
    make = LGBMRegressor if target == "number" else LGBMClassifier
    model = make(n_estimators=4, num_leaves=5, min_child_samples=5, verbose=-1, n_jobs=1)
    fitted = model.fit(X, TARGETS[target], categorical_feature=categories)
    check_lightgbm_text(fitted.booster_.model_to_string())


def test_a_split_of_what_is_missing_from_what_is_not_is_let_through():
    """Its threshold is infinite; without it no model of a table with many missing values could be saved."""
    few = X.assign(a=X["a"].where(X["d"] > 2))
    text = LGBMClassifier(n_estimators=2, verbose=-1, n_jobs=1).fit(few, X["d"] > 2).booster_.model_to_string()
    assert "threshold=inf" in text
    check_lightgbm_text(text)
    with pytest.raises(ModelFileError, match="leaf_value"):
        check_lightgbm_numbers("leaf_value", ["inf", "0"], 2)


@pytest.fixture(scope="module")
def blob():
    return bytes(CatBoostRegressor(**TREES).fit(X, TARGETS["number"])._serialize_model())


def test_a_catboost_model_cut_anywhere_is_refused(blob):
    for end in range(0, len(blob), max(1, len(blob) // 60)):
        with pytest.raises(ModelFileError, match="CatBoost"):
            check_catboost_bytes(blob[:end])


@pytest.mark.parametrize("value", [None, 3, "CBM1", b"", b"CBM1" + bytes(100)])
def test_what_is_not_a_catboost_model_is_refused(value):
    with pytest.raises(ModelFileError, match="CatBoost"):
        check_catboost_bytes(value)


@pytest.mark.parametrize("value", [None, 3, "", "tree", "é", "tree\n\nTree=0\n"])
def test_what_is_not_a_lightgbm_model_is_refused(value):
    with pytest.raises(ModelFileError, match="LightGBM"):
        check_lightgbm_text(value)


@pytest.mark.parametrize("value", ["gbdt", "", 3, -1, 0.5, True, None, ["auc", "l2"], {"a": 1}, np.array([1.0, 2.0])])
def test_plain_parameters_are_let_through(value):
    check_parameter("LightGBM", "x", value, LIGHTGBM_WORD)


ODD = ["gbdt num_threads=3000000", "a=b", "a\nb", "a\tb", "a\0b", "../x", "é", "a" * 100, 10**12, float("nan")]
ODD += [float("inf"), object(), ["ok", "not ok"], {"a b": 1}, np.array(["a b"]), [[["a b"]]]]


@pytest.mark.parametrize("value", ODD, ids=lambda v: str(v)[:20])
def test_parameters_that_are_not_plain_are_refused(value):
    with pytest.raises(ModelFileError, match="parameter 'x'"):
        check_parameter("LightGBM", "x", value, LIGHTGBM_WORD)


def test_words_of_catboost_may_have_options():
    check_parameter("CatBoost", "loss_function", "Quantile:alpha=0.9", CATBOOST_WORD)
    with pytest.raises(ModelFileError, match="one plain word"):
        check_parameter("CatBoost", "train_dir", "/tmp/x", CATBOOST_WORD)


def test_no_parameter_of_lightgbm_names_a_file_a_machine_or_a_check_that_is_turned_off():
    words = ("file", "predict", "machine", "config", "model", "result", "listen", "snapshot", "shape_check", "input")
    assert not [name for name in LIGHTGBM_NAMES if any(word in name for word in words)]
