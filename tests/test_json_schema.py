"""JSON Schema as grammars: against the official suite, against jsonschema, and what is refused."""

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lzsampler import Grammar
from lzsampler.constraint.json_schema import parts_of
from lzsampler.constraint.schema import Document
from lzsampler.constraint.schema_parts import MAX_WEIGHT
from lzsampler.constraint.yaml_schema import YamlTranslator
from schemas import TOKENS, accepts, forms, grammar_of, walk

VECTORS = Path(__file__).with_name("vectors")
FUNCTIONS = Path(__file__).parents[1] / "bench" / "data" / "functions.jsonl"


def lines(name: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (VECTORS / name).read_text(encoding="utf-8").splitlines()]


SCHEMAS = lines("schemas.jsonl")

# ---- the official suite ----


def counted(closed: bool) -> dict[str, dict[str, int]]:
    """Count what becomes of the suite, by file; nothing that is invalid may be allowed."""
    counts: dict[str, Counter[str]] = {}
    for row in lines("json_schema_suite.jsonl"):
        count = counts.setdefault(row["file"], Counter(supported=0))
        refused, grammar = "", None
        try:
            grammar = grammar_of(row["schema"], closed=closed)
        except ValueError as error:
            refused = str(error)
        count["refused" if refused else "supported"] += 1
        if grammar is None:
            assert re.match(r"schema must be as in docs/grammar.md, but at (#\S*): ", refused), refused
            assert "nothing can meet" not in refused or not row["valid"], row["about"]
            continue
        for value in row["invalid"]:
            assert not accepts(grammar, value), (row["file"], row["about"], value)
            count["kept out"] += 1
        for value in row["valid"]:
            count["written" if accepts(grammar, value) else "not written"] += 1
    return {name: dict(sorted(count.items())) for name, count in sorted(counts.items())}


def test_the_official_suite_has_no_invalid_instance_that_is_allowed() -> None:
    """The ratchet: which schemas are supported, and which valid instances can be written. It may only get better."""
    ratchet = json.loads((VECTORS / "json_schema_ratchet.json").read_text(encoding="utf-8"))
    assert {"closed": counted(True), "open": counted(False)} == ratchet


# ---- jsonschema ----


def oracle() -> Any:
    return pytest.importorskip("jsonschema").Draft202012Validator


@pytest.mark.parametrize("row", SCHEMAS, ids=lambda row: row["name"])
def test_samples_can_be_written_in_both_spacings_and_walks_are_valid(row: dict[str, Any]) -> None:
    grammar = grammar_of(row["schema"])
    for sample in row["samples"]:
        assert grammar.match(json.dumps(sample)) == "yes"
        assert grammar.match(json.dumps(sample, separators=(",", ":"))) == "yes"
        assert grammar.match(json.dumps(sample, indent=1)) == "no"
    check_walks(row["schema"], grammar, random.Random(1), 12)


@pytest.mark.parametrize("row", lines(FUNCTIONS), ids=lambda row: row["name"])
def test_the_function_calls_of_the_bench_are_supported(row: dict[str, Any]) -> None:
    check_walks(row["parameters"], grammar_of(row["parameters"]), random.Random(2), 6)


def check_walks(schema: Any, grammar: Grammar, rng: random.Random, n: int) -> None:
    """Every text that the grammar allows is JSON and meets the schema."""
    validator = oracle()(schema)
    ended = 0
    for _ in range(n):
        text = walk(rng, grammar)
        if text is not None:
            ended += 1
            value = json.loads(text)
            assert validator.is_valid(value), (schema, text)
            assert grammar.match(text) == "yes"
    assert ended


NAMES = ["a", "b", "ab", "ä"]
_SCALARS = st.sampled_from([None, True, False, 0, 1, -1, 2, 1.5, 10, "", "a", "ab", "b", '"', "ä\n"])
VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*NAMES, "c"]), inner, max_size=3),
    max_leaves=6,
)
_KEYWORDS: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["null", "boolean", "integer", "number", "string", ["string", "integer"]]),
    "enum": st.lists(_SCALARS, min_size=1, max_size=4),
    "const": _SCALARS,
    "minimum": st.sampled_from([0, 1, 1.5, -3]),
    "exclusiveMinimum": st.sampled_from([0, 1, 0.5]),
    "maximum": st.sampled_from([1, 2, 10, 1.5]),
    "multipleOf": st.sampled_from([1, 10]),
    "minLength": st.integers(0, 2),
    "maxLength": st.integers(0, 2),
    "pattern": st.sampled_from(["^a", "b$", "^[ab]*$", "^.\\s?$", "a"]),
}


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": named},
        optional={
            "required": st.lists(st.sampled_from(NAMES), max_size=2),
            "additionalProperties": inner,
            "minProperties": st.integers(0, 2),
            "maxProperties": st.integers(0, 3),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": st.integers(0, 2),
            "maxItems": st.integers(0, 3),
        },
    )
    both = st.builds(
        lambda keyword, some: {keyword: some},
        st.sampled_from(["anyOf", "allOf", "oneOf"]),
        st.lists(inner, min_size=1, max_size=3),
    )
    return objects | arrays | both


_LEAVES = st.dictionaries(st.sampled_from(sorted(_KEYWORDS)), st.none(), max_size=3).flatmap(
    lambda keys: st.fixed_dictionaries({key: _KEYWORDS[key] for key in keys})
)
RANDOM_SCHEMAS = st.recursive(_LEAVES | st.booleans(), _larger, max_leaves=5)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(RANDOM_SCHEMAS, st.lists(VALUES, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_random_schemas_allow_what_jsonschema_finds_valid(schema: Any, values: list[Any], rng: random.Random) -> None:
    """In both directions, where nothing is left out: a value can be written exactly if it is valid."""
    validator = oracle()(schema)
    try:
        grammar = grammar_of(schema, closed=False)
    except ValueError as error:
        if "nothing can meet" in str(error):
            assert not any(map(validator.is_valid, values))
        return
    for value in values:
        if len(str(value)) < 60:
            assert accepts(grammar, value) == validator.is_valid(value), value
    for _ in range(2):
        text = walk(rng, grammar, 80)
        assert text is None or validator.is_valid(json.loads(text)), text


_PATTERNS = st.lists(
    st.sampled_from(
        ["^", "$", "a", "b", "[ab]", '["\\\\]', "[^a]", ".", "\\d", "\\s", "\\n", "(a|b)", "a{2}", "*", "+", "|", "é"]
    ),
    max_size=6,
).map("".join)


@settings(deadline=None, max_examples=200)
@given(_PATTERNS, st.lists(st.text('ab1 \n"\\é', max_size=5), min_size=1, max_size=10))
def test_a_pattern_is_searched_for_in_the_value(pattern: str, texts: list[str]) -> None:
    """As ECMAScript does, whatever the escapes of JSON are. Python's $ is also before a line feed at the end."""
    try:
        grammar = grammar_of({"type": "string", "pattern": pattern})
    except ValueError:
        return
    for text in texts:
        found = re.search(pattern.replace("$", r"\Z"), text, re.ASCII) is not None
        assert (grammar.match(json.dumps(text, ensure_ascii=False)) == "yes") == found, (pattern, text)


def test_patterns_read_blanks_and_dots_as_ecmascript_does() -> None:
    blank, other = (grammar_of({"type": "string", "pattern": pattern}) for pattern in (r"^\s$", r"^[^\s]$"))
    for text in (" ", "\t", "\u00a0", "\ufeff", "\u2028"):
        assert blank.match(json.dumps(text, ensure_ascii=False)) == "yes"
        assert other.match(json.dumps(text, ensure_ascii=False)) == "no"
    dot = grammar_of({"type": "string", "pattern": "^.$"})
    assert [dot.match(json.dumps(text, ensure_ascii=False)) for text in ("\r", "\u2028", "\x00", "🙂")] == [
        "no",
        "no",
        "yes",
        "yes",
    ]


LENGTHS = [
    ("^[a-z]+$", 2, 3, ["ab", "abc"], ["a", "abcd"]),
    (r'^a["\\]*$', 0, 3, ["a", 'a"\\'], ['a"""']),
    ("^x", 2, None, ["xy", "x" * 50], ["x"]),
    ("^[A-Z]{3}-\\d{4}$", 1, 8, ["ABC-1234"], ["ABC-123"]),
    ("^(a|bc)$", 0, 2, ["a", "bc"], ["b"]),
]


@pytest.mark.parametrize(("pattern", "low", "high", "yes", "no"), LENGTHS, ids=[row[0] for row in LENGTHS])
def test_a_pattern_with_lengths(pattern: str, low: int, high: int | None, yes: list[str], no: list[str]) -> None:
    schema = {"type": "string", "pattern": pattern, "minLength": low} | ({} if high is None else {"maxLength": high})
    grammar = grammar_of(schema)
    assert all(accepts(grammar, text) for text in yes)
    assert not any(accepts(grammar, text) for text in no)


# ---- formats ----

FORMATS = [
    ("date", ["2024-02-29", "2000-02-29", "2023-12-31"], ["2023-02-29", "1900-02-29", "2023-04-31", "0000-01-01"]),
    ("time", ["23:59:59Z", "00:00:00.5+01:30"], ["24:00:00Z", "12:00:00", "12:00:60Z"]),
    ("date-time", ["2024-02-29T12:00:00Z"], ["2024-02-30T12:00:00Z", "2024-02-29 12:00:00Z"]),
    ("duration", ["P1Y2M3DT4H5M6S", "P2W", "PT0S"], ["P", "PT", "P1Y2D", "P1W2D"]),
    ("email", ["a.b+c@example.org"], ["a..b@example.org", ".a@b.c", "a@-b.c", "a@b..c"]),
    ("hostname", ["www.example.org", "a-b"], ["-a", "a-", "a..b", "a_b", "a" * 64]),
    ("ipv4", ["0.0.0.0", "255.255.255.255"], ["256.0.0.1", "01.2.3.4", "1.2.3"]),
    (
        "ipv6",
        ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "fe80::1:2"],
        ["1:2", ":::", "1::2::3"],
    ),
    ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567e89b12d3a456426614174000"]),
    ("uri", ["https://a.example/b?c=d#e", "mailto:a@b.c", "http://[::1]:80/"], ["a/b", "http://a b", "http://a/%zz"]),
    ("json-pointer", ["", "/a~0b/~1", "/"], ["a", "/~2"]),
]


@pytest.mark.parametrize(("name", "yes", "no"), FORMATS, ids=[row[0] for row in FORMATS])
def test_formats(name: str, yes: list[str], no: list[str]) -> None:
    grammar = grammar_of({"type": "string", "format": name})
    assert [text for text in (*yes, *no) if accepts(grammar, text)] == yes


# ---- objects and arrays ----


def test_objects_have_each_choice_of_optional_properties_in_order() -> None:
    """The twin is the list of all texts; masks are equal, since what follows is."""
    for required in ([], ["b"], ["a", "d"]):
        schema = {"properties": {name: {"const": 1} for name in "abcd"}, "required": required, "type": "object"}
        grammar = grammar_of(schema)
        subsets = [[name for k, name in enumerate("abcd") if i >> k & 1] for i in range(16)]
        texts = ["{" + ",".join(f'"{name}":1' for name in some) + "}" for some in subsets if {*required} <= {*some}]
        choices = Grammar.choices(texts, TOKENS)
        for text in [
            "{" + ",".join(f'"{name}":1' for name in some) + "}" for some in [*subsets, ["b", "a"], ["a", "a"]]
        ]:
            for end in range(len(text) + 1):
                assert grammar.match(text[:end]) == choices.match(text[:end]), text[:end]
    least = grammar_of({"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1})
    assert [least.match(text) for text in ("{}", '{"a":1}', '{"b":1}', '{"a":1,"b":1}')] == ["no", "yes", "yes", "yes"]


def test_what_a_schema_leaves_open_is_left_out_unless_asked_for() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    for closed, found in ((True, "no"), (False, "yes")):
        grammar = grammar_of(schema, closed=closed)
        assert [grammar.match(text) for text in ('{"a": 1}', '{"a": 1, "b": [2]}')] == ["yes", found]
        tuples = grammar_of({"type": "array", "prefixItems": [{"const": 1}]}, closed=closed)
        assert [tuples.match(text) for text in ("[]", "[1]", "[1, 2]", "[2]")] == ["yes", "yes", found, "no"]
    assert grammar_of({"type": "object"}).match('{"any": {"thing": [1, null]}}') == "yes"
    assert grammar_of({**schema, "additionalProperties": True}).match('{"b": 2}') == "yes"


def test_a_text_with_a_byte_order_mark_and_one_that_is_no_utf_8() -> None:
    for text in ("\ufeff{}", b"\xef\xbb\xbf{}"):
        assert Grammar.json_schema(text, TOKENS).match("1") == "yes"
    for data, byte in ((b'\xff\xfe{"a":1}', 0), (b'{"a":"\xe9"}', 6), ("{}".encode("utf-16"), 0)):
        with pytest.raises(ValueError, match=f"schema must be JSON in UTF-8, but byte {byte} is not: convert it first"):
            Grammar.json_schema(data, TOKENS)


def test_other_properties_have_other_names() -> None:
    """However a name is spelled: one with an escape that is not needed would be read as the name without it."""
    grammar = grammar_of(
        {"type": "object", "properties": {"ab": False, "a\n": {}, "é": {}}, "additionalProperties": {"const": 1}}
    )
    assert grammar.match('{"a\\n": [], "é": 2, "a": 1, "abc": 1, "b": 1, "": 1}') == "yes"
    for name in ("ab", "\\u0061b", "a\\u000a", "a\\n", "é", "\\u00e9"):
        assert grammar.match(f'{{"x": 1, "{name}": 1}}') == "no", name


def test_a_schema_that_refers_to_itself_is_unrolled_to_a_depth() -> None:
    tree = {
        "$ref": "#/$defs/n",
        "$defs": {
            "n": {
                "type": "object",
                "properties": {"c": {"type": "array", "items": {"$ref": "#/$defs/n"}}},
                "required": ["c"],
            }
        },
    }

    def nested(n: int) -> str:
        return '{"c":[' + nested(n - 1) + "]}" if n else '{"c":[]}'

    for depth in (1, 2, 5):
        grammar = grammar_of(tree, depth=depth)
        assert [grammar.match(nested(n)) for n in (depth - 1, depth)] == ["yes", "no"]
    endless = {"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]}
    with pytest.raises(
        ValueError, match="at #/properties/x: nothing can meet the schema: it contains itself without end"
    ):
        grammar_of(endless)
    for schema in ({"$ref": "#"}, {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}):
        with pytest.raises(ValueError, match="leads back to itself without a value in between"):
            grammar_of(schema)
    kinds = {
        "oneOf": [
            {"type": "object", "properties": {"in": {"$ref": "#"}, "k": {"const": k}}, "required": ["in", "k"]}
            for k in "ab"
        ]
        + [{"type": "null"}]
    }
    assert grammar_of(kinds).match('{"in": {"in": null, "k": "b"}, "k": "a"}') == "yes"


@pytest.mark.parametrize("given", [{"const": True}, {"enum": [True, "a", 1.5, []]}])
def test_listed_values_of_another_type_are_no_values(given: Any) -> None:
    with pytest.raises(ValueError, match="nothing can meet the schema"):
        grammar_of({"type": "null", **given})
    assert grammar_of({"type": ["null", "boolean"], **given}).match("true") == "yes"


def test_a_circle_of_references_may_be_entered_in_its_middle() -> None:
    """No reference of the circle leads to the middle, which the search for circles comes to first."""

    def schema(required: list[str]) -> dict[str, Any]:
        inner = {"type": "object", "properties": {"y": {"$ref": "#/$defs/a"}}, "required": required}
        outer = {"type": "object", "properties": {"x": inner}, "required": ["x"]}
        return {"$ref": "#/$defs/a/properties/x", "$defs": {"a": outer}}

    grammar = grammar_of(schema([]), depth=2)
    nested = ['{"y": {"x": ' * n + "{}" + "}}" * n for n in range(4)]
    assert [grammar.match(text) for text in nested] == ["yes", "yes", "yes", "no"]
    with pytest.raises(ValueError, match="nothing can meet the schema: it contains itself without end"):
        grammar_of(schema(["y"]))
    both = {"anyOf": [{"$ref": "#/$defs/b/items"}, {"$ref": "#/$defs/b"}], "$defs": {"b": {"type": "array"}}}
    both["$defs"]["b"]["items"] = {"type": "object", "properties": {"z": {"$ref": "#/$defs/b"}}}  # type: ignore[index]
    assert [grammar_of(both, depth=2).match(text) for text in ('{"z": [{"z": []}]}', '[{"z": [{"z": [{}]}]}]')] == [
        "yes",
        "no",
    ]


def test_telling_the_schemas_of_one_of_apart_has_a_limit() -> None:
    """What tells them apart at the top is found first, whatever else there is, and the work has an end."""

    def wide(level: int) -> dict[str, Any]:
        names = [f"p{i}" for i in range(40)]
        of = {"$ref": f"#/$defs/{level - 1}"}
        return {"type": "object", "properties": dict.fromkeys(names, of), "required": names}

    defs = {"0": {"type": "string"}, **{str(level): wide(level) for level in range(1, 5)}}
    like = {"oneOf": [{"$ref": "#/$defs/4"}, {"$ref": "#/$defs/4"}], "$defs": defs}
    with pytest.raises(ValueError, match="at #/oneOf: to tell the schemas of oneOf apart takes more than 200,000 comp"):
        grammar_of(like)
    kinds = [wide(4) for _ in range(3)]
    for k, kind in enumerate(kinds):
        kind["properties"] = {**kind["properties"], "kind": {"const": k}}
        kind["required"] = [*kind["required"], "kind"]
    assert len(Document({"oneOf": kinds, "$defs": defs}, True).ways(("#",))) == 3


def test_references() -> None:
    schema = {
        "$id": "https://example.org/s",
        "$defs": {"a/b": {"const": 1}, "c%d": {"const": 2}, "e": {"$anchor": "here", "const": 3}},
        "type": "array",
        "prefixItems": [
            {"$ref": "#/$defs/a~1b"},
            {"$ref": "#/$defs/c%25d"},
            {"$ref": "#here"},
            {"$ref": "https://example.org/s#/prefixItems/0"},
        ],
    }
    assert grammar_of(schema).match("[1, 2, 3, 1]") == "yes"
    assert grammar_of(schema).match("[1, 2, 2") == "no"


def test_schemas_that_all_hold_are_merged() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"enum": ["x", "y", 1]}},
        "allOf": [
            {"properties": {"a": {"maximum": 4}, "b": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"const": "y"}}, "additionalProperties": {"minimum": 4}},
        ],
    }
    grammar = grammar_of(schema)
    assert [
        text
        for text in ('{"a": 3}', '{"a": 4}', '{"a":4,"b":"y"}', '{"a":4,"b":"x"}', '{"b":"y"}')
        if grammar.match(text) == "yes"
    ] == [
        '{"a": 4}',
        '{"a":4,"b":"y"}',
    ]


# ---- what is passed over, and limits ----


def test_annotations_are_passed_over() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.org/a",
        "$comment": "c",
        "title": "t",
        "description": "d",
        "default": 1,
        "examples": [1],
        "deprecated": True,
        "readOnly": True,
        "writeOnly": True,
        "contentEncoding": "base64",
        "contentMediaType": "text/plain",
        "$anchor": "x",
        "$defs": {"unused": {"not": {}}},
        "minContains": 3,
        "then": {},
        "discriminator": {"propertyName": "k"},
        "const": 1,
        "uniqueItems": False,
    }
    assert grammar_of(schema).match("1") == "yes"


def test_large_values_of_an_enum_are_multiples() -> None:
    assert grammar_of({"enum": [1e30, 15, 10**40], "multipleOf": 10}).match(str(10**40)) == "yes"
    assert grammar_of({"enum": [10**40 + 1, 15, 20], "multipleOf": 10}).match(str(10**40 + 1)) == "no"


def test_hostile_schemas_are_refused_or_cheap() -> None:
    many = grammar_of({"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(10_000)}})
    assert many.match('{"p0": 1, "p777": 2, "p9999":3}') == "yes"
    assert many.match('{"p777": 1, "p0"') == "no"
    words = [f"choice {i}" for i in range(50_000)]
    huge = grammar_of({"enum": words})
    assert [huge.match(f'"{word}"') for word in (words[0], words[-1], "choice")] == ["yes", "yes", "no"]
    itself: dict[str, Any] = {}
    itself["items"] = itself
    deep: Any = True
    for _ in range(99):
        deep = {"type": "array", "items": deep}
    with pytest.raises(ValueError, match="nested at most 200 deep, and must not contain itself"):
        grammar_of(itself)
    assert grammar_of(deep).match("[" * 99 + "]" * 99) == "yes"
    for _ in range(2):
        deep = {"type": "array", "items": deep}
    with pytest.raises(ValueError, match="values are nested more than 100 deep"):
        grammar_of(deep)
    with pytest.raises(ValueError, match="schema must not be nested so deep"):
        grammar_of('{"items":' * 100_000 + "true" + "}" * 100_000)
    branching = {"type": "object", "properties": {name: {"$ref": "#"} for name in "abcdef"}}
    with pytest.raises(
        ValueError, match=f"must not unroll to more than {MAX_WEIGHT:,} operations: set depth lower than 9"
    ):
        grammar_of(branching, depth=9)
    assert grammar_of(branching, depth=3).match('{"a": {"b": {"c": {}}}}') == "yes"
    long = {"type": "object", "properties": {"a" * 5000: {}}, "additionalProperties": True}
    with pytest.raises(ValueError, match="not unroll to more than"):
        grammar_of(long)
    ways = {"allOf": [{"anyOf": [{"minimum": i}, {"maxLength": i}]} for i in range(20)]}
    with pytest.raises(ValueError, match="more than 2,000 combinations"):
        grammar_of(ways)
    counts: Any = {"type": "string", "maxLength": 1000}
    for _ in range(4):
        counts = {"type": "array", "items": counts, "maxItems": 1000}
    with pytest.raises(ValueError, match="counted repetitions are nested too deep"):
        grammar_of(counts)


def test_a_key_that_is_there_twice_is_refused() -> None:
    text = '{"properties": {"a": {"type": "string", "maxLength": 3, "type": "null"}}, "type": "object"}'
    with pytest.raises(ValueError, match=r"^schema must have each key of an object once, but one has 'type' twice$"):
        grammar_of(text)


def test_wrong_arguments() -> None:
    for schema, message in (
        ("{", "schema must be JSON: Expecting"),
        ('{"minimum": NaN}', "NaN is not a number of JSON"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            grammar_of(schema)
    nothings: list[Any] = [[], 3, None]
    for wrong in nothings:
        with pytest.raises(TypeError, match="schema must be a dict, true, false or JSON text"):
            grammar_of(wrong)
    with pytest.raises(ValueError, match="but at #: a schema is an object, true or false, got 3"):
        grammar_of("3")
    for depth in (0, 33):
        with pytest.raises(ValueError, match="depth must be"):
            grammar_of({}, depth=depth)
    with pytest.raises(TypeError, match="closed must be"):
        grammar_of({}, closed=1)
    with pytest.raises(TypeError, match="vocabulary must be a Model, TokenBytes, Spelling or the `lz` of an LZLlama"):
        Grammar.json_schema({}, "model.gguf")  # type: ignore[arg-type]
    grammar = grammar_of(b'{"const": "a"}')
    assert grammar.source == {"json_schema": {"const": "a"}}
    assert repr(grammar) == "<Grammar: ('json_schema', {'const': 'a'})>"
    assert forms({"a": 1, "b": 2}) == ['{"a": 1, "b": 2}', '{"b": 2, "a": 1}']


def test_a_schema_that_comes_again_is_translated_once_and_others_are_not_taken_for_it() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1, "x"]}}, "required": ["a"]}
    first = parts_of(schema, 5, True)
    assert parts_of(json.loads(json.dumps(schema)), 5, True) is first
    others: list[Any] = [
        {"type": "object", "properties": {"a": {"enum": [True, "x"]}}, "required": ["a"]},  # True == 1
        {"type": "object", "properties": {"a": {"enum": ["x", 1]}}, "required": ["a"]},
        {"type": "object", "required": ["a"], "properties": {"a": {"enum": [1, "x"]}}},
    ]
    for other in others:
        assert parts_of(other, 5, True) is not first
    assert parts_of(schema, 4, True) is not first
    assert parts_of(schema, 5, False) is not first
    assert parts_of(schema, 5, True, YamlTranslator) is not first
    assert grammar_of(others[0]).match('{"a":true}') == "yes"
    assert grammar_of(others[0]).match('{"a":1}') == "no"
    schema["properties"]["a"]["enum"].append(2)  # type: ignore[index]
    assert grammar_of(schema).match('{"a":2}') == "yes"
    for _ in range(2):  # an error is not kept, and says the same again
        with pytest.raises(ValueError, match=r"#/properties/a/not: 'not' is not supported"):
            parts_of({"properties": {"a": {"not": {}}}}, 5, True)
    for number in range(200):
        parts_of({"const": number}, 5, True)
    assert parts_of(schema, 5, True) is not first
