"""The installed llama_cpp, checked. Other modules of lzsampler import llama_cpp from here only."""

import ctypes
import re
import warnings
from typing import Any

from ..errors import MissingExtra, missing

try:
    import llama_cpp
except ImportError as error:
    if error.name != "llama_cpp":  # llama_cpp is installed but broken: show its own message
        raise MissingExtra(f"llama-cpp-python does not load: {error}") from error
    raise missing("llama-cpp-python is needed for this", "llama-cpp-python") from None

__all__ = ["llama_cpp"]

OLDEST = (0, 3, 17)  # in older versions the struct llama_sampler_i has only the six `_MEMBERS`
NEWEST = (0, 3, 36)  # the newest version that the tests ran with
_MEMBERS = ("name", "accept", "apply", "reset", "clone", "free")  # members of llama_sampler_i in every version
_MOST_MEMBERS = 32  # the same as LZS_LLAMA_MEMBERS in c/llama/abi.h
_LAYOUT = {  # struct of llama.h: (bytes, offset of each field), as c/llama/abi.h declares them for 64-bit machines
    "llama_token_data": (12, {"id": 0, "logit": 4, "p": 8}),
    "llama_token_data_array": (32, {"data": 0, "size": 8, "selected": 16, "sorted": 24}),
    "llama_sampler": (16, {"iface": 0, "ctx": 8}),
    "llama_batch": (
        56,
        {"n_tokens": 0, "token": 8, "embd": 16, "pos": 24, "n_seq_id": 32, "seq_id": 40, "logits": 48},
    ),
}


def _check_binding(binding: Any) -> None:
    """Raise MissingExtra if llama_cpp is too old or its structs differ from c/llama/abi.h; warn if it is too new."""
    version = getattr(binding, "__version__", "?")
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if number < OLDEST:
        raise MissingExtra(f"llama-cpp-python {version} is too old: lzsampler needs {_dotted(OLDEST)} or newer")
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
        raise MissingExtra(
            f"llama-cpp-python {version} has a sampler interface that this lzsampler does not know"
            f" ({', '.join(wrong)}): use llama-cpp-python {_dotted(OLDEST)} to {_dotted(NEWEST)}, or a newer lzsampler"
        )
    if number > NEWEST:
        warnings.warn(
            f"llama-cpp-python {version} is newer than {_dotted(NEWEST)}, the newest that this lzsampler was tested "
            "with: if something fails, install that version or a newer lzsampler",
            stacklevel=2,
        )


def _dotted(number: tuple[int, ...]) -> str:
    return ".".join(map(str, number))


_check_binding(llama_cpp)  # runs once, at import
