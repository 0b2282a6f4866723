"""Saved models: what comes back is what was saved, in another process, bit for bit; nothing half-written is left."""

import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from softlearning import Library, SoftClassifier, SoftRegressor, Specialist, load
from softlearning.library import classifiers, every_row
from softlearning.storage import ModelFileError, read_model, write_model

ROOT = Path(__file__).resolve().parents[2]
STATES = {"plain": {"calibrate": False}, "calibrated": {"calibrate": True}, "selective": {"calibrate": True}}


def numbers(task, n=90, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] - X[:, 1] ** 2 + rng.normal(scale=0.3, size=n)
    return X, y if task == "regression" else np.digitize(y, [-1.5, 0.0])


def table(n=80):
    """A column of each kind: numbers with missing values, categories, dates, text."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "colour": rng.choice(["red", "green", "blue", None], n),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, n), "D"),
            "note": [f"{a} went to {b} {k}" for k, (a, b) in enumerate(rng.choice(["anna", "bob", "carl"], (n, 2)))],
        }
    )
    return frame, np.where(frame["colour"] == "red", "yes", "no")


def answers(model, X, state="plain"):
    """All that a model says of some rows, as arrays."""
    if isinstance(model, SoftRegressor):
        low, high = model.predict_interval(X) if state == "selective" else (0.0, 0.0)
        return [*model.predict(X, return_std=True), np.add(low, high)]
    labels, accepted = model.predict_selective(X) if state == "selective" else (model.predict(X), True)
    return [model.predict_proba(X), model.disagreement(X), labels, np.asarray(accepted)]


FRESH = """
import sys, numpy as np
from softlearning import load
from tests.storage.test_storage import answers
for path, state in zip(sys.argv[1::2], sys.argv[2::2]):
    model = load(path)
    rows = np.load(path + ".rows.npy")
    np.savez(path + ".answers.npz", *answers(model, rows, state))
"""


def in_a_fresh_process(cases):
    """Answers of saved models, given by a process that has only the files."""
    arguments = [text for path, state in cases for text in (str(path), state)]
    subprocess.run([sys.executable, "-W", "error", "-c", FRESH, *arguments], check=True, cwd=ROOT, timeout=900)
    return [list(np.load(f"{path}.answers.npz", allow_pickle=False).values()) for path, _ in cases]


def check_round_trips(models, folder):
    """[(model, rows, state)] all answer the same, bit for bit, after a journey through a file."""
    cases = []
    for k, (model, rows, state) in enumerate(models):
        path = folder / f"{k}.model"
        model.save(path)
        np.save(f"{path}.rows.npy", rows)
        cases.append((path, state))
    for (model, rows, state), given in zip(models, in_a_fresh_process(cases)):
        for ours, theirs in zip(answers(model, rows, state), given, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=f"{model}")


def one_specialist(row, task, state):
    """A model of one specialist, and where it reads others, of these."""
    X, y = numbers(task)
    library = [row] if row.level == 1 else ["naive_bayes", "decision_tree", row]
    if task == "regression":
        return SoftRegressor(library, cv=3, rule="uniform").fit(X, y)
    return SoftClassifier(library, cv=3, rule="uniform", **STATES[state]).fit(X, y)


FAST = {
    "classification": ("knn_5", "decision_tree", "hist_gradient_boosting", "svm_rbf", "mlp_small", "spline_logistic"),
    "regression": ("ridge", "knn_15", "extra_trees", "catboost", "svr_rbf"),
}


@pytest.mark.parametrize("task", FAST)
def test_a_model_answers_bit_for_bit_alike_in_a_fresh_process(task, tmp_path):
    rows = numbers(task, n=50, seed=9)[0]
    make = SoftRegressor if task == "regression" else SoftClassifier
    model = make(list(FAST[task]), rule="uniform", cv=3).fit(*numbers(task))
    check_round_trips([(model, rows, "selective")], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("task", FAST)
def test_every_specialist_in_every_state_answers_bit_for_bit_alike_in_a_fresh_process(task, tmp_path):
    rows = numbers(task, n=50, seed=9)[0]
    models = [(one_specialist(row, task, state), rows, state) for row in every_row(task) for state in STATES]
    assert len(models) >= 45
    check_round_trips(models, tmp_path)


def test_a_table_with_categories_dates_text_and_missing_values_round_trips(tmp_path):
    frame, y = table()
    model = SoftClassifier(["logistic", "hist_gradient_boosting", "catboost"], rule="uniform", cv=3).fit(frame, y)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.table_ == model.table_


def test_a_sparse_table_round_trips(tmp_path):
    X, y = numbers("classification")
    X = sp.csr_matrix(np.where(X > 0, X, 0))
    model = SoftClassifier(["logistic", "knn_5", "svm_rbf", "random_forest"], rule="uniform", cv=3).fit(X, y)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict_proba(X), model.predict_proba(X))


@pytest.fixture(scope="module")
def small():
    X, y = numbers("classification")
    return SoftClassifier("fast", cv=3, random_state=1).fit(X, y)


def test_everything_that_was_learned_comes_back(small, tmp_path):
    small.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    pd.testing.assert_series_equal(loaded.weights_, small.weights_)
    pd.testing.assert_series_equal(loaded.certificate_, small.certificate_)
    pd.testing.assert_frame_equal(loaded.leaderboard_, small.leaderboard_)
    pd.testing.assert_frame_equal(loaded.failures_, small.failures_)
    np.testing.assert_array_equal(loaded.oof_, small.oof_)
    assert loaded.get_params() == small.get_params()
    assert list(loaded.specialists_) == list(small.specialists_)
    assert loaded.cv_risk_ == small.cv_risk_


def test_a_loaded_model_recombines_and_saves_again(small, tmp_path):
    small.save(tmp_path / "a")
    loaded = load(tmp_path / "a")
    X, y = numbers("classification")
    again = loaded.recombine(rule="uniform", X=X, y=y)
    np.testing.assert_array_equal(again.predict_proba(X), small.recombine(rule="uniform", X=X, y=y).predict_proba(X))
    loaded.save(tmp_path / "b")
    np.testing.assert_array_equal(load(tmp_path / "b").predict_proba(X), small.predict_proba(X))


def test_models_of_folds_round_trip(tmp_path):
    X, y = numbers("regression")
    model = SoftRegressor("fast", cv=3, refit=False).fit(X, y)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert [len(models) for models in loaded.specialists_.values()] == [3] * len(model.specialists_)


def test_equal_models_give_equal_members(small, tmp_path):
    for name in ("a", "b"):
        small.save(tmp_path / name)
    files = [zipfile.ZipFile(tmp_path / name) for name in ("a", "b")]
    members = [{n: f.read(n) for n in f.namelist() if n != "manifest.json"} for f in files]
    assert members[0] == members[1]


def test_without_its_out_of_fold_predictions_a_file_is_smaller_and_the_model_predicts(small, tmp_path):
    small.save(tmp_path / "with")
    small.save(tmp_path / "without", keep_oof=False)
    assert (tmp_path / "without").stat().st_size < (tmp_path / "with").stat().st_size
    X, _ = numbers("classification")
    bare = load(tmp_path / "without")
    np.testing.assert_array_equal(bare.predict_proba(X), small.predict_proba(X))
    for call in (bare.predict_set, bare.predict_selective, lambda _: bare.recombine(rule="uniform"), bare.slimming):
        with pytest.raises(ValueError, match="saved without its out-of-fold predictions"):
            call(X)
    with pytest.raises(ValueError, match="saved without its out-of-fold predictions"):
        bare.drop(bare.weights_.index[0])


def test_a_model_is_read_and_written_without_its_class(small, tmp_path):
    small.save(tmp_path / "a")
    found = read_model(tmp_path / "a")
    assert found.kind == "SoftClassifier"
    assert found.params == small.get_params(deep=False)
    write_model(tmp_path / "b", found.kind, found.params, found.learned)
    assert load(tmp_path / "b").weights_.equals(small.weights_)


def test_what_a_model_takes_is_limited(small, tmp_path):
    small.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="max_bytes"):
        load(tmp_path / "m", max_bytes=200_000)


def test_the_manifest_tells_what_the_file_holds(small, tmp_path):
    small.save(tmp_path / "m")
    manifest = json.loads(zipfile.ZipFile(tmp_path / "m").read("manifest.json"))
    assert manifest["model"] == "SoftClassifier"
    assert {"softlearning", "scikit-learn", "numpy", "catboost", "lightgbm"} <= manifest["versions"].keys()
    assert sum(manifest["weights"].values()) == pytest.approx(1)
    assert manifest["certificate"]["gap"] == pytest.approx(small.certificate_["gap"])
    assert "4" in manifest["input"]


def test_what_cannot_be_stored_becomes_a_note(tmp_path):
    X, y = numbers("classification")
    library = (
        Library((Specialist("own", "linear", lambda shape: LogisticRegression()),)) + classifiers("fast")["knn_15"]
    )
    model = SoftClassifier(library, rule="uniform", cv=3).fit(X, y)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.library is None
    assert "own" in loaded._notes["library"]
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    rows = {row.name: row for row in loaded.record_.library}
    assert rows["knn_15"].make is classifiers("fast")["knn_15"].specialists[0].make
    with pytest.raises(ValueError, match="'own' came from a file"):
        rows["own"].make(None)


class OwnClassifier(ClassifierMixin, BaseEstimator):
    """A user's own class."""

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)

    def predict(self, X):
        return self.inner_.predict(X)


def test_a_class_of_the_user_is_loaded_only_by_its_exact_name(tmp_path):
    X, y = numbers("classification")
    model = SoftClassifier([("own", OwnClassifier())], cv=3).fit(X, y)
    name = f"{OwnClassifier.__module__}.OwnClassifier"
    with pytest.warns(UserWarning, match="to read it: load"):
        model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match=rf"{name}.*trusted="):
        load(tmp_path / "m")
    with pytest.raises(ModelFileError, match="not on the list"):
        load(tmp_path / "m", trusted=[name + "2", OwnClassifier.__module__, "*"])
    np.testing.assert_array_equal(load(tmp_path / "m", trusted=[name]).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("trusted", ["tests", True, [OwnClassifier]])
def test_trust_is_a_list_of_names_never_a_switch(small, tmp_path, trusted):
    small.save(tmp_path / "m")
    with pytest.raises(TypeError):
        load(tmp_path / "m", trusted=trusted)


def test_kinds_of_columns_and_callbacks(tmp_path):
    """Plain parameters come back; whoever watched the fit does not."""
    X, y = numbers("regression")
    X = np.column_stack([X, np.arange(len(X)) % 3])
    model = SoftRegressor(["ridge"], cv=3, column_types={"x4": "category"}).fit(X, y)
    model._skl_callbacks = [object()]
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.column_types == {"x4": "category"}
    assert not hasattr(loaded, "_skl_callbacks")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_what_loading_would_refuse_is_not_written(tmp_path):
    X, y = numbers("classification")
    rare = make_pipeline(OneHotEncoder(min_frequency=2, handle_unknown="ignore"), LogisticRegression())
    model = SoftClassifier([("rare", rare)], cv=3).fit(np.round(X), y)
    with pytest.raises(ModelFileError, match="rare categories"):
        model.save(tmp_path / "m")
    model.notes_ = (x for x in [1])
    with pytest.raises(ModelFileError, match="cannot be stored"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="modes are a matter of POSIX systems")
def test_a_file_is_for_its_owner_alone_and_a_link_to_it_stays(small, tmp_path):
    (tmp_path / "link").symlink_to("target")
    small.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o600
    assert load(tmp_path / "link").get_params() == small.get_params()


def test_a_loaded_model_starts_no_processes_and_keeps_its_own_number_of_jobs(tmp_path):
    X, y = numbers("classification")
    bagged = BaggingClassifier(LogisticRegression(), n_estimators=2, n_jobs=2)
    model = SoftClassifier([("bagged", bagged)], cv=3, n_jobs=2, refit=True).fit(X, y)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.n_jobs == 2
    assert loaded.specialists_["bagged"].n_jobs == 1
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(small, tmp_path, monkeypatch):
    path = tmp_path / "m"
    small.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        small.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_signed_file_is_read_only_with_its_key(small, tmp_path):
    small.save(tmp_path / "signed", key=b"secret")
    small.save(tmp_path / "plain")
    assert load(tmp_path / "signed", key=b"secret").get_params() == small.get_params()
    with pytest.raises(ModelFileError, match="another key"):
        load(tmp_path / "signed", key=b"other")
    with pytest.raises(ModelFileError, match="not signed"):
        load(tmp_path / "plain", key=b"secret")
    assert load(tmp_path / "signed").get_params() == small.get_params()


@pytest.mark.parametrize("key", [b"", "", "secret", 3])
def test_an_empty_key_or_one_that_is_not_bytes_is_an_error(small, tmp_path, key):
    with pytest.raises(ValueError, match="cannot be empty"):
        small.save(tmp_path / "m", key=key)
    small.save(tmp_path / "m")
    with pytest.raises(ValueError, match="cannot be empty"):
        load(tmp_path / "m", key=key)


def rewrite(path, change):
    """The same file with a changed manifest."""
    with zipfile.ZipFile(path) as file:
        members = [(info, file.read(info)) for info in file.infolist()]
    with zipfile.ZipFile(path, "w") as file:
        for info, data in members:
            if info.filename == "manifest.json":
                manifest = json.loads(data)
                change(manifest)
                data = json.dumps(manifest).encode()
            file.writestr(info, data)


def test_another_series_of_scikit_learn_is_refused_and_both_versions_are_named(small, tmp_path):
    small.save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda manifest: manifest["versions"].update({"scikit-learn": "1.2.2"}))
    with pytest.raises(ModelFileError, match=r"scikit-learn 1\.2\.2, and this is \d"):
        load(tmp_path / "m")


def test_another_version_of_softlearning_is_no_obstacle(small, tmp_path):
    small.save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda manifest: manifest["versions"].update({"softlearning": "0.0.1"}))
    assert load(tmp_path / "m").get_params() == small.get_params()


def test_another_patch_of_scikit_learn_or_version_of_catboost_loads_with_a_warning(small, tmp_path):
    small.save(tmp_path / "m")
    rewrite(tmp_path / "m", lambda manifest: manifest["versions"].update({"catboost": "1.0.0"}))
    with pytest.warns(UserWarning, match=r"saved with catboost 1\.0\.0"):
        assert load(tmp_path / "m").get_params() == small.get_params()
