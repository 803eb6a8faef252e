"""`ChainSampler`: llama.cpp's own samplers on rows of logits, as the baseline of an evaluation."""

import ctypes
from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import LzsError, Tokens
from ..params import Params
from .links import llama_cpp

_SEQUENCE_BREAKERS = ["\n", ":", '"', "*"]  # llama.cpp's default


class ChainSampler:
    """llama.cpp's DRY sampler, then its top-k, top-p, min-p, temperature and draw (or greedy); interface of `Sampler`.

    ``dry``: dry_multiplier, dry_base, dry_allowed_length, dry_penalty_last_n (-1: the context). It looks at the
    generated tokens only, as our penalties do. Not for two threads at a time; `close` it.
    """

    loop = None  # it looks for none

    def __init__(self, llm: Any, params: Params, dry: Mapping[str, float]) -> None:
        self.n_vocab = int(llm.n_vocab())
        make: Any = llama_cpp._internals.LlamaSampler
        self._chain = make()
        last_n, n_ctx = int(dry["dry_penalty_last_n"]), int(llm.n_ctx())
        numbers: dict[str, float] = {
            "dry_multiplier": float(dry["dry_multiplier"]),
            "dry_base": float(dry["dry_base"]),
            "dry_allowed_length": int(dry["dry_allowed_length"]),
            "dry_penalty_last_n": n_ctx if last_n == -1 else last_n,  # for llama.cpp itself -1 is no penalty by now
        }
        if "n_ctx_train" in signature(self._chain.add_dry).parameters:  # llama-cpp-python up to 0.3.26 at least
            numbers["n_ctx_train"] = n_ctx
        self._chain.add_dry(model=llm._model, **numbers, seq_breakers=_SEQUENCE_BREAKERS)
        if params.temperature == 0:
            self._chain.add_greedy()
        else:
            self._chain.add_top_k(params.top_k)
            self._chain.add_top_p(params.top_p)
            self._chain.add_min_p(params.min_p)
            self._chain.add_temp(params.temperature)
            self._chain.add_dist(params.seed & 0xFFFFFFFF)
        self._records = np.zeros(self.n_vocab, [("id", np.int32), ("logit", np.float32), ("p", np.float32)])
        self._data = self._records.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))

    def prime(self, tokens: Tokens) -> None:
        """Take the prompt, which these samplers do not look at."""

    def sample(self, logits: npt.NDArray[np.float32]) -> int:
        """Pick a token. ``logits``: float32[n_vocab]. LzsError when llama.cpp selects none."""
        self._records["id"] = np.arange(self.n_vocab)
        self._records["logit"] = logits
        self._records["p"] = 0
        candidates = llama_cpp.llama_token_data_array(self._data, self.n_vocab, -1, False)
        llama_cpp.llama_sampler_apply(self._chain.sampler, ctypes.byref(candidates))
        if not 0 <= candidates.selected < candidates.size:
            raise LzsError("llama.cpp's samplers selected no token")
        return int(candidates.data[candidates.selected].id)

    def accept(self, token: int) -> None:
        """Take a token into the text."""
        self._chain.accept(token)

    def close(self) -> None:
        """Free the samplers."""
        self._chain.close()
