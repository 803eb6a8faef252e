"""`Prefilter`: computes the figures of a text, and tells which scans may find a loop (c/text/prefilter.c)."""

from typing import Any, NamedTuple

import numpy as np

from .._check import check
from .._ffi import ffi, lib
from ..errors import LzsError
from .metrics import MAX_BYTES, MEMBERS
from .normalized import fold_table
from .scan import Runs

# Each bit stands for one scan (lzs_scan). If a bit of `Prefiltered.scans` is clear, the scan would find no loop.
LONG_BYTES: int = lib.LZS_SCAN_LONG_BYTES
SHORT_BYTES: int = lib.LZS_SCAN_SHORT_BYTES
LINES: int = lib.LZS_SCAN_LINES
WORDS: int = lib.LZS_SCAN_WORDS
LONG_NORMALIZED: int = lib.LZS_SCAN_LONG_NORMALIZED
SHORT_NORMALIZED: int = lib.LZS_SCAN_SHORT_NORMALIZED


class Prefilter:
    """A function that tells which scans may find a loop in a text.

    ``of_bytes`` is for runs of bytes, ``of_spans`` for runs of words or lines, and ``of_normalized`` for runs of bytes
    of the normalized text. Each is a pair of numbers of copies. A run counts if it has at least the first number of
    copies. If a run has ``length`` bytes or more, the second number of copies is enough. The call raises ValueError if
    a number of copies is less than 2, or if ``length`` is less than 1.
    """

    def __init__(
        self,
        *,
        length: int,
        of_bytes: tuple[int, int],
        of_spans: tuple[int, int],
        of_normalized: tuple[int, int],
    ) -> None:
        self._rules = ffi.new("lzs_prefilter_rules *", (length, *of_bytes, *of_spans, *of_normalized))

    def __call__(self, data: bytes) -> "Prefiltered":
        """Return the figures of a text in UTF-8, and the scans to run. LzsError if the text has 4 GiB or more."""
        if len(data) > MAX_BYTES:
            raise LzsError(f"a text of {len(data)} bytes is too long: texts are limited to 4 GiB")
        fold, n_fold = fold_table(data)
        result = ffi.new("lzs_prefilter_result *")
        check(lib.lzs_prefilter(ffi.from_buffer(data), len(data), self._rules, fold, n_fold, result))
        counts = ffi.unpack(ffi.cast("uint64_t *", result), len(MEMBERS))  # The first member is the figures.
        return Prefiltered(counts, result.scans, _runs(result) if result.scans & LONG_BYTES else None)


class Prefiltered(NamedTuple):
    """What `Prefilter` returns for a text.

    ``counts``: the figures of the text, in the order of `MEMBERS`. ``scans``: the bits of the scans that may find a
    loop. ``long_runs``: the runs that LONG_BYTES would find; None if the bit LONG_BYTES is clear, or if the runs are
    too many.
    """

    counts: list[int]
    scans: int
    long_runs: Runs | None


def _runs(result: Any) -> Runs | None:
    n = result.n_long_runs
    if n > lib.LZS_PREFILTER_RUNS:
        return None
    rows = np.frombuffer(ffi.buffer(result.long_runs), np.int64).reshape(-1, 3)[:n]
    return Runs(*(rows[:, i].copy() for i in range(3)))
