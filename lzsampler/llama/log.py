"""llama.cpp's log while it loads a file, collected so that the one line that matters can be shown."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from .binding import llama_cpp

_ERROR, _CONTINUED = 4, 5  # ggml_log_level


@contextmanager
def captured_log() -> Iterator[list[str]]:
    """Collect llama.cpp's error messages instead of printing them, while the ``with`` block runs."""
    errors: list[str] = []
    levels = [0]

    @llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
    def collect(level: int, text: bytes, _: object) -> None:
        if level == _CONTINUED:
            level = levels[0]
        levels[0] = level
        if level == _ERROR:
            errors.append(text.decode("utf-8", "replace"))

    callback, data = llama_cpp.llama_log_callback(), ctypes.c_void_p()
    if hasattr(llama_cpp, "llama_log_get"):
        llama_cpp.llama_log_get(ctypes.byref(callback), ctypes.byref(data))
    else:  # an older binding: only its own callback can be put back
        callback = llama_cpp._logger.llama_log_callback
    llama_cpp.llama_log_set(collect, None)
    try:
        yield errors
    finally:
        llama_cpp.llama_log_set(callback, data)


def reason(errors: list[str]) -> str:
    """Return the first error that names a cause, without the name of the function that reports it; "" for none."""
    lines = [line.strip() for line in "".join(errors).splitlines() if line.strip()]
    for line in lines:
        _, found, cause = line.partition("error loading model: ")
        if found:
            return cause
    return lines[0].partition(": ")[2] or lines[0] if lines else ""
