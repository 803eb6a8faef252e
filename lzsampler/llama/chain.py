"""lzsampler's samplers for a sampler chain of llama.cpp.

Facts about the interface are from llama.cpp's llama-sampler.cpp as vendored by llama-cpp-python 0.3.36.
"""

import ctypes
from typing import Any

from .._check import check
from .._ffi import ffi, lib
from ..sampler import Sampler
from .binding import llama_cpp


def penalties_sampler(source: Sampler) -> Any:
    """Return a `llama_sampler *` (a ctypes pointer) that applies the penalties and the grammar of ``source``.

    The result holds a clone of ``source``, so prime ``source`` first. The result borrows the grammar, if there is one.
    Pass the result to `llama_cpp.llama_sampler_chain_add`, which then owns it, or free it with
    `llama_cpp.llama_sampler_free`. In the chain the result belongs before truncation, at the place of llama.cpp's own
    penalties. Inside llama.cpp no exception can be raised: `check_chain_sampler` raises it later.
    """
    return _new(source, lib.LZS_CHAIN_PENALTIES)


def pipeline_sampler(source: Sampler) -> Any:
    """Return a `llama_sampler *` with the whole pipeline of ``source``, for the end of a chain, where it selects the
    token.

    Ownership is as for `penalties_sampler`. If no token is allowed or a logit is NaN, the sampler selects the token
    with the highest raw logit, because llama.cpp would otherwise end the process. `check_chain_sampler` then raises the
    error.
    """
    return _new(source, lib.LZS_CHAIN_SAMPLER)


def check_chain_sampler(sampler: Any) -> None:
    """Raise the first error (ValueError or LzsError) inside one of these chain samplers since the last such call."""
    check(lib.lzs_chain_sampler_status(address(sampler)))


def address(pointer: Any) -> Any:
    """Return the address of a ctypes pointer or function as cffi's ``void *``."""
    return ffi.cast("void *", ctypes.cast(pointer, ctypes.c_void_p).value)


def _new(source: Sampler, kind: int) -> Any:
    # libllama frees only samplers that its own llama_sampler_init has made, so C calls this function to make a sampler
    out = ffi.new("void **")
    check(lib.lzs_chain_sampler_new(source.handle, kind, address(llama_cpp.llama_cpp._lib.llama_sampler_init), out))
    return ctypes.cast(int(ffi.cast("uintptr_t", out[0])), ctypes.POINTER(llama_cpp.llama_sampler))
