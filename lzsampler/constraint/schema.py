"""`Document`: reads a JSON Schema as lists of conditions, and resolves `$ref`, `allOf`, `anyOf` and `oneOf`.

A schema becomes a list of `Facts`, which are called its ways. A value meets the schema if it meets all conditions of at
least one way. An unsupported keyword raises the error that `refusal` makes, with the keyword and its JSON pointer. The
draft is 2020-12. The supported keywords mean the same in earlier drafts.
"""

import marshal
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from typing import Any
from urllib.parse import unquote

from ..errors import ArgumentError
from .json_values import escaped, read_as_same, refusal, same, type_of
from .ranges import Bound

ALL_TYPES = frozenset(("null", "boolean", "integer", "fraction", "string", "array", "object"))
TYPES = {name: frozenset((name,)) for name in ALL_TYPES - {"fraction"}} | {"number": frozenset(("integer", "fraction"))}
MAX_WAYS = 2_000
MAX_COMPARED = 200_000
_BOUND_DIGITS = 100
_PARTS_DEEP = 4  # number of levels of nested values that are compared to prove that schemas of oneOf exclude each other
_PLAIN = frozenset(("const", "enum", "default", "examples"))  # keywords whose values are not schemas
_ANNOTATIONS = frozenset(
    (
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema"),
        *("$vocabulary", "$anchor", "$dynamicAnchor", "$defs", "definitions", "discriminator"),
        *("contentMediaType", "contentEncoding", "contentSchema", "minContains", "maxContains", "then", "else"),
    )
)  # minContains, maxContains, then and else have no effect without `contains` and `if`, which are refused
_IN_PLACE = frozenset(("$ref", "allOf", "anyOf", "oneOf"))
_SCALARS = ("string", "integer", "number", "boolean")
_WHY = {
    "not": "is not supported: say what is allowed instead",
    "if": "is not supported: write the cases as anyOf",
    "contains": "is not supported: describe all items",
    "patternProperties": "is not supported: name the properties, or use additionalProperties",
    "dependentRequired": "is not supported: write the cases as anyOf",
    "dependentSchemas": "is not supported: write the cases as anyOf",
    "dependencies": "is not supported: write the cases as anyOf",
    "unevaluatedProperties": "is not supported: use additionalProperties",
    "unevaluatedItems": "is not supported: use items",
    "$dynamicRef": "is not supported: use $ref",
    "$recursiveRef": "is not supported: use $ref",
    "additionalItems": "is not supported: use prefixItems and items",
    "nullable": "is not a keyword of JSON Schema: write a list of types with null",
    "$id": "is not supported inside a schema: put it at the top only",
}


def _why_unknown(keyword: str) -> str:
    known = {name.lower(): name for name in (*_READERS, *_IN_PLACE)}
    close = get_close_matches(keyword.lower(), known, 1)
    advice = f"did you mean {known[close[0]]!r}?" if close else "leave it out if it is only a description"
    return f"is not a supported keyword: {advice}"


Conjunction = tuple[str, ...]  # pointers to schemas, all of which a value must meet; () allows any value


class CircleError(ArgumentError):
    """Raised for a `$ref` that leads back to its own schema without a nested value in between."""


@dataclass(slots=True)
class Facts:
    """One way to meet a schema: a set of conditions on a value.

    ``at``: keyword -> pointer to this keyword in the schema. ``hops``: number of recursive references that lead to
    these conditions.
    """

    types: frozenset[str] = ALL_TYPES
    values: list[Any] | None = None
    low: Bound | None = None
    high: Bound | None = None
    step: int = 1
    min_length: int = 0
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    properties: dict[str, Conjunction] = field(default_factory=dict)
    required: dict[str, None] = field(default_factory=dict)
    additional: Conjunction | None = None
    names: Conjunction | None = None
    min_properties: int = 0
    max_properties: int | None = None
    prefix: list[Conjunction] | None = None
    items: Conjunction | None = None
    min_items: int = 0
    max_items: int | None = None
    unique: bool = False
    hops: int = 0
    at: dict[str, str] = field(default_factory=dict)


ANYTHING = Facts()


class Document:
    """A JSON Schema, and the ways to meet each schema within it."""

    def __init__(self, schema: Any, references: bool) -> None:
        """``schema``: a schema that passed `check_values`. ``references``: the value that `check_values` returned."""
        if not isinstance(schema, dict | bool):
            raise refusal("#", f"a schema is an object, true or false, got {schema!r:.50}")
        self._values: dict[str, Any] = {"#": schema}
        draft = schema.get("$schema") if isinstance(schema, dict) else None
        self._lone_ref = isinstance(draft, str) and re.search("/draft-0[3-7]/", draft) is not None
        self._ways: dict[str, list[Facts]] = {}
        self._open: set[str] = set()  # pointers to the schemas whose ways are being computed
        self._compared = 0  # number of comparisons between schemas of oneOf so far
        self._targets: dict[str, str] = {}
        self._anchors: dict[str, str] | None = None
        self.problem: tuple[str, str] | None = None  # (pointer to the first schema that no value meets, reason)
        self._recursive = self._find_recursive() if references else set[str]()

    def at(self, pointer: str, *keys: str | int) -> str:
        """Return ``pointer`` extended by ``keys``, and store the value there in `_values`."""
        value = self._values[pointer]
        for key in keys:
            value = value[key]
            pointer = f"{pointer}/{key if isinstance(key, int) else escaped(key)}"
        self._values[pointer] = value
        return pointer

    def named(self, pointer: str, schemas: dict[str, Any]) -> dict[str, Conjunction]:
        """Return name -> pointer for ``schemas``, the object of schemas at ``pointer``."""
        made: dict[str, Conjunction] = {}
        for name, schema in schemas.items():
            at = f"{pointer}/{escaped(name)}"
            made[name] = (at,)
            self._values[at] = schema
        return made

    def nothing(self, pointer: str, reason: str) -> None:
        """Record in `problem` why no value can meet the schema at ``pointer``, unless `problem` is set."""
        self.problem = self.problem or (pointer, reason)

    def ways(self, conjunction: Conjunction) -> list[Facts]:
        """Return the ways to meet all the given schemas at once."""
        if len(conjunction) == 1:
            return self._ways_of(conjunction[0])
        ways = [ANYTHING]
        for pointer in conjunction:
            ways = self._product(ways, self._ways_of(pointer), pointer)
        return ways

    def scalar(self, conjunction: Conjunction) -> bytes | None:
        """Return a key that is equal for equal schemas of strings, numbers or booleans; None for other schemas."""
        schema = self._values[conjunction[0]] if len(conjunction) == 1 else None
        if type(schema) is not dict or schema.get("type") not in _SCALARS:
            return None
        try:
            data = marshal.dumps(schema, 2)
        except ValueError:  # a value has a subclass of a JSON type, such as `WrittenFloat`
            return None
        # The ways of a schema with $ref or oneOf depend on its pointer.
        return None if b"$ref" in data or b"oneOf" in data else data

    # ---- one schema ----

    def _ways_of(self, pointer: str) -> list[Facts]:
        known = self._ways.get(pointer)
        if known is not None:
            return known
        if pointer in self._open:
            raise CircleError(*refusal(pointer, "a reference leads back to itself without a value in between").args)
        schema = self._values[pointer]
        if isinstance(schema, bool):
            if not schema:
                self.nothing(pointer, "false allows nothing")
            return [ANYTHING] if schema else []
        if not isinstance(schema, dict):
            raise refusal(pointer, f"a schema is an object, true or false, got {schema!r:.50}")
        self._open.add(pointer)
        try:
            ways = [self._own(pointer, schema)]
            for keyword in () if _IN_PLACE.isdisjoint(schema) else ("$ref", "allOf", "anyOf", "oneOf"):
                if keyword in schema:
                    ways = getattr(self, _COMBINED[keyword])(pointer, schema[keyword], ways)
        finally:
            self._open.remove(pointer)
        self._ways[pointer] = ways
        return ways

    def _own(self, pointer: str, schema: dict[str, Any]) -> Facts:
        """Return the conditions from the keywords of one schema, except $ref, allOf, anyOf and oneOf."""
        facts = Facts()
        if self._lone_ref and "$ref" in schema and schema.keys() - _ANNOTATIONS - {"$ref", "$id"}:
            reason = "the draft that $schema names ignores the keywords beside $ref: use allOf"
            raise refusal(self.at(pointer, "$ref"), reason)
        for keyword, value in schema.items():
            read = _READERS.get(keyword)
            if read is not None:
                where = facts.at[keyword] = f"{pointer}/{keyword}"  # faster than a call of `self.at`
                self._values[where] = value
                read(self, facts, value, where)
            elif keyword in _ANNOTATIONS or keyword in _IN_PLACE or (keyword == "$id" and pointer == "#"):
                continue
            else:
                raise refusal(self.at(pointer, keyword), f"{keyword!r} {_WHY.get(keyword) or _why_unknown(keyword)}")
        return facts

    def _ref(self, pointer: str, _: Any, ways: list[Facts]) -> list[Facts]:
        target = self._target(pointer)
        hops = int(target in self._recursive)
        found = [replace(way, hops=way.hops + hops) if hops else way for way in self._ways_of(target)]
        return self._product(ways, found, pointer)

    def _all_of(self, pointer: str, value: Any, ways: list[Facts]) -> list[Facts]:
        for branch in self._branches(pointer, "allOf", value):
            ways = self._product(ways, self._ways_of(branch), pointer)
        return ways

    def _any_of(self, pointer: str, value: Any, ways: list[Facts]) -> list[Facts]:
        found = [way for branch in self._branches(pointer, "anyOf", value) for way in self._ways_of(branch)]
        return self._product(ways, found, pointer)

    def _one_of(self, pointer: str, value: Any, ways: list[Facts]) -> list[Facts]:
        branches = [self._ways_of(branch) for branch in self._branches(pointer, "oneOf", value)]
        branches = [self._product(ways, branch, pointer) for branch in branches]
        where = self.at(pointer, "oneOf")
        for i, one in enumerate(branches):
            for k, other in enumerate(branches[:i]):
                if not all(self._surely_excludes(a, b, where) for a in one for b in other):
                    reason = f"a value may meet both schemas {k} and {i} of oneOf: use anyOf"
                    raise refusal(where, reason)
        return [way for branch in branches for way in branch]

    def _surely_excludes(self, a: Facts, b: Facts, where: str) -> bool:
        """Return True only if no value meets both ``a`` and ``b``. Compare the top level first, then deeper levels."""
        return any(self._excludes(a, b, depth, where) for depth in range(_PARTS_DEEP + 1))

    def _branches(self, pointer: str, keyword: str, value: Any) -> Iterator[str]:
        if not isinstance(value, list) or not value:
            raise refusal(self.at(pointer, keyword), f"{keyword} must be a list of schemas, got {value!r:.50}")
        for i in range(len(value)):
            yield self.at(pointer, keyword, i)

    # ---- two schemas ----

    def _product(self, first: list[Facts], second: list[Facts], pointer: str) -> list[Facts]:
        if len(first) == 1 and first[0] is ANYTHING:
            return second
        if len(second) == 1 and second[0] is ANYTHING:
            return first
        if len(first) * len(second) > MAX_WAYS:
            raise refusal(pointer, f"there are more than {MAX_WAYS:,} combinations of anyOf and oneOf")
        made = [self._merged(a, b, pointer) for a in first for b in second]
        return [way for way in made if way is not None]

    def _merged(self, a: Facts, b: Facts, pointer: str) -> Facts | None:
        types = a.types & b.types
        values = a.values if b.values is None else b.values
        if a.values is not None and b.values is not None:
            others = {same(value) for value in b.values}
            values = [value for value in a.values if same(value) in others]
        if not types or values == []:
            self.nothing(pointer, "no value meets all the requirements here")
            return None
        for name in ("pattern", "format"):
            one, other = getattr(a, name), getattr(b, name)
            if one is not None and other is not None and one != other:
                raise refusal(b.at[name], f"{name} does not go with the {name} at {a.at[name]}: write both as one")
        theirs, rest = b.properties, b.additional or ()
        properties = {name: pointers + theirs.get(name, rest) for name, pointers in a.properties.items()}
        for name, pointers in b.properties.items():
            if name not in properties:
                properties[name] = (a.additional or ()) + pointers
        return Facts(
            types=types,
            values=values,
            low=_tighter(a.low, b.low, 1),
            high=_tighter(a.high, b.high, -1),
            step=max(a.step, b.step),
            min_length=max(a.min_length, b.min_length),
            max_length=_least(a.max_length, b.max_length),
            pattern=a.pattern if b.pattern is None else b.pattern,
            format=a.format if b.format is None else b.format,
            properties={name: tuple(dict.fromkeys(pointers)) for name, pointers in properties.items()},
            required=a.required | b.required,
            additional=_both(a.additional, b.additional),
            names=_both(a.names, b.names),
            min_properties=max(a.min_properties, b.min_properties),
            max_properties=_least(a.max_properties, b.max_properties),
            prefix=_prefix(a, b),
            items=_both(a.items, b.items),
            min_items=max(a.min_items, b.min_items),
            max_items=_least(a.max_items, b.max_items),
            unique=a.unique or b.unique,
            hops=max(a.hops, b.hops),
            at=a.at | b.at,
        )

    def _excludes(self, a: Facts, b: Facts, depth: int, where: str) -> bool:
        """Return True only if no value meets both ``a`` and ``b``. Compare values nested up to ``depth`` levels.

        ``where``: pointer to the oneOf, for the error after too many comparisons.
        """
        self._compared += 1 + len(a.values or ()) + len(b.values or ())
        if self._compared > MAX_COMPARED:
            reason = f"to tell the schemas of oneOf apart takes more than {MAX_COMPARED:,} comparisons: use anyOf"
            raise refusal(where, reason)
        types = a.types & b.types
        if a.values is not None and b.values is not None:
            return {read_as_same(value) for value in a.values}.isdisjoint(map(read_as_same, b.values))
        for values in (a.values, b.values):
            if values is not None:
                types &= {type_of(value) for value in values}
        return all(self._exclude_as(name, a, b, depth, where) for name in types)

    def _exclude_as(self, name: str, a: Facts, b: Facts, depth: int, where: str) -> bool:
        if name == "object":
            return any(self._part_excludes(*pair, depth, where) for pair in ((a, b), (b, a)))
        if name in ("integer", "fraction"):
            bounds = ((a.low, b.high), (b.low, a.high))
            return any(low and high and float(low[0]) > float(high[0]) for low, high in bounds)
        return False

    def _part_excludes(self, a: Facts, b: Facts, depth: int, where: str) -> bool:
        """Return True only if ``a`` requires a property with a value that ``b`` forbids."""
        for name in a.required if depth else ():
            try:
                ours, theirs = (self.ways(f.properties.get(name, f.additional or ())) for f in (a, b))
            except CircleError:  # the ways of the property's schema are still being computed
                continue
            self._compared += len(ours) + len(theirs)
            if all(self._excludes(one, other, depth - 1, where) for one in ours for other in theirs):
                return True
        return False

    # ---- references ----

    def _target(self, pointer: str) -> str:
        known = self._targets.get(pointer)
        if known is None:
            self._targets[pointer] = known = self._resolved(self._values[pointer]["$ref"], self.at(pointer, "$ref"))
        return known

    def _resolved(self, ref: Any, where: str) -> str:
        if not isinstance(ref, str):
            raise refusal(where, f"$ref must be a string, got {ref!r:.50}")
        address, _, fragment = ref.partition("#")
        root = self._values["#"]
        own = root.get("$id") if isinstance(root, dict) else None
        if address and (not isinstance(own, str) or address != own.rstrip("#")):
            raise refusal(where, f"$ref {ref!r:.60} is not in this schema: put its target into $defs")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            self._anchors = _anchors(root) if self._anchors is None else self._anchors
            if fragment not in self._anchors:
                raise refusal(where, f"$ref {ref!r:.60} names an unknown anchor")
            fragment = self._anchors[fragment]
        target, value = "#", root
        for key in fragment.split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and re.fullmatch("0|[1-9][0-9]{0,6}", key) and int(key) < len(value):
                target = self.at(target, int(key))
            elif isinstance(value, dict) and key in value:
                target = self.at(target, key)
            else:
                raise refusal(where, f"$ref {ref!r:.60} leads nowhere")
            value = self._values[target]
            if isinstance(value, dict) and isinstance(value.get("$id"), str):
                raise refusal(self.at(target, "$id"), f"$id {_WHY['$id']}")
        return target

    def _find_recursive(self) -> set[str]:
        """Return targets of references, at least one for each cycle of references.

        This is a depth-first search. Each step goes from a schema to the targets of all references within the schema.
        """
        recursive: set[str] = set()
        path, done = {"#"}, set[str]()
        stack = [("#", self._references("#", done))]
        while stack:
            pointer, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                stack.pop()
                path.discard(pointer)
                done.add(pointer)
            elif target in path:
                recursive.add(target)
            elif target not in done:
                path.add(target)
                stack.append((target, self._references(target, done)))
        return recursive

    def _references(self, pointer: str, done: set[str]) -> Iterator[str]:
        """Yield the targets of the references within a schema, but skip the inner schemas in ``done``."""
        left = [pointer]
        while left:
            at = left.pop()
            if at in done:
                continue
            schema = self._values[at]
            if isinstance(schema, dict):
                if "$ref" in schema:
                    yield self._target(at)
                left += reversed(list(self._parts(at, schema)))

    def _parts(self, pointer: str, schema: dict[str, Any]) -> Iterator[str]:
        """Yield the pointers to the schemas that a schema directly contains."""
        for keyword in ("items", "additionalProperties", "propertyNames"):
            if keyword in schema:
                yield self.at(pointer, keyword)
        for keyword in ("prefixItems", "allOf", "anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list):
                yield from (self.at(pointer, keyword, i) for i in range(len(schema[keyword])))
        if isinstance(schema.get("properties"), dict):
            yield from (self.at(pointer, "properties", name) for name in schema["properties"])


_COMBINED = {"$ref": "_ref", "allOf": "_all_of", "anyOf": "_any_of", "oneOf": "_one_of"}


def _anchors(schema: Any) -> dict[str, str]:
    """Return anchor -> URI fragment of its schema, for each anchor that occurs only once."""
    found: dict[str, list[str]] = {}
    stack: list[tuple[Any, str]] = [(schema, "")]
    while stack:
        value, fragment = stack.pop()
        if isinstance(value, dict):
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(value.get(keyword), str):
                    found.setdefault(value[keyword], []).append(fragment)
            inner = ((name, part) for name, part in value.items() if name not in _PLAIN)
            stack += ((part, f"{fragment}/{escaped(name)}") for name, part in inner)
        elif isinstance(value, list):
            stack += ((part, f"{fragment}/{i}") for i, part in enumerate(value))
    return {name: fragments[0] for name, fragments in found.items() if len(set(fragments)) == 1}


# ---- keywords ----


def _count(value: Any, where: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or not 0 <= value <= most:
        raise refusal(where, f"must be an integer from 0 to {most:,}, got {value!r:.50}")
    return int(value)


def _read_type(_: Document, facts: Facts, value: Any, where: str) -> None:
    if isinstance(value, str) and value in TYPES:
        facts.types = TYPES[value]
        return
    names = value if isinstance(value, list) else [value]
    wrong = next((name for name in names if not isinstance(name, str) or name not in TYPES), None)
    if wrong is not None or not names:
        raise refusal(where, f"type must be one of {', '.join(sorted(TYPES))}, or a list of them, got {value!r:.50}")
    facts.types = frozenset().union(*(TYPES[name] for name in names))


def _read_enum(document: Document, facts: Facts, value: Any, where: str) -> None:
    if not isinstance(value, list):
        raise refusal(where, f"enum must be a list, got {value!r:.50}")
    _keep_values(document, facts, value, where)


def _read_const(document: Document, facts: Facts, value: Any, where: str) -> None:
    _keep_values(document, facts, [value], where)


def _keep_values(document: Document, facts: Facts, values: list[Any], where: str) -> None:
    unlike = list({same(value): value for value in values}.values())
    if facts.values is not None:
        others = {same(value) for value in facts.values}
        unlike = [value for value in unlike if same(value) in others]
    if not unlike:
        document.nothing(where, "no value is left")
    facts.values = unlike


def _read_bound(facts: Facts, value: Any, where: str, sign: int, excluded: bool) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refusal(where, f"must be a number, got {value!r:.50}")
    number = Decimal(str(value))
    if abs(number.adjusted()) > _BOUND_DIGITS or len(number.as_tuple().digits) > _BOUND_DIGITS:
        raise refusal(where, f"bounds of more than {_BOUND_DIGITS} digits are not supported, got {value!r:.50}")
    if sign > 0:
        facts.low = _tighter(facts.low, (number, excluded), 1)
    else:
        facts.high = _tighter(facts.high, (number, excluded), -1)


def _read_multiple(_: Document, facts: Facts, value: Any, where: str) -> None:
    power = isinstance(value, int) and not isinstance(value, bool) and re.fullmatch("10{0,15}", str(value))
    if not power:
        raise refusal(where, f"multipleOf is supported for 1, 10, 100 and so on, got {value!r:.50}")
    facts.step = int(value)


def _read_pattern(_: Document, facts: Facts, value: Any, where: str) -> None:
    if not isinstance(value, str):
        raise refusal(where, f"pattern must be a string, got {value!r:.50}")
    facts.pattern = value


def _read_format(_: Document, facts: Facts, value: Any, where: str) -> None:
    from .formats import FORMATS

    if not isinstance(value, str) or value not in FORMATS:
        raise refusal(where, f"format {value!r:.30} is not one of {', '.join(FORMATS)}: leave it out, or use pattern")
    facts.format = value


def _read_properties(document: Document, facts: Facts, value: Any, where: str) -> None:
    if not isinstance(value, dict):
        raise refusal(where, f"properties must be an object, got {value!r:.50}")
    facts.properties = document.named(where, value)


def _read_required(_: Document, facts: Facts, value: Any, where: str) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise refusal(where, f"required must be a list of names, got {value!r:.50}")
    facts.required = dict.fromkeys(value)


def _read_prefix(document: Document, facts: Facts, value: Any, where: str) -> None:
    if not isinstance(value, list) or not value:
        raise refusal(where, f"prefixItems must be a list of schemas, got {value!r:.50}")
    facts.prefix = [(document.at(where, i),) for i in range(len(value))]


def _read_items(_: Document, facts: Facts, value: Any, where: str) -> None:
    if isinstance(value, list):
        raise refusal(where, "a list of schemas belongs to earlier drafts: name it prefixItems")
    facts.items = (where,)


def _read_unique(_: Document, facts: Facts, value: Any, where: str) -> None:
    if not isinstance(value, bool):
        raise refusal(where, f"uniqueItems must be true or false, got {value!r:.50}")
    facts.unique = value


def _reader(name: str, most: int) -> Any:
    def read(_: Document, facts: Facts, value: Any, where: str) -> None:
        setattr(facts, name, _count(value, where, most))

    return read


_MOST = 1_000_000
_READERS: dict[str, Any] = {
    "type": _read_type,
    "enum": _read_enum,
    "const": _read_const,
    "minimum": lambda _, facts, value, where: _read_bound(facts, value, where, 1, False),
    "maximum": lambda _, facts, value, where: _read_bound(facts, value, where, -1, False),
    "exclusiveMinimum": lambda _, facts, value, where: _read_bound(facts, value, where, 1, True),
    "exclusiveMaximum": lambda _, facts, value, where: _read_bound(facts, value, where, -1, True),
    "multipleOf": _read_multiple,
    "minLength": _reader("min_length", _MOST),
    "maxLength": _reader("max_length", _MOST),
    "pattern": _read_pattern,
    "format": _read_format,
    "properties": _read_properties,
    "required": _read_required,
    "additionalProperties": lambda _, facts, value, where: setattr(facts, "additional", (where,)),
    "propertyNames": lambda _, facts, value, where: setattr(facts, "names", (where,)),
    "minProperties": _reader("min_properties", _MOST),
    "maxProperties": _reader("max_properties", _MOST),
    "prefixItems": _read_prefix,
    "items": _read_items,
    "minItems": _reader("min_items", _MOST),
    "maxItems": _reader("max_items", _MOST),
    "uniqueItems": _read_unique,
}


# ---- two sets of conditions as one ----


def _least(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _tighter(a: Bound | None, b: Bound | None, sign: int) -> Bound | None:
    if a is None or b is None:
        return b if a is None else a
    return max(a, b, key=lambda bound: (sign * bound[0], bound[1]))


def _both(a: Conjunction | None, b: Conjunction | None) -> Conjunction | None:
    if a is None or b is None:
        return b if a is None else a
    return tuple(dict.fromkeys(a + b))


def _prefix(a: Facts, b: Facts) -> list[Conjunction] | None:
    if a.prefix is None and b.prefix is None:
        return None
    ours, theirs = a.prefix or [], b.prefix or []
    made = []
    for i in range(max(len(ours), len(theirs))):
        one = ours[i] if i < len(ours) else a.items or ()
        other = theirs[i] if i < len(theirs) else b.items or ()
        made.append(tuple(dict.fromkeys(one + other)))
    return made
