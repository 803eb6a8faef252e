"""Samplers of ours for a chain of llama.cpp's.

Facts about the interface are from llama.cpp's llama-sampler.cpp as vendored by llama-cpp-python 0.3.36.
"""

import ctypes
from typing import Any

from .._check import check
from .._ffi import ffi, lib
from ..sampler import Sampler
from .binding import llama_cpp


def penalties_sampler(source: Sampler) -> Any:
    """Return a `llama_sampler *` that applies the penalties of ``source`` (edits only), anywhere in a chain.

    It holds a clone of ``source``: prime that first. Hand it to `llama_cpp.llama_sampler_chain_add`, which then owns
    it, or to `llama_cpp.llama_sampler_free`. In a chain it belongs before truncation, as llama.cpp's penalties do.
    """
    return _new(source, lib.LZS_CHAIN_PENALTIES)


def pipeline_sampler(source: Sampler) -> Any:
    """Return a `llama_sampler *` with the whole pipeline of ``source``, to end a chain: it selects the token.

    Ownership as in `penalties_sampler`. Where it may pick nothing (no token allowed, NaN) it selects the best raw
    logit, since llama.cpp ends the process otherwise, and `check_chain_sampler` raises what happened.
    """
    return _new(source, lib.LZS_CHAIN_SAMPLER)


def check_chain_sampler(sampler: Any) -> None:
    """Raise the first error inside a chain sampler since the last call, ValueError or LzsError, if there is one."""
    check(lib.lzs_chain_sampler_status(address(sampler)))


def address(pointer: Any) -> Any:
    """Return what a pointer or function of ctypes points to, as cffi's ``void *``."""
    return ffi.cast("void *", ctypes.cast(pointer, ctypes.c_void_p).value)


def _new(source: Sampler, kind: int) -> Any:
    # libllama deletes what its own llama_sampler_init made, so it is made by that very function
    out = ffi.new("void **")
    check(lib.lzs_chain_sampler_new(source.handle, kind, address(llama_cpp.llama_cpp._lib.llama_sampler_init), out))
    return ctypes.cast(int(ffi.cast("uintptr_t", out[0])), ctypes.POINTER(llama_cpp.llama_sampler))
