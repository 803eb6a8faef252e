"""`Screen`: the figures of a text and which kinds of loops it may have, in one call of the C core (c/lzs_screen.c)."""

from typing import Any, NamedTuple

import numpy as np

from ._check import LzsError, check
from ._ffi import ffi, lib
from ._scan import Runs
from .metrics import MAX_BYTES, MEMBERS
from .views import fold_table

LONG: int = lib.LZS_MAY_LONG  # what a text may have (lzs_may); where its bit is not set, a scan for it finds nothing
MANY: int = lib.LZS_MAY_MANY
LINES: int = lib.LZS_MAY_LINES
WORDS: int = lib.LZS_MAY_WORDS
NEAR_LONG: int = lib.LZS_MAY_NEAR_LONG
NEAR_MANY: int = lib.LZS_MAY_NEAR_MANY


class Screen:
    """Screens texts for loops of ``copies`` copies, or of ``length_copies`` with ``length`` characters together.

    In the text as it is ``any_copies`` takes the place of the former, in its near view ``near_copies`` of the latter.
    """

    def __init__(self, *, copies: int, length: int, length_copies: int, any_copies: int, near_copies: int) -> None:
        self._rules = ffi.new("lzs_screen_rules *", (copies, length, length_copies, any_copies, near_copies))

    def __call__(self, data: bytes) -> "Screened":
        """Return what there is in a text of UTF-8. LzsError when it has 4 GiB or more."""
        if len(data) > MAX_BYTES:
            raise LzsError(f"a text of {len(data)} bytes is too long: texts are audited up to 4 GiB")
        fold, n_fold = fold_table(data)
        found = ffi.new("lzs_screening *")
        check(lib.lzs_screen(ffi.from_buffer(data), len(data), self._rules, fold, n_fold, found))
        counts = ffi.unpack(ffi.cast("uint64_t *", found), len(MEMBERS))  # figures come first
        return Screened(counts, found.may, _runs(found) if found.may & LONG else None)


class Screened(NamedTuple):
    """What a screen found: the `MEMBERS` of a text, what it may have, and its long runs when they are few."""

    counts: list[int]
    may: int
    long_runs: Runs | None


def _runs(found: Any) -> Runs | None:
    n = found.n_long_runs
    if n > lib.LZS_SCREEN_RUNS:
        return None
    rows = np.frombuffer(ffi.buffer(found.long_runs), np.int64).reshape(-1, 3)[:n]
    return Runs(*(rows[:, i].copy() for i in range(3)))
