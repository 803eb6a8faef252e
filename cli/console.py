"""The terminal output of all commands, and the options -q, -v and --color."""

import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from lzsampler.util.harmless import harmless

from .help import option, options

if TYPE_CHECKING:
    from rich.console import RenderableType

_WHOLE = 10_000  # columns if there is no terminal; no line reaches this width

F = TypeVar("F", bound=Callable[..., Any])


class Console:
    """How much lzs prints, and whether in colour. There is one instance, `console`, which a command's options set."""

    def __init__(self) -> None:
        self.quiet = False
        self.verbose = False
        self.color = "auto"

    def error(self, text: str) -> None:
        """Print an error, or the reason for the exit status, to stderr. Control characters in ``text`` cannot affect
        the terminal.
        """
        click.echo(f"lzs: {harmless(text)}", err=True)

    def note(self, text: str) -> None:
        """Print a line to stderr, unless -q was given."""
        if not self.quiet:
            self.error(text)

    def detail(self, text: str) -> None:
        """Print a line to stderr, only with -v."""
        if self.verbose:
            self.error(text)

    def colored(self, stream: TextIO) -> bool:
        """Return whether to write colours to a stream.

        --color decides first. NO_COLOR (no-color.org) and FORCE_COLOR (force-color.org) decide next, if they are set
        and not empty. Else colours are written if the stream is a terminal that can show them.
        """
        if self.color != "auto":
            return self.color == "always"
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR"):
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"

    def print(self, text: str) -> None:
        """Print to stdout, with the escape sequences of ``text`` only if stdout takes colours."""
        click.echo(text, color=self.colored(sys.stdout))

    def draw(self, *parts: "RenderableType") -> None:
        """Print rich tables and lines to stdout, in sequence."""
        from lzsampler.reports.terminal import drawn

        self.print(drawn(parts, self.columns, color=self.colored(sys.stdout)))

    @property
    def columns(self) -> int:
        """The width of a line: COLUMNS, or the width of the terminal; without a terminal there is no limit."""
        from shutil import get_terminal_size  # imported here because few commands need it

        return get_terminal_size((_WHOLE, 0)).columns

    def json(self, value: object) -> None:
        """Print a value as one line of JSON to stdout. Characters that could control a terminal are escaped."""
        click.echo(harmless(json.dumps(value, ensure_ascii=False)))

    @property
    def shows_progress(self) -> bool:
        """Whether stderr is a terminal and -q was not given."""
        return not self.quiet and sys.stderr.isatty()


console = Console()

_GROUP = "General"


def _quiet(_: click.Context, __: click.Parameter, given: bool) -> None:
    console.quiet = given


def _verbose(_: click.Context, __: click.Parameter, given: bool) -> None:
    console.verbose = given
    if given and console.quiet:
        raise click.UsageError("-q and -v contradict each other; give one of them")


def _color(_: click.Context, __: click.Parameter, given: str) -> None:
    console.color = given


def general_options(
    quiet: str, verbose: str = "also print settings, times and the traceback of an error"
) -> Callable[[F], F]:
    """Return a decorator that adds -q, -v and --color, which set `console`; ``quiet``: what -q leaves out."""
    return options(
        option(_GROUP, "-q", "--quiet", is_flag=True, expose_value=False, callback=_quiet, help=quiet),
        option(_GROUP, "-v", "--verbose", is_flag=True, expose_value=False, callback=_verbose, help=verbose),
        option(
            _GROUP,
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            expose_value=False,
            callback=_color,
            metavar="WHEN",
            help="use colours: auto, always or never; auto respects NO_COLOR and FORCE_COLOR",
        ),
    )
