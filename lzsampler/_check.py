"""The border to C: status to exception, array to pointer. Every check of an argument's type and shape is here."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._ffi import ffi, lib
from .errors import LzsError

Tokens = Sequence[int] | npt.NDArray[np.integer[Any]]

INT32_MAX = 2**31 - 1


def check(status: int) -> None:
    """Raise what a status stands for: nothing for 0, ValueError for a bad argument, else LzsError."""
    if status == 0:
        return
    message = ffi.string(lib.lzs_strerror(status)).decode()
    if status in (lib.LZS_EINVAL, lib.LZS_ENAN):
        raise ValueError(message)
    if status == lib.LZS_ENOMEM:
        raise MemoryError(message)
    raise LzsError(message)


def integer(name: str, value: object, low: int, high: int, high_is: str = "") -> int:
    """Return ``value`` as an int of low..high (numpy integers too); ValueError otherwise.

    ``high_is``: what the upper bound is, for the message, beginning with a comma.
    """
    if type(value) is int and low <= value <= high:
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    if not low <= int(value) <= high:
        raise ValueError(f"{name} must be from {low} to {high}{high_is}, got {value!r}")
    return int(value)


def token_array(name: str, tokens: Tokens, n_vocab: int) -> npt.NDArray[np.int32]:
    """Return token ids as int32[n], contiguous; ValueError with the first that is not 0..n_vocab - 1."""
    array = np.asarray(tokens)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    if array.size == 0:
        return np.empty(0, np.int32)
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be integers, got dtype {array.dtype}")
    outside = (array < 0) | (array >= n_vocab)
    if outside.any():
        at = int(outside.argmax())
        raise ValueError(f"{name}[{at}] = {array[at]} is not a token of a vocabulary of {n_vocab}")
    return np.ascontiguousarray(array, dtype=np.int32)


def logits_array(logits: object, n_vocab: int, name: str = "logits") -> npt.NDArray[np.float32]:
    """Return ``logits`` itself when it is a contiguous float32[n_vocab]; ValueError otherwise."""
    if not isinstance(logits, np.ndarray):
        raise ValueError(f"{name} must be a numpy array, got {type(logits).__name__}")
    if logits.dtype != np.float32:
        raise ValueError(f"{name} must be float32, got {logits.dtype}")
    if logits.shape != (n_vocab,):
        raise ValueError(f"{name} must have shape ({n_vocab},), got {logits.shape}")
    if not logits.flags.c_contiguous:
        raise ValueError(f"{name} must be contiguous, got strides {logits.strides}")
    return logits


def mask_array(words: object, n_vocab: int) -> npt.NDArray[np.uint32]:
    """Return a bit mask itself when it is a contiguous uint32 (or int32) array of ceil(n_vocab / 32) words."""
    if not isinstance(words, np.ndarray):
        raise ValueError(f"mask must be a numpy array or None, got {type(words).__name__}")
    if words.dtype not in (np.uint32, np.int32):
        raise ValueError(f"mask must be uint32 or int32, got {words.dtype}")
    if words.shape != ((n_vocab + 31) // 32,):
        raise ValueError(f"mask must have shape ({(n_vocab + 31) // 32},), got {words.shape}")
    return np.ascontiguousarray(words).view(np.uint32)
