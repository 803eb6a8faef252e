"""`linkage`: whether preloaded penalties would reach a program's samplers, by what its dynamic loader would load."""

import mmap
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LzsError
from .preloading import preload_library
from .program import Program, open_elf

INIT_DRY = "llama_sampler_init_dry"  # the function that every default chain of llama.cpp calls
_VERSION = "llama_version"
_LIBLLAMA = "libllama.so"
_OBJECT = re.compile(r"\t(?:(?P<name>.+?) => )?(?P<path>/.+) \(0x[0-9a-f]+\)")
_MISSING = re.compile(r"\t(.+?) => not found")
_NOISE = ("LD_VERBOSE", "LD_DEBUG", "LD_DEBUG_OUTPUT", "LD_WARN", "LD_BIND_NOW")  # what the trace must not obey
_TIMEOUT = 60.0  # seconds
_DF_SYMBOLIC = 2


@dataclass(frozen=True)
class Linkage:
    """What the loader says about a program, and ``problem``: why penalties cannot reach its samplers, or None.

    ``libllama``: the file with llama.cpp, links resolved. ``version``: that in the file's name. ``has_version``:
    whether it has the function `llama_version`. ``exports``: whether others can call its `llama_sampler_init_dry`.
    ``is_symbolic``: whether it was linked with -Bsymbolic. ``callers``: the program's files that call the function.
    """

    problem: str | None
    libllama: Path | None = None
    version: str | None = None
    has_version: bool = False
    exports: bool = False
    is_symbolic: bool = False
    callers: tuple[Path, ...] = ()


@dataclass(frozen=True)
class _Symbols:
    """What a file says about `llama_sampler_init_dry`."""

    exports: bool = False
    calls: bool = False
    is_inside: bool = False  # compiled into the file, which does not export it
    has_version: bool = False
    is_symbolic: bool = False


def linkage(program: Program, environment: Mapping[str, str]) -> Linkage:
    """Ask the loader what it would load in an environment, and read these files. The program itself does not run."""
    objects, missing, said = _trace(program, environment)
    library = preload_library().resolve()
    files = [path for path in dict.fromkeys([program.binary, *objects.values()]) if path.resolve() != library]
    symbols = {path: found for path in files if (found := _symbols(path)) is not None}
    named = (path for name, path in objects.items() if name.startswith(_LIBLLAMA))
    exporters = (path for path, found in symbols.items() if found.exports)
    libllama = next(named, None) or next(exporters, None)
    of_llama = symbols.get(libllama, _Symbols()) if libllama else _Symbols()
    callers = tuple(path for path, found in symbols.items() if found.calls)
    if missing:
        problem: str | None = f"{', '.join(missing)} cannot be found: set LD_LIBRARY_PATH to its folder"
    elif all(path.resolve() != library for path in objects.values()):
        problem = f"the loader does not preload the library: {said}"
    else:
        problem = _problem(program, symbols, libllama, of_llama, callers)
    real = libllama.resolve() if libllama else None
    numbers = re.search(r"\.so\.(\d[\w.]*)$", real.name) if real else None
    return Linkage(
        problem,
        real,
        numbers[1] if numbers else None,
        of_llama.has_version,
        of_llama.exports,
        of_llama.is_symbolic,
        callers,
    )


def _problem(
    program: Program,
    symbols: Mapping[Path, _Symbols],
    libllama: Path | None,
    of_llama: _Symbols,
    callers: tuple[Path, ...],
) -> str | None:
    own = symbols.get(program.binary, _Symbols())
    if own.is_inside or libllama == program.binary:
        return "it has llama.cpp inside (linked statically): use a build with shared libraries"
    if libllama is None:
        return "it is not linked with libllama; programs that it starts may be: try those"
    if not of_llama.exports:
        return f"this libllama has no {INIT_DRY} that other files can call: use another build of llama.cpp"
    if not callers:
        return f"nothing in it calls {INIT_DRY}, so its samplers have no place for penalties"
    return None


def _trace(program: Program, environment: Mapping[str, str]) -> tuple[dict[str, Path], list[str], str]:
    """Return the files that the loader would load, by name, the names that it lacks, and what it says on stderr."""
    quiet = {name: value for name, value in environment.items() if name not in _NOISE}
    try:
        done = subprocess.run(
            [program.binary],
            env={**quiet, "LD_TRACE_LOADED_OBJECTS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise LzsError(f"{program.loader} did not say within {_TIMEOUT:.0f} s what {program.binary} loads") from None
    lines = done.stdout.splitlines()
    found = [match for line in lines if (match := _OBJECT.fullmatch(line))]
    objects = {match["name"] or Path(match["path"]).name: Path(match["path"]) for match in found}
    missing = list(dict.fromkeys(match[1] for line in lines if (match := _MISSING.fullmatch(line))))
    if not objects:
        raise LzsError(f"{program.loader} does not say what {program.binary} loads: {done.stderr.strip() or 'nothing'}")
    return objects, missing, done.stderr.strip() or "it says no reason"


def _symbols(path: Path) -> _Symbols | None:
    """Return what a file says about the function; None, quickly, if it does not even have the function's name."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data.find(INIT_DRY.encode()) < 0:
            return None
    with open_elf(path) as elf:
        shown = _named(elf, ".dynsym", INIT_DRY)
        defined = [symbol for symbol in shown if symbol["st_shndx"] != "SHN_UNDEF"]
        return _Symbols(
            exports=any(symbol["st_other"]["visibility"] == "STV_DEFAULT" for symbol in defined),
            calls=len(defined) < len(shown),
            is_inside=not shown and bool(_named(elf, ".symtab", INIT_DRY)),
            has_version=bool(_named(elf, ".dynsym", _VERSION)),
            is_symbolic=_is_symbolic(elf),
        )


def _named(elf: Any, section: str, name: str) -> list[Any]:
    table = elf.get_section_by_name(section)
    return (table.get_symbol_by_name(name) or []) if table is not None else []


def _is_symbolic(elf: Any) -> bool:
    for segment in elf.iter_segments("PT_DYNAMIC"):
        for tag in segment.iter_tags():
            if tag.entry.d_tag == "DT_SYMBOLIC" or (tag.entry.d_tag == "DT_FLAGS" and tag.entry.d_val & _DF_SYMBOLIC):
                return True
    return False
