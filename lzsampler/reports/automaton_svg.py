"""The picture of a small automaton as an SVG: states from left to right, by their distance from the start.

The module needs no graph library, because at most `MAX_DRAWN` states are drawn, in columns.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from .._values import counted
from ..constraint.automaton import Automaton
from ..errors import ArgumentError
from ..util.files import replacing
from .charts import tag

MAX_DRAWN = 60
_STEP_X, _STEP_Y, _LEFT, _TOP, _RADIUS = 150, 90, 60, 90, 16  # pixels
_LABEL = 18  # maximum number of characters of a label; browsers show the full label as a tooltip
_SHOWN = {0x20: "␣", 0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
# An SVG in an <img> follows the reader's light or dark setting.
_STYLE = Markup("""
text { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; fill: #1f2328; text-anchor: middle; stroke: #ffffff }
text { stroke-width: 3px; paint-order: stroke }
.page { fill: #ffffff } .state { fill: #f6f8fa; stroke: #1f2328 } .end { fill: none; stroke: #1f2328 }
.edge { fill: none; stroke: #59636e } .tip { fill: #59636e } .one { fill: #dafbe1 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; stroke: #0d1117 } .page { fill: #0d1117 } .state { fill: #161b22; stroke: #e6edf3 }
  .end { stroke: #e6edf3 }
  .edge { stroke: #9198a1 } .tip { fill: #9198a1 } .one { fill: #033a16 }
}
""")


@dataclass(frozen=True)
class _Edge:
    begin: int
    end: int
    label: str


def write_automaton(path: str | Path, automaton: Automaton) -> None:
    """Write the picture; ValueError for an automaton that is too large, LzsError if the file cannot be written."""
    drawn = automaton_svg(automaton)
    with replacing(path) as file:
        file.write(drawn.encode("utf-8"))


def automaton_svg(automaton: Automaton) -> str:
    """Return the picture as SVG. A chain of states with one byte in and one byte out is drawn as one edge.

    A double circle is a state in which the text may end; a green state allows only one token. ValueError if more than
    `MAX_DRAWN` states have to be drawn.
    """
    edges = _edges(automaton)
    kept = sorted({0, *(edge.begin for edge in edges), *(edge.end for edge in edges)})
    if len(kept) > MAX_DRAWN or not automaton.complete:
        n = f"{len(kept):,}" if automaton.complete else f"more than {len(automaton.states):,}"
        raise ArgumentError(f"a picture shows at most {MAX_DRAWN} states, but this automaton has {n}: leave out -o")
    places = _places(kept, edges)
    drawn = [_edge(edge, places) for edge in edges] + [_state(automaton, state, places[state]) for state in kept]
    width = max(x for x, _ in places.values()) + _STEP_X
    height = max(y for _, y in places.values()) + _STEP_Y
    tip = tag("path", d="M0,0 L8,4 L0,8 z", class_="tip")
    marker = tag(
        "marker", tip, id="tip", viewBox="0 0 8 8", refX=8, refY=4, markerWidth=8, markerHeight=8, orient="auto"
    )
    page = tag("rect", width=width, height=height, class_="page")
    return tag(
        "svg", tag("style", _STYLE), tag("defs", marker), page, *drawn, xmlns="http://www.w3.org/2000/svg", width=width,
        height=height, viewBox=f"0 0 {width} {height}", role="img",
        aria_label=f"An automaton of {counted(len(kept), 'state')}",
    ) + "\n"  # fmt: skip


def _edges(automaton: Automaton) -> list[_Edge]:
    """Return the edges to draw. A chain of states with one byte in and one byte out is one edge with all bytes."""
    states = automaton.states
    arriving = [0] * len(states)
    for state in states:
        for end in state.edges:
            arriving[end] += 1

    def passes(number: int) -> bool:
        state = states[number]
        (only, *rest) = [*state.edges.items(), None]
        single = only is not None and rest == [None] and len(only[1]) == 1
        return bool(number and not state.matches and arriving[number] == 1 and single)

    made: dict[tuple[int, int], list[str]] = {}  # (begin, end) -> labels, which share one edge
    for number, state in enumerate(states):
        if passes(number):
            continue
        for end, some in state.edges.items():
            text, at = bytes(some) if len(some) == 1 else b"", end
            while text and passes(at):
                at, (byte,) = next(iter(states[at].edges.items()))
                text += bytes([byte])
            made.setdefault((number, at), []).append(_text(text) if text else _set(some))
    return [_Edge(begin, end, " | ".join(labels)) for (begin, end), labels in made.items()]


def _places(kept: list[int], edges: list[_Edge]) -> dict[int, tuple[int, int]]:
    """Return the position of each state in the picture, in pixels."""
    distance, todo = {0: 0}, [0]
    for state in todo:
        for edge in edges:
            if edge.begin == state and edge.end not in distance:
                distance[edge.end] = distance[state] + 1
                todo.append(edge.end)
    places, rows = {}, dict.fromkeys(distance.values(), 0)
    for state in kept:
        column = distance[state]
        places[state] = (_LEFT + column * _STEP_X, _TOP + rows[column] * _STEP_Y)
        rows[column] += 1
    return places


def _edge(edge: _Edge, places: dict[int, tuple[int, int]]) -> Markup:
    (x, y), (x2, y2) = places[edge.begin], places[edge.end]
    r = _RADIUS
    if edge.begin == edge.end:
        path = f"M{x - 8},{y - r + 2} C{x - 24},{y - 52} {x + 24},{y - 52} {x + 8},{y - r + 2}"
        at = (x, y - 46)
    else:
        dx, dy = x2 - x, y2 - y
        length = (dx * dx + dy * dy) ** 0.5
        # An edge to the next column is straight. Other edges are curved, so that edges do not overlap.
        bow = 0.0 if 0 < dx <= _STEP_X else 0.25 * length
        cx, cy = x + dx / 2 + bow * dy / length, y + dy / 2 - bow * dx / length
        begin, end = _towards((x, y), (cx, cy), r), _towards((x2, y2), (cx, cy), r)
        path = f"M{begin[0]:.1f},{begin[1]:.1f} Q{cx:.1f},{cy:.1f} {end[0]:.1f},{end[1]:.1f}"
        at = (round((x + x2) / 4 + cx / 2), round((y + y2) / 4 + cy / 2 - 6))
    short = edge.label if len(edge.label) <= _LABEL else edge.label[: _LABEL - 1] + "…"
    label = tag("text", tag("title", edge.label), short, x=at[0], y=at[1])
    return tag("path", d=path, class_="edge", marker_end="url(#tip)") + label


def _towards(begin: tuple[float, float], end: tuple[float, float], by: float) -> tuple[float, float]:
    dx, dy = end[0] - begin[0], end[1] - begin[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    return begin[0] + by * dx / length, begin[1] + by * dy / length


def _state(automaton: Automaton, number: int, place: tuple[int, int]) -> Markup:
    state = automaton.states[number]
    kind = "state one" if state.allowed == 1 else "state"
    parts = [tag("circle", cx=place[0], cy=place[1], r=_RADIUS, class_=kind)]
    if state.matches:
        parts.append(tag("circle", cx=place[0], cy=place[1], r=_RADIUS - 4, class_="end"))
    parts.append(tag("text", str(number), x=place[0], y=place[1] + 4))
    return Markup().join(parts)


def _text(data: bytes) -> str:
    """Return bytes as characters, with blanks and control characters made visible."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return " ".join(f"{byte:02X}" for byte in data)
    return "".join(_SHOWN.get(ord(one), one if one.isprintable() else f"U+{ord(one):04X}") for one in text)


def _set(some: Iterable[int]) -> str:
    """Return a set of bytes as ranges."""
    ranges: list[list[int]] = []
    for byte in sorted(some):
        if ranges and byte == ranges[-1][1] + 1:
            ranges[-1][1] = byte
        else:
            ranges.append([byte, byte])
    return " ".join(_byte(low) if low == high else f"{_byte(low)}-{_byte(high)}" for low, high in ranges)


def _byte(byte: int) -> str:
    return _text(bytes([byte])) if byte < 0x80 else f"{byte:02X}"
