"""Checks whether values from a JSON file have the expected types, because a foreign file may contain anything."""

import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_LARGEST = 2**63 - 1  # largest magnitude of a number, which no count or length exceeds
_T = TypeVar("_T")


def checked(made: _T) -> _T:
    """Return ``made``, a dataclass or named tuple, if its fields have the declared types; else raise TypeError."""
    cls: Any = type(made)
    for name, hint in _hints(cls).items():
        if not is_of(getattr(made, name), hint):
            raise TypeError(f"{name} is not {hint}")
    return made


def of(value: Any, hint: Any) -> Any:
    """Return a value if it has the type ``hint``, such as ``dict[str, int]``; else raise TypeError."""
    if not is_of(value, hint):
        raise TypeError(f"a value is not {hint}")
    return value


def is_of(value: object, hint: Any) -> bool:
    """Return whether a value and its elements have a type. An int passes as a float. NaN and numbers over 64 bits fail.

    The fields of a dataclass are not checked; `checked` does this.
    """
    origin, parts = get_origin(hint), get_args(hint)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
    if hint is int:
        return type(value) is int and abs(value) <= _LARGEST
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin in (Union, types.UnionType):
        return any(is_of(value, each) for each in parts)
    if origin is tuple and parts[-1] is not ...:
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(is_of, value, parts))
    if origin in (list, tuple, Sequence):
        return isinstance(value, list | tuple) and all(is_of(each, parts[0]) for each in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(
            is_of(key, parts[0]) and is_of(each, parts[1]) for key, each in value.items()
        )
    return isinstance(value, type(None) if hint is None else hint)


@cache
def _hints(cls: Any) -> dict[str, Any]:
    """Return the types of the fields of a dataclass or named tuple."""
    made_of = {field.name for field in fields(cls)} if is_dataclass(cls) else set(getattr(cls, "_fields", ()))
    return {name: hint for name, hint in get_type_hints(cls).items() if name in made_of}
