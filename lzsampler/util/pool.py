"""Thread pools whose `shutdown` waits for every thread, even if a signal came while the threads started."""

from concurrent.futures import ThreadPoolExecutor, wait
from threading import Barrier

from .signals import uninterrupted


def started_pool(n_threads: int) -> ThreadPoolExecutor:
    """Return a pool whose threads all run already.

    ThreadPoolExecutor starts a thread only when there is work for the thread. If a KeyboardInterrupt comes after the
    start and before the executor records the thread, `shutdown` does not wait for the thread. The caller could then
    free memory that the thread still uses.
    """
    pool = ThreadPoolExecutor(n_threads)
    together = Barrier(n_threads)
    with uninterrupted():
        try:
            wait([pool.submit(together.wait) for _ in range(n_threads)])
        except RuntimeError:  # The system has no more threads, and the running threads must stop waiting.
            together.abort()
            raise
    return pool
