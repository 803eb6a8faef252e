"""`Lookup`: drafts without a model. A lookup proposes the tokens that followed an earlier match of the text's end."""

from collections.abc import Sequence
from typing import Any

from .._check import INT32_MAX, check, integer
from .._ffi import ffi, lib
from ..util.in_use import InUse, one_thread

MAX_MATCH = 65535  # the most tokens of a match; a longer match counts as this long


class Lookup:
    """A growing text and an index of earlier matches of its end, within the last ``window`` (1..2**31 - 1) tokens.

    The LZ penalty uses the same kind of index. The index covers the whole text and takes 6 bytes a token. To append a
    token takes time linear in the window, about a microsecond for a window of 10,000 tokens. One thread at a time may
    use a `Lookup`; another thread gets an LzsError.
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
        """Take back the last ``n`` tokens; raise ValueError, with nothing changed, if the text is shorter."""
        check(lib.lzs_lookup_rewind(self._handle, integer("n", n, 0, self.n, high_is=", the number of tokens")))
        self.n -= n

    @one_thread
    def find(self, least: int, n: int) -> tuple[int, list[int]]:
        """Return (length of the longest match of the text's end, the ``n`` tokens that followed that match).

        ``least``: the length of the shortest match, in tokens, 1..65535. If several matches have the same length, the
        latest counts. If fewer than ``n`` tokens followed the match, the tokens that followed are repeated. (0, []) if
        there is no match.
        """
        tokens = ffi.new("int32_t[]", integer("n", n, 1, INT32_MAX))
        length = int(lib.lzs_lookup_find(self._handle, integer("least", least, 1, MAX_MATCH), tokens, n))
        return length, ffi.unpack(tokens, n) if length else []
