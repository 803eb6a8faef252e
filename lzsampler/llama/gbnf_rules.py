"""The rules of a GBNF grammar, as far as it takes to see which of them can begin with themselves."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+ | \#[^\r\n]*)
      | (?P<literal>"(?:\\.|[^"\\])*")
      | (?P<terminal>\[(?:\\.|[^\]\\])*\] | \. | !?<[^>]*>)
      | (?P<rule>[A-Za-z0-9-]+)(?=[ \t]*::=)
      | (?P<name>[A-Za-z0-9-]+)
      | (?P<count>[*+?] | \{[^}]*\})
      | (?P<mark>::= | [()|])""",
    re.VERBOSE | re.DOTALL,
)

_FROM_ONE = re.compile(r"\{\s*0*[1-9]")  # a count that does not begin at 0
_SHOWN = 8  # rules of a cycle, in an error


@dataclass
class _Item:
    """A part of a sequence: the name of a rule, or "" for characters; and whether its count begins at 0."""

    name: str = ""
    empty: bool = False


# The alternatives of each rule, by its name. A group is a rule of its own, whose name begins with a bracket.
_Rules = dict[str, list[list[_Item]]]


def check_recursion(text: str) -> None:
    """Raise ValueError where a rule can begin with itself.

    llama.cpp would follow such a rule for ever. It finds some of them itself, but not those that begin behind a rule
    which is empty only by way of another one, such as ``ws`` in ``list ::= ws list "," | "a"`` with ``ws ::= " "*``.
    What is not GBNF is passed over, since llama.cpp refuses it.
    """
    rules = _read(text)
    empty = _empty_in(rules)
    left = {name: {to for way in ways for to in _beginnings(way, empty) if to in rules} for name, ways in rules.items()}
    if cycle := [name for name in _cycle_in(left) if not name.startswith("(")]:
        path = " > ".join([*cycle[:_SHOWN], *["..."] * (len(cycle) > _SHOWN), cycle[0]])
        raise ValueError(f"text must be GBNF without left recursion, but {cycle[0]} can begin with itself: {path}")


def _empty_in(rules: _Rules) -> set[str]:
    """Return the names of the rules that can be empty."""
    named_in: dict[str, set[str]] = {}
    for name, ways in rules.items():
        for way in ways:
            for item in way:
                named_in.setdefault(item.name, set()).add(name)
    empty: set[str] = set()
    asked = set(rules)
    while asked:
        found = {name for name in asked if any(all(i.empty or i.name in empty for i in way) for way in rules[name])}
        empty |= found
        asked = {name for other in found for name in named_in.get(other, ())} - empty
    return empty


def _beginnings(way: list[_Item], empty: set[str]) -> Iterator[str]:
    """Return the names of what a sequence can begin with."""
    for item in way:
        yield item.name
        if not (item.empty or item.name in empty):
            break


def _cycle_in(edges: Mapping[str, set[str]]) -> list[str]:
    """Return the names along a cycle; empty where there is none."""
    left = {name: set(to) for name, to in edges.items()}
    sources: dict[str, list[str]] = {name: [] for name in left}
    for name, to in left.items():
        for other in to:
            sources[other].append(name)
    ended = [name for name, to in left.items() if not to]
    while ended:
        name = ended.pop()
        del left[name]
        for source in sources[name]:
            left[source].discard(name)
            if not left[source]:
                ended.append(source)
    path = list(left)[:1]  # each of the rules that are left leads to another one of them
    while path and path[-1] not in path[:-1]:
        path.append(min(left[path[-1]]))
    return path[path.index(path[-1]) : -1] if path else []


def _read(text: str) -> _Rules:
    rules: _Rules = {}
    open_ones: list[list[list[_Item]]] = [[[]]]
    for number, token in enumerate(_TOKEN.finditer(text)):
        kind, value = token.lastgroup, token.group()
        ways = open_ones[-1]
        if kind == "rule":
            rules[value] = [[]]
            open_ones = [rules[value]]
        elif kind in ("name", "terminal"):
            ways[-1].append(_Item(value if kind == "name" else ""))
        elif kind == "literal" and value != '""':
            ways[-1].append(_Item())
        elif value in ("(", '""'):
            name = f"({number}"
            rules[name] = [[]]
            ways[-1].append(_Item(name))
            if value == "(":
                open_ones.append(rules[name])
        elif value == ")" and len(open_ones) > 1:
            open_ones.pop()
        elif value == "|":
            ways.append([])
        elif kind == "count" and ways[-1]:
            ways[-1][-1].empty |= value != "+" and not _FROM_ONE.match(value)
    return rules
