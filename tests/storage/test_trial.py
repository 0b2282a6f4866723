"""Native models are opened first where a crash costs nothing."""

import numpy as np
import pytest
from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier

import softlearning
from softlearning.storage import ModelFileError, trial
from softlearning.storage.trial import catboost_model, lightgbm_model, try_apart, try_natives
from tests.storage.crafted import resized
from tests.storage.test_native import TARGETS, TREES, X

LIMIT = 64 << 20


@pytest.fixture(scope="module")
def boosted():
    """The text of a LightGBM model."""
    model = LGBMClassifier(n_estimators=4, num_leaves=5, min_child_samples=5, verbose=-1, n_jobs=1)
    return model.fit(X, TARGETS["two"]).booster_.model_to_string()


@pytest.fixture(scope="module")
def counted():
    """The bytes of a CatBoost model with a category."""
    return bytes(CatBoostClassifier(**TREES).fit(X, TARGETS["two"], cat_features=["d"])._serialize_model())


@pytest.fixture
def nothing_known(monkeypatch):
    monkeypatch.setattr(trial, "KNOWN", set())


def test_sound_models_of_both_libraries_pass_in_one_process(boosted, counted):
    plain_cat = bytes(CatBoostRegressor(**TREES).fit(X, TARGETS["number"])._serialize_model())
    models = [lightgbm_model(boosted, {"num_threads": 1, "objective": "binary"})]
    models += [catboost_model(data) for data in (counted, plain_cat)]
    assert try_apart(models, LIMIT) is None


def test_a_model_that_crashes_its_loader_is_named_and_this_process_lives(boosted, counted):
    """A child far outside of its tree: the loader follows it."""
    tree = boosted.index("left_child=")
    crashing = boosted[:tree] + boosted[tree:].replace("left_child=", "left_child=1073741824 ", 1)
    models = [catboost_model(counted), lightgbm_model(resized(crashing), {})]
    assert "LightGBM model 2 of 2 in the file ends the process that opens it (SIG" in try_apart(models, LIMIT)


def test_what_a_loader_refuses_is_told_in_its_words(boosted):
    reason = try_apart([lightgbm_model(boosted[:60], {})], LIMIT)
    assert reason.startswith("LightGBM model 1 of 1 in the file cannot be opened (LightGBMError: ")
    reason = try_apart([catboost_model(b"CBM1" + bytes(60))], LIMIT)
    assert reason.startswith("CatBoost model 1 of 1 in the file cannot be opened (CatBoostError: ")


def test_a_loader_that_does_not_come_back_is_ended(boosted, monkeypatch):
    monkeypatch.setattr(trial, "SECONDS", 0.01)
    assert try_apart([lightgbm_model(boosted, {})], LIMIT) == (
        "a CatBoost or LightGBM model in the file is not opened in time"
    )


def test_where_no_process_can_be_started_a_signature_is_the_way(boosted, monkeypatch):
    monkeypatch.setattr(trial, "COMMAND", ["/no/such/python"])
    assert "a signed file needs none" in try_apart([lightgbm_model(boosted, {})], LIMIT)


@pytest.mark.usefixtures("nothing_known")
def test_a_model_is_tried_once_in_a_process(boosted, monkeypatch):
    models = [lightgbm_model(boosted, {})]
    assert try_natives(models, LIMIT) is None
    monkeypatch.setattr(trial, "COMMAND", ["/no/such/python"])
    assert try_natives(models, LIMIT) is None
    assert try_natives([lightgbm_model(boosted, {"num_threads": 2})], LIMIT)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model with LightGBM in it, saved with a key."""
    path = tmp_path_factory.mktemp("native") / "model"
    library = [("lightgbm", LGBMClassifier(n_estimators=2, num_leaves=4, verbose=-1, min_child_samples=5, n_jobs=1))]
    model = softlearning.SoftClassifier(library, cv=2, calibrate=False).fit(X, TARGETS["three"])
    model.save(path, key=b"k" * 16)
    return path, model.predict_proba(X)


@pytest.mark.usefixtures("nothing_known")
def test_a_file_of_strangers_is_tried_and_a_signed_one_is_not(saved, monkeypatch):
    path, expected = saved
    with monkeypatch.context() as no_process:
        no_process.setattr(trial, "COMMAND", ["/no/such/python"])
        with pytest.raises(ModelFileError, match="no process can be started"):
            softlearning.load(path)
        np.testing.assert_array_equal(softlearning.load(path, key=b"k" * 16).predict_proba(X), expected)
    np.testing.assert_array_equal(softlearning.load(path).predict_proba(X), expected)
