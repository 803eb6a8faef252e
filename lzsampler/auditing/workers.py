"""`run`: runs tasks in worker processes. If a worker dies, only the progress of its task is lost.

With `concurrent.futures`, a worker that the kernel kills (out of memory) breaks the whole pool, and nobody learns what
the worker was working on. Here a task consists of pieces, and each worker reports the piece that it starts. If a worker
dies, its task is tried again. If two workers have died at a piece, the piece is skipped, and the error quotes the
worker's stderr. Workers are new interpreters. Threads of the caller (pyarrow, torch) therefore do no harm, and the
caller's script needs no `if __name__ == "__main__"`.
"""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import IO, Any, NamedTuple

from ..errors import LzsError
from ..util.signals import uninterrupted

_ATTEMPTS = 2  # If this many workers die at a piece, the piece is skipped.
_STARTS = 4  # If this many workers die before their first piece, the run fails.
_SAID_LINES, _SAID_BYTES = 3, 4096  # an error quotes the last 3 lines of a worker's stderr, at most 4096 bytes
_SERVE = "import sys; sys.path[:] = {path!r}; from lzsampler.auditing.workers import serve; serve()"


class Work(NamedTuple):
    """A function for the workers, and the data that all tasks share.

    ``function(shared, task, skipped, start)`` works on the pieces of a task. The function calls ``start(number)``
    before each piece, leaves out the pieces in ``skipped`` (number: reason), and returns the result. Pickle must
    work for the function, the tasks, ``shared`` and the results.
    """

    function: Callable[..., Any]
    shared: Any


def run(work: Work, tasks: Sequence[Any], workers: int) -> Iterator[Any]:
    """Yield the results of the tasks in the order in which the tasks finish.

    If ``workers`` is 1, or there is only one task, the tasks run in this process. An exception of the function ends the
    run and is raised here, with the worker's traceback as ``__cause__``. If the iterator is closed, or an exception
    such as Ctrl-C interrupts the iterator, the workers are killed.
    """
    if workers == 1 or len(tasks) < 2:
        for task in tasks:
            yield work.function(work.shared, task, {}, _nothing)
        return
    pool = _Pool(work, tasks)
    try:
        pool.start(min(workers, len(tasks)))
        for _ in tasks:
            result = pool.results.get()
            if isinstance(result, BaseException):
                raise result
            yield result.value
    finally:
        with uninterrupted():  # If Ctrl-C interrupted `stop`, a worker could write to a folder that is being removed.
            pool.stop()


def _nothing(_: int) -> None:
    pass


class _Done(NamedTuple):
    value: Any


class _DeathError(Exception):
    """A worker has died. ``piece``: the number of the piece that it was working on; None before its first piece."""

    def __init__(self, piece: int | None, how: str) -> None:
        super().__init__(how)
        self.piece = piece


class _WorkerTraceback(Exception):  # noqa: N818 (it is only the cause of another error)
    """The traceback of an exception in a worker."""


class _Worker(NamedTuple):
    """A worker process, and the file that receives its stderr."""

    process: "subprocess.Popen[bytes]"
    said: IO[bytes]

    def last_lines(self) -> str:
        """Return the last lines of the worker's stderr as one line; "" if it wrote nothing."""
        end = self.said.seek(0, os.SEEK_END)
        self.said.seek(max(0, end - _SAID_BYTES))
        lines = self.said.read().decode("utf-8", "replace").splitlines()
        return " | ".join([line.strip() for line in lines if line.strip()][-_SAID_LINES:])


class _Pool:
    """Runs a thread for each worker. The lock protects the tasks, the set of workers and ``_stopped``."""

    def __init__(self, work: Work, tasks: Sequence[Any]) -> None:
        self.results: SimpleQueue[Any] = SimpleQueue()
        self._work = pickle.dumps(work)
        self._tasks = deque(tasks)
        self._lock = Lock()
        self._stopped = False
        self._workers: set[_Worker] = set()
        self._threads: list[Thread] = []

    def start(self, workers: int) -> None:
        self._threads = [Thread(target=self._drive, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Kill the workers, and wait until they have ended."""
        with self._lock:
            self._stopped = True
            for worker in self._workers:
                worker.process.kill()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _drive(self) -> None:
        worker = None
        try:
            while (task := self._next()) is not None:
                deaths: Counter[int | None] = Counter()
                skipped: dict[int, str] = {}
                while True:
                    worker = worker or self._worker()
                    try:
                        self.results.put(_Done(_ask(worker, task, skipped)))
                        break
                    except _DeathError as death:
                        self._bury(worker)
                        worker = None
                        if self._stopped:
                            return
                        deaths[death.piece] += 1
                        if death.piece is None:
                            if deaths[None] == _STARTS:
                                raise LzsError(f"worker processes cannot be started: {death}") from death
                        elif deaths[death.piece] == _ATTEMPTS:
                            skipped[death.piece] = str(death)
        except BaseException as error:
            self.results.put(error)
        finally:
            if worker is not None:
                self._bury(worker)

    def _next(self) -> Any:
        with self._lock:
            return self._tasks.popleft() if self._tasks and not self._stopped else None

    def _worker(self) -> _Worker:
        with self._lock:
            if self._stopped:
                raise LzsError("stopped")
            # stderr goes to a file, since nothing would empty a pipe while a worker is busy. Ctrl-C also reaches the
            # workers; the file keeps their tracebacks off the terminal.
            said = tempfile.TemporaryFile()  # noqa: SIM115 (`_bury` closes it)
            process = subprocess.Popen(
                [sys.executable, "-c", _SERVE.format(path=sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
            )
            worker = _Worker(process, said)
            self._workers.add(worker)
        with suppress(OSError):  # If the worker has died, `_ask` reports its death.
            assert process.stdin is not None
            process.stdin.write(self._work)
            process.stdin.flush()
        return worker

    def _bury(self, worker: _Worker) -> None:
        for pipe in (worker.process.stdin, worker.process.stdout):
            with suppress(OSError):  # `close` fails if the worker did not read all data.
                assert pipe is not None
                pipe.close()
        worker.process.wait()  # The process ends because its stdin is closed.
        worker.said.close()
        with self._lock:
            self._workers.discard(worker)


def _ask(worker: _Worker, task: Any, skipped: Mapping[int, str]) -> Any:
    """Return a worker's result. If the worker sends an exception, raise it. If the worker dies, raise `_DeathError`."""
    process = worker.process
    assert process.stdin is not None
    assert process.stdout is not None
    piece: int | None = None
    try:
        pickle.dump((task, dict(skipped)), process.stdin)
        process.stdin.flush()
        while True:
            kind, value = pickle.load(process.stdout)
            if kind == "start":
                piece = value
            elif kind == "done":
                return value
            else:
                error, text = value
                raise error from _WorkerTraceback(f"\n{text}")
    except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
        how, said = _how(process.wait()), worker.last_lines()
        raise _DeathError(piece, f"{how}; it last wrote: {said}" if said else how) from error


def _how(status: int) -> str:
    if status >= 0:
        return f"the worker process ended with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"the worker process was ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")


def serve() -> None:
    """Run a worker: read tasks from stdin and write results to stdout, until the caller closes the pipes or ends."""
    sender = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    receiver = os.fdopen(os.dup(0), "rb")
    for stream in (0, 1):  # Output of libraries must not mix with the results.
        os.dup2(nowhere, stream)

    def send(kind: str, value: Any) -> None:
        pickle.dump((kind, value), sender)
        sender.flush()

    try:
        work: Work = pickle.load(receiver)
        while True:
            task, skipped = pickle.load(receiver)
            try:
                result = work.function(work.shared, task, skipped, lambda piece: send("start", piece))
            except BrokenPipeError:
                raise
            except (OSError, ValueError, LzsError, MemoryError) as error:
                send("error", (error, traceback.format_exc()))
            except Exception as error:  # It is converted, since pickle may fail for a library's exceptions.
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{os.path.basename(place.filename)}, line {place.lineno}"
                send("error", (LzsError(f"{type(error).__name__}: {error} ({where})"), traceback.format_exc()))
            else:
                send("done", result)
    except (EOFError, BrokenPipeError):
        os._exit(0)  # The caller has all results, or has ended.
