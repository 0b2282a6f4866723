"""Networks that share their layers: what is trained with PyTorch predicts, and is saved, without it."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1, make_moons

from softlearning import SoftClassifier, load
from softlearning.library import classifiers, deep
from softlearning.library.deep import SharedNetworksClassifier, SharedNetworksRegressor, forward

QUICK = {"members": 3, "layers": 2, "width": 16, "epochs": 40, "random_state": 0}


@pytest.fixture(autouse=True, scope="module")
def torch():
    return pytest.importorskip("torch", reason="the extra torch is not installed")


def test_numpy_predicts_what_pytorch_trained(torch):
    net = deep.shared_layers(torch, 4, members=3, layers=2, width=8, dropout=0.5, outputs=2)
    net.eval()
    X = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
    with torch.no_grad():
        expected = net(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(forward(X, net.arrays()), expected, atol=1e-5)


def test_it_learns_what_a_line_cannot_and_repeats_itself():
    X, y = make_moons(400, noise=0.15, random_state=0)
    labels = np.array(["in", "out"])[y]
    first, second = (SharedNetworksClassifier(**QUICK | {"epochs": 150}).fit(X[:300], labels[:300]) for _ in range(2))
    assert first.score(X[300:], labels[300:]) > 0.94
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def test_numbers_and_weights(rng):
    X, y = make_friedman1(300, random_state=0)
    X, y = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
    model = SharedNetworksRegressor(**QUICK | {"epochs": 100}).fit(X, y)
    assert model.score(X, y) > 0.8
    heavy = SharedNetworksRegressor(**QUICK).fit(X, np.where(y > 0, 1.0, -1.0), np.where(y > 0, 50.0, 1.0))
    assert heavy.predict(X).mean() > 0.5


def test_a_saved_blend_with_it_predicts_the_same(tmp_path):
    X, y = make_moons(120, noise=0.2, random_state=0)
    model = SoftClassifier(["shared_networks", "logistic"], rule="uniform").fit(X, y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), model.predict_proba(X))


def test_best_has_it_only_where_pytorch_is(monkeypatch):
    assert "shared_networks" in classifiers("best")
    monkeypatch.setattr("softlearning.library.torch_is_here", lambda: False)
    assert "shared_networks" not in classifiers("best")
