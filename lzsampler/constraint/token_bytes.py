"""`TokenBytes`: the byte string of every token of a vocabulary, and which tokens end a text."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._check import check, token_array
from .._ffi import ffi, lib
from ..errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from .part_masks import PartMasks
    from .spelling import Spelling


class TokenBytes:
    """The byte string of every token of a vocabulary, which grammars need.

    ``pieces``: bytes[n_vocab], what each token adds to a text. ``end``: the ids of the tokens that end a text, at
    least one. ``special``: the ids of others that a grammar never allows, such as control tokens; a token without
    bytes is never allowed either. ``speller``: makes the `Spelling` of these tokens when it is first asked for.
    `lzsampler.llama.token_bytes` reads them of a model. Any number of threads may use it.

    Raises TypeError for anything but bytes and ids, ValueError for an id outside the vocabulary, for no end token and
    for a token of more than 65,535 bytes.
    """

    def __init__(
        self,
        pieces: Sequence[bytes],
        *,
        end: Iterable[int],
        special: Iterable[int] = (),
        speller: "Callable[[TokenBytes], Spelling] | None" = None,
    ) -> None:
        self.pieces = tuple(pieces)
        self._speller = speller
        wrong = next((i for i, piece in enumerate(self.pieces) if not isinstance(piece, bytes)), None)
        if wrong is not None:
            raise ArgumentTypeError(f"pieces must be bytes, but pieces[{wrong}] is {self.pieces[wrong]!r:.50}")
        if not self.pieces:
            raise ArgumentError("pieces must be the bytes of at least one token")
        self.end = tuple(token_array("end", sorted(set(end)), self.n_vocab).tolist())
        self.special = tuple(token_array("special", sorted(set(special)), self.n_vocab).tolist())
        if not self.end:
            raise ArgumentError("end must name at least one token: a text that matches could not end")
        kinds = np.full(self.n_vocab, lib.LZS_TOKEN_TEXT, np.uint8)
        kinds[list(self.special)] = lib.LZS_TOKEN_SPECIAL
        kinds[list(self.end)] = lib.LZS_TOKEN_END
        lengths = np.fromiter(map(len, self.pieces), np.int64, self.n_vocab)
        too_long = (lengths > 65535) & (kinds == lib.LZS_TOKEN_TEXT)
        if too_long.any():
            raise ArgumentError(f"pieces must have at most 65535 bytes, got {lengths[too_long.argmax()]}")
        ends = np.cumsum(lengths).astype(np.uint64)
        out = ffi.new("lzs_vocabulary **")
        check(
            lib.lzs_vocabulary_new(
                self.n_vocab,
                ffi.from_buffer("uint8_t[]", b"".join(self.pieces)),
                ffi.from_buffer("uint64_t[]", ends),
                ffi.from_buffer("uint8_t[]", kinds),
                out,
            )
        )
        self.handle: Any = ffi.gc(out[0], lib.lzs_vocabulary_free, lib.lzs_vocabulary_memory(out[0]))

    @property
    def n_vocab(self) -> int:
        """Number of tokens."""
        return len(self.pieces)

    @property
    def token_bytes(self) -> "TokenBytes":
        """Itself, so that it can be given where a model can."""
        return self

    @cached_property
    def spelling(self) -> "Spelling":
        """How the tokenizer writes texts, which takes a second for a large vocabulary; made once.

        ValueError where these tokens do not say it, LzsError where it is not known.
        """
        if self._speller is None:
            raise ArgumentError(
                "these tokens do not say how texts are written with them: give a Spelling of them instead"
            )
        return self._speller(self)

    @cached_property
    def part_masks(self) -> "PartMasks":
        """Masks of strings, numbers and other parts that schemas have in common, for all grammars of these tokens.

        What is made inside a part has a limit of 8 MiB of its own, and does not count for ``max_bytes`` of a grammar.
        """
        from .part_masks import PartMasks

        return PartMasks(self)

    def __repr__(self) -> str:
        return f"TokenBytes({self.n_vocab} tokens, end={self.end})"


class HasTokenBytes(Protocol):
    """A `TokenBytes`, or what has one: a `Model` or a `Spelling`."""

    @property
    def token_bytes(self) -> TokenBytes:
        """The bytes of its tokens."""


def token_bytes_of(vocabulary: HasTokenBytes) -> TokenBytes:
    """Return the bytes of the tokens of a vocabulary; TypeError for what is none."""
    tokens = getattr(vocabulary, "token_bytes", None)
    if not isinstance(tokens, TokenBytes):
        raise ArgumentTypeError(
            f"vocabulary must be a Model, TokenBytes, Spelling or the `lz` of an LZLlama, got {vocabulary!r:.50}"
        )
    return tokens
