"""Files that appear whole or not at all, and folders that only one process uses at a time."""

import hashlib
import io
import os
import platform
import secrets
import shutil
import stat
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import LzsError
from .signals import uninterrupted

try:
    import fcntl
except ImportError:  # Windows needs no locks for open files: no process can remove them.
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from filelock import BaseFileLock

UNFINISHED = ".tmp"  # suffix of files that are still being written
# The prefix of unfinished files names the machine. A machine may not see the locks of other machines, so it removes
# only its own files.
_BEGINNING = f".lzs-{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}-"
_MOST = 1 << 30  # largest size, in bytes, of a file that is read as a whole
_LOCK, _SOFT_LOCK = "lock", "lock-soft"
LOCKS = frozenset((_LOCK, _SOFT_LOCK))  # names of the files that `locked` leaves in a folder


def whole(path: str | Path) -> bytes:
    """Return all bytes of a file. Raises OSError if it cannot be read, LzsError if it is larger than 1 GiB."""
    with open(path, "rb") as file:
        return whole_of(file, path)


def whole_of(stream: BinaryIO, name: object) -> bytes:
    """Return all bytes of a stream, called ``name`` in errors. Raises OSError, and LzsError for more than 1 GiB."""
    data = stream.read(_MOST + 1)
    if len(data) > _MOST:
        raise LzsError(f"{name} is larger than 1 GiB: split it, or give another file")
    return data


@contextmanager
def replacing(path: str | Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a new file that replaces ``path`` when the block ends. If the block raises, ``path`` does not change.

    A device or a pipe is written to directly. ``durable``: flush the new file to the disk before it replaces ``path``,
    so that the content survives a power cut. If the file cannot be written, raises an LzsError of one line. Other
    errors of the block pass unchanged.
    """
    with _reported(path):
        # A symbolic link stays a link: the file that it points to is replaced.
        target = Path(os.path.realpath(path))
        kind = stat.S_IFMT(target.stat().st_mode) if target.exists() else stat.S_IFREG
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(None, "it is a folder")
    if kind != stat.S_IFREG:
        with _opened(target, path) as device:
            yield device
        return
    with unfinished(target, path) as part:
        with _opened(part, path) as file:
            yield file
            file.flush()
            if durable:  # A full disk is noticed here, before the old file is gone.
                with _reported(path):
                    os.fsync(file.fileno())
        take_place(part, target, path)


def take_place(part: Path, target: Path, named: object = None) -> None:
    """Rename an unfinished file to ``target``. If ``target`` exists, the file gets the permissions of ``target``.

    The new file also gets the owner and the group of ``target``, if this process may set them. If not, the new file
    loses the set-user-ID and set-group-ID bits, which would run the file as another user or group. If the file cannot
    be renamed, an LzsError names ``named``, or else ``target``.
    """
    with _reported(target if named is None else named):
        if target.exists():
            _copy_permissions(target.stat(), part)
        part.replace(target)


def _copy_permissions(old: os.stat_result, part: Path) -> None:
    mode = stat.S_IMODE(old.st_mode)
    if hasattr(os, "chown"):
        for owner in (old.st_uid, -1):  # Who may not set the owner may still set the group.
            with suppress(OSError):
                os.chown(part, owner, old.st_gid)
                break
        new = part.stat()
        if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
            mode &= 0o777
    with suppress(OSError):  # The file system may have no permissions.
        part.chmod(mode)


@contextmanager
def unfinished(target: Path, named: object = None) -> Iterator[Path]:
    """Yield the path of a new, empty file beside ``target``. If you do not rename the file, it is removed at the end.

    First, the leftovers of killed processes are removed from the folder. Only those who may read ``target`` may read
    the file. If the file cannot be made, an LzsError names ``named``, or else ``target``.
    """
    with ExitStack() as stack:
        with _reported(target if named is None else named):
            mode = stat.S_IMODE(target.stat().st_mode) & 0o777 | stat.S_IWUSR if target.exists() else 0o666
            remove_leftovers(target.parent)
            part = stack.enter_context(_held(target.parent, lambda path: _new_file(path, mode)))
        yield part


class TemporaryFolder:
    """A new folder ``path`` in the system's folder for temporary files, for this user only.

    The folder is removed by `close`, or when the ``with`` block, this object or the process ends. The leftovers of
    killed processes are removed when the next folder is made. Raises LzsError if the folder cannot be made.
    """

    path: Path

    def __init__(self) -> None:
        with ExitStack() as stack:
            try:
                among = Path(tempfile.gettempdir())
                remove_leftovers(among)
                self.path = stack.enter_context(_held(among, _new_folder))
            except OSError as error:
                reason = error.strerror or error
                raise LzsError(f"no folder for temporary files can be made: {reason}; set TMPDIR") from error
            self._remove = weakref.finalize(self, stack.pop_all().close)

    @property
    def is_open(self) -> bool:
        """Whether the folder exists."""
        return self._remove.alive

    def close(self) -> None:
        """Remove the folder and everything in it."""
        with uninterrupted():
            self._remove()

    def __enter__(self) -> "TemporaryFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files and folders of killed processes from a folder. Locked files and folders stay."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_BEGINNING) and entry.name.endswith(UNFINISHED):
                _remove_if_left(entry)


def _remove_if_left(entry: "os.DirEntry[str]") -> None:
    with suppress(OSError):  # The entry may be gone, or the file system may have no locks.
        if entry.is_symlink() or entry.stat(follow_symlinks=False).st_uid != os.geteuid():
            return
        with _locked_now(entry.path, wait=False):
            _remove(entry.path, os.getpid())


def _remove(path: str | Path, owner: int) -> None:
    if os.getpid() != owner:  # This process was forked; its parent made the file.
        return
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):  # The file may be renamed, or another process may have removed it as a leftover.
            os.unlink(path)


@contextmanager
def _held(folder: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Make an unfinished file or folder and lock it. The system releases the lock when the process ends.

    The file or folder is removed when the block ends. If Ctrl-C interrupts, it is removed when the process ends. Raises
    OSError if it cannot be made.
    """
    while True:
        path = folder / f"{_BEGINNING}{secrets.token_hex(8)}{UNFINISHED}"
        with ExitStack() as stack:
            with uninterrupted():
                make(path)
                stack.callback(_remove, path, os.getpid())
                if fcntl is not None:
                    with suppress(OSError):  # The file system may have no locks.
                        stack.enter_context(_locked_now(path, wait=True))
                is_there = path.exists()  # Another process may have removed it before the lock.
            if is_there:
                try:
                    yield path
                finally:
                    with uninterrupted():
                        stack.close()
                return


@contextmanager
def _locked_now(path: str | Path, *, wait: bool) -> Iterator[None]:
    """Lock a file or folder. Raises OSError if that fails. ``wait``: wait for another process that holds the lock."""
    folder = os.path.isdir(path)  # Some systems lock a file only if it is open for writing.
    descriptor = os.open(path, (os.O_RDONLY if folder else os.O_RDWR) | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _new_file(path: Path, mode: int) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))


def _new_folder(path: Path) -> None:
    path.mkdir(0o700)


class _Reported(io.FileIO):
    """A file open for writing. Its errors are LzsErrors that name the user's file."""

    def __init__(self, path: Path, named: object) -> None:
        super().__init__(path, "w")
        self._named = named

    def write(self, data: Any) -> int:
        """Write bytes."""
        with _reported(self._named):
            return super().write(data)


@contextmanager
def _opened(path: Path, named: object) -> Iterator[BinaryIO]:
    """Open a file for writing. If the block raises, the bytes that are still buffered are not written."""
    with _reported(named):
        file = _Reported(path, named)
    with file:
        buffered = io.BufferedWriter(file)
        yield buffered
        buffered.flush()
        with _reported(named):
            file.close()


@contextmanager
def _reported(named: object) -> Iterator[None]:
    """Turn an OSError into an LzsError that names the user's file."""
    try:
        yield
    except OSError as error:
        raise LzsError(f"cannot write {named}: {error.strerror or error}") from error


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder if it does not exist, and keep other processes out of it until the block ends.

    On file systems without locks (Lustre and some NFS mounts), a file with the process's number serves as the lock.
    Raises LzsError if another process holds the lock, or if the folder cannot be written to.
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
    """Acquire and return the lock on a folder. Raises Timeout if another process holds it."""
    from filelock import FileLock, SoftFileLock, Timeout

    lock: BaseFileLock = FileLock(folder / _LOCK)
    try:
        with warnings.catch_warnings():
            # The warning becomes an error: filelock's own fallback would take an old lock file for a held lock.
            warnings.filterwarnings("error", message="flock not supported")
            lock.acquire(timeout=0)
    except Timeout:
        raise
    except (OSError, NotImplementedError, UserWarning):  # The file system has no locks, or writing is not permitted.
        lock = SoftFileLock(folder / _SOFT_LOCK)
        lock.acquire(timeout=0)
    return lock
