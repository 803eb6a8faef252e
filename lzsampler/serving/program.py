"""`find_program`: reads a program before it is executed, and refuses one into which no library can be preloaded."""

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LzsError
from .preloading import preload_library

_LOADERS = ("ld-linux", "ld64.so", "ld.so")  # how the file names of glibc's dynamic loaders begin
_SCRIPT = b"#!"
_FIRST_LINE = 256  # bytes that Linux reads of a script's first line
_OF_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, OSError)  # what pyelftools raises
_SCRIPTS = 5  # Linux follows no more interpreters that are scripts


@dataclass(frozen=True)
class Program:
    """A program. ``binary`` is the file that Linux loads: ``path`` itself, or the interpreter of a script."""

    path: Path
    binary: Path
    loader: Path

    @property
    def is_script(self) -> bool:
        """Whether another program interprets it."""
        return self.path != self.binary


def find_program(name: str) -> Program:
    """Return the program that a shell would start.

    LzsError if there is none, or if the dynamic loader would not preload a library into it.
    """
    path = _found(name)
    binary = _interpreter(path)
    said = str(path) if binary == path else f"{path} is a script, and its interpreter {binary}"
    mode = binary.stat().st_mode
    if mode & stat.S_ISUID or (mode & stat.S_ISGID and mode & stat.S_IXGRP):
        raise LzsError(f"{said} is setuid or setgid, so Linux ignores LD_PRELOAD: start a copy without these bits")
    if _has_capabilities(binary):
        raise LzsError(f"{said} has file capabilities, so Linux ignores LD_PRELOAD: start a copy without them")
    return Program(path, binary, _loader(binary, said))


def _found(name: str) -> Path:
    if not name:
        raise LzsError("the program's name is empty: give a name on PATH, or a path")
    if os.sep not in name:
        found = shutil.which(name)
        if found is None:
            raise LzsError(f"{name} is not on PATH: give the path of the program")
        return Path(found).absolute()
    path = Path(name)
    if not path.exists():
        raise LzsError(f"{name} does not exist: give the path of a program")
    if not path.is_file():
        raise LzsError(f"{name} is not a file: give the path of a program")
    if not os.access(path, os.X_OK):
        raise LzsError(f"{name} is not executable: give the path of a program, or run chmod +x {name}")
    return path.absolute()


def _interpreter(path: Path) -> Path:
    """Return a program itself, or the program that interprets a script."""
    for _ in range(_SCRIPTS):
        try:
            with path.open("rb") as file:
                line = file.read(_FIRST_LINE).split(b"\n", 1)[0]
        except PermissionError:
            raise LzsError(f"{path} cannot be read, so lzs cannot tell whether a library can be preloaded") from None
        if not line.startswith(_SCRIPT):
            return path
        words = re.split(rb"[ \t]+", line.removeprefix(_SCRIPT).strip(b" \t"), maxsplit=1)  # as Linux does
        interpreter = Path(os.fsdecode(words[0]))
        if not interpreter.is_file():
            named = f"{interpreter}, which does not exist" if words[0] else "no interpreter"
            raise LzsError(f"{path} is a script whose first line names {named}: mend that line")
        path = interpreter.absolute()
    raise LzsError(f"{path} is a script that a script interprets, and so on: Linux executes no such program")


def _has_capabilities(path: Path) -> bool:
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:  # it has none, or its file system cannot store any
        return False


@contextmanager
def open_elf(path: Path) -> Iterator[Any]:
    """Open a program or library as an ELFFile of pyelftools. LzsError if the file is something else, or damaged."""
    from elftools.common.exceptions import ELFError
    from elftools.construct import ConstructError
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        try:
            yield ELFFile(file)
        except (ELFError, ConstructError, *_OF_DAMAGE) as error:
            raise LzsError(
                f"{path} is neither a program that Linux can load nor a script that begins with #!: give another"
            ) from error


def _loader(path: Path, said: str) -> Path:
    """Return the dynamic loader that an ELF program names, after all checks of the program."""
    with open_elf(preload_library()) as elf:
        ours = _machine(elf)
    with open_elf(path) as elf:
        theirs = _machine(elf)
        names = [segment.get_interp_name() for segment in elf.iter_segments("PT_INTERP")]
    if theirs != ours:
        raise LzsError(f"{said} is for {theirs}, and this lzsampler for {ours}: use a program for this machine")
    if not names:
        raise LzsError(
            f"{said} is linked statically, so no library can be preloaded: use a build with shared libraries "
            "(cmake -DBUILD_SHARED_LIBS=ON)"
        )
    loader = Path(names[0])
    if not loader.name.startswith(_LOADERS):
        raise LzsError(f"{said} is loaded by {loader}, and the library needs glibc: use a build for glibc")
    if not loader.is_file():
        raise LzsError(f"{said} is loaded by {loader}, which does not exist: use a build for this system")
    return loader


def _machine(elf: Any) -> str:
    return f"{elf.get_machine_arch()}, {elf.elfclass} bits{'' if elf.little_endian else ', big-endian'}"
