"""Charts of the HTML reports as inline SVG.

Charts are as wide as the page: x is in percent of the width. The y coordinate and the text are in pixels, so that
nothing gets too small on a phone. Colours are CSS classes (report.css), because the strict Content-Security-Policy
allows no style attributes. A few shapes need no plotting library.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup, escape

from .._values import counted
from .text import count, percent

BINS = 20  # number of bins of the histogram
_HEIGHT = 220  # height of the histogram, the scatter plot and the tradeoff, in pixels
_AXIS = 24  # height of the x axis below a chart, in pixels
_PANEL = 112  # height of the charts of `trend` and `decline`, in pixels
_STEPS = 10  # number of shades of a heat map
_LITERAL = "literal"  # CSS class of the cold colour
_NARROWEST, _LETTER = 280, 7  # width of a chart on a phone, and greatest width of a letter, in pixels
_CELLS = 48  # cells per side of the scatter plot; the points in a cell are drawn as one larger point


Point = tuple[float, float, float, float]
"""(x, low, rate, high): a rate at x, with its interval."""


class Mark(NamedTuple):
    """A point of `tradeoff`. ``x``: its cost. ``y``: its gain, a share of at most 1.

    ``best``: whether the point is on the Pareto front. ``none``: whether the point stands for texts without a penalty.
    """

    x: float
    y: float
    name: str
    title: str
    best: bool
    none: bool = False


class Cell(NamedTuple):
    """A cell of a heat map: a text on the colour of ``kind`` in a ``shade`` from 0 to 1, with details in ``title``."""

    text: str
    title: str
    kind: str
    shade: float

    @property
    def step(self) -> int:
        """The shade as one of the CSS classes s0 to s10."""
        return round(_STEPS * min(max(self.shade, 0.0), 1.0))


def tag(name: str, *content: str, **attributes: object) -> Markup:
    """Return an element. Text is escaped, `Markup` is not; write class_ for class, and _ for - in attributes."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{''.join(map(escape, content))}</{name}>")


def whisker(low: float, rate: float, high: float, top: float, kind: str) -> Markup:
    """Return a rate as a dot with its interval, on a scale from 0 to ``top``."""
    scale = 100 / top if top else 0.0
    parts = [
        _line(0, 11, 100, 11, "scale"),
        _rect(low * scale, 6, max((high - low) * scale, 0.2), 10, f"interval {kind}", rx=5),
        tag("circle", cx=_pc(rate * scale), cy=11, r=5, class_=f"dot {kind}"),
    ]
    label = f"{percent(rate)}, 95 % interval {percent(low)} to {percent(high)}"
    return _svg(22, parts, label, "whisker")


def ruler(top: float, most: int = 3) -> Markup:
    """Return the scale below whiskers, from 0 to ``top``, with ticks at 0 and at about ``most`` round rates."""
    if top <= 0:
        return Markup()
    step = _nice(top / most)
    ticks = [i * step for i in range(int(top / step * (1 + 1e-9)) + 1)]
    parts = [_line(0, 1, 100, 1, "scale")]
    for tick in ticks:
        at = 100 * tick / top
        parts += [_line(at, 1, at, 5, "scale"), _text(at, 17, f"{100 * tick:.4g} %", _anchor(at))]
    return tag("svg", *parts, width="100%", height=20, aria_hidden="true", class_="ruler")


def bar(value: float, top: float, label: str, kind: str) -> Markup:
    """Return a bar on a scale from 0 to ``top``."""
    width = 100 * value / top if top else 0.0
    return _svg(22, [_rect(0, 6, max(width, 0.3 if value else 0), 10, f"bar {kind}", rx=2)], label, "whisker")


def histogram(starts: Sequence[float]) -> Markup:
    """Return a histogram of where records begin to loop, with 20 bins over the length of a record."""
    bins = [0] * BINS
    for start in starts:
        bins[min(int(start * BINS), BINS - 1)] += 1
    top = _round_up(max(bins, default=0))
    parts, width = [], 100 / BINS
    for level in (top / 2, top):
        y = _HEIGHT * (1 - level / top)
        parts.append(_line(0, y, 100, y, "grid"))
    for i, n in enumerate(bins):
        height = _HEIGHT * n / top
        title = f"{counted(n, 'begins', 'begin')} at {100 * i // BINS} to {100 * (i + 1) // BINS} % of the text"
        if n:
            rect = _rect(i * width + 0.35, _HEIGHT - max(height, 1.5), width - 0.7, max(height, 1.5), "column", title)
            parts.append(rect)
    parts.append(_line(0, _HEIGHT, 100, _HEIGHT, "axis"))
    for at in (0, 25, 50, 75, 100):
        parts.append(_text(at, _HEIGHT + 18, f"{at} %", _anchor(at)))
    labels = [(0.0, "0"), (_HEIGHT / 2, _short(top / 2)), (float(_HEIGHT), _short(top))]
    most = bins.index(max(bins)) if starts else 0
    said = (
        f"Histogram of where {counted(len(starts), 'record begins', 'records begin')} to loop; most, {max(bins):,}, at "
        f"{100 * most // BINS} to {100 * (most + 1) // BINS} % of their text"
    )
    return _plot(labels, parts, said)


def scatter(points: Sequence[tuple[int, float]]) -> Markup:
    """Return a chart of loops by period and copies on logarithmic scales. Each line joins loops of equal length."""
    wide = _decades(max((period for period, _ in points), default=1))
    high = _decades(max((copies for _, copies in points), default=1))
    cells: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
    for period, copies in points:
        x, y = math.log10(max(period, 1)) / wide, math.log10(max(copies, 1)) / high
        cells[round(x * _CELLS), round(y * _CELLS)].append((period, copies))

    def across(power: float) -> float:  # leaves room for the largest circles beside the labels of the y axis
        return 5 + 90 * power / wide

    x_ticks, y_ticks = range(int(wide) + 1), range(int(high) + 1)
    parts = [_line(0, _HEIGHT * (1 - i / high), 100, _HEIGHT * (1 - i / high), "grid") for i in y_ticks[1:]]
    parts += [_line(across(i), 0, across(i), _HEIGHT, "grid") for i in x_ticks]
    circles, marks = [], []
    # Larger circles are drawn first, so that they do not hide smaller circles.
    for cell in sorted(cells.values(), key=len, reverse=True):
        x = across(sum(math.log10(max(p, 1)) for p, _ in cell) / len(cell))
        y = _HEIGHT * (1 - sum(math.log10(max(c, 1)) for _, c in cell) / len(cell) / high)
        period, copies = cell[0]
        title = f"period {period:,}, {copies:,.4g} copies" if len(cell) == 1 else f"{len(cell):,} loops like this"
        circles.append(_Circle(x, y, min(3 + 1.2 * math.sqrt(len(cell) - 1), 14)))
        centre = {"cx": _pc(x), "cy": _px(y), "r": _px(circles[-1].r)}
        marks.append(tag("circle", tag("title", title), **centre, class_="point"))
    notes = _Notes(circles)
    for power in range(2, math.ceil(wide + high)):  # period * copies = 10 ** power
        left, right = max(0, power - high), min(wide, power)
        y1, y2 = (_HEIGHT * (1 - (power - x) / high) for x in (left, right))
        parts.append(_line(across(left), y1, across(right), y2, "equal"))
        if power % 2 == 0:
            along = [(right - part * (right - left), y2 - part * (y2 - y1)) for part in (0, 0.2, 0.4, 0.6, 0.8)]
            places = [_Place(across(x), -3, y - 6, "end") for x, y in along]
            notes.add(f"{_short(10**power)} characters", places)
    parts += [*marks, *notes.parts, _line(0, _HEIGHT, 100, _HEIGHT, "axis")]
    parts += [_text(across(i), _HEIGHT + 18, _short(10**i), "middle") for i in x_ticks]
    labels = [(_HEIGHT * i / high, _short(10**i)) for i in y_ticks]
    return _plot(labels, parts, f"Period and copies of {counted(len(points), 'loop')} on logarithmic scales")


def stripes(bands: Sequence[tuple[float, float]]) -> Markup:
    """Return texts as lines of equal length; the part that loops, (start, end) in 0..1, is in colour."""
    pitch = 3 if len(bands) > 40 else 6
    parts = []
    for i, (start, end) in enumerate(bands):
        parts.append(_rect(0, i * pitch, 100, pitch - 1, "text"))
        parts.append(_rect(100 * start, i * pitch, max(100 * (end - start), 0.4), pitch - 1, "loop"))
    said = f"{len(bands):,} looping texts as lines, the part that loops in colour"
    return _svg(pitch * len(bands), parts, said, "stripes")


def trend(series: Sequence[tuple[str, Sequence[Point]]], top: float, said: str) -> Markup:
    """Return a chart of rates, with their intervals, over x. ``top``: the end of the scale of rates.

    ``series``: (CSS class, points) for each line; the first line is at the back. Points are joined in their order.
    """
    xs = sorted({x for _, points in series for x, *_ in points})
    span = xs[-1] - xs[0] if len(xs) > 1 else 0.0

    def place(x: float) -> float:
        return 7 + 86 * (x - xs[0]) / span if span else 50.0

    def height(rate: float) -> float:
        return _PANEL * (1 - rate / top)

    parts = [_line(0, height(level), 100, height(level), "grid") for level in (top / 2, top)]
    parts.append(_line(0, _PANEL, 100, _PANEL, "axis"))
    for i, (kind, points) in enumerate(series):
        shift = 2 * (2 * i - len(series) + 1)  # intervals of the same x are drawn side by side
        at = [(place(x) + shift, low, rate, high) for x, low, rate, high in points]
        parts += [_line(x, height(low), x, height(high), f"range {kind}") for x, low, _, high in at]
        parts += [
            _line(x1, height(rate1), x2, height(rate2), f"trend {kind}")
            for (x1, _, rate1, _), (x2, _, rate2, _) in pairwise(at)
        ]
        parts += [tag("circle", cx=_pc(x), cy=_px(height(rate)), r=4, class_=f"dot {kind}") for x, _, rate, _ in at]
    parts += [_text(place(x), _PANEL + 18, f"{x:g}", "middle") for x in xs]
    labels = [(0.0, "0"), (_PANEL / 2, f"{50 * top:g} %"), (float(_PANEL), f"{100 * top:g} %")]
    return _plot(labels, parts, said, _PANEL)


def decline(series: Sequence[tuple[str, Sequence[tuple[float, float]]]], end: float, said: str) -> Markup:
    """Return a chart of shares, 0..1, that fall between x = 0 and x = ``end``. ``series``: as in `trend`."""

    def height(share: float) -> float:
        return _PANEL * (1 - share)

    scale = 100 / end if end else 0.0
    parts = [_line(0, height(level), 100, height(level), "grid") for level in (0.5, 1.0)]
    parts.append(_line(0, _PANEL, 100, _PANEL, "axis"))
    for kind, points in series:
        parts += [
            _line(x1 * scale, height(share1), x2 * scale, height(share2), f"trend {kind}")
            for (x1, share1), (x2, share2) in pairwise(points)
        ]
    parts += [_text(100 * part, _PANEL + 18, f"{end * part:,.0f}", _anchor(100 * part)) for part in (0.0, 0.5, 1.0)]
    labels = [(0.0, "0"), (_PANEL / 2, "50 %"), (float(_PANEL), "100 %")]
    return _plot(labels, parts, said, _PANEL)


def tradeoff(marks: Sequence[Mark], unit: str, said: str) -> Markup:
    """Return a chart of points, with their cost as x and their gain, 0 to 100 %, as y. A line joins the Pareto front.

    Points with a gain below 0 are at the lower edge. ``unit``: the unit of the cost.
    """
    low = min(0.0, *(mark.x for mark in marks))
    top = _nice(max(*(mark.x for mark in marks), 1e-3))
    low = -_nice(-low) if low < -top / 50 else 0.0  # rounding errors below 0 must not extend the scale

    def place(x: float) -> float:
        return 2 + 94 * (max(x, low) - low) / (top - low)

    def height(y: float) -> float:
        return _HEIGHT * (1 - min(max(y, 0.0), 1.0))

    parts = [_line(0, height(level), 100, height(level), "grid") for level in (0.25, 0.5, 0.75, 1.0)]
    parts.append(_line(0, _HEIGHT, 100, _HEIGHT, "axis"))
    best = sorted((mark for mark in marks if mark.best), key=lambda mark: (mark.x, mark.y))
    parts += [_line(place(a.x), height(a.y), place(b.x), height(b.y), f"trend {_LITERAL}") for a, b in pairwise(best)]
    circles = []
    for mark in sorted(marks, key=lambda mark: mark.best):  # the front is drawn last, on top
        kind = "none" if mark.none else _LITERAL if mark.best else "loop"
        circles.append(_Circle(place(mark.x), height(mark.y), 6 if mark.best else 4))
        centre = {"cx": _pc(circles[-1].x), "cy": _px(circles[-1].y), "r": circles[-1].r}
        parts.append(tag("circle", tag("title", mark.title), **centre, class_=f"dot {kind}"))
    notes = _Notes(circles)
    for mark in best:
        x, y = place(mark.x), height(mark.y)
        sides = [(10, "start"), (-10, "end")]
        notes.add(
            mark.name,
            [_Place(x, dx, y + dy, anchor) for dy in (4, 19, -11, 33, -25) for dx, anchor in sides],
        )
    parts += notes.parts
    ticks = dict.fromkeys((low, 0.0, top / 2, top))
    for x in ticks:
        last = x == top
        parts.append(_text(place(x), _HEIGHT + 18, f"{x:g} {unit}" if last else f"{x:g}", "end" if last else "middle"))
    labels = [(_HEIGHT * level, f"{100 * level:g} %") for level in (0.0, 0.5, 1.0)]
    return _plot(labels, parts, said)


class _Circle(NamedTuple):
    x: float  # percent of the width
    y: float  # pixels
    r: float  # radius, in pixels


class _Place(NamedTuple):
    """A possible position of a note. ``x``: percent of the width. ``dx``: pixels from ``x``. ``y``: pixels."""

    x: float
    dx: float
    y: float
    anchor: str


class _Notes:
    """Notes in a chart. A note is drawn at its first place at which it covers no circle and no other note.

    If no place is free, the note is left out. Notes are laid out for the narrowest chart. In a wider chart, each note
    takes a smaller share of the width, and therefore covers nothing either.
    """

    def __init__(self, circles: Sequence[_Circle]) -> None:
        self.parts: list[Markup] = []
        self._circles = circles
        self._taken: list[tuple[float, float, float, float]] = []

    def add(self, text: str, places: Sequence[_Place]) -> None:
        for place in places:
            width, scale = _LETTER * len(text), _NARROWEST / 100
            left = place.x * scale + place.dx - (width if place.anchor == "end" else 0)
            box = left, place.y - 12, left + width, place.y + 4
            if self._is_free(*box):
                self._taken.append(box)
                self.parts.append(_text(place.x, place.y, text, place.anchor, "note", dx=_px(place.dx)))
                return

    def _is_free(self, left: float, top: float, right: float, bottom: float) -> bool:
        if left < 0 or right > _NARROWEST or top < 0 or bottom > _HEIGHT:
            return False
        for x, y, r in self._circles:
            at = x * _NARROWEST / 100
            if math.hypot(at - min(max(at, left), right), y - min(max(y, top), bottom)) < r + 1:
                return False
        return all(
            left >= other[2] or right <= other[0] or top >= other[3] or bottom <= other[1] for other in self._taken
        )


def _plot(labels: list[tuple[float, str]], parts: Sequence[str], said: str, height: int = _HEIGHT) -> Markup:
    """Return a chart with the labels of its y axis, (pixels above the x axis, text), on the left."""
    marks = [tag("text", text, x=38, y=_px(height - above + 4), text_anchor="end") for above, text in labels]
    y_axis = tag("svg", *marks, width=44, height=height + _AXIS, aria_hidden="true", class_="scale-y")
    return tag("div", y_axis, _svg(height + _AXIS, parts, said, "plotted"), class_="plot")


def _svg(height: int, parts: Sequence[str], label: str, kind: str) -> Markup:
    return tag("svg", *parts, width="100%", height=height, role="img", aria_label=label, class_=kind)


def _rect(x: float, y: float, width: float, height: float, kind: str, title: str = "", rx: float = 0) -> Markup:
    inside = tag("title", title) if title else ""
    size = {"x": _pc(x), "y": _px(y), "width": _pc(width), "height": _px(height)}
    return tag("rect", inside, **size, **({"rx": rx} if rx else {}), class_=kind)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return tag("line", x1=_pc(x1), y1=_px(y1), x2=_pc(x2), y2=_px(y2), class_=kind)


def _text(x: float, y: float, text: str, anchor: str, kind: str = "tick", **more: object) -> Markup:
    return tag("text", text, x=_pc(x), y=_px(y), **more, text_anchor=anchor, class_=kind)


def _pc(value: float) -> str:
    return f"{min(max(value, -10.0), 110.0):.2f}".rstrip("0").rstrip(".") + "%"


def _px(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _anchor(at: float) -> str:
    return "start" if at < 1 else "end" if at > 99 else "middle"


def _decades(value: float) -> float:
    """Return the length of a logarithmic axis from 1 to slightly above ``value``, in powers of 10."""
    return max(2.0, math.log10(max(value, 1)) + 0.15)


def _round_up(n: int) -> int:
    """Return the end of an axis: a number of at least ``n`` that is round and has a round half, such as 200."""
    if n <= 10:
        return max(2, n + n % 2)
    step = int(10 ** (len(str(n)) - 2))
    return next(factor * step for factor in (10, 12, 16, 20, 24, 30, 40, 50, 60, 80, 100) if factor * step >= n)


def _nice(x: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of 10 that is at least ``x``, which is above 0."""
    size = 10.0 ** math.floor(math.log10(x))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= x * (1 - 1e-9))


def _short(n: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size:
            return f"{n / size:g}{letter}"
    return count(n)


IN_TEMPLATES = (bar, histogram, ruler, scatter, stripes, tradeoff, whisker)  # templates call these functions by name
