"""The command `lzs`: its subcommands, and the one place where an exception becomes a line and an exit status."""

import io
import os
import sys
from collections.abc import Callable

import click

from lzsampler import LzsError, __version__

from .audit import audit
from .bench import bench
from .demo import demo
from .eval import evaluate_command
from .generate import generate
from .info import info

_DONE, _FAILURE, _USAGE, _INTERRUPTED = 0, 1, 2, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="lzs")
def lzs() -> None:
    """Run local GGUF models without loops: a sampler with the LZ penalty (arXiv 2504.20131)."""


for command in (generate, audit, evaluate_command, info, bench, demo):
    lzs.add_command(command)


def main() -> None:
    """Run `lzs` with the arguments of the process and exit: 0 done, 1 failure, 2 usage, 130 Ctrl-C."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # closed by whoever started us: nothing is read, and nobody reads
            setattr(sys, name, open(os.devnull, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):  # a model writes any character, whatever the locale; a program reads UTF-8
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
    sys.exit(status_of(lambda: _run(sys.argv[1:])))


def _run(arguments: list[str]) -> None:
    # Not lzs.main(): click's own handling of a closed pipe and of Ctrl-C would come before that of status_of.
    with lzs.make_context("lzs", arguments) as context:
        lzs.invoke(context)
    sys.stdout.flush()


def status_of(run: Callable[[], None]) -> int:
    """Run a command; print one line to stderr if it fails, and return the exit status of the process."""
    try:
        run()
    except click.exceptions.Exit as done:
        return done.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _INTERRUPTED
    except BrokenPipeError:  # the reader has what it wanted
        _discard_output()
        return _DONE
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except ValueError as error:
        return _complain(str(error), _USAGE)
    except OSError as error:
        if error.filename is None:
            _discard_output()
        return _complain(f"{error.filename or 'stdout'}: {error.strerror or error}", _FAILURE)
    except (LzsError, MemoryError) as error:
        return _complain(str(error) or "out of memory", _FAILURE)
    return _DONE


def _discard_output() -> None:
    """Keep Python, which flushes stdout once more at exit, from complaining about what cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, status: int) -> int:
    click.echo(f"lzs: {' '.join(message.split())}", err=True)
    return status
