"""Who may know whom in c/: no circle of includes, and no arrow from a layer to one above it."""

import re
from collections.abc import Iterator
from pathlib import Path

from native import ROOT

C = ROOT / "c"
INCLUDE = re.compile(r'^#\s*include "([^"]+)"', re.MULTILINE)

# What knows floats, bits and counts only, so that every layer may use it, and llama.cpp's chains, which use everything.
GROUND = {
    "include",
    "atomics.h",
    "hash.h",
    "letters.h",
    "room.h",
    "table.h",
    "utf8.h",
    "backend/arithmetic.h",
    "backend/kernels.h",
    "backend/token_entry.h",
}
LAYERS = {  # each folder, and the folders that it may know besides itself and the ground
    "plan": (),
    "text": (),
    "backend": ("plan",),
    "constraint": ("plan",),
    "state": ("plan", "constraint"),
    "penalty": ("plan", "constraint", "state"),
    "backend/cuda": ("plan", "state", "penalty", "backend"),
    ".": ("plan", "constraint", "state", "penalty", "backend"),
    "verify": ("plan", "state", "backend", "."),
    "llama": ("plan", "backend", "verify", "."),
    "preload": ("llama",),
}


def includes(path: Path) -> Iterator[Path]:
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        for folder in (path.parent, C / "include", C):
            if (folder / name).exists():
                yield (folder / name).resolve()
                break


FILES = sorted(path for path in C.rglob("*") if path.suffix in (".c", ".h", ".cu") and "example" not in path.name)
GRAPH = {path: sorted(set(includes(path))) for path in FILES}


def circles(graph: dict[Path, list[Path]]) -> list[list[str]]:
    """Return the circles that a walk through the includes closes."""
    found: list[list[str]] = []
    done: set[Path] = set()

    def visit(path: Path, way: list[Path]) -> None:
        if path in way:
            found.append([one.name for one in way[way.index(path) :]])
        if path in done or path in way:
            return
        for other in graph.get(path, []):
            visit(other, [*way, path])
        done.add(path)

    for path in graph:
        visit(path, [])
    return found


def test_no_file_includes_itself_by_way_of_others() -> None:
    assert circles(GRAPH) == []
    a, b, c = Path("a.h"), Path("b.h"), Path("c.h")
    assert circles({a: [b], b: [c], c: [a]}) == [["a.h", "b.h", "c.h"]]


def test_layers_know_those_below_them() -> None:
    wrong = []
    for path, others in GRAPH.items():
        layer = path.parent.relative_to(C).as_posix()
        for other in others:
            name, below = other.relative_to(C).as_posix(), other.parent.relative_to(C).as_posix()
            if name in GROUND or below in GROUND or below == layer or layer == "include":
                continue
            if below not in LAYERS[layer]:
                wrong.append(f"{path.relative_to(C)} includes {name}")
    assert wrong == []


def test_the_layers_have_an_order() -> None:
    order = list(LAYERS)
    for layer, below in LAYERS.items():
        assert all(order.index(other) < order.index(layer) for other in below)
