"""JSON Schema as grammars of YAML: what is written is read by PyYAML as a value that meets the schema."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lzsampler import Grammar
from schemas import TOKENS, walk

yaml = pytest.importorskip("yaml")
VECTORS = Path(__file__).with_name("vectors")


def grammar_of(schema: Any, **options: Any) -> Grammar:
    return Grammar.yaml_schema(schema, TOKENS, **options)


def read(text: str) -> Any:
    """Read YAML 1.1, in which dates are values of their own; a quoted text is never one."""
    return yaml.safe_load(text)


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "on": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 4}},
        "home": {"type": "object", "properties": {"city": {"type": "string"}, "no": {"type": "integer"}}},
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"x": {"type": "number"}, "z": {"type": "null"}},
                "required": ["x"],
            },
        },
        "grid": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    },
    "required": ["name"],
}
TEXT = """\
name: "Anna: # - x"
"on": true
tags:
  - "a"
  - "b c"
home:
  city: "Oslo"
  "no": 3
rows:
  - x: 1.5e+3
    z: null
  - x: -2
grid:
  - - 1
    - 2
  - []
  - - 3"""
VALUE = {
    "name": "Anna: # - x",
    "on": True,
    "tags": ["a", "b c"],
    "home": {"city": "Oslo", "no": 3},
    "rows": [{"x": 1500.0, "z": None}, {"x": -2}],
    "grid": [[1, 2], [], [3]],
}


def test_the_form_is_that_of_blocks() -> None:
    grammar = grammar_of(PERSON)
    assert read(TEXT) == VALUE
    assert grammar.match(TEXT) == "yes"
    assert grammar.source == {"yaml_schema": PERSON}
    assert grammar.match('name: ""\ntags: []\nhome: {}') == "yes"
    for wrong in (
        TEXT + "\n",
        TEXT.replace("\n  -", "\n-"),
        TEXT.replace('"on"', "on"),
        TEXT.replace("1.5e+3", "1.5e3"),
        TEXT.replace("1.5e+3", "15e+2"),
        "name: Anna",
        'name:  ""',
        '{"name": ""}',
        'name: ""\nname: ""',
        'name: ""\ntags:\n',
        'name: "\\ud83d\\ude00"',
        'name: "\u0085"',
        'name: "\u2028"',
        'name: "\ufeff"',
        'name: "a\nb"',
    ):
        assert grammar.match(wrong) != "yes", wrong


def test_scalars_and_empty_containers_are_in_the_line() -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"type": "integer"}, "-5"),
        ({"type": "null"}, "null"),
        ({"enum": ["yes", "a: b", None, 1e30, 1e-7, [1, {"a b": 2}]]}, '"yes"'),
        ({"enum": [1e30]}, "1.0e+30"),
        ({"const": 1e-7}, "1.0e-07"),
        ({"const": [1, {"a b": "\u0085"}]}, '[1, {"a b": "\\u0085"}]'),
        ({"type": "object", "maxProperties": 0}, "{}"),
        ({"type": "array", "maxItems": 0}, "[]"),
    ]
    for schema, text in rows:
        assert grammar_of(schema).match(text) == "yes", text
        expected = [schema["const"]] if "const" in schema else schema.get("enum")
        assert expected is None or read(text) in expected


def test_arrays_have_their_lengths() -> None:
    pairs = {
        "type": "array",
        "prefixItems": [{"const": 1}, {"const": 2}],
        "items": {"const": 3},
        "minItems": 1,
        "maxItems": 4,
    }
    grammar = grammar_of(pairs)
    texts = ["\n".join(f"- {item}" for item in (1, 2, 3, 3, 3)[:n]) for n in range(6)]
    assert [grammar.match(text) for text in ("[]", *texts[1:])] == ["no", "yes", "yes", "yes", "yes", "no"]
    some = grammar_of({"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1})
    assert [some.match(text) for text in ("{}", "a: 1", "b: []", "a: null\nb:\n  - 1")] == ["no", "yes", "yes", "yes"]


def test_patterns_leave_out_what_yaml_cannot_hold() -> None:
    dot = grammar_of({"type": "string", "pattern": "^.$"})
    for text, match in (
        ("a", "yes"),
        ("é", "yes"),
        ("\U0001f642", "yes"),
        ("\x7f", "no"),
        ("\x80", "no"),
        ("\ufeff", "no"),
    ):
        assert dot.match(f'"{text}"') == match, text
    assert grammar_of({"type": "string", "pattern": "^\\s$"}).match('"\u2028"') == "no"
    for pattern in ("a\u0085", "[\u0080-\u009f]", "\\ufeff"):
        with pytest.raises(ValueError, match="at #/pattern: a control character or a line end is not supported"):
            grammar_of({"pattern": pattern})
    assert grammar_of({"format": "date", "type": "string"}).match('"2024-02-29"') == "yes"


@pytest.mark.parametrize(
    "row", [json.loads(line) for line in (VECTORS / "schemas.jsonl").read_text(encoding="utf-8").splitlines()],
    ids=lambda row: row["name"],
)  # fmt: skip
def test_walks_through_real_schemas_are_valid(row: dict[str, Any]) -> None:
    check_walks(row["schema"], grammar_of(row["schema"]), random.Random(1), 12)


def check_walks(schema: Any, grammar: Grammar, rng: random.Random, n: int, steps: int = 300) -> int:
    validator = pytest.importorskip("jsonschema").Draft202012Validator(schema)
    ended = 0
    for _ in range(n):
        text = walk(rng, grammar, steps)
        if text is not None:
            ended += 1
            value = read(text)
            assert validator.is_valid(value), (schema, text, value)
    return ended


def test_everything_that_json_has_can_be_written() -> None:
    """Values of the official suite, with their names and texts, in the form of the schema of any value."""
    anything = grammar_of({}, closed=False)
    assert check_walks({}, anything, random.Random(3), 60, 60) > 10


_SCALARS = st.sampled_from([None, True, 0, -1, 1.5, "", "a", "yes", "- a", "a: b", "#", '"', "é\n"])
_LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda some: {"enum": some}, st.lists(_SCALARS, min_size=1, max_size=3)),
    st.sampled_from([{"type": name} for name in ("null", "boolean", "integer", "number")]),
    st.builds(lambda n: {"type": "string", "maxLength": n}, st.integers(0, 3)),
    st.sampled_from(
        [{"type": "string", "pattern": "^[a:# -]{0,3}$"}, {"type": "number", "minimum": 0.5, "maximum": 7}]
    ),
)


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(["a", "no", "x y", "ä", "~", "-", "a\tb", "1"]), inner, max_size=3)
    objects = st.builds(
        lambda of, open_: {
            "type": "object",
            "properties": of,
            **({"additionalProperties": {"const": 1}} if open_ else {}),
        },
        named,
        st.booleans(),
    )
    arrays = st.builds(lambda of, n: {"type": "array", "items": of, "maxItems": n}, inner, st.integers(0, 3))
    return objects | arrays | st.builds(lambda some: {"anyOf": some}, st.lists(inner, min_size=1, max_size=2))


@settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(st.recursive(_LEAVES, _larger, max_leaves=6), st.randoms(use_true_random=False))
def test_walks_through_random_schemas_are_valid(schema: Any, rng: random.Random) -> None:
    try:
        grammar = grammar_of(schema)
    except ValueError as error:
        if "nothing can meet" not in str(error):
            raise
        return
    check_walks(schema, grammar, rng, 3, 120)


def test_what_is_refused() -> None:
    for schema, message in (
        (
            {"type": "object", "propertyNames": {"maxLength": 3}},
            "at #/propertyNames: propertyNames is not supported for YAML",
        ),
        ({"properties": {"a" * 2000: {}}}, "schema must have names of at most 1,000 characters for YAML"),
        ({"not": {}}, "but at #/not: 'not' is not supported"),
        ("{", "schema must be JSON"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            grammar_of(schema)
        assert "\n" not in str(caught.value)
