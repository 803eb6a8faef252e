"""`Screen`: the figures of a text and which kinds of loops it may have, in one call of the C core (c/lzs_screen.c)."""

from ._check import LzsError, check
from ._ffi import ffi, lib
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

    def __call__(self, data: bytes) -> tuple[list[int], int]:
        """Return the `MEMBERS` of a text of UTF-8, and what it may have, a sum. LzsError when it has 4 GiB or more."""
        if len(data) > MAX_BYTES:
            raise LzsError(f"a text of {len(data)} bytes is too long: texts are audited up to 4 GiB")
        fold, n_fold = fold_table(data)
        figures, may = ffi.new("lzs_figures *"), ffi.new("int32_t *")
        check(lib.lzs_screen(ffi.from_buffer(data), len(data), self._rules, fold, n_fold, figures, may))
        return ffi.unpack(ffi.cast("uint64_t *", figures), len(MEMBERS)), may[0]
