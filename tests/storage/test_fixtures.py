"""Files that earlier versions wrote load in this one and answer as they did.

`python -m tests.storage.test_fixtures` writes the file of this version; a released one is never written again.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn

from softlearning import SoftClassifier, __version__, load
from softlearning.data.versions import series
from softlearning.storage import ModelFileError

FOLDER = Path(__file__).parent / "fixtures"
FIXTURES = sorted(FOLDER.glob("*.soft"))


def table(n=40):
    """Numbers with missing values, categories and dates."""
    k = np.arange(n)
    frame = pd.DataFrame({"size": np.where(k % 7 == 3, np.nan, np.sin(k)), "weight": (k * 37 % 11) / 10})
    frame["colour"] = np.array(["red", "green", "blue"])[k * 5 % 3]
    frame["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(k * 11 % 90, "D")
    return frame, np.where(np.nan_to_num(frame["size"]) + frame["weight"] > 0.5, "yes", "no")


def write():
    """The file of this version and its answers."""
    frame, y = table()
    model = SoftClassifier(["logistic", "knn_5", "decision_tree"], rule="uniform", cv=2, refit=True).fit(frame, y)
    FOLDER.mkdir(exist_ok=True)
    model.save(FOLDER / f"{__version__}.soft")
    answers = {"scikit-learn": sklearn.__version__, "probability": model.predict_proba(frame)[:, 1].tolist()}
    (FOLDER / f"{__version__}.json").write_text(json.dumps(answers))


def test_there_is_a_file_of_this_version():
    assert f"{__version__}.soft" in [path.name for path in FIXTURES]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore:the model was saved with")
def test_a_file_of_an_earlier_version_answers_as_it_did(path):
    assert path.stat().st_size < 40_000
    told = json.loads(path.with_suffix(".json").read_text())
    if series(told["scikit-learn"]) != series(sklearn.__version__):
        with pytest.raises(ModelFileError, match=f"scikit-learn {told['scikit-learn']}"):
            load(path)
        return
    probability = load(path).predict_proba(table()[0])[:, 1]
    # a row at distance 0 from its neighbour is at 1e-8 on another processor: the root of a rounding error
    np.testing.assert_allclose(probability, told["probability"], rtol=0, atol=1e-6)


if __name__ == "__main__":
    write()
