"""`stretches`: finds the stuck stretches of a text, in C (c/text/stuck.c).

In a stuck stretch, nearly all words belong to n-grams that occurred before. The stretch may or may not have a period.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._check import check
from .._ffi import ffi, lib

_ROOM = 64  # maximum number of stretches of the first scan; if a text has more, which is rare, it is scanned again


class Stretches(NamedTuple):
    """The stuck stretches in the order of the text, int64[n] each. ``old``: number of old words or tokens."""

    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    old: npt.NDArray[np.int64]
    score: npt.NDArray[np.int64]


def stretches(
    ids: npt.NDArray[np.int32], *, threshold: int, ngram: int, min_count: int, weight: int, window: int
) -> Stretches:
    """Return the stuck stretches of a text. ``ids``: the numbers of its words from `intern`, or its tokens, int32[n].

    The other arguments are as in `lzsampler.StuckDetection`, which finds the same stretches during decoding. The
    definition is at lzs_stuck_stretches in c/include/lzsampler_text.h. The time is linear in n. ValueError for values
    out of range.
    """
    rules = ffi.new("lzs_stuck_rules *", (threshold, ngram, min_count, weight, window))
    n, room = ffi.new("size_t *"), _ROOM
    while True:
        found = np.empty((room, len(Stretches._fields)), np.int64)
        array = ffi.from_buffer("int32_t[]", ids)
        status = lib.lzs_stuck_stretches(array, ids.size, rules, ffi.from_buffer("lzs_stuck_stretch[]", found), room, n)
        if status != lib.LZS_ESPACE:
            break
        room = n[0]
    check(status)
    return Stretches(*(found[: n[0], i].copy() for i in range(len(Stretches._fields))))
