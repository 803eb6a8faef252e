"""Threads that a signal cannot lose."""

from concurrent.futures import ThreadPoolExecutor, wait
from threading import Barrier

from .signals import uninterrupted


def started_pool(n_threads: int) -> ThreadPoolExecutor:
    """Return a pool of threads that all run.

    ThreadPoolExecutor starts a thread when there is work for it. A KeyboardInterrupt that comes between the start and
    the note that it makes of it loses the thread: `shutdown` does not wait for that one, and what it uses is freed.
    """
    pool = ThreadPoolExecutor(n_threads)
    together = Barrier(n_threads)
    with uninterrupted():
        try:
            wait([pool.submit(together.wait) for _ in range(n_threads)])
        except RuntimeError:  # the system has no more threads; those that run must not wait for it
            together.abort()
            raise
    return pool
