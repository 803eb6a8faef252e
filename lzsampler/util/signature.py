"""The signatures that `inspect`, notebooks and editors show for functions that take `Params` fields as keywords."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ..params import PRESETS, Params


def keyword(name: str, annotation: Any, default: Any = ...) -> inspect.Parameter:
    """Return a keyword-only parameter; a default of ``...`` means "set elsewhere"."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def settings(names: Iterable[str], *, given: bool) -> list[inspect.Parameter]:
    """Return the parameters for some fields of `Params`.

    ``given``: show the defaults of `Params` with the default penalty; otherwise show ``...``.
    """
    fields = inspect.signature(Params).parameters
    defaults = {name: PRESETS["default"].get(name, fields[name].default) for name in names}
    return [keyword(name, fields[name].annotation, defaults[name] if given else ...) for name in names]


def with_keywords(function: Callable[..., Any], more: Iterable[inspect.Parameter]) -> inspect.Signature:
    """Return a function's signature with ``more`` in place of ``**keywords``; its own parameters take precedence."""
    signature = inspect.signature(function)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind != inspect.Parameter.VAR_KEYWORD]
    added = [parameter for parameter in more if parameter.name not in signature.parameters]
    return signature.replace(parameters=[*own, *added])
