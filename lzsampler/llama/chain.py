"""Our samplers for a sampler chain of llama.cpp.

Facts about the interface are from llama.cpp's llama-sampler.cpp as vendored by llama-cpp-python 0.3.36.
"""

import ctypes
from typing import Any

from .._check import check
from .._ffi import ffi, lib
from ..sampler import Sampler
from .binding import llama_cpp


def penalties_sampler(source: Sampler) -> Any:
    """Return a `llama_sampler *` (a ctypes pointer) that applies the penalties of ``source``, and its grammar.

    It holds a clone of ``source``, so prime ``source`` first, and borrows the grammar, if there is one. Pass it to
    `llama_cpp.llama_sampler_chain_add`, which then owns it, or free it with `llama_cpp.llama_sampler_free`. In a chain
    it belongs before truncation, where llama.cpp has its own penalties. It cannot raise an exception inside llama.cpp:
    `check_chain_sampler` does so.
    """
    return _new(source, lib.LZS_CHAIN_PENALTIES)


def pipeline_sampler(source: Sampler) -> Any:
    """Return a `llama_sampler *` with the whole pipeline of ``source``, for the end of a chain: it selects the token.

    It is owned as that of `penalties_sampler`. Where no token can be picked (none is allowed, a logit is NaN) it
    selects the highest raw logit, since llama.cpp would end the process, and `check_chain_sampler` raises the error.
    """
    return _new(source, lib.LZS_CHAIN_SAMPLER)


def check_chain_sampler(sampler: Any) -> None:
    """Raise the first error inside one of our chain samplers since the last call of this: ValueError or LzsError."""
    check(lib.lzs_chain_sampler_status(address(sampler)))


def address(pointer: Any) -> Any:
    """Return the address of a ctypes pointer or function as cffi's ``void *``."""
    return ffi.cast("void *", ctypes.cast(pointer, ctypes.c_void_p).value)


def _new(source: Sampler, kind: int) -> Any:
    # libllama frees only what its own llama_sampler_init has made, so that function makes it
    out = ffi.new("void **")
    check(lib.lzs_chain_sampler_new(source.handle, kind, address(llama_cpp.llama_cpp._lib.llama_sampler_init), out))
    return ctypes.cast(int(ffi.cast("uintptr_t", out[0])), ctypes.POINTER(llama_cpp.llama_sampler))
