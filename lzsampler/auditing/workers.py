"""A pool of worker processes that outlives its workers: one that is killed costs its task's progress, nothing else.

Why not `concurrent.futures`: there a worker that the kernel kills (out of memory) breaks the whole pool, and nobody
knows what it was working on. Here each worker says what it starts on, and a task whose worker died is tried again
without the piece that killed it twice. What a worker wrote to stderr is part of the error. Workers are fresh
interpreters, so that threads of the caller (pyarrow, torch) do no harm and a caller's script needs no
`if __name__ == "__main__"`.
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

_ATTEMPTS = 2  # at a piece, before it is left out
_STARTS = 4  # workers that may die in a row before they begin a piece: something outside may have killed the first ones
_SAID_LINES, _SAID_BYTES = 3, 4096  # of the end of a worker's stderr that an error quotes, and that is looked at
_SERVE = "import sys; sys.path[:] = {path!r}; from lzsampler.auditing.workers import serve; serve()"


class Work(NamedTuple):
    """A function for the workers, by a name that can be pickled, and what it needs the same for every task.

    ``function(shared, task, skipped, start)`` works on a task's pieces, calls ``start(number)`` before each, leaves out
    those in ``skipped`` (number: why), and returns what is to come back; all of it pickles.
    """

    function: Callable[..., Any]
    shared: Any


def run(work: Work, tasks: Sequence[Any], workers: int) -> Iterator[Any]:
    """Yield the results of the tasks as they come, in any order; in this process when ``workers`` is 1.

    An exception of the function ends the run and is raised here; the traceback of the worker is its ``__cause__``. When
    the iterator is closed, or an exception comes in between (Ctrl-C), the workers are killed.
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
        with uninterrupted():  # or a worker goes on in a folder that is being removed
            pool.stop()


def _nothing(_: int) -> None:
    pass


class _Done(NamedTuple):
    value: Any


class _DeathError(Exception):
    """A worker is gone; ``piece`` is what it was working on."""

    def __init__(self, piece: int | None, how: str) -> None:
        super().__init__(how)
        self.piece = piece


class _WorkerTraceback(Exception):  # noqa: N818 (it is shown as the cause of the error, never raised by itself)
    """The traceback of an exception in a worker."""


class _Worker(NamedTuple):
    """A worker process, and the file that takes what it writes to stderr."""

    process: "subprocess.Popen[bytes]"
    said: IO[bytes]

    def last_lines(self) -> str:
        """Return the last lines of what it wrote to stderr, in one line, "" for nothing."""
        end = self.said.seek(0, os.SEEK_END)
        self.said.seek(max(0, end - _SAID_BYTES))
        lines = self.said.read().decode("utf-8", "replace").splitlines()
        return " | ".join([line.strip() for line in lines if line.strip()][-_SAID_LINES:])


class _Pool:
    """Threads that each talk to one worker; they hold the lock only to start, take and stop."""

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
        """Kill the workers, and wait until they are gone."""
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
            # A file, since nobody would read a pipe while a worker is busy. It keeps what workers write on Ctrl-C,
            # which reaches them, too, off the terminal.
            said = tempfile.TemporaryFile()  # noqa: SIM115 (`_bury` closes it)
            process = subprocess.Popen(
                [sys.executable, "-c", _SERVE.format(path=sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
            )
            worker = _Worker(process, said)
            self._workers.add(worker)
        with suppress(OSError):  # it died at once: the first task tells
            assert process.stdin is not None
            process.stdin.write(self._work)
            process.stdin.flush()
        return worker

    def _bury(self, worker: _Worker) -> None:
        for pipe in (worker.process.stdin, worker.process.stdout):
            with suppress(OSError):  # what it did not read any more
                assert pipe is not None
                pipe.close()
        worker.process.wait()  # its stdin is closed: it ends
        worker.said.close()
        with self._lock:
            self._workers.discard(worker)


def _ask(worker: _Worker, task: Any, skipped: Mapping[int, str]) -> Any:
    """Return a worker's result, or raise the exception that it sent, or `_DeathError`."""
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
    """Be a worker: take tasks from stdin and send results to stdout, until the caller closes them or is gone."""
    sender = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    receiver = os.fdopen(os.dup(0), "rb")
    for stream in (0, 1):  # no library may talk in between
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
            except Exception as error:  # of whatever library: its class may not be one that pickles
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{os.path.basename(place.filename)}, line {place.lineno}"
                send("error", (LzsError(f"{type(error).__name__}: {error} ({where})"), traceback.format_exc()))
            else:
                send("done", result)
    except (EOFError, BrokenPipeError):
        os._exit(0)  # the caller has what it wanted, or is gone
