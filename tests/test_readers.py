"""Readers: what each format gives, reasoning apart from answers, paths, and rows of any shape."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runs
from lzsampler.auditing.formats import FORMATS, ROW_FORMATS, by_name
from lzsampler.auditing.reading import decode
from lzsampler.auditing.reading.format import Format, Source
from lzsampler.auditing.reading.path import parse, values
from lzsampler.auditing.reading.read import records_of
from lzsampler.auditing.reading.shard import find
from lzsampler.auditing.records import BadRecord, Record
from lzsampler.decoding.reasoning import split
from transcripts import BAD, CASES, CHAT, RESPONSES, SHAREGPT, USER, Text, Write, everything, jsonl, said, texts, told


@pytest.mark.parametrize("fast", [True, False], ids=["orjson", "json"])
@pytest.mark.parametrize(
    ("format", "name", "data", "expected", "bad"), CASES, ids=[f"{c[0]}-{c[1][-6:]}" for c in CASES]
)
def test_a_format(
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    fast: bool,
    format: str,
    name: str,
    data: bytes,
    expected: list[Text],
    bad: int,
) -> None:
    if not fast:
        monkeypatch.setattr(decode, "_orjson", lambda: None)
    path = write(name, data)
    shards, unread = find(path)
    assert [shard.format for shard in shards] == [format]
    assert not unread
    records, unread = everything(path)
    assert [told(record) for record in records] == expected
    assert len(unread) == bad
    assert everything(path, format=format) == (records, unread)
    assert {record.file for record in records} == {str(path)}
    packed = write(name + ".gz", gzip.compress(data))
    again, _ = everything(packed)
    assert [told(record) for record in again] == expected


def test_every_format_is_tested() -> None:
    tested = {case[0] for case in CASES} | {"lighteval", "llama-slot"}
    assert tested == set(FORMATS)
    document = (Path(__file__).parents[1] / "docs" / "formats.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in document for name in FORMATS)


def test_bad_records_say_where_and_why(write: Write) -> None:
    _, bad = everything(write("c.jsonl", CHAT))
    assert [(record.line, record.reason) for record in bad] == [
        (3, "not JSON: Expecting ':' delimiter at character 22 (it is cut off)"),
        (4, "the conversation has no message of the model"),
    ]
    _, bad = everything(write("s.json", json.dumps(SHAREGPT).encode()))
    assert [(record.line, record.reason) for record in bad] == [
        (0, "element 1: not in the form of sharegpt: the conversation is a text")
    ]
    _, bad = everything(write("r.jsonl", RESPONSES))
    assert bad[0].reason == "the request failed: boom"
    _, bad = everything(write("v.json", json.dumps({"total_output_tokens": 1, "request_throughput": 2}).encode()))
    assert "--save-detailed" in bad[0].reason
    _, bad = everything(write("samples_x.jsonl", jsonl({"doc_id": 0, "doc": {}, "resps": [[[-1.5, True]]]})))
    assert [record.reason for record in bad] == [
        "nothing was generated: the file contains log-likelihoods of given answers"
    ]


ANOTHER_FORM: dict[str, Any] = {  # a row of each, of which openai-chat, lm-eval and others said nothing
    "error": {"error": "timeout", "id": "x7"},
    "completion": {"completion": "loop"},
    "prompt": {"prompt": "q"},
    "answer": {"answer": "x"},
    "unknown": {"foo": 1},
    "empty": {},
    "list": [1],
    "number": 5,
    "null": None,
}
SKIPPED: dict[str, list[Any]] = {  # rows in the form of the format that hold no text of the model
    "openai-chat": [{"role": "user", "content": "q"}, {"role": "assistant", "content": None, "tool_calls": [{}]}],
    "sharegpt": [{"from": "human", "value": "q"}],
    "llama-webui": [
        {"type": "session", "harness": "llama.app"},
        {"type": "message", "message": {"role": "user", "content": "q"}},
        {"type": "another kind of line"},
    ],
    "lm-eval": [{"doc_id": 7, "doc": {}, "resps": [["a"]], "filter": "flexible"}],
    "sillytavern": [
        {"user_name": "u", "character_name": "c"},
        {"chat_metadata": {}},
        {"name": "u", "is_user": True, "mes": "q"},
        {"name": "n", "is_user": False, "is_system": True, "mes": "a note"},
    ],
}


TEXTS = ("text", "transcript")  # formats that have no rows


def lines_of(name: str, data: bytes) -> tuple[str, list[bytes]]:
    """Return the name and the lines of a file of lines with the rows of a case."""
    if name.endswith(".jsonl"):
        return name, data.splitlines(keepends=True)
    if name.endswith(".csv"):
        return "x.jsonl", [jsonl({"[p one] q": "a", "Score": "1"})]
    if not name.endswith(".json"):
        return name, []
    rows = json.loads(data)
    return "x.jsonl", [jsonl(row) for row in (rows if isinstance(rows, list) else [rows])]


GOOD = {case[0]: lines_of(case[1], case[2]) for case in reversed(CASES) if case[0] not in TEXTS}
GOOD["lighteval"] = "d.jsonl", [jsonl({"model_response": {"text": ["a"]}})]


def bad_of(write: Write, format: str, row: Any) -> list[BadRecord]:
    """Return the bad records that a row adds to a file between good ones, whose texts stay."""
    name, lines = GOOD[format]
    found, more = everything(write(name, b"".join([*lines, jsonl(row), lines[-1]])), format=format)
    last, _ = everything(write(name, b"".join([*lines, lines[-1]])), format=format)
    assert found
    assert texts(found) == texts(last)
    return [one for one in more if one.line == len(lines) + 1]


@pytest.mark.parametrize("kind", ANOTHER_FORM)
@pytest.mark.parametrize("format", [format.name for format in ROW_FORMATS])
def test_a_row_in_another_form_is_one_bad_record(write: Write, format: str, kind: str) -> None:
    row = ANOTHER_FORM[kind]
    if (format, kind) in (("completion", "completion"), ("completion", "answer")):
        return
    bad = bad_of(write, format, row)
    assert len(bad) == 1
    if not isinstance(row, dict):
        what = {"list": "a list", "number": "a number", "null": "null"}[kind]
        assert bad[0].reason == f"not in the form of {format}: the row is {what}, not an object"


def test_rows_of_another_format_are_read_as_that(write: Write) -> None:
    chat, alpaca = {"messages": [said("one")]}, {"instruction": "i", "output": "two is long enough to be an answer"}
    share = {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "three"}]}
    records, bad = everything(write("m.jsonl", jsonl(chat, share, alpaca, chat, share)))
    assert texts(records) == ["one", "three", "two is long enough to be an answer", "one", "three"]
    assert [record.line for record in records] == [1, 2, 3, 4, 5]
    assert bad == []
    records, bad = everything(write("m.json", json.dumps([share, chat, {"x": 1}]).encode()))
    assert texts(records) == ["three", "one"]
    assert [one.reason for one in bad] == ["element 2: not in the form of sharegpt: there is no 'conversations'"]
    records, bad = everything(write("m.jsonl", jsonl(share, chat)), format="sharegpt")  # which the user asked for
    assert texts(records) == ["three"]
    assert [one.reason for one in bad] == ["not in the form of sharegpt: there is no 'conversations'"]
    records, bad = everything(write("m.jsonl", jsonl(*[{"response": chat}] * 5, chat, {"x": 1})))
    assert len(records) == 6
    assert [one.reason for one in bad] == ["there is nothing at response, where the other rows have openai-chat"]


@pytest.mark.parametrize("format", GOOD)
def test_no_row_of_another_format_is_lost_without_a_reason(write: Write, format: str) -> None:
    def read(*formats: str) -> tuple[int, int]:
        records, bad = everything(write("m.jsonl", b"".join(line for name in formats for line in GOOD[name][1])))
        return len(records), len(bad)

    own = read(format)
    for other in GOOD.keys() - {format}:
        theirs = read(other)
        records, bad = read(format, other)
        assert records >= own[0] + theirs[0] or bad > own[1] + theirs[1], other


@pytest.mark.parametrize(("format", "row"), [(format, row) for format, rows in SKIPPED.items() for row in rows])
def test_a_row_without_a_text_of_the_model_may_be_in_the_form(write: Write, format: str, row: Any) -> None:
    assert bad_of(write, format, row) == []


def test_a_message_in_another_form_is_a_bad_record(write: Write) -> None:
    _, bad = everything(write("c.jsonl", jsonl({"messages": [said("a")]}, {"messages": [5]})))
    assert [record.reason for record in bad] == ["not in the form of openai-chat: a message is a number, not an object"]


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        ({"foo": "a"}, "foo"),
        ([{"foo": "a"}], "foo"),
        ([{"functionCall": {}}, {"foo": {"bar": "a"}}], "foo"),
        ({"type": "text", "value": "a"}, "type, value"),
        ([{"type": "text", "value": "a"}], "type, value"),
        ({"type": "other", "value": "a"}, "type, value"),
    ],
)
def test_a_content_of_no_known_form_is_a_bad_record(write: Write, content: Any, keys: str) -> None:
    """It was an empty answer, or no record at all."""
    for row in ({"messages": [USER, said(content)]}, said(content), {"choices": [{"message": said(content)}]}):
        good = {**row, "messages": [said("x")]} if "messages" in row else said("x")
        records, bad = everything(write("c.jsonl", jsonl(good, row)))
        assert texts(records) == ["x"]
        reason = f"the content has a part of no known kind (its keys: {keys})"
        assert [(one.line, one.reason.partition(": ")[2]) for one in bad] == [(2, reason)]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"content_type": "text", "parts": ["a", "b"]}, ["ab"]),  # of ChatGPT, whose export has it elsewhere
        ({"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "a"]}, ["a"]),
        ({"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "a"}, {"content": "b"}]}, ["a\nb | -"]),
        ({"content_type": "reasoning_recap", "content": "Thought for 2 s"}, []),
        ({"thinking": "a"}, ["a | -"]),
        ([{"functionCall": {"name": "f"}, "thoughtSignature": "x"}, {"text": None, "inline_data": {}}], []),
        ([{"toolUse": {"name": "f"}}, {"text": "a"}], ["a"]),
        ({"type": "tool_use", "name": "f"}, []),
        ({"type": "image_url", "image_url": "u"}, []),
        ([{"text": "a"}, {"image_url": "u"}], ["a"]),
        ([{"type": "text", "text": "a"}, {"foo": {"bar": "b"}}], ["a"]),
        ([{"text": "a"}, {"citationsContent": {"content": [{"text": "b"}], "citations": []}}], ["ab"]),
        ([{"type": "text", "text": None, "cache_control": {}}, {"type": "text", "text": {"value": None}}], []),
        ([{"type": "image_url", "image_url": "u"}, {}], []),
    ],
)
def test_a_content_of_parts(write: Write, content: Any, expected: list[str]) -> None:
    records, bad = everything(write("c.jsonl", jsonl(said("x"), said(content))))
    assert (texts(records), bad) == (["x", *expected], [])


def test_settings_of_reasoning_are_no_reasoning(write: Write) -> None:
    settings = said("a", thinking={"type": "enabled", "budget_tokens": 9}), said("b", reasoning={"effort": "low"})
    records, bad = everything(write("c.jsonl", jsonl(*settings, said("c", reasoning={"content": "r"}))))
    assert (texts(records), bad) == (["a", "b", "r | c"], [])
    more = said("d", reasoning={"summary": "auto"}), said("e", reasoning_details=[{"format": "f", "data": "x"}])
    records, bad = everything(write("d.jsonl", jsonl(*more)))
    assert (texts(records), bad) == (["d", "e"], [])


def test_by_adds_groups(write: Write) -> None:
    path = write(
        "c.jsonl", jsonl({"variant": "lz", "metadata": {"n": 3}, "messages": [said("a")]}, {"messages": [said("b")]})
    )
    records, _ = everything(path, by=["variant", "n", "nothing"])
    assert [record.groups for record in records] == [{"variant": "lz", "n": "3"}, {}]


# -- reasoning --


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", (None, "plain")),
        ("<think>a</think>b", ("a", "b")),
        (" \n<think>\na b ", ("\na b ", None)),
        ("<think>\n\n</think>\n\nb", (None, "\n\nb")),
        ("a</think>b", ("a", "b")),
        ("about <think> and </think>", (None, "about <think> and </think>")),
        ("<think>a</think>b<think>c", ("a", "b<think>c")),
        ("[THINK]a[/THINK]b", ("a", "b")),
        ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>", ("a", "b")),
        ("<|channel|>analysis<|message|>a a a", ("a a a", None)),
        ("<|channel|>final<|message|>b", (None, "b")),
        ("analysisWe needassistantfinalb", ("We need", "b")),
        ("analysis of it", (None, "analysis of it")),
        ("<think>", ("", None)),
        ("", (None, "")),
    ],
)
def test_reasoning_is_split_off(text: str, expected: tuple[str | None, str | None]) -> None:
    assert split(text) == expected


MARKS = ["<think>", "</think>", "a", " ", "<|channel|>", "final", "<|message|>", "analysis", "assistantfinal"]


@given(st.lists(st.sampled_from(MARKS)).map("".join))
def test_nothing_is_invented(text: str) -> None:
    reasoning, answer = split(text)
    assert (reasoning or "") in text
    assert (answer or "") in text


# -- paths --


def test_a_field_of_anything(write: Write) -> None:
    rows = [{"id": "a", "out": [{"t": "x"}, {"t": "<think>y"}], "model": "m"}, {"out": []}, {"out": [{"t": 5}]}, 7]
    for name, data in (("f.jsonl", jsonl(*rows)), ("f.json", json.dumps(rows).encode())):
        records, bad = everything(write(name, data), field="out[*].t")
        assert [told(record) for record in records] == [
            ("a", 0, "x", {"model": "m"}),
            ("a/2", 0, "y | -", {"model": "m"}),
        ]
        assert len(bad) == 3
    records, _ = everything(write("g.json", json.dumps({"runs": [{"t": "a"}, {"t": "b"}]}).encode()), field="runs[*].t")
    assert [told(record)[:3] for record in records] == [("0", 0, "a"), ("1", 1, "b")]
    records, _ = everything(write("h.json", json.dumps([{"t": "a"}, {"t": "b"}], indent=1).encode()), field="[*].t")
    assert texts(records) == ["a", "b"]


def test_paths() -> None:
    row = {"a": {"b c": [1, 2, {"d.e": 3}]}}
    assert values(row, parse("a.b c[2]['d.e']")) == [3]
    assert values(row, parse('["a"]["b c"][-3]')) == [1]
    assert values(row, parse("a.b c[*]")) == [1, 2, {"d.e": 3}]
    assert values(row, parse("a.x[0].y")) == []
    for bad in ("", ".a", "a..b", "a[", "a[x]", "a]b", "a[*]b"):
        with pytest.raises(ValueError, match="field"):
            parse(bad)


# -- rows of any shape --


def rows_of(case: tuple[str, str, bytes, list[Text], int]) -> list[Any]:
    try:
        document = json.loads(case[2])
        return document if isinstance(document, list) else [document]
    except ValueError:
        return [json.loads(line) for line in case[2].splitlines() if line not in BAD]


def keys_of(value: Any) -> set[str]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {key for child in inside for key in keys_of(child)} | (set(value) if isinstance(value, dict) else set())


JSON_CASES = [case for case in CASES if case[0] not in TEXTS and case[1].endswith((".json", ".jsonl"))]
KEYS = sorted({key for case in JSON_CASES for row in rows_of(case) for key in keys_of(row)})
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 3),
        st.floats(),
        st.sampled_from(["", "assistant", "x", "message", "text"]),
    ),
    lambda inside: st.one_of(st.lists(inside, max_size=3), st.dictionaries(st.sampled_from(KEYS), inside, max_size=5)),
    max_leaves=25,
)


@given(VALUES, st.sampled_from(ROW_FORMATS))
def test_rows_of_any_shape_never_raise(row: Any, format: Format) -> None:
    format.matches(row)
    for item in records_of(format, row, Source("f", {}, ("x",)), 0, 1, "", True):
        assert isinstance(item, Record | BadRecord)
        if isinstance(item, Record):
            assert all(isinstance(field.text, str) for field in item.fields)
            assert all(isinstance(value, str) for value in (item.id, *item.groups.values()))


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in inside for found in _paths(child, (*path, key)))]


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize("case", JSON_CASES, ids=lambda case: f"{case[0]}-{case[1][-6:]}")
def test_any_value_of_a_record_may_be_another(case: tuple[str, str, bytes, list[Text], int]) -> None:
    format = by_name(case[0])
    for row in rows_of(case):
        for path in _paths(row):
            for new in (None, 5, "x", [], {}, [None], [5], {"a": None}, True):
                changed = _replaced(row, path, new)
                for source in (Source("f", {}, ()), Source("f", {}, (), state={"asked": True})):
                    for item in records_of(format, changed, source, 0, 1, "", False):
                        assert isinstance(item, Record | BadRecord)


def test_groups_of_nested_keys(write: Write) -> None:
    row = {"messages": [said("a")], "eval": {"kind": "lz", "n": 3}, "a.b": "plain", "runs": [{"host": "h1"}]}
    by = ("eval.kind", "eval.n", "a.b", "runs[0].host", "eval.missing", "eval", "not a path[")
    records, _ = everything(write("n.jsonl", jsonl(row)), by=by)
    assert records[0].groups == {"eval.kind": "lz", "eval.n": "3", "a.b": "plain", "runs[0].host": "h1"}


def test_groups_of_an_evaluation(write: Write) -> None:
    """Those that docs/evaluate.md names, in the place of the settings' own seed."""
    setting = runs.grid().settings[0]
    made = {**runs.transcript(setting, "p7", 2, "Fine.", task="sort", right=True), "prompt": "Once upon"}
    made["settings"]["seed"] = 12345
    keys = ("kind", "setting", "task", "prompt", "seed", "right", "eval.kind")
    records, bad = everything(write("t.jsonl", jsonl(made)), by=keys)
    assert not bad
    wanted = {"kind": "none", "setting": "T=0", "task": "sort", "prompt": "p7", "seed": "2", "right": "true"}
    assert {key: records[0].groups[key] for key in keys} == {**wanted, "eval.kind": "none"}
