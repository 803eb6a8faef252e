"""Makes the two forms of a text that the scans read, UTF-8 and normalized, and converts offsets to characters."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import check
from .._ffi import ffi, lib

Offsets = npt.NDArray[np.int64]

_BLOCK = 4 << 20  # number of bytes whose characters are counted in one step
_ASCII, _FOLDED = 128, 0x1FBFA  # No character from _FOLDED on is a capital, a digit or white space (Unicode 14).


def to_bytes(text: str) -> bytes:
    """Return a text as UTF-8, in which lone surrogates are encoded like characters."""
    return text.encode("utf-8", "surrogatepass")


def whole_characters(data: bytes, start: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
    """Cut incomplete characters off the two ends of each stretch of UTF-8. A stretch may become empty."""
    if data.isascii() or not start.size:
        return start, end
    array = np.frombuffer(data, np.uint8)

    def inside(at: Offsets) -> npt.NDArray[np.bool_]:
        return np.asarray((at < array.size) & ((array[np.minimum(at, array.size - 1)] & 0xC0) == 0x80))

    for _ in range(3):  # a character has at most three bytes after its first byte
        start, end = start + inside(start), end - inside(end)
    return start, np.maximum(start, end)


def characters_before(data: bytes, at: Offsets) -> Offsets:
    """Return the number of UTF-8 characters that begin before each byte offset, int64 of the same shape."""
    if data.isascii() or not at.size:
        return at
    array = np.frombuffer(data, np.uint8)
    edges = np.unique(np.append(at, np.arange(0, len(data), _BLOCK)))
    counts = [  # numbers of characters from each edge to the next edge
        np.add.reduceat((array[block : block + _BLOCK] & 0xC0) != 0x80, inside - block, dtype=np.int64)
        for block in range(0, len(data), _BLOCK)
        for inside in [edges[np.searchsorted(edges, block) : np.searchsorted(edges, min(block + _BLOCK, len(data)))]]
    ]
    return np.cumsum(np.concatenate(([0], *counts)))[np.searchsorted(edges, at)]


def fold_table(data: bytes) -> tuple[Any, int]:
    """Return the table that normalizes a text in UTF-8, as a uint32_t array for C, and its length.

    The table maps white space to ' ' and decimal digits to '0'. Any other character is mapped to its lower case
    (`str.lower`) if the lower case is one character and has no more bytes than the character. The tables are cached.
    """
    return _fold_table(_ASCII if data.isascii() else _FOLDED)


@cache
def _fold_table(size: int) -> tuple[Any, int]:
    table = np.arange(size, dtype=np.uint32)
    for code in range(size):
        character = chr(code)
        if character.isspace():
            table[code] = 0x20
        elif character.isdecimal():
            table[code] = 0x30
        else:
            lower = character.lower()
            if lower != character and len(lower) == 1 and len(to_bytes(lower)) <= len(to_bytes(character)):
                table[code] = ord(lower)
    return ffi.from_buffer("uint32_t[]", table), size


class NormalizedText:
    """A text with masked digits, folded case and collapsed white space. ``data``: the normalized text in UTF-8.

    A stretch of decimal digits becomes one '0', since a counter may go from 9 to 10. A stretch of white space becomes
    one ' ', and a letter becomes lower case. Lone surrogates, and bytes that are not UTF-8, do not change.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        room = np.empty(max(len(text), 1), np.uint8)
        self.data = room[: self._make(room, np.empty(0, np.uint64))].tobytes()

    def _make(self, room: npt.NDArray[np.uint8], places: npt.NDArray[np.uint64]) -> int:
        fold, n_normalized = fold_table(self._text), ffi.new("size_t *")
        normalized, places_array = ffi.from_buffer("uint8_t[]", room), ffi.from_buffer("uint64_t[]", places)
        text = ffi.from_buffer(self._text)
        check(lib.lzs_normalize(text, len(text), *fold, normalized, n_normalized, places_array, places.size))
        return int(n_normalized[0])

    def places(self, at: Offsets) -> Offsets:
        """Convert byte offsets in ``data`` to character offsets in the text, int64 of the same shape."""
        order = np.sort(at, axis=None)
        found = order.astype(np.uint64)
        self._make(np.empty(max(len(self._text), 1), np.uint8), found)
        return found.astype(np.int64)[np.searchsorted(order, at)]
