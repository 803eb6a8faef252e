"""`Parts`: a grammar put together of texts, patterns, choices and repetitions, for `lzs_grammar_new_parts`."""

from collections.abc import Sequence

import numpy as np

from .._ffi import lib

UNBOUNDED: int = lib.LZS_PART_UNBOUNDED
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
        self._known: dict[tuple[int, str, int, int], int] = {}
        self._patterns: list[tuple[int, str]] = []  # where the text of each begins, and what asked for it
        self.weights: list[int] = []
        self._arrays: tuple[np.ndarray, np.ndarray, bytes] | None = None

    def text(self, text: str) -> int:
        """Return the part of one text."""
        return self._leaf(lib.LZS_PART_TEXT, text, 0, 0, len(text))

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

    def shared(self, part: int) -> int:
        """Return a part, such as a string, whose masks are kept for all grammars that have the same one."""
        return self._node(lib.LZS_PART_SHARED, (part,), 0, 0)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, bytes]:
        """Return the parts, uint32[n, 5] as in `lzs_part`, their children and their text, which are all there now."""
        if self._arrays is None:
            rows = np.array(self._rows, np.uint32).reshape(-1, 5)
            self._arrays = rows, np.array(self._children or [0], np.uint32), bytes(self._text)
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
