"""JSON values in a schema: checks, comparisons, and numbers that keep all digits of their text."""

import json
import marshal
import re
import sys
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite, isinf
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError

MAX_NESTING = 200
MAX_VALUES = 1_000_000
_EXPONENT_DIGITS = 4  # exact arithmetic with a longer exponent takes seconds or more
MAX_NUMBER = int(sys.float_info.max)
_TOO_LARGE = "a number above 1.8e308, which most readers of JSON cannot hold"


def refusal(pointer: str, reason: str) -> ArgumentError:
    """Return the error for a schema that cannot be used."""
    return ArgumentError(f"schema must be as in docs/grammar.md, but at {pointer}: {reason}")


class WrittenFloat(float):
    """A number that keeps its text from a schema, with all digits that a double would lose."""

    written: str

    def __new__(cls, written: str) -> "WrittenFloat":
        """Return the number for a text."""
        made = super().__new__(cls, written)
        made.written = written
        return made

    def __repr__(self) -> str:
        return self.written

    __str__ = __repr__


def parsed(text: str | bytes) -> Any:
    """Return the schema in a JSON text. Its floats keep the digits of the text (`WrittenFloat`).

    ValueError for text that is not JSON, and for an object that has a key twice, because JSON readers disagree about
    which value counts.
    """
    if not isinstance(text, str | bytes):
        raise ArgumentTypeError(f"schema must be a dict, true, false or JSON text, got {text!r:.50}")
    if not text.strip():
        raise ArgumentError("schema must be JSON, but its text is empty")
    twice: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs) and not twice:
            seen: set[str] = set()
            twice.append(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
        return made

    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff")
        made = json.loads(text, parse_constant=_no_number, parse_float=WrittenFloat, object_pairs_hook=unique)
    except RecursionError:
        raise ArgumentError("schema must not be nested so deep") from None
    except UnicodeDecodeError as error:
        raise ArgumentError(f"schema must be JSON in UTF-8, but byte {error.start} is not: convert it first") from error
    except ValueError as error:
        raise ArgumentError(f"schema must be JSON: {error}") from error
    if twice:
        raise ArgumentError(f"schema must have each key of an object once, but one has {twice[0]!r:.60} twice")
    return made


def _no_number(name: str) -> None:
    raise ArgumentError(f"{name} is not a number of JSON")


def same(value: Any) -> Any:
    """Return a key that is equal for equal JSON values: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__, value)
    if isinstance(value, int | float):
        return ("number", Decimal(str(value)))
    if isinstance(value, dict):
        return ("object", frozenset((name, same(inner)) for name, inner in value.items()))
    return ("array", tuple(map(same, value)))


def read_as_same(value: Any) -> Any:
    """Return a key that compares values as many JSON parsers do, which read numbers as doubles."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ("number", float(value))
    if isinstance(value, dict):
        return ("object", frozenset((name, read_as_same(inner)) for name, inner in value.items()))
    return ("array", tuple(map(read_as_same, value))) if isinstance(value, list) else same(value)


def written(value: Any) -> str:
    """Return a number, true, false or null as JSON, with no fewer digits than the schema has."""
    text = json.dumps(value)
    return str(value) if isinstance(value, WrittenFloat) and Decimal(text) != Decimal(str(value)) else text


def type_of(value: Any) -> str:
    """Return the type of a JSON value; "fraction" is a number that is not an integer."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        number = same(value)[1]
        return "integer" if number == number.to_integral_value() else "fraction"
    names = {type(None): "null", str: "string", list: "array", dict: "object"}
    return names[type(value)]


_Way = tuple["_Way", str | int] | None  # path to a value: (path to its container, name or index in the container)


def check_values(schema: Any) -> bool:
    """Return whether `$ref` occurs as a name anywhere in a schema.

    ValueError for values that are not JSON, and for a schema that is too large or nested too deep.
    """
    stack: list[tuple[Any, _Way, int]] = [(schema, None, 0)]
    count, references = 0, False
    while stack:
        value, way, depth = stack.pop()
        count += 1
        if depth > MAX_NESTING:
            raise ArgumentError(f"schema must be nested at most {MAX_NESTING} deep, and must not contain itself")
        if count > MAX_VALUES:
            raise ArgumentError(f"schema must have at most {MAX_VALUES:,} values, and must not contain itself")
        if isinstance(value, str):
            if not value.isascii():
                _check_text(value, way)
        elif isinstance(value, dict):
            for name, inner in value.items():
                if not isinstance(name, str):
                    raise refusal(_pointer(way), f"the names of an object must be strings, got {name!r:.50}")
                if not name.isascii():
                    _check_text(name, way)
                references = references or name == "$ref"
                if type(inner) is str and inner.isascii() and depth < MAX_NESTING:  # a fast path for the usual case
                    count += 1
                else:
                    stack.append((inner, (way, name), depth + 1))
        elif isinstance(value, list):
            stack += ((inner, (way, i), depth + 1) for i, inner in enumerate(value))
        elif isinstance(value, float):
            if isinstance(value, WrittenFloat) and isinf(value):
                raise refusal(_pointer(way), _TOO_LARGE)
            if not isfinite(value):
                raise refusal(_pointer(way), f"{value} is not a number of JSON")
            if len(str(value).lower().partition("e")[2].lstrip("+-0")) > _EXPONENT_DIGITS:
                raise refusal(_pointer(way), f"an exponent has at most {_EXPONENT_DIGITS} digits, got {value!s:.50}")
        elif value is not None and not isinstance(value, bool | int):
            raise refusal(_pointer(way), f"{value!r:.50} is not a value of JSON")
        elif isinstance(value, int) and abs(value) > MAX_NUMBER:
            raise refusal(_pointer(way), _TOO_LARGE)
    return references


_ONE = frozenset(("items", "additionalProperties", "propertyNames"))  # keywords whose value is a schema
_MANY = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))  # keywords whose value is a list of schemas
_NAMED = frozenset(("$defs", "definitions"))  # keywords whose value is an object of schemas
_NOTES = frozenset(("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"))
_OWN = frozenset(
    (
        *("type", "enum", "const", "pattern", "format", "minLength", "maxLength", "minimum", "maximum"),
        *("exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    )
)  # keywords whose values contain no names of properties
_DEFINED = re.compile(r"#(/(\$defs|definitions)/[^/%~]*)?")
_SCALARS = frozenset((str, int, float, bool, type(None)))
MAX_SHAPE = 16_384


@dataclass(frozen=True)
class Shape:
    """A key for a cache: schemas with the same ``data`` differ only in annotations and in names of properties.

    ``names``: the names of the schema's properties. ``plain``: whether its names and annotations are ASCII. If one
    schema has passed `check_values`, a ``plain`` schema with the same ``data`` would pass too.
    """

    data: bytes
    names: tuple[str, ...]
    plain: bool


def shape_of(schema: Any) -> Shape | None:
    """Return the shape of a schema. The schema need not have passed `check_values`.

    In ``data``, a number replaces each name, and the same number replaces the same name. If the path in a reference may
    contain the name of a property, the names stay in ``data``. None for a schema of more than `MAX_SHAPE` bytes, and
    for a value of another type than JSON's, even of a subclass.
    """
    shaper = _Shaper()
    try:
        try:
            shaped = shaper.shaped(schema)
        except _UnlikeError:
            shaped, shaper = schema, _Shaper()
            shaper.count(schema)
        data = marshal.dumps(shaped, 2)  # Later versions of marshal also write which objects are identical.
    except (_NoShapeError, RecursionError, ValueError):
        return None
    names = tuple(shaper.names)
    if len(data) > MAX_SHAPE or not all(type(name) is str for name in names):
        return None
    return Shape(data, names, shaper.plain and all(map(str.isascii, names)))


class _UnlikeError(Exception):
    """Raised for a schema whose meaning may change if its properties get other names."""


class _NoShapeError(Exception):
    """Raised for a schema that is too large, may contain itself, or is not JSON."""


class _Shaper:
    """Replaces the names of properties by tuples of numbers, which cannot be JSON values."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.plain = True
        self._left = MAX_SHAPE  # how many more values fit in MAX_SHAPE bytes, at 1 byte each

    def shaped(self, schema: Any) -> Any:
        """Return a schema with numbers for names and without annotations."""
        if type(schema) is not dict or schema.keys() <= _OWN:
            self.count(schema)
            return schema
        names = self.names
        self._left -= len(schema)
        made: dict[str, Any] = {}
        for keyword, value in schema.items():
            kind = type(value)
            if keyword in _NOTES:
                self.plain = self.plain and type(keyword) is kind is str and value.isascii()
                continue
            if kind is str:
                if keyword == "$ref" and not _DEFINED.fullmatch(value):
                    raise _UnlikeError
            elif kind is dict and keyword == "properties":
                self._left -= len(value)
                value = tuple(
                    [(names.setdefault(name, len(names)), self.shaped(inner)) for name, inner in value.items()]
                )
            elif kind is dict and keyword in _ONE:
                value = self.shaped(value)
            elif kind is dict and keyword in _NAMED:
                self._left -= len(value)
                value = {name: self.shaped(inner) for name, inner in value.items()}
            elif kind is list and keyword == "required":
                self._left -= len(value)
                value = tuple([names.setdefault(name, len(names)) if type(name) is str else None for name in value])
            elif kind is list and (keyword in _MANY or keyword in _NAMED):  # a list for _NAMED is an invalid schema
                self._left -= len(value)
                value = [self.shaped(inner) for inner in value]
            elif kind not in _SCALARS:
                self.count(value)
            made[keyword] = value
        if self._left < 0:
            raise _NoShapeError
        return made

    def count(self, value: Any) -> None:
        """Count the values within a value, for the limit `MAX_SHAPE`."""
        stack = [value]
        for inner in stack:
            kind = type(inner)
            if kind is dict:
                inner = inner.values()
            elif kind in _SCALARS:
                continue
            elif kind is not list:
                raise _NoShapeError
            self._left -= len(inner)
            if self._left < 0:
                raise _NoShapeError
            stack += [value for value in inner if type(value) not in _SCALARS]


def escaped(name: str) -> str:
    """Return a name escaped for a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def _pointer(way: _Way) -> str:
    keys = []
    while way is not None:
        way, key = way
        keys.append(f"/{key if isinstance(key, int) else escaped(key)}")
    return "".join(("#", *reversed(keys)))


def _check_text(text: str, way: _Way) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        where = _pointer(way).encode(errors="replace").decode()
        raise refusal(where, f"a text must be valid Unicode: there is a lone surrogate at {error.start}") from error
