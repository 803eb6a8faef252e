"""Checks the rules of a GBNF grammar, mainly for rules that can begin with themselves."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..errors import ArgumentError

MOST_NESTED = 250  # the most nested groups; llama.cpp follows groups by recursion
MOST_COPIED = 1_000_000  # the most characters that counts such as {2,9} may copy
MOST_BEGINNINGS = 20_000_000  # the most ways in which rules can begin; llama.cpp follows every way
_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+ | \#[^\r\n]*)
      | (?P<literal>"(?:\\.|[^"\\])*(?:"|\\?\Z))
      | (?P<class>\[(?:\\.|[^\]\\])*(?:\]|\\?\Z))
      | (?P<token>!?<[^>]*(?:>|\Z))
      | (?P<rule>[A-Za-z0-9-]+)(?=[ \t]*::=)
      | (?P<name>[A-Za-z0-9-]+)
      | (?P<count>[*+?] | \{(?:\#[^\r\n]*|[^}\#])*(?:\}|\Z))
      | (?P<mark>::= | [.()|])""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"#[^\r\n]*")
_COUNT = re.compile(r"\{\s*(?P<least>[0-9]+)\s*(?P<comma>,\s*(?P<most>[0-9]*)\s*)?\}")
_NOTHING = ('""', "[]", "[^]")  # llama.cpp reads each of these items as the empty text
_SHOWN = 8  # number of rules of a cycle that an error message shows
_CHARACTER = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))|\\?.", re.DOTALL)
_CHARACTERS = ((0, 0xD7FF), (0xE000, 0x10FFFF))  # ranges of all code points except surrogates


@dataclass
class _Item:
    """A part of a sequence: the name of a rule, or "" for characters. ``empty``: whether zero times are allowed."""

    name: str = ""
    empty: bool = False


# The alternatives of each rule, by the rule's name. A group is a rule of its own, with a name that begins with "(".
_Rules = dict[str, list[list[_Item]]]


def check(text: str) -> None:
    """Raise ValueError for a grammar with which llama.cpp would end the process or loop forever.

    The main case is left recursion: a rule that can begin with itself. llama.cpp finds some of these rules. llama.cpp
    misses, for example, ``list ::= ws list "," | "a"`` with ``ws ::= " "*``: ``list`` begins with itself if ``ws`` is
    empty, but ``ws`` is empty only through a third rule, which llama.cpp makes for the ``*``. This check ignores text
    that is not GBNF, because llama.cpp itself refuses such text.
    """
    rules = _read(text)
    empty = _empty_in(rules)
    left = {name: [to for way in ways for to in _beginnings(way, empty) if to in rules] for name, ways in rules.items()}
    order, cycle = _ordered(left)
    if cycle := [name for name in cycle if not name.startswith("(")]:
        path = " > ".join([*cycle[:_SHOWN], *["..."] * (len(cycle) > _SHOWN), cycle[0]])
        raise ArgumentError(f"text must be GBNF without left recursion, but {cycle[0]} can begin with itself: {path}")
    ways_of: dict[str, int] = {}
    for name in order:
        ways_of[name] = 1 + sum(ways_of[to] for to in left[name])
    if sum(ways_of.values()) > MOST_BEGINNINGS:
        raise ArgumentError(
            f"text must be GBNF whose rules begin in at most {MOST_BEGINNINGS:,} ways, but these begin in more ways"
        )


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
    """Yield the names of the items that a sequence can begin with; "" stands for characters."""
    for item in way:
        yield item.name
        if not (item.empty or item.name in empty):
            break


def _ordered(edges: Mapping[str, list[str]]) -> tuple[list[str], list[str]]:
    """Return (the names, each after the names that it leads to; the names along one cycle, if there is a cycle)."""
    left = {name: set(to) for name, to in edges.items()}
    sources: dict[str, list[str]] = {name: [] for name in left}
    for name, to in left.items():
        for other in to:
            sources[other].append(name)
    order = [name for name, to in left.items() if not to]
    for name in order:  # the loop appends to ``order``
        del left[name]
        for source in sources[name]:
            left[source].discard(name)
            if not left[source]:
                order.append(source)
    path = list(left)[:1]  # each remaining rule leads to another remaining rule
    while path and path[-1] not in path[:-1]:
        path.append(min(left[path[-1]]))
    return order, path[path.index(path[-1]) : -1] if path else []


def _read(text: str) -> _Rules:
    """Return the rules of a grammar; ValueError for tokens that `check` refuses."""
    rules: _Rules = {}
    open_ones: list[list[list[_Item]]] = [[[]]]
    copied = length = deepest = 0
    for number, token in enumerate(_TOKEN.finditer(text)):
        kind, value = token.lastgroup, token.group()
        ways = open_ones[-1]
        if kind == "rule":
            rules[value] = [[]]
            open_ones = [rules[value]]
        elif kind == "token":
            raise ArgumentError(f"text must be GBNF of characters, but {value:.40} is a token")
        elif value == "(" or value in _NOTHING:
            name = f"({number}"
            rules[name] = [[]]
            ways[-1].append(_Item(name))
            if value == "(":
                open_ones.append(rules[name])
                deepest = max(deepest, len(open_ones) - 1)
        elif kind in ("literal", "class", "name") or value == ".":
            if (kind == "literal" and not _is_text(value)) or (kind == "class" and not _has_character(value)):
                raise ArgumentError(f"text must be GBNF of characters, but no text can contain {value:.40}")
            ways[-1].append(_Item(value if kind == "name" else ""))
            length = len(value) if kind in ("literal", "class") else 1
        elif value == ")" and len(open_ones) > 1:
            open_ones.pop()
            length = 1
        elif value == "|":
            ways.append([])
        elif kind == "count" and ways[-1]:
            least, most = _count(value)
            copied += length * max(least, most)
            if most == 0:
                ways[-1].pop()
            else:
                ways[-1][-1].empty |= least == 0
    if deepest > MOST_NESTED:
        raise ArgumentError(f"text must have groups nested at most {MOST_NESTED} deep, got {deepest:,}")
    if copied > MOST_COPIED:
        raise ArgumentError(f"text must have counts that repeat at most {MOST_COPIED:,} characters, got {copied:,}")
    if not rules:
        raise ArgumentError("text must be GBNF, but it has no rule")
    return rules


def _codes(characters: str) -> Iterator[tuple[int, str]]:
    """Yield each code point of a literal or class, and its spelling there."""
    for found in _CHARACTER.finditer(characters):
        digits = next(filter(None, found.groups()), None)
        yield int(digits, 16) if digits else ord(found.group()[-1]), found.group()


def _is_text(literal: str) -> bool:
    return all(any(first <= code <= last for first, last in _CHARACTERS) for code, _ in _codes(literal))


def _has_character(group: str) -> bool:
    """Return whether a class such as ``[a-z]`` contains any character."""
    inner = group[1:-1]
    codes = list(_codes(inner.removeprefix("^")))
    ranges: list[tuple[int, int]] = []
    at = 0
    while at < len(codes):
        last = at + 2 if codes[at + 1 : at + 2] == [(ord("-"), "-")] and at + 2 < len(codes) else at
        ranges.append((codes[at][0], codes[last][0]))
        at = last + 1
    if not inner.startswith("^"):
        return any(max(low, first) <= min(high, last) for low, high in ranges for first, last in _CHARACTERS)
    ranges.sort()
    for code, last in _CHARACTERS:
        for low, high in ranges:
            if low <= code <= high:
                code = high + 1
        if code <= last:
            return True
    return False


def _count(value: str) -> tuple[int, int]:
    """Return (least count, greatest count or 1 if unlimited); (1, 1) for text that is not GBNF."""
    if value in "*+?":
        return int(value == "+"), 1
    found = _COUNT.fullmatch(_COMMENT.sub("", value))
    if not found:
        return 1, 1
    numbers = [number.lstrip("0") or "0" for number in (found["least"], found["most"] or "1")]
    if max(map(len, numbers)) > 9:  # llama.cpp refuses such counts
        return 1, 1
    least, most = map(int, numbers)
    if found["most"] and most < least:  # llama.cpp would count forever
        raise ArgumentError(f"text must be GBNF, but the count {value:.40} has a maximum below its minimum")
    return least, most if found["comma"] else least
