"""A model in a notebook, in copies, and in the files of skops."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.datasets import load_iris

from softlearning import SoftClassifier, SoftRegressor
from softlearning.library import classifiers

OWN_NAME = "softlearning.estimators.classifier.SoftClassifier"


@pytest.fixture(scope="module")
def flowers():
    table = load_iris(as_frame=True)
    return table.data.iloc[:110], pd.Series(
        np.array(["setosa", "versicolor", "virginica"])[table.target[:110]], name="kind"
    )


@pytest.fixture(scope="module")
def model(flowers):
    return SoftClassifier(["logistic", "naive_bayes"], cv=3, column_types={}).fit(*flowers)


def test_a_notebook_shows_score_verdict_and_weights(model):
    page = model._repr_mimebundle_()["text/html"]
    assert f"{model.cv_score_['score']:.4g} on held-out rows" in page
    assert f"<td>logistic</td><td>{model.weights_['logistic']:.3f}</td>" in page
    assert "held-out" not in SoftClassifier()._repr_mimebundle_()["text/html"]


def test_names_are_escaped_in_a_notebook(flowers):
    row = replace(classifiers("paper")["naive_bayes"].specialists[0], name="<script>")
    model = SoftClassifier([row], cv=2).fit(*flowers)
    assert "<td>&lt;script&gt;</td>" in model._repr_mimebundle_()["text/html"]


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
