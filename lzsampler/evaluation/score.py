"""`score`: whether a text is right, by a comparison that may be the user's own code, or may take for ever."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import LzsError
from .scoring import comparison

PATIENCE = 10.0  # seconds


class _TooLong(BaseException):
    """No Exception, which code of the user may catch."""


def score(compare: str, content: str, answer: str) -> bool:
    """Return whether a text has the answer; ``compare`` as `comparison` takes it.

    LzsError if the comparison raises, ends the process, returns neither true nor false, or takes longer than
    `PATIENCE`. That is noticed in the main thread only, and not on Windows.
    """
    found = comparison(compare)
    try:
        with _in_time():
            made = found(content, answer)
            right = bool(made)
            if made not in (True, False):  # None is what a function returns that has forgotten to
                raise LzsError(f"{compare} failed: it returned {made!r:.80}, which is neither True nor False")
    except _TooLong:
        raise LzsError(f"{compare} failed: it took longer than {PATIENCE:g} s") from None
    except LzsError:
        raise
    except (Exception, SystemExit) as error:  # the user's code: anything may come out of it
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise LzsError(f"{compare} failed: {said:.500}") from error
    return right


@contextmanager
def _in_time() -> Iterator[None]:
    """Raise `_TooLong` in the block when it takes too long, again each second, where there are signals for it."""
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
            signal.setitimer(signal.ITIMER_REAL, *timer)  # one of the application, which loses the time until here
    finally:
        signal.signal(signal.SIGALRM, handler)
