"""Which tokens are separators of the LZ penalty: c/include/lzsampler_separators.h has the rule."""

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import numpy as np

from ._check import check
from ._ffi import ffi, lib
from ._values import shown
from .errors import ArgumentTypeError


def separators_of(texts: Iterable[str | bytes]) -> dict[str, Any]:
    """Return the separators of a vocabulary as the fields ``lz_separators`` and ``lz_commas`` of `Params`.

    ``texts``: the text of each token, in the order of the token ids, as a string or as UTF-8. U+FFFD and bytes that are
    not UTF-8 count as pieces of a character. TypeError if an element is neither a string nor bytes.
    """
    if isinstance(texts, str | bytes):
        raise ArgumentTypeError(f"texts must be a list of strings or bytes, got {shown(texts)}")
    pieces = [text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text for text in texts]
    for piece in pieces:
        if not isinstance(piece, bytes):
            raise ArgumentTypeError(f"texts must be a list of strings or bytes, got {shown(piece)}")
    begins = np.array([0, *accumulate(map(len, pieces))], np.uintp)
    sets = np.zeros((2, (len(pieces) + 31) // 32), np.uint32)
    status = lib.lzs_separators_of(
        b"".join(pieces),
        ffi.cast("size_t *", begins.ctypes.data),
        len(pieces),
        *(ffi.cast("uint32_t *", row.ctypes.data) for row in sets),
    )
    check(status)
    return {"lz_separators": sets[0].tobytes(), "lz_commas": sets[1].tobytes()}
