"""The command `lzs`: loads its subcommands, and turns exceptions into error messages and exit statuses."""

import errno
import io
import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, TextIO

import click

from lzsampler import LzsError, __version__
from lzsampler.errors import ArgumentError
from lzsampler.util.harmless import harmless
from lzsampler.util.signals import end_by_signals, ended_by, uninterrupted

_DONE, _TROUBLE = 0, 2  # Status 1 means that a command found something, such as an exceeded limit.
_SIGNALLED = 128  # The exit status after a signal is this plus the signal's number.
_CAN_WAIT = os.name != "nt"  # whether `select` can wait until a file takes more bytes
_AT_ONCE = select.PIPE_BUF if _CAN_WAIT else 512  # number of bytes that a pipe with room takes without waiting
_STDOUT = "stdout"  # the file name in errors of writing standard output
_COMPLETE = "_LZS_COMPLETE"  # the environment variable by which a shell asks for completions

# Name -> (module, function, one line of help). A command's module is loaded only when the command is used.
COMMANDS = {
    "generate": ("generate", "generate", "Continue a prompt, or chat, without repetition loops."),
    "audit": ("audit", "audit", "Find loops in saved model output: how many, where, how bad."),
    "diff": ("diff", "diff", "Compare two audits: does B loop more than A on the same prompts?"),
    "eval": ("eval", "evaluate_command", "Measure a model's loop rate and accuracy over many settings."),
    "run": ("run", "run", "Start a program of llama.cpp, such as llama-server, with the LZ penalty in it."),
    "serve": ("serve", "serve", "Start an OpenAI-compatible server with the LZ penalty."),
    "probe": ("probe", "probe_command", "Check how a server applies penalties, defaults and seeds."),
    "cost": ("cost", "cost", "Measure what penalties cost on reference texts."),
    "spec-check": ("spec_check", "spec_check_command", "Check that a draft does not change a model's texts."),
    "quantize": ("quantize", "quantize_command", "Write a model with fewer bits per weight, such as MXFP4."),
    "grammar": ("grammar", "grammar", "Check what a grammar allows, or show its automaton."),
    "info": ("info", "info", "Show what a GGUF file says about itself."),
    "bench": ("bench", "bench", "Measure the time that sampling and the LZ penalty take."),
    "demo": ("demo", "demo", "Show three texts without and with the LZ penalty, side by side."),
    "completion": ("complete", "completion", "Print a script that completes lzs commands in your shell."),
    "help": ("complete", "help_command", "Show the help of a command."),
}


class Commands(click.Group):
    """The group `lzs`, which loads the module of a command only when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None if the name is unknown."""
        if cmd_name not in COMMANDS:
            return None
        module, name, _ = COMMANDS[cmd_name]
        command = getattr(import_module(f".{module}", __package__), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return name, command and its arguments; the error for an unknown command suggests a similar one."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" The commands are {', '.join(COMMANDS)}."
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with its line of help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


_EPILOG = """\b
Start with:
  lzs demo
  lzs generate -m model.gguf --chat "Why is the sky blue?"
  lzs audit transcripts.jsonl -o report.html
\b
Exit status: 0 success; 1 something was found (a limit of --fail-over is
exceeded, B loops more than A, a server does not start or does not do as
asked, a program cannot have penalties, a draft changes texts, or a text does
not match); 2 an error; 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP. lzs run and
lzs serve end with the status of their program."""


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=_EPILOG,
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="lzs")
@click.pass_context
def lzs(ctx: click.Context) -> None:
    """Run local GGUF models without repetition loops, and find loops in what models wrote.

    The LZ penalty comes from arXiv 2504.20131.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(_TROUBLE)


class _Stream(io.BufferedIOBase):
    """A standard stream. `write` buffers bytes, and `flush` writes them. Ctrl-C ends a flush that waits for a reader.

    Ctrl-C loses no byte and writes none twice, because the next `flush` begins with the remaining bytes.
    """

    def __init__(self, number: int, name: str) -> None:
        self.name = name
        self.waits = True  # whether `flush` waits for a reader; if not, it keeps the bytes for which there is no room
        self._number = number
        self._left = bytearray()

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._number

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return os.isatty(self._number)

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Buffer bytes."""
        self._left += data
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Write the buffered bytes. An OSError names the stream as its file, so that `status_of` recognizes it."""
        try:
            while self._left:
                # `select` waits until the stream has room. Ctrl-C can end this wait, while it could not end `os.write`.
                ready = _CAN_WAIT and select.select([], [self._number], [], None if self.waits else 0)[1]
                if not (ready or self.waits):
                    return
                with uninterrupted(), suppress(BlockingIOError):  # Another process may have filled the pipe.
                    del self._left[: os.write(self._number, self._left[:_AT_ONCE])]
        except OSError as error:
            self._left.clear()
            error.filename = self.name
            raise


class _Stderr(_Stream):
    """Standard error. It drops what it cannot write: messages must not change a command's work or exit status."""

    def flush(self) -> None:
        """Write the buffered bytes if possible."""
        with suppress(OSError):  # The disk may be full, or the reader gone.
            super().flush()


def main() -> None:
    """Run `lzs` with the arguments of the process and exit: 0 done, 1 found, 2 trouble, 130 Ctrl-C, 143 SIGTERM."""
    end_by_signals()
    if sys.stdin is None:  # The parent process may have closed any standard stream.
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    sys.stdout = _stream(sys.stdout, _Stream, _STDOUT)
    sys.stderr = _stream(sys.stderr, _Stderr, "stderr")
    sys.exit(status_of(lambda: _run(sys.argv[1:])))


def _stream(given: TextIO | None, kind: type[_Stream], name: str) -> TextIO:
    """Return a text stream over the class ``kind``. It can write any character, even if the locale cannot.

    A closed stream is replaced by a stream that cannot be written. The new stream takes the file descriptor of the
    closed stream. Otherwise another file could get this descriptor, and with it the output of native code.
    """
    if given is None:
        number, encoding = os.open(os.devnull, os.O_RDONLY), "utf-8"
    else:
        buffer = getattr(given, "buffer", None)
        raw = getattr(buffer, "raw", buffer)  # With python -u, ``buffer`` is the raw file itself.
        if type(raw) is not io.FileIO:  # The stream is a Windows console.
            return given
        number = raw.fileno()
        encoding = given.encoding if raw.isatty() else "utf-8"  # A program that reads the output expects UTF-8.
    return io.TextIOWrapper(
        kind(number, name),
        encoding=encoding,
        errors="replace",
        line_buffering=kind is _Stderr,
    )


def _run(arguments: list[str]) -> None:
    if _COMPLETE in os.environ:
        _complete(os.environ[_COMPLETE])
        return
    # lzs.main() is not used, because click would handle a closed pipe and Ctrl-C before `status_of` can.
    with lzs.make_context("lzs", arguments) as context:
        lzs.invoke(context)
    sys.stdout.flush()


def _complete(instruction: str) -> None:
    """Print the answer to a shell: its script (bash_source), or completions of a line (bash_complete)."""
    from click.shell_completion import shell_complete

    try:
        status = shell_complete(lzs, {}, "lzs", _COMPLETE, instruction)
    except (LookupError, ValueError) as error:
        raise click.ClickException(
            "there is no command line to complete: COMP_WORDS and COMP_CWORD are set by the script that "
            "`lzs completion SHELL` prints"
        ) from error
    if status:
        raise click.ClickException(
            f"{_COMPLETE} must be bash, zsh or fish with _source or _complete after it, such as bash_source, "
            f"got {instruction!r}"
        )


def status_of(run: Callable[[], None]) -> int:
    """Run a command, print one line on stderr if it fails, and return the exit status of the process."""
    try:
        return _status_of(run)
    except (KeyboardInterrupt, click.Abort):
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream.buffer, _Stream):  # completes a flush that the signal interrupted
                stream.buffer.waits = False
                with suppress(OSError):
                    stream.flush()
            _discard(stream)
        return _SIGNALLED + (ended_by() or signal.SIGINT)


def _status_of(run: Callable[[], None]) -> int:
    try:
        run()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as error:
        hint = "" if error.ctx is None else f"Try '{error.ctx.command_path} --help' for help."
        return _complain(error, error.format_message(), _of_a_grid(error) or hint)
    except click.ClickException as error:
        return _complain(error, error.format_message())
    except OSError as error:
        if error.filename == _STDOUT:
            _discard(sys.stdout)
            if isinstance(error, BrokenPipeError):  # The reader has read enough, so this is no error.
                return _DONE
        return _complain(error, _reason(error))
    except (LzsError, ArgumentError, MemoryError) as error:
        return _complain(error, str(error) or "out of memory")
    except Exception as error:
        said = f"this is a bug in lzs {__version__}: please report it with the lines above"
        return _complain(error, said, is_ours=True)
    return _DONE


def _of_a_grid(error: click.UsageError) -> str:
    """Return a hint if a command with --grid was given a sampler option; "" for any other error."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return ""
    if "--grid" not in (name for parameter in error.ctx.command.params for name in parameter.opts):
        return ""
    from .fields import declared_options
    from .sampling import SamplingOptions

    declared = declared_options(SamplingOptions)
    field = next((name for name, _, row in declared if error.option_name in row.names), None)
    return "" if field is None else f"Set it in the file of --grid, as {field}."


def _reason(error: OSError) -> str:
    """Return what failed and why. An error that names no file is about a temporary file, whose folder may be full."""
    if error.filename == _STDOUT and error.errno == errno.EBADF:
        return "stdout is closed: send the output to a file, or to /dev/null"
    if error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    from tempfile import gettempdir

    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        folder = gettempdir()
        return f"cannot write a temporary file in {folder}: {error.strerror}; set TMPDIR to a folder with more room"
    return error.strerror or str(error)


def _discard(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that Python's flush at exit can neither fail nor wait for a reader."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(error: BaseException, message: str, hint: str = "", *, is_ours: bool = False) -> int:
    from .console import console

    if (is_ours or console.verbose) and not isinstance(error, click.ClickException):
        import traceback

        click.echo(harmless("".join(traceback.format_exception(error)), "\n"), err=True, nl=False)
    console.error(" ".join(message.split()))
    if hint:
        click.echo(hint, err=True)
    return _TROUBLE


if __name__ == "__main__":
    main()
