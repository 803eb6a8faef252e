"""Translates a JSON Schema into parts of a grammar. The grammar allows one form of each value that meets the schema.

docs/grammar.md defines the form. Properties have the order of the schema. At most one blank follows each comma and
colon, and there are no other blanks. Values that the schema lists have no needless escapes. Every text that the grammar
allows meets the schema. If a schema refers to itself, values deeper than the unrolled levels are left out.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from ..errors import ArgumentError
from . import ranges
from .formats import FORMATS
from .json_values import Shape, check_values, refusal, same, shape_of, type_of, written
from .schema import ANYTHING, Conjunction, Document, Facts
from .schema_parts import MAX_WEIGHT, Parts, TooLargeError

MAX_DEPTH = 32
_MAX_LEVELS = 100  # maximum number of levels of nested values

_PLAIN = r"[^\"\\\x00-\x1f]"
_LATER = r"[dD][c-fC-F][0-9a-fA-F]{2}"
_UNIT = (  # one character of a string, plain or escaped; never half of a surrogate pair
    rf"{_PLAIN}|\\([\"\\/bfnrt]|u([0-9a-ce-fA-CE-F][0-9a-fA-F]{{3}}|[dD][0-7][0-9a-fA-F]{{2}}"
    rf"|[dD][89abAB][0-9a-fA-F]{{2}}\\u{_LATER}))"
)
_UNIT_WEIGHT = 60
_ESCAPES = tuple(json.dumps(chr(code))[1:-1] for code in (*range(0x20), ord('"'), ord("\\")))


@dataclass
class _Object:
    """The parts for the properties of an object."""

    required: list[bool]  # whether each named property is required
    pairs: list[int]  # for each named property, the part for its name and its value
    others: int | None  # the part for one property with another name, or None if there may be none


_Key = tuple[bytes, int, bool, "type[Translator]"]
_KNOWN: dict[_Key, tuple[tuple[str, ...], bool, Parts]] = {}  # cached (names, whether the names matter, parts)
_MOST_KNOWN, _MOST_PARTS = 64, 2_000


def parts_of(schema: Any, depth: int, closed: bool, kind: "type[Translator] | None" = None) -> Parts:
    """Return the parts of the grammar of a schema. Anything unsupported raises a ValueError with keyword and pointer.

    ``kind``: the translator, which defines the form of the texts; None is the translator for JSON. The parts of the
    latest schemas are cached, because a server gets the same few schemas repeatedly, or schemas that differ only in
    names.
    """
    translator = kind or Translator
    translate = partial(_translated, schema, depth, closed, translator)
    try:
        shape = shape_of(schema)
        if shape is None:
            return translate()[0]
        return _kept(schema, shape, (shape.data, depth, closed, translator), translate)
    except RecursionError:
        raise ArgumentError("schema must not be nested so deep") from None
    except TooLargeError:
        raise ArgumentError(
            f"schema must not unroll to more than {MAX_WEIGHT:,} operations: set depth lower than {depth}, or counts"
        ) from None


def forget_parts() -> None:
    """Clear the cache of parts before a measurement: the next schema is then translated again."""
    _KNOWN.clear()


def _kept(schema: Any, shape: Shape, key: _Key, translate: Callable[[], tuple[Parts, bool]]) -> Parts:
    """Return the parts of a schema. If parts of a schema of the same shape are cached, reuse these parts."""
    kept = _KNOWN.get(key)  # read only once, because another thread may clear the dict
    if kept is not None:
        if not shape.plain:
            check_values(schema)
        names, matter, parts = kept
        if names == shape.names:
            return parts
        if not matter:
            others = dict(zip(names, shape.names, strict=True))
            renamed = parts.renamed(others, key[-1].written_name, lambda: translate()[0])
            if renamed is not None:
                return renamed
    parts, matter = translate()
    if len(parts.weights) <= _MOST_PARTS:
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[key] = (shape.names, matter, parts)
    return parts


def _translated(schema: Any, depth: int, closed: bool, kind: "type[Translator]") -> tuple[Parts, bool]:
    """Return (the parts of a schema, `Translator.names_matter`)."""
    translator = kind(Document(schema, check_values(schema)), closed)
    whole = translator.value(("#",), depth)
    if whole is None:
        endless = (translator.cut or "#", "it contains itself without end, or nests deeper than depth")
        where, reason = translator.document.problem or endless
        raise refusal(where, f"nothing can meet the schema: {reason}")
    parts = translator.parts
    parts.sequence(whole)  # the last part is the grammar
    return parts, translator.names_matter


def quoted(text: str) -> str:
    """Return a text as a JSON string without needless escapes."""
    plain = text.isalnum() or text.isidentifier()  # a fast check, true for almost all names
    return f'"{text}"' if plain else json.dumps(text, ensure_ascii=False)


class Translator:
    """Makes the parts of a JSON grammar from a `Document`. A subclass makes the parts for another form of the values.

    ``names_matter``: whether parts other than names depend on the names of properties. ``unit``: the pattern for one
    character of a string. ``raw``: the characters that must be escaped, for use in a character class.
    ``longest_name``: largest number of characters of a name that is not in the schema. ``indent``: the number of spaces
    that each level of nesting adds to a new line; 0 in JSON, which has no new lines.
    """

    unit = _UNIT
    raw = r"\"\\\x00-\x1f"
    longest_name: int | None = None
    indent = 0

    def __init__(self, document: Document, closed: bool) -> None:
        self.document = document
        self.parts = parts = Parts()
        self._closed = closed
        self.names_matter = False
        self.cut: str | None = None  # the first pointer at which a recursive reference was not followed
        self._levels = 0
        self._known: dict[tuple[Conjunction, int, int], int | None] = {}
        self._scalars: dict[bytes | None, int] = {}
        blank = parts.repeat(parts.text(" "), 0, 1)
        self.column = 0  # indentation of the current value, if it begins on a new line
        self.comma = parts.sequence(parts.text(","), blank)
        self.colon = parts.sequence(parts.text(":"), blank)
        self._quote = parts.text('"')

    # ---- the form ----

    @classmethod
    def quoted(cls, text: str) -> str:
        """Return a text as a quoted string."""
        return quoted(text)

    @classmethod
    def written_name(cls, name: str) -> str:
        """Return the name of a property in its written form."""
        return cls.quoted(name)

    def name(self, name: str) -> int:
        """Return the part for the name of a property in the schema."""
        return self.parts.name(name, self.written_name(name))

    def constant(self, value: Any) -> str:
        """Return the text of a number, true, false or null."""
        return written(value)

    def number(self) -> str:
        """Return the pattern for a number without bounds."""
        return ranges.NUMBER

    def pattern(self, pattern: str, low: int, high: int | None, where: str) -> int:
        """Return the part for the inside of a string that contains a match of a pattern."""
        return self.parts.pattern(pattern, low, high, where)

    def one_of(self, found: list[int]) -> int:
        """Return the part that matches any one of the given values."""
        return self.parts.choice(found)

    def pair(self, name: int, value: int) -> int:
        """Return the part for a property: its name and its value."""
        return self.parts.sequence(name, self.parts.behind(self.colon, value))

    def separator(self) -> int:
        """Return the part for the separator between two properties of the current object."""
        return self.comma

    def array(self, first: list[int], rest: int | None, low: int, high: int | None) -> int:
        """Return the part for an array: the items ``first``, then items ``rest``, ``low`` to ``high`` items in all."""
        parts = self.parts
        inside = self.listed(first, rest, low, high, self.comma)
        return parts.sequence(parts.text("["), *inside, parts.text("]"))

    def object(self, items: list[int], at_least: int, may_be_empty: bool) -> int:
        """Return the part for an object of properties. A property that is a `repeat` is optional."""
        parts = self.parts
        inside = [parts.list(self.separator(), items, at_least)] if items else []
        return parts.sequence(parts.text("{"), *inside, parts.text("}"))

    # ---- values ----

    def value(self, conjunction: Conjunction, left: int) -> int | None:
        """Return the part for the values that meet all the given schemas, or None if there is no such value.

        ``left``: number of further levels of recursive references, or of values without a schema, that are unrolled.
        """
        key = (conjunction, left, self.column)
        if key not in self._known:
            scalar = self.document.scalar(conjunction)
            if scalar in self._scalars:
                return self._scalars[scalar]
            self._levels += 1
            if self._levels > _MAX_LEVELS and conjunction:
                raise refusal(conjunction[-1], f"values are nested more than {_MAX_LEVELS} deep")
            found = []
            for way in self.document.ways(conjunction):
                if way is ANYTHING:
                    found += self._way(way, left - 1)
                elif way.hops <= left:
                    found += self._way(way, left - way.hops)
                else:
                    self.cut = self.cut or conjunction[-1]
            found = list(dict.fromkeys(found))
            self._known[key] = made = self.one_of(found) if found else None
            if scalar is not None and made is not None:
                self._scalars[scalar] = made
            self._levels -= 1
        return self._known[key]

    def _way(self, way: Facts, left: int) -> list[int]:
        if way.values is not None:
            admitted = [self._literal(value) for value in way.values if self._admits(way, value)]
            if way.values and not admitted:
                self.document.nothing(_spelled(way), "no value meets the rest of the schema")
            return admitted
        found: list[int | None] = []
        text = self.parts.text
        if "null" in way.types:
            found.append(text("null"))
        if "boolean" in way.types:
            found += [text("true"), text("false")]
        if "integer" in way.types:
            found.append(self._number(way))
        if "string" in way.types:
            found.append(self._string(way))
        if left >= 0:
            self.column += self.indent
            found += [self._array(way, left)] if "array" in way.types else []
            found += [self._object(way, left)] if "object" in way.types else []
            self.column -= self.indent
        return [part for part in found if part is not None]

    def _literal(self, value: Any) -> int:
        parts = self.parts
        if isinstance(value, list):
            items = [self._literal(item) for item in value]
            inside = [parts.list(self.comma, items, 0)] if items else []
            return parts.sequence(parts.text("["), *inside, parts.text("]"))
        if isinstance(value, dict):
            names = {name: parts.text(self.quoted(name)) for name in value}
            pairs = [parts.sequence(names[name], self.colon, self._literal(inner)) for name, inner in value.items()]
            inside = [parts.list(self.comma, pairs, 0)] if pairs else []
            return parts.sequence(parts.text("{"), *inside, parts.text("}"))
        return parts.text(self.quoted(value) if isinstance(value, str) else self.constant(value))

    def _admits(self, way: Facts, value: Any) -> bool:
        """Return whether a value that the schema lists (enum or const) meets the rest of the schema."""
        kind = type_of(value)
        rest = _RESTS.get(kind, ())
        for keyword in rest:
            if keyword in way.at and kind in way.types:
                raise refusal(way.at[keyword], f"{keyword} does not go with the values at {_spelled(way)}")
        if kind not in way.types:
            return False
        if kind == "string":
            return way.min_length <= len(value) and (way.max_length is None or len(value) <= way.max_length)
        if kind in ("integer", "fraction"):
            number = same(value)[1]
            low, high = way.low, way.high
            above = low is None or number > low[0] or (number == low[0] and not low[1])
            below = high is None or number < high[0] or (number == high[0] and not high[1])
            stepped = (way.step == 1 and "multipleOf" not in way.at) or Fraction(number) % way.step == 0
            return above and below and stepped
        return True

    # ---- numbers and strings ----

    def _number(self, way: Facts) -> int | None:
        whole = "fraction" not in way.types or "multipleOf" in way.at
        bounded = way.low is not None or way.high is not None
        if whole:
            pattern = ranges.integers(way.low, way.high, way.step) if bounded or way.step > 1 else ranges.INTEGER
        else:
            pattern = ranges.numbers(way.low, way.high) if bounded else self.number()
        if pattern is None:
            names = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
            where = next(way.at[name] for name in names if name in way.at)
            self.document.nothing(where, "no number that can be written lies between the bounds")
            return None
        return self.parts.shared(self.parts.regex(pattern, len(pattern)))

    def _string(self, way: Facts) -> int | None:
        parts = self.parts
        low, high = way.min_length, way.max_length
        if high is not None and low > high:
            self.document.nothing(way.at["minLength"], "minLength is more than maxLength")
            return None
        if way.pattern is not None and way.format is not None:
            raise refusal(way.at["format"], "format does not go with a pattern: leave one of them out")
        if way.pattern is not None:
            inside = self.pattern(way.pattern, low, high, way.at["pattern"])
        elif way.format is not None:
            inside = self.pattern(f"^(?:{FORMATS[way.format]})$", low, high, way.at["format"])
        else:
            inside = parts.repeat(parts.regex(self.unit, _UNIT_WEIGHT), low, high)
        return parts.shared(self._quote, inside, self._quote)

    # ---- arrays ----

    def _array(self, way: Facts, left: int) -> int | None:
        low, high = way.min_items, way.max_items
        first: list[int] = []
        for conjunction in way.prefix or []:
            item = self.value(conjunction, left)
            if item is None:
                high = len(first) if high is None else min(high, len(first))
                break
            first.append(item)
        rest = None
        if high is None or high > len(first):
            rest = self._rest(way, left)
            high = len(first) if rest is None else high
        if high is not None and low > high:
            self._without(way.at.get("minItems", "#"), "there cannot be so many items")
            return None
        if way.unique and (high is None or high > 1):
            raise refusal(way.at["uniqueItems"], "uniqueItems is not supported where there may be two items")
        return self.array(first[:high], rest, low, high)

    def _rest(self, way: Facts, left: int) -> int | None:
        """Return the part for an item after the items of prefixItems; None if there may be no such item."""
        if way.items is None and way.prefix is not None and self._closed and way.min_items <= len(way.prefix):
            return None
        return self.value(way.items or (), left)

    def listed(self, first: list[int], rest: int | None, low: int, high: int | None, comma: int) -> list[int]:
        """Return the parts for items with ``comma`` between them: a list of one part, or an empty list."""
        parts = self.parts
        n = len(first)
        if not first:
            return [] if rest is None or high == 0 else [parts.repeat(rest, low, high, comma)]
        inside = []
        if rest is not None and (high is None or high > n):
            one = parts.sequence(comma, rest)
            inside = [parts.repeat(one, max(0, low - n), None if high is None else high - n)]
        for i in range(n - 1, -1, -1):
            inside = [parts.sequence(*([comma] if i else []), first[i], *inside)]
            if low <= i:
                inside = [parts.repeat(inside[0], 0, 1)]
        return inside

    # ---- objects ----

    def _object(self, way: Facts, left: int) -> int | None:
        properties = dict(way.properties)
        for name in way.required:
            properties.setdefault(name, way.additional or ())
        found = self._properties(way, properties, left)
        if found is None:
            return None
        counted = self._counted(way, found)
        return None if counted is None else self.object(*counted)

    def _properties(self, way: Facts, properties: dict[str, Conjunction], left: int) -> _Object | None:
        if way.names is not None and properties:
            raise refusal(way.at["propertyNames"], "propertyNames is not supported where properties have names")
        found = _Object([], [], None)
        for name, conjunction in properties.items():
            value = self.value(conjunction, left)
            if value is not None:
                found.pairs.append(self.pair(self.name(name), value))
                found.required.append(name in way.required)
            elif name in way.required:
                self._without(way.at["required"], f"{name!r:.40} is required, but nothing can be its value")
                return None
        if way.additional is not None or not (self._closed and properties):
            value = self.value(way.additional or (), left)
            key = None if value is None else self._key(way, properties, left)
            if value is not None and key is not None:
                found.others = self.pair(key, value)
        return found

    def _counted(self, way: Facts, found: _Object) -> tuple[list[int], int, bool] | None:
        """Return the arguments of `object`: (parts of properties, their least number, whether there may be none)."""
        parts = self.parts
        low, high = way.min_properties, way.max_properties
        required, total = sum(found.required), len(found.pairs)
        where = way.at.get("minProperties", way.at.get("maxProperties", way.at.get("required", "#")))
        if (high is not None and high < max(low, required)) or (found.others is None and low > total):
            self._without(where, "there cannot be so many properties")
            return None
        keep = list(zip(found.pairs, found.required, strict=True))
        if low > max(required, 1) and (low < total or found.others is not None):
            raise refusal(way.at["minProperties"], f"minProperties {low} is not supported where others may be left out")
        if low == total and found.others is None:
            keep = [(pair, True) for pair, _ in keep]
        most = None
        if high is not None and (high < total or found.others is not None):
            if high == required:
                keep, found.others = [row for row in keep if row[1]], None
            elif required < total:
                where = way.at["maxProperties"]
                raise refusal(where, f"maxProperties {high} is not supported where properties may be left out")
            else:
                most = high - required
        items = [pair if needed else parts.repeat(pair, 0, 1) for pair, needed in keep]
        if found.others is not None and most != 0:
            items.append(parts.repeat(parts.repeat(found.others, 1, most, self.separator()), 0, 1))
        needs = [needed for _, needed in keep]
        at_least = int((low > required and not all(needs)) or low > len(keep))
        return items, at_least, not at_least and not any(needs)

    def _without(self, where: str, reason: str) -> None:
        """Record why no value can meet a schema, unless a reference that was not followed may be the reason."""
        if self.cut is None:
            self.document.nothing(where, reason)

    # ---- names ----

    def _key(self, way: Facts, named: dict[str, Conjunction], left: int) -> int | None:
        """Return the part for names of properties that differ from all names in ``named``."""
        parts = self.parts
        if way.names is not None:
            found = []
            for names in self.document.ways(way.names):
                if names.hops <= left and "string" in names.types:
                    found += self._way(replace(names, types=_STRING), left)
            return parts.choice(found) if found else None
        anything = parts.repeat(parts.regex(self.unit, _UNIT_WEIGHT), 0, self.longest_name)
        self.names_matter |= bool(named)
        inside = self._unlike([self._units(name) for name in named]) if named else anything
        return parts.shared(self._quote, inside, self._quote)

    def _unlike(self, names: list[list[str]]) -> int:
        """Return the part for the inside of a string that differs from all given names and has no needless escapes."""
        parts = self.parts
        root: dict[str, Any] = {}
        order: list[dict[str, Any]] = [root]  # all nodes, each after its parent
        begins, ends = {""}, set()
        if sum(len(units) ** 2 for units in names) > 2 * MAX_WEIGHT:  # All prefixes have about sum / 2 units.
            raise TooLargeError
        for units in names:
            at, text = root, ""
            for unit in units:
                if unit not in at:
                    at[unit] = {}
                    order.append(at[unit])
                at = at[unit]
                text += unit
                begins.add(text)
            ends.add(text)
        leaves: dict[int, int] = {}  # id of a node -> part for the rest of a name that leaves the tree below the node
        for node in reversed(order):
            found = [parts.regex(_others(tuple(sorted(node)), self.raw), _UNIT_WEIGHT)]
            found += [parts.sequence(parts.text(unit), leaves.pop(id(inner))) for unit, inner in node.items()]
            leaves[id(node)] = parts.choice(found)
        plain = parts.repeat(parts.regex(_others((), self.raw), _UNIT_WEIGHT), 0, self.longest_name)
        other = [parts.sequence(leaves[id(root)], plain)]
        return parts.choice(other + [parts.text(text) for text in sorted(begins - ends)])

    def _units(self, name: str) -> list[str]:
        """Return each character of a name as it is written in a string, with escapes."""
        return [self.quoted(character)[1:-1] for character in name]


_STRING = frozenset(("string",))
_OBJECT = ("properties", "required", "additionalProperties", "propertyNames", "minProperties", "maxProperties")
_RESTS = {
    "string": ("pattern", "format"),
    "array": ("prefixItems", "items", "minItems", "maxItems", "uniqueItems"),
    "object": _OBJECT,
}


def _spelled(way: Facts) -> str:
    """Return the pointer to the values that a schema lists (enum or const)."""
    return way.at.get("enum", way.at.get("const", "#"))


@lru_cache(1024)
def _others(units: tuple[str, ...], raw: str) -> str:
    """Return the pattern for a character of a string, without a needless escape, that is not one of ``units``.

    ``raw``: the characters that must be escaped, for a character class.
    """
    plain = "".join(rf"\x{{{ord(unit):x}}}" for unit in units if len(unit) == 1)
    escapes = "|".join(escape.replace("\\", r"\\") for escape in _ESCAPES if escape not in units)
    return rf"[^{raw}{plain}]|{escapes}"
