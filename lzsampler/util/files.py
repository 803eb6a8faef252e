"""Files that are there whole or not at all, and folders that one process has for itself."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from ..errors import LzsError

LOCK = "lock"


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for bytes that takes the place of ``path`` when the block ends, and leaves it alone when it raises.

    A device or a pipe is written to directly. LzsError, in one line, when it cannot be written.
    """
    # A link stays a link, and the file it names is replaced.
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and stat.S_ISDIR(mode):
            raise IsADirectoryError(None, "it is a folder")
        if mode is not None and not stat.S_ISREG(mode):
            with target.open("wb") as device:
                yield device
            return
        with _beside(target, 0o666 if mode is None else stat.S_IMODE(mode)) as file:
            yield file
    except OSError as error:
        raise LzsError(f"cannot write {path}: {error.strerror or error}") from error


@contextmanager
def _beside(target: Path, mode: int) -> Iterator[BinaryIO]:
    """Open a new file in the folder of ``target``, and rename it to that in the end."""
    part = target.with_name(f".lzs-{secrets.token_hex(8)}.tmp")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)  # or a full disk may show only after the old file is gone
        part.replace(target)
    except BaseException:  # Ctrl-C too
        with suppress(OSError):
            part.unlink()
        raise


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder and keep others from it, where the system can, by a file `LOCK` that stays there, empty.

    LzsError when another process is at work there, or the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("w")
    except OSError as error:
        raise LzsError(f"cannot write to {folder}: {error.strerror}") from error
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel lets go of it when the process ends
            except OSError as error:
                raise LzsError(f"another process is at work in {folder}: wait for it, or stop it") from error
        yield
