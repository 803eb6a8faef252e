"""Files that appear whole or not at all, and folders that one process has to itself."""

import hashlib
import os
import platform
import secrets
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..errors import LzsError

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from filelock import BaseFileLock

UNFINISHED = ".tmp"  # how the names of files end that are still being written
# And how they begin. A lock of another machine may not be seen here, so each looks at its own files only.
_BEGINNING = f".lzs-{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}-"
_MOST = 1 << 30  # bytes of a file that is read at once
_LOCK, _SOFT_LOCK = "lock", "lock-soft"
LOCKS = frozenset((_LOCK, _SOFT_LOCK))  # names of the files that `locked` leaves in a folder


def whole(path: str | Path) -> bytes:
    """Return the bytes of a file that is read at once. OSError; LzsError if it does not end within 1 GiB."""
    with open(path, "rb") as file:
        return whole_of(file, path)


def whole_of(stream: BinaryIO, name: object) -> bytes:
    """Return the bytes of a stream, which errors call ``name``. OSError; LzsError if it does not end within 1 GiB."""
    data = stream.read(_MOST + 1)
    if len(data) > _MOST:
        raise LzsError(f"{name} is larger than 1 GiB: split it, or give another file")
    return data


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
        mode = 0o666 if mode is None else stat.S_IMODE(mode)
        with unfinished(target, mode | stat.S_IWUSR) as part:
            with part.open("wb") as file:
                yield file
                file.flush()
                if durable:  # or a full disk may show only after the old file is gone
                    os.fsync(file.fileno())
            if not mode & stat.S_IWUSR:
                part.chmod(mode)
            part.replace(target)
    except OSError as error:
        raise LzsError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def unfinished(target: Path, mode: int = 0o666) -> Iterator[Path]:
    """Yield the name of a new, empty file in the folder of ``target``; it is gone at the end if it was not renamed.

    What is left there by processes that were killed is removed first. OSError if the file cannot be made.
    """
    remove_leftovers(target.parent)
    part, held = _held(target, mode)
    try:
        yield part
    finally:  # after Ctrl-C, too
        with suppress(OSError):
            part.unlink()
        if held is not None:
            os.close(held)


def remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files in a folder whose processes were killed: those that nobody holds a lock of."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            is_ours = entry.name.startswith(_BEGINNING) and entry.name.endswith(UNFINISHED)
            if is_ours and entry.is_file(follow_symlinks=False):
                _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    with suppress(OSError):  # it is gone, or another user's, or on a file system without locks
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(descriptor)


def _held(target: Path, mode: int) -> tuple[Path, int | None]:
    """Make an unfinished file, and hold a lock of it, which the system gives up with the process, however it ends."""
    while True:
        part = target.with_name(f"{_BEGINNING}{secrets.token_hex(8)}{UNFINISHED}")
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        if fcntl is None:
            os.close(descriptor)
            return part, None
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return part, descriptor
        os.close(descriptor)  # another process took it for a leftover before it was locked


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
