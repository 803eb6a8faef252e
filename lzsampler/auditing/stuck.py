"""`stretches`: finds where a text says almost nothing new, with or without a period, in C (c/text/stuck.c)."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._check import check
from .._ffi import ffi, lib

_ROOM = 64  # stretches of the first scan; more are rare and need a second scan


class Stretches(NamedTuple):
    """Stretches in order, int64[n] each. ``old``: how many units from ``start`` to ``end`` are old."""

    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    old: npt.NDArray[np.int64]
    score: npt.NDArray[np.int64]


def stretches(
    ids: npt.NDArray[np.int32], *, threshold: int, ngram: int, min_count: int, weight: int, window: int
) -> Stretches:
    """Return the stuck stretches; ``ids``: int32[n], the numbers of words from `intern`, or tokens.

    The arguments are those of `lzsampler.StuckDetection`. This is its offline form; c/include/lzsampler_text.h has the
    definition, at lzs_stuck_stretches. Linear in n. ValueError for values out of range.
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
