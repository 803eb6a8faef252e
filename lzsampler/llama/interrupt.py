"""`Decoder`: llama_decode of one context, which Ctrl-C ends within a batch."""

import ctypes
import signal
import threading
from contextlib import nullcontext
from typing import Any

from .._ffi import ffi, lib
from .binding import llama_cpp
from .chain import address
from .log import captured_log


class Decoder:
    """Decodes batches of a context. Ctrl-C ends a decode in the main thread, `stop` one in another thread.

    Python runs its handler of SIGINT when llama_decode returns, seconds later for a batch of a long prompt. So C
    catches the signal meanwhile (c/llama/interrupt.c), if the handler is Python's own, which raises KeyboardInterrupt.
    """

    def __init__(self, context: Any) -> None:
        self._stopped = ffi.new("int32_t *")
        self._decoder = ffi.new("lzs_llama_decoder *")
        self._decoder.context = ffi.cast("void *", context)
        self._decoder.decode = address(llama_cpp.llama_decode)
        self._decoder.set_abort_callback = address(llama_cpp.llama_set_abort_callback)

    def decode(self, batch: Any) -> int:
        """Return the status of llama_decode, 2 where it was stopped. Call `check` once the context is in order."""
        given = ffi.cast("void *", ctypes.addressof(batch))
        catches = batch.n_tokens > 1 and _raises_at_sigint()
        with captured_log() if catches else nullcontext():  # llama.cpp reports what it takes back
            return int(lib.lzs_llama_decode(self._decoder, given, self._stopped, catches))

    def stop(self) -> None:
        """End the decode that another thread is in, or else its next one."""
        self._stopped[0] = 1

    def check(self) -> None:
        """Raise KeyboardInterrupt where the last decode was stopped, or Ctrl-C came too late to stop it."""
        if self._stopped[0]:
            self._stopped[0] = 0
            raise KeyboardInterrupt


def _raises_at_sigint() -> bool:
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
