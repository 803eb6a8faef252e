"""llama.cpp's log while it loads a file, collected so that an error can quote the one line that matters."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, RLock, local
from typing import Any

from ..util.signals import uninterrupted
from .binding import llama_cpp

_ERROR, _CONTINUED = 4, 5  # ggml_log_level

quiet = RLock()
"""Held while stdout and stderr are redirected: llama-cpp-python redirects them while it loads a model."""


class _Thread(local):
    """The state of the running thread. ``errors``: the collected messages; None while the thread collects none."""

    errors: list[str] | None = None
    level = 0


_thread = _Thread()
_swap = Lock()  # guards llama.cpp's log callback, of which a process has only one
_collectors = 0
_before: tuple[Any, Any] = None, None  # the callback and its data from before the first collector


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
def _collect(level: int, text: bytes, _: object) -> None:
    """Add a message to the list of the thread that caused the message. This callback is never freed, because any
    thread may run it.
    """
    if _thread.errors is None:
        callback, data = _before
        if callback:
            callback(level, text, data)
        return
    if level == _CONTINUED:
        level = _thread.level
    _thread.level = level
    if level == _ERROR:
        _thread.errors.append(text.decode("utf-8", "replace"))


@contextmanager
def captured_log() -> Iterator[list[str]]:
    """Collect llama.cpp's error messages of this thread while the ``with`` block runs, and print nothing of llama.cpp's
    log.

    Messages of other threads, and all later messages, go to the previous callback. Ctrl-C raises KeyboardInterrupt at
    the end of the block (`uninterrupted`).
    """
    outer, errors = _thread.errors, list[str]()
    _thread.errors, _thread.level = errors, 0
    _begin()
    try:
        with uninterrupted():
            yield errors
    finally:
        _end()
        _thread.errors = outer


def _begin() -> None:
    global _collectors, _before
    with _swap:
        _collectors += 1
        callback, data = _callback()
        if _address(callback) != _address(_collect):
            _before = callback, data
            # The data of the previous callback stays set, because llama.cpp reads callback and data separately.
            llama_cpp.llama_log_set(_collect, data)


def _end() -> None:
    global _collectors
    with _swap:
        _collectors -= 1
        now, _ = _callback()
        if not _collectors and _address(now) in (_address(_collect), _address(_before[0])):
            llama_cpp.llama_log_set(*_before)


def _callback() -> tuple[Any, Any]:
    """Return llama.cpp's callback and its data."""
    callback, data = llama_cpp.llama_log_callback(), ctypes.c_void_p()
    if not hasattr(llama_cpp, "llama_log_get"):  # an older llama-cpp-python can restore only its own callback
        return llama_cpp._logger.llama_log_callback, data
    llama_cpp.llama_log_get(ctypes.byref(callback), ctypes.byref(data))
    return callback, data


def _address(callback: Any) -> int | None:
    return ctypes.cast(callback, ctypes.c_void_p).value


def reason(errors: list[str]) -> str:
    """Return the first error that names a cause, without the name of the function that reports it; else ""."""
    lines = [line.strip() for line in "".join(errors).splitlines() if line.strip()]
    for line in lines:
        _, found, cause = line.partition("error loading model: ")
        if found:
            return cause
    return lines[0].partition(": ")[2] or lines[0] if lines else ""
