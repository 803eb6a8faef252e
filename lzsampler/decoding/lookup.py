"""`Lookup`: drafts without a model: the tokens that followed an earlier match of the text's end."""

from collections.abc import Sequence
from typing import Any

from .._check import INT32_MAX, check, integer
from .._ffi import ffi, lib
from ..util.in_use import InUse, one_thread

MAX_MATCH = 65535  # tokens; a longer match counts as this long


class Lookup:
    """A growing text, with the earlier places that match its end, among its last ``window`` (1..2**31 - 1) tokens.

    The match index is that of the LZ penalty, over the whole text. It takes 6 bytes a token. The time of a token is
    linear in the window, about a microsecond for 10,000 tokens. One thread at a time may use it; another thread gets
    an LzsError.
    """

    def __init__(self, window: int = INT32_MAX) -> None:
        out = ffi.new("lzs_lookup **")
        check(lib.lzs_lookup_new(integer("window", window, 1, INT32_MAX), out))
        self._handle: Any = ffi.gc(out[0], lib.lzs_lookup_free)
        self.n = 0
        """Number of tokens of the text."""
        self.in_use = InUse("this Lookup", "give each thread one of its own")

    @one_thread
    def append(self, tokens: Sequence[int]) -> None:
        """Append tokens."""
        check(lib.lzs_lookup_append(self._handle, ffi.new("int32_t[]", list(tokens)), len(tokens)))
        self.n += len(tokens)

    @one_thread
    def rewind(self, n: int) -> None:
        """Take back the last ``n`` tokens; raise ValueError, with nothing changed, if there are fewer."""
        check(lib.lzs_lookup_rewind(self._handle, integer("n", n, 0, self.n, high_is=", the number of tokens")))
        self.n -= n

    @one_thread
    def find(self, least: int, n: int) -> tuple[int, list[int]]:
        """Return (length of the longest match of the text's end, the ``n`` tokens that followed that match).

        ``least``: tokens of the shortest match, 1..65535. Of several matches of one length the nearest counts. If the
        text ends before ``n`` tokens followed, the tokens repeat from the start of that continuation. (0, []) if
        nothing matches.
        """
        tokens = ffi.new("int32_t[]", integer("n", n, 1, INT32_MAX))
        length = int(lib.lzs_lookup_find(self._handle, integer("least", least, 1, MAX_MATCH), tokens, n))
        return length, ffi.unpack(tokens, n) if length else []
