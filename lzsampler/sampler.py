"""`Sampler`: the C sampler of one sequence, with numpy arrays, and its `Loop`; `lz_bits`: the LZ penalty by itself."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import INT32_MAX, LzsError, Tokens, check, integer, logits_array, mask_array, token_array
from ._ffi import ffi, lib
from .params import CHOICES, MAX_BUFFER, MAX_WINDOW, Formula, Params, c_params


@dataclass(frozen=True)
class Loop:
    """A stretch of accepted tokens that repeats without a break: ``count`` copies of ``period`` tokens from ``start``.

    ``start`` counts from 0 at the first accepted token. The period is the shortest: a copy is not copies itself.
    """

    start: int
    period: int
    count: int

    @property
    def end(self) -> int:
        """Where the last whole copy ends: the number of accepted tokens when the loop was found."""
        return self.start + self.period * self.count


class Sampler:
    """Penalties, mask, temperature, truncation and pick for the tokens of one sequence.

    ``n_vocab``: number of logits a row. The same logits, params, seed and position (accepted tokens) give the same
    token, whatever happened before: `sample` changes nothing, `accept` does. Not for two threads at a time.
    """

    def __init__(self, n_vocab: int, params: Params | None = None) -> None:
        self.n_vocab = integer("n_vocab", n_vocab, 1, INT32_MAX)
        self.params = Params() if params is None else params
        if not isinstance(self.params, Params):
            raise ValueError(f"params must be a Params, got {params!r}")
        for token in self.params.exempt[-1:]:
            integer("exempt", token, 0, self.n_vocab - 1)
        p, exempt = c_params(self.params)
        out = ffi.new("lzs_sampler **")
        status = lib.lzs_sampler_new(self.n_vocab, p, out)
        del exempt
        if status and ffi.string(lib.lzs_kernels_name()) == b"none":
            raise LzsError(f"this CPU does not run LZS_KERNELS={os.environ.get('LZS_KERNELS')}: unset it")
        check(status)
        self.handle = _owned(out[0])  # `lzs_sampler *`, for `lzsampler.llama`
        self._token = ffi.new("int32_t *")

    # -- history --

    @property
    def position(self) -> int:
        """Number of accepted tokens: what keys the next draw."""
        return int(lib.lzs_position(self.handle))

    @property
    def memory(self) -> int:
        """Bytes that the C sampler holds."""
        return int(lib.lzs_memory(self.handle))

    @property
    def loop(self) -> Loop | None:
        """The loop that the accepted tokens came to end in, by `Params.repetition_detection`; None while there is none.

        It is found at the token that completes it (`Loop.end` is the `position` then), as the shortest pattern if
        several are complete, and stays until `reset`, or a `rewind` that takes that token back. A clone has it too.
        """
        return loop_found(self.handle)

    def prime(self, tokens: Tokens) -> None:
        """Give the prompt, int[n], before the first `accept`; penalties see it only with ``history="all"``.

        May be called again to append. ValueError for ids outside the vocabulary and after an `accept`.
        """
        array = token_array("tokens", tokens, self.n_vocab)
        if self.position:
            raise ValueError(f"prime() comes before accept(), but {self.position} tokens were accepted: reset() first")
        check(lib.lzs_prime(self.handle, ffi.from_buffer("int32_t[]", array), array.size))

    def accept(self, token: int) -> None:
        """Take one token into the text, whoever picked it. ValueError when it is not in the vocabulary."""
        check(lib.lzs_accept(self.handle, integer("token", token, 0, self.n_vocab - 1)))

    def rewind(self, n: int) -> None:
        """Take back the last ``n`` accepted tokens; ValueError, with nothing changed, when there are fewer."""
        check(lib.lzs_rewind(self.handle, integer("n", n, 0, self.position)))

    def reset(self) -> None:
        """Forget history, position and mask."""
        lib.lzs_sampler_reset(self.handle)

    def clone(self) -> "Sampler":
        """Return a sampler with the same history, position and mask, which then goes its own way."""
        out = ffi.new("lzs_sampler **")
        check(lib.lzs_sampler_clone(self.handle, out))
        copy = object.__new__(Sampler)
        copy.n_vocab, copy.params = self.n_vocab, self.params
        copy.handle = _owned(out[0])
        copy._token = ffi.new("int32_t *")
        return copy

    def set_mask(self, words: npt.NDArray[np.uint32] | None) -> None:
        """Allow only the tokens whose bit is 1, until changed; None allows all.

        ``words``: uint32[ceil(n_vocab / 32)], least significant bit first, as llguidance and xgrammar make it.
        """
        if words is None:
            check(lib.lzs_set_mask(self.handle, ffi.NULL, 0))
        else:
            array = mask_array(words, self.n_vocab)
            check(lib.lzs_set_mask(self.handle, ffi.from_buffer("uint32_t[]", array), array.size))

    # -- logits --

    def edits(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return what the penalties do now: (tokens int32[k] ascending, repeat float32[k], bias float32[k]).

        The logit x of each becomes (x / repeat if x > 0 else x * repeat) + bias (DESIGN: one edit a token).
        """
        n = ffi.new("size_t *")
        edits = lib.lzs_edits(self.handle, n)
        made = ((edits[i].token, edits[i].repeat, edits[i].bias) for i in range(n[0]))
        rows = sorted(edit for edit in made if edit[1:] != (1.0, 0.0))
        tokens, repeat, bias = zip(*rows, strict=True) if rows else ((), (), ())
        return np.array(tokens, np.int32), np.array(repeat, np.float32), np.array(bias, np.float32)

    def sample(self, logits: npt.NDArray[np.float32]) -> int:
        """Pick a token. ``logits``: float32[n_vocab], contiguous, left as they were (patched during the call).

        Raises ValueError for another dtype or shape and for NaN, LzsError when no token is allowed.
        """
        status = lib.lzs_sample(self.handle, self._borrowed(logits), self._token)
        if status:
            self._refuse(status, logits)
        return int(self._token[0])

    def process(self, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Apply penalties, mask, temperature and truncation in place; -inf where cut. Returns ``logits``.

        The softmax of the result is what `sample` draws from. Raises as `sample`, with ``logits`` unchanged.
        """
        array = logits_array(logits, self.n_vocab)
        if not array.flags.writeable:
            raise ValueError("logits must be writable: process() works in place")
        status = lib.lzs_process(self.handle, ffi.from_buffer("float[]", array))
        if status:
            self._refuse(status, logits)
        return logits

    def distribution(self, logits: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Return what `sample` draws from: (ids int32[k] ascending, probabilities float32[k] that sum to 1)."""
        ids = np.empty(self.n_vocab, np.int32)
        probabilities = np.empty(self.n_vocab, np.float32)
        n = ffi.new("size_t *")
        status = lib.lzs_distribution(
            self.handle,
            self._borrowed(logits),
            ffi.from_buffer("int32_t[]", ids),
            ffi.from_buffer("float[]", probabilities),
            self.n_vocab,
            n,
        )
        if status:
            self._refuse(status, logits)
        return ids[: n[0]].copy(), probabilities[: n[0]].copy()

    def _borrowed(self, logits: npt.NDArray[np.float32]) -> Any:
        array = logits_array(logits, self.n_vocab)
        if not array.flags.writeable:  # the row is patched during the call, so a read-only one needs a copy
            array = array.copy()
        return ffi.from_buffer("float[]", array)

    def _refuse(self, status: int, logits: npt.NDArray[np.float32]) -> None:
        if status == lib.LZS_ENAN:
            at = int(np.isnan(logits).argmax())
            raise ValueError(f"logits[{at}] is nan ({int(np.isnan(logits).sum())} of {self.n_vocab} are)")
        if status == lib.LZS_EMASKED:
            raise LzsError("no token is allowed: every logit is -inf or masked")
        check(status)

    def __repr__(self) -> str:
        return f"Sampler({self.n_vocab}, {self.params!r})"


def _owned(handle: Any) -> Any:
    return ffi.gc(handle, lib.lzs_sampler_free, lib.lzs_memory(handle))


def loop_found(handle: Any) -> Loop | None:
    """Return the loop of an ``lzs_sampler *``, as `Sampler.loop` does (that of a link's sampler, for one)."""
    loop = ffi.new("lzs_loop *")
    return Loop(loop.start, loop.period, loop.count) if lib.lzs_loop_found(handle, loop) else None


def lz_bits(
    history: Tokens, n_vocab: int, window: int = 512, buffer: int = 32, formula: Formula = "rate"
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the LZ penalty of a history: (tokens int32[k] ascending, bits float32[k]), the bits that are not 0.

    ``history``: int[n], oldest first, of which the last ``window`` (2..131072) count; ``buffer``: longest suffix
    compared (1..4096, below the window). A logit is lowered by strength * bits. No bits while n <= buffer.
    arXiv 2504.20131; formulas in docs/penalties.md.
    """
    n_vocab = integer("n_vocab", n_vocab, 1, INT32_MAX)
    array = token_array("history", history, n_vocab)
    Params(lz_window=integer("window", window, 2, MAX_WINDOW), lz_buffer=integer("buffer", buffer, 1, MAX_BUFFER))
    if formula not in CHOICES["lz_formula"]:
        raise ValueError(f"formula must be one of {', '.join(CHOICES['lz_formula'])}, got {formula!r}")
    capacity = min(array.size, window)
    tokens, bits = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    n = ffi.new("size_t *")
    status = lib.lzs_lz_bits(
        ffi.from_buffer("int32_t[]", array),
        array.size,
        n_vocab,
        window,
        buffer,
        CHOICES["lz_formula"].index(formula),
        ffi.from_buffer("int32_t[]", tokens),
        ffi.from_buffer("float[]", bits),
        capacity,
        n,
    )
    check(status)
    order = np.argsort(tokens[: n[0]])
    return tokens[order], bits[order]
