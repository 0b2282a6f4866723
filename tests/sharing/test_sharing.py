"""What goes to a team: the card tells the truth, a notebook shows weights, MLflow gets a run, causal users folds."""

import copy
import pickle
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold

from softlearning import SoftClassifier, SoftRegressor, load
from softlearning.library import classifiers
from softlearning.sharing.card import model_card
from softlearning.sharing.causal import (
    ClippedPropensity,
    cross_predictions,
    external_predictions,
    partially_linear_effect,
)

OWN_NAME = "softlearning.estimators.classifier.SoftClassifier"
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


@pytest.fixture(scope="module")
def flowers():
    table = load_iris(as_frame=True)
    return table.data.iloc[:110], pd.Series(
        np.array(["setosa", "versicolor", "virginica"])[table.target[:110]], name="kind"
    )


@pytest.fixture(scope="module")
def model(flowers):
    return SoftClassifier(["logistic", "naive_bayes"], cv=3, column_types={}).fit(*flowers)


def test_a_card_tells_what_was_learnt_and_for_whom_not(model, tmp_path):
    model.save(tmp_path / "flowers.model")
    card = model_card(load(tmp_path / "flowers.model"), tmp_path / "flowers.model")
    held = model.cv_score_
    told = [
        "# A model of `kind`",
        "110 rows",
        f"accuracy: {held['score']:.4g}",
        "flowers.model",
        "| `logistic` | `linear` |",
    ]
    for words in [*told, "`virginica` (10 rows)", "`petal length (cm)` 1 to", "scikit-learn 1."]:
        assert words in card
    assert "setosa` (" not in card


def test_names_in_a_card_are_shown_and_not_read_as_markdown(flowers):
    X, y = flowers
    odd = X.set_axis(["a|b", "c```d", "<b>e</b>", "```"], axis=1)
    row = replace(classifiers("paper")["naive_bayes"].specialists[0], name="one|two")
    card = model_card(SoftClassifier([row], cv=2, column_types={}).fit(odd, y.rename("# `kind`")))
    assert card.splitlines()[0] == "# A model of `` # `kind` ``"
    block = card.split("````text\n")[1].split("\n````\n")[0]
    assert [line.split()[0] for line in block.splitlines()] == ["a|b", "c```d", "<b>e</b>", "```"]
    assert r"| `one\|two` |" in card
    assert "`` ` ``" not in card
    assert "```` ``` ````" in card


def test_a_notebook_shows_score_verdict_and_weights(model):
    page = model._repr_mimebundle_()["text/html"]
    assert f"{model.cv_score_['score']:.4g} on held-out rows" in page
    assert f"<td>logistic</td><td>{model.weights_['logistic']:.3f}</td>" in page
    assert "held-out" not in SoftClassifier()._repr_mimebundle_()["text/html"]


def test_names_are_escaped_in_a_notebook(flowers):
    row = replace(classifiers("paper")["naive_bayes"].specialists[0], name="<script>")
    model = SoftClassifier([row], cv=2).fit(*flowers)
    assert "<td>&lt;script&gt;</td>" in model._repr_mimebundle_()["text/html"]


def test_mlflow_gets_settings_scores_and_files(model, flowers, tmp_path, monkeypatch):
    tracking = pytest.importorskip("mlflow.tracking", reason="needs the extra [mlflow]")
    from softlearning.sharing.tracking import log_to_mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "runs").as_uri()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = log_to_mlflow(model, uri, page=False)
        client = tracking.MlflowClient(tracking_uri=uri)
        data, folder = client.get_run(run).data, client.download_artifacts(run, "", str(tmp_path))
    assert data.metrics["cv_risk"] == pytest.approx(model.cv_risk_)
    assert data.metrics["weight.logistic"] == pytest.approx(model.weights_["logistic"])
    assert data.params["cv"] == "3"
    again = load(f"{folder}/model.softlearning")
    np.testing.assert_array_equal(again.predict(flowers[0]), model.predict(flowers[0]))


# -- causal -----------------------------------------------------------------------------------------------------------


def simulated(n, seed, effect=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    d = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    return X, d, effect * d + np.sin(X[:, 0]) + X[:, 1] + rng.normal(size=n)


def test_the_effect_of_a_treatment_is_found_from_out_of_fold_predictions():
    X, d, y = simulated(600, 0)
    folds = [list(KFold(3, shuffle=True, random_state=r).split(X)) for r in range(2)]
    outcome, treatment = SoftRegressor(["ridge"], cv=2), SoftClassifier(["logistic"], cv=2)
    given = external_predictions(outcome, treatment, X, y, d, folds)["d"]
    assert given["ml_l"].shape == given["ml_m"].shape == (600, 2)
    assert given["ml_m"].min() >= 0.01
    effect, error = partially_linear_effect(y, d, given["ml_l"][:, 0], given["ml_m"][:, 0])
    assert abs(effect - 0.5) < 3 * error
    naive = y[d == 1].mean() - y[d == 0].mean()
    assert abs(naive - 0.5) > 3 * error


def test_no_row_is_predicted_by_a_model_that_saw_it():
    X, _, y = simulated(90, 1)
    folds = list(KFold(3).split(X))
    found = cross_predictions(SoftRegressor(["ridge"], cv=2), X, y, folds)
    train, test = folds[1]
    np.testing.assert_allclose(found[test], SoftRegressor(["ridge"], cv=2).fit(X[train], y[train]).predict(X[test]))
    with pytest.raises(ValueError, match="partitions"):
        cross_predictions(SoftRegressor(["ridge"], cv=2), X, y, folds[:2])


def test_propensities_are_clipped():
    X, d, _ = simulated(200, 2)
    model = ClippedPropensity(SoftClassifier(["logistic"], cv=2), clip=0.2).fit(5 * X, d)
    P = model.predict_proba(5 * X)
    assert P.min() == pytest.approx(0.2)
    assert P.sum(axis=1) == pytest.approx(1)
    assert (model.predict(5 * X) == d).mean() > 0.6


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_intervals_of_a_known_effect_cover_over_200_simulations():
    lines = []
    for seed in range(200):
        X, d, y = simulated(300, seed)
        folds = list(KFold(3, shuffle=True, random_state=seed).split(X))
        outcome = cross_predictions(SoftRegressor(["ridge", "spline_ridge"], cv=2), X, y, folds)
        treatment = cross_predictions(SoftClassifier(["logistic"], cv=2), X, d, folds)
        effect, error = partially_linear_effect(y, d, outcome, treatment)
        lines.append(
            {"simulation": seed, "effect": effect, "std_error": error, "naive": y[d == 1].mean() - y[d == 0].mean()}
        )
    found = pd.DataFrame(lines).round(6)
    found["inside"] = (found["effect"] - 0.5).abs() <= 1.96 * found["std_error"]
    found.to_csv(RESULTS / "effect_coverage.csv", index=False)
    assert 0.92 <= found["inside"].mean() <= 0.98
    assert abs(found["effect"].mean() - 0.5) < 0.03 < abs(found["naive"].mean() - 0.5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["LinearDML", "LinearDRLearner"])
def test_econml_takes_the_models_as_nuisance_estimators(method):
    econml = pytest.importorskip(f"econml.{'dml' if method == 'LinearDML' else 'dr'}", reason="a package of its own")
    X, d, y = simulated(500, 0)
    outcome, treatment = SoftRegressor(["ridge"], cv=2), ClippedPropensity(SoftClassifier(["logistic"], cv=2))
    if method == "LinearDML":
        found = econml.LinearDML(model_y=outcome, model_t=treatment, discrete_treatment=True, cv=3, random_state=0)
    else:
        found = econml.LinearDRLearner(model_regression=outcome, model_propensity=treatment, cv=3, random_state=0)
    found.fit(y, d, X=X, sample_weight=np.ones(len(y)))
    low, high = found.ate_interval(X)
    assert low < 0.5 < high
    assert high - low < 0.6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_doubleml_takes_the_predictions():
    doubleml = pytest.importorskip("doubleml", reason="an optional package of its own")
    X, d, y = simulated(400, 3)
    data = doubleml.DoubleMLData.from_arrays(X, y, d)
    from doubleml.utils import DMLDummyClassifier, DMLDummyRegressor

    plr = doubleml.DoubleMLPLR(data, DMLDummyRegressor(), DMLDummyClassifier(), n_folds=3)
    given = external_predictions(SoftRegressor(["ridge"], cv=2), SoftClassifier(["logistic"], cv=2), X, y, d, plr.smpls)
    plr.fit(external_predictions=given)
    effect, error = partially_linear_effect(y, d, given["d"]["ml_l"][:, 0], given["d"]["ml_m"][:, 0])
    np.testing.assert_allclose([plr.coef[0], plr.se[0]], [effect, error], rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", [{}, {"serialization_format": "cloudpickle"}], ids=["default", "cloudpickle"])
def test_mlflow_logs_and_loads_a_model_by_its_own_serialisation(model, flowers, tmp_path, form):
    flavour = pytest.importorskip("mlflow.sklearn", reason="needs the extra [mlflow]")
    trust = {} if form else {"skops_trusted_types": [OWN_NAME]}
    try:
        flavour.save_model(model, tmp_path / "saved", **form, **trust)
    except ImportError as error:
        pytest.skip(f"this MLflow saves models only with {error.name}")
    again = flavour.load_model(str(tmp_path / "saved"))
    np.testing.assert_array_equal(again.predict(flowers[0]), model.predict(flowers[0]))


def test_skops_stores_a_fitted_model_as_its_own_file(model, flowers):
    data = skops.io.dumps(model)
    assert skops.io.get_untrusted_types(data=data) == [OWN_NAME]
    again = skops.io.loads(data, trusted=[OWN_NAME])
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict_proba(flowers[0]), model.predict_proba(flowers[0]))
    unfitted = skops.io.loads(skops.io.dumps(SoftClassifier(cv=3)), trusted=[OWN_NAME])
    assert unfitted.cv == 3
    assert not hasattr(unfitted, "record_")


def test_a_skops_file_of_another_model_is_refused(model):
    with pytest.raises(TypeError, match="holds a SoftClassifier"):
        SoftRegressor().__setstate__(model.__getstate__())


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_and_pickles_keep_the_attributes(model, flowers, again):
    other = again(model)
    assert vars(other).keys() == vars(model).keys()
    np.testing.assert_array_equal(other.predict_proba(flowers[0]), model.predict_proba(flowers[0]))
