"""Signatures that `inspect`, notebooks and editors show for functions that take the fields of `Params` as keywords."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ..params import PRESETS, Params


def keyword(name: str, annotation: Any, default: Any = ...) -> inspect.Parameter:
    """Return a keyword-only parameter; a default of ``...`` means "as it is set elsewhere"."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def settings(names: Iterable[str], *, given: bool) -> list[inspect.Parameter]:
    """Return parameters for fields of `Params`.

    ``given``: with the defaults of `Params` and those of the LZ penalty; else with ``...``.
    """
    fields = inspect.signature(Params).parameters
    defaults = {name: PRESETS["default"].get(name, fields[name].default) for name in names}
    return [keyword(name, fields[name].annotation, defaults[name] if given else ...) for name in names]


def with_keywords(function: Callable[..., Any], more: Iterable[inspect.Parameter]) -> inspect.Signature:
    """Return a function's signature with keywords in the place of its ``**keywords``; its own of a name come first."""
    signature = inspect.signature(function)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind != inspect.Parameter.VAR_KEYWORD]
    added = [parameter for parameter in more if parameter.name not in signature.parameters]
    return signature.replace(parameters=[*own, *added])
