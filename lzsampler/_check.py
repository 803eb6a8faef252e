"""Checks at the boundary to C: raises exceptions for C statuses, and checks and converts arrays. `_values` checks
single values.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._ffi import ffi, lib
from ._values import INT32_MAX as INT32_MAX
from ._values import boolean as boolean
from ._values import counted as counted
from ._values import integer as integer
from ._values import unknown_keyword as unknown_keyword
from .errors import ArgumentError, ArgumentTypeError, LzsError

Tokens = Sequence[int] | npt.NDArray[np.integer[Any]]

_FLOAT32 = np.dtype(np.float32)


def check(status: int) -> None:
    """Raise the ValueError, MemoryError or LzsError of a C status. A status of 0 raises nothing."""
    if status == 0:
        return
    message = ffi.string(lib.lzs_strerror(status)).decode()
    if status in (lib.LZS_EINVAL, lib.LZS_ENAN):
        raise ArgumentError(message)
    if status == lib.LZS_ENOMEM:
        raise MemoryError(message)
    raise LzsError(message)


def token_array(name: str, tokens: Tokens, n_vocab: int) -> npt.NDArray[np.int32]:
    """Return token ids as a contiguous int32[n]. ValueError names the first id that is outside 0..n_vocab - 1."""
    array = np.asarray(tokens)
    if array.ndim != 1:
        raise ArgumentError(f"{name} must have one dimension, got shape {array.shape}")
    if array.size == 0:
        return np.empty(0, np.int32)
    if not np.issubdtype(array.dtype, np.integer):
        raise ArgumentTypeError(f"{name} must be integers, got dtype {array.dtype}")
    outside = (array < 0) | (array >= n_vocab)
    if outside.any():
        at = int(outside.argmax())
        raise ArgumentError(f"{name}[{at}] = {array[at]} is not a token of a vocabulary of {n_vocab}")
    return np.ascontiguousarray(array, dtype=np.int32)


def logits_array(logits: npt.ArrayLike, n_vocab: int) -> npt.NDArray[np.float32]:
    """Return ``logits`` as a contiguous float32[n_vocab], without a copy if they already are such an array.

    Accepts everything that numpy can turn into an array of numbers: lists, arrays of any real type, CPU tensors. Raises
    TypeError if the values are not real numbers, ValueError for another shape.
    """
    if (
        isinstance(logits, np.ndarray)
        and logits.dtype == _FLOAT32
        and logits.shape == (n_vocab,)
        and logits.flags.c_contiguous
    ):
        return logits  # This is the usual case in a decode loop, so it comes first.
    try:
        array = np.asarray(logits)
    except ValueError as error:  # ``logits`` are nested lists of different lengths.
        raise ArgumentError(f"logits must be an array of {n_vocab} numbers: {error}") from None
    if array.dtype.kind not in "fiu":
        kind = f"dtype {array.dtype}" if array.ndim else type(logits).__name__
        raise ArgumentTypeError(f"logits must be an array of real numbers, got {kind}")
    if array.shape != (n_vocab,):
        raise ArgumentError(f"logits must have shape ({n_vocab},), got {array.shape}")
    with np.errstate(over="ignore"):  # A float64 beyond the range of float32 becomes infinite.
        return np.ascontiguousarray(array, np.float32)


def output_array(out: npt.NDArray[np.float32], n_vocab: int) -> npt.NDArray[np.float32]:
    """Return ``out`` if it is a contiguous, writable float32[n_vocab]; else raise TypeError or ValueError."""
    if not isinstance(out, np.ndarray) or out.dtype != np.float32:
        kind = out.dtype if isinstance(out, np.ndarray) else type(out).__name__
        raise ArgumentTypeError(f"out must be a numpy array of float32, got {kind}")
    if out.shape != (n_vocab,):
        raise ArgumentError(f"out must have shape ({n_vocab},), got {out.shape}")
    if not out.flags.c_contiguous:
        raise ArgumentError(f"out must be contiguous, got strides {out.strides}")
    if not out.flags.writeable:
        raise ArgumentError("out must be writable: process() writes there")
    return out


def row_of(pointer: Any, n_vocab: int) -> npt.NDArray[np.float32]:
    """Return a float32[n_vocab] view of the memory that a ``float *`` of `lzsampler._ffi` points to."""
    return np.frombuffer(ffi.buffer(pointer, 4 * n_vocab), np.float32)


def mask_array(words: object, n_vocab: int) -> npt.NDArray[np.uint32]:
    """Return a mask of ceil(n_vocab / 32) uint32 or int32 words as contiguous uint32, without a copy if possible."""
    if not isinstance(words, np.ndarray):
        raise ArgumentTypeError(f"mask must be a numpy array or None, got {type(words).__name__}")
    if words.dtype not in (np.uint32, np.int32):
        raise ArgumentTypeError(f"mask must be uint32 or int32, got {words.dtype}")
    if words.shape != ((n_vocab + 31) // 32,):
        raise ArgumentError(f"mask must have shape ({(n_vocab + 31) // 32},), got {words.shape}")
    return np.ascontiguousarray(words).view(np.uint32)
