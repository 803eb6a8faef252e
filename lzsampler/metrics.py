"""Figures of repetition that need no runs: rep-n, distinct-n, Gopher's fractions, zlib's ratio (docs/audit.md)."""

import zlib

import numpy as np
import numpy.typing as npt

from ._check import LzsError, check
from ._ffi import ffi, lib

TAIL = 4096  # bytes at the end of a field
_LEVEL = 1  # of zlib; 6 takes three times as long
_MAX_BYTES = 2**32 - 1
_NGRAMS, _DISTINCT = 2, 6  # where they start in lzs_figures, whose members these are:
_NAMES = (
    *("characters", "words"),
    *(f"ngrams{n}" for n in (1, 2, 3, 4)),
    *(f"distinct{n}" for n in (1, 2, 3, 4)),
    *(f"top{n}" for n in (2, 3, 4)),
    *(f"duplicate{n}" for n in range(5, 11)),
    *("lines", "duplicate_lines", "duplicate_lines_characters"),
    *("paragraphs", "duplicate_paragraphs", "duplicate_paragraphs_characters"),
)

Spans = npt.NDArray[np.uint32]
Ids = npt.NDArray[np.int32]


def words(data: bytes) -> Spans:
    """Return the words of a text of UTF-8, those of `str.split`: start and end in bytes, uint32[n, 2]."""
    return _split(data, lib.LZS_SPLIT_WORDS, len(data) // 2 + 1)


def lines(data: bytes) -> Spans:
    """Return the lines of a text of UTF-8 without white space at their ends: start and end in bytes, uint32[n, 2]."""
    return _split(data, lib.LZS_SPLIT_LINES, data.count(b"\n") + 1)


def _split(data: bytes, kind: int, room: int) -> Spans:
    if len(data) > _MAX_BYTES:
        raise LzsError(f"a text of {len(data)} bytes is too long: words and lines are found in texts below 4 GiB")
    spans, n = np.empty((room, 2), np.uint32), ffi.new("size_t *")
    check(lib.lzs_split(ffi.from_buffer(data), len(data), kind, ffi.from_buffer("lzs_span[]", spans), room, n))
    return spans[: n[0]]


def intern(data: bytes, spans: Spans) -> Ids:
    """Return numbers of spans of a text, int32[n]: equal ones have equal numbers, from 0 as they first come."""
    ids = np.empty(len(spans), np.int32)
    span_array, id_array = ffi.from_buffer("lzs_span[]", spans), ffi.from_buffer("int32_t[]", ids)
    check(lib.lzs_intern(ffi.from_buffer(data), len(data), span_array, len(spans), id_array, ffi.new("size_t *")))
    return ids


class Metrics:
    """Metrics of a record: add its fields, then take `figures`.

    Numerators and denominators are added up over the fields; no n-gram reaches from one into the next.
    """

    def __init__(self) -> None:
        self._sums = np.zeros(len(_NAMES), np.uint64)
        self._bytes = [0, 0, 0, 0]  # of the fields, compressed, of their tails, compressed

    def add(self, data: bytes, spans: Spans, ids: Ids) -> float:
        """Add a text of UTF-8 with its words and their numbers; return its own rep-4, 0..1."""
        found = np.empty(len(_NAMES), np.uint64)
        span_array, id_array = ffi.from_buffer("lzs_span[]", spans), ffi.from_buffer("int32_t[]", ids)
        figures = ffi.cast("lzs_figures *", ffi.from_buffer(found))
        check(lib.lzs_text_figures(ffi.from_buffer(data), len(data), span_array, id_array, len(spans), figures))
        self._sums += found
        tail, compressed = data[-TAIL:], len(zlib.compress(data, _LEVEL))
        compressed_tail = compressed if len(tail) == len(data) else len(zlib.compress(tail, _LEVEL))
        sizes = (len(data), compressed, len(tail), compressed_tail) if data else (0, 0, 0, 0)
        self._bytes = [a + b for a, b in zip(self._bytes, sizes, strict=True)]
        return _share(int(found[_NGRAMS + 3] - found[_DISTINCT + 3]), int(found[_NGRAMS + 3]))

    def figures(self) -> dict[str, float]:
        """Return all metrics by name (docs/audit.md); 0 where there is nothing to count."""
        sums = dict(zip(_NAMES, self._sums.tolist(), strict=True))
        characters, words = sums["characters"], sums["words"]
        made: dict[str, float] = {}
        for n in (1, 2, 3, 4):
            made[f"rep{n}"] = _share(sums[f"ngrams{n}"] - sums[f"distinct{n}"], sums[f"ngrams{n}"])
        for n in (1, 2, 3, 4):
            made[f"distinct{n}"] = _share(sums[f"distinct{n}"], words)
        size, compressed, tail, compressed_tail = self._bytes
        made["zlib_ratio"], made["zlib_tail_ratio"] = _share(size, compressed), _share(tail, compressed_tail)
        for name, kind in (("line", "lines"), ("para", "paragraphs")):
            made[f"gopher.dup_{name}_frac"] = _share(sums[f"duplicate_{kind}"], sums[kind])
            made[f"gopher.dup_{name}_char_frac"] = _share(sums[f"duplicate_{kind}_characters"], characters)
        for n in (2, 3, 4):
            made[f"gopher.top_{n}_gram"] = _share(sums[f"top{n}"], characters)
        for n in range(5, 11):
            made[f"gopher.dup_{n}_gram"] = _share(sums[f"duplicate{n}"], characters)
        return made


def _share(part: int, of: int) -> float:
    return part / of if of else 0.0
