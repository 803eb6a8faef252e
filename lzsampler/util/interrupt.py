"""`uninterrupted`: a block that Ctrl-C does not break, such as one in which a C library calls back into Python."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C until the ``with`` block has ended. Then it raises KeyboardInterrupt, in place of an error too.

    A callback that C calls loses an exception, and so would lose Ctrl-C: llama.cpp writes its log through one. Memory
    that other threads use must stay until they end. Nothing changes in other threads, and for an application that
    handles SIGINT itself.
    """
    if not raises_at_sigint():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if came:
            raise KeyboardInterrupt


def raises_at_sigint() -> bool:
    """Return whether Ctrl-C raises KeyboardInterrupt in this thread: the main one, if the handler is Python's."""
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
