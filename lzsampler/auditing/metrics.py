"""Metrics of repetition that need no search for runs, such as rep-n and the zlib ratio (docs/audit.md).

The figures of a text are integer counts (lzs_figures in C). The metrics are quotients of figures.
"""

from collections.abc import Mapping, Sequence
from operator import add
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._check import INT32_MAX, check, token_array
from .._ffi import ffi, lib
from ..errors import LzsError

try:
    from deflate import zlib_compress
except ImportError:  # No zlib ratio is measured, since ratios from other libraries would not be comparable.
    zlib_compress = None  # type: ignore[assignment]

TAIL = 4096  # zlib_tail_ratio measures this many bytes at the end of a field
MAX_BYTES = 2**32 - 1  # maximum size of a field in bytes
_LEVEL = 1  # libdeflate's level 1 compresses about as well as zlib's level 6, in half the time of zlib's level 1
_NGRAMS4, _DISTINCT4 = 5, 9  # indexes of "ngrams4" and "distinct4" in `MEMBERS`
# The names of the members of lzs_figures, in order.
MEMBERS = (
    *("characters", "words"),
    *(f"ngrams{n}" for n in (1, 2, 3, 4)),
    *(f"distinct{n}" for n in (1, 2, 3, 4)),
    *(f"top{n}" for n in (2, 3, 4)),
    *(f"duplicate{n}" for n in range(5, 11)),
    *("lines", "duplicate_lines", "duplicate_lines_characters"),
    *("paragraphs", "duplicate_paragraphs", "duplicate_paragraphs_characters"),
    *("tail_ngrams", "tail_distinct", "extensible", "extended", "frequent"),
)

Spans = npt.NDArray[np.uint32]
Ids = npt.NDArray[np.int32]


def words(data: bytes) -> Spans:
    """Return (start, end), in bytes, of the words of a text in UTF-8, uint32[n, 2]. Words are as in `str.split`."""
    return _split(data, lib.LZS_SPLIT_WORDS, len(data) // 2 + 1)


def lines(data: bytes) -> Spans:
    """Return (start, end), in bytes, of the lines of a text in UTF-8 without surrounding white space, uint32[n, 2]."""
    return _split(data, lib.LZS_SPLIT_LINES, data.count(b"\n") + 1)


def _split(data: bytes, kind: int, room: int) -> Spans:
    if len(data) > MAX_BYTES:
        raise LzsError(f"a text of {len(data)} bytes is too long: texts are limited to 4 GiB")
    spans, n = np.empty((room, 2), np.uint32), ffi.new("size_t *")
    check(lib.lzs_split(ffi.from_buffer(data), len(data), kind, ffi.from_buffer("lzs_span[]", spans), room, n))
    return spans[: n[0]]


def intern(data: bytes, spans: Spans) -> Ids:
    """Return a number for each span of a text, int32[n]. Spans with the same text have the same number.

    The different spans are numbered from 0, in the order in which they first occur.
    """
    ids = np.empty(len(spans), np.int32)
    span_array, id_array = ffi.from_buffer("lzs_span[]", spans), ffi.from_buffer("int32_t[]", ids)
    check(lib.lzs_intern(ffi.from_buffer(data), len(data), span_array, len(spans), id_array, ffi.new("size_t *")))
    return ids


class TokenFigures(NamedTuple):
    """Metrics of the tokens of a text, as other papers define them (docs/evaluate.md).

    ``rep4``: the share of the 4-grams that occurred before, 0..1. ``tail_rep4``: rep-4 of the last 512 tokens alone.
    ``extensible``: the number of tokens whose preceding 4-gram occurred before. ``extended``: how many of these tokens
    also followed an earlier occurrence of the same 4-gram. ``frequent``: whether some 30-gram occurs 20 times or more.
    """

    rep4: float
    tail_rep4: float
    extensible: int
    extended: int
    frequent: bool


def token_figures(tokens: Sequence[int] | npt.NDArray[np.integer[Any]]) -> TokenFigures:
    """Return the exact metrics of token ids, in time proportional to the number of tokens.

    Raises ValueError for negative ids, TypeError if the values are not token ids.
    """
    ids, figures = token_array("tokens", tokens, INT32_MAX), ffi.new("lzs_figures *")
    check(lib.lzs_number_figures(ffi.from_buffer("int32_t[]", ids), len(ids), figures))
    return TokenFigures(
        rep4=_share(figures.ngrams[3] - figures.distinct[3], figures.ngrams[3]),
        tail_rep4=_share(figures.tail_ngrams - figures.tail_distinct, figures.tail_ngrams),
        extensible=int(figures.extensible),
        extended=int(figures.extended),
        frequent=figures.frequent > 0,
    )


def code_length(tokens: npt.NDArray[np.int32], n_vocab: int, window: int = 512, buffer: int = 32) -> float:
    """Return the length in bits of tokens, int32[n], under the LZ compressor of arXiv 2504.20131 (Definition 8).

    The compressor cuts the tokens into phrases from left to right. A phrase is the longest stretch of up to ``buffer``
    tokens that also occurs 1 to ``window`` tokens earlier. The code of a phrase has 1 + log2 length + log2 distance
    bits (Proposition 1). If there is no such stretch, the phrase is a single token, whose code has 1 + log2 ``n_vocab``
    bits (Proposition 2). A phrase may overlap its earlier copy, as in LZ77. If several earlier copies are equally long,
    the nearest counts. The speed is about 10 million tokens/s. ValueError for values out of range.
    """
    ids, bits = token_array("tokens", tokens, n_vocab), ffi.new("double *")
    check(lib.lzs_code_length(ffi.from_buffer("int32_t[]", ids), len(ids), n_vocab, window, buffer, bits))
    return float(bits[0])


class Metrics:
    """Computes the metrics of a record: `add` its fields, then call `figures`.

    Numerators and denominators are summed over the fields. An n-gram never spans two fields.
    """

    def __init__(self) -> None:
        self._measured = False
        self._sums = [0] * len(MEMBERS)
        self._code, self._coded = 0.0, 0  # code length in bits, and number of encoded tokens
        self._bytes = [0, 0, 0, 0]  # sizes of the fields, the compressed fields, the tails and the compressed tails

    def add(self, data: bytes, counts: list[int]) -> float:
        """Add a text in UTF-8, and its figures in the order of `MEMBERS`. Return the rep-4 of the text."""
        self._measured = True
        self._sums = list(map(add, self._sums, counts))
        if data and zlib_compress is not None:
            tail, compressed = data[-TAIL:], len(zlib_compress(data, _LEVEL))
            compressed_tail = compressed if len(tail) == len(data) else len(zlib_compress(tail, _LEVEL))
            self._bytes = list(map(add, self._bytes, (len(data), compressed, len(tail), compressed_tail)))
        return _share(counts[_NGRAMS4] - counts[_DISTINCT4], counts[_NGRAMS4])

    def add_tokens(self, tokens: npt.NDArray[np.int32], n_vocab: int) -> None:
        """Add the code length of a field's tokens, int32[n]. ValueError for a token outside the vocabulary."""
        self._code += code_length(tokens, n_vocab)
        self._coded += len(tokens)

    def figures(self) -> dict[str, float]:
        """Return the metrics by name (docs/audit.md). A metric whose denominator is 0 is 0.

        The zlib ratios are missing without libdeflate, lz_bits_per_token is missing without tokens, and all other
        metrics are missing without a text.
        """
        coded = {"lz_bits_per_token": self._code / self._coded} if self._coded else {}
        if not self._measured:
            return coded
        sums, sizes = self._sums, self._bytes
        made = {name: (sums[a] - sums[b]) / sums[of] if sums[of] else 0.0 for name, a, b, of in _DIFFERENCES}
        made.update({name: sums[a] / sums[of] if sums[of] else 0.0 for name, a, of in _SHARES})
        made["frequent_30_gram"] = float(sums[_FREQUENT] > 0)
        if zlib_compress is not None:
            made["zlib_ratio"], made["zlib_tail_ratio"] = _share(sizes[0], sizes[1]), _share(sizes[2], sizes[3])
        made.update(coded)
        return made


class Sums:
    """The sum of each metric over records (`sums`), and the number of records that have the metric (`counts`).

    Successive records usually have the same metrics, so the names are looked up only when they change.
    """

    def __init__(self, sums: dict[str, float] | None = None, counts: dict[str, int] | None = None) -> None:
        self._sums, self._counts = sums or {}, counts or {}
        # The latest records, which all have the same metrics, are not yet in `_sums` and `_counts`.
        self._names: tuple[str, ...] = ()  # names of the metrics of the latest records
        self._row: list[float] = []  # sum of each of these metrics over the records in `_sums` and the latest records
        self._rows = 0  # number of the latest records

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sums) and (self.sums, self.counts) == (other.sums, other.counts)

    __hash__ = None  # type: ignore[assignment]  # A Sums is mutable.

    def add(self, metrics: Mapping[str, float]) -> None:
        """Add the metrics of a record."""
        names = tuple(metrics)
        if names != self._names:
            self._settle()
            self._names, self._row = names, [self._sums.get(name, 0.0) for name in names]
        self._row = list(map(add, self._row, metrics.values()))
        self._rows += 1

    def merge(self, other: "Sums") -> None:
        """Add the sums and counts of ``other``, whose records come later."""
        self._settle()
        self._names = ()
        for name, value in other.sums.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        for name, count in other.counts.items():
            self._counts[name] = self._counts.get(name, 0) + count

    @property
    def sums(self) -> dict[str, float]:
        """The sums by name."""
        self._settle()
        return self._sums

    @property
    def counts(self) -> dict[str, int]:
        """The number of records that have each metric, by name."""
        self._settle()
        return self._counts

    def _settle(self) -> None:
        if self._rows:
            self._sums.update(zip(self._names, self._row, strict=True))
            for name in self._names:
                self._counts[name] = self._counts.get(name, 0) + self._rows
            self._rows = 0


def repeated_4_grams(counts: list[int]) -> int:
    """Return the number of 4-grams of words that occurred before, from the figures of a text (`MEMBERS`)."""
    return counts[_NGRAMS4] - counts[_DISTINCT4]


def _share(part: int, of: int) -> float:
    return part / of if of else 0.0


_place = MEMBERS.index
_FREQUENT = _place("frequent")

_DIFFERENCES: list[tuple[str, int, int, int]] = [
    *((f"rep{n}", _place(f"ngrams{n}"), _place(f"distinct{n}"), _place(f"ngrams{n}")) for n in (1, 2, 3, 4)),
    ("tail_rep4", _place("tail_ngrams"), _place("tail_distinct"), _place("tail_ngrams")),
]
_SHARES: list[tuple[str, int, int]] = [
    *((f"distinct{n}", _place(f"distinct{n}"), _place("words")) for n in (1, 2, 3, 4)),
    ("ser4", _place("extended"), _place("extensible")),
    *(
        (f"gopher.dup_{name}{what}_frac", _place(f"duplicate_{kind}{members}"), _place(of))
        for name, kind in (("line", "lines"), ("para", "paragraphs"))
        for what, members, of in (("", "", kind), ("_char", "_characters", "characters"))
    ),
    *((f"gopher.top_{n}_gram", _place(f"top{n}"), _place("characters")) for n in (2, 3, 4)),
    *((f"gopher.dup_{n}_gram", _place(f"duplicate{n}"), _place("characters")) for n in range(5, 11)),
]
