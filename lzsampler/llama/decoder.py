"""`Decoder`: calls llama_decode for one context. Ctrl-C can end the call within a batch."""

import ctypes
import signal
from contextlib import nullcontext
from typing import Any

from .._ffi import ffi, lib
from ..util.signals import interrupt, interrupting
from .binding import llama_cpp
from .chain import address
from .log import captured_log

# The bits that stand for the caught signals in C. SIGHUP exists on Unix only.
_BITS = {
    number: bit
    for name, bit in (("SIGINT", 1), ("SIGTERM", 2), ("SIGHUP", 4))
    if (number := getattr(signal, name, None)) is not None
}


class Decoder:
    """Decodes batches of a context. Ctrl-C ends a decode of the main thread; `stop` ends a decode of another thread.

    A `Decoder` must live as long as its context. Python runs its handler of SIGINT only when llama_decode returns,
    which may be seconds later. So if the handler raises KeyboardInterrupt (`interrupting`), C catches the signal during
    the call (c/llama/interrupt.c).
    """

    def __init__(self, context: Any) -> None:
        self._decoder = ffi.new("lzs_llama_decoder *")
        self._decoder.context = ffi.cast("void *", context)
        self._decoder.decode = address(llama_cpp.llama_decode)
        self._decoder.set_abort_callback = address(llama_cpp.llama_set_abort_callback)

    def decode(self, batch: Any) -> int:
        """Decode a batch, and return the status of llama_decode, 2 if it was stopped.

        If the status is not 0, the caller then restores the context. After each decode, the caller calls `check`.
        """
        given = ffi.cast("void *", ctypes.addressof(batch))
        several = batch.n_tokens > 1
        catches = sum(_BITS[number] for number in interrupting()) if several else 0
        with captured_log() if several else nullcontext():  # a stopped llama.cpp logs that it removes the tokens
            return int(lib.lzs_llama_decode(self._decoder, given, catches))

    def stop(self) -> None:
        """End the decode that another thread is running. If none is running, end the next decode."""
        self._decoder.stopped = signal.SIGINT

    def forget(self) -> None:
        """Forget a stop that `check` has not reported, such as a second Ctrl-C before `check`."""
        self._decoder.stopped = 0

    def check(self) -> None:
        """Raise KeyboardInterrupt if the last decode was stopped, or if Ctrl-C came too late to stop it."""
        if number := self._decoder.stopped:
            self.forget()
            interrupt(number)
