"""`Speculation`: drafts blocks of tokens for a `Sampler`, and verifies them by the target's logits.

`Speculation` needs logits, but no model. `lzsampler.decoding.speculative` runs it with two llama.cpp contexts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from .._check import Tokens, check, integer, logits_array, row_of, token_array
from .._ffi import ffi, lib
from ..errors import ArgumentError, ArgumentTypeError, LzsError
from ..sampler import MAX_VOCAB, Sampler
from ..util.in_use import one_thread

SpecMode = Literal["gumbel", "mrs", "match"]
SPEC_MODES: tuple[SpecMode, ...] = get_args(SpecMode)  # in the order of the C enum lzs_spec_mode
MAX_DRAFT: int = lib.LZS_MAX_DRAFT
"""The most tokens of a block."""


@dataclass(frozen=True)
class Verified:
    """The result of judging a block.

    ``tokens``: the tokens that the block adds to the text, at least one. The first ``n_accepted`` of them were drafted.
    ``ended``: whether the last token ends the text. ``looping``: whether the sampler has found a `Loop` or a `Stuck`.
    """

    tokens: tuple[int, ...]
    n_accepted: int
    ended: bool
    looping: bool


class Speculation:
    """Drafts blocks of tokens for the text of a `Sampler`, and verifies them by a target's logits.

    The tokens have the same distribution as without a draft, with the penalties, masks and truncation of each position;
    docs/speculative.md explains why. ``mode``: in "gumbel" draft and target draw with the same noise; in "match" the
    draft gives its best token. In both modes a seed gives the same text with any draft as without a draft. "mrs" is
    modified rejection sampling (arXiv 2211.17192), which accepts slightly more tokens.

    ``max_draft``: most tokens of a block, 0..32. ``n_draft_vocab``: number of logits in a row of the draft, 1..2**30;
    None is the target's number. Tokens that are in only one vocabulary are never drafted. ``ends``: tokens that end a
    text, and so a block. The constructor allocates all memory.

    `draft` and `draft_token` add tokens to the block, and also to the sampler's history. `verify` or `discard` ends the
    block. Between two of these calls, masks may be set. One thread at a time may use a `Speculation` and its sampler;
    another thread gets an LzsError meanwhile.
    """

    def __init__(
        self,
        sampler: Sampler,
        *,
        mode: SpecMode = "gumbel",
        max_draft: int = 8,
        n_draft_vocab: int | None = None,
        ends: Tokens = (),
    ) -> None:
        if not isinstance(sampler, Sampler):
            raise ArgumentTypeError(f"sampler must be a Sampler, got {sampler!r}")
        if mode not in SPEC_MODES:
            raise ArgumentError(f"mode must be one of {', '.join(SPEC_MODES)}, got {mode!r}")
        self.sampler, self.mode, self.in_use = sampler, mode, sampler.in_use
        self.max_draft = integer("max_draft", max_draft, 0, MAX_DRAFT)
        n = sampler.n_vocab if n_draft_vocab is None else n_draft_vocab
        self.n_draft_vocab = integer("n_draft_vocab", n, 1, MAX_VOCAB)
        array = token_array("ends", ends, sampler.n_vocab)
        out = ffi.new("lzs_speculation **")
        pointer = ffi.from_buffer("int32_t[]", array)
        number = SPEC_MODES.index(mode)
        status = lib.lzs_speculation_new(
            sampler.handle, number, self.max_draft, self.n_draft_vocab, pointer, array.size, out
        )
        check(status)
        self.handle = ffi.gc(out[0], lib.lzs_speculation_free, lib.lzs_speculation_memory(out[0]))
        self._token, self._verified = ffi.new("int32_t *"), ffi.new("lzs_verified *")
        self._n = ffi.new("size_t *")

    @property
    def memory(self) -> int:
        """Bytes that the `Speculation` holds, without the sampler."""
        return int(lib.lzs_speculation_memory(self.handle))

    @property
    @one_thread
    def drafted(self) -> tuple[int, ...]:
        """The tokens of the block, which are the last tokens of the sampler."""
        tokens = lib.lzs_drafted(self.handle, self._n)
        return tuple(ffi.unpack(tokens, self._n[0])) if self._n[0] else ()

    def draft(self, logits: npt.ArrayLike, p_min: float = 0.0) -> int | None:
        """Draft the next token from ``n_draft_vocab`` logits of the draft, and return it.

        Returns None, with nothing drafted, if the draft's best token has a probability below ``p_min`` (0..1). As in
        llama.cpp, this is the probability among the ten best tokens at temperature 1. Raises ValueError when the block
        has ``max_draft`` tokens, or when the sampler was changed since the last draft; otherwise takes and raises the
        same as `Sampler.sample`. An error changes nothing, and the tokens drafted before can still be verified.
        """
        return self.draft_at(ffi.from_buffer("float[]", logits_array(logits, self.n_draft_vocab)), p_min)

    @one_thread
    def draft_at(self, logits: Any, p_min: float = 0.0) -> int | None:
        """Draft from logits outside numpy: a ``float *`` of `lzsampler._ffi`, which is not checked."""
        status = lib.lzs_draft(self.handle, logits, p_min, self._token)
        if status:
            if not 0 <= p_min <= 1:
                raise ArgumentError(f"p_min must be from 0 to 1, got {p_min!r}")
            self._refuse(status, row_of(logits, self.n_draft_vocab), "the draft's logits")
        token = int(self._token[0])
        return None if token < 0 else token

    @one_thread
    def draft_token(self, token: int) -> None:
        """Draft a token from another source, such as the prompt; raises ValueError like `draft`.

        The source may depend on the text so far, but not on the sampler's random draws.
        """
        token = integer("token", token, 0, self.sampler.n_vocab - 1)
        status = lib.lzs_draft_token(self.handle, token)
        if status:
            self._refuse(status, None, "")

    def verify(self, rows: npt.ArrayLike | Sequence[npt.ArrayLike]) -> Verified:
        """Judge the block, and leave the sampler at the new end of its text.

        ``rows``: float32[n + 1, n_vocab], read only: the target's logits for each of the n drafted tokens and for the
        token after them. Without drafted tokens `verify` does the same as `Sampler.step`. The block ends after a token
        of ``ends``, and after the token with which a `Loop` or a `Stuck` is found.

        The block also ends before a row that cannot be judged (NaN, or no token allowed). The next call then raises the
        error of this row. If the first row cannot be judged, this call raises the error. Raises ValueError for another
        number of rows, and when the sampler was changed since the last draft; otherwise like `Sampler.sample`. An error
        changes nothing: `discard` the block.
        """
        array = np.ascontiguousarray(rows, np.float32)
        expected = (len(self.drafted) + 1, self.sampler.n_vocab)
        if array.shape != expected:
            raise ArgumentError(
                f"rows must have shape {expected}: one row for each drafted token and one more, got {array.shape}"
            )
        return self.verify_at(ffi.from_buffer("float[]", array))

    @one_thread
    def verify_at(self, rows: Any) -> Verified:
        """Verify by contiguous rows outside numpy.

        ``rows``: a ``float *`` to the first row, which is not checked.
        """
        drafted, n_vocab = self.drafted, self.sampler.n_vocab
        pointers = ffi.new("float *[]", [rows + i * n_vocab for i in range(len(drafted) + 1)])
        status = lib.lzs_verify(self.handle, pointers, len(pointers), self._verified)
        if status:
            self._refuse(status, row_of(rows, n_vocab), "the target's logits")
        return self._judged(drafted)

    @one_thread
    def verify_by(self, verify: Callable[[Any, int, Any], int]) -> Verified:
        """Verify by rows that another object holds and judges.

        ``verify``: takes an ``lzs_speculation *``, the number of rows and an ``lzs_verified *`` to fill in, and returns
        an `lzs_status`.
        """
        drafted = self.drafted
        status = verify(self.handle, len(drafted) + 1, self._verified)
        if status == lib.LZS_ENAN:
            raise ArgumentError("the target's logits are nan")
        if status:
            self._refuse(status, None, "")
        return self._judged(drafted)

    def _judged(self, drafted: tuple[int, ...]) -> Verified:
        v = self._verified
        tokens = drafted[: v.n_accepted] if v.token < 0 else (*drafted[: v.n_accepted], v.token)
        return Verified(tokens, v.n_accepted, v.ended != 0, v.looping != 0)

    @one_thread
    def discard(self) -> None:
        """Take the drafted tokens back. If the sampler was changed after the draft, the sampler stays as it is."""
        lib.lzs_undraft(self.handle)

    def _refuse(self, status: int, row: npt.NDArray[np.float32] | None, whose: str) -> None:
        if status == lib.LZS_ESPACE:
            raise ArgumentError(f"the block has max_draft ({self.max_draft}) tokens: verify() it")
        if status == lib.LZS_EINVAL:
            raise ArgumentError("the sampler was changed since the last draft: discard() the block")
        if status == lib.LZS_ENAN and row is not None:
            nan = np.isnan(row)
            raise ArgumentError(f"{whose}[{int(nan.argmax())}] is nan ({int(nan.sum())} of {row.size} are)")
        if status == lib.LZS_EMASKED:
            raise LzsError(f"no token is allowed: {whose or 'the logits'} are -inf or masked, or the mask is not known")
        check(status)
