"""`runs`: finds every maximal repetition of a text, in C (c/text/runs.c)."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._check import check, integer
from .._ffi import ffi, lib
from ..errors import ArgumentError

_UINT64_MAX = 2**64 - 1
_ROOM = 1024  # maximum number of runs of the first scan; if a text has more, which is rare, it is scanned again

Text = bytes | bytearray | memoryview | npt.NDArray[np.uint8] | npt.NDArray[np.int32]


class Runs(NamedTuple):
    """The runs of a text, int64[n] each, sorted by period, then start. A run has ``length / period`` copies."""

    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    period: npt.NDArray[np.int64]


_NONE = Runs(*(np.empty(0, np.int64) for _ in range(3)))


def runs(data: Text, *, min_copies: int, min_length: int, max_period: int = 0) -> Runs:
    """Return all runs of ``data`` with at least ``min_copies`` copies and ``min_length`` units.

    A run is a stretch in which every unit equals the unit one period before it. A run cannot be extended on either
    side, and its period is the shortest possible. ``data``: bytes, uint8[n] or int32[n]. ``min_copies``: 2 or more.
    ``max_period``: the longest period that is searched for; 0 means any period.

    The search is exact and takes about n log n / min_copies steps on any input. For 1 MB of prose, the search takes
    some milliseconds; it releases the GIL. If ``min_length`` is well above the length of words (64 characters, say),
    chance repetitions are left out and the search is faster. ValueError for other types and ranges.
    """
    array = _text_array(data)
    rules = (
        integer("min_copies", min_copies, 2, _UINT64_MAX),
        integer("min_length", min_length, 0, _UINT64_MAX),
        integer("max_period", max_period, 0, _UINT64_MAX),
    )
    if array.dtype == np.uint8:
        scan, text = lib.lzs_byte_runs, ffi.from_buffer("uint8_t[]", array)
    else:
        scan, text = lib.lzs_token_runs, ffi.from_buffer("int32_t[]", array)
    n, room = ffi.new("size_t *"), _ROOM
    while True:
        found = np.empty((room, 3), np.int64)
        status = scan(text, array.size, *rules, ffi.from_buffer("lzs_repetition[]", found), room, n)
        if status != lib.LZS_ESPACE:
            break
        room = n[0]
    check(status)
    if n[0] == 0:
        return _NONE
    return Runs(*(found[: n[0], i].copy() for i in range(3)))


def _text_array(data: object) -> npt.NDArray[Any]:
    """Return ``data`` as a contiguous uint8[n] or int32[n], and copy it only if necessary."""
    if isinstance(data, bytes | bytearray):
        return np.frombuffer(data, np.uint8)
    if isinstance(data, memoryview):
        data = np.asarray(data)
    if not isinstance(data, np.ndarray) or data.dtype not in (np.uint8, np.int32):
        kind = data.dtype if isinstance(data, np.ndarray) else type(data).__name__
        raise ArgumentError(f"data must be bytes or an array of uint8 or int32, got {kind}")
    if data.ndim != 1:
        raise ArgumentError(f"data must have one dimension, got shape {data.shape}")
    return np.ascontiguousarray(data)
