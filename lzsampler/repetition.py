"""How much a text repeats itself: its largest run, whether it loops, rep-4 and zlib's ratio.

A run is a stretch that repeats with a period: every character equals the one a period before it, over at least two
periods, and it can be extended on neither side. Only runs whose unit has two distinct characters that are not white
space count, or else every indentation and every ruler of dashes would be one.

Finding them compares each text with itself, shifted by every period: all of it for short periods, and for long ones
at anchors that no run can miss. A run of `count` periods p matches its shift at (count - 1) * p places in a row, so
that of anchors (count - 1) * p - G + 1 apart one has G matches to its right, and equal hashes of G characters show it.
"""

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LOOP_COUNT = 20  # copies that make a loop, as in arXiv 2504.20131 (footnote 7)

_GRAM = 32  # characters hashed at an anchor, a power of 2
_SHORT = 64  # periods up to this are compared in full
_HASH_BASE = np.uint64(0x9E3779B97F4A7C15)

_Characters = npt.NDArray[np.uint32]
_Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """A stretch of text that repeats: ``start`` and ``period`` in characters, ``count`` whole copies of ``unit``.

    ``length`` is all that repeats, in characters, the last copy being maybe cut: at least period * count.
    """

    start: int
    period: int
    count: int
    length: int
    unit: str


@dataclass(frozen=True)
class Repetition:
    """Figures of one text. ``run``: its largest run, None when nothing repeats; ``loops``: 20 copies or more somewhere.

    ``rep4``: share of 4-grams of words that occurred before, 0..1. ``zlib_ratio``: UTF-8 bytes a compressed byte.
    """

    run: Run | None
    loops: bool
    rep4: float
    zlib_ratio: float


def repetition(text: str) -> Repetition:
    """Return all figures of a text."""
    run = largest_run(text)
    return Repetition(run, run is not None and loops(text), rep_n(text, 4), zlib_ratio(text))


def largest_run(text: str, min_count: int = 2) -> Run | None:
    """Return the run that covers most characters among those with at least ``min_count`` (>= 2) copies.

    Of equals the one with the shortest period, then the first. None when there is none. About n log n comparisons:
    milliseconds for an answer, below a second for 100,000 characters.
    """
    if min_count < 2:
        raise ValueError(f"min_count must be at least 2, got {min_count}")
    search = _Search(text, min_count)
    longest_period = search.a.size // min_count
    for period in range(1, min(_SHORT, longest_period) + 1):
        search.short(period)
    if longest_period > _SHORT and search.prepare_long():
        for period in range(_SHORT + 1, longest_period + 1):
            search.long(period)
    return search.best


def loops(text: str, min_count: int = LOOP_COUNT) -> bool:
    """Return whether a unit is repeated at least ``min_count`` times without a break, at the end or before it."""
    return largest_run(text, min_count) is not None


def rep_n(text: str, n: int = 4) -> float:
    """Return 1 - distinct / total over the n-grams of white-space separated words, 0..1; 0 for under n words.

    seq-rep-n of Welleck et al. 2019 (arXiv 1908.04319), there over a model's tokens.
    """
    words = text.split()
    total = len(words) - n + 1
    if total < 1:
        return 0.0
    return 1.0 - len(set(zip(*(words[i:] for i in range(n)), strict=False))) / total


def zlib_ratio(text: str) -> float:
    """Return UTF-8 bytes of the text divided by those that zlib (level 6) makes of it; 0 for an empty text."""
    data = text.encode("utf-8", "surrogatepass")
    return len(data) / len(zlib.compress(data, 6))


class _Search:
    """The largest run so far, and the long ones: a run is also one of every multiple of its period, once is enough."""

    def __init__(self, text: str, min_count: int) -> None:
        self.text, self.min_count = text, min_count
        self.a = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        self.best: Run | None = None
        self.known: dict[int, tuple[_Places, _Places]] = {}  # period -> starts and ends of runs above _SHORT + _GRAM
        self.extents: set[tuple[int, int]] = set()

    def offer(self, start: int, end: int, period: int) -> bool:
        """Take a run if it is the largest and its unit is one of text; return whether it was."""
        if self.best is not None and end - start <= self.best.length:
            return False
        unit = self.text[start : start + period]
        if len(set("".join(unit.split()))) < 2:
            return False
        self.best = Run(start, period, (end - start) // period, end - start, unit)
        return True

    def remember(self, period: int, runs: list[tuple[int, int]]) -> None:
        """File runs in order of their start: two of one period overlap by less than it, so the last start is enough."""
        if runs:
            starts, ends = zip(*runs, strict=True)
            self.known[period] = np.array(starts), np.array(ends)
            self.extents.update(runs)

    def short(self, period: int) -> None:
        """Look for runs of one period at every place."""
        a = self.a
        breaks = np.flatnonzero(a[period:] != a[:-period])  # places where the text differs from its shift
        edges = np.concatenate(([-1], breaks, [a.size - period]))
        lengths = np.diff(edges) - 1 + period
        runs = np.flatnonzero(lengths >= self.min_count * period)
        lengths, starts = lengths[runs], edges[runs] + 1
        for i in np.argsort(-lengths, kind="stable"):
            if self.offer(int(starts[i]), int(starts[i] + lengths[i]), period):
                break  # all that follow are shorter
        large = lengths > _SHORT + _GRAM
        extents = zip(starts[large].tolist(), (starts + lengths)[large].tolist(), strict=True)
        self.remember(period, [extent for extent in extents if extent not in self.extents])

    def prepare_long(self) -> bool:
        """Hash all stretches of 32 characters; False when none occurs twice, so that nothing long does."""
        self.hashes = _gram_hashes(self.a)
        return np.unique(self.hashes).size < self.hashes.size

    def long(self, period: int) -> None:
        """Look for runs of one period at anchors."""
        step = (self.min_count - 1) * period - _GRAM + 1
        here = self.hashes[: self.hashes.size - period : step]
        anchors = np.flatnonzero(here == self.hashes[period::step][: here.size]) * step
        if not anchors.size:
            return
        for divisor, (starts, ends) in self.known.items():
            if period % divisor == 0:  # inside such a run there is nothing new
                run = np.searchsorted(starts, anchors, "right") - 1
                anchors = anchors[(run < 0) | (anchors + period + _GRAM > ends[run])]
        runs, done = [], 0
        for anchor in anchors.tolist():
            if anchor < done:
                continue
            start, end = _extend(self.a, anchor, period)
            done = end - period
            if end - start >= self.min_count * period:
                runs.append((start, end))
                self.offer(start, end, period)
        self.remember(period, runs)


def _extend(a: _Characters, anchor: int, period: int) -> tuple[int, int]:
    """Return the stretch [start, end) around ``anchor`` in which the text equals its shift by ``period``."""
    right, left, chunk = anchor, anchor, 64
    while True:
        differs = (
            a[right + period : right + period + chunk] != a[right : right + chunk][: max(0, a.size - period - right)]
        )
        if differs.any():
            right += int(differs.argmax())
            break
        right += differs.size
        if right + period >= a.size:
            break
        chunk *= 4
    chunk = 64
    while left:
        low = max(0, left - chunk)
        differs = (a[low + period : left + period] != a[low:left])[::-1]
        if differs.any():
            left -= int(differs.argmax())
            break
        left, chunk = low, chunk * 4
    return left, right + period


def _gram_hashes(a: _Characters) -> npt.NDArray[np.uint64]:
    """Return a polynomial hash of each 32 characters, uint64[n - 31], by doubling: of 1, 2, 4, ... 32 of them."""
    hashes, power, length = a.astype(np.uint64) + np.uint64(1), _HASH_BASE, 1
    with np.errstate(over="ignore"):
        while length < _GRAM:
            hashes = hashes[:-length] * power + hashes[length:]
            power, length = power * power, length * 2
    return hashes
