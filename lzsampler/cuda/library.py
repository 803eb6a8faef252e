"""liblzsampler_cuda.so: its path, and its structs and functions for ctypes (c/include/lzsampler_cuda.h)."""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from functools import cache
from pathlib import Path

from ..errors import LzsError

VARIABLE = "LZS_CUDA_LIBRARY"
NAME = "liblzsampler_cuda.so"
PROBLEM_SIZE = 256


class Shape(ctypes.Structure):
    """``lzs_batch_shape``."""

    _fields_ = [
        ("size", c_uint32),
        ("device", c_int32),
        ("n_vocab", c_int32),
        ("n_slots", c_int32),
        ("max_rows", c_int32),
        ("max_edits", c_int32),
        ("max_listed", c_int32),
    ]


class Step(ctypes.Structure):
    """``lzs_batch_step``."""

    _fields_ = [
        ("size", c_uint32),
        ("dtype", c_int32),
        ("logits", c_void_p),
        ("row_stride", c_int64),
        ("slots", c_void_p),
        ("histories", c_void_p),
        ("history_stride", c_int64),
        ("starts", c_void_p),
        ("lengths", c_void_p),
        ("positions", c_void_p),
        ("masks", c_void_p),
        ("mask_stride", c_int64),
        ("tokens", c_void_p),
        ("statuses", c_void_p),
    ]


def places() -> list[Path]:
    """Return the paths where the library may be: beside this file, and where ``make cuda`` puts it in a checkout."""
    return [Path(__file__).with_name(NAME), Path(__file__).parents[2] / "build" / "cuda" / NAME]


def load() -> ctypes.CDLL:
    """Return the library with its functions declared: $LZS_CUDA_LIBRARY, or the first of `places` that exists.

    LzsError, which says what to do, if there is no library or it does not load.
    """
    given = os.environ.get(VARIABLE)
    if given:
        return _loaded(given)
    for path in places():
        if path.exists():
            return _loaded(str(path))
    raise LzsError(f"the CUDA kernels are not built: run `make cuda` in a checkout, or set {VARIABLE} to a {NAME}")


@cache
def _loaded(path: str) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(path)
        functions = {name: getattr(library, name) for name in _FUNCTIONS}
    except (OSError, AttributeError) as error:
        raise LzsError(f"{path} is not the CUDA library of this lzsampler: {error}") from None
    for name, (result, arguments) in _FUNCTIONS.items():
        functions[name].restype = result
        functions[name].argtypes = arguments
    return library


_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "lzs_batch_new": (c_int32, [POINTER(Shape), POINTER(c_void_p), c_char_p]),
    "lzs_batch_free": (None, [c_void_p]),
    "lzs_batch_problem": (c_char_p, [c_void_p]),
    "lzs_batch_memory": (c_size_t, [c_void_p]),
    "lzs_batch_set_params": (c_int32, [c_void_p, c_int32, c_void_p, c_void_p]),
    "lzs_batch_set_plan": (c_int32, [c_void_p, c_int32, c_void_p, c_void_p]),
    "lzs_batch_sample": (c_int32, [c_void_p, POINTER(Step), c_int32, c_void_p]),
}
