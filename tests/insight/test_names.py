"""The map of `softlearning.insight` leads to things that exist, and costs nothing until used."""

import importlib
import subprocess
import sys

import pytest

from softlearning import insight


@pytest.mark.parametrize("name", insight.__all__)
def test_every_name_leads_somewhere(name):
    assert getattr(insight, name) is not None
    assert name in dir(insight)


def test_every_module_is_on_the_map():
    assert all(f"    {module} " in insight.__doc__ for module in insight._NAMES)
    assert importlib.import_module("softlearning.insight.disagreement").disagreement is not None


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'dout'"):
        insight.dout  # noqa: B018


def test_array_functions_load_neither_scikit_learn_nor_pandas():
    code = "import sys; from softlearning.insight import oracle_bound, calibrate_set, why_these_weights, tree_radius; "
    code += "assert not {'sklearn', 'pandas'} & set(sys.modules), 'heavy'"
    subprocess.run([sys.executable, "-c", code], check=True)
