"""Ctrl-C and the signals that end a process: what may not be broken off puts them off, and then they raise."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# What a system ends a process by. A hang-up is there on Unix only.
_ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class _State:
    """What is known of the signals of this process: only its main thread has them."""

    def __init__(self) -> None:
        self.blocks = 0  # of `uninterrupted` that are open
        self.waiting = False  # whether a signal came in one of them
        self.ended_by = 0  # the number of the signal that is to end this process


_state = _State()


def end_by_signals() -> None:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does, so that nothing unfinished stays behind.

    For a program, in its main thread. A signal that is ignored or handled already (nohup) stays so.
    """
    for number in _ENDS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def ended_by() -> int:
    """Return the number of the signal that is to end this process, 0 if none came. Ctrl-C does not count."""
    return _state.ended_by


def interrupt(number: int) -> None:
    """Raise KeyboardInterrupt for a signal that something else than Python has caught."""
    _note(number)
    raise KeyboardInterrupt


def interrupting() -> tuple[int, ...]:
    """Return the numbers of the signals that raise KeyboardInterrupt in this thread: none but in the main one."""
    if threading.current_thread() is not threading.main_thread():
        return ()
    ours = (signal.default_int_handler, _interrupt)
    return tuple(number for number in (signal.SIGINT, *_ENDS) if signal.getsignal(number) in ours)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off Ctrl-C until the ``with`` block has ended. Then it raises KeyboardInterrupt, in place of an error too.

    The same goes for the signals of `end_by_signals`. A callback that C calls loses an exception, and so would lose
    Ctrl-C: llama.cpp writes its log through one. Memory that other threads use must stay until they end. Nothing
    changes in other threads, and for an application that handles SIGINT itself.
    """
    if not interrupting():
        yield
        return
    # A signal may come between any two lines here. Whatever it cuts off, the next one must still raise.
    replaces = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if replaces:
        signal.signal(signal.SIGINT, _interrupt)
    if not _state.blocks:
        _state.waiting = False
    _state.blocks += 1
    try:
        yield
    finally:
        _state.blocks -= 1
        if replaces:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if _state.waiting and not _state.blocks:
            _state.waiting = False
            raise KeyboardInterrupt


def _interrupt(number: int, _: Any) -> None:
    """Raise KeyboardInterrupt, or at the end of the outermost block of `uninterrupted`."""
    _note(number)
    _state.waiting = _state.blocks > 0
    if not _state.waiting:
        raise KeyboardInterrupt


def _note(number: int) -> None:
    if number in _ENDS:
        _state.ended_by = number
