"""Options as fields of dataclasses: `opt` declares a field with its option, `takes` gives a command its dataclass.

    @dataclass(frozen=True, kw_only=True)
    class TextOptions:
        max_tokens: int = opt("Texts", "-n", "--n-predict", low=1, default=512, help="most new tokens")

    @click.command(cls=GroupedCommand)
    @takes(TextOptions)
    def write(options: TextOptions) -> None: ...

A field whose type is such a dataclass stands for all options of that dataclass. The help lists options in the order of
the fields.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import click

from .help import Number, Whole, option

Options = TypeVar("Options")
Given = ParamSpec("Given")
Result = TypeVar("Result")

_OPTION = "option"  # the key of `Declared` in the metadata of a field


@dataclass(frozen=True)
class Declared:
    """The arguments of a call of `opt`."""

    group: str
    names: tuple[str, ...]
    low: int | None
    settings: dict[str, Any]


def opt(group: str, *names: str, help: str, low: int | None = None, **settings: Any) -> Any:
    """Return a dataclass field for the value of an option. The help lists the option under the title ``group``.

    The type of the field determines the option: bool makes a flag, int takes a whole number (at least ``low``), Literal
    takes one of its values, and tuple makes the option repeatable. ``settings``: further arguments of `click.option`.
    """
    return field(metadata={_OPTION: Declared(group, names, low, {"help": help, **settings})})


def same_as(kind: Any, name: str) -> Any:
    """Return a field with the option of a field of another dataclass."""
    return field(metadata=next(row.metadata for row in fields(kind) if row.name == name))


def takes(
    kind: type[Options],
) -> Callable[[Callable[Concatenate[Options, Given], Result]], Callable[Given, Result]]:
    """Return a decorator that adds the options of the dataclass ``kind`` to a command.

    The command gets an instance of ``kind`` as its first argument.
    """

    def decorate(function: Callable[Concatenate[Options, Given], Result]) -> Callable[Given, Result]:
        @wraps(function)
        def call(*arguments: Given.args, **given: Given.kwargs) -> Result:
            return function(_made(kind, given), *arguments, **given)

        decorated: Callable[Given, Result] = call
        for name, hint, declared in reversed([*declared_options(kind)]):
            settings = {**_settings(hint, declared), **declared.settings}
            decorated = option(declared.group, *declared.names, name, **settings)(decorated)
        return decorated

    return decorate


def declared_options(kind: Any) -> Iterator[tuple[str, Any, Declared]]:
    """Yield name, type and declaration of each field that is an option, including the fields of nested dataclasses."""
    hints = get_type_hints(kind)
    for row in fields(kind):
        if is_dataclass(hints[row.name]):
            yield from declared_options(hints[row.name])
        else:
            yield row.name, hints[row.name], row.metadata[_OPTION]


def _made(kind: type[Options], given: dict[str, Any]) -> Options:
    """Return an instance of the dataclass ``kind``. The values of its options are removed from ``given``."""
    hints = get_type_hints(kind)
    values = {
        row.name: _made(hints[row.name], given) if is_dataclass(hints[row.name]) else given.pop(row.name)
        for row in fields(kind)  # type: ignore[arg-type]  # any dataclass
    }
    return kind(**values)


def _settings(hint: Any, declared: Declared) -> dict[str, Any]:
    """Return the settings of `click.option` for the type of a field."""
    if get_origin(hint) in (Union, UnionType):
        others = [part for part in get_args(hint) if part is not type(None)]  # None: the option was not given
        if len(others) > 1:  # For a union such as int | str, the call of `opt` gives the type.
            return {}
        (hint,) = others
    if get_origin(hint) is tuple:
        return {**_settings(get_args(hint)[0], declared), "multiple": True}
    if get_origin(hint) is Literal:
        return {"type": click.Choice(get_args(hint))}
    if hint is bool:
        return {} if any("/" in name for name in declared.names) else {"is_flag": True}
    if hint is int:
        return {"type": Whole(declared.low), "metavar": "N"}
    if hint is float:
        return {"type": Number()}
    return {"type": click.Path(path_type=Path)} if hint is Path else {}
