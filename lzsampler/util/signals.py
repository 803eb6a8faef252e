"""Handles Ctrl-C and the signals that end a process. Code that must not be interrupted can defer these signals."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# The signals by which a system ends a process. SIGHUP exists only on Unix.
_ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class _State:
    """The state of this process's signals. Python delivers signals only to the main thread."""

    def __init__(self) -> None:
        self.blocks = 0  # number of open `uninterrupted` blocks
        self.waiting = False  # whether a signal came in an `uninterrupted` block
        self.ended_by = 0  # number of the signal that asked this process to end, or 0


_state = _State()


def end_by_signals() -> None:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does, so that no unfinished files are left.

    Call it in the main thread of a program. The function does not change a signal that already has a handler, or that
    is ignored, for example because of nohup.
    """
    for number in _ENDS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def ended_by() -> int:
    """Return the number of the signal that asked this process to end, 0 if none came. Ctrl-C does not count."""
    return _state.ended_by


def interrupt(number: int) -> None:
    """Raise KeyboardInterrupt for a signal that C code caught."""
    _note(number)
    raise KeyboardInterrupt


def interrupting() -> tuple[int, ...]:
    """Return the signals that raise KeyboardInterrupt in this thread. Other threads than the main thread have none."""
    if threading.current_thread() is not threading.main_thread():
        return ()
    ours = (signal.default_int_handler, _interrupt)
    return tuple(number for number in (signal.SIGINT, *_ENDS) if signal.getsignal(number) in ours)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer Ctrl-C until the ``with`` block ends. Then raise KeyboardInterrupt, even in place of an error of the block.

    The signals of `end_by_signals` are deferred, too. Two kinds of code need this. If Ctrl-C raises in a Python
    callback that C calls, such as the callback for llama.cpp's log, C loses the exception. If other threads use memory,
    the memory must stay until they end. In other threads, and in an application that handles SIGINT itself, the block
    has no effect.
    """
    if not interrupting():
        yield
        return
    # A signal may come between any two lines of this function. The next signal must still raise KeyboardInterrupt.
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
    """Raise KeyboardInterrupt now, or at the end of the outermost `uninterrupted` block."""
    _note(number)
    _state.waiting = _state.blocks > 0
    if not _state.waiting:
        raise KeyboardInterrupt


def _note(number: int) -> None:
    if number in _ENDS:
        _state.ended_by = number
