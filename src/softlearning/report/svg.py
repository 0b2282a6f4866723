"""Small charts as inline SVG: bars, columns, lines, dots and a heat map.

Colours are classes that the style sheet of the page fills in, for light, dark and paper. Every chart has a <title> and
a <desc>, and every text that comes from data is cleaned, cut to its place and escaped here.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup

WIDTH = 360  # of every chart: readable on a phone without scaling
SIZE = 12  # of letters
LABEL = 150  # room for the names of a heat map
MOST_LABEL = 200  # room for the names of bars, at most
VALUE = 66  # room for the numbers behind them
ROW = 22  # height of a bar with its gap
BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # they reorder what is around


def clean(text: object, most: int = 300) -> str:
    """Text that is safe to show: no control characters, no halves of pairs, no change of direction, not endless."""
    kept = "".join(
        "\ufffd" if unicodedata.category(c) in ("Cc", "Cs", "Cn") or c in BIDI else c for c in str(text)[:most]
    )
    return kept + ("…" if len(str(text)) > most else "")


def room(text: str) -> float:
    """Width of a text in units of the letter size, rather too much than too little."""
    return sum(_letter(c) for c in text)


def _letter(c: str) -> float:
    if unicodedata.east_asian_width(c) in "WF" or ord(c) > 0x2FFF:
        return 1.1
    if unicodedata.combining(c):
        return 0.0
    if c in "MWmw@%—…":
        return 0.95
    return 0.4 if c in "iljtfrI.,:;'|()[] " else 0.72 if c.isupper() else 0.62


def cut(text: object, width: float, size: float = SIZE) -> str:
    """The text, or its beginning and an ellipsis where it would be wider than `width`."""
    text = clean(text)
    if room(text) * size <= width:
        return text
    while text and room(text + "…") * size > width:
        text = text[:-1]
    return text + "…"


def short(value: float | None) -> str:
    """Three figures, no exponent where it can be helped."""
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "?"
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 1e7:
        digits = max(0, 2 - math.floor(math.log10(abs(value))))
        text = f"{value:{',' if abs(value) >= 1e4 else ''}.{digits}f}"  # a year has no comma
        plain = text.rstrip("0").rstrip(".") if "." in text else text
        exact = math.isclose(float(plain.replace(",", "")), value, rel_tol=1e-9)  # else zeros tell the precision
        return (plain if exact else text).replace("-", "−")
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}".replace("-", "−")


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between low and high, at most so many."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


# -- marks ------------------------------------------------------------------------------------------------------------


def text(x: float, y: float, words: object, *, anchor: str = "start", kind: str = "", most: float = WIDTH) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" class="{}">{}</text>').format(
        x, y, anchor, kind, cut(words, most)
    )


def rect(x: float, y: float, w: float, h: float, kind: str, *, opacity: float = 1.0, about: object = "") -> Markup:
    title = Markup("<title>{}</title>").format(clean(about)) if about != "" else ""
    return Markup(
        '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}" fill-opacity="{:.3f}">{}</rect>'
    ).format(x, y, max(w, 0.0), max(h, 0.0), kind, opacity, title)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>').format(x1, y1, x2, y2, kind)


def dot(x: float, y: float, kind: str, *, radius: float = 3.5, about: object = "") -> Markup:
    title = Markup("<title>{}</title>").format(clean(about)) if about != "" else ""
    return Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" class="{}">{}</circle>').format(x, y, radius, kind, title)


def path(points: Iterable[tuple[float, float]], kind: str) -> Markup:
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline points="{}" class="{}"/>').format(joined, kind)


def chart(height: float, title: str, about: str, marks: Iterable[Markup]) -> Markup:
    """The whole picture, with what a screen reader says."""
    return Markup(
        '<svg viewBox="0 0 {} {:.0f}" role="img" preserveAspectRatio="xMidYMid meet">'
        "<title>{}</title><desc>{}</desc>{}</svg>"
    ).format(WIDTH, height, clean(title), clean(about, 1000), Markup("").join(marks))


# -- charts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bar:
    """One bar: its name, its length, an interval on top, and the number shown behind it."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    shown: str = ""


def bars(lines: Sequence[Bar], title: str, about: str) -> Markup:
    """Horizontal bars from a common zero, longest possible whisker inside the chart; names have the room they need."""
    left, right = min(MOST_LABEL, max(room(clean(b.name)) for b in lines) * SIZE + 12), WIDTH - VALUE
    least = min(0.0, *(_ends(b)[0] for b in lines))
    most = max(1e-300, *(_ends(b)[1] for b in lines))
    place = lambda v: left + (right - left) * (v - least) / (most - least)
    marks = [line(place(0), 4, place(0), 4 + ROW * len(lines), "axis")]
    for number, b in enumerate(lines):
        marks += _bar(b, 4 + ROW * number, left, place)
    return chart(ROW * len(lines) + 8, title, about, marks)


def _ends(b: Bar) -> tuple[float, float]:
    known = [v for v in (b.value, b.low, b.high) if v is not None]
    return min(known), max(known)


def _bar(b: Bar, y: float, left: float, place) -> list[Markup]:
    middle, start, end = y + ROW / 2, place(min(0.0, b.value)), place(max(0.0, b.value))
    marks = [
        text(left - 8, middle + 4, b.name, anchor="end", most=left - 10),
        rect(start, y + 4, end - start, ROW - 8, "bar", about=f"{b.name}: {b.shown or short(b.value)}"),
        text(WIDTH - VALUE + 6, middle + 4, b.shown or short(b.value), kind="number", most=VALUE - 6),
    ]
    if b.low is not None and b.high is not None:
        marks.append(line(place(b.low), middle, place(b.high), middle, "whisker"))
        marks += [line(place(v), middle - 4, place(v), middle + 4, "whisker") for v in (b.low, b.high)]
    return marks


@dataclass(frozen=True)
class Plane:
    """Two axes: a window of the data, and the place of any point of it in the chart."""

    x: tuple[float, float]
    y: tuple[float, float]
    x_name: str
    y_name: str
    percent: tuple[bool, bool] = (False, False)
    height: float = 250

    @cached_property
    def left(self) -> float:
        """Where the plane begins: the widest of its upright numbers has room before it."""
        return max(56.0, 12 + SIZE * max((room(self._number(v, 1)) for v in ticks(*self.y)), default=0.0))

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Left, right, top and bottom margins hold the numbers and the names."""
        across = (x - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0)
        up = (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1.0)
        floor = self.height - 40
        return self.left + across * (WIDTH - 24 - self.left), floor - up * (floor - 26)

    def axes(self) -> list[Markup]:
        """Grid, numbers and names; the name of the upright axis stands above it, so that no text is turned."""
        (x0, y0), (x1, _) = self.place(self.x[0], self.y[0]), self.place(self.x[1], self.y[1])
        marks = [line(x0, y0, x1, y0, "axis")]
        for v in ticks(*self.y):
            at = self.place(self.x[0], v)[1]
            marks.append(line(x0, at, x1, at, "grid"))
            marks.append(text(x0 - 6, at + 4, self._number(v, 1), anchor="end", kind="number", most=x0 - 8))
        for v in ticks(*self.x, most=4):
            at = self.place(v, self.y[0])[0]
            marks.append(line(at, y0, at, y0 + 4, "axis"))
            marks.append(text(at, y0 + 17, self._number(v, 0), anchor="middle", kind="number", most=70))
        marks.append(text(WIDTH - 4, self.height - 6, self.x_name, anchor="end", kind="name", most=WIDTH - 40))
        return [*marks, text(2, 12, self.y_name, kind="name", most=WIDTH - 40)]

    def _number(self, value: float, axis: int) -> str:
        return f"{short(100 * value)} %" if self.percent[axis] else short(value)

    def curve(self, xs: Iterable[float], ys: Iterable[float], kind: str) -> Markup:
        return path((self.place(x, y) for x, y in zip(xs, ys)), kind)


def columns(heights: Sequence[float], edges: Sequence[float], plane: Plane, title: str, about: str) -> Markup:
    """Upright bars between consecutive edges."""
    marks = plane.axes()
    for h, low, high in zip(heights, edges[:-1], edges[1:]):
        (x0, y0), (x1, y1) = plane.place(low, plane.y[0]), plane.place(high, h)
        marks.append(
            rect(x0 + 0.5, y1, x1 - x0 - 1, y0 - y1, "bar", about=f"{short(low)} to {short(high)}: {short(h)}")
        )
    return chart(plane.height, title, about, marks)


@dataclass(frozen=True)
class Series:
    """A line with its name; `kind` is its class in the style sheet."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    kind: str


@dataclass(frozen=True)
class Point:
    """A point with an upright interval."""

    x: float
    y: float
    low: float
    high: float
    about: str


def _points(points: Sequence[Point], plane: Plane) -> list[Markup]:
    marks = []
    for p in points:
        (x, y), (_, y0), (_, y1) = plane.place(p.x, p.y), plane.place(p.x, p.low), plane.place(p.x, p.high)
        marks += [line(x, y0, x, y1, "whisker"), dot(x, y, "dot", about=p.about)]
    return marks


def lines(series: Sequence[Series], plane: Plane, title: str, about: str, points: Sequence[Point] = ()) -> Markup:
    """Lines over a common plane, with a key below; points with upright intervals on top."""
    marks = [*plane.axes(), *(plane.curve(s.xs, s.ys, s.kind) for s in series), *_points(points, plane)]
    for number, s in enumerate(series):
        y = plane.height + 14 + 18 * number
        marks += [line(56, y - 4, 84, y - 4, s.kind), text(92, y, s.name, most=WIDTH - 96)]
    return chart(plane.height + 18 * len(series) + 4, title, about, marks)


def against_diagonal(points: Sequence[Point], plane: Plane, title: str, about: str) -> Markup:
    """Points with intervals; on the dashed line both axes agree."""
    low, high = max(plane.x[0], plane.y[0]), min(plane.x[1], plane.y[1])
    marks = [*plane.axes(), plane.curve((low, high), (low, high), "reference")]
    marks.append(plane.curve([p.x for p in points], [p.y for p in points], "line"))
    return chart(plane.height, title, about, [*marks, *_points(points, plane)])


def scatter(xs: Sequence[float], ys: Sequence[float], plane: Plane, title: str, about: str) -> Markup:
    """Many small dots around the diagonal."""
    low, high = max(plane.x[0], plane.y[0]), min(plane.x[1], plane.y[1])
    dots = [dot(*plane.place(x, y), "cloud", radius=2.2) for x, y in zip(xs, ys)]
    return chart(plane.height, title, about, [*plane.axes(), *dots, plane.curve((low, high), (low, high), "reference")])


def heat(names: Sequence[str], cells: Sequence[Sequence[float]], shown: Sequence[Sequence[str]], about: str, *,
         title: str, strength: Sequence[Sequence[float]], axes: tuple[str, str] = ("", "")) -> Markup:  # fmt: skip
    """A square table of coloured cells; rows carry names and numbers, columns names where they fit, else the numbers.

    strength in -1..1 colours a cell: blue upwards, orange downwards. axes: what rows and columns are.
    """
    K, down = len(names), 18 if axes[1] else 0
    side = min(60.0, (WIDTH - LABEL - 6) / max(K, 1))
    tall = min(44.0, max(side, 13.0))  # letters need so much
    every = next(n for n in (1, 2, 5, 10) if n * side >= 20 or n == 10)  # so that the numbers do not touch
    fits = all(room(clean(name)) * SIZE <= side - 4 for name in names)
    tops = range(K) if fits else range(every - 1, K, every)
    marks = [
        text(LABEL + side * (j + 0.5), 12 + down, names[j] if fits else j + 1, anchor="middle", kind="number")
        for j in tops
    ]
    if axes[1]:
        marks += [text(LABEL - 6, 12, axes[0], anchor="end", kind="name", most=LABEL - 8)]
        marks += [text(WIDTH - 4, 12, axes[1], anchor="end", kind="name", most=WIDTH - LABEL - 6)]
    for i, name in enumerate(names):
        y = 18 + down + tall * i
        place = LABEL - 6 if fits else LABEL - 28
        marks.append(text(place, y + tall / 2 + 4, name, anchor="end", most=place - 2))
        if not fits:
            marks.append(text(LABEL - 6, y + tall / 2 + 4, i + 1, anchor="end", kind="number"))
        for j, other in enumerate(names):
            about_cell = f"{name}, {other}: {short(cells[i][j])}"
            marks.append(_cell(LABEL + side * j, y, side, tall, strength[i][j], shown[i][j], about_cell))
    return chart(24 + down + tall * K, title, about, marks)


def _cell(x: float, y: float, side: float, tall: float, strength: float, shown: str, about: str) -> Markup:
    kind = "heat" if strength >= 0 else "cold"
    mark = rect(x, y, side - 1, tall - 1, kind, opacity=min(1.0, 0.06 + 0.94 * abs(strength)), about=about)
    if not shown or room(shown) * SIZE > side - 2:
        return mark
    ink = "on" if abs(strength) > 0.55 else "in"
    return mark + text(x + side / 2 - 0.5, y + tall / 2 + 4, shown, anchor="middle", kind=ink)
