"""Commands whose `--help` lists options in named groups, the way a reader looks for them."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class GroupedOption(click.Option):
    """An option that knows the title it is listed under."""

    def __init__(self, *names: Any, group: str, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.group = group


class GroupedCommand(click.Command):
    """A command that lists its grouped options under their titles, the others last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each group in the order of their definition."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if row is not None:
                groups.setdefault(getattr(parameter, "group", "Other"), []).append(row)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def option(group: str, *names: str, **settings: Any) -> Callable[[F], F]:
    """Return a decorator that adds an option under the title ``group``; its default is shown."""
    settings.setdefault("show_default", not isinstance(settings.get("default"), bool | type(None)))
    return click.option(*names, cls=GroupedOption, group=group, **settings)


def options(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Return one decorator that adds several options, listed in the order given."""

    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply
