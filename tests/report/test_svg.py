"""Charts are well-formed, keep inside their frame, and say what they show."""

import math
from xml.etree import ElementTree

import pytest

from softlearning.report import svg
from softlearning.report.svg import Bar, Plane, Point, Series

PLANE = Plane((0, 10), (-5, 5), "x name", "y name")
CHARTS = {
    "bars": lambda: svg.bars([Bar("a", 0.5, 0.1, 0.9), Bar("b & <b>", -0.2)], "title", "about"),
    "no bars": lambda: svg.bars([Bar("a", 0.0)], "title", "about"),
    "columns": lambda: svg.columns([1, 2, 0], [0, 1, 2, 3], PLANE, "title", "about"),
    "lines": lambda: svg.lines([Series("one", [0, 10], [0, 5], "line")], PLANE, "title", "about"),
    "diagonal": lambda: svg.against_diagonal([Point(1, 1, 0, 2, "here")], PLANE, "title", "about"),
    "scatter": lambda: svg.scatter([1, 2], [3, 4], PLANE, "title", "about"),
    "heat": lambda: svg.heat(["a", "b"], [[1, 0], [0, 1]], [["1", ""], ["", "1"]], "about", title="title",
                             strength=[[1, -0.5], [0.5, 1]]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_well_formed_and_carries_title_and_description(name):
    root = ElementTree.fromstring(str(CHARTS[name]()))
    assert [root.find(tag).text for tag in ("title", "desc")] == ["title", "about"]
    assert root.get("role") == "img"


@pytest.mark.parametrize("name", CHARTS)
def test_every_mark_lies_inside_the_frame(name):
    root = ElementTree.fromstring(str(CHARTS[name]()))
    _, _, width, height = map(float, root.get("viewBox").split())
    for mark in root.iter():
        for across, upright in (("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")):
            if mark.get(across) is not None:
                assert 0 <= float(mark.get(across)) <= width
                assert 0 <= float(mark.get(upright)) <= height


def test_longer_bars_stand_for_larger_numbers():
    root = ElementTree.fromstring(str(svg.bars([Bar("a", 1.0), Bar("b", 0.25)], "title", "about")))
    first, second = (float(rect.get("width")) for rect in root.iter("rect"))
    assert first == pytest.approx(4 * second, rel=0.01)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.2, 8), (1e-9, 2e-9), (1e8, 3e8), (5, 5)])
def test_ticks_are_few_round_and_inside(low, high):
    found = svg.ticks(low, high)
    assert 1 <= len(found) <= 7
    assert all(low - 1e-9 * abs(low) <= tick <= high * (1 + 1e-9) for tick in found)


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (0.12345, "0.123"), (-1.5, "−1.5"), (1234567, "1,234,567"), (1e-9, "1e−9"), (1.5e12, "1.5e12"),
     (100.0, "100"), (math.inf, "∞"), (math.nan, "?")],
)  # fmt: skip
def test_numbers_are_short(value, said):
    assert svg.short(value) == said


def test_numbers_at_the_upright_axis_are_whole():
    picture = str(svg.scatter([2e5], [6e5], Plane((0, 9e6), (-9e6, 9e6), "x", "y"), "title", "about"))
    assert "−5,000,000<" in picture
    assert "…" not in picture


def test_a_long_name_is_cut_to_its_place_and_a_short_one_kept():
    assert svg.cut("short", 100) == "short"
    long = svg.cut("a very long name of a column", 100)
    assert long.endswith("…")
    assert svg.room(long) * svg.SIZE <= 100


def test_what_cannot_be_shown_is_replaced():
    assert svg.clean("a\x00b\ud800c\u202ed") == "a\ufffdb\ufffdc\ufffdd"
    assert len(svg.clean("x" * 10_000)) == 301
