"""MLflow gets a run, and reads a model that it wrote."""

import warnings

import numpy as np
import pytest

from softlearning import load

OWN_NAME = "softlearning.estimators.classifier.SoftClassifier"


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
