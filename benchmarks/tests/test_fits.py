"""Records of what specialists predict: fitted once, kept, and as good as the models before the test rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from softlearning import SoftClassifier
from softlearning.library import Specialist, classifiers
from softlearning_bench.datasets import dataset
from softlearning_bench.fits import Fits, Recorded, fit_row
from softlearning_bench.shared import Specialists, cell_of, outer_fold

ROWS = ("knn_5", "logistic", "naive_bayes")


@pytest.fixture(scope="module")
def part():
    row = dataset("A02_wine")
    return outer_fold(row, row.table(), 0, seed=42)


@pytest.fixture(scope="module")
def cell(part):
    return cell_of(part, "wine")


def test_what_a_folder_keeps_is_not_fitted_again(cell, tmp_path, monkeypatch):
    library = classifiers("paper")[ROWS]
    first = Fits(cell, tmp_path).cross_fit(library)
    monkeypatch.setattr("softlearning_bench.fits.fit_row", None)
    again = Fits(cell, tmp_path)
    assert_array_equal(again.cross_fit(library).oof, first.oof)
    assert set(again.everything()) == set(ROWS)
    assert not list(tmp_path.glob("*.part"))


def test_records_of_another_split_are_refused(cell, tmp_path):
    row = dataset("A02_wine")
    library = classifiers("paper")["naive_bayes"]
    Fits(cell, tmp_path).cross_fit(library)
    other = cell_of(outer_fold(row, row.table(), 1, seed=42), "wine")
    with pytest.raises(ValueError, match="another draw"):
        Fits(other, tmp_path).cross_fit(library)


def test_records_are_what_the_estimator_fits(part, cell):
    library = classifiers("paper")[ROWS]
    model = SoftClassifier(library, rule="uniform", calibrate=False, random_state=42).fit(part.X, part.y)
    fits = Fits(cell)
    assert_array_equal(fits.cross_fit(library).oof, model.record_.crossed.oof)
    P = model.specialist_predictions(part.X_test)
    for k, name in enumerate(model.specialists_):
        assert_array_equal(fits.of(next(iter(library[name]))).test, P[:, k])


def test_a_specialist_that_fails_is_arecord_too(cell, tmp_path):
    def broken(shape):
        raise RuntimeError("no such luck")

    row = Specialist("broken", "tree", broken, trusted=True)
    crossed = Fits(cell, tmp_path).cross_fit(classifiers("paper")["naive_bayes"] + row)
    assert crossed.library.names == ("naive_bayes",)
    assert "no such luck" in crossed.failures[0].error
    assert "no such luck" in Fits(cell, tmp_path).of(row).error


def test_the_average_of_the_folds_is_kept_where_it_is_asked_for(cell):
    row = next(iter(classifiers("paper")["naive_bayes"]))
    fitted = fit_row(row, cell, bag=True)
    assert fitted.bagged.shape == fitted.test.shape
    assert not np.array_equal(fitted.bagged, fitted.test)
    assert fit_row(row, cell).bagged is None


def test_arecord_answers_for_its_rows_alone():
    with pytest.raises(ValueError, match="test rows"):
        Recorded(np.eye(3)).predict_proba(np.zeros((2, 4)))


def test_an_outer_fold_goes_on_from_its_folder(part, tmp_path, monkeypatch):
    cheap = classifiers("paper")[ROWS]
    monkeypatch.setattr("softlearning_bench.shared.resolve", lambda library, task: cheap)
    weights = Specialists(part, "wine", tmp_path).default.weights_
    monkeypatch.setattr("softlearning_bench.fits.fit_row", None)
    assert_array_equal(Specialists(part, "wine", tmp_path).default.weights_, weights)
