"""Equal things have equal fingerprints, different ones do not, and edited code is different."""

import functools
import importlib
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

from softlearning.execution import Shared
from softlearning.execution.fingerprint import fingerprint, is_users, origin


class Fitted:
    def __init__(self, x):
        self.x = x


def adder(n):
    return lambda x: x + n


FRAME = pd.DataFrame({"a": [1.0, np.nan], "b": pd.Categorical(["u", None]), "c": ["x", None], "d": [1, 2]})
DIFFERENT = [
    *(1, 1.0, True, "1", b"1", None, np.float64(1), np.float32(1), -0.0, 0.0, 1e300, np.nan, [1], (1,), {1}, {"a": 1}),
    *(np.zeros(2), np.zeros((2, 1)), np.zeros((1, 2)), np.zeros(2, np.float32), np.array([0, -0.0])),
    *(["ab", "c"], ["a", "bc"], [["a"], "b"], [[], ["a", "b"]], np.array(["ab", "c"]), np.array(["a", 1], object)),
    *(FRAME, FRAME.rename(columns={"a": "z"}), FRAME[["b", "a", "c", "d"]], FRAME.iloc[::-1], FRAME.fillna({"a": 0.0})),
    *(
        FRAME.assign(b=pd.Categorical(["u", "u"])),
        FRAME.assign(c=["x", "None"]),
        FRAME.astype({"d": "Int64"}),
        FRAME["a"],
    ),
    *(
        sparse.csr_array(np.eye(2)),
        sparse.csr_array(np.eye(3)),
        sparse.csc_array(np.eye(2)),
        sparse.coo_array(np.eye(2)),
    ),
    *(LogisticRegression(), LogisticRegression(C=2), Ridge(), Ridge, Fitted(1), Fitted(2), Fitted, Fitted(Fitted(1))),
    *(adder(1), adder(2), lambda x: x - 1, lambda x: x - 2, functools.partial(max, 1), functools.partial(max, 2), max),
]


def test_different_things_have_different_fingerprints():
    prints = [fingerprint(thing) for thing in DIFFERENT]
    assert len(set(prints)) == len(DIFFERENT)


def test_equal_things_have_equal_fingerprints_in_another_process():
    code = "from tests.execution.test_fingerprint import DIFFERENT, fingerprint; print(*map(fingerprint, DIFFERENT))"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=fresh_hash())
    assert seen.stdout.split() == [fingerprint(thing) for thing in DIFFERENT]


def fresh_hash():
    return os.environ | {"PYTHONHASHSEED": "7"}


def test_a_function_is_known_by_what_it_calls_too():
    def names(helper):
        scope = {"__name__": "script"}
        exec(f"def helper(): return {helper}\ndef make(): return helper()", scope)
        return scope["make"]

    assert fingerprint(names(1)) == fingerprint(names(1))
    assert fingerprint(names(1)) != fingerprint(names(2))


def test_a_thing_that_holds_itself_is_refused():
    thing = Fitted(1)
    thing.x = [thing]
    with pytest.raises(ValueError, match="cyclic"):
        fingerprint(thing)


def test_it_does_not_matter_where_the_data_lies(rng):
    X = rng.normal(size=(6, 4))
    assert fingerprint(X) == fingerprint(np.asfortranarray(X)) == fingerprint(np.hstack([X, X])[:, :4])
    assert fingerprint(Shared(held=X)) == fingerprint(Shared(held=X.copy())) != fingerprint(Shared(held=X + 1))


# -------------------------------------------------------------------------------------------------- code of the user

PARTS = {
    "users_estimator.py": "from users_helper import scale\nimport users_package.deep\n\n\nclass Mine:\n    C = 1\n\n"
    "    def fit(self):\n        from users_lazy import late\n        return scale(late) * self.C\n",
    "users_helper.py": "RATE = 2\n\n\ndef scale(x):\n    return RATE * x\n",
    "users_lazy.py": "late = 3\n",
    "users_package/__init__.py": "",
    "users_package/deep.py": "from . import sister\n",
    "users_package/sister.py": "x = 1\n",
}


@pytest.fixture
def users_code(tmp_path, monkeypatch):
    """A module of a user with helpers: gives the class and the folder."""
    (tmp_path / "users_package").mkdir()
    for name, text in PARTS.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("users_estimator").Mine, tmp_path
    for name in [name for name in sys.modules if name.startswith("users_")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", PARTS)
def test_a_class_is_another_when_a_file_that_it_reaches_was_edited(users_code, name):
    mine, folder = users_code
    before = fingerprint(mine())
    assert fingerprint(mine()) == before
    (folder / name).write_text(PARTS[name] + "x = 17\n")
    assert fingerprint(mine()) != before


def test_a_file_that_is_not_reached_changes_nothing(users_code):
    mine, folder = users_code
    before = fingerprint(mine())
    (folder / "users_other.py").write_text("x = 1\n")
    assert fingerprint(mine()) == before


def test_whose_code_it_is(users_code):
    mine, _ = users_code
    assert is_users(sys.modules[mine.__module__])
    for name in ("numpy", "json", "softlearning.execution", "__main__"):
        assert not is_users(sys.modules[name])
    assert (origin("__main__"), origin("numpy")) == ("", np.__version__)


def script(text):
    """The namespace of a script, as a notebook has it."""
    scope = {"__name__": "__main__"}
    exec(text, scope)
    return scope


SCRIPT = """
RATE = {rate}
def helper(x): return x * {factor}
class Base: offset = {offset}
class Mine(Base):
    @staticmethod
    def fit(x): return (lambda: helper(x) + RATE)()
"""


@pytest.mark.parametrize("change", ["rate", "factor", "offset"])
def test_in_a_script_constants_helpers_and_bases_count(change):
    same = {"rate": 1, "factor": 2, "offset": 3}
    make = lambda settings: fingerprint(script(SCRIPT.format(**settings))["Mine"])
    assert make(same) == make(same)
    assert make(same) != make(same | {change: 9})
