"""Files that appear whole or not at all, and folders that one process has to itself."""

import os
import secrets
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..errors import LzsError

if TYPE_CHECKING:
    from filelock import BaseFileLock

UNFINISHED = ".tmp"  # how the names of files end that are still being written
_LOCK, _SOFT_LOCK = "lock", "lock-soft"
LOCKS = frozenset((_LOCK, _SOFT_LOCK))  # names of the files that `locked` leaves in a folder


@contextmanager
def replacing(path: str | Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a new file that replaces ``path`` when the block ends; if the block raises, ``path`` stays as it was.

    A device or a pipe is written to directly. ``durable``: the content is on the disk before the file is replaced, so
    that it survives a power cut, too. LzsError, in one line, if the file cannot be written.
    """
    # A symbolic link stays one, and the file that it names is replaced.
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and stat.S_ISDIR(mode):
            raise IsADirectoryError(None, "it is a folder")
        if mode is not None and not stat.S_ISREG(mode):
            with target.open("wb") as device:
                yield device
            return
        with _beside(target, 0o666 if mode is None else stat.S_IMODE(mode), durable) as file:
            yield file
    except OSError as error:
        raise LzsError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def _beside(target: Path, mode: int, durable: bool) -> Iterator[BinaryIO]:
    """Open a new file in the folder of ``target``, and rename it to ``target`` at the end."""
    part = target.with_name(f".lzs-{secrets.token_hex(8)}{UNFINISHED}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:  # or a full disk may show only after the old file is gone
                os.fsync(descriptor)
        part.replace(target)
    except BaseException:  # Ctrl-C too
        with suppress(OSError):
            part.unlink()
        raise


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder if there is none, and keep other processes out of it until the block ends.

    Where the file system has no locks (Lustre and some NFS mounts), a file with the process's number stands for one.
    LzsError if another process holds the lock, or if the folder cannot be written to.
    """
    from filelock import Timeout

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _lock(folder)
    except Timeout as error:
        raise LzsError(f"another process is using {folder}: wait until it ends, or stop it") from error
    except OSError as error:
        raise LzsError(f"cannot write to {folder}: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()


def _lock(folder: Path) -> "BaseFileLock":
    """Return a lock of the folder that this process holds. Timeout if another one holds it."""
    from filelock import FileLock, SoftFileLock, Timeout

    lock: BaseFileLock = FileLock(folder / _LOCK)
    try:
        with warnings.catch_warnings():
            # filelock's own way out would take a lock file that was left by a file system with locks for a held one.
            warnings.filterwarnings("error", message="flock not supported")
            lock.acquire(timeout=0)
    except Timeout:
        raise
    except (OSError, NotImplementedError, UserWarning):  # no locks on this file system, or no permission to write
        lock = SoftFileLock(folder / _SOFT_LOCK)
        lock.acquire(timeout=0)
    return lock
