"""Commands whose help lists options in titled groups, and the types of the options' values."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from lzsampler._values import shown
from lzsampler.errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])

GENERAL = "General"  # the title of the options that every command has
_ONLY_COMMON = "lzsampler.cli.only_common"  # key in the meta of a context, set for the short help of -h
_NO_BREAK = "\xa0"  # a space where help is not wrapped; it is printed as a plain space
_LIKE = 0.7  # smallest similarity, 0..1, of the options suggested for an unknown option
_FIELD = re.compile(r"(\w+)(?= (?:must|takes)\b)")


def _likeness(a: str, b: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, a, b).ratio()


class GroupedOption(click.Option):
    """An option that the help lists under the title ``group``."""

    def __init__(self, *names: Any, group: str, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.group = group


class GroupedCommand(click.Command):
    """A command that lists its options under titles. In errors of the library, the command replaces parameters by
    options.

    If ``common`` is given, -h lists only the options with these names. --help always lists all options.
    """

    def __init__(self, *given: Any, common: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(*given, **settings)
        self.common = common
        if common:
            self.params.append(
                GroupedOption(
                    ["-h"], group=GENERAL, is_flag=True, is_eager=True, expose_value=False, callback=_show_common,
                    help="show the common options",
                )
            )  # fmt: skip

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each group in the order of their definition."""
        for title, rows in self.option_groups(ctx).items():
            with formatter.section(title):
                formatter.write_dl(rows)
        if ctx.meta.get(_ONLY_COMMON):
            formatter.write_paragraph()
            formatter.write_text(f"{ctx.command_path} --help lists all options.")

    def option_groups(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return the rows (names, help) of the options by title; --help belongs to the last title."""
        groups: dict[str, list[tuple[str, str]]] = {}
        title = "Options"
        for parameter in self.get_params(ctx):
            if ctx.meta.get(_ONLY_COMMON) and not set(self.common).intersection(parameter.opts):
                continue
            row = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if row is not None:
                title = getattr(parameter, "group", title)
                groups.setdefault(title, []).append(row)
        return groups

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return --help, described in the style of the other options."""
        found = super().get_help_option(ctx)
        if found is not None:
            found.help = "show all options" if self.common else "show this help"
        return found

    def get_help(self, ctx: click.Context) -> str:
        """Return the help with no-break spaces replaced by plain ones."""
        return super().get_help(ctx).replace(_NO_BREAK, " ")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; the error for an unknown option suggests options with similar names."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            given = error.option_name.lstrip("-")  # dashes do not count for similarity
            near = [name for name in error.possibilities or () if _likeness(given, name.lstrip("-")) > _LIKE]
            raise click.NoSuchOption(error.option_name, error.message, near, ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. An ArgumentError about one of its parameters becomes a usage error that names the flag."""
        try:
            return super().invoke(ctx)
        except ArgumentError as error:
            message = with_flags(str(error), self)
            if message is None:
                raise
            raise click.UsageError(message, ctx) from error


def _show_common(ctx: click.Context, _: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        ctx.meta[_ONLY_COMMON] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def with_flags(message: str, command: click.Command) -> str | None:
    """Replace parameters by flags in an error message of the library.

    Return None if the message does not begin with a parameter. After the first word, only words with an underscore
    count as parameters, because "history" or "seed" may be ordinary words.
    """
    flags = {p.name: flag_of(p) for p in command.params if isinstance(p, click.Option)}
    first = _FIELD.match(message)
    if first is None or first[0] not in flags:
        return None
    rest = re.sub(r"[a-z]+(?:_[a-z]+)+", lambda word: flags.get(word[0], word[0]), message[first.end() :])
    return flags[first[0]] + rest


def flag_of(param: click.Parameter) -> str:
    """Return the name of an option for error messages: its first long name, or else its first name."""
    return next((name for name in param.opts if name.startswith("--")), param.opts[0])


def refuse_given(names: tuple[str, ...], why: str) -> None:
    """Raise a usage error if the command line gives a parameter in ``names``. ``why``: why it has no effect."""
    context = click.get_current_context()
    for param in context.command.params:
        given = context.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE
        if param.name in names and given:
            raise click.UsageError(f"{flag_of(param)} has no effect {why}")


class _Checked(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic in new versions of click only
    """The type of a number that is at least ``low``. Its errors name the flag."""

    def __init__(self, low: int | None = None) -> None:
        self.low = low

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or raise a usage error if the value is no number or is too small."""
        flag = "the number" if param is None else flag_of(param)
        try:
            number = self.number(value)
        except ValueError:
            raise click.UsageError(f"{flag} must be {self.name}, got {shown(value)}", ctx) from None
        if self.low is not None and number < self.low:
            raise click.UsageError(f"{flag} must be at least {self.low}, got {shown(number)}", ctx)
        return number

    def number(self, value: Any) -> int | float:
        """Return a value as a number, or raise ValueError."""
        raise NotImplementedError


class Whole(_Checked):
    """A whole number, optionally of at least ``low``."""

    name = "a whole number"

    def number(self, value: Any) -> int:
        """Return the number in a text."""
        return int(value)


class AutoWhole(Whole):
    """A whole number of at least ``low``, or the word auto."""

    name = "auto or a whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number or the word."""
        return value if value == "auto" else super().convert(value, param, ctx)


class Number(_Checked):
    """Any number; the library checks its range."""

    name = "a number"

    def number(self, value: Any) -> float:
        """Return the number in a text."""
        return float(value)


class ModelFile(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic in new versions of click only
    """The type of a GGUF file or model name (`lzsampler.models`). A name becomes the path of the model's file."""

    name = "model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path. If a named model is missing, the LzsError says how to install it."""
        from lzsampler.models import find_model

        return find_model(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names of models and files that begin with ``incomplete``."""
        from lzsampler.models import NAMED_MODELS

        names = [CompletionItem(name) for name in NAMED_MODELS if incomplete and name.startswith(incomplete)]
        if not names:
            return [CompletionItem(incomplete, type="file")]  # The shell completes file names itself.
        # If this function returns names, bash adds no file names.
        return names + [CompletionItem(path.name) for path in sorted(Path().glob(f"{incomplete}*"))]


def option(group: str, *names: str, **settings: Any) -> Callable[[F], F]:
    """Return a decorator that adds an option under the title ``group``; its help ends with its default."""
    settings["help"] = settings["help"].replace("(default: ", f"(default:{_NO_BREAK}")
    default = settings.get("default")
    if not isinstance(default, bool | type(None)):
        shown = f"{default:g}" if isinstance(default, float) else f"{default}".replace(" ", _NO_BREAK)
        settings["help"] += f" (default:{_NO_BREAK}{shown})"
    return click.option(*names, cls=GroupedOption, group=group, **settings)


def options(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator that adds several options, listed in the order given."""

    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply
