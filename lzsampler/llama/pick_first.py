"""`PickFirst`: a sampler chain that asks its grammar only about the picked token."""

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import check
from .._ffi import ffi, lib
from ..errors import LzsError
from .binding import llama_cpp
from .chain import address

_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])  # llama_token_data
_FUNCTIONS = ("get_logits_ith", "sampler_apply", "sampler_accept", "sampler_chain_get", "sampler_chain_n")


def _sampler_of(llm: Any, grammar: Any) -> Any:
    """Return llama.cpp's sampler for a `LlamaGrammar`; a null pointer if llama.cpp does not accept it."""
    return llama_cpp.llama_sampler_init_grammar(
        llm._model.vocab, grammar._grammar.encode("utf-8"), grammar._root.encode("utf-8")
    )


def candidates_of(tokens: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return llama.cpp candidates for the given tokens."""
    ids = np.asarray(tokens, np.int32)
    made = np.zeros(ids.size, _CANDIDATE)
    made["id"] = ids
    return made


def allowed_of(sampler: Any, candidates: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which candidates llama.cpp's sampler for a grammar allows next, bool[n]. The candidates' logits are
    overwritten.
    """
    candidates["logit"] = 0
    data = candidates.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
    array = llama_cpp.llama_token_data_array(data, candidates.size, -1, False)
    llama_cpp.llama_sampler_apply(sampler, ctypes.byref(array))
    return np.asarray(candidates["logit"] == 0)


def allows_other(llm: Any, grammar: Any, tokens: Sequence[int], forbidden: Iterable[int]) -> bool:
    """Return whether, after ``tokens``, a `LlamaGrammar` allows any token (or the end) that is not forbidden."""
    sampler = _sampler_of(llm, grammar)
    if not sampler:
        return True  # an invalid grammar is reported when it is used
    try:
        for token in tokens:
            llama_cpp.llama_sampler_accept(sampler, token)
        allowed = np.flatnonzero(allowed_of(sampler, candidates_of(np.arange(llm.n_vocab()))))
        return bool(np.setdiff1d(allowed, list(forbidden)).size)
    finally:
        llama_cpp.llama_sampler_free(sampler)


class PickFirst:
    """Replaces a `LlamaSampler`: a chain without a grammar, and a grammar beside it (c/llama/grammar.c).

    ``n_head``: the number of samplers at the beginning of the chain that only change logits. ``penalties``: lzsampler's
    sampler among these ``n_head``, if the other samplers among them change nothing, else None. ``n_best``: the number
    of candidates that the sampler after these ``n_head`` keeps, 0 if unknown. `close` frees ``chain``. LzsError if
    llama.cpp does not accept the grammar.
    """

    def __init__(self, llm: Any, chain: Any, grammar: Any, penalties: Any, n_head: int, n_best: int) -> None:
        self.chain = chain
        self._native = ffi.NULL
        self._grammar = _sampler_of(llm, grammar)
        if not self._grammar:
            chain.close()
            raise LzsError("llama.cpp does not accept the grammar; llama.cpp's log shows the place (verbose=True)")
        functions = ffi.new("lzs_llama_functions *", {"size": ffi.sizeof("lzs_llama_functions")})
        for name in _FUNCTIONS:
            function = getattr(llama_cpp.llama_cpp._lib, f"llama_{name}")
            setattr(functions, name.removeprefix("sampler_") if "chain" in name else name, address(function))
        out = ffi.new("lzs_llama_grammar **")
        status = lib.lzs_llama_grammar_new(
            llm.n_vocab(),
            functions,
            address(chain.sampler),
            address(self._grammar),
            ffi.NULL if penalties is None else address(penalties),
            n_head,
            n_best,
            out,
        )
        self._native = out[0]
        if status:
            self.close()
            check(status)
        self._token = ffi.new("int32_t *")

    @property
    def refused(self) -> int:
        """The number of picks that the grammar refused."""
        return int(lib.lzs_llama_grammar_refused(self._native))

    def sample(self, context: Any, index: int = -1) -> int:
        """Pick and accept a token, as `LlamaSampler.sample` does; LzsError if the grammar allows no token."""
        status = lib.lzs_llama_grammar_sample(self._native, ffi.cast("void *", context.ctx), index, self._token)
        if status == lib.LZS_EMASKED:
            raise LzsError("the grammar allows no token of the vocabulary here")
        check(status)
        return int(self._token[0])

    def accept(self, token: int) -> None:
        """Add a token to the text."""
        llama_cpp.llama_sampler_accept(self._grammar, token)
        self.chain.accept(token)

    def reset(self) -> None:
        """Begin a new text."""
        llama_cpp.llama_sampler_reset(self._grammar)
        self.chain.reset()

    def close(self) -> None:
        """Free the chain and the grammar; a second call does nothing."""
        lib.lzs_llama_grammar_free(self._native)
        self._native = ffi.NULL
        if self._grammar:
            llama_cpp.llama_sampler_free(self._grammar)
        self._grammar = None
        self.chain.close()
