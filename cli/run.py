"""`lzs run`: starts a program of llama.cpp with lzsampler's penalties in its samplers."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from .console import console, general_options
from .fields import opt, takes
from .help import GroupedCommand
from .preload_options import PreloadOptions

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lzsampler.serving.linkage import Linkage
    from lzsampler.serving.program import Program

_LONGEST = 2000  # most characters of a value that are shown

_EPILOG = """\b
Examples:
  lzs run -- llama-server -m model.gguf
  lzs run --preset guard -- llama-server -m model.gguf --port 9000
  lzs run --dry-run -- llama-server
\b
Exit status: that of PROGRAM. 2 if lzs starts nothing, for the reason that it
gives. With --dry-run 0 if the penalties would work, 1 if they would not.
-v prints LD_PRELOAD and LZSAMPLER, with which PROGRAM needs no lzs."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of `lzs run`."""

    penalties: PreloadOptions
    dry_run: bool = opt(
        "Output", "--dry-run", help="do not start PROGRAM, and print whether the penalties would work in it, and why"
    )


@click.command(cls=GroupedCommand, epilog=_EPILOG, context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="PROGRAM [ARGS]...", nargs=-1, type=click.Path())
@takes(RunOptions)
@general_options(quiet="with --dry-run print only the last line", verbose="also print the variables that are set")
def run(options: RunOptions, command: tuple[str, ...]) -> None:
    """Start PROGRAM with the LZ penalty in its samplers, such as llama-server, which stays as it is.

    PROGRAM must be linked dynamically with libllama, on Linux with glibc; so may be a program that PROGRAM starts. lzs
    sets LD_PRELOAD and LZSAMPLER, and becomes PROGRAM.
    """
    if not command:
        raise click.UsageError("lzs run takes a program: lzs run -- llama-server -m model.gguf")
    from lzsampler.serving.preloading import preloaded
    from lzsampler.serving.program import find_program

    settings = options.penalties.settings()
    environment = preloaded(settings, os.environ)
    program = find_program(command[0])
    for name in ("LD_PRELOAD", "LZSAMPLER"):
        console.detail(f"{name}={environment[name]}")
    if not options.dry_run:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and PROGRAM would inherit that
            signal.signal(number, signal.SIG_DFL)
        os.execve(program.path, command, environment)
    from lzsampler.serving.linkage import linkage

    found = linkage(program, environment)
    console.draw(*_parts(program, found, environment))
    if found.problem:
        raise click.exceptions.Exit(1)


def _parts(program: "Program", found: "Linkage", environment: dict[str, str]) -> "Iterator[RenderableType]":
    from rich.table import Table
    from rich.text import Text

    from lzsampler.reports.text import visible
    from lzsampler.serving.linkage import INIT_DRY

    rows = {
        "program": str(program.path),
        "interpreter of the script": str(program.binary) if program.is_script else None,
        "dynamic loader": str(program.loader),
        "LD_PRELOAD": environment["LD_PRELOAD"],
        "LZSAMPLER": environment["LZSAMPLER"],
        "libllama": "none" if found.libllama is None else str(found.libllama),
    }
    if found.libllama is not None:
        rows |= {
            "version": f"{found.version or 'unknown'}, {'with' if found.has_version else 'without'} llama_version",
            INIT_DRY: "can be replaced" if found.exports else "cannot be replaced: it is missing or hidden",
            "-Bsymbolic": "yes" if found.is_symbolic else "no",
            "called by": ", ".join(path.name for path in found.callers) or "nothing",
        }
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    for title, value in rows.items():
        if value is not None:
            grid.add_row(title, visible(value, _LONGEST))
    if not console.quiet:
        yield grid
    works = f"works: its calls of {INIT_DRY} come to lzsampler"
    said = f"cannot work: {visible(found.problem, _LONGEST)}" if found.problem else works
    yield Text(said, "bold red" if found.problem else "bold green")
