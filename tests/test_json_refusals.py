"""Schemas that are refused: the place and the reason."""

import re
from typing import Any

import pytest

from schemas import grammar_of

REFUSED: list[tuple[Any, str, str]] = [
    ({"properties": {"a/b": {"not": {}}}}, "#/properties/a~1b/not", "'not' is not supported: say what is allowed"),
    ({"if": {}, "then": {}}, "#/if", "cases as anyOf"),
    ({"patternProperties": {}}, "#/patternProperties", "name the properties"),
    ({"dependentRequired": {}}, "#/dependentRequired", "cases as anyOf"),
    ({"unevaluatedProperties": False}, "#/unevaluatedProperties", "use additionalProperties"),
    ({"contains": {}}, "#/contains", "describe all items"),
    ({"$dynamicRef": "#a"}, "#/$dynamicRef", "use $ref"),
    ({"type": "string", "nullable": True}, "#/nullable", "not a keyword of JSON Schema"),
    ({"additionalItems": False}, "#/additionalItems", "prefixItems"),
    ({"items": [{}]}, "#/items", "name it prefixItems"),
    ({"x": 1}, "#/x", "not a supported keyword"),
    ({"items": {"$id": "a"}}, "#/items/$id", "at the top only"),
    ({"type": "float"}, "#/type", "type must be one of"),
    ({"type": []}, "#/type", "type must be one of"),
    ({"enum": 1}, "#/enum", "must be a list"),
    ({"minLength": -1}, "#/minLength", "integer from 0"),
    ({"minLength": 1e9}, "#/minLength", "integer from 0"),
    ({"maxItems": "3"}, "#/maxItems", "integer from 0"),
    ({"minimum": "3"}, "#/minimum", "must be a number"),
    ({"minimum": 1e300}, "#/minimum", "more than 100 digits"),
    ('{"minimum": 1.%s1}' % ("0" * 100), "#/minimum", "more than 100 digits"),
    ('{"const": [1e400]}', "#/const/0", "most readers of JSON cannot hold"),
    ({"exclusiveMinimum": True}, "#/exclusiveMinimum", "must be a number"),
    ({"multipleOf": 3}, "#/multipleOf", "1, 10, 100"),
    ({"multipleOf": 0.01}, "#/multipleOf", "1, 10, 100"),
    ({"pattern": 1}, "#/pattern", "must be a string"),
    (
        {"items": {"pattern": "a(?=b)"}},
        "#/items/pattern",
        "look-around is not supported: write out what may stand there (at character 1 of the pattern)",
    ),
    (
        {"pattern": "é(?=b)"},
        "#/pattern",
        "look-around is not supported: write out what may stand there (at character 1 of the pattern)",
    ),
    (
        '{"oneOf": [{"const": 0.1}, {"const": 0.10000000000000000001}]}',
        "#/oneOf",
        "a value may meet both schemas 0 and 1 of oneOf",
    ),
    (
        '{"oneOf": [{"type": "number", "maximum": 0.1}, {"type": "number", "minimum": 0.10000000000000000001}]}',
        "#/oneOf",
        "a value may meet both schemas 0 and 1 of oneOf",
    ),
    (
        {"pattern": "a\\b"},
        "#/pattern",
        "a word boundary, is not supported: write out what may stand on both sides (at character 1 of the pattern)",
    ),
    ({"pattern": "\\Aa"}, "#/pattern", "an anchor, is not supported here: write"),
    ({"pattern": "a\\x{41}"}, "#/pattern", "\\x{ is not ECMAScript: write \\xHH, \\uHHHH or \\u{H...} (at character 1"),
    ({"pattern": "[\\x{41}]"}, "#/pattern", "\\x{ is not ECMAScript"),
    ({"pattern": "\\U00000041"}, "#/pattern", "\\U is not ECMAScript"),
    ({"pattern": "a+b+", "maxLength": 3}, "#/pattern", "does not go with these lengths"),
    ({"type": "string", "pattern": "^a$", "minLength": 2}, "#/pattern", "does not go with these lengths"),
    ({"format": "regex"}, "#/format", "is not one of date, time"),
    ({"format": "date", "pattern": "^2"}, "#/format", "does not go with a pattern"),
    ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, "#/allOf/1/pattern", "write both as one"),
    ({"enum": ["a"], "pattern": "a"}, "#/pattern", "does not go with the values at #/enum"),
    ({"uniqueItems": True}, "#/uniqueItems", "not supported where there may be two"),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "#/oneOf", "a value may meet both schemas 0 and 1 of oneOf"),
    ({"anyOf": []}, "#/anyOf", "must be a list of schemas"),
    ({"properties": []}, "#/properties", "must be an object"),
    ({"required": "a"}, "#/required", "must be a list of names"),
    ({"additionalProperties": 3}, "#/additionalProperties", "a schema is an object, true or false"),
    ({"minProperties": 3}, "#/minProperties", "minProperties 3 is not supported"),
    ({"properties": {"a": {}}, "maxProperties": 1, "additionalProperties": True}, "#/maxProperties", "maxProperties 1"),
    ({"properties": {"a": {}}, "propertyNames": {}}, "#/propertyNames", "propertyNames is not supported where"),
    ({"$ref": "other.json"}, "#/$ref", "is not in this schema: put its target into $defs"),
    ({"$ref": "#/$defs/a"}, "#/$ref", "leads nowhere"),
    ({"$ref": "#a"}, "#/$ref", "an unknown anchor"),
    ({"$ref": 3}, "#/$ref", "must be a string"),
    ({"minimum": float("nan")}, "#/minimum", "nan is not a number of JSON"),
    ({"const": {1: 2}}, "#/const", "the names of an object must be strings, got 1"),
    ({"const": {1, 2}}, "#/const", "is not a value of JSON"),
    ({"properties": {"\ud800": {}}}, "#/properties", "lone surrogate at 0"),
    ({"const": "a\udc00"}, "#/const", "lone surrogate at 1"),
    ({"properties": {"a/b~": {"default": float("inf")}}}, "#/properties/a~1b~0/default", "is not a number of JSON"),
    ({"const": 10**400}, "#/const", "most readers of JSON cannot hold"),
    (
        {"$ref": "#a", "$defs": {"x": {"const": {"$anchor": "a", "type": "integer"}}}},
        "#/$ref",
        "an unknown anchor",
    ),
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/definitions/s",
            "type": "integer",
            "definitions": {"s": {"type": ["string", "integer"]}},
        },
        "#/$ref",
        "the draft that $schema names ignores the keywords beside $ref",
    ),
    (False, "#", "nothing can meet the schema: false allows nothing"),
    ({"enum": []}, "#/enum", "nothing can meet the schema: no value is left"),
    (
        {"type": "string", "minLength": 2, "maxLength": 1},
        "#/minLength",
        "nothing can meet the schema: minLength is more",
    ),
    ({"type": "integer", "minimum": 2, "maximum": 1}, "#/minimum", "nothing can meet the schema: no number"),
    ({"type": "integer", "exclusiveMinimum": 1, "maximum": 1.5}, "#/exclusiveMinimum", "nothing can meet the schema"),
    ({"allOf": [{"type": "string"}, {"type": "null"}]}, "#", "no value meets all the requirements here"),
    ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "#/properties/a", "false allows nothing"),
    ({"type": "array", "minItems": 2, "maxItems": 1}, "#/minItems", "there cannot be so many items"),
]


@pytest.mark.parametrize(("schema", "pointer", "reason"), REFUSED, ids=[str(row[0])[:40] for row in REFUSED])
def test_what_is_not_supported_is_refused_with_its_place(schema: Any, pointer: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as caught:
        grammar_of(schema)
    assert str(caught.value).startswith(f"schema must be as in docs/grammar.md, but at {pointer}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('{"const": 1e-99999999999999999999999999}', "an exponent has at most 4 digits, got 1e-9"),
        ('{"enum": [1e-3000000], "multipleOf": 1}', "an exponent has at most 4 digits, got 1e-3000000"),
        ('{"enum": [1e-300], "multipleOf": 1}', "at #/enum: nothing can meet the schema"),
        ('{"type": "integer", "enum": ["a"]}', "at #/enum: nothing can meet the schema: no value meets the rest"),
        ('{"allOf": [{"const": 1}, {"minimum": 2}]}', "at #/allOf/0/const: nothing can meet the schema"),
    ],
)
def test_values_that_meet_nothing_are_refused_where_they_stand(schema: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        grammar_of(schema)
