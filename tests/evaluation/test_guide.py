"""The guide to aims says what happens."""

import doctest
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "aims.rst"


def test_every_snippet_of_the_guide_gives_what_it_shows():
    failed, tried = doctest.testfile(str(GUIDE), module_relative=False)
    assert tried > 20
    assert failed == 0
