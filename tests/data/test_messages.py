"""Words for people: nearest names, printable names."""

import pytest

from softlearning.data.messages import closest, nearest, printable


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Target", "TARGET"),
        ("targt", "TARGET"),
        ("AGE", "age"),
        ("q", None),
        ("heigth", "height"),
        ("area", None),
    ],  # which is no way to spell TARGET
)
def test_the_nearest_name_is_found_whatever_the_case(name, found):
    assert closest(name, ["age", "TARGET", "height", 3]) == found


def test_an_exact_name_but_for_case_comes_before_one_spelt_alike():
    assert closest("Targets", ["target", "TARGETS"]) == "TARGETS"


def test_where_nothing_is_near_the_names_are_listed():
    assert nearest("zzz", ["a", "b", "c"], most=2) == "there are: a, b, ..."
    assert nearest("zzz", []) == "there are none"


def test_control_characters_are_spelt_out():
    assert printable("a\x1b[31mb\n\u202e") == "a\\x1b[31mb\\n\\u202e"
    assert printable("Größe 年齢") == "Größe 年齢"
