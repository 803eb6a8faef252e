"""`rounding`: how much a model's logits depend on the number of tokens that are decoded together.

If the logits do not depend on this number, a text with a draft equals the text without a draft. For some types
of weights, and for attention without flash attention, llama.cpp has one kernel for one token and another for several
tokens. If the context is longer than `FAR` tokens, the threads of a CPU split the work on the context only when a
single token is decoded.
"""

import ctypes
import warnings
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ..errors import LzsError
from ..util.signals import uninterrupted
from .attention import flash_attention_of
from .binding import llama_cpp

FAR = 256  # context in tokens beyond which llama.cpp (0.3.36) splits the work for a single token among threads
# Minimum number of positions to compare. They include token 30: from there on, the embedded model's texts with and
# without a draft may differ at temperature 0.
_LEAST = 32
_SHORT = (2, 3)  # block lengths to compare besides the longest, for kernels that take several tokens at a time
_MAX_BATCH = 64  # the most tokens of a batch; the longest block has 33
_SEED = 11


class Rounding(NamedTuple):
    """The result of `rounding`.

    ``most``: the greatest difference between logits, 0 if all bits are equal. ``positions``: number of compared
    positions. ``begin``: the context length in tokens, 0 or `FAR`, from which on the logits differed.
    """

    most: float
    positions: int
    begin: int = 0


class RoundingWarning(UserWarning, LzsError):  # noqa: N818
    """Warns that a text with a draft may differ from the text without a draft. As an exception, this warning is an
    `LzsError`.
    """


_known: WeakKeyDictionary[Any, dict[tuple[int, bool, int], Rounding]] = WeakKeyDictionary()


def rounding(llm: Any, together: int, n_ctx: int, n_threads: int | None = None) -> Rounding:
    """Compare the logits of 2 to ``together`` tokens decoded in one call with the logits of tokens decoded one at a
    time.

    ``llm``: a `llama_cpp.Llama`. Its own context stays unchanged: a small second context decodes arbitrary tokens, once
    for each model and length. ``n_ctx``: the most tokens that texts will have. ``n_threads``: the
    number of threads; None means the model's own number. LzsError if llama.cpp fails.
    """
    asked = together, n_ctx > FAR, n_threads or int(llm.context_params.n_threads)
    known = _known.setdefault(llm, {})
    if asked not in known:
        known[asked] = _compared(llm, *asked)
    return known[asked]


def warn_of_rounding(
    llm: Any, name: str, together: int, n_ctx: int, n_threads: int | None = None, *, stacklevel: int
) -> None:
    """Warn with a `RoundingWarning` if `rounding` finds a difference. ``name``: the name of the model's file."""
    try:
        found = rounding(llm, together, n_ctx, n_threads)
    except LzsError as error:
        said = f"lzsampler cannot tell whether a draft changes texts: {error}"
    else:
        if not may_differ(llm, found):
            return
        said = f"texts with a draft may differ from texts without a draft: {what_it_means(llm, name, found)}"
    warnings.warn(said, RoundingWarning, stacklevel=stacklevel + 1)


def may_differ(llm: Any, found: Rounding) -> bool:
    """Return whether logits may depend on the number of tokens decoded together.

    The result is true if `rounding` found a difference, or if flash attention is off.

    Without flash attention, equal bits are no proof: with weights such as Q8_0, rounding can hide different sums for
    180 tokens or more.
    """
    return found.most > 0 or flash_attention_of(llm) is False


def what_it_means(llm: Any, name: str, found: Rounding) -> str:
    """Return a sentence that says how the logits depend on the number of tokens, and how to prevent it."""
    if not found.most:
        return (
            f"without flash attention the logits of {name} may depend on how many tokens are decoded together, though "
            f"{found.positions} positions have the same bits; flash_attn=True prevents it for weights such as Q8_0"
        )
    begin = f"from token {found.begin + 1} of a context on, " if found.begin else ""
    what = f"{begin}the logits of {name} depend on how many tokens are decoded together, by up to {found.most:.2g}"
    if found.begin:
        return f"{what}, as several threads share the work; n_threads=1 prevents it"
    if flash_attention_of(llm) is False:
        return f"{what}; flash_attn=True prevents it for weights such as Q8_0"
    return f"{what}; weights such as Q8_0 may prevent it"


def _compared(llm: Any, together: int, far: bool, n_threads: int) -> Rounding:
    lengths = [together, *(n for n in _SHORT if n < together)]
    tokens = np.random.default_rng(_SEED).integers(0, llm.n_vocab(), _LEAST + 2 * sum(lengths)).tolist()
    at = 0
    with _Context(llm, n_threads) as context:
        while at < _LEAST:
            most, at = context.compare(tokens, at, lengths)
            if most:
                return Rounding(most, at)
        if far:
            context.fill(at)
            most, at = context.compare(tokens, at, lengths)
        return Rounding(most, at, FAR if most else 0)


class _Context:
    """A context for one text, with the weights and settings of a `llama_cpp.Llama`; for a ``with`` block."""

    def __init__(self, llm: Any, n_threads: int) -> None:
        params = type(llm.context_params).from_buffer_copy(llm.context_params)
        params.n_ctx, params.n_batch, params.n_ubatch = 2 * FAR, _MAX_BATCH, _MAX_BATCH
        params.n_seq_max, params.kv_unified = 1 + FAR // _LEAST, True
        params.n_threads = n_threads
        self._n_vocab = llm.n_vocab()
        with uninterrupted():
            self._context = llama_cpp.llama_init_from_model(llm.model, params)
        if not self._context:
            raise LzsError("llama.cpp cannot make a second context, of 512 tokens, to compare logits in")

    def __enter__(self) -> "_Context":
        return self

    def __exit__(self, *_: object) -> None:
        llama_cpp.llama_free(self._context)

    def compare(self, tokens: list[int], at: int, lengths: list[int]) -> tuple[float, int]:
        """Decode blocks of the given lengths from position ``at`` on; return (greatest difference, last position)."""
        most = 0.0
        for length in lengths:
            block = tokens[at : at + length]
            rows = self._rows(block)
            llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(self._context), 0, at, -1)
            alone = np.concatenate([self._rows([token]) for token in block])
            most, at = max(most, float(np.abs(rows - alone).max())), at + length
        return most, at

    def fill(self, at: int) -> None:
        """Add `FAR` tokens to the cache: copies of a text of ``at`` tokens, which need no decode."""
        size = llama_cpp.llama_state_seq_get_size(self._context, 0)
        state = (ctypes.c_uint8 * size)()
        llama_cpp.llama_state_seq_get_data(self._context, state, size, 0)
        for sequence in range(1, 1 - -FAR // at):
            llama_cpp.llama_state_seq_set_data(self._context, state, size, sequence)

    def _rows(self, tokens: list[int]) -> npt.NDArray[np.float32]:
        """Append tokens, and return the logits after each of them: float32[n, n_vocab], a copy."""
        ids = (llama_cpp.llama_token * len(tokens))(*tokens)  # must stay alive: the batch only points to it
        batch = llama_cpp.llama_batch_get_one(ids, len(tokens))
        batch.logits = (ctypes.c_int8 * len(tokens))(*[1] * len(tokens))
        status = llama_cpp.llama_decode(self._context, batch)
        if status != 0:
            raise LzsError(f"llama_decode returned {status} for {len(tokens)} tokens")
        first = llama_cpp.llama_get_logits(self._context)
        return np.ctypeslib.as_array(first, (len(tokens), self._n_vocab)).copy()
