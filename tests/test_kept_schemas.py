"""The parts of the schemas that were translated last are kept: what is refused without them is refused with them."""

from typing import Any

import numpy as np
import pytest

from lzsampler import Grammar
from lzsampler.constraint.json_schema import forget_parts
from schemas import TOKENS


def test_a_schema_of_parts_that_occur_again_and_again_is_refused() -> None:
    """Written out, it would be endless; Python has each part once."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(40):
        schema = {"allOf": [schema, schema]}
    with pytest.raises(ValueError, match="at most 1,000,000 values"):
        Grammar.json_schema(schema, TOKENS)


def test_what_is_refused_does_not_depend_on_what_was_translated_before() -> None:
    three = np.float64(3.0)
    assert Grammar.json_schema({"type": "number", "minimum": three}, TOKENS).match("3") == "yes"
    with pytest.raises(ValueError, match="is not a value of JSON"):
        Grammar.json_schema({"type": "number", "minimum": three.tobytes()}, TOKENS)


def endless() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    return schema


def again_and_again() -> list[Any]:
    """Written out, it would be endless; Python has each list once."""
    values: list[Any] = []
    for _ in range(40):
        values = [values, values]
    return values


class Alike:
    """A key that says that it is another one."""

    def __hash__(self) -> int:
        return hash("title")

    def __eq__(self, other: object) -> bool:
        return other == "title"


REFUSED: list[Any] = [
    {"properties": {"a": {"type": "null"}}, "required": ["a"], Alike(): "x"},
    {"properties": ((0, {"type": "null"}),), "required": (0,)},
    {"properties": {"a": {"type": "null"}}, "required": (0,)},
    {"properties": {1: {"type": "null"}}, "required": ["a"]},
    {"properties": {"\ud800": {"type": "null"}}, "required": ["\ud800"]},
    {"properties": {"a": {"type": "null"}}, "required": ["a"], "description": float("nan")},
    {"properties": {"a": {"type": "null"}}, "required": ["a"], "default": {"b": [b"bytes"]}},
    {"properties": {"a": {"type": "null"}}, "required": ["a"], "title": "\udc00"},
    {"properties": {"a": {"type": "null"}}, "required": ["a"], "examples": again_and_again()},
    {"properties": {"a": {"enum": again_and_again()}}, "required": ["a"]},
    {"properties": {"a": {"type": "null"}}, "required": [None]},
    endless(),
]


@pytest.mark.parametrize("schema", REFUSED)
def test_a_schema_is_checked_as_well_where_one_of_its_shape_came_before(schema: Any) -> None:
    reasons = []
    for before in (None, {"properties": {"a": {"type": "null"}}, "required": ["a"]}):
        forget_parts()
        if before is not None:
            assert Grammar.json_schema(before, TOKENS).match('{"a":null}') == "yes"
        with pytest.raises(ValueError, match="schema must") as error:
            Grammar.json_schema(schema, TOKENS)
        reasons.append(str(error.value))
    assert reasons[0] == reasons[1]


def test_a_name_that_says_it_is_equal_to_another_one() -> None:
    class Equal(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            return True

    for name in ("a", Equal("b")):
        grammar = Grammar.json_schema({"properties": {name: {"type": "null"}}, "required": [name]}, TOKENS)
        assert grammar.match(f'{{"{str.__str__(name)}":null}}') == "yes"
