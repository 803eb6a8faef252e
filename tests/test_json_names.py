"""Schemas that differ in names of properties: what is kept of one makes the same parts of another, and no others."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lzsampler import Grammar
from lzsampler.constraint.json_schema import forget_parts, parts_of
from lzsampler.constraint.yaml_schema import YamlTranslator
from schemas import TOKENS, grammar_of

VECTORS = Path(__file__).with_name("vectors")


def renamed(schema: Any, new: Callable[[str], str]) -> Any:
    """Return a schema with other names of properties and another description."""
    if isinstance(schema, list):
        return [renamed(item, new) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {"description": new("")}
    for keyword, value in schema.items():
        if keyword == "properties":
            made[keyword] = {new(name): renamed(inner, new) for name, inner in value.items()}
        else:
            made[keyword] = [new(name) for name in value] if keyword == "required" else renamed(value, new)
    return made


NAMED: list[Any] = [
    {"properties": {"a": {"type": "string"}, "b": {"const": "a"}, "c": {"enum": [{"a": 1}]}}, "required": ["b", "a"]},
    {"properties": {"a": {"properties": {"a": {}, "b": {"type": "string"}}}, "b": {"type": "string", "pattern": "a"}}},
    {"allOf": [{"properties": {"a": {"minimum": 3}}}, {"properties": {"a": {"type": "integer"}}}], "type": "object"},
    {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a", "b"], "additionalProperties": {}},
    {"oneOf": [{"properties": {"a": {"const": i}}, "required": ["a"], "type": "object"} for i in range(3)]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": {"$ref": "#/$defs/a"}, "b": {"type": "number"}}}}},
    {"properties": {"a": {"type": "boolean"}, "b": {"type": "array", "items": {"properties": {"c": {}}}}}},
]
ROWS = [json.loads(line) for line in (VECTORS / "schemas.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", [None, YamlTranslator])
@pytest.mark.parametrize("closed", [True, False])
def test_what_is_kept_of_a_schema_makes_the_same_parts_of_one_with_other_names(kind: Any, closed: bool) -> None:
    def arrays(schema: Any, depth: int) -> tuple[bytes, bytes, bytes]:
        rows, children, text = parts_of(schema, depth, closed, kind).arrays()
        return rows.tobytes(), children.tobytes(), text

    for schema in [*NAMED, *(row["schema"] for row in ROWS)]:
        expected = {}
        others = [renamed(schema, new) for new in (str, lambda name: f"{name} ä", lambda name: name + "x" * 90)]
        others.append(renamed(schema, lambda name: f'"{name}\n'))
        for i, other in enumerate(others):
            for depth in (2, 5):
                forget_parts()
                expected[i, depth] = arrays(other, depth)
        forget_parts()
        for i, other in enumerate(others):
            for depth in (5, 2):
                assert arrays(other, depth) == expected[i, depth]
    assert len({text for _, _, text in expected.values()}) > 3


def test_a_reference_through_a_name_is_followed_where_other_names_were_before() -> None:
    for name in ("a", "b"):
        schema = {
            "properties": {"a": {"type": "integer"}, "b": {"type": "null"}, "c": {"$ref": f"#/properties/{name}"}},
            "required": ["c"],
        }
        assert [grammar_of(schema).match(text) for text in ('{"c":1}', '{"c":null}')] == (
            ["yes", "no"] if name == "a" else ["no", "yes"]
        )
    swapped = {
        "properties": {"b": {"type": "integer"}, "a": {"type": "null"}, "c": {"$ref": "#/properties/b"}},
        "required": ["c"],
    }
    assert grammar_of(swapped).match('{"c":1}') == "yes"


@pytest.mark.parametrize("keyword", ["$defs", "definitions"])
def test_a_list_of_definitions_is_kept_for_equal_schemas_only(keyword: str) -> None:
    for name in ("x", "y"):
        schema = {
            keyword: [{"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]}],
            "type": "object",
            "properties": {name: {"$ref": f"#/{keyword}/0"}},
            "required": [name],
        }
        texts = f'{{"{name}":{{"x":null}}}}', f'{{"{name}":{{"y":null}}}}'
        assert [grammar_of(schema).match(text) for text in texts] == ["yes", "no"]


def test_refusals_name_the_places_of_the_schema_at_hand() -> None:
    for name in ("first", "second", "a/b"):
        pointer = name.replace("/", "~1")
        for value, reason in (
            (
                {"type": "string", "pattern": "a(?=b)"},
                rf"#/properties/{pointer}/pattern: .*at character 1 of the pattern",
            ),
            ({"type": "string", "minLength": 4, "maxLength": 2}, rf"#/properties/{pointer}/minLength"),
            ({"type": "string", "format": "nothing"}, rf"#/properties/{pointer}/format"),
            ({"enum": []}, rf"#/properties/{pointer}/enum: nothing can meet the schema: no value is left"),
        ):
            for _ in range(2):
                with pytest.raises(ValueError, match=reason):
                    grammar_of({"type": "object", "properties": {name: value, "other": {}}, "required": [name]})
    for name in ("short", "x" * 2_000):
        schema = {"properties": {name: {"type": "string"}}, "required": [name]}
        if name == "short":
            Grammar.yaml_schema(schema, TOKENS)
        else:
            with pytest.raises(ValueError, match="names of at most 1,000 characters for YAML"):
                Grammar.yaml_schema(schema, TOKENS)
    large: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]}
    for _ in range(2):
        large = {"type": "array", "prefixItems": [large] * 20, "minItems": 20, "items": False}
    assert grammar_of(large).match("[") == "beginning"
    with pytest.raises(ValueError, match="must not unroll to more than"):
        grammar_of(renamed(large, lambda name: "b" * 9_000))


def test_threads_translate_schemas_that_differ_in_names() -> None:
    wrong: list[str] = []

    def work(number: int) -> None:
        for i in range(60):
            name = f"n{number}_{i}"
            grammar = grammar_of({"properties": {name: {"type": "boolean"}}, "required": [name]})
            if grammar.match(f'{{"{name}": true}}') != "yes" or grammar.match('{"n": true}') != "no":
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
