"""`Parts`: a grammar built from texts, patterns, choices and repetitions, for `lzs_grammar_new_parts`."""

from array import array
from collections.abc import Callable, Mapping, Sequence

from .._ffi import lib

UNBOUNDED: int = lib.LZS_PART_UNBOUNDED
_FLAT = frozenset((lib.LZS_PART_TEXT, lib.LZS_PART_REGEX, lib.LZS_PART_PATTERN, lib.LZS_PART_YAML, lib.LZS_PART_SHARED))
MAX_WEIGHT = 2_000_000


class TooLargeError(Exception):
    """Raised for a grammar whose automaton would have more than about `MAX_WEIGHT` operations."""


class Parts:
    """A grammar as a list of parts: texts, patterns, and combinations of earlier parts. The last part is the grammar.

    A part is identified by its index. If several parts use a part, the automaton has a copy of it for each use.
    ``weights``: estimated size of each part, in operations of the automaton.
    """

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._children: list[int] = []
        self._text = bytearray()
        self._names: dict[str, tuple[int, str]] = {}  # name of a property -> (part, name as it is written)
        self._known: dict[tuple[int, str, int, int], int] = {}
        self._patterns: list[tuple[int, str]] = []  # for each pattern: (offset in `_text`, pointer to the keyword)
        self.weights: list[int] = []
        self._behind: dict[tuple[int, int], int] = {}
        self._numbers: tuple[array[int], array[int]] | None = None
        self._arrays: tuple[array[int], array[int], bytes] | None = None
        self._again: Callable[[], Parts] | None = None  # translates the schema of renamed parts, for `place`

    def text(self, text: str) -> int:
        """Return the part that matches one text."""
        return self._leaf(lib.LZS_PART_TEXT, text, 0, 0, len(text))

    def name(self, name: str, text: str) -> int:
        """Return the part for the name of a property. ``text``: the name as it is written, for example in quotes."""
        known = self._names.get(name)
        if known is None:
            known = self._names[name] = (self._add(lib.LZS_PART_TEXT, 0, 0, 0, 0, len(text) + 1), text)
        return known[0]

    def renamed(
        self, names: Mapping[str, str], written: Callable[[str], str], again: Callable[[], "Parts"]
    ) -> "Parts | None":
        """Return the same parts with other names of properties; None if the new names could make the grammar too large.

        ``names``: old name -> new name. ``written``: a function that returns a name as it is written. ``again``: a
        function that translates the schema with the new names, for the pointers of `place`.
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
        """Return the part for a regular expression. ``weight``: about how many operations its automaton has."""
        return self._leaf(lib.LZS_PART_REGEX, pattern, 0, 0, weight)

    def pattern(self, pattern: str, low: int, high: int | None, where: str, *, yaml: bool = False) -> int:
        """Return the part for the inside of a JSON string that contains a match of an ECMAScript pattern.

        ``low``, ``high``: least and greatest number of characters. ``where``: pointer to the keyword, for `place`.
        ``yaml``: whether the string is a double-quoted YAML string.
        """
        self._patterns.append((len(self._text), where))
        kind = lib.LZS_PART_YAML if yaml else lib.LZS_PART_PATTERN
        return self._leaf(kind, pattern, low, _most(high), 40 * len(pattern))

    def place(self, offset: int) -> tuple[str, int] | None:
        """Return (pointer to the pattern that contains an error, index of the character in the pattern).

        ``offset``: the offset of the error in the text of `arrays`. None if no pattern is at this offset.
        """
        if self._again is not None:
            return self._again().place(offset)
        begins, where = max([row for row in self._patterns if row[0] <= offset], default=(0, ""))
        before = self._text[begins:offset].decode("utf-8", "replace")
        return (where, len(before)) if where and offset <= len(self._text) else None

    def sequence(self, *parts: int) -> int:
        """Return a part that matches the given parts in sequence."""
        return self._node(lib.LZS_PART_SEQUENCE, parts, 0, 0)

    def choice(self, parts: Sequence[int]) -> int:
        """Return a part that matches any one of the given parts. There must be at least one."""
        return parts[0] if len(parts) == 1 else self._node(lib.LZS_PART_CHOICE, parts, 0, 0)

    def repeat(self, part: int, low: int, high: int | None, separator: int | None = None) -> int:
        """Return a part repeated ``low`` to ``high`` times (None: without limit), with an optional separator."""
        children = (part,) if separator is None else (part, separator)
        return self._node(lib.LZS_PART_REPEAT, children, low, _most(high))

    def list(self, separator: int, items: Sequence[int], at_least: int) -> int:
        """Return a part for items with a separator between them. An item that is a `repeat` of 0 to 1 is optional.

        ``at_least``: least number of items, 0 or 1.
        """
        return self._node(lib.LZS_PART_LIST, (separator, *items), at_least, 0)

    def shared(self, *parts: int) -> int:
        """Return the given parts in sequence as one part. All grammars that contain this part share its masks."""
        return self._node(lib.LZS_PART_SHARED, parts, 0, 0)

    def behind(self, before: int, part: int) -> int:
        """Return ``before`` followed by ``part``, as a shared part unless ``part`` contains nested values."""
        made = self._behind.get((before, part))
        if made is None:
            make = self.shared if self._is_flat(part) else self.sequence
            self._behind[before, part] = made = make(before, part)
        return made

    def _is_flat(self, part: int) -> bool:
        """Return whether a part is a text, a pattern, a shared part, or a choice of these."""
        kind, first, n = self._rows[5 * part : 5 * part + 3]
        return kind in _FLAT or (
            kind == lib.LZS_PART_CHOICE
            and all(self._rows[5 * child] in _FLAT for child in self._children[first : first + n])
        )

    def arrays(self) -> "tuple[array[int], array[int], bytes]":
        """Return (rows of `lzs_part`, children, text). Call this only when the last part is made."""
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
