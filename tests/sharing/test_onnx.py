"""A blend as an ONNX graph says what the model says; what cannot go is named, and then nothing is written."""

import warnings

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification, make_friedman1

from softlearning import SoftClassifier, SoftRegressor
from softlearning.cli import main

pytest.importorskip("skl2onnx", reason="needs the extra [onnx]")
runtime = pytest.importorskip("onnxruntime", reason="needs the extra [onnx]")

from softlearning.sharing.onnx import CannotExport, export_onnx, export_what_can  # noqa: E402


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def answers(path, X):
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {"X": np.asarray(X, dtype=float)})[0]


def test_probabilities_are_those_of_the_model(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    model = SoftClassifier(["logistic", "naive_bayes", "decision_tree"], rule="uniform", cv=3).fit(X, y)
    worst = export_onnx(model, tmp_path / "m.onnx")
    assert worst <= 1e-5
    np.testing.assert_allclose(answers(tmp_path / "m.onnx", X), model.predict_proba(X), atol=1e-5)


def test_numbers_of_a_frame_and_boosting_go_too(tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.astype(np.float32).astype(float)
    model = SoftRegressor(["ridge", "decision_tree", "lightgbm"], rule="uniform", cv=2).fit(X, y)
    export_onnx(model, tmp_path / "m.onnx", X)
    np.testing.assert_allclose(answers(tmp_path / "m.onnx", X)[:, 0], model.predict(X), rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "specialists", "ask"),
    [
        (make_classification, ["logistic", "extra_trees", "lightgbm", "catboost"], "predict_proba"),
        (make_friedman1, ["ridge", "extra_trees", "lightgbm", "catboost"], "predict"),
    ],
)
def test_a_thousand_new_rows_are_answered_alike(tmp_path, make, specialists, ask):
    X, y = make(1_400, n_features=10, random_state=0)
    X = X.astype(np.float32).astype(float)
    Soft = SoftClassifier if ask == "predict_proba" else SoftRegressor
    model = Soft(specialists, rule="uniform", cv=2).fit(X[:400], y[:400])
    export_onnx(model, tmp_path / "m.onnx")
    exported = answers(tmp_path / "m.onnx", X[400:])
    wanted = getattr(model, ask)(X[400:])
    np.testing.assert_allclose(exported.reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-5)


def test_three_classes_of_a_booster_that_converts_itself(tmp_path):
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32).astype(float)
    model = SoftClassifier(["logistic", "catboost"], rule="uniform", cv=2).fit(X, y)
    export_onnx(model, tmp_path / "m.onnx")
    np.testing.assert_allclose(answers(tmp_path / "m.onnx", X), model.predict_proba(X), atol=1e-5)


def test_members_that_cannot_go_are_named_and_nothing_is_written(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = SoftRegressor(["ridge", "svr"], rule="uniform", cv=2).fit(X, y)
    with pytest.raises(CannotExport, match=r"1 of 2 members cannot go \(svr: "):
        export_onnx(model, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()
    words = SoftRegressor(["ridge"], cv=2).fit(pd.DataFrame({"a": y, "kind": ["x", "y"] * 221}), y)
    with pytest.raises(CannotExport, match="kind"):
        export_onnx(words, tmp_path / "m.onnx")


def test_a_graph_of_the_members_that_can_go_says_what_the_others_were_worth(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = SoftRegressor(["ridge", "svr", "decision_tree"], rule="uniform", cv=2).fit(X, y)
    model.save(tmp_path / "m")
    where = ["export", str(tmp_path / "m"), "--onnx", str(tmp_path / "m.onnx")]
    assert CliRunner().invoke(main, where).exit_code == 1
    done = CliRunner().invoke(main, [*where, "--drop"])
    assert done.exit_code == 0, done.output
    rest = model.drop(["svr"])
    assert f"2 of 3 members could go, weighted anew: held-out loss {rest.cv_risk_:.4g}, with all" in done.output
    np.testing.assert_allclose(answers(tmp_path / "m.onnx", X)[:, 0], rest.predict(X), rtol=1e-5)
    alone = SoftRegressor(["svr"], cv=2).fit(X, y)
    with pytest.raises(CannotExport, match="1 of 1 members cannot go"):
        export_what_can(alone, tmp_path / "n.onnx")


def test_the_command_exports_and_writes_a_card(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    SoftRegressor(["ridge"], cv=2).fit(X, pd.Series(y, name="progress")).save(tmp_path / "m")
    done = CliRunner().invoke(main, ["export", str(tmp_path / "m"), "--onnx", str(tmp_path / "m.onnx")])
    assert done.exit_code == 0, done.output
    assert "largest difference" in done.output
    assert (tmp_path / "m.onnx").stat().st_size > 100
    assert "# A model of `progress`" in CliRunner().invoke(main, ["card", str(tmp_path / "m")]).output
