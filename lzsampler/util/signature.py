"""Makes signatures, which `inspect` and editors show, for functions that take fields of `Params` as keywords."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from ..params import PRESETS, Params


def keyword(name: str, annotation: Any, default: Any = ...) -> inspect.Parameter:
    """Return a keyword-only parameter. A default of ``...`` means that the default is set elsewhere."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def settings(names: Iterable[str], *, given: bool) -> list[inspect.Parameter]:
    """Return the parameters for some fields of `Params`.

    ``given``: whether to show each default, from ``PRESETS["default"]`` or else `Params`. Otherwise ``...`` is shown.
    """
    fields = inspect.signature(Params).parameters
    defaults = {name: PRESETS["default"].get(name, fields[name].default) for name in names}
    return [keyword(name, fields[name].annotation, defaults[name] if given else ...) for name in names]


def with_keywords(function: Callable[..., Any], more: Iterable[inspect.Parameter]) -> inspect.Signature:
    """Return a function's signature with ``more`` in place of ``**keywords``. Its own parameters are not replaced."""
    signature = inspect.signature(function)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind != inspect.Parameter.VAR_KEYWORD]
    added = [parameter for parameter in more if parameter.name not in signature.parameters]
    return signature.replace(parameters=[*own, *added])
