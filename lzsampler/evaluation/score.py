"""`score`: compares a text with the correct answer. A time limit is needed, because the user's code may never end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import LzsError
from .scoring import comparison

PATIENCE = 10.0  # maximum time of a comparison, in seconds


class _TooLong(BaseException):
    """Raised when the time is over. This is not an Exception, because the user's code may catch any Exception."""


def score(compare: str, content: str, answer: str) -> bool:
    """Return whether a text has the correct answer. ``compare``: the name of the comparison, as in `comparison`.

    LzsError if the comparison raises, ends the process, returns neither true nor false, or takes longer than
    `PATIENCE`. The time limit works only in the main thread, and not on Windows.
    """
    found = comparison(compare)
    try:
        with _in_time():
            made = found(content, answer)
            right = bool(made)
            if made not in (True, False):  # a function without a return statement returns None
                raise LzsError(f"{compare} failed: it returned {made!r:.80}, which is neither True nor False")
    except _TooLong:
        raise LzsError(f"{compare} failed: it took longer than {PATIENCE:g} s") from None
    except LzsError:
        raise
    except (Exception, SystemExit) as error:  # user code may raise anything
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise LzsError(f"{compare} failed: {said:.500}") from error
    return right


@contextmanager
def _in_time() -> Iterator[None]:
    """Raise `_TooLong` in the block after `PATIENCE`, then every second. Without timer signals, do nothing."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise _TooLong

    handler = signal.signal(signal.SIGALRM, ring)
    try:
        timer = signal.setitimer(signal.ITIMER_REAL, PATIENCE, 1.0)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, *timer)  # restore the application's timer, delayed by the block's time
    finally:
        signal.signal(signal.SIGALRM, handler)
