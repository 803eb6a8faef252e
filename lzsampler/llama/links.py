"""llama_cpp found and checked, and samplers as links of llama.cpp's chain.

Facts about the interface are from llama.cpp's llama-sampler.cpp as vendored by llama-cpp-python 0.3.36.
"""

import ctypes
import re
from collections.abc import Iterable
from typing import Any

from .._check import LzsError, check
from .._ffi import ffi, lib
from ..sampler import Sampler

try:
    import llama_cpp
except ImportError as error:
    if error.name != "llama_cpp":  # installed, but broken: its own message says how
        raise LzsError(f"llama-cpp-python does not load: {error}") from error
    raise LzsError('llama-cpp-python is needed for this: pip install "lzsampler[llama]"') from None

__all__ = ["address", "check_link", "exempt_ids", "llama_cpp", "penalties", "sampler"]

OLDEST = (0, 3, 17)  # before it the sampler interface had six members, and llama.cpp read no further
_MEMBERS = ("name", "accept", "apply", "reset", "clone", "free")  # of llama_sampler_i, in every version
_MOST_MEMBERS = 32  # LZS_LLAMA_MEMBERS of c/llama/abi.h
_LAYOUT = {  # struct of llama.h: (bytes, offset of each field), as c/llama/abi.h mirrors them on 64-bit machines
    "llama_token_data": (12, {"id": 0, "logit": 4, "p": 8}),
    "llama_token_data_array": (32, {"data": 0, "size": 8, "selected": 16, "sorted": 24}),
    "llama_sampler": (16, {"iface": 0, "ctx": 8}),
}


def _check_binding(binding: Any) -> None:
    """Refuse, in one sentence, a llama_cpp that is too old or has other structs than c/llama/abi.h; LzsError."""
    version = getattr(binding, "__version__", "?")
    if tuple(int(number) for number in re.findall(r"\d+", version)[:3]) < OLDEST:
        raise LzsError(f"llama-cpp-python {version} is too old: lzsampler needs {'.'.join(map(str, OLDEST))} or newer")
    try:
        wrong = [
            name
            for name, (size, offsets) in _LAYOUT.items()
            if ctypes.sizeof(getattr(binding, name)) != size
            or any(getattr(getattr(binding, name), field).offset != offset for field, offset in offsets.items())
        ]
        fields = [field[0] for field in binding.llama_sampler_i._fields_]
        if tuple(fields[: len(_MEMBERS)]) != _MEMBERS or len(fields) > _MOST_MEMBERS:
            wrong.append("llama_sampler_i")
    except AttributeError as error:
        wrong = [str(error)]
    if wrong:
        raise LzsError(
            f"llama-cpp-python {version} has a sampler interface that this lzsampler does not know"
            f" ({', '.join(wrong)}): use llama-cpp-python 0.3.17 to 0.3.36, or a newer lzsampler"
        )


_check_binding(llama_cpp)


def penalties(source: Sampler) -> Any:
    """Return a `llama_sampler *` that applies the penalties of ``source`` (edits only), anywhere in a chain.

    It holds a clone of ``source``: prime that first. Hand it to `llama_cpp.llama_sampler_chain_add`, which then owns
    it, or to `llama_cpp.llama_sampler_free`. In a chain it belongs before truncation, as llama.cpp's penalties do.
    """
    return _link(source, lib.LZS_CHAIN_PENALTIES)


def sampler(source: Sampler) -> Any:
    """Return a `llama_sampler *` with the whole pipeline of ``source``, to end a chain: it selects the token.

    Ownership as in `penalties`. Where it may pick nothing (no token allowed, NaN) it selects the best raw logit, since
    llama.cpp ends the process otherwise, and `check_link` raises what happened.
    """
    return _link(source, lib.LZS_CHAIN_SAMPLER)


def check_link(link: Any) -> None:
    """Raise the first error inside a link since the last call: ValueError or LzsError; nothing when all is well."""
    check(lib.lzs_chain_sampler_status(address(link)))


def address(pointer: Any) -> Any:
    """Return what a pointer or function of ctypes points to, as cffi's ``void *``."""
    return ffi.cast("void *", ctypes.cast(pointer, ctypes.c_void_p).value)


def _link(source: Sampler, kind: int) -> Any:
    # libllama deletes what its own llama_sampler_init made, so the link is made by that very function
    out = ffi.new("void **")
    check(lib.lzs_chain_sampler_new(source.handle, kind, address(llama_cpp.llama_cpp._lib.llama_sampler_init), out))
    return ctypes.cast(int(ffi.cast("uintptr_t", out[0])), ctypes.POINTER(llama_cpp.llama_sampler))


def exempt_ids(llm: Any, strings: Iterable[str]) -> tuple[int, ...]:
    """Return the token ids that strings are made of in the vocabulary of a `llama_cpp.Llama`, for `Params.exempt`.

    ValueError for another ``llm``, for anything but a list of strings, and for an empty string.
    """
    if not isinstance(llm, llama_cpp.Llama):
        raise ValueError(f"llm must be a llama_cpp.Llama, got {llm!r}")
    if isinstance(strings, str | bytes):
        raise ValueError(f"strings must be a list of strings, got {strings!r}")
    ids: set[int] = set()
    for string in strings:
        if not isinstance(string, str) or not string:
            raise ValueError(f"strings must be strings that are not empty, got {string!r}")
        ids.update(llm.tokenize(string.encode(), add_bos=False, special=True))
    return tuple(sorted(ids))
