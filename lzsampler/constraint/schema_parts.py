"""`Parts`: a grammar put together of texts, patterns, choices and repetitions, for `lzs_grammar_new_parts`."""

from array import array
from collections.abc import Callable, Mapping, Sequence

from .._ffi import lib

UNBOUNDED: int = lib.LZS_PART_UNBOUNDED
_FLAT = frozenset((lib.LZS_PART_TEXT, lib.LZS_PART_REGEX, lib.LZS_PART_PATTERN, lib.LZS_PART_YAML, lib.LZS_PART_SHARED))
MAX_WEIGHT = 2_000_000


class TooLargeError(Exception):
    """A grammar whose automaton would have more than about `MAX_WEIGHT` operations."""


class Parts:
    """Parts of a grammar, each made of parts before it; the last one that is added is the whole.

    A part is named by its number, and may be in several others: the automaton has a copy of it for each, which
    ``weights`` estimates in operations.
    """

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._children: list[int] = []
        self._text = bytearray()
        self._names: dict[str, tuple[int, str]] = {}  # the part of each name, and its text, which lie behind all others
        self._known: dict[tuple[int, str, int, int], int] = {}
        self._patterns: list[tuple[int, str]] = []  # where the text of each begins, and what asked for it
        self.weights: list[int] = []
        self._behind: dict[tuple[int, int], int] = {}
        self._numbers: tuple[array[int], array[int]] | None = None  # rows without the places of names, and children
        self._arrays: tuple[array[int], array[int], bytes] | None = None
        self._again: Callable[[], Parts] | None = None  # makes parts that know what asked for each pattern

    def text(self, text: str) -> int:
        """Return the part of one text."""
        return self._leaf(lib.LZS_PART_TEXT, text, 0, 0, len(text))

    def name(self, name: str, text: str) -> int:
        """Return the part of a name of a property that the schema gives, as it is written."""
        known = self._names.get(name)
        if known is None:
            known = self._names[name] = (self._add(lib.LZS_PART_TEXT, 0, 0, 0, 0, len(text) + 1), text)
        return known[0]

    def renamed(
        self, names: Mapping[str, str], written: Callable[[str], str], again: Callable[[], "Parts"]
    ) -> "Parts | None":
        """Return the parts with other names of properties; None where their texts could make the grammar too large.

        ``names``: what each is called instead. ``written``: a name as the grammar writes it. ``again``: makes the same
        parts from the beginning, for `place`.
        """
        made = object.__new__(Parts)
        made.__dict__.update(self.__dict__)
        made._names = {names[name]: (part, written(names[name])) for name, (part, _) in self._names.items()}
        made._again = again
        longest = max([len(text) for _, text in made._names.values()], default=0)
        if self.weights[-1] * (longest + 1) > MAX_WEIGHT:
            return None
        made._arrays = None
        return made

    def regex(self, pattern: str, weight: int) -> int:
        """Return the part of a regular expression, whose automaton has about ``weight`` operations."""
        return self._leaf(lib.LZS_PART_REGEX, pattern, 0, 0, weight)

    def pattern(self, pattern: str, low: int, high: int | None, where: str, *, yaml: bool = False) -> int:
        """Return the inside of a JSON string of ``low`` to ``high`` characters in which ECMAScript finds a pattern.

        ``where``: what asked for it, for `place`. ``yaml``: of a string in double quotes of YAML.
        """
        self._patterns.append((len(self._text), where))
        kind = lib.LZS_PART_YAML if yaml else lib.LZS_PART_PATTERN
        return self._leaf(kind, pattern, low, _most(high), 40 * len(pattern))

    def place(self, offset: int) -> tuple[str, int] | None:
        """Return what asked for the pattern that an error's offset is in, and the character of it; None if none did."""
        if self._again is not None:
            return self._again().place(offset)
        begins, where = max([row for row in self._patterns if row[0] <= offset], default=(0, ""))
        before = self._text[begins:offset].decode("utf-8", "replace")
        return (where, len(before)) if where and offset <= len(self._text) else None

    def sequence(self, *parts: int) -> int:
        """Return the part of some parts, one after the other."""
        return self._node(lib.LZS_PART_SEQUENCE, parts, 0, 0)

    def choice(self, parts: Sequence[int]) -> int:
        """Return the part that is one of at least one."""
        return parts[0] if len(parts) == 1 else self._node(lib.LZS_PART_CHOICE, parts, 0, 0)

    def repeat(self, part: int, low: int, high: int | None, separator: int | None = None) -> int:
        """Return a part ``low`` to ``high`` times (None: as often as one likes), maybe with another between them."""
        children = (part,) if separator is None else (part, separator)
        return self._node(lib.LZS_PART_REPEAT, children, low, _most(high))

    def list(self, separator: int, items: Sequence[int], at_least: int) -> int:
        """Return the part of some items with a separator between them; a `repeat` of 0 to 1 may be left out.

        ``at_least``: 0, or 1 if not all may be left out.
        """
        return self._node(lib.LZS_PART_LIST, (separator, *items), at_least, 0)

    def shared(self, *parts: int) -> int:
        """Return some parts, one after the other, such as those of a string, as one whose masks are kept for others."""
        return self._node(lib.LZS_PART_SHARED, parts, 0, 0)

    def behind(self, before: int, part: int) -> int:
        """Return a part behind another one; as a shared one unless the part is made of values within a value."""
        made = self._behind.get((before, part))
        if made is None:
            make = self.shared if self._is_flat(part) else self.sequence
            self._behind[before, part] = made = make(before, part)
        return made

    def _is_flat(self, part: int) -> bool:
        """Return whether a part is a text, a pattern, a shared one, or a choice of such."""
        kind, first, n = self._rows[5 * part : 5 * part + 3]
        return kind in _FLAT or (
            kind == lib.LZS_PART_CHOICE
            and all(self._rows[5 * child] in _FLAT for child in self._children[first : first + n])
        )

    def arrays(self) -> "tuple[array[int], array[int], bytes]":
        """Return five numbers for each part, as in `lzs_part`, the children and the text. All parts are there now."""
        if self._arrays is None:
            if self._numbers is None:
                self._numbers = array("I", self._rows), array("I", self._children or [0])
            rows, texts, end = self._numbers[0][:], [bytes(self._text)], len(self._text)
            for part, text in self._names.values():
                data = text.encode()
                rows[5 * part + 1], rows[5 * part + 2] = end, len(data)
                texts.append(data)
                end += len(data)
            self._arrays = rows, self._numbers[1], b"".join(texts)
        return self._arrays

    def _leaf(self, kind: int, text: str, low: int, high: int, weight: int) -> int:
        key = (kind, text, low, high)
        part = self._known.get(key)
        if part is None:
            data = text.encode()
            self._known[key] = part = self._add(kind, len(self._text), len(data), low, high, weight + 1)
            self._text += data
        return part

    def _node(self, kind: int, children: Sequence[int], low: int, high: int) -> int:
        first = len(self._children)
        self._children += children
        weights = self.weights
        return self._add(kind, first, len(children), low, high, 1 + sum([weights[child] for child in children]))

    def _add(self, kind: int, first: int, n: int, low: int, high: int, weight: int) -> int:
        if weight > MAX_WEIGHT:
            raise TooLargeError
        self._rows += (kind, first, n, low, high)
        self.weights.append(weight)
        return len(self.weights) - 1


def _most(high: int | None) -> int:
    return UNBOUNDED if high is None else high
